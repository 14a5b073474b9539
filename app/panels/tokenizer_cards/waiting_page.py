"""Owns what stands in a side's place while an answer is computed, with a way to stop it, or why there is none."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.core.wording import grouped
from app.widgets.card import label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.progress_bar import ThinProgressBar
from backend.contract.queries import Progress


class WaitingPage(QStackedWidget):
    """`wait`, `advance` as progress comes, and `fail` where it ends without an answer."""

    stopped = Signal()
    again = Signal()

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = title
        self.words, self.bar = label("", "muted"), ThinProgressBar()
        self.stop = IconButton("Stop", "stop")
        self.stop.clicked.connect(self.stopped)
        self.bar.setFixedWidth(320)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setSpacing(12)
        column.addStretch(2)
        for widget in (self.words, self.bar, self.stop):
            column.addWidget(widget, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(3)
        self.failure = EmptyState("info", title, "", "Try again")
        self.failure.asked.connect(self.again)
        self.addWidget(page)
        self.addWidget(self.failure)

    def wait(self, words: str) -> None:
        """An answer is under way."""
        self.words.setText(words)
        self.bar.set_fraction(None)
        self.setCurrentIndex(0)

    def advance(self, progress: Progress) -> None:
        """How far it is."""
        self.bar.set_fraction(progress.done / progress.total if progress.total else None)
        total = f" of {grouped(int(progress.total))}" if progress.total else ""
        self.words.setText(progress.text or f"{grouped(int(progress.done))}{total} {progress.unit}")

    def fail(self, text: str) -> None:
        """There is no answer, and why."""
        self.failure.set_words(self._title, text)
        self.setCurrentIndex(1)
