"""The Runs page with recorded runs."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QCursor, QEnterEvent
from PySide6.QtWidgets import QApplication, QMessageBox, QStackedWidget, QWidget

from app.core.heading import GroupHeading
from app.core.runs.run_columns import COLUMNS
from app.core.runs.run_status import kind_of
from app.pages.runs.page import Page
from app.pages.runs.run_table import LEAST_FOR_NAME, NAMES, REST_MS, RunTableModel
from backend.contract.run.folder import ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.lock import take_lock
from backend.contract.run.notes import RunNotes, read_notes


@pytest.fixture
def panel(qtbot, context):
    context.library.refresh()
    made = Page(context)
    qtbot.addWidget(made)
    made.resize(1068, 800)
    made.show()
    return made


@pytest.fixture
def trash(tmp_path: Path, monkeypatch):
    """A trash of the test's own."""
    home = tmp_path / "home"
    home.mkdir()  # as on a new account, without the folder that the trash lies in
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "share"))


@pytest.fixture
def alive(runs):
    folder = RunFolder(runs / "sentiment-lost")
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), os.getpid(), os.getpid(), time.time()))
    descriptor = take_lock(folder.lock)
    yield folder
    os.close(descriptor)


def choose(panel: Page, name: str) -> None:
    run = next(run for run in panel.table.runs if run.name == name)
    panel.table.choose(run.path)


def test_every_run_is_listed_with_its_state(panel):
    states = {run.name: COLUMNS["state"].text(run) for run in panel.table.runs}
    assert states == {
        "old-run": "Finished",
        "sentiment-failed": "Failed",
        "sentiment-finished": "Finished",
        "sentiment-lost": "Lost",
        "sentiment-resumed": "Paused",
    }


def test_a_finished_run_shows_its_best_metric(panel):
    run = next(run for run in panel.table.runs if run.name == "sentiment-finished")
    assert COLUMNS["best"].text(run) == "Accuracy 0.8716"
    assert COLUMNS["data"].text(run) == "train.csv"


def test_lost_runs_are_counted_with_the_way_out(panel):
    assert "1 lost, can be resumed" in panel.header.subtitle.text()


def test_search_narrows_the_list(panel):
    panel.search.setText("sentiment paused")
    assert [run.name for run in panel.table.runs] == ["sentiment-resumed"]
    panel.search.clear()
    assert len(panel.table.runs) == 5


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("sentiment-finished", {"open", "predictions", "duplicate", "folder", "delete"}),
        ("sentiment-lost", {"open", "resume", "duplicate", "folder", "delete"}),
    ],
)
def test_only_what_is_possible_can_be_pressed(panel, name: str, usable: set[str]):
    choose(panel, name)
    assert {key for key, button in panel.buttons.items() if button.isEnabled()} == usable


def test_a_living_run_can_be_stopped_and_not_deleted(qtbot, panel, context, alive):
    context.library.refresh()
    panel._show_runs()
    choose(panel, "sentiment-lost")
    assert not panel.buttons["delete"].isEnabled()
    panel.buttons["stop"].click()
    assert (alive.path / "stop").exists()


def test_deleting_a_living_run_is_refused(qtbot, panel, alive):
    run = next(run for run in panel.table.runs if run.name == "sentiment-lost")
    with qtbot.waitSignal(panel.message) as said:
        panel.deletion.delete([run])
    assert said.args[0] == "error"
    assert "Stop it before you delete it" in said.args[1]
    assert alive.path.exists()


def test_a_run_is_resumed_once_however_often_the_list_changes(qtbot, panel, context, monkeypatch):
    asked = []
    monkeypatch.setattr(context.jobs, "resume", lambda *words: asked.append(words))
    choose(panel, "sentiment-lost")
    panel.buttons["resume"].click()
    panel._show_runs()
    assert not panel.buttons["resume"].isEnabled()
    with qtbot.waitSignal(panel.message):
        asked[0][2]("The disk is full.")
    assert panel.buttons["resume"].isEnabled()


