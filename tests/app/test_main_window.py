"""The window: pages come when they are asked for, signals lead where they should, and it starts quickly."""

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QMessageBox, QScrollArea, QSplitter, QWidget
from shiboken6 import getCppPointer

from app import theme
from app.__main__ import _report_exception
from app.core import preferences
from app.core.runs.run_library import RunSummary
from app.main_window import CONNECTIONS, PAGES, RUNS, MainWindow
from app.widgets.question import Question
from backend.contract.processes import python_command
from backend.contract.run.folder import ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.lock import take_lock
from tests.app.gone import gone
from tests.app.helper_process import help_windows
from tests.app.pages.recorded_runs import copy_recorded

ROOT = Path(__file__).parents[2]


@pytest.fixture
def window(qtbot, styled, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))
    help_windows(monkeypatch)
    chosen = preferences.load(tmp_path / "preferences.json")
    chosen.set("runs_folder", str(tmp_path / "runs"))
    made = MainWindow(chosen)
    with qtbot.waitSignal(made.first_painted):
        made.show()
    yield made
    gone(made)


def opened(window: MainWindow, page: str) -> MainWindow:
    window.show_page(page)
    window.open_services()
    return window


def test_the_frame_is_there_before_any_page(window: MainWindow):
    assert window.pages.count() == 0
    assert [button.accessibleName() for button in window.sidebar.buttons()] == [title for title, _, _ in PAGES]


def test_the_page_that_was_asked_for_before_the_services_is_the_first(window: MainWindow):
    opened(window, "settings")
    assert window.pages.currentWidget() is window.panel("settings")
    assert window.panel("tokenizer") is None


class Restyling(QObject):
    """Counts how often each widget is given its style, which is most of what building a page costs."""

    def __init__(self) -> None:
        super().__init__()
        self.times: Counter[int] = Counter()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.StyleChange:
            self.times[getCppPointer(watched)[0]] += 1
        return False


@dataclass
class BuiltPage:
    """A page that came into a window of its own."""

    name: str
    window: MainWindow
    styled_per_widget: float


