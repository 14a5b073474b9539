"""What each picture of README and guide shows: a function for each, which brings the window there (`docs/screenshots.py`)."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.contract import spec_file
from backend.contract.processes import python_command

HIGH = (1280, 1100)
"""A window that shows the plan of New run whole."""
SECONDS = 300.0
SETTLE_SECONDS = 2.5
SENTENCE = (
    "Burnish tokenises unbelievably well: naïve cafés, 42 numbers & façades – all at once.\n"
    "Colours and lines mark where a token begins; grey ones are special."
)
TYPED = ("The waiter was rude and the soup was cold.", "Funny, warm and beautifully played.")
REVIEWS = "text\nThe battery died after a week.\nBest tacos in town.\nI would watch it again tomorrow.\nNever again.\n"
"""A file without labels, to be predicted."""
SEARCH = {
    "space": {"training.learning_rate": {"log": [1e-5, 3e-3]}, "training.batch_size": [8, 16, 32], "training.weight_decay": [0.0, 0.1]},
    "metric": "accuracy", "trials": 14, "sampler": "tpe", "halving": {"factor": 2, "rungs": 1}, "keep": 2,
    "confirm": {"best": 1, "seeds": 3, "baseline": True},
}  # fmt: skip
FEW_ROWS = {"data.max_rows": 320, "task.max_length": 64, "training.epochs": 6}
"""So that a search takes minutes."""
DEMO_DATA = {"source": "demo", "name": "sentiment"}


@dataclass
class Stage:
    """What a picture is drawn from."""

    window: Any
    home: Path
    run: Path
    """The finished demo."""

    def page(self, name: str) -> Any:
        """Bring a page to the front."""
        return self.window.show_page(name)

    def second_run(self) -> Path:
        """The demo with a smaller learning rate, started when it is first asked for."""
        others = [path for path in self.run.parent.iterdir() if path.is_dir() and path != self.run]
        if not others:
            changes = ("--set", "name=sentiment-1e-4", "--set", "training.learning_rate=1e-4")
            backend("train", str(self.run / "spec.yaml"), *changes, "--detach")
        return next(path for path in self.run.parent.iterdir() if path.is_dir() and path != self.run)

    def finish_second_run(self) -> Path:
        """The same when it is over."""
        second = self.second_run()
        until((second / "exit.json").exists, 3 * SECONDS)
        return second


def backend(*arguments: str) -> str:
    """What a command prints."""
    command = python_command("backend", *arguments)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def until(condition: Callable[[], Any], seconds: float = SECONDS) -> None:
    """Let the window live until the condition holds; a picture of anything else would be wrong."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain")
        _live()


def settle() -> None:
    """Plots, tables and answers come to rest."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        _live()


def _live() -> None:
    from PySide6.QtWidgets import QApplication  # after the platform is chosen

    QApplication.processEvents()
    time.sleep(0.005)


# New run


def new_run(stage: Stage) -> Any:
    """The page, filled with the demo."""
    page = stage.page("new_run")
    until(lambda: page.catalog is not None)
    page.fill_demo()
    until(page.demo.isEnabled)  # the demo has taken the place of what stood there
    until(lambda: page.checks.plan is not None and not page.reason())
    return stage.window


def section(name: str) -> Callable[[Stage], Any]:
    """New run with one section open."""

    def draw_section(stage: Stage) -> Any:
        new_run(stage)
        stage.page("new_run").sections.open(name)
        return stage.window

    return draw_section


def start_bar(stage: Stage) -> Any:
    """The bar at the bottom of New run alone."""
    new_run(stage)
    return stage.page("new_run").start_bar


def data_report(stage: Stage) -> Any:
    """The dialog with the report on the demo's data."""
    new_run(stage)
    page = stage.page("new_run")
    page.sections.data.report.click()
    until(lambda: page.report.report is not None)
    return page.report


def choose_model(stage: Stage) -> Any:
    """The dialog in which a model is chosen."""
    new_run(stage)
    models = stage.page("new_run").model_controller
    models.open()
    until(lambda: len(models.chooser.list.models) > 3)
    return models.chooser


# Runs


def run_live(stage: Stage) -> Any:
    """A run that is training."""
    second = stage.second_run()
    stage.window.show_run(str(second))
    page = stage.page("run")
    until(lambda: page.watcher.state.step > 330 or (second / "exit.json").exists())
    return stage.window


