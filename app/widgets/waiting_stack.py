"""Owns what stands in the place of an answer: the work with its progress and a way to stop it, or why there is none."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.core.backend_words import begun, said
from app.core.i18n import grouped, tr
from app.widgets.card import label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.progress import ThinProgressBar


def amount_words(done: float, total: float, unit: str) -> str:
    """`1 200 of 8 000 rows`; empty before the first."""
    if not done:
        return ""
    if not total:
        return f"{grouped(done)} {said(unit)}".rstrip()
    return tr("{done:,.0f} of {total:,.0f} {unit}", done=done, total=total, unit=said(unit)).rstrip()


class WaitingStack(QStackedWidget):
    """Shows `content`, or work that goes on, or a sentence with what can be done."""

    stopped = Signal()
    again = Signal()

    def __init__(self, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.content = content
        self.words, self.bar = label("", "muted"), ThinProgressBar()
        self.stop = IconButton(tr("Stop"), "stop")
        self.stop.clicked.connect(self.stopped)
        self.sentence = EmptyState("table", "")
        self.sentence.asked.connect(self.again)
        self._stage = ""
        for page in (content, self._waiting(), self.sentence):
            self.addWidget(page)

    def _waiting(self) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.addStretch(1)
        self.bar.setFixedWidth(360)
        for widget in (self.words, self.bar, self.stop):
            column.addWidget(widget, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(2)
        return page

    def show_content(self) -> None:
        """The answer is there."""
        self.setCurrentIndex(0)

    def show_waiting(self, stage: str) -> None:
        """Work has begun."""
        self._stage = stage.removesuffix("…")
        self.words.setText(f"{self._stage}…")
        self.bar.set_fraction(None)
        self.setCurrentIndex(1)

    def show_progress(self, done: float, total: float, unit: str, stage: str = "") -> None:
        """How far it is; a new stage begins anew."""
        if stage:
            self.show_waiting(begun(said(stage)))
            return
        self.bar.set_fraction(done / total if total else None)
        amount = amount_words(done, total, unit)
        self.words.setText(" ".join(filter(None, [f"{self._stage}…", amount])))

    def show_sentence(self, title: str, sentence: str, button: str = "") -> None:
        """There is no answer, and why."""
        self.sentence.set_words(title, sentence, button)
        self.setCurrentIndex(2)

    @property
    def waits(self) -> bool:
        """Whether work goes on."""
        return self.currentIndex() == 1
