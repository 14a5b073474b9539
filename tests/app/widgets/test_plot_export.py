"""The values of curves become a file a portion at a time."""

import csv
from pathlib import Path

import numpy as np

from app.widgets.plots import plot_export


def test_many_points_are_written_in_portions_and_come_back(tmp_path: Path):
    steps = np.arange(1.0, 20_001)
    curves = {"loss": (steps, 1 / steps), "evaluation": (np.array([3.0, 20_000.5]), np.array([2.0, np.inf]))}
    path = tmp_path / "loss.csv"
    portions = plot_export.write_curves(path, "step", curves)
    assert sum(1 for _ in portions) > 4
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20_001
    assert rows[2] == {"step": "3", "loss": repr(1 / 3), "evaluation": "2"}
    assert rows[-1] == {"step": "20000.5", "loss": "", "evaluation": ""}


def test_the_file_is_there_when_it_is_whole_and_nothing_is_left_before(tmp_path: Path):
    portions = plot_export.write_curves(tmp_path / "loss.csv", "step", {"loss": (np.ones(1), np.ones(1))})
    next(portions)
    assert not (tmp_path / "loss.csv").exists()
    portions.close()
    assert list(tmp_path.iterdir()) == []


def test_no_curves_are_a_heading(tmp_path: Path):
    assert list(plot_export.write_curves(tmp_path / "none.csv", "step", {})) == []
    assert (tmp_path / "none.csv").read_text() == "step\n"
