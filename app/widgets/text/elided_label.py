"""A label that elides its text and shows all of it in its tooltip."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app import theme
from app.widgets.text.directed_text import direction_of

SHORTER = 0.1
"""Of a line: how much of a wrapped text is left out at a time until it fits."""


class ElidedLabel(QLabel):
    """Accepts any width; `mode` says which part is left out. A text may use several `lines`.

    If it would be cut to fewer than `least_letters`, nothing is painted, and the tooltip has it.
    """

    def __init__(
        self,
        text: str = "",
        role: str = "",
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        parent: QWidget | None = None,
        lines: int = 1,
        least_letters: int = 0,
    ) -> None:
        super().__init__(parent)
        self._mode, self._lines, self._least_letters = mode, lines, least_letters
        self._whole = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        if role:
            theme.role(self, role)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Also sets tooltip and accessible name to the full text.

        The text is stored here and not in QLabel, which would lay out the whole window at every change.
        """
        self._whole = text
        self.setToolTip(text)
        self.setAccessibleName(text)
        self.update()

    def text(self) -> str:
        """The full text."""
        return self._whole

    def sizeHint(self) -> QSize:
        """The height of its lines, whatever the text."""
        self.ensurePolished()
        margins = self.contentsMargins()
        return QSize(120, self._lines * self.fontMetrics().height() + margins.top() + margins.bottom())

    def minimumSizeHint(self) -> QSize:
        """A few letters, so that layouts may squeeze it."""
        return QSize(40, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, elided to the current width."""
        area = self.contentsRect()
        flags = int(self.alignment() | Qt.AlignmentFlag.AlignVCenter)
        shown = self.fontMetrics().elidedText(self.text(), self._mode, area.width())
        if shown != self.text() and self._lines > 1:
            flags |= int(Qt.TextFlag.TextWordWrap)
            shown = self._wrapped(area.width())
        if shown != self.text() and len(shown) < self._least_letters:
            return
        with QPainter(self) as painter:
            painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
            painter.setLayoutDirection(direction_of(self.text()))
            painter.drawText(area, flags, shown)

    def _wrapped(self, width: int) -> str:
        """The text in its lines: what wraps leaves some room at the end of each, which long words make much."""
        metrics, room = self.fontMetrics(), float(self._lines * width)
        page, flags = QRect(0, 0, width, 10_000), int(Qt.TextFlag.TextWordWrap)
        shown = metrics.elidedText(self.text(), self._mode, round(room))
        while room > width and metrics.boundingRect(page, flags, shown).height() > self._lines * metrics.lineSpacing():
            room -= max(1.0, SHORTER * width)
            shown = metrics.elidedText(self.text(), self._mode, round(room))
        return shown
