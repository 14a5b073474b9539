"""What must hold of every control on every page: it has a name, Tab reaches it and shows where it is, the wheel spares it.

One window is built for all of these, with recorded runs and the small real helper of the panels' tests.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QScrollArea,
    QScrollBar,
    QSplitter,
    QTextEdit,
    QWidget,
)

from app import theme
from app.core import preferences
from app.main_window import PAGES, MainWindow
from app.widgets.accessibility import speak_roles
from tests.app.gone import gone
from tests.app.helper_process import help_windows
from tests.app.reading_order import wrong_turns

HERE = Path(__file__).parent
RUN = "sentiment-finished"
NOT_CONTROLS = (QSplitter, QLabel, QScrollBar)
PAGES = [name for _, _, name in PAGES]
SILENT = {QAccessible.Role.NoRole}
UNNAMED = {QAccessible.Role.NoRole, QAccessible.Role.Client, QAccessible.Role.Pane, QAccessible.Role.Window}
TOLD_BY_QT = (QLineEdit, QComboBox, QLabel, QAbstractButton, QTextEdit, QAbstractItemView)
"""Kinds whose role is right although they paint a part of themselves."""
MAX_TABS = 400


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        QApplication.processEvents()
        time.sleep(0.002)


@pytest.fixture(scope="module")
def window(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    home = tmp_path_factory.mktemp("every-page")
    shutil.copytree(HERE.parent / "data" / "recorded", home / "runs")
    theme.apply(qapp, "light")
    speak_roles()
    chosen = preferences.load(home / "preferences.json")
    chosen.set("runs_folder", str(home / "runs"))
    chosen.set("tour_seen", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURNISH_CONFIG", str(home / "config"))
        help_windows(patch)
        made = MainWindow(chosen)
        made.resize(1280, 800)
        made.show()
        made.open_services()
        fill(made)
        yield made
        gone(made)


@pytest.fixture(autouse=True)
def in_front(window: MainWindow) -> None:
    """The focus is only where the active window is.

    It is asked for until it comes: a window that a test of another file left may open or be deleted after it was
    asked for once, and then no window has the focus.
    """
    until(lambda: window.activateWindow() or window.isActiveWindow())


def fill(window: MainWindow) -> None:
    """Give every page something to show."""
    assert window.context is not None
    run = str(window.context.library.root / RUN)
    new_run = window.show_page("new_run")
    until(lambda: new_run.catalog is not None)  # type: ignore[union-attr]
    until(lambda: bool(window.context.library.runs))  # type: ignore[union-attr]
    for name in ("run", "predictions"):
        window.show_page(name).show_run(run)  # type: ignore[union-attr]
    tokenizer = window.show_page("tokenizer")
    for place in range(len(tokenizer.titles.buttons())):  # type: ignore[union-attr]
        tokenizer.show_tab(place)  # type: ignore[union-attr]
    tokenizer.show_tab(0)  # type: ignore[union-attr]
    window.show_page("runs")
    window.show_page("settings")


def sides(window: MainWindow, name: str) -> Iterator[tuple[str, QWidget]]:
    """The page, and where it has several sides each of them in view."""
    panel = window.show_page(name)
    assert panel is not None
    if name == "tokenizer":
        for place, button in enumerate(panel.titles.buttons()):  # type: ignore[attr-defined]
            panel.show_tab(place)  # type: ignore[attr-defined]
            QApplication.processEvents()
            yield f"{name}/{button.text()}", panel
    elif name == "predictions":
        for place in range(2):
            panel.show_tab(place)  # type: ignore[attr-defined]
            QApplication.processEvents()
            yield f"{name}/{place}", panel
    else:
        QApplication.processEvents()
        yield name, panel


def controls(panel: QWidget) -> list[QWidget]:
    """What takes the keyboard's focus by Tab and is in view."""
    return [
        one
        for one in panel.findChildren(QWidget)
        if one.focusPolicy() & Qt.FocusPolicy.TabFocus
        and one.isVisibleTo(panel)
        and one.isEnabled()
        and one.focusProxy() is None
        and one.window() is panel.window()
        and not isinstance(one, NOT_CONTROLS)
        and not (isinstance(one, QLineEdit) and isinstance(one.parent(), QComboBox | QAbstractSpinBox))
    ]


