"""The palette, the shortcuts and their sheet, all from one list of actions, on the real window."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app import theme
from app.core import preferences
from app.core.actions import Action, OffersActions
from app.core.page_actions import PAGE_ACTIONS
from app.main_window import PAGES, MainWindow
from app.widgets.commands import ShortcutSheet
from app.widgets.palette import Palette
from app.widgets.tour import TOUR
from tests.app.gone import gone
from tests.app.helper_process import help_windows

CONTROL = Qt.KeyboardModifier.ControlModifier


@contextmanager
def opened(home: Path) -> Iterator[MainWindow]:
    """A window with the list of runs, which is empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURNISH_CONFIG", str(home / "config"))
        help_windows(patch)
        chosen = preferences.load(home / "preferences.json")
        chosen.set("runs_folder", str(home / "runs"))
        made = MainWindow(chosen)
        made.show()
        made.show_page("runs")
        made.open_services()
        yield made
        gone(made)


def bring_to_front(qtbot, window: MainWindow) -> MainWindow:
    window.show_page("runs")
    qtbot.waitUntil(lambda: window.activateWindow() or window.isActiveWindow())
    return window


@pytest.fixture
def own_window(qtbot, styled, tmp_path: Path) -> Iterator[MainWindow]:
    """A window of the test's own, which it may change."""
    with opened(tmp_path) as made:
        yield bring_to_front(qtbot, made)


@pytest.fixture(scope="module")
def shared_window(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    """One window for the tests that leave it as it is."""
    theme.apply(qapp, "light")
    with opened(tmp_path_factory.mktemp("shared")) as made:
        yield made


@pytest.fixture
def window(qtbot, shared_window: MainWindow) -> Iterator[MainWindow]:
    """The same with the list of runs in view, and nothing above it."""
    yield bring_to_front(qtbot, shared_window)
    for curtain in (shared_window.commands.palette, shared_window.commands.sheet):
        if curtain is not None:
            curtain.close_curtain()


@pytest.fixture
def palette(qtbot, window: MainWindow) -> Palette:
    qtbot.keyClick(window, Qt.Key.Key_K, CONTROL)
    found = window.commands.palette
    assert found is not None
    return found


@pytest.fixture
def own_palette(qtbot, own_window: MainWindow) -> Palette:
    qtbot.keyClick(own_window, Qt.Key.Key_K, CONTROL)
    found = own_window.commands.palette
    assert found is not None
    return found


def sheet_of(window: MainWindow) -> ShortcutSheet:
    assert window.commands.sheet is not None
    return window.commands.sheet


def test_a_theme_chosen_in_the_palette_is_kept_and_shown_in_the_settings(
    qtbot, own_window: MainWindow, own_palette: Palette, styled: QApplication
):
    own_window.show_page("settings")
    own_palette.field.setText("dark theme")
    own_palette._take(own_palette.list.currentIndex())
    assert theme.is_dark()
    assert own_window.panel("settings").appearance.themes.checkedId() == 2  # type: ignore[union-attr]
    assert preferences.load(own_window.preferences.path).theme == "dark"
    own_window.appearance.choose_theme("light")


def test_typing_and_enter_do_what_is_on_top(qtbot, window: MainWindow, palette: Palette):
    qtbot.keyClicks(palette.field, "tokeni")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert window.pages.currentWidget() is window.panel("tokenizer")
    assert not palette.isVisible()


def test_arrows_go_round_the_list(qtbot, own_palette: Palette):
    own_palette.field.setText("theme")
    first = own_palette.list.currentIndex().row()
    qtbot.keyClick(own_palette.field, Qt.Key.Key_Up)
    last = own_palette.list.currentIndex()
    assert last.data() == "Use the system theme"  # below it are those that cannot be done now
    qtbot.keyClick(own_palette.field, Qt.Key.Key_Down)
    assert own_palette.list.currentIndex().row() == first
    assert "Theme" in own_palette.field.accessibleDescription()


def test_escape_and_the_shortcut_close_it_and_the_focus_returns(qtbot, window: MainWindow):
    before = window.sidebar.buttons()[3]
    before.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_K, CONTROL)
    palette = window.commands.palette
    assert palette is not None
    assert palette.field.hasFocus()
    qtbot.keyClick(palette.field, Qt.Key.Key_Escape)
    assert not palette.isVisible()
    assert before.hasFocus()
    for expected in (True, False):
        qtbot.keyClick(window, Qt.Key.Key_K, CONTROL)
        assert palette.isVisible() is expected


