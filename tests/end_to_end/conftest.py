"""Gives each test its own Burnish: a home folder with a few rows of the demo's data."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish, small_csv

from backend.contract.run.folder import run_folders


@pytest.fixture
def burnish(tmp_path: Path) -> Iterator[Burnish]:
    home = tmp_path / "home"
    home.mkdir()
    small_csv(home / "train.csv", "train", 64)
    small_csv(home / "validation.csv", "validation", 24)
    one = Burnish(home)
    yield one
    for folder in run_folders(one.runs):  # nothing that a failing test started outlives it
        if folder.life() == "alive":
            one("stop", str(folder.path))
