"""A small rounded status pill."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.widgets.accessibility import Role

KINDS = {
    "accent": ("accent_text", "accent_soft"),
    "success": ("success", "success_soft"),
    "warning": ("warning", "warning_soft"),
    "danger": ("danger", "danger_soft"),
    "info": ("info", "info_soft"),
    "neutral": ("muted", "divider"),
}
SIGN = 14
"""Pixels of the icon before a word."""
GAP = 5


class Pill(QWidget):
    """Text on a tinted background; `kind` is a key of KINDS. Custom painted, so that it can change often."""

    spoken_role = Role.Indicator

    def __init__(self, text: str = "", kind: str = "neutral", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text, self._kind, self._doubt = text, kind, ""
        theme.give_font(self, 12, QFont.Weight.DemiBold)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(text)

    def text(self) -> str:
        """The displayed text."""
        return self._text

    def kind(self) -> str:
        """The kind that sets its colour."""
        return self._kind

    def set(self, text: str, kind: str = "neutral", doubt: str = "") -> None:
        """Change text and colour; a `doubt` shows a sign before the text, and is explained on request."""
        if (text, kind, doubt) == (self._text, self._kind, self._doubt):
            return
        self._text, self._kind, self._doubt = text, kind, doubt
        self.setAccessibleName(text)
        self.setAccessibleDescription(doubt)
        self.setToolTip(doubt)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """The text with padding on both sides."""
        sign = SIGN + GAP if self._doubt else 0
        return QSize(self.fontMetrics().horizontalAdvance(self._text) + sign + 24, 22)

    def paintEvent(self, event: QPaintEvent) -> None:
        """A filled capsule with centred text."""
        with QPainter(self) as painter:
            paint_pill(painter, self.rect(), self._text, self._kind, with_sign=bool(self._doubt))


def paint_pill(painter: QPainter, area: QRect, text: str, kind: str, *, with_sign: bool = False) -> None:
    """Paint a capsule that fills `area`, with centred text and, before it, the sign of a doubt."""
    ink, ground = KINDS[kind]
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color(ground))
    painter.drawRoundedRect(area, area.height() / 2, area.height() / 2)
    painter.setPen(theme.color(ink))
    if with_sign:
        width = SIGN + GAP + painter.fontMetrics().horizontalAdvance(text)
        left = area.left() + (area.width() - width) // 2
        painter.drawPixmap(left, area.center().y() - SIGN // 2 + 1, theme.pixmap("warning", ink, SIGN))
        area = area.adjusted(left + SIGN + GAP - area.left(), 0, 0, 0)
        painter.drawText(area, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
    else:
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)