def test_tab_does_not_leave_it(qtbot, palette: Palette):
    qtbot.keyClick(palette.field, Qt.Key.Key_Tab)
    assert palette.field.hasFocus()


def test_what_cannot_be_done_now_is_not_done(qtbot, window: MainWindow, palette: Palette):
    palette.field.setText("Open selected run")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.isVisible()  # nothing is chosen, so nothing can be opened


def test_what_cannot_be_done_is_listed_last_with_the_reason(window: MainWindow, palette: Palette):
    palette.field.setText("run")
    model = palette.list.model()
    lines = [model.index(row, 0) for row in range(model.rowCount())]
    told = {line.data(): line.data(Qt.ItemDataRole.ToolTipRole) for line in lines}
    assert told["Open selected run"] == "Select a run first"
    usable = [bool(line.flags() & Qt.ItemFlag.ItemIsEnabled) for line in lines]
    assert usable == sorted(usable, reverse=True)
    assert [not reason for reason in told.values()] == usable
    spoken = next(line for line in lines if line.data() == "Open selected run")
    assert "Select a run first" in spoken.data(Qt.ItemDataRole.AccessibleTextRole)


def test_what_pages_that_were_never_opened_can_do_is_found_with_the_reason(
    qtbot, own_window: MainWindow, own_palette: Palette
):
    own_palette.field.setText("resume the run")
    line = own_palette.list.model().index(0, 0)
    assert (line.data(), line.data(Qt.ItemDataRole.ToolTipRole)) == ("Resume the run", "Open a run first")
    assert own_palette.field.accessibleDescription() == "Resume the run, Open a run first, Run, Ctrl+R"
    assert own_window.panel("run") is None
    own_palette.field.setText("formulas")
    qtbot.keyClick(own_palette.field, Qt.Key.Key_Return)
    settings = own_window.panel("settings")
    assert own_window.pages.currentWidget() is settings
    assert settings.csv_defuse.hasFocus()  # type: ignore[union-attr]


@pytest.mark.parametrize(("title", "name"), [(title, name) for title, _, name in PAGES])
def test_a_page_that_is_opened_offers_what_was_announced(own_window: MainWindow, title: str, name: str):
    announced = PAGE_ACTIONS[name].values()
    own_window.show_page(name)
    offered = own_window.commands._groups[title].offer()
    before = [(one.title, one.shortcut, one.icon) for one in announced]
    now = [(one.title, one.shortcut, one.icon) for one in offered if name == "settings" or one.kind != "Setting"]
    assert sorted(now) == sorted(before)
    reasons = {one.title: one.obstacle() for one in offered}
    if name != "new_run":  # which by now knows the draft
        assert {one.title: one.obstacle() for one in announced} == reasons


def test_a_run_is_found_by_its_name(qtbot, own_window: MainWindow, own_palette: Palette):
    from app.core.runs.run_library import RunSummary

    assert own_window.context is not None
    own_window.context.library.runs = [RunSummary("a", Path("/runs/2026-a"), "finished", title="reviews of May")]
    own_window.commands.show_palette()
    own_window.commands.show_palette()
    own_palette.field.setText("reviews")
    assert own_palette.visible_titles() == ["reviews of May"]
    own_palette.field.setText("2026-a")
    qtbot.keyClick(own_palette.field, Qt.Key.Key_Return)
    assert own_window.panel("run").path == Path("/runs/2026-a")  # type: ignore[union-attr]


def test_an_action_of_a_page_that_cannot_be_built_yet_only_asks_for_the_page(qtbot, styled, tmp_path: Path):
    window = MainWindow(preferences.load(tmp_path / "preferences.json"))
    qtbot.addWidget(window)
    window.commands.show_palette()
    assert window.commands.palette is not None
    next(one for one in window.commands.palette._actions if one.title == "Search runs").do()
    assert window.panel("runs") is None
    assert window._waiting_page == "runs"


def test_a_page_out_of_view_is_shown_before_its_action_is_done(window: MainWindow, palette: Palette):
    window.show_page("tokenizer")
    window.show_page("runs")
    action = next(one for one in palette._actions if one.title == "Search runs")
    window.show_page("settings")
    action.do()
    assert window.pages.currentWidget() is window.panel("runs")


