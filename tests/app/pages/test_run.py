"""The Run page with recorded runs."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, QTimer
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget

from app import theme
from app.core import setting_titles
from app.core.draft.draft_settings import Setting
from app.core.runs.run_library import RunLibrary
from app.core.runs.run_status import NO_CURVES
from app.pages.run.page import Page
from app.pages.run.plots import MetricPlots
from app.services import run_watcher
from app.services.context import AppContext
from app.services.job import NO_CONSENT
from app.widgets.plots.live_plot import LivePlot, SeriesStyle
from backend.contract.resources import resource
from backend.contract.rpc.machines import MachineList
from backend.contract.rpc.models import OnnxExport, ScoredModel
from backend.contract.rpc.protocol import Progress
from backend.contract.run import events
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.lock import take_lock
from backend.contract.run.notes import RunNotes, read_notes
from backend.helper.worker import QUERIES
from tests.app.gone import gone
from tests.app.pages.recorded_runs import copy_recorded


@pytest.fixture(scope="module")
def page(qapp: QApplication, services: AppContext) -> Iterator[Page]:
    """One page for all tests here, each of which shows it other runs."""
    theme.apply(qapp, "light")
    made = Page(services)
    made.show()
    yield made
    gone(made)


@pytest.fixture
def context(shared_context: AppContext) -> AppContext:
    """The services of all tests here, with the runs of this one."""
    return shared_context


@pytest.fixture
def panel(page: Page, context: AppContext) -> Page:
    page.resize(1068, 800)
    page.plot_options.axis.setCurrentText("Step")
    page.plot_options.smoothing.setCurrentText("Medium")
    return page


@pytest.fixture
def empty(qtbot, context: AppContext) -> Page:
    """A page that was shown no run."""
    made = Page(context)
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.fixture
def shown(qtbot, panel, runs):
    def show(name: str) -> Page:
        panel.show_run(str(runs / name))
        qtbot.waitUntil(lambda: panel.watcher.is_caught_up and panel.is_drawn)
        return panel

    return show


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded runs, which no test changes."""
    return copy_recorded(tmp_path_factory.mktemp("kept") / "runs")


@pytest.fixture
def read(qtbot, panel, kept):
    """Shows one of them; a run that the page shows already is not read anew."""

    def show(name: str) -> Page:
        panel.show_run(str(kept / name))
        qtbot.waitUntil(lambda: panel.watcher.is_caught_up and panel.is_drawn)
        return panel

    return show


@pytest.fixture
def alive(runs):
    """A recorded run that is carried again: its lock is held by this process."""
    folder = RunFolder(runs / "sentiment-lost")
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), os.getpid(), os.getpid(), time.time()))
    descriptor = take_lock(folder.lock)
    yield folder
    os.close(descriptor)


def test_without_a_run_the_page_says_what_to_do(empty):
    assert empty.empty.isVisible()
    assert empty.path is None


def test_an_empty_page_is_no_wider_than_a_small_window_and_offers_nothing(empty):
    assert empty.minimumSizeHint().width() < 800
    assert [action.title for action in empty.offered_actions() if action.is_possible()] == []


def test_a_finished_run_shows_its_numbers_and_whole_curves(read):
    panel = read("sentiment-finished")
    assert panel.controls.pill.text() == "Finished"
    assert panel.header.title.text() == "sentiment"
    assert panel.header.subtitle.text().startswith("bert-tiny on train.csv")
    assert len(panel.plots.loss.series["loss"]) == 1000
    assert len(panel.plots.metrics.series["accuracy"]) == 8
    assert panel.tiles.tiles["step"].value().replace("\u202f", "") == "1000"
    assert panel.progress.bar.fraction() == 1.0
    assert panel.progress.stage.text() == "Finished · saved model from step 1\u202f000 (best accuracy)"


def test_a_run_that_went_well_needs_no_way_out(read):
    panel = read("sentiment-finished")
    assert panel.fix_buttons.fix.isHidden()  # and not only the banner that holds them
    assert panel.fix_buttons.copy.isHidden()


def test_the_page_of_an_ended_run_wakes_once_a_second(qtbot, read):
    panel = read("sentiment-finished")
    qtbot.waitUntil(
        lambda: all(timer.interval() >= run_watcher.OVER_MS for timer in panel.findChildren(QTimer) if timer.isActive())
    )


def test_a_finished_run_offers_its_predictions_and_nothing_to_stop(qtbot, read):
    panel = read("sentiment-finished")
    assert not panel.requests.buttons["stop"].isVisible()
    assert not panel.controls.buttons["resume"].isVisible()
    with qtbot.waitSignal(panel.predictions_requested) as asked:
        panel.controls.buttons["predictions"].click()
    assert asked.args == [str(panel.path)]