@pytest.fixture(scope="module", params=[module for _, _, module in PAGES])
def built(request: pytest.FixtureRequest, qapp: QApplication, tmp_path_factory) -> Iterator[BuiltPage]:
    """Each page in turn."""
    theme.apply(qapp, "light")
    home, name = tmp_path_factory.mktemp("page"), request.param
    chosen = preferences.load(home / "preferences.json")
    chosen.set("runs_folder", str(home / "runs"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURNISH_CONFIG", str(home / "config"))
        help_windows(patch)
        window = MainWindow(chosen)
        window.show()
        opened(window, "settings" if name != "settings" else "runs")
        counted = Restyling()
        qapp.installEventFilter(counted)
        page = window.show_page(name)
        qapp.removeEventFilter(counted)
        assert page is not None
        widgets = [page, *page.findChildren(QWidget)]
        times = sum(counted.times[getCppPointer(widget)[0]] for widget in widgets)
        yield BuiltPage(name, window, times / len(widgets))
        gone(window)


def test_widgets_of_a_page_are_built_where_they_belong_and_not_styled_at_every_move(built: BuiltPage):
    assert built.styled_per_widget < 4


def test_every_page_fits_the_smallest_window(qtbot, built: BuiltPage):
    window = built.window
    window.resize(1280, 800)
    QApplication.processEvents()
    window.resize(window.minimumSize())
    qtbot.waitUntil(lambda: window.minimumSizeHint().width() <= 800)  # the page adapts to its room
    assert window.minimumSizeHint().height() <= 600


def test_every_control_that_takes_the_focus_has_a_name(built: BuiltPage):
    panel = built.window.panel(built.name)
    assert panel is not None
    # A button that is not offered yet has no words; whatever is in view is looked at in test_every_page, too.
    shown = [
        one for one in panel.findChildren(QWidget) if one.isVisibleTo(panel) or not isinstance(one, QAbstractButton)
    ]
    controls = [one for one in shown if one.focusPolicy() & Qt.FocusPolicy.TabFocus]
    # The list that drops down from a box and the line inside of it are named by the box.
    own = [one for one in controls if one.window() is built.window and one.focusProxy() is None]
    assert [one.parent() for one in own if not isinstance(one, CONTAINERS) and not _spoken_name(one)] == []


def test_every_page_is_drawn_in_both_themes(built: BuiltPage, styled: QApplication):
    for choice in ("dark", "light"):
        theme.apply(styled, choice)
        assert not built.window.grab().isNull()
    assert built.window.panel(built.name) is built.window.pages.currentWidget()


def test_a_shortcut_shows_a_page(qtbot, window: MainWindow):
    opened(window, "settings")
    qtbot.waitUntil(lambda: window.activateWindow() or window.isActiveWindow())
    qtbot.keyClick(window, Qt.Key.Key_5, Qt.KeyboardModifier.ControlModifier)
    assert window.pages.currentWidget() is window.panel("tokenizer")
    assert window.sidebar.buttons()[4].isChecked()


def test_a_click_in_the_sidebar_shows_a_page(qtbot, window: MainWindow):
    opened(window, "settings")
    qtbot.mouseClick(window.sidebar.buttons()[3], Qt.MouseButton.LeftButton)
    assert window.pages.currentWidget() is window.panel("predictions")


def test_every_connection_has_its_slot():
    assert all(hasattr(MainWindow, slot) for _, _, slot in CONNECTIONS)
    assert {page for page, _, _ in CONNECTIONS} <= {name for _, _, name in PAGES}


def test_choosing_a_theme_changes_the_window_and_is_remembered(window: MainWindow):
    opened(window, "settings")
    panel = window.panel("settings")
    panel.appearance.themes.button(2).click()  # type: ignore[union-attr]
    assert theme.is_dark()
    assert preferences.load(window.preferences.path).theme == "dark"
    panel.appearance.themes.button(1).click()  # type: ignore[union-attr]
    assert not theme.is_dark()


def test_a_message_of_a_page_becomes_a_toast(window: MainWindow):
    opened(window, "settings")
    window.panel("settings").message.emit("success", "Copied.")  # type: ignore[union-attr]
    assert window.toasts.messages() == ["Copied."]


def test_what_no_page_expected_is_told_and_not_only_printed(window: MainWindow, capsys):
    error = OSError("No space left on device")
    _report_exception(window, OSError, error, None)
    assert "No space left on device" in window.toasts.messages()[0]
    assert "No space left on device" in capsys.readouterr().err


def test_a_started_run_is_shown_unless_the_user_has_gone_elsewhere(window: MainWindow, tmp_path: Path):
    opened(window, "new_run")
    runs = [copy_recorded(tmp_path / name) / "sentiment-finished" for name in ("first", "second")]
    window.panel("new_run").run_started.emit(str(runs[0]), True)  # type: ignore[union-attr]
    assert window.pages.currentWidget() is window.panel("run")
    window.show_page("predictions")
    window.panel("new_run").run_started.emit(str(runs[1]), True)  # type: ignore[union-attr]
    assert window.pages.currentWidget() is window.panel("predictions")
    assert window.toasts.messages() == ["Started sentiment-finished."]


def test_a_started_run_does_not_interrupt_who_works_on_the_next_draft(window: MainWindow, tmp_path: Path):
    opened(window, "new_run")
    run = copy_recorded(tmp_path / "run") / "sentiment-finished"
    window.panel("new_run").run_started.emit(str(run), False)  # type: ignore[union-attr]
    assert window.pages.currentWidget() is window.panel("new_run")
    assert window.toasts.messages() == ["Started sentiment-finished."]


@pytest.fixture
def training_run(tmp_path: Path) -> Iterator[RunFolder]:
    """A recorded run in the library whose process seems to live."""
    folder = RunFolder(copy_recorded(tmp_path / "runs") / "sentiment-lost")
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), os.getpid(), os.getpid(), time.time()))
    descriptor = take_lock(folder.lock)
    yield folder
    os.close(descriptor)