def test_a_run_is_deleted_after_a_question_and_that_is_said_once(qtbot, panel, trash):
    choose(panel, "sentiment-failed")
    path = panel.table.chosen().path
    panel.buttons["delete"].click()
    question = panel.deletion.question
    assert path.exists()
    with qtbot.assertNotEmitted(panel.message):
        next(
            one for one in question.buttons() if question.buttonRole(one) == QMessageBox.ButtonRole.DestructiveRole
        ).click()
    assert panel.deletion.banner.text() == "Moved “sentiment” to the trash."
    assert not path.exists()
    qtbot.waitUntil(lambda: len(panel.table.runs) == 4)


def test_opening_duplicating_and_predictions_are_said_by_signals(qtbot, panel):
    choose(panel, "sentiment-finished")
    path = str(panel.table.chosen().path)
    for key, signal in {
        "open": panel.run_selected,
        "duplicate": panel.duplicate_requested,
        "predictions": panel.predictions_requested,
    }.items():
        with qtbot.waitSignal(signal) as said:
            panel.buttons[key].click()
        assert said.args == [path]


@pytest.mark.usefixtures("watched")
def test_the_chosen_run_stays_chosen_while_the_list_changes(qtbot, panel, runs: Path):
    choose(panel, "sentiment-lost")
    shutil.rmtree(runs / "sentiment-resumed")
    qtbot.waitUntil(lambda: len(panel.table.runs) == 4)
    assert panel.table.chosen().name == "sentiment-lost"
    assert panel.table.runs[panel.table.currentIndex().row()].name == "sentiment-lost"


@pytest.mark.usefixtures("watched")
def test_no_runs_offer_the_demo(qtbot, panel, runs: Path):
    for path in runs.iterdir():
        shutil.rmtree(path)
    qtbot.waitUntil(lambda: panel.empty.isVisible())
    assert not panel.search.isVisible()


def paths(panel: Page, *names: str) -> list[Path]:
    return [run.path for run in panel.table.runs if run.name in names]


def test_two_chosen_runs_are_compared_and_one_is_not(qtbot, panel):
    choose(panel, "sentiment-finished")
    assert not panel.buttons["compare"].isEnabled()
    panel.table.choose(*paths(panel, "sentiment-finished", "sentiment-failed"))
    panel.buttons["compare"].click()
    assert panel.compared.isVisible()
    panel.compared.back.click()
    assert panel.table.isVisible()
    assert len(panel.table.chosen_runs()) == 2


def test_a_click_on_a_header_sorts_and_a_second_one_turns_it_round(panel):
    header = panel.table.horizontalHeader()
    header.sectionClicked.emit(NAMES.index("steps"))
    steps = [run.step for run in panel.table.runs]
    assert steps == sorted(steps, reverse=True)
    header.sectionClicked.emit(NAMES.index("steps"))
    assert [run.step for run in panel.table.runs] == sorted(steps)


@pytest.fixture
def pointed(panel):
    """Moves the mouse over a run, and says where its line is."""

    def top() -> int:
        row = next(row for row, run in enumerate(panel.table.runs) if run.name == "sentiment-lost")
        return panel.table.rowViewportPosition(row)

    place = QPointF(40, top() + 10)
    QCursor.setPos(panel.table.viewport().mapToGlobal(place.toPoint()))
    QApplication.sendEvent(panel.table.viewport(), QEnterEvent(place, place, place))
    return top


def start_another(panel: Page, context, runs: Path, name: str) -> None:
    """A run that was started just now, which the list has at its top."""
    copied = shutil.copytree(runs / "sentiment-finished", runs / name)
    events = (copied / "events.jsonl").read_text(encoding="utf-8")
    (copied / "events.jsonl").write_text(events.replace('"time":1795', '"time":1895'), encoding="utf-8")
    context.library.refresh()
    context.library_watcher.changed.emit()


def lines_of(panel: Page) -> list[Any]:
    """The runs and their headings."""
    model = panel.table.model()
    assert isinstance(model, RunTableModel)
    return model.lines


def top_of(panel: Page, name: str) -> int:
    """Where the line of a run is."""
    row = next(row for row, line in enumerate(lines_of(panel)) if getattr(line, "name", "") == name)
    return panel.table.rowViewportPosition(row)


def scroll(panel: Page, pixels: int) -> None:
    panel.table.setFixedHeight(120)
    panel.table.verticalScrollBar().setValue(pixels)