def test_a_perplexity_does_not_share_its_axis_with_an_accuracy(qtbot, shown, runs: Path):
    folder = RunFolder(runs / "sentiment-finished")
    for line in (lines := folder.events.read_bytes().splitlines(keepends=True)):
        if b'"EvaluationFinished"' in line:
            lines[lines.index(line)] = line.replace(b'"metrics":{', b'"metrics":{"perplexity":21.5,')
    folder.events.write_bytes(b"".join(lines))
    panel = shown("sentiment-finished")
    plots, made = panel.plots, panel.plots.metric_plots
    plots.show_state(panel.watcher.state)
    assert plots.metric_plots is made  # and not built anew whenever the run goes on
    drawn = [[key for key in plot.series if "/" not in key] for plot in plots.metric_plots]
    assert len(drawn) == 2
    assert ["perplexity"] in drawn
    assert len(plots.metrics.series["perplexity"]) == len(plots.metric_plots[1].series["accuracy"]) == 8
    plots.show_page("Metrics")
    size = panel.size()
    panel.resize(size.width(), 1400)  # room for both, because a hidden plot draws nothing
    qtbot.waitUntil(lambda: plots.metrics._view.viewRange()[1][0] > 20)
    panel.resize(size)
    assert plots.metric_plots[1]._view.viewRange()[1][1] < 2


@pytest.fixture
def two_plots(qtbot, styled):
    """Two plots of metrics in a window, and their page."""
    plots = [LivePlot(title, [SeriesStyle("value", title, "line", "plot_1")]) for title in ("Accuracy", "Perplexity")]
    window = QWidget()
    qtbot.addWidget(window)
    page = MetricPlots(plots, ["Accuracy", "Perplexity"])
    page.setParent(window)
    page.resize(400, 2 * plots[0].minimumSizeHint().height() + 10)
    window.show()
    assert [plot.isVisible() for plot in plots] == [True, True]
    return plots, page


def test_metric_plots_that_have_no_room_above_each_other_are_shown_one_at_a_time(two_plots):
    plots, page = two_plots
    page.resize(400, page.minimumSizeHint().height())
    assert [plot.isVisible() for plot in plots] == [True, False]
    page.switch.findChildren(QPushButton)[1].click()
    assert [plot.isVisible() for plot in plots] == [False, True]


def test_metric_plots_look_again_whether_they_have_room_once_they_have_points(qtbot, two_plots):
    plots, _ = two_plots
    for plot in plots:
        plot.append("value", [1.0, 2.0], [0.5, 0.6])
    qtbot.waitUntil(lambda: not plots[1].isVisible())


def test_skipped_rows_and_warnings_ask_for_attention(read):
    panel = read("sentiment-finished")
    assert "train.csv:118" in panel.journal.attention.text()
    assert "new one was drawn" in panel.journal.attention.text()


def test_many_files_of_one_folder_are_named_by_it(runs, shown):
    folder = RunFolder(runs / "sentiment-finished")
    folder.spec.write_text(folder.spec.read_text().replace("train: train.csv", "train: /data/corpus"))
    folder.events.write_bytes(folder.events.read_bytes().replace(b'["train.csv"]', b'["a.csv","b.csv","c.csv"]'))
    subtitle = shown("sentiment-finished").header.subtitle.text()
    assert subtitle.startswith("bert-tiny on corpus · folder with 3 files · ")


def test_a_finished_run_that_diverged_is_not_praised(diverged, shown):
    pill = shown(diverged.name).controls.pill
    assert (pill.text(), pill.kind()) == ("Finished", "warning")
    assert pill.toolTip().startswith("Training is diverging: the loss has risen from 1.1")
    assert pill.accessibleDescription() == pill.toolTip()


def test_a_finished_run_at_chance_offers_to_try_again(shown, context, runs: Path, monkeypatch):
    asked = []
    monkeypatch.setattr(context.jobs, "fix", lambda run, fix, *rest: asked.append(fix.changes))
    folder = RunFolder(runs / "sentiment-finished")
    lines = [json.loads(line) for line in folder.events.read_bytes().splitlines()]
    for line in lines:
        if line["event"] == "PlanMade":
            line["trivial"] = {"accuracy": 0.99}
        if line["event"] == "RunFinished":
            line["mend"] = {"changes": {"training.learning_rate": 4e-4}, "is_retry": True}
    folder.events.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    panel = shown("sentiment-finished")
    assert (panel.controls.pill.text(), panel.controls.pill.kind()) == ("Finished", "warning")
    assert "no better than without a model (0.9900)" in panel.banner.text()
    assert [one.text() for one in panel.findChildren(QLabel) if panel.banner.text() in one.text()] == [
        panel.banner.text()
    ], "it is said once"
    assert not any("(best)" in line for line in panel.journal.journal.text().splitlines())
    assert panel.fix_buttons.fix.text().startswith("Try again with ")
    panel.fix_buttons.fix.click()
    assert asked[0]["training.learning_rate"] == 4e-4