def test_the_run_page_opens_on_the_run_that_is_training(qtbot, window: MainWindow, training_run: RunFolder):
    opened(window, "new_run")
    qtbot.waitUntil(lambda: window.context.library.newest_alive() is not None, timeout=60_000)
    assert window.show_page("run").path == training_run.path


def test_a_window_that_opens_while_a_run_trains_shows_it(qtbot, window: MainWindow, training_run: RunFolder):
    opened(window, "new_run").open_running_run()
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.panel("run"), timeout=60_000)
    assert window.panel("run").path == training_run.path  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "touch", [lambda window: window.show_page("settings"), lambda window: window.sidebar.buttons()[0].setFocus()]
)
def test_a_window_in_which_somebody_has_begun_shows_no_run_by_itself(
    qtbot, window: MainWindow, training_run: RunFolder, touch
):
    opened(window, "new_run").open_running_run()
    with qtbot.waitSignal(window.context.library_watcher.first_read, timeout=60_000):
        touch(window)
    assert window.panel("run") is None


def test_asking_for_runs_from_the_empty_predictions_leads_there(window: MainWindow):
    opened(window, "predictions")
    window.panel("predictions").browser.empty.action_clicked.emit()  # type: ignore[union-attr]
    assert window.pages.currentWidget() is window.panel("runs")


def test_duplicating_a_run_without_a_spec_says_so(window: MainWindow, tmp_path: Path):
    opened(window, "settings")
    window._on_duplicate_requested(str(tmp_path))
    assert "no such spec file" in window.toasts.messages()[0]


def test_geometry_is_remembered(qtbot, styled, window: MainWindow):
    window.resize(800, 700)  # the offscreen screen is small, and a restored window must fit it
    window.close()
    again = MainWindow(window.preferences)
    qtbot.addWidget(again)
    assert (again.width(), again.height()) == (800, 700)


def test_closing_while_a_model_is_downloaded_asks(window: MainWindow, monkeypatch: pytest.MonkeyPatch):
    opened(window, "new_run")
    said: list[str] = []
    answers = iter([QMessageBox.StandardButton.Cancel, QMessageBox.StandardButton.Close])
    monkeypatch.setattr(Question, "exec", lambda question: said.append(question.text()) or next(answers))
    monkeypatch.setattr(window.panel("new_run"), "unfinished", lambda: "team/x is still being downloaded.")
    assert not window.close()
    assert window.isVisible()
    assert window.close()
    assert said == ["team/x is still being downloaded."] * 2


def test_closing_while_a_run_is_being_started_asks(window: MainWindow, monkeypatch: pytest.MonkeyPatch):
    opened(window, "new_run")
    said: list[str] = []
    monkeypatch.setattr(Question, "exec", lambda question: said.append(question.text()))
    monkeypatch.setattr(window.context.jobs, "unfinished", lambda: "“x” is just being started.")
    assert not window.close()
    assert said == ["“x” is just being started."]
    monkeypatch.undo()


def test_half_a_screen_leaves_a_page_as_much_room_as_before(window: MainWindow):
    window.resize(960, 1040)
    QApplication.processEvents()
    assert window.pages.width() >= 760
    assert all(button.minimumSizeHint().width() <= button.width() for button in window.sidebar.buttons())
    window.resize(1280, 800)
    assert window.sidebar.width() == 212


def test_the_smallest_window_shows_icons_beside_its_page(window: MainWindow):
    window.resize(window.minimumSize())
    QApplication.processEvents()
    assert (window.width(), window.height()) == (800, 600)
    assert window.pages.width() == 740
    buttons = window.sidebar.buttons()
    assert not any(button.text() for button in buttons)
    assert all(title in button.toolTip() for button, (title, _, _) in zip(buttons, PAGES, strict=True))
    window.resize(1280, 800)
    assert [button.text() for button in buttons] == [title for title, _, _ in PAGES]


