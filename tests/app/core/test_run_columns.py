"""What the columns of the table of runs must have for the table to fit into any width."""

from pathlib import Path
from typing import Any

import pytest

from app.core.runs.run_columns import COLUMNS
from app.core.runs.run_library import RunSummary


def test_only_the_first_column_has_no_width_of_its_own():
    assert [key for key, column in COLUMNS.items() if not column.width] == [next(iter(COLUMNS))]


def test_columns_leave_one_after_another():
    places = sorted(column.leaves for column in COLUMNS.values() if column.leaves)
    assert places == list(range(1, len(places) + 1))


BEST = COLUMNS["best"]
GOOD: dict[str, Any] = {
    "metric": "accuracy", "best": 0.8828, "metrics": {"accuracy": 0.8828}, "intervals": {"accuracy": (0.855, 0.906)},
}  # fmt: skip


def summary(**values: Any) -> RunSummary:
    return RunSummary("run", Path("/runs/run"), "finished", **{**GOOD, **values})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "Accuracy 0.883 (0.855 to 0.906)"),
        ({"intervals": {}}, "Accuracy 0.8828"),
        ({"best": 0.9}, "Accuracy 0.9000"),  # of an evaluation; the interval is that of the saved model
        ({"members": (Path("/runs/run-seed-1"),), "deviations": {"accuracy": 0.02}}, "Accuracy 0.883 (0.855 to 0.906)"),
        ({"intervals": {}, "deviations": {"accuracy": 0.02}}, "Accuracy 0.8828 ± 0.02"),
        ({"at_chance": True}, "at chance"),
    ],
    ids=str,
)
def test_best_has_the_interval_of_what_it_is(values: dict[str, Any], words: str):
    run = summary(**values)
    assert BEST.text(run) == words
    assert BEST.value(run) == run.best  # however it is written


def test_hint_of_the_best_says_what_a_rule_reaches():
    assert BEST.hint is not None
    assert BEST.hint(summary(trivial={"accuracy": 0.6})).endswith("A rule without a model reaches 0.6000.")
    unsure = BEST.hint(summary(trivial={"accuracy": 0.88}, unsure=frozenset({"accuracy"})))
    assert unsure.endswith("It may be no better than a rule without a model (0.8800).")
    assert "all seeds" in BEST.hint(summary(members=(Path("/runs/run-seed-1"),)))
    assert BEST.hint(summary(intervals={})) == "Accuracy 0.8828"
