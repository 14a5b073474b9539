"""Which runs are listed, and in which order."""

from pathlib import Path

import pytest

from app.core.runs.run_comparison import names_of
from app.core.runs.run_library import RunSummary
from app.core.runs.run_list import GroupHeading, RunListOptions, arrange, matching, sort_runs


def run(name: str, **values) -> RunSummary:
    return RunSummary(name=name, path=Path("/runs") / name, title=name, **{"state": "finished", **values})


RUNS = [
    run("a", best=0.5, started=3.0, tags=("paper", "old"), model="/models/bert", note="too high a rate"),
    run("b", best=0.9, started=1.0, state="failed", model="/models/gpt2"),
    run("c", best=None, started=2.0, tags=("paper",), model="/models/bert"),
]


def names(lines) -> list[str]:
    return [line.name if isinstance(line, RunSummary) else f"{line.title}:{line.count}" for line in lines]


@pytest.mark.parametrize(
    ("words", "found"), [("#pap", "ac"), ("bert failed", ""), ("GPT2", "b"), ("high rate", "a"), ("", "abc")]
)
def test_every_word_is_looked_for_in_every_column_note_and_tag(words: str, found: str):
    assert "".join(names(matching(RUNS, words))) == found


def test_the_newest_run_comes_first():
    assert names(arrange(RUNS, RunListOptions())) == ["a", "c", "b"]


@pytest.mark.parametrize(("descending", "order"), [(True, "bac"), (False, "abc")])
def test_a_run_without_a_value_comes_last_either_way(descending: bool, order: str):
    assert "".join(names(sort_runs(RUNS, "best", descending=descending))) == order


def test_a_run_stands_under_each_of_its_tags():
    lines = arrange(RUNS, RunListOptions(group="tag"))
    assert names(lines) == ["old:1", "a", "paper:2", "a", "c", "No tag:1", "b"]


def test_groups_of_states_come_in_the_order_of_a_runs_life():
    assert [line for line in arrange(RUNS, RunListOptions(group="state")) if isinstance(line, GroupHeading)] == [
        GroupHeading("Finished", 2),
        GroupHeading("Failed", 1),
    ]


def test_runs_of_one_title_are_named_by_their_folders_without_the_date_where_that_helps():
    def titled(name: str) -> RunSummary:
        return RunSummary(name=name, path=Path(name), state="finished", title="x")

    first, second = "2026-11-21-1530-x", "2026-11-21-1530-x-2"
    assert names_of([titled(first), titled(second)]) == ["x", "x-2"]
    assert names_of([titled(first), titled("2026-11-22-1530-x")]) == [first, "2026-11-22-1530-x"]


def test_a_run_that_names_no_state_is_listed_too():
    run = RunSummary("odd", Path("odd"), "")
    assert arrange([run], RunListOptions(group="state"))[-1] is run


def test_the_runs_of_a_group_follow_it_if_it_is_unfolded():
    paths = {name: Path("/runs") / name for name in "ac"}
    group = run("group", best=0.7, started=2.5, members=(paths["c"], paths["a"]))
    assert names(arrange(RUNS, RunListOptions(), [group])) == ["group", "b"]
    assert names(arrange(RUNS, RunListOptions(), [group], {group.path})) == ["group", "c", "a", "b"]
    tagged = arrange(RUNS, RunListOptions(group="state"), [group], {group.path})
    assert names(tagged) == ["Finished:1", "group", "c", "a", "Failed:1", "b"]
