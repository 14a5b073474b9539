"""The main window: it only places the pages and connects their signals."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QWidget

from app.core import actions
from app.core.actions import Action, OffersActions
from app.core.i18n import tr
from app.core.page_actions import PAGE_ACTIONS
from app.core.preferences import Preferences
from app.widgets.accessibility import FocusRing, TabOrder
from app.widgets.appearance import Appearance
from app.widgets.boxes import PageStack
from app.widgets.commands import Commands
from app.widgets.desktop import DesktopMessages
from app.widgets.question import may_close
from app.widgets.sidebar import Sidebar
from app.widgets.tables.layout_memory import layout_file
from app.widgets.toast import ToastAction, ToastOverlay

if TYPE_CHECKING:
    from app.core.runs.finished_runs import FinishedRuns
    from app.services.context import AppContext
    from app.services.preloading import Preloader
    from app.widgets.tour import Tour


PAGES = (
    (tr("New run"), "bolt", "new_run"),
    (tr("Run"), "chart", "run"),
    (tr("Runs"), "runs", "runs"),
    (tr("Predictions"), "target", "predictions"),
    (tr("Tokenizer"), "text", "tokenizer"),
    (tr("Settings"), "settings", "settings"),
)
"""Title, icon, module: a page is imported when it is first shown, so the first paint waits for no plotting library."""
LIBRARIES = ("numpy", "numpy.ma", "pyqtgraph")
SIDES = ("app.pages.tokenizer.text.text_tab",)
"""Modules that pages need are loaded ahead of time, so that each page appears at once."""
SMALLEST = QSize(800, 600)
"""Less than half a screen of 1920 pixels."""
RUNS = 2
"""The place of Runs among them."""
CONNECTIONS = (
    ("new_run", "run_started", "_on_run_started"),
    ("run", "try_requested", "_on_try_requested"),
    ("run", "predictions_requested", "_on_predictions_requested"),
    ("run", "duplicate_requested", "_on_duplicate_requested"),
    ("run", "search_requested", "_on_search_requested"),
    ("runs", "run_selected", "_on_run_selected"),
    ("runs", "duplicate_requested", "_on_duplicate_requested"),
    ("runs", "predictions_requested", "_on_predictions_requested"),
    ("runs", "new_run_requested", "_on_new_run_requested"),
    ("run", "new_run_requested", "_on_new_run_requested"),
    ("run", "runs_requested", "_on_runs_requested"),
    ("predictions", "runs_requested", "_on_runs_requested"),
    ("tokenizer", "settings_chosen", "_on_settings_chosen"),
    ("tokenizer", "draft_wanted", "_on_draft_wanted"),
    ("tokenizer", "new_run_requested", "_on_new_run_requested"),
    ("new_run", "data_requested", "_on_data_requested"),
    ("new_run", "tokenizer_requested", "_on_tokenizer_requested"),
    ("run", "rows_requested", "_on_rows_requested"),
    ("settings", "theme_changed", "_on_appearance_chosen"),
    ("settings", "text_size_changed", "_on_appearance_chosen"),
    ("settings", "restart_wanted", "_on_restart_wanted"),
)
"""Page, its signal, who hears it. A signal that a page does not have is not connected."""


class MainWindow(QMainWindow):
    """Shows the frame at once; `open_services` starts the rest after the first paint."""

    first_painted = Signal()

    def __init__(self, preferences: Preferences) -> None:
        super().__init__()
        self.preferences = preferences
        self.context: AppContext | None = None
        self._endings: FinishedRuns | None = None
        self._warming: Preloader | None = None
        self.tour: Tour | None = None
        self._panels: dict[str, QWidget] = {}
        self._painted = False
        self.opens_again = False
        """Whether it was closed to be opened again at once."""
        self._waiting_page = "new_run"
        self.setWindowTitle(tr("Burnish"))
        self.setMinimumSize(SMALLEST)
        self.sidebar = Sidebar([(title, icon, f"Ctrl+{n}") for n, (title, icon, _) in enumerate(PAGES, start=1)])
        self.pages = PageStack()
        self.pages.setObjectName("pages")
        self._place()
        self.toasts = ToastOverlay(self.centralWidget())
        self.desktop = DesktopMessages(self, self._on_desktop_answered)
        self.ring = FocusRing(self)
        self.appearance = Appearance(preferences, self)
        self.appearance.changed.connect(self._on_appearance_changed)
        self.sidebar.page_chosen.connect(self._on_page_chosen)
        self.commands = Commands(self.centralWidget(), self)
        self._offer_actions()
        self._restore_geometry()

    def _place(self) -> None:
        whole = TabOrder()
        row = QHBoxLayout(whole)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.sidebar)
        row.addWidget(self.pages, 1)
        self.setCentralWidget(whole)
        self.sidebar.set_page(0)
        self.pages.setFocus()

    # What can be done

    def _offer_actions(self) -> None:
        self.commands.add(tr("Window"), self, self._window_actions)
        self.commands.add(tr("Pages"), self, lambda: actions.page_actions(PAGES, self.choose_page))
        self.commands.add(tr("Runs by name"), self, self._run_actions)
        for title, _, name in PAGES:
            self.commands.announce(title, PAGE_ACTIONS.get(name, {}).values(), lambda name=name: self.show_page(name))

    def _window_actions(self) -> list[Action]:
        return [
            Action(tr("Find actions, pages, runs"), self.commands.show_palette, "Ctrl+K; Ctrl+Shift+P", "search"),
            Action(tr("Show keyboard shortcuts"), self.commands.show_sheet, "F1; ?", "info"),
            *self.appearance.offered_actions(),
            Action(tr("Take a tour"), self.show_tour, icon="external", words=tr("tour help first steps")),
            Action(tr("Toggle full screen"), self._switch_full_screen, "F11", "external"),
            Action(tr("Close the window (runs keep going)"), self.close, "Ctrl+Q", "close", words=tr("quit exit")),
        ]

    def _run_actions(self) -> list[Action]:
        if self.context is None:
            return []
        from app.core.runs.run_list import run_actions  # reads events, which the first paint does not wait for

        return run_actions(self.context.library.runs, self.show_run)

    def _switch_full_screen(self) -> None:
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)

    # Pages

    @property
    def is_warming(self) -> bool:
        """Whether it is still loading what other pages need."""
        return self._warming is not None and self._warming.is_active

    def open_services(self) -> None:
        """Start the services and show the requested page; called once, after the first paint."""
        # Services bring msgspec and more: the frame is on the screen before they are imported.
        from app.core.runs.finished_runs import FinishedRuns
        from app.services.context import AppContext
        from app.services.library_watcher import EngineStatus
        from app.services.preloading import Preloader

        self.context = AppContext.create(self.preferences, self)
        self._endings = FinishedRuns(time.time())
        self.context.library_watcher.changed.connect(self._on_runs_changed)
        status = EngineStatus(self.context.client, self.context.library_watcher, self)
        status.changed.connect(self.sidebar.set_engine)
        status.start()
        self.show_page(self._waiting_page)
        self._warming = Preloader((*LIBRARIES, *(f"app.pages.{name}.page" for _, _, name in PAGES), *SIDES), self)
        self._warming.start()
        if self.preferences.damaged:
            self.show_message(
                "warning",
                tr(
                    "The settings file was damaged. Burnish uses the defaults and kept the file as {name}.",
                    name=self.preferences.damaged.name,
                ),
            )

    def show_page(self, name: str) -> QWidget | None:
        """Show a page, importing and building it the first time; before `open_services` only remember it."""
        if self.context is None:
            self._waiting_page = name
            return None
        panel = self._panels.get(name) or self._build(name)
        self.sidebar.set_page([module for _, _, module in PAGES].index(name))
        if self.pages.currentWidget() is not panel:
            self.pages.setCurrentWidget(panel)
        if hasattr(panel, "on_shown"):
            panel.on_shown()  # type: ignore[attr-defined]
        self._see_endings()
        return panel

    def open_running_run(self) -> None:
        """Show the run that is training as soon as the runs are read, unless the person has done something by then."""
        assert self.context is not None
        opened, focused = self.pages.currentWidget(), self.focusWidget()

        def show() -> None:
            assert self.context is not None
            running = self.context.library.newest_alive()
            if running is not None and (self.pages.currentWidget(), self.focusWidget()) == (opened, focused):
                self.show_run(str(running.path))

        self.context.library_watcher.first_read.connect(show)

    def choose_page(self, name: str) -> None:
        """Show the page that the person chose; one that is in front already leads back to what it first shows."""
        panel = self._panels.get(name)
        if panel is not None and self.pages.currentWidget() is panel and hasattr(panel, "on_chosen_again"):
            panel.on_chosen_again()  # type: ignore[attr-defined]
        self.show_page(name)

    def panel(self, name: str) -> QWidget | None:
        """A page that is already built."""
        return self._panels.get(name)

    def _build(self, name: str) -> QWidget:
        from app.services.preloading import spare_collections

        panel = importlib.import_module(f"app.pages.{name}.page").Page(self.context, self.pages)
        self._panels[name] = panel
        self.pages.addWidget(panel)
        for page, signal, slot in CONNECTIONS:
            if page == name and hasattr(panel, signal):
                getattr(panel, signal).connect(getattr(self, slot))
        if hasattr(panel, "message"):
            panel.message.connect(self.show_message)
        if hasattr(panel, "wrote"):
            panel.wrote.connect(self.toasts.show_written)
        if hasattr(panel, "bar_built"):
            panel.bar_built.connect(self.toasts.stay_above)
        for bar in getattr(panel, "bars", ()):  # at its bottom: no message may cover them
            self.toasts.stay_above(bar)
        if isinstance(panel, OffersActions):
            title = next(title for title, _, module in PAGES if module == name)
            self.commands.add(title, self._panels[name], panel.offered_actions, lambda: self.show_page(name))
        spare_collections()
        return self._panels[name]

    def show_message(self, kind: str, text: str) -> None:
        """A toast; kind is info, success, warning or error."""
        self.toasts.show_message(kind, text)

    def show_run(self, path: str) -> None:
        """Open the Run page on a run folder."""
        panel = self.show_page("run")
        if panel is not None:
            panel.show_run(path)  # type: ignore[attr-defined]
            self._see_endings()

    # Runs that have ended

    def _on_runs_changed(self) -> None:
        assert self.context is not None
        assert self._endings is not None
        for ended in self._endings.take(self.context.library.runs):
            self.show_message(ended.kind, ended.text)
            if self.preferences.desktop_messages and not self.isActiveWindow():
                self._notify_desktop(ended.text, ended.kind == "error")
        self._see_endings()

    def _notify_desktop(self, text: str, is_error: bool) -> None:
        from app.services.notifications import notify  # nothing of the services before the first paint

        if not self.desktop.show_message(tr("Burnish"), text, is_error):
            notify(tr("Burnish"), text, is_error)

    def _see_endings(self) -> None:
        """Mark runs visible in the active window as seen; show the others in the title and beside Runs."""
        if self._endings is None:
            return
        if self.isActiveWindow():
            self.desktop.withdraw()
            run_page = self._panels.get("run")
            if self.pages.currentWidget() is self._panels.get("runs"):
                self._endings.see_all()
            elif run_page is not None and self.pages.currentWidget() is run_page:
                self._endings.see(Path(run_page.path or ""))  # type: ignore[attr-defined]
        self.setWindowTitle(self._endings.title())
        self.sidebar.set_badge(RUNS, len(self._endings.unseen), tr("ended"))

    def _on_desktop_answered(self) -> None:
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.raise_()
        self.activateWindow()
        if self._endings is not None and self._endings.unseen:
            self.show_run(str(self._endings.unseen[-1].path))

    def changeEvent(self, event: QEvent) -> None:
        """When the window becomes active, mark what is visible as seen."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange:
            self._see_endings()

    # What panels ask for

    def _on_page_chosen(self, number: int) -> None:
        self.choose_page(PAGES[number][2])

    def _on_run_started(self, path: str, is_draft_unchanged: bool) -> None:
        """Show it, unless the user has gone elsewhere or works on the next run: no page changes under the mouse."""
        if is_draft_unchanged and self.pages.currentWidget() is self._panels.get("new_run"):
            self.show_run(path)
            return
        action = ToastAction(tr("Show run"), "chart", lambda: self.show_run(path))
        self.toasts.show_message("success", tr("Started {name}.", name=Path(path).name), action)

    def _on_run_selected(self, path: str) -> None:
        self.show_run(path)

    def _on_new_run_requested(self) -> None:
        self.show_page("new_run")

    def _on_runs_requested(self) -> None:
        panel = self.show_page("runs")
        if panel is not None:
            panel.on_chosen_again()  # type: ignore[attr-defined]  # the list, though a comparison was left open

    def _on_duplicate_requested(self, path: str) -> None:
        panel = self.show_page("new_run")
        if panel is not None:
            panel.load_run(path)  # type: ignore[attr-defined]

    def _on_search_requested(self, path: str, learning_rate: float | None, metric: str) -> None:
        panel = self.show_page("new_run")
        if panel is not None:
            panel.search_around(path, learning_rate, metric)  # type: ignore[attr-defined]

    def _on_try_requested(self, path: str) -> None:
        panel = self.show_page("predictions")
        if panel is not None:
            panel.try_run(path)  # type: ignore[attr-defined]

    def _on_predictions_requested(self, path: str) -> None:
        panel = self.show_page("predictions")
        if panel is not None:
            panel.show_run(path)  # type: ignore[attr-defined]

    def _on_settings_chosen(self, settings: dict[str, Any]) -> None:
        panel = self.show_page("new_run")
        if panel is not None:
            panel.apply_settings(settings)  # type: ignore[attr-defined]

    def _on_draft_wanted(self) -> None:
        new_run, tokenizer = self.panel("new_run"), self.panel("tokenizer")
        if new_run is not None and tokenizer is not None:
            tokenizer.show_draft(*new_run.offered())  # type: ignore[attr-defined]

    def _on_data_requested(self) -> None:
        panel = self.show_page("tokenizer")
        if panel is not None:
            panel.show_data()  # type: ignore[attr-defined]

    def _on_tokenizer_requested(self, name_or_path: str) -> None:
        panel = self.show_page("tokenizer")
        if panel is not None:
            panel.show_tokenizer(name_or_path)  # type: ignore[attr-defined]

    def _on_rows_requested(self, path: str, step: int) -> None:
        panel = self.show_page("tokenizer")
        if panel is not None:
            panel.show_step(path, step)  # type: ignore[attr-defined]

    def show_tour(self) -> None:
        """Show the short tour that appears when the window is opened for the first time."""
        from app.widgets.tour import TOUR, Tour, TourStep  # once in a window's life

        self.preferences.set("tour_seen", True)
        new_run = self.show_page("new_run")
        if new_run is None:
            return
        if self.tour is None:
            targets = (new_run.demo, new_run.start_bar, self.sidebar.buttons()[RUNS], None)  # type: ignore[attr-defined]
            stops = zip(TOUR, targets, strict=True)
            self.tour = Tour(self.centralWidget(), [TourStep(*words, lambda at=at: at) for words, at in stops])
        self.tour.begin()

    def _on_appearance_chosen(self) -> None:
        self.appearance.apply()

    def _on_appearance_changed(self) -> None:
        settings = self.panel("settings")
        if settings is not None:
            settings.show_preferences()  # type: ignore[attr-defined]

    def _on_restart_wanted(self) -> None:
        self.opens_again = self.close()

    # The window itself

    def paintEvent(self, event: QPaintEvent) -> None:
        """Report the first paint, after which the rest may be loaded."""
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            QTimer.singleShot(0, self.first_painted.emit)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the page of a narrow window a larger share of the width."""
        super().resizeEvent(event)
        self.sidebar.fit(event.size().width())
        self.centralWidget().layout().activate()  # type: ignore[union-attr]  # at once, so that each page adapts to its room

    def closeEvent(self, event: QCloseEvent) -> None:
        """Runs continue; only the window's own work ends. Asks first if a download is running or a run is starting."""
        parts = [*self._panels.values(), *([self.context.jobs] if self.context else [])]
        if not may_close(self, parts):
            event.ignore()
            return
        layout_file().setValue("geometry", self.saveGeometry())
        if self.context is not None:
            # Out of sight first: a busy helper, or a run that is just being started, may take seconds.
            self.hide()
            if self._warming is not None:
                self._warming.stop()
            self.context.close()
        super().closeEvent(event)

    def _restore_geometry(self) -> None:
        stored = layout_file().value("geometry")
        if stored is None or not self.restoreGeometry(stored):  # type: ignore[arg-type]
            self.resize(1280, 800)