@pytest.mark.parametrize(("title", "told"), [("Search runs", []), ("Show Runs", ["again"])])
def test_only_a_chosen_page_is_told_that_it_was_chosen_again(
    window: MainWindow, palette: Palette, monkeypatch, title: str, told: list[str]
):
    window.show_page("runs")
    heard: list[str] = []
    monkeypatch.setattr(window.panel("runs"), "on_chosen_again", lambda: heard.append("again"))
    next(one for one in palette._actions if one.title == title).do()
    assert heard == told


def test_a_shortcut_is_heard_only_on_its_page(qtbot, own_window: MainWindow):
    runs = own_window.panel("runs")
    assert runs is not None
    done: list[str] = []
    own_window.commands.add("Test", runs, lambda: [Action("Do it", lambda: done.append("it"), "Ctrl+J")])
    qtbot.keyClick(own_window, Qt.Key.Key_J, CONTROL)
    own_window.show_page("settings")
    qtbot.keyClick(own_window, Qt.Key.Key_J, CONTROL)
    assert done == ["it"]


def test_f1_shows_every_shortcut_and_its_keys(qtbot, window: MainWindow):
    qtbot.keyClick(window, Qt.Key.Key_F1)
    sheet = sheet_of(window)
    assert sheet.isVisible()
    keys = {keys for lines in sheet.lines.values() for _, keys in lines}
    assert {"Ctrl+K, Ctrl+Shift+P", "F1, ?", "Ctrl+1", "F11", "Ctrl+Q", "Ctrl+F"} <= keys
    assert next(iter(sheet.lines)) == "Runs"  # the page in view comes first
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()


def test_a_question_mark_that_is_typed_is_no_shortcut(qtbot, own_window: MainWindow):
    runs = own_window.panel("runs")
    runs.search.show()  # type: ignore[union-attr]
    runs.search.setFocus()  # type: ignore[union-attr]
    qtbot.keyClick(runs.search, "?")  # type: ignore[union-attr]
    assert own_window.commands.sheet is None
    own_window.sidebar.buttons()[0].setFocus()
    qtbot.keyClick(own_window, "?")
    assert sheet_of(own_window).isVisible()


def test_every_action_has_keys_and_a_title_of_its_own_and_says_why_if_it_is_impossible_at_first(own_window: MainWindow):
    impossible = []
    for _, _, name in PAGES:
        panel = own_window.show_page(name)
        of_page = panel.offered_actions() if isinstance(panel, OffersActions) else ()
        offered = [*own_window._window_actions(), *of_page]
        keys = [keys for action in offered for keys in action.shortcuts()]
        assert len(keys) == len(set(keys)), name
        titles = [action.title for action in offered if action.kind != "Setting"]
        assert len(set(titles)) == len(titles), name
        impossible += [action.obstacle() for action in of_page if not action.is_possible()]
    assert len(impossible) > 15
    assert "Not possible right now." not in impossible


def test_the_tour_has_few_cards_over_real_controls_and_comes_only_once(qtbot, own_window: MainWindow):
    assert not own_window.preferences.tour_seen
    own_window.show_tour()
    tour = own_window.tour
    assert tour is not None
    assert len(TOUR) <= 4
    assert tour.isVisible()
    assert preferences.load(own_window.preferences.path).tour_seen
    titles = []
    while tour.isVisible():
        titles.append(tour.title.text())
        light = tour._light()
        assert light is None or not light.intersects(tour.card.geometry()) or tour.place == 1
        assert tour.rect().contains(tour.card.geometry())
        qtbot.mouseClick(tour.next, Qt.MouseButton.LeftButton)
    assert titles == [title for title, _ in TOUR]


def test_the_tour_can_be_left_at_once_and_called_again(qtbot, own_window: MainWindow, own_palette: Palette):
    own_palette.field.setText("take a tour")
    qtbot.keyClick(own_palette.field, Qt.Key.Key_Return)
    assert own_window.tour is not None
    assert own_window.tour.isVisible()
    qtbot.mouseClick(own_window.tour.skip, Qt.MouseButton.LeftButton)
    assert not own_window.tour.isVisible()
    own_window.show_tour()
    qtbot.keyClick(own_window.tour, Qt.Key.Key_Escape)
    assert not own_window.tour.isVisible()


def test_tab_stays_within_the_tour(qtbot, own_window: MainWindow):
    own_window.show_tour()
    assert own_window.tour is not None
    seen = set()
    for _ in range(4):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        seen.add(QApplication.focusWidget())
    assert seen == {own_window.tour.skip, own_window.tour.next}
    own_window.tour.close_curtain()
