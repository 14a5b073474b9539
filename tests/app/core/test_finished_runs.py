"""Which ended runs are news."""

from pathlib import Path

import pytest

from app.core import formatting
from app.core.runs.finished_runs import FinishedRuns
from app.core.runs.run_library import RunSummary
from backend.contract.catalog import MetricEntry


def run(state: str, name: str = "reviews", started: float = 50.0, **more) -> RunSummary:
    return RunSummary(name=name, path=Path(name), state=state, title=name, started=started, **more)


@pytest.fixture
def endings() -> FinishedRuns:
    return FinishedRuns(since=100.0)


def test_a_run_that_was_alive_and_ends_is_news_once(endings: FinishedRuns):
    formatting.learn_metrics([MetricEntry("f1_macro", "Macro F1", [], greater_is_better=True)])
    assert endings.take([run("running")]) == []
    [ended] = endings.take([run("finished", seconds=260.0, metric="f1_macro", best=0.9, metrics={"f1_macro": 0.8812})])
    assert ended.text == "reviews finished in 4 min 20 s: Macro F1 0.8812."
    assert ended.kind == "success"
    assert endings.take([run("finished")]) == []


def test_last_months_runs_are_no_news(endings: FinishedRuns):
    assert endings.take([run("finished"), run("failed", "other")]) == []


def test_a_run_that_came_and_went_between_two_looks_is_news(endings: FinishedRuns):
    endings.take([])
    assert [ended.text for ended in endings.take([run("failed", started=120.0, step=0)])] == ["reviews failed."]


def test_a_run_that_comes_back_from_the_trash_is_no_news(endings: FinishedRuns):
    again = run("finished", started=120.0)
    for runs in ([], [again], []):
        endings.take(runs)
    assert endings.take([again]) == []


def test_a_failed_run_says_where_and_why(endings: FinishedRuns):
    endings.take([run("running"), run("running", "other")])
    texts = [
        one.text
        for one in endings.take([run("failed", step=1200, message="out of memory."), run("lost", "other", step=3)])
    ]
    assert texts == [
        "reviews failed at step 1\u202f200: out of memory.",
        "other was lost at step 3: its process disappeared.",
    ]


@pytest.mark.parametrize("state", ["stopped", "paused"])
def test_who_stops_a_run_need_not_be_told(endings: FinishedRuns, state: str):
    endings.take([run("running")])
    assert endings.take([run(state)]) == []


def test_an_interrupted_run_is_news_that_warns(endings: FinishedRuns):
    endings.take([run("running")])
    [ended] = endings.take([run("interrupted", step=1200)])
    assert (ended.text, ended.kind) == ("reviews was interrupted at step 1\u202f200. You can resume it.", "warning")


def test_the_title_tells_until_somebody_looks(endings: FinishedRuns):
    endings.take([run("running"), run("running", "other")])
    assert endings.title() == "Burnish"
    endings.take([run("finished"), run("running", "other")])
    assert endings.title() == "reviews finished – Burnish"
    endings.take([run("finished"), run("failed", "other")])
    assert endings.title() == "2 runs ended – Burnish"
    endings.see(Path("other"))
    assert endings.title() == "reviews finished – Burnish"
    endings.see_all()
    assert endings.title() == "Burnish"


def test_a_run_that_goes_on_again_is_no_ended_one(endings: FinishedRuns):
    endings.take([run("running")])
    endings.take([run("failed")])
    endings.take([run("running")])
    assert endings.unseen == []
