"""Owns the small rounded status pill."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.widgets.spoken_role import Role

KINDS = {
    "accent": ("accent_text", "accent_soft"),
    "success": ("success", "success_soft"),
    "warning": ("warning", "warning_soft"),
    "danger": ("danger", "danger_soft"),
    "info": ("info", "info_soft"),
    "neutral": ("muted", "divider"),
}


class Pill(QWidget):
    """A word on a soft background; `kind` is a key of KINDS. Painted, so that it may change often."""

    spoken_role = Role.Indicator

    def __init__(self, text: str = "", kind: str = "neutral", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text, self._kind = text, kind
        theme.give_font(self, 12, QFont.Weight.DemiBold)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(text)

    def text(self) -> str:
        """The word shown."""
        return self._text

    def kind(self) -> str:
        """The kind that colours it."""
        return self._kind

    def set(self, text: str, kind: str = "neutral") -> None:
        """Change word and colour."""
        if (text, kind) == (self._text, self._kind):
            return
        self._text, self._kind = text, kind
        self.setAccessibleName(text)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """The word with room at both ends."""
        return QSize(self.fontMetrics().horizontalAdvance(self._text) + 24, 22)

    def paintEvent(self, event: QPaintEvent) -> None:
        """A filled capsule with the word in its middle."""
        ink, ground = KINDS[self._kind]
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(ground))
            painter.drawRoundedRect(self.rect(), self.height() / 2, self.height() / 2)
            painter.setPen(theme.color(ink))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._text)
