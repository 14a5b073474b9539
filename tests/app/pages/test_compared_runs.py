"""The Run page compares: the same run with the other engine, and curves of one run below another's."""

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton

from app import theme
from app.pages.run.page import Page
from app.pages.run.plots import OTHER
from app.services.context import AppContext
from app.services.job import Jobs
from backend.contract import spec_file
from tests.app.gone import gone


class OneRun:
    """Stands where runs are started: a folder is there at once."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self.begin(Path())

    def begin(self, folder: Path) -> None:
        """Nothing was asked yet; what is started from now on is this run."""
        self.folder = folder
        self.values: dict | None = None
        self.refusal = ""
        self.resumed: tuple[str, str] | None = None

    def start(self, values, on_started, on_error) -> None:
        self.values = dict(values)
        on_error(self.refusal) if self.refusal else on_started(str(self.folder))

    def resume(self, run, on_started, on_error, engine="") -> None:
        self.resumed = (Path(run).name, engine)
        on_started(str(run))

    def __getattr__(self, name: str):
        return getattr(self._jobs, name)


@pytest.fixture(scope="module")
def one_run(services: AppContext) -> OneRun:
    return OneRun(services.jobs)


@pytest.fixture(scope="module")
def page(qapp: QApplication, services: AppContext, one_run: OneRun) -> Iterator[Page]:
    """One page for all tests here, each of which shows it runs of its own."""
    theme.apply(qapp, "light")
    made = Page(dataclasses.replace(services, jobs=one_run))
    made.resize(1068, 800)
    made.show()
    made.on_shown()
    yield made
    gone(made)


@pytest.fixture
def context(shared_context: AppContext) -> AppContext:
    """The services of all tests here, with the runs of this one."""
    return shared_context


@pytest.fixture
def jobs(one_run: OneRun, runs: Path) -> OneRun:
    one_run.begin(runs / "sentiment-resumed")
    return one_run


@pytest.fixture
def panel(qtbot, page: Page, context: AppContext, jobs: OneRun) -> Page:
    qtbot.waitUntil(lambda: page.engines.catalog is not None)
    return page


@pytest.fixture
def shown(qtbot, panel, runs, context):
    def show(name: str) -> Page:
        context.library.refresh()
        panel.show_run(str(runs / name))
        qtbot.waitUntil(lambda: panel.watcher.is_caught_up and panel.is_drawn)
        return panel

    return show


def give_spec(folder, **hardware) -> None:
    values = {
        "version": 1, "name": "sentiment", "task": {"type": "text_classification"}, "model": {"name_or_path": "x"},
        "data": {}, "hardware": {"engine": "torch", **hardware},
    }  # fmt: skip
    (folder / "spec.yaml").write_text(spec_file.dump(values), encoding="utf-8")


def others(plot) -> dict[str, int]:
    return {key: len(series) for key, series in plot.series.items() if key.startswith(OTHER)}


def test_a_finished_run_is_repeated_with_the_other_engine_and_compared(qtbot, panel, shown, runs, jobs):
    give_spec(runs / "sentiment-finished", threads=2)
    shown("sentiment-finished")
    button = panel.controls.actions_by_key["other_engine"]
    assert (button.text(), button.isEnabled(), button.isVisible()) == ("Train with JAX", True, True)
    with qtbot.waitSignal(panel.message) as told:
        button.trigger()
    assert jobs.values["hardware"]["engine"] == "jax"
    assert "hardware.threads" in told.args[1]
    assert panel.path == runs / "sentiment-resumed"
    qtbot.waitUntil(lambda: others(panel.plots.loss) == {"other/loss": 1000, "other/evaluation": 8})
    qtbot.waitUntil(lambda: len(panel.plots.loss.series["loss"]) == 742)
    qtbot.waitUntil(lambda: others(panel.plots.metrics).get("other/accuracy") == 8)


def asked(panel, runs, shown) -> dict[str, QPushButton]:
    """The answers to the question that the button of a run asks which stopped before its end."""
    give_spec(runs / "sentiment-lost")
    shown("sentiment-lost")
    panel.controls.actions_by_key["other_engine"].trigger()
    return {button.text(): button for button in panel.engines.question.findChildren(QPushButton)}


def test_a_run_that_stopped_early_may_go_on_with_the_other_engine(panel, shown, runs, jobs):
    answers = asked(panel, runs, shown)
    assert jobs.values is None
    answers["Continue"].click()
    assert jobs.resumed == ("sentiment-lost", "jax")
    assert panel.path == runs / "sentiment-lost"


def test_or_be_started_anew_with_it(panel, shown, runs, jobs):
    asked(panel, runs, shown)["Restart from scratch"].click()
    assert jobs.values["hardware"]["engine"] == "jax"
    assert jobs.resumed is None


def test_or_be_left_alone(panel, shown, runs, jobs):
    asked(panel, runs, shown)["Cancel"].click()
    assert (jobs.values, jobs.resumed) == (None, None)


def test_the_button_comes_when_the_engines_are_known(qtbot, context, runs):
    give_spec(runs / "sentiment-finished")
    panel = Page(context)
    qtbot.addWidget(panel)
    panel.show()
    panel.show_run(str(runs / "sentiment-finished"))
    qtbot.waitUntil(lambda: panel.watcher is not None and panel.watcher.is_caught_up)
    assert not panel.controls.actions_by_key["other_engine"].isVisible()
    panel.on_shown()
    qtbot.waitUntil(panel.controls.actions_by_key["other_engine"].isVisible, timeout=20_000)


def test_a_run_that_the_other_engine_refuses_says_why(panel, shown, runs):
    give_spec(runs / "sentiment-finished")
    (runs / "sentiment-finished" / "model").mkdir()
    (runs / "sentiment-finished" / "model" / "config.json").write_text(json.dumps({"model_type": "bloom"}))
    shown("sentiment-finished")
    button = panel.controls.actions_by_key["other_engine"]
    assert not button.isEnabled()
    assert button.isVisible()
    assert button.toolTip() == "The JAX engine does not support the architecture 'bloom'."


def test_a_refused_start_is_told_and_can_be_tried_again(qtbot, panel, shown, runs, jobs):
    give_spec(runs / "sentiment-finished")
    jobs.refusal = "data.train: there is no file train.csv; choose another"
    shown("sentiment-finished")
    with qtbot.waitSignal(panel.message) as told:
        panel.controls.actions_by_key["other_engine"].trigger()
    assert "there is no file train.csv" in told.args[1]
    assert panel.controls.actions_by_key["other_engine"].isEnabled()
    assert panel.path == runs / "sentiment-finished"


def test_runs_of_the_same_task_are_offered_and_one_is_laid_below(qtbot, panel, shown, runs):
    shown("sentiment-finished")
    panel.comparison.fill_menu()
    words = [action.text() for action in panel.comparison.menu.actions()]
    assert any("torch" in one for one in words)
    paths = [run.path.name for run in panel.comparison.candidates()]
    assert "sentiment-finished" not in paths
    assert "sentiment-lost" in paths
    panel.comparison.compare(runs / "sentiment-lost")
    qtbot.waitUntil(lambda: others(panel.plots.loss)["other/loss"] == 430)
    assert panel.comparison.button.isChecked()
    assert panel.plots.loss.series["other/loss"].style.label == "sentiment-lost"
    qtbot.waitUntil(lambda: panel.plots.loss._legend.text().count("sentiment-lost") == 1)
    panel.comparison.stop()
    assert others(panel.plots.loss) == {"other/loss": 0, "other/evaluation": 0}
    assert not panel.comparison.button.isChecked()


def test_another_run_is_compared_with_nothing(qtbot, panel, shown, runs):
    shown("sentiment-finished")
    panel.comparison.compare(runs / "sentiment-lost")
    qtbot.waitUntil(lambda: others(panel.plots.loss)["other/loss"] == 430)
    shown("sentiment-resumed")
    assert panel.comparison.watcher is None
    assert others(panel.plots.loss)["other/loss"] == 0


def test_a_compared_run_that_is_deleted_goes_from_the_plots(qtbot, panel, shown, runs):
    shown("sentiment-finished")
    panel.comparison.compare(runs / "sentiment-lost")
    qtbot.waitUntil(lambda: others(panel.plots.loss)["other/loss"] == 430)
    with qtbot.waitSignal(panel.message) as said:
        shutil.rmtree(runs / "sentiment-lost")
    assert said.args == ["warning", "sentiment-lost, the run compared with, was deleted."]
    assert panel.comparison.watcher is None
    assert others(panel.plots.loss)["other/loss"] == 0
    assert len(panel.plots.loss.series["loss"]) == 1000