ROWS = Setting("hardware.micro_batch_size", "Micro-batch size", "")


def test_a_finished_run_without_its_events_is_finished_everywhere(qtbot, shown, runs: Path):
    folder = RunFolder(runs / "sentiment-finished")
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 1, 1.0))
    folder.model.mkdir(exist_ok=True)
    folder.predictions().touch()
    folder.predictions(suffix="parquet").touch()
    folder.events.unlink()
    panel = shown("sentiment-finished")
    assert panel.controls.pill.text() == "Finished"
    assert panel.plot_options.words.text() == NO_CURVES
    assert panel.controls.buttons["predictions"].isEnabled()
    assert panel.progress.bar.fraction() == 1.0
    [listed] = [run for run in RunLibrary(runs).refresh() if run.path == folder.path]
    assert (listed.state, listed.has_predictions) == ("finished", True)


def test_a_failed_run_says_why_and_what_helps(shown):
    setting_titles.learn_titles([ROWS])
    panel = shown("sentiment-failed")
    assert panel.controls.pill.text() == "Failed"
    assert "ran out of memory at step 313" in panel.banner.text()
    assert "Set “Micro-batch size” to 8" in panel.banner.text()
    assert panel.controls.buttons["resume"].isVisible()


def test_a_failed_run_offers_the_mended_one_by_a_click(qtbot, shown, context, monkeypatch):
    asked = []
    monkeypatch.setattr(context.jobs, "fix", lambda run, mend, *rest: asked.append((run, mend, *rest)))
    setting_titles.learn_titles([ROWS])
    context.library.refresh()
    panel = shown("sentiment-failed")
    button = panel.fix_buttons.fix
    assert button.text() == "Restart with Micro-batch size 8"
    assert "--set=hardware.micro_batch_size=8" in button.toolTip()
    looks = {one.text(): one.property("role") for one in (button, panel.controls.buttons["resume"])}
    assert looks == {button.text(): "primary", "Resume": ""}
    button.click()
    changes = {"hardware.micro_batch_size": 8, "name": "sentiment 2"}
    assert (asked[0][0], asked[0][1].changes) == (panel.path, changes)
    assert not button.isEnabled()
    asked[0][2](str(panel.path.with_name("sentiment-finished")))
    assert panel.path.name == "sentiment-finished"
    assert not button.isVisible()


def test_a_mended_run_that_is_refused_says_why_and_can_be_asked_again(qtbot, shown, context, monkeypatch):
    asked = []
    monkeypatch.setattr(context.jobs, "fix", lambda *given: asked.append(given))
    panel = shown("sentiment-failed")
    panel.fix_buttons.fix.click()
    with qtbot.waitSignal(panel.message) as said:
        asked[0][3]("task.max_length: too long")
    assert said.args[0] == "error"
    assert panel.fix_buttons.fix.isEnabled()


def test_a_low_window_scrolls_and_squeezes_no_plot(qtbot, read):
    panel = read("sentiment-failed")
    panel.resize(788, 640)
    qtbot.waitUntil(lambda: panel.plots.loss.height() >= 140)
    assert panel.plots.height() == panel.plots.minimumHeight()
    assert panel.journal.isVisible()


def test_the_report_on_a_failed_run_can_be_copied(qtbot, read):
    panel = read("sentiment-failed")
    with qtbot.waitSignal(panel.message):
        panel.fix_buttons.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert "code out_of_memory" in copied
    assert "learning_rate: 0.0003" in copied


def test_the_raw_log_is_there(qtbot, read):
    panel = read("sentiment-failed")
    assert "RuntimeError: out of memory" in panel.journal.process.text()


def test_a_failed_run_whose_process_wrote_nothing_shows_its_events(shown, runs):
    (runs / "sentiment-failed" / "process.log").write_bytes(b"")
    panel = shown("sentiment-failed")
    assert panel.journal.journal.isVisible()
    assert panel.journal.journal.line_count()


def test_process_log_of_a_failed_run_makes_way_for_the_events_of_the_next(read):
    panel = read("sentiment-failed")
    assert panel.journal.process.isVisible()
    panel.show_run(str(panel.path.parent / "sentiment-finished"))
    assert panel.journal.journal.isVisible()


def test_process_log_that_a_person_opened_stays_for_the_next_run(read):
    panel = read("sentiment-finished")
    panel.journal.show_page("Process log")
    for name in ("sentiment-failed", "sentiment-lost"):
        panel.show_run(str(panel.path.parent / name))
        assert panel.journal.process.isVisible()