def said(widget: QWidget) -> str:
    """How a failing test names a control."""
    above = widget.parentWidget()
    text = widget.text() if isinstance(widget, QAbstractButton | QLineEdit) else ""
    return f"{type(widget).__name__} {widget.accessibleName() or text!r} in {type(above).__name__}"


@pytest.mark.parametrize("name", PAGES)
def test_every_control_has_a_name_and_a_role(window: MainWindow, name: str):
    silent = []
    for side, panel in sides(window, name):
        every = [*controls(panel), *(one for one in panel.findChildren(QAbstractButton) if one.isVisibleTo(panel))]
        for control in every:
            spoken = QAccessible.queryAccessibleInterface(control)
            if isinstance(control, QScrollArea):
                continue
            if not spoken.text(QAccessible.Text.Name).strip() or spoken.role() in SILENT:
                silent.append(f"{side}: {said(control)}")
    assert sorted(set(silent)) == []


@pytest.mark.parametrize("name", PAGES)
def test_what_paints_itself_is_told_as_what_it_is(window: MainWindow, name: str):
    silent, told = [], 0
    for side, panel in sides(window, name):
        for one in panel.findChildren(QWidget):
            is_ours = type(one).__module__.startswith("app.") and "paintEvent" in vars(type(one))
            if is_ours and one.isVisibleTo(panel) and not isinstance(one, TOLD_BY_QT):
                spoken = QAccessible.queryAccessibleInterface(one)
                told += 1
                if spoken.role() in UNNAMED or not spoken.text(QAccessible.Text.Name).strip():
                    silent.append(f"{side}: {said(one)} {spoken.role()}")
    assert sorted(set(silent)) == []
    assert told or name != "run"


@pytest.mark.parametrize("name", PAGES)
def test_tab_reaches_every_control_in_reading_order_and_is_caught_by_none(window: MainWindow, name: str):
    missed, trapped, turns = [], [], []
    for side, panel in sides(window, name):
        wanted = {one for one in controls(panel) if not _in_group_of_a_checked_one(one)}
        window.sidebar.buttons()[0].setFocus()
        reached, trap = walked(window)
        trapped += [f"{side}: {said(trap)}"] if trap else []
        missed += [f"{side}: {said(one)}" for one in wanted - set(reached)]
        stops = [one for one in reached if panel.isAncestorOf(one)]
        turns += [f"{side}: {said(before)} -> {said(after)}" for before, after in wrong_turns(stops)]
    assert (sorted(missed), trapped, turns) == ([], [], [])


def walked(window: QWidget) -> tuple[list[QWidget], QWidget | None]:
    """What Tab comes to, once around, and what it cannot leave."""
    reached, before = list[QWidget](), None
    for _ in range(MAX_TABS):
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        now = QApplication.focusWidget()
        if now is None or now is before:
            return reached, now
        if now in reached:
            break
        reached.append(now)
        before = now
    return reached, None


def dialogs(window: MainWindow) -> Iterator[tuple[str, QWidget]]:
    """Each in view, one after the other."""
    page: Any = window.show_page("new_run")
    page.fill_demo()
    until(lambda: page.checks.plan is not None)
    for name, show, found in (
        ("models", page.model_controller.open, lambda: page.model_controller.chooser),
        ("report", page.sections.data.report.click, lambda: page.report),
        ("unusable", page.data_controller.show_unusable, lambda: page.data_controller.unusable),
        ("row", lambda: page.data_controller.show_row(3), lambda: page.data_controller.row),
        ("presets", page.presets.open_dialog, lambda: page.presets.dialog),
        ("preset saving", page.presets.ask_save, lambda: page.presets.saving),
    ):
        show()
        dialog = found()
        yield name, dialog
        dialog.close()


