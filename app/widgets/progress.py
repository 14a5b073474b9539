"""Progress of long work: a thin bar, a line with a stop button, and a stack that shows it until an answer comes."""

import time

from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLayout,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core.backend_words import capitalize, translate_word
from app.core.i18n import group_digits, tr
from app.core.progress import WorkStage
from app.widgets.accessibility import Role
from app.widgets.boxes import hbox, holder
from app.widgets.card import label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.protocol import Progress


class ThinProgressBar(QWidget):
    """Can be updated at any rate. Shows a fraction from 0 to 1; for None (unknown), a segment moves back and forth."""

    spoken_role = Role.ProgressBar

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fraction: float | None = 0.0
        self._token = "accent"
        self._phase = 0.0
        self._timer = QTimer(self, interval=50)
        self._timer.timeout.connect(self._wander)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Progress"))

    def fraction(self) -> float | None:
        """The fraction shown."""
        return self._fraction

    def set_fraction(self, fraction: float | None, token: str = "accent") -> None:
        """Show another fraction in the colour `token`; repaints only if a pixel changes."""
        bounded = None if fraction is None else min(1.0, max(0.0, fraction))
        if (bounded, token) == (self._fraction, self._token):
            return
        self._fraction, self._token = bounded, token
        self.setAccessibleDescription("" if bounded is None else f"{bounded:.0%}")
        self._follow_visibility()
        self.update()

    def sizeHint(self) -> QSize:
        """Six pixels high."""
        return QSize(120, 6)

    def showEvent(self, event) -> None:
        """Animate only while visible."""
        super().showEvent(event)
        self._follow_visibility()

    def hideEvent(self, event) -> None:
        """Pause while hidden."""
        super().hideEvent(event)
        self._timer.stop()

    def _follow_visibility(self) -> None:
        if self._fraction is None and self.isVisible():
            self._timer.start()
        else:
            self._timer.stop()

    def _wander(self) -> None:
        self._phase = (self._phase + 0.02) % 1.0
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """A track and its filled part."""
        width, height = self.width(), self.height()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("track"))
            painter.drawRoundedRect(self.rect(), height / 2, height / 2)
            painter.setBrush(theme.color(self._token))
            if self._fraction is None:
                piece = QRectF((self._phase * 1.3 - 0.3) * width, 0, 0.3 * width, height)
            else:
                piece = QRectF(0, 0, self._fraction * width, height)
            if piece.width() > 0:
                painter.drawRoundedRect(piece.intersected(QRectF(self.rect())), height / 2, height / 2)


class ActivityLine(QFrame):
    """Hidden until `begin`; `stopped` is emitted by its button."""

    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.role(self, "card")
        self.title = label("", "strong")
        self.detail = ElidedLabel("", "muted")
        self.bar = ThinProgressBar()
        self.stop = QPushButton(tr("Stop"))
        self.stop.clicked.connect(self.stopped)
        words = QHBoxLayout()
        words.setSpacing(12)
        words.addWidget(self.title)
        words.addWidget(self.detail, 1)
        texts = QVBoxLayout()
        texts.setSpacing(6)
        texts.addLayout(words)
        texts.addWidget(self.bar)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 8, 10, 8)
        row.setSpacing(14)
        row.addLayout(texts, 1)
        row.addWidget(self.stop)
        self.hide()

    def begin(self, title: str, can_stop: bool = True) -> None:
        """Show that something has started."""
        self.title.setText(title)
        self.show_progress("", None)
        self.stop.setVisible(can_stop)
        self.stop.setAccessibleName(tr("Stop: {title}", title=title))
        self.show()

    def show_progress(self, detail: str, fraction: float | None) -> None:
        """Show the progress; no fraction if it is unknown."""
        self.detail.setText(detail)
        self.bar.set_fraction(fraction)

    def end(self) -> None:
        """Show that it is over."""
        self.hide()


class WorkRow(QWidget):
    """The progress of work in several stages, with its time; `stop` is its button."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._stage = WorkStage("", 0)
        self._clock = QTimer(self, interval=1000)
        self._clock.timeout.connect(self._show_words)
        self.words, self.bar = ElidedLabel("", "muted"), ThinProgressBar()
        self.stop = IconButton(tr("Stop"), "stop")
        hbox((self.words, 3), (self.bar, 1), self.stop, spacing=10, parent=self)

    def begin(self, words: str) -> None:
        """Work has started."""
        self._stage = WorkStage(words, time.monotonic())
        self.bar.set_fraction(None)
        self._show_words()
        self._clock.start()

    def show_progress(self, progress: Progress) -> None:
        """Show the progress; the time keeps counting even without further reports."""
        self.bar.set_fraction(progress.done / progress.total if progress.total else None)
        self._stage.report(progress, time.monotonic())
        self._show_words()

    def end(self) -> None:
        """Show that it is over."""
        self._clock.stop()

    def _show_words(self) -> None:
        self.words.setText(self._stage.words(time.monotonic()))


class WorkStack(QStackedWidget):
    """A button that starts work; its progress takes the button's place while the work is running."""

    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.work = WorkRow()
        self.work.stop.clicked.connect(self.stopped)

    def hold(self, row: QLayout) -> None:
        """Show this while no work is running."""
        self.addWidget(holder(row))
        self.addWidget(self.work)

    @property
    def works(self) -> bool:
        """Whether work is running."""
        return self.currentIndex() == 1

    def begin(self, words: str) -> None:
        """Work has started."""
        self.work.begin(words)
        self.setCurrentIndex(1)
        self.work.stop.setFocus()

    def end(self) -> None:
        """It is over."""
        self.work.end()
        self.setCurrentIndex(0)


def amount_words(done: float, total: float, unit: str) -> str:
    """`1 200 of 8 000 rows`; empty before the first."""
    if not done:
        return ""
    if not total:
        return f"{group_digits(done)} {translate_word(unit)}".rstrip()
    return tr("{done:,.0f} of {total:,.0f} {unit}", done=done, total=total, unit=translate_word(unit)).rstrip()


class WaitingStack(QStackedWidget):
    """Replaces an answer: shows `content`, or running work, or a sentence with what to do."""

    stopped = Signal()
    again = Signal()

    def __init__(self, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.content = content
        self.words, self.bar = label("", "muted"), ThinProgressBar()
        self.stop = IconButton(tr("Stop"), "stop")
        self.stop.clicked.connect(self.stopped)
        self.sentence = EmptyState("table", "")
        self.sentence.action_clicked.connect(self.again)
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
        """Show the answer."""
        self.setCurrentIndex(0)

    def show_waiting(self, stage: str) -> None:
        """Show that work has started."""
        self._stage = stage.removesuffix("…")
        self.words.setText(f"{self._stage}…")
        self.bar.set_fraction(None)
        self.setCurrentIndex(1)

    def show_progress(self, done: float, total: float, unit: str, stage: str = "") -> None:
        """Show the progress; a new stage starts at zero."""
        if stage:
            self.show_waiting(capitalize(translate_word(stage)))
            return
        self.bar.set_fraction(done / total if total else None)
        amount = amount_words(done, total, unit)
        self.words.setText(" ".join(filter(None, [f"{self._stage}…", amount])))

    def show_sentence(self, title: str, sentence: str, button: str = "") -> None:
        """Show why there is no answer."""
        self.sentence.set_words(title, sentence, button)
        self.setCurrentIndex(2)

    @property
    def waits(self) -> bool:
        """Whether work is running."""
        return self.currentIndex() == 1