def test_why_a_run_failed_and_what_helps_are_two_sentences(shown, runs):
    folder = RunFolder(runs / "sentiment-failed")
    *lines, last = folder.events.read_text(encoding="utf-8").splitlines()
    ended = {
        **json.loads(last),
        "message": "the disk is full; earlier checkpoints are untouched",
        "hint": "Free up some space",
    }
    folder.events.write_text("\n".join([*lines, json.dumps(ended), ""]), encoding="utf-8")
    panel = shown("sentiment-failed")
    assert panel.banner.text() == "The disk is full; earlier checkpoints are untouched.\nFree up some space."


def test_a_lost_run_can_be_resumed(read):
    panel = read("sentiment-lost")
    assert panel.controls.pill.text() == "Lost"
    assert panel.controls.buttons["resume"].isVisible()
    assert "Resume" in panel.banner.text()


def test_a_resumed_run_shows_one_curve_without_what_was_void(read):
    panel = read("sentiment-resumed")
    xs = panel.plots.loss.series["loss"].points.xs
    assert len(xs) == 742
    assert panel.plots.loss.marks.lines[0] == (500, "resumed", "muted")


def test_on_the_time_axis_a_gap_stands_where_the_run_was_down(qtbot, read):
    panel = read("sentiment-resumed")
    panel.plot_options.axis.setCurrentText("Time")
    qtbot.waitUntil(lambda: len(panel.plots.loss.series["loss"]) == 742 and panel.is_drawn)
    series = panel.plots.loss.series["loss"]
    place, words, _ = panel.plots.loss.marks.lines[0]
    assert words.startswith("down ")
    assert series.breaks == [place]
    xs = series.points.xs
    after = xs[list(xs).index(place) + 1]
    assert after - place >= panel.watcher.state.resumes[0].down_seconds


def test_all_curves_go_to_tensorboard_from_the_menu_of_a_plot(qtbot, read, context, monkeypatch, tmp_path: Path):
    panel = read("sentiment-resumed")
    menu = {action.text(): action for action in panel.plots.loss.saving.menu.actions()}
    menu["Export all curves for TensorBoard…"].trigger()
    assert panel.tensorboard.dialog.isVisible()
    answer = QUERIES["export_curves"].answer
    monkeypatch.setattr(context.client, "ask", lambda query, given, done, *_: done(answer(given, lambda _: None)))
    with qtbot.waitSignal(panel.message) as said:
        panel.tensorboard.dialog.fileSelected.emit(str(tmp_path / "board"))
    panel.tensorboard.dialog.close()
    [written] = (tmp_path / "board" / "sentiment-resumed").iterdir()
    assert "tfevents" in written.name
    assert f"tensorboard --logdir {tmp_path / 'board'}" in said.args[1]


def test_an_event_that_voids_steps_cuts_the_curve_on_screen(qtbot, shown):
    panel = shown("sentiment-lost")
    assert len(panel.plots.loss.series["loss"]) == 430
    with (panel.path / "events.jsonl").open("ab") as file:
        file.write(events.encode(events.RunResumed(time=2e9, attempt=2, from_step=250)))
    qtbot.waitUntil(lambda: len(panel.plots.loss.series["loss"]) == 250)
    qtbot.waitUntil(lambda: list(panel.plots.metrics.series["accuracy"].points.xs) == [125, 250])


def test_one_axis_is_chosen_for_all_plots_and_remembered(qtbot, context, read):
    panel = read("sentiment-finished")
    plots = panel.plots
    qtbot.waitUntil(lambda: len(plots.other("Learning rate").series["learning_rate"]) == 1000)
    for axis, last in (("Epoch", 4.0), ("Tokens", None), ("Time", None), ("Step", 1000)):
        panel.plot_options.axis.setCurrentText(axis)
        qtbot.waitUntil(lambda: panel.is_drawn and len(panel.plots.loss.series["loss"]) == 1000)
        qtbot.waitUntil(lambda: len(panel.plots.metrics.series["accuracy"]) == 8)
        ends = [plot.series[key].points.xs[-1] for plot, key in curves(panel.plots)]
        assert ends == [ends[0]] * len(ends)
        assert last is None or ends[0] == pytest.approx(last)
        assert context.preferences.plot_axis == axis.lower()


def curves(plots):
    return [(plots.loss, "loss"), (plots.metrics, "accuracy"), (plots.other("Learning rate"), "learning_rate")]


def test_checkpoints_are_marked_below_the_curves(read):
    panel = read("sentiment-finished")
    assert panel.plots.loss.marks.ticks == sorted(panel.watcher.state.checkpoints)
    assert panel.plots.loss.marks.tick_word == "checkpoint"


