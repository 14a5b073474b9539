"""Owns the thin progress bar that may be updated at any rate."""

from PySide6.QtCore import QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.spoken_role import Role


class ThinProgressBar(QWidget):
    """Shows a fraction from 0 to 1; None means that the amount of work is unknown and a piece wanders."""

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
        """What is shown."""
        return self._fraction

    def set_fraction(self, fraction: float | None, token: str = "accent") -> None:
        """Show another fraction in the colour `token`; nothing is painted unless a pixel changes."""
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
        """Wander only while seen."""
        super().showEvent(event)
        self._follow_visibility()

    def hideEvent(self, event) -> None:
        """Rest while hidden."""
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
