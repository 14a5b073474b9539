"""Names and differences of runs that were made from each other."""

from pathlib import Path

import pytest

from app.core.draft.run_copies import LONGEST, next_name, one_before, what_differs
from app.core.runs.run_library import RunSummary


@pytest.mark.parametrize(
    ("name", "taken", "made"),
    [
        ("reviews", ["reviews"], "reviews 2"),
        ("reviews", ["reviews", "reviews 2", "reviews 4"], "reviews 3"),
        ("reviews 2", ["reviews", "reviews 2"], "reviews 3"),
        ("squad-2", [], "squad-2 2"),
        ("2", [], "2 2"),
    ],
)
def test_a_copy_gets_the_next_free_number(name: str, taken: list[str], made: str):
    assert next_name(name, taken) == made


def test_a_long_name_is_cut_to_what_a_spec_allows():
    made = next_name("x" * LONGEST, [])
    assert len(made) == LONGEST
    assert made.endswith("x 2")


def run(folder: Path, title: str, started: float, rate: str = "2e-05", epochs: int = 3) -> RunSummary:
    path = folder / f"{title}-{started:.0f}"
    path.mkdir()
    spec = f"version: 1\nname: {title}\ntask: {{type: text_classification}}\ndata: {{source: demo}}\n"
    path.joinpath("spec.yaml").write_text(f"{spec}training: {{learning_rate: {rate}, epochs: {epochs}}}\n")
    return RunSummary(path.name, path, "finished", title=title, started=started)


def test_a_run_is_held_against_the_latest_of_its_name_before_it(tmp_path: Path):
    first, other = run(tmp_path, "reviews", 1), run(tmp_path, "titles", 2)
    second, third = run(tmp_path, "reviews 2", 3), run(tmp_path, "reviews", 4)
    every = [third, second, other, first]
    assert [one_before(one, every) for one in (first, second, third)] == [None, first, second]


def test_what_differs_is_told_setting_by_setting_without_the_name(tmp_path: Path):
    first, second = run(tmp_path, "reviews", 1), run(tmp_path, "reviews 2", 2, "0.0002", 6)
    assert what_differs(second, first) == ["Learning rate: 2e-5 → 0.0002", "Epochs: 3 → 6"]


def test_a_run_whose_spec_is_gone_differs_in_nothing_that_is_known(tmp_path: Path):
    first, second = run(tmp_path, "reviews", 1), run(tmp_path, "reviews 2", 2)
    (first.path / "spec.yaml").unlink()
    assert what_differs(second, first) == []