def test_the_crosshair_of_one_plot_is_seen_in_the_other(qtbot, read):
    panel = read("sentiment-finished")
    qtbot.waitUntil(lambda: panel.plots.metrics._view.viewRange()[0][1] > 900)

    def is_followed() -> bool:  # the other plot may still be waiting for its turn to be shown
        panel.plots.loss.hovered.emit(500.0)
        return panel.plots.metrics.crosshair.readout.text().startswith("step 500")

    qtbot.waitUntil(is_followed)


def test_how_it_goes_is_said_in_words(read):
    panel = read("sentiment-finished")
    assert panel.plot_options.words.text().startswith("Evaluation loss")
    assert panel.plot_options.words.text().endswith(".")


def test_smoothing_is_chosen_for_all_plots(read, context):
    panel = read("sentiment-finished")
    panel.plot_options.smoothing.setCurrentText("None")
    assert panel.plots.loss.series["loss"].smoothing == 0
    assert panel.plots.other("Speed").series["tokens_per_second"].smoothing == 0
    assert context.preferences.plot_smoothing == "none"


def test_a_plot_is_saved_under_the_runs_name(qtbot, read, tmp_path: Path):
    panel = read("sentiment-finished")
    assert panel.plots.loss.saving.name == "sentiment-loss"
    assert panel.plots.other("Memory").saving.name == "sentiment-memory"
    with qtbot.waitSignal(panel.message) as told:
        panel.plots.loss.saving.save(tmp_path / "loss.csv")
    assert told.args == ["success", f"Saved {tmp_path / 'loss.csv'}."]
    lines = (tmp_path / "loss.csv").read_text().splitlines()
    assert lines[0] == "step,training,evaluation"
    assert len(lines) == 1001


def test_a_value_of_another_step_than_the_crosshairs_says_so(read):
    panel = read("sentiment-finished")
    panel.plots.loss.redraw()
    panel.plots.loss.show_hover(190.3)
    assert panel.plots.loss.crosshair.readout.text().startswith("step 190 · ")
    assert " at step " in panel.plots.loss.crosshair.readout.text()


def test_a_run_of_an_older_version_opens(read):
    panel = read("old-run")
    assert panel.controls.pill.text() == "Finished"
    assert len(panel.plots.loss.series["loss"]) == 60
    assert panel.watcher.state.contract_version == "0.9"
    assert len(panel.plots.other("Gradients").series["gradient_norm"]) == 0


def test_another_run_replaces_everything(read):
    read("sentiment-finished")
    panel = read("old-run")
    assert len(panel.plots.loss.series["loss"]) == 60
    assert "Saved checkpoint at step" not in panel.journal.journal.text()


def places(panel: Page) -> dict[str, QRect]:
    """Where each visible button of the head and of the progress stands."""
    QApplication.processEvents()
    buttons = {**panel.controls.buttons, "more": panel.controls.more, **panel.requests.buttons}
    return {
        key: QRect(button.mapTo(panel, QPoint(0, 0)), button.size())
        for key, button in buttons.items()
        if button.isVisible()
    }


@pytest.mark.parametrize("width", [1068, 748])
def test_no_button_moves_when_the_state_changes(qtbot, shown, alive, width: int):
    panel = shown("sentiment-lost")
    panel.resize(width, 800)
    # In a narrow page this button has no words, which the page finds out while it is laid out.
    button = panel.requests.buttons["checkpoint"]
    qtbot.waitUntil(lambda: button.width() == max(button.sizeHint().width(), button.minimumWidth()))
    training = places(panel)
    panel.requests.buttons["stop"].click()
    asked = places(panel)
    alive.write_exit_record(ExitRecord(alive.process_record().attempt, 0, time.time(), state="stopped"))
    panel.watcher.refresh_now()
    qtbot.waitUntil(lambda: panel.controls.buttons["resume"].isVisible())
    ended = places(panel)
    assert panel.requests.isHidden()
    panel.controls.buttons["resume"].setText("Resuming…")
    for one, other in ((training, asked), (training, ended), (ended, places(panel))):
        assert one.keys() & other.keys() >= {"try", "predictions", "export", "more"}
        assert {key: one[key] for key in one.keys() & other.keys()} == {
            key: other[key] for key in one.keys() & other.keys()
        }
    assert not any(ended[key].intersects(training[other]) for key in ended for other in training if key != other)


def test_a_finished_run_leads_to_its_model(qtbot, read):
    panel = read("sentiment-finished")
    with qtbot.waitSignal(panel.try_requested) as asked:
        panel.controls.buttons["try"].click()
    assert asked.args == [str(panel.path)]
    assert panel.controls.buttons["export"].isEnabled()