def run(stage: Stage) -> Any:
    """The finished run, when no other is running."""
    stage.window.show_run(str(stage.run))
    page, library = stage.page("run"), stage.window.context.library
    until(lambda: page.watcher is not None and page.watcher.is_caught_up)
    until(lambda: library.runs and not any(run.alive for run in library.runs), 3 * SECONDS)
    return stage.window


def run_samples(stage: Stage) -> Any:
    """The card with the rows that an evaluation showed."""
    run(stage)
    stage.window.resize(1280, 1000)
    journal = stage.page("run").journal
    journal.show_page("Samples")
    journal.samples.list.selectRow(0)
    return journal


def runs(stage: Stage) -> Any:
    """Two runs in the list."""
    stage.finish_second_run()
    page = stage.page("runs")
    until(lambda: all(run.has_predictions for run in stage.window.context.library.runs))
    page.table.choose(stage.run)
    return stage.window


def compare(stage: Stage) -> Any:
    """Their curves in one plot."""
    runs(stage)
    page = stage.page("runs")
    page.table.selectAll()
    until(page.buttons["compare"].isEnabled)
    page.buttons["compare"].click()
    until(lambda: not page.compared.states.unread)
    return stage.window


def differences(stage: Stage) -> Any:
    """Whether they differ by more than chance."""
    compare(stage)
    compared = stage.page("runs").compared
    compared.show_side("Differences")
    until(lambda: compared.differences.model().rowCount() > 0)
    return stage.window


def new_run_search(stage: Stage) -> Any:
    """A search around the demo's run, and what it will take."""
    page = stage.page("new_run")
    until(lambda: page.catalog is not None)
    page.search_around(str(stage.run), None, "accuracy")
    until(lambda: page.checks.plan is not None and page.checks.plan.search is not None)
    return stage.window


def search(stage: Stage) -> Any:
    """A search that is over, and whether its winner is better than the demo."""
    folder = stage.home / "search" / "sentiment-search"
    if not folder.exists():
        spec = stage.home / "search.json"
        values = spec_file.set_values(spec_file.read_run(stage.run / "spec.yaml"), FEW_ROWS)
        spec.write_text(json.dumps({**values, "name": "sentiment-search", "search": SEARCH}), encoding="utf-8")
        backend("search", str(spec), "--run-folder", str(folder), "--json")
    stage.window.show_run(str(folder))
    page = stage.page("run").search
    until(lambda: page.table.texts() and page.importance.bars)
    stage.window.resize(*HIGH)
    return stage.window


# Predictions


def rows(stage: Stage) -> Any:
    """The Predictions page with all rows."""
    page = stage.page("predictions")
    page.show_run(str(stage.run))
    until(lambda: page.table.shown_count() > 0)
    return page


def predictions(stage: Stage) -> Any:
    """The rows, one of them whole."""
    rows(stage).table.selectRow(2)
    return stage.window


def predictions_wrong(stage: Stage) -> Any:
    """The most confident mistakes, beside the confusion matrix."""
    page = rows(stage)
    until(page.browser.overview.mistakes.isVisible)
    page.browser.overview.mistakes.click()
    until(lambda: page.table.shown_count() < page.browser.rows.row_count)
    return stage.window


def predictions_file(stage: Stage) -> Any:
    """What the run predicts for a file."""
    page = rows(stage)
    data = stage.home / "reviews.csv"
    data.write_text(REVIEWS, encoding="utf-8")
    page.browser.predict_file(str(data))
    until(lambda: page.browser.filters.split == data.stem and page.table.shown_count() > 0)
    page.table.selectRow(1)
    return stage.window


def export(stage: Stage) -> Any:
    """The export dialog for the mistakes."""
    predictions_wrong(stage)
    return stage.page("predictions").ask_export()


def try_model(stage: Stage) -> Any:
    """The run's model, asked about two sentences."""
    page = stage.page("predictions")
    page.show_run(str(stage.run))
    page.show_tab(1)
    until(lambda: bool(page.attempt.form.fields))
    for number, text in enumerate(TYPED, start=1):
        page.attempt.form.fill({"text": text})
        page.attempt.ask()
        until(lambda number=number: len(page.attempt.kept) == number)
    return stage.window


# Tokenizer


def tokenizer(stage: Stage) -> Any:
    """The tokens of a text."""
    page = stage.page("tokenizer")
    page.show_tab(0)
    tab = page.tab()
    tab.text.setPlainText(SENTENCE)
    until(lambda: tab.tokens.table.sources == [SENTENCE])
    tab.view.select(6, 7)
    tab.token.show_token(tab.tokens.table, 6)
    return stage.window