def leave(panel: Page) -> None:
    """The mouse, wherever the test before has left it, is not over the list."""
    QApplication.sendEvent(panel.table.viewport(), QEvent(QEvent.Type.Leave))


def stays_without(panel: Page, context, place: int) -> None:
    """The run below a deleted one does not move."""
    table = panel.table
    below, before = table.runs[place + 1].name, table.rowViewportPosition(place + 1)
    shutil.rmtree(table.runs[place].path)
    context.library.refresh()
    context.library_watcher.changed.emit()
    assert top_of(panel, below) == before


def test_run_under_the_mouse_stays_there_when_another_one_starts(panel, context, runs, pointed):
    before = pointed()
    start_another(panel, context, runs, "new")
    assert pointed() == before
    assert len(panel.table.runs) == 5  # all fit, so nothing could be scrolled
    leave(panel)
    assert panel.table.runs[0].name == "new"


def test_list_is_scrolled_so_that_the_run_under_the_mouse_stays(panel, context, runs, pointed):
    panel.table.setFixedHeight(160)
    panel.table.verticalScrollBar().setValue(40)
    QCursor.setPos(panel.table.viewport().mapToGlobal(QPoint(40, pointed() + 10)))
    before = pointed()
    start_another(panel, context, runs, "new")
    assert panel.table.runs[0].name == "new"
    assert pointed() == before


def test_new_run_waits_only_until_a_key_is_pressed(qtbot, panel, context, runs, pointed):
    start_another(panel, context, runs, "new")
    assert len(panel.table.runs) == 5
    qtbot.keyClick(panel.table, Qt.Key.Key_Down)
    assert panel.table.runs[0].name == "new"