def test_the_model_is_exported_to_a_new_folder_and_a_refusal_stands_in_the_dialog(
    qtbot, shown, runs: Path, tmp_path: Path
):
    panel = shown("sentiment-finished")
    model = RunFolder(runs / "sentiment-finished").model
    shutil.copytree(resource("demo", "bert-tiny"), model)
    panel.controls.buttons["export"].click()
    dialog = panel.exporting.dialog
    dialog.folder.setText(str(model))
    dialog.save.click()
    qtbot.waitUntil(lambda: "not empty" in dialog.mistake.text(), timeout=30_000)
    dialog.float16.setChecked(True)
    dialog.folder.setText(str(tmp_path / "exported"))
    with qtbot.waitSignal(panel.wrote, timeout=30_000):
        dialog.save.click()
    assert panel.exporting.dialog is None
    assert json.loads((tmp_path / "exported" / "config.json").read_text(encoding="utf-8"))["dtype"] == "float16"


def test_an_exported_onnx_file_stands_beside_its_proof(qtbot, shown):
    panel = shown("sentiment-finished")
    panel.controls.buttons["export"].click()
    dialog = panel.exporting.dialog
    dialog.onnx.setChecked(True)
    assert dialog.int8.isVisibleTo(dialog)
    dialog.int8.setChecked(True)
    dialog.export_requested.disconnect()
    with qtbot.waitSignal(dialog.export_requested) as asked:
        dialog.save.click()
    query, arguments = asked.args
    assert (query, arguments["int8"]) == ("export_onnx", True)
    own, onnx, rounded = (
        ScoredModel(
            file=file, megabytes=size, rows_per_second=2000, metrics={"accuracy": accuracy},
            intervals={"accuracy": (accuracy - 0.02, accuracy + 0.02)}, changed=changed, largest_difference=0.0, refused=refused,
        )
        for file, size, accuracy, changed, refused in (
            ("", 17.5, 0.885, 0.0, ""), ("model.onnx", 17.9, 0.885, 0.0, ""), ("model_int8.onnx", 4.7, 0.6, 0.3, "accuracy falls"),
        )
    )  # fmt: skip
    with qtbot.waitSignal(panel.wrote):
        panel.exporting._on_written(
            OnnxExport(folder="/there", rows=600, metric="accuracy", models=[own, onnx, rounded])
        )
    words = [one.text() for one in dialog.findChildren(QLabel)]
    first = words.index("model.onnx")
    assert words[first : first + 5] == ["model.onnx", "18 MB", "2\u202f000", "0.8850 (0.865 to 0.905)", "0.0%"]
    assert {"How the files answer the 600 validation rows", "Not kept: accuracy falls"} <= set(words)
    assert (dialog.save.isVisible(), dialog.cancel.text()) == (False, "Close")
    dialog.cancel.click()
    assert panel.exporting.dialog is None


@pytest.mark.parametrize("kind", ["stop", "pause", "checkpoint"])
def test_a_living_run_can_be_asked(qtbot, shown, alive, kind: str):
    panel = shown("sentiment-lost")
    assert panel.controls.pill.text() == "Training"
    panel.requests.buttons[kind].click()
    assert (alive.path / kind).exists()
    assert not panel.requests.buttons[kind].isEnabled()


def test_a_checkpoint_may_be_asked_for_again_after_the_answer(qtbot, shown, alive):
    panel = shown("sentiment-lost")
    panel.requests.buttons["checkpoint"].click()
    alive.clear_request("checkpoint")  # gone before the window has read the answer
    panel._show_state()
    with qtbot.waitSignal(panel.message) as said, alive.events.open("ab") as file:
        file.write(events.encode(events.CheckpointSaved(time=2e9, step=430, folder="checkpoints/step-000430")))
        file.write(events.encode(events.RequestAnswered(time=2e9, request="checkpoint", step=430)))
        file.flush()
    assert said.args == ["success", "Saved a checkpoint at step 430."]
    qtbot.waitUntil(panel.requests.buttons["checkpoint"].isEnabled)


@pytest.mark.parametrize("is_visible", [True, False])
def test_a_folder_that_is_deleted_is_said_once(qtbot, shown, is_visible: bool):
    panel = shown("sentiment-lost")
    panel.setVisible(is_visible)
    said: list[str] = []
    connection = panel.message.connect(lambda _, text: said.append(text))
    shutil.rmtree(panel.path)
    qtbot.waitUntil(lambda: panel.controls.pill.text() == "Deleted")
    panel.message.disconnect(connection)
    panel.show()  # for the tests after this one
    assert "Run folder not found" in panel.banner.text()
    assert len(said) == (0 if is_visible else 1)