def vocabulary(stage: Stage) -> Any:
    """Pieces that were searched for."""
    page = stage.page("tokenizer")
    page.show_tab(1)
    tab = page.tab()
    until(lambda: tab.vocabulary is not None)
    tab.search.text.setText("able")
    settle()
    tab.table.selectRow(0)
    return stage.window


def tokenizer_compare(stage: Stage) -> Any:
    """Two demo models' tokenizers on one text."""
    page = stage.page("tokenizer")
    page.show_tab(2)
    until(lambda: page.tab().summary.text() and not page.tab().summary.text().endswith("…"))
    return stage.window


def my_data_lengths(stage: Stage) -> Any:
    """The demo's data against a limit that cuts some rows."""
    new_run(stage)
    page = stage.page("new_run")
    page.apply_settings({"task.max_length": 24})
    page.data_requested.emit()
    tab = stage.page("tokenizer").tab()
    until(lambda: tab.lengths.answer is not None)
    return stage.window


def my_data_rows(stage: Stage) -> Any:
    """The rows of a step of the run."""
    page = stage.page("tokenizer")
    page.show_step(str(stage.run), 12)
    until(lambda: page.tab().rows.feature_card.feature is not None)
    return stage.window


def tokenizer_train(stage: Stage) -> Any:
    """A new tokenizer that was trained on the demo's data."""
    page = stage.page("tokenizer")
    page.show_tab(4)
    tab = page.tab()
    tab.show_way(0)
    until(lambda: tab.training.form is not None)
    tab.texts.take(DEMO_DATA)
    until(lambda: not tab.training.reason())
    tab.training.make()
    until(lambda: not tab.training.foot.pages.works)
    return stage.window


def tokenizer_extend(stage: Stage) -> Any:
    """Tokens that would be added."""
    page = stage.page("tokenizer")
    page.show_tab(4)
    tab = page.tab()
    tab.show_way(1)
    tab.extending.ordinary.setPlainText("photosynthesis\nsodium chloride")
    until(lambda: not tab.extending.lacking())
    return stage.window


# The rest


def settings(stage: Stage) -> Any:
    """The Settings page."""
    page = stage.page("settings")
    until(page.machine.check_again.isEnabled)
    return stage.window


def palette(stage: Stage) -> Any:
    """The command palette, while something is looked for."""
    new_run(stage)
    stage.window.commands.show_palette()
    stage.window.commands.palette.field.setText("run")
    return stage.window


def devices(stage: Stage) -> Any:
    """The Hardware section with four devices."""
    new_run(stage)
    page = stage.page("new_run")
    page.apply_settings({"hardware.engine": "jax", "hardware.devices": [0, 1, 2, 3]})
    page.sections.open("hardware")
    until(lambda: len(page.sections.hardware.devices.boxes) == 4)
    until(lambda: page.checks.plan is not None and bool(page.checks.plan.placement))
    return stage.window


def devices_cost(stage: Stage) -> Any:
    """What each of them holds."""
    devices(stage)
    stage.window.resize(*HIGH)
    return stage.page("new_run").sections.side


SCENES: dict[str, Callable[[Stage], Any]] = {
    "new-run": new_run,
    "new-run-data": section("data"),
    "new-run-model": section("model"),
    "new-run-settings": section("settings"),
    "new-run-cost": start_bar,
    "data-report": data_report,
    "choose-model": choose_model,
    "run": run,
    "run-live": run_live,
    "run-samples": run_samples,
    "runs": runs,
    "compare": compare,
    "compare-differences": differences,
    "new-run-search": new_run_search,
    "search": search,
    "predictions": predictions,
    "predictions-wrong": predictions_wrong,
    "predictions-file": predictions_file,
    "export": export,
    "try": try_model,
    "tokenizer": tokenizer,
    "vocabulary": vocabulary,
    "tokenizer-compare": tokenizer_compare,
    "my-data-lengths": my_data_lengths,
    "my-data-rows": my_data_rows,
    "tokenizer-extend": tokenizer_extend,
    "tokenizer-train": tokenizer_train,
    "settings": settings,
    "palette": palette,
}
DEVICE_SCENES: dict[str, Callable[[Stage], Any]] = {"devices": devices, "devices-cost": devices_cost}
"""Drawn where JAX sees four devices."""
