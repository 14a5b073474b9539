"""Owns the Runs page: every run of this user, found again after each start."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QMessageBox, QStackedWidget, QVBoxLayout, QWidget

from app import theme
from app.core.run_library import RunSummary
from app.panels.runs_cards.run_table import RunTable, cell
from app.services.context import AppContext
from app.services.trash import move_to_trash
from app.widgets.card import Card, label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.page_header import PageHeader, page_layout
from backend.contract.queries import Mistake

BUTTONS = {
    "open": ("Open", "chart", "primary"),
    "resume": ("Resume", "play", ""),
    "stop": ("Stop", "stop", "danger"),
    "predictions": ("Predictions", "target", ""),
    "duplicate": ("Duplicate", "copy", ""),
    "folder": ("Open folder", "folder", ""),
    "delete": ("Delete", "trash", "danger"),
}
"""Key → words, icon, role."""


class Panel(QWidget):
    """Lists runs; what is done with one is said by signals or asked of the services."""

    message = Signal(str, str)
    run_selected = Signal(str)
    duplicate_requested = Signal(str)
    predictions_requested = Signal(str)
    new_run_requested = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._question: QMessageBox | None = None
        self._resuming: set[Path] = set()
        self.header = PageHeader("Runs")
        self.search = QLineEdit(placeholderText="Search name, model, data or state", clearButtonEnabled=True)
        self.search.setFixedWidth(300)
        self.search.setAccessibleName("Search runs")
        self.search.textChanged.connect(self._show_runs)
        self.header.buttons.addWidget(self.search)
        self.table = RunTable()
        self.table.run_chosen.connect(self._on_chosen)
        self.table.run_opened.connect(self.run_selected)
        self.detail = label("", "muted", wrap=True, selectable=True)
        self.empty = EmptyState(
            "runs",
            "No runs yet",
            "Everything you train is listed here and found again after a restart.",
            "Start the demo",
        )
        self.empty.asked.connect(self.start_demo)
        self._build()
        context.library_watcher.changed.connect(self._show_runs)
        self._show_runs()

    def _build(self) -> None:
        self.buttons: dict[str, IconButton] = {}
        bar = QHBoxLayout()
        bar.setSpacing(8)
        for key, (words, icon, role) in BUTTONS.items():
            button = self.buttons[key] = IconButton(words, icon, role)
            button.clicked.connect(getattr(self, f"_on_{key}"))
            if key == "delete":
                bar.addStretch(1)
            bar.addWidget(button)
        card = Card()
        theme.role(card, "card")
        layout = card.layout()
        assert layout is not None
        layout.setContentsMargins(1, 1, 1, 1)
        card.add(self.table, 1)
        listed = QWidget()
        column = QVBoxLayout(listed)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(bar)
        column.addWidget(card, 1)
        column.addWidget(self.detail)
        self._pages = QStackedWidget()
        self.nothing = EmptyState("runs", "No run fits the search", "Search for other words.", "Clear the search")
        self.nothing.asked.connect(self.search.clear)
        for part in (self.empty, listed, self.nothing):
            self._pages.addWidget(part)
        page = page_layout(self)
        page.addWidget(self.header)
        page.addWidget(self._pages, 1)

    def shown(self) -> None:
        """The page came to the front: look at once."""
        self._context.library_watcher.look_now()

    # What is listed

    def _show_runs(self) -> None:
        every = self._context.library.runs
        wanted = self.search.text().casefold().split()
        found = [run for run in every if all(word in _searched(run) for word in wanted)]
        self.table.set_runs(found)
        self._pages.setCurrentIndex(1 if found else 2 if every else 0)
        self.search.setVisible(bool(every))
        self.header.set_subtitle(_counts(every, found) if every else str(self._context.library.root))

    def _on_chosen(self, run: RunSummary | None) -> None:
        usable = {
            "open": run is not None,
            "resume": run is not None and run.resumable and run.path not in self._resuming,
            "stop": run is not None and run.alive,
            "predictions": run is not None and run.has_predictions,
            "duplicate": run is not None,
            "folder": run is not None,
            "delete": run is not None and not run.alive,
        }
        for key, button in self.buttons.items():
            button.setEnabled(usable[key])
        self.buttons["delete"].setToolTip("Stop the run first" if run is not None and run.alive else "")
        self.detail.setText(" · ".join(filter(None, [run.message, str(run.path)])) if run else "")

    # What is done with one

    def _on_open(self) -> None:
        if run := self.table.chosen():
            self.run_selected.emit(str(run.path))

    def _on_resume(self) -> None:
        if run := self.table.chosen():
            self._resuming.add(run.path)
            self._on_chosen(run)
            self._context.jobs.resume(
                run.path,
                lambda path: self._on_resumed(run.path, path),
                lambda sentence: self._on_refused(run.path, sentence),
            )

    def _on_resumed(self, asked: Path, path: str) -> None:
        self._resuming.discard(asked)
        self._on_started(path)

    def _on_started(self, path: str) -> None:
        self._context.library_watcher.look_now()
        self.run_selected.emit(path)

    def _on_refused(self, asked: Path, sentence: str) -> None:
        self._resuming.discard(asked)
        self._on_chosen(self.table.chosen())
        self.message.emit("error", sentence)

    def _on_stop(self) -> None:
        if run := self.table.chosen():
            problem = self._context.jobs.request(run.path, "stop")
            said = f"{run.title} was asked to stop; it saves a checkpoint and its model first."
            self.message.emit("error" if problem else "info", problem or said)

    def _on_predictions(self) -> None:
        if run := self.table.chosen():
            self.predictions_requested.emit(str(run.path))

    def _on_duplicate(self) -> None:
        if run := self.table.chosen():
            self.duplicate_requested.emit(str(run.path))

    def _on_folder(self) -> None:
        if run := self.table.chosen():
            opened = QDesktopServices.openUrl(QUrl.fromLocalFile(str(run.path)))
            if not opened:
                self.message.emit("info", f"No file manager could be opened. The folder is {run.path}")

    def _on_delete(self) -> None:
        run = self.table.chosen()
        if run is None:
            return
        question = self._question = QMessageBox(self)
        question.setWindowTitle("Delete run")
        question.setText(f"Move “{run.title}” to the trash?")
        question.setInformativeText(f"Its checkpoints, model and predictions go with it.\n{run.path}")
        delete = question.addButton("Move to trash", QMessageBox.ButtonRole.DestructiveRole)
        question.setDefaultButton(question.addButton("Keep", QMessageBox.ButtonRole.RejectRole))
        delete.clicked.connect(lambda: self.delete(run))
        question.finished.connect(question.deleteLater)
        question.open()

    def delete(self, run: RunSummary) -> None:
        """Move a run to the trash; one that is alive is refused."""
        problem = move_to_trash(run.path)
        self._context.library_watcher.look_now()
        self.message.emit("error" if problem else "success", problem or f"{run.title} was moved to the trash.")

    # The demo

    def start_demo(self) -> None:
        """Start the embedded demo."""
        self.empty.setEnabled(False)
        self._context.client.ask("demo_spec", {}, self._on_demo_spec, self._on_no_demo)

    def _on_demo_spec(self, answer: dict[str, Any]) -> None:
        self._context.jobs.start(answer["spec"], self._on_demo_started, lambda said: self._on_no_demo(Mistake(said)))

    def _on_demo_started(self, path: str) -> None:
        self.empty.setEnabled(True)
        self._on_started(path)

    def _on_no_demo(self, mistake: Mistake) -> None:
        self.empty.setEnabled(True)
        self.message.emit("error", mistake.message)


def _searched(run: RunSummary) -> str:
    columns = ("Run", "State", "Task", "Model", "Data")
    return " ".join([*(cell(run, column) for column in columns), run.name]).casefold()


def _counts(every: list[RunSummary], found: list[RunSummary]) -> str:
    alive = sum(run.alive for run in every)
    lost = sum(run.state == "lost" for run in every)
    parts = [f"{len(found)} of {len(every)} runs" if len(found) < len(every) else f"{len(every)} runs"]
    if len(every) == 1 and len(found) == 1:
        parts = ["1 run"]
    if alive:
        parts.append(f"{alive} running")
    if lost:
        parts.append(f"{lost} lost, Resume continues " + ("it" if lost == 1 else "them"))
    return " · ".join(parts)