def test_tab_follows_the_reading_order_in_dialogs(window: MainWindow):
    turns = list[str]()
    for name, dialog in dialogs(window):
        dialog.activateWindow()
        until(lambda dialog=dialog: QApplication.activeWindow() is dialog)
        stops = [one for one in walked(dialog)[0] if dialog.isAncestorOf(one)]
        first = stops.index(min(stops, key=lambda one: one.mapTo(dialog, one.rect().topLeft()).y())) if stops else 0
        stops = stops[first:] + stops[:first]  # a dialog begins where it is wanted
        turns += [] if stops else [f"{name}: Tab comes to nothing"]
        turns += [f"{name}: {said(before)} -> {said(after)}" for before, after in wrong_turns(stops)]
    assert not turns, "\n".join(turns)


def _in_group_of_a_checked_one(control: QWidget) -> bool:
    """Of buttons that exclude each other Tab reaches one, and arrows the others."""
    group = control.group() if isinstance(control, QAbstractButton) else None
    return group is not None and group.exclusive() and not control.isChecked()  # type: ignore[attr-defined]


@pytest.mark.parametrize("look", ["light", "dark"])
def test_the_focus_can_be_seen_in_both_themes(window: MainWindow, qapp: QApplication, look: str):
    theme.apply(qapp, look)
    unseen = []
    for name in PAGES:
        for side, panel in sides(window, name):
            kinds = {(type(one), one.property("role")): one for one in controls(panel)}
            for control in kinds.values():
                window.sidebar.buttons()[0].setFocus()
                before = control.grab().toImage()
                control.setFocus(Qt.FocusReason.TabFocusReason)
                if control.grab().toImage() == before:
                    unseen.append(f"{side}: {said(control)} {control.property('role')}")
    theme.apply(qapp, "light")
    assert unseen == []


@pytest.mark.parametrize("name", PAGES)
def test_the_wheel_changes_nothing_that_has_not_the_focus(window: MainWindow, name: str):
    changed = []
    window.sidebar.buttons()[0].setFocus()
    for side, panel in sides(window, name):
        for control in panel.findChildren(QWidget):
            if not isinstance(control, QComboBox | QAbstractSpinBox | QAbstractSlider) or isinstance(
                control, QScrollBar
            ):
                continue
            middle = QPointF(control.rect().center())
            turned = QWheelEvent(
                middle,
                QPointF(control.mapToGlobal(control.rect().center())),
                QPoint(),
                QPoint(0, -120),
                Qt.MouseButton.NoButton,
                Qt.KeyboardModifier.NoModifier,
                Qt.ScrollPhase.NoScrollPhase,
                False,
            )
            control.wheelEvent(turned)
            if turned.isAccepted():
                changed.append(f"{side}: {said(control)}")
    assert changed == []


def test_no_words_are_cut_off_at_the_largest_text_size(window: MainWindow, qapp: QApplication):
    theme.apply(qapp, "light", theme.TEXT_SIZES[-1])
    cut = []
    for name in PAGES:
        for side, panel in sides(window, name):
            for one in panel.findChildren(QAbstractButton):
                if one.isVisibleTo(panel) and len(one.text()) > 1 and one.width() < one.minimumSizeHint().width() - 1:
                    cut.append(f"{side}: {said(one)} {one.width()} < {one.minimumSizeHint().width()}")
            for one in panel.findChildren(QLabel):
                shown = type(one) is QLabel and one.isVisibleTo(panel) and one.text() and not one.wordWrap()
                if shown and one.width() < one.minimumSizeHint().width() - 1:
                    cut.append(f"{side}: label {one.text()!r} {one.width()} < {one.minimumSizeHint().width()}")
    theme.apply(qapp, "light", theme.USUAL_SIZE)
    assert not cut, "\n".join(cut)


def test_a_setting_of_a_new_run_is_found_by_its_title_from_any_page(window: MainWindow):
    window.show_page("runs")
    window.commands.show_palette()
    palette = window.commands.palette
    assert palette is not None
    palette.field.setText("weight decay")
    assert palette.visible_titles()[0] == "Weight decay"
    QTest.keyClick(palette.field, Qt.Key.Key_Return)
    assert window.pages.currentWidget() is window.panel("new_run")
    focused = QApplication.focusWidget()
    assert focused is not None
    assert focused.accessibleName() == "Weight decay"