def test_a_deleted_run_that_was_training_promises_no_time_left(qtbot, shown, alive):
    panel = shown("sentiment-lost")
    assert "Time left" in panel.tiles.tiles["eta"].accessibleName()
    shutil.rmtree(panel.path)
    qtbot.waitUntil(lambda: panel.controls.pill.text() == "Deleted")
    assert "Duration" in panel.tiles.tiles["eta"].accessibleName()
    assert panel.progress.stage.text().startswith("Lost at step")
    assert "left" not in panel.plot_options.words.text()


def test_nothing_can_be_asked_of_a_deleted_folder_when_more_is_drawn(qtbot, shown):
    panel = shown("sentiment-lost")
    shutil.rmtree(panel.path)
    qtbot.waitUntil(lambda: panel.controls.pill.text() == "Deleted")
    panel._show_state()
    buttons = {**panel.controls.buttons, **panel.requests.buttons}
    assert not any(button.isVisible() and button.isEnabled() for button in buttons.values())


def test_a_folder_that_came_back_is_shown_again(qtbot, shown, runs: Path):
    panel = shown("sentiment-lost")
    (runs / "sentiment-lost").rename(runs / "aside")
    qtbot.waitUntil(lambda: panel.controls.pill.text() == "Deleted")
    (runs / "aside").rename(runs / "sentiment-lost")
    panel.show_run(str(runs / "sentiment-lost"))
    qtbot.waitUntil(lambda: panel.controls.pill.text() == "Lost")
    assert panel.controls.buttons["resume"].isVisible()


class PendingResume:
    """Keeps what is to be called when a resume is answered."""

    on_progress: Callable[[Progress], None]

    def resume(self, run, on_started, on_error, engine="", *, machine="", consent=NO_CONSENT, on_progress=print):
        self.on_started, self.on_error, self.on_progress = on_started, on_error, on_progress
        self.machine, self.consent, self.is_cancelled = machine, consent, False
        return self.cancel

    def cancel(self) -> None:
        self.is_cancelled = True


def test_a_resume_that_ends_in_the_same_way_may_be_tried_again(context, shown, monkeypatch):
    panel, pending = shown("sentiment-failed"), PendingResume()
    monkeypatch.setattr(context.jobs, "resume", pending.resume)
    panel.controls.buttons["resume"].click()
    assert panel.controls.buttons["resume"].text() == "Resuming…"
    pending.on_started(str(panel.path))
    assert panel.controls.buttons["resume"].isEnabled()


def test_a_run_continues_on_another_machine_and_the_move_can_be_cancelled(context, shown, monkeypatch):
    panel, pending = shown("sentiment-failed"), PendingResume()
    monkeypatch.setattr(context.jobs, "resume", pending.resume)
    panel.moves._on_machines(MachineList({"lab": {}}))
    assert [action.text() for action in panel.controls.places.values()] == ["Resume on lab"]
    panel.controls.places["lab"].trigger()
    assert pending.machine == "lab"
    pending.on_progress(Progress(120e6, 300e6, "bytes", part="send"))
    assert panel.banner.text() == "Sending data: 120 of 300 MB"
    resume = panel.controls.buttons["resume"]
    assert (resume.text(), resume.isEnabled()) == ("Cancel", True)
    resume.click()
    assert pending.is_cancelled
    assert not resume.isEnabled()
    pending.on_error("")
    assert (resume.text(), resume.isEnabled()) == ("Resume", True)
    assert panel.banner.text() != "Sending data: 120 of 300 MB"


def test_a_run_elsewhere_comes_back_to_this_computer(context, shown, monkeypatch, runs: Path):
    (runs / "sentiment-failed" / "remote.json").write_text('{"machine": "lab", "run": "/far/run"}')
    panel, pending = shown("sentiment-failed"), PendingResume()
    monkeypatch.setattr(context.jobs, "resume", pending.resume)
    panel.moves._on_machines(MachineList({"lab": {}, "cluster": {}}))
    assert [action.text() for action in panel.controls.places.values()] == [
        "Resume on this computer",
        "Resume on cluster",
    ]
    panel.controls.places["local"].trigger()
    assert pending.machine == "local"
    pending.on_progress(Progress(120e6, 0, "bytes", part="fetch"))
    assert panel.banner.text() == "Copying from lab: 120 MB"
    (runs / "sentiment-failed" / "remote.json").unlink()
    pending.on_progress(Progress(0, 0, "", part="start"))
    assert panel.banner.text() == "Starting…"
    resume = panel.controls.buttons["resume"]
    assert (resume.text(), resume.isEnabled()) == ("Resuming…", False)
    resume.click()
    assert not pending.is_cancelled  # it would run there with nobody to follow it