def test_the_draft_is_there_again_after_a_restart(qtbot, window: MainWindow):
    page = opened(window, "new_run").panel("new_run")
    qtbot.waitUntil(lambda: page.catalog is not None)
    opened(window, "settings")
    page.controller.change("training.epochs", 7)
    page.controller.rename("kept")
    window.panel("settings").restart_wanted.emit()
    assert (window.opens_again, window.isVisible()) == (True, False)
    again = MainWindow(window.preferences)
    qtbot.addWidget(again)
    page = opened(again, "new_run").panel("new_run")
    qtbot.waitUntil(lambda: page.catalog is not None)
    assert (page.draft.get("training.epochs"), page.sections.task.name.text()) == (7, "kept")
    assert page.controller.history.undo_words == ""
    again.close()


def test_a_screen_reader_hears_the_pages(window: MainWindow):
    spoken = QAccessible.queryAccessibleInterface(window.sidebar.buttons()[0])
    assert spoken.text(QAccessible.Text.Name) == "New run"


def test_a_drop_down_is_named_by_its_caption(window: MainWindow):
    """By name and by relation: on Linux a screen reader takes the choice for the name and asks for the label."""
    opened(window, "new_run")
    sections = window.panel("new_run").sections  # type: ignore[union-attr]
    boxes = (
        sections.task.presets,
        sections.hardware.precision,
        sections.settings.best,
        sections.data.validation_kind,
    )
    assert [box.accessibleName() for box in boxes] == ["Preset", "Precision", "Best checkpoint by", "Validation"]
    buddies = [caption.buddy() for caption in sections.findChildren(QLabel)]
    assert all(box in buddies for box in (*boxes, sections.model.name))


CONTAINERS = (QScrollArea, QSplitter, QLabel)


def _spoken_name(control: QWidget) -> str:
    return QAccessible.queryAccessibleInterface(control).text(QAccessible.Text.Name)


def test_the_process_reports_its_first_paint():
    command = python_command("app", "--report-first-paint")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    # The benchmark holds the limit of 0.6 s; here other tests may be running beside.
    assert 0.02 < report["first_paint_seconds"] < 5
    assert 20 < report["rss_mb"] < 250


@pytest.fixture
def told(window: MainWindow, monkeypatch) -> list[tuple[str, str]]:
    """What was said in the window and by a desktop that shows messages."""
    said: list[tuple[str, str]] = []
    monkeypatch.setattr(window.toasts, "show_message", lambda kind, text: said.append((kind, text)))
    monkeypatch.setattr(window, "_notify_desktop", lambda text, is_error: said.append(("desktop", text)))
    return said


def ends(window: MainWindow, state: str) -> None:
    """Let the list of runs say that one was alive, and then that it is over."""
    for now in ("running", state):
        run = RunSummary(name="reviews", path=Path("/runs/reviews"), state=now, title="reviews", step=7, seconds=8.0)
        window.context.library.runs = [run]
        window._on_runs_changed()


@pytest.mark.parametrize("in_front", [True, False])
def test_an_ended_run_is_announced_by_toast_title_and_badge(window: MainWindow, told, monkeypatch, in_front: bool):
    opened(window, "settings")
    window.context.library_watcher.stop()
    monkeypatch.setattr(window, "isActiveWindow", lambda: in_front)
    ends(window, "finished")
    assert told == [("success", "reviews finished in 8 s.")] + [("desktop", "reviews finished in 8 s.")] * (
        not in_front
    )
    assert window.windowTitle() == "reviews finished – Burnish"
    assert window.sidebar.buttons()[RUNS].badge() == 1
    assert window.sidebar.buttons()[RUNS].accessibleName() == "Runs, 1 ended"
    window.show_page("runs")
    assert (window.windowTitle(), window.sidebar.buttons()[RUNS].badge()) == (
        ("Burnish", 0) if in_front else ("reviews finished – Burnish", 1)
    )


def test_the_desktop_is_silent_where_a_person_wants_it(window: MainWindow, told, monkeypatch):
    opened(window, "settings")
    window.context.library_watcher.stop()
    monkeypatch.setattr(window, "isActiveWindow", lambda: False)
    window.preferences.set("desktop_messages", False)
    ends(window, "failed")
    assert told == [("error", "reviews failed at step 7.")]


def test_the_badge_stands_beside_runs():
    assert PAGES[RUNS][0] == "Runs"
