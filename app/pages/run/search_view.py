"""What the Run page shows of a search in place of curves: its trials as lines and as a table, and what they say."""

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core import formatting
from app.core.i18n import tr
from app.core.runs.search_trials import axes_of, header_of, rows_of, sentences
from app.services.backend_client import BackendClient
from app.services.latest_question import LatestQuestion
from app.widgets.card import Card, label
from app.widgets.plots.parallel_coordinates import ParallelCoordinates
from app.widgets.tables.layout_memory import RememberedSplitter
from app.widgets.tables.text_table import TextTable
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.rpc.search import SearchReport

REFRESH_MS = 3000
"""While a search runs; the steps of its trials are in their folders, which nothing here watches."""


class SearchView(QWidget):
    """`show_search` fills it and keeps it up to date; hidden for anything but a search."""

    trial_chosen = Signal(str)
    """The folder of a trial that should be shown."""
    message = Signal(str, str)

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._folder: Path | None = None
        self._is_alive = False
        self._report: SearchReport | None = None
        self._asking = LatestQuestion(client, "search_report", self._on_report, self._on_error, opened="", parent=self)
        self._timer = QTimer(self, interval=REFRESH_MS)
        self._timer.timeout.connect(self._ask)
        self.words = label("", wrap=True)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.lines, self.table = ParallelCoordinates(), TextTable(tr("Trials"))
        self.table.set_choosable(tr("Open this trial"))
        self.lines.line_chosen.connect(self._choose)
        self.table.row_chosen.connect(self._choose)
        above, below = Card(tr("Settings and results")), Card(tr("Trials"))
        above.add(self.words)
        above.add(self.lines, 1)
        below.add(self.table, 1)
        split = RememberedSplitter("search", Qt.Orientation.Vertical, self)
        split.hold((above, below), (1, 1), (230, 150))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(split)
        self.hide()

    def show_search(self, folder: Path | None, *, alive: bool) -> None:
        """Show the search in this folder, or nothing if there is none."""
        if folder != self._folder:
            self._asking.stop()
            self._report = None
            self.words.setText(tr("Reading the trials…"))
            self.lines.show_lines((), (), None)
            self.table.show_rows((), ())
        changed = (folder, alive) != (self._folder, self._is_alive)
        self._folder, self._is_alive = folder, alive
        self.setVisible(folder is not None)
        if folder is None or not alive:
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()
        if changed:
            self._ask()

    def _ask(self) -> None:
        if self._folder is not None and not self._asking.open:
            self._asking.ask({"search": str(self._folder), "importance": not self._is_alive})

    def _on_report(self, report: SearchReport) -> None:
        self._report = report
        self.words.setText("\n".join(sentences(report)))
        self.words.setVisible(bool(self.words.text()))
        rows = rows_of(report)
        self.table.show_rows(header_of(report), rows)
        described = [_describe(row, header_of(report)) for row in rows]
        best = next((place for place, trial in enumerate(report.trials) if trial.trial == report.best), None)
        self.lines.show_lines(axes_of(report), described, best)

    def _on_error(self, mistake: ErrorReply) -> None:
        self.words.setText(formatting.sentence(mistake.message))
        self.words.show()

    def _choose(self, place: int) -> None:
        if self._report is None:
            return
        trial = self._report.trials[place]
        if Path(trial.run).is_dir():
            self.trial_chosen.emit(trial.run)
        else:
            self.message.emit("info", formatting.sentence(trial.message) or tr("This trial has not started yet."))


def _describe(row: list[str], header: list[str]) -> str:
    pairs = ", ".join(f"{title} {cell}" for title, cell in zip(header[1:], row[1:], strict=True))
    return tr("Trial {number}: {settings}", number=row[0], settings=pairs)