def test_a_move_that_was_cancelled_halfway_says_where_the_run_is(qtbot, context, shown, monkeypatch, runs: Path):
    remote = runs / "sentiment-failed" / "remote.json"
    remote.write_text('{"machine": "lab", "run": "/far/run"}')
    panel, pending = shown("sentiment-failed"), PendingResume()
    monkeypatch.setattr(context.jobs, "resume", pending.resume)
    panel.moves._on_machines(MachineList({"lab": {}, "cluster": {}}))
    for is_brought, sentence in ((False, "Cancelled. The run stays where it was."), (True, "Cancelled. The run is on this computer now.")):  # fmt: skip
        panel.controls.places["cluster"].trigger()
        panel.controls.buttons["resume"].click()
        if is_brought:
            remote.unlink()
        with qtbot.waitSignal(panel.message) as said:
            pending.on_error("")
        assert said.args == ["info", sentence]


def test_a_refused_resume_of_another_run_leaves_this_one_alone(qtbot, context, shown, monkeypatch):
    panel, pending = shown("sentiment-failed"), PendingResume()
    monkeypatch.setattr(context.jobs, "resume", pending.resume)
    panel.controls.buttons["resume"].click()
    refuse = pending.on_error
    shown("sentiment-lost").controls.buttons["resume"].click()
    with qtbot.waitSignal(panel.message) as told:
        refuse("/a/spec.yaml: data.x was changed; start a new run: burnish train /a/spec.yaml")
    assert told.args == ["error", "/a/spec.yaml: data.x was changed; start a new run with “Duplicate”"]
    assert not panel.controls.buttons["resume"].isEnabled()


def test_two_pages_show_the_same_run(qtbot, context, shown, runs: Path):
    panel = shown("sentiment-finished")
    other = Page(context)
    qtbot.addWidget(other)
    other.show_run(str(runs / "sentiment-finished"))
    qtbot.waitUntil(lambda: len(other.plots.loss.series["loss"]) == 1000)
    assert len(panel.plots.loss.series["loss"]) == 1000


def test_a_picked_step_leads_to_its_rows_until_another_run_is_shown(qtbot, read):
    panel = read("sentiment-finished")
    assert panel.pick.isHidden()
    panel.plots.loss.picked.emit(12.0)
    assert panel.pick.text() == "Show rows of step 12"
    with qtbot.waitSignal(panel.rows_requested) as asked:
        panel.pick.click()
    assert asked.args == [str(panel.path), 12]
    read("sentiment-resumed")
    assert panel.pick.isHidden()


def test_a_note_and_tags_are_written_beside_the_curves_and_are_known_to_the_list(shown, context, runs: Path):
    context.library.refresh()
    panel = shown("sentiment-finished")
    panel.notes.note.setText("twice the usual rate")
    panel.notes.tags.setText("paper")
    panel.notes.tags.editingFinished.emit()
    written = RunNotes("twice the usual rate", ("paper",))
    assert read_notes(RunFolder(runs / "sentiment-finished")) == written
    assert context.library.find(panel.path).notes == written


def test_what_was_noted_elsewhere_is_shown_and_goes_with_its_run(shown, context, runs: Path):
    context.library.refresh()
    panel = shown("sentiment-finished")
    context.library_watcher.annotate(panel.path, RunNotes("from the list", ("paper",)))
    assert (panel.notes.note.text(), panel.notes.tags.text()) == ("from the list", "paper")
    shown("sentiment-lost")
    assert panel.notes.note.text() == ""


def test_only_a_run_of_the_list_offers_a_note(shown, context):
    context.library.refresh()
    panel = shown("sentiment-finished")
    chip = next(one for one in panel.journal.findChildren(QPushButton) if one.text() == "Notes")
    chip.click()
    assert panel.notes.note.isVisible()
    context.library.runs = []
    context.library_watcher.changed.emit()
    assert not chip.isVisible()
    assert panel.journal.journal.isVisible()


def test_the_folder_of_the_run_is_opened(shown, monkeypatch, runs: Path):
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()) or True)
    panel = shown("sentiment-finished")
    (action,) = [one for one in panel.offered_actions() if one.title == "Open run folder"]
    assert action.is_possible()
    action.do()
    assert opened == [str(runs / "sentiment-finished")]


def test_a_system_without_a_file_manager_is_told_the_folder(qtbot, shown, monkeypatch, runs: Path):
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda _: False)
    panel = shown("sentiment-finished")
    with qtbot.waitSignal(panel.message) as said:
        panel.controls.actions_by_key["folder"].trigger()
    assert said.args[1].endswith(f"The folder is {runs / 'sentiment-finished'}")
