"""Compares the run with another one, whose curves are drawn behind its own."""

from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from app.core.i18n import tr
from app.core.runs.run_library import RunLibrary, RunSummary
from app.core.runs.run_state import RunState
from app.pages.run.plots import RunPlots
from app.services.run_watcher import RunWatcher
from app.widgets.icon_label import IconToolButton

FEED_MS = 25
LISTED = 15
HINT = tr("Compare with another run")


class Comparison(QObject):
    """`button` offers the latest runs of the same task; `compare` draws one behind the current run."""

    message = Signal(str, str)

    def __init__(self, library: RunLibrary, plots: RunPlots, parent: QObject) -> None:
        super().__init__(parent)
        self._library, self._plots = library, plots
        self._shown: Path | None = None
        self._state: RunState | None = None
        self.watcher: RunWatcher | None = None
        self.button = IconToolButton("runs", HINT)
        self.button.setCheckable(True)
        self.button.clicked.connect(self._on_clicked)
        self.menu = QMenu(self.button)
        plots.loss.corner.addWidget(self.button)
        self._timer = QTimer(self, interval=FEED_MS, singleShot=True)
        self._timer.timeout.connect(self._feed)

    def show_run(self, path: Path, state: RunState) -> None:
        """Show another run, without a comparison."""
        self.stop()
        self.follow(path, state)

    def follow(self, path: Path, state: RunState) -> None:
        """Follow the state of the current run, which may be a new object for the same run."""
        self._shown, self._state = path, state

    def compare(self, path: Path | str) -> None:
        """Draw the curves of the run in that folder behind the current ones."""
        self.stop()
        self.watcher = watcher = RunWatcher(path, self)
        watcher.advanced.connect(self._feed_soon)
        watcher.caught_up.connect(self._feed_soon)
        watcher.restarted.connect(self._plots.clear_other)
        watcher.vanished.connect(self._on_vanished)
        self._show_button()

    def _on_vanished(self) -> None:
        assert self.watcher is not None
        name = self.watcher.folder.name
        self.stop()
        self.message.emit("warning", tr("{name}, the run compared with, was deleted.", name=name))

    def stop(self) -> None:
        """Remove the comparison."""
        self._timer.stop()
        self._plots.clear_other()
        if self.watcher is not None:
            self.watcher.stop()
            self.watcher.deleteLater()
            self.watcher = None
        self._show_button()

    def refresh(self) -> None:
        """Draw the comparison again if the plots were recreated."""
        if self.watcher is not None and not self._plots.shows_other:
            self._feed_soon()

    def draw_again(self) -> None:
        """Send the compared run's points again, because the x axis changed."""
        if self.watcher is not None:
            self._feed_soon()

    def _show_button(self) -> None:
        name = self.watcher.folder.name if self.watcher else ""
        self.button.setChecked(bool(name))
        self.button.setToolTip(tr("Compared with {name}", name=name) if name else HINT)

    def _feed_soon(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _feed(self) -> None:
        if self.watcher is not None and self._plots.show_other(self.watcher.state, self._name(self.watcher)):
            self._timer.start()

    def _name(self, watcher: RunWatcher) -> str:
        """The difference between the two: the engine if it differs, else the run's folder."""
        own, other = self._state, watcher.state
        differs = own is not None and own.engine and other.engine and own.engine != other.engine
        return other.engine if differs else watcher.folder.name

    def _on_clicked(self) -> None:
        self._show_button()
        self.fill_menu()
        self.menu.popup(self.button.mapToGlobal(self.button.rect().bottomLeft()))

    def fill_menu(self) -> None:
        """Fill the menu with the latest runs of the same task, and none."""
        self.menu.clear()
        found = self.candidates()
        if self.watcher is not None:
            self.menu.addAction(tr("Stop comparing"), self.stop)
            self.menu.addSeparator()
        for run in found:
            words = " · ".join(filter(None, [run.name, run.engine, run.state]))
            action = QAction(words.replace("&", "&&"), self.menu, checkable=True, checked=self._is_compared(run))
            action.triggered.connect(lambda _=False, run=run: self.compare(run.path))
            self.menu.addAction(action)
        if not found:
            self.menu.addAction(tr("No other runs of this task yet")).setEnabled(False)

    def candidates(self) -> list[RunSummary]:
        """Other runs of the same task that have started, newest first."""
        task = self._state.task if self._state else ""
        return [run for run in self._library.runs if run.task == task and run.started and run.path != self._shown][
            :LISTED
        ]

    def _is_compared(self, run: RunSummary) -> bool:
        return self.watcher is not None and self.watcher.folder.path == run.path