def test_new_run_is_listed_though_the_mouse_rests_on_the_list(qtbot, panel, context, runs, pointed):
    start_another(panel, context, runs, "new")
    assert len(panel.table.runs) == 5
    panel.table._rest.setInterval(REST_MS // 20)  # which runs already
    qtbot.waitUntil(lambda: panel.table.runs[0].name == "new", timeout=4 * REST_MS)


def test_scrolled_list_stays_when_its_top_run_is_deleted(panel, context, runs):
    scroll(panel, 80)
    leave(panel)
    stays_without(panel, context, 2)


def test_scrolled_list_stays_when_the_run_under_the_mouse_is_deleted(panel, context, runs, pointed):
    scroll(panel, 80)
    QCursor.setPos(panel.table.viewport().mapToGlobal(QPoint(40, panel.table.rowViewportPosition(3) + 10)))
    stays_without(panel, context, 3)


def test_scrolled_list_with_a_heading_on_top_stays_when_another_run_starts(panel, context, runs):
    panel.group.setCurrentIndex(panel.group.findData("state"))
    scroll(panel, 3 * 38 + 5)  # to the heading of the second group
    leave(panel)
    first = panel.table.rowAt(0)
    assert isinstance(lines_of(panel)[first], GroupHeading)
    below = lines_of(panel)[first + 1].name
    place = top_of(panel, below)
    start_another(panel, context, runs, "new")
    assert top_of(panel, below) == place


def test_what_a_person_does_to_the_list_never_waits_for_the_mouse(panel, context, runs, pointed):
    start_another(panel, context, runs, "new")
    assert len(panel.table.runs) == 5
    panel.table.horizontalHeader().sectionClicked.emit(NAMES.index("run"))
    titles = [run.title for run in panel.table.runs]
    assert len(titles) == 6
    assert titles == sorted(titles)
    panel.group.setCurrentIndex(panel.group.findData("state"))
    assert panel.table.model().index(0, 0).data() == "Finished  ·  3"


def test_choosing_the_page_again_leads_from_the_comparison_to_the_list(panel):
    panel.table.selectAll()
    panel.buttons["compare"].click()
    assert panel.compared.isVisible()
    panel.on_chosen_again()
    assert not panel.compared.isVisible()
    assert panel.table.isVisible()


def test_runs_are_gathered_in_groups_whose_headings_cannot_be_chosen(panel):
    panel.group.setCurrentIndex(panel.group.findData("state"))
    model = panel.table.model()
    first = model.index(0, 0)
    assert first.data() == "Finished  ·  2"
    assert not first.flags() & Qt.ItemFlag.ItemIsSelectable
    assert len(panel.table.runs) == 5


def test_a_note_and_tags_are_kept_and_found(qtbot, panel, runs):
    choose(panel, "sentiment-lost")
    panel.notes.note.setText("the laptop went to sleep")
    panel.notes.tags.setText("#laptop, again")
    panel.notes.tags.editingFinished.emit()
    assert read_notes(RunFolder(runs / "sentiment-lost")) == RunNotes("the laptop went to sleep", ("laptop", "again"))
    panel.search.setText("#laptop")
    assert [run.name for run in panel.table.runs] == ["sentiment-lost"]


def test_what_is_being_typed_stays_while_the_list_is_read_anew(panel, context):
    choose(panel, "sentiment-lost")
    panel.notes.note.setText("half a sen")
    context.library.refresh()
    panel._show_runs()
    assert panel.notes.note.text() == "half a sen"


def test_a_deleted_run_is_taken_out_of_the_trash_again(qtbot, panel, trash, runs):
    before = (runs / "sentiment-failed" / "events.jsonl").read_bytes()
    panel.deletion.delete([run for run in panel.table.runs if run.name == "sentiment-failed"])
    qtbot.waitUntil(lambda: len(panel.table.runs) == 4)
    panel.deletion.undo.click()
    assert (runs / "sentiment-failed" / "events.jsonl").read_bytes() == before
    qtbot.waitUntil(lambda: len(panel.table.runs) == 5)
    assert not panel.deletion.banner.isVisible()


def test_no_name_is_squeezed_in_the_smallest_window(panel):
    panel.resize(780, 640)
    table = panel.table
    shown = [column for column in NAMES if not table.isColumnHidden(NAMES.index(column))]
    assert table.columnWidth(0) >= LEAST_FOR_NAME - 20
    assert {"run", "state", "best", "started"} <= set(shown)
    assert sum(table.columnWidth(NAMES.index(column)) for column in shown) <= table.viewport().width()


@pytest.fixture
def faster(runs: Path) -> None:
    """One of the runs was started after the others, with another learning rate."""
    for file, before, after in (("spec.yaml", "3.0e-4", "5.0"), ("events.jsonl", "1795266600.0", "1795266700.0")):
        path = runs / "sentiment-lost" / file
        path.write_text(path.read_text().replace(before, after))


@pytest.mark.usefixtures("faster")
def test_a_run_says_what_sets_it_apart_from_the_one_of_its_name_before(qtbot, context):
    context.library.refresh()
    panel = Page(context)
    qtbot.addWidget(panel)
    model = panel.table.model()
    row = next(row for row, run in enumerate(panel.table.runs) if run.name == "sentiment-lost")
    told = model.data(model.index(row, NAMES.index("run")), Qt.ItemDataRole.ToolTipRole)
    assert "Differences from sentiment " in told
    assert told.endswith("Learning rate: 0.0003 → 5")


def test_a_finished_run_that_diverged_is_not_praised(diverged, panel):
    row = next(row for row, run in enumerate(panel.table.runs) if run.name == diverged.name)
    run = panel.table.runs[row]
    assert (COLUMNS["state"].text(run), kind_of(run.state, run.doubt)) == ("Finished", "warning")
    place = panel.table.model().index(row, NAMES.index("state"))
    for role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleDescriptionRole):
        assert place.data(role).startswith("Training is diverging: the loss has risen from 1.1")
    other = next(run for run in panel.table.runs if run.name == "sentiment-finished")
    assert (other.doubt, kind_of(other.state, other.doubt)) == ("", "success")


def test_behind_another_page_the_list_waits_until_it_is_shown(qtbot, context, runs):
    pages = QStackedWidget()
    qtbot.addWidget(pages)
    pages.addWidget(QWidget())
    context.library.refresh()
    panel = Page(context, pages)
    pages.addWidget(panel)
    pages.show()
    shutil.rmtree(runs / "old-run")
    context.library.refresh()
    context.library_watcher.changed.emit()
    assert "old-run" in [run.name for run in panel.table.runs]
    pages.setCurrentWidget(panel)
    assert "old-run" not in [run.name for run in panel.table.runs]
