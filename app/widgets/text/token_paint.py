"""Paints the boxes of tokens: one each with a line at its foot, and an outline for what is chosen."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app import theme
from app.core.text.shown_tokens import SPECIAL, UNKNOWN, ShownToken

COLORS = 6
BOX = 21
"""Pixels of a box's height."""
FOOT = 2.0
"""Pixels of the line that marks each token for people who cannot distinguish the colours."""


class TokenPaint:
    """Draws boxes with the colours of one paint."""

    def __init__(self, painter: QPainter, hovered: int, selected: tuple[int, int], current: int) -> None:
        self._painter, self._colors = painter, TokenColors()
        self._hovered, self._selected, self._current = hovered, selected, current
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def paint(self, token: ShownToken, index: int, box: QRectF, *, is_alone: bool) -> None:
        """Draw the box of a token, which is alone unless it is one of a group."""
        painter, colors, number = self._painter, self._colors, index % COLORS
        foot = colors.special_foot if token.kind == SPECIAL else colors.feet[number]
        if token.is_faint:
            painter.setPen(QPen(foot, 1, Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.special if token.kind == SPECIAL else colors.grounds[number])
            if is_alone:
                painter.drawRoundedRect(box, 4, 4)
            else:
                painter.drawRect(box.adjusted(0.5, 0, -0.5, 0))
            # A line at the foot: colours alone would not show everybody where a token ends.
            painter.setBrush(colors.unknown if token.kind == UNKNOWN else foot)
            painter.drawRoundedRect(QRectF(box.left() + 1, box.bottom() - FOOT, box.width() - 2, FOOT), 1, 1)
        is_current = index == self._current
        if is_current or index == self._hovered or self._selected[0] <= index < self._selected[1]:
            painter.setPen(colors.focus if is_current else colors.outline)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 4, 4)


class TokenColors:
    """The colours of one paint."""

    def __init__(self) -> None:
        self.ink, quiet = theme.color("token_text"), theme.color("token_special_text")
        self.special, self.unknown = theme.color("token_special"), theme.color("danger")
        self.grounds = [theme.color(f"token_{number}") for number in range(COLORS)]
        self.feet = [_towards(ground, self.ink) for ground in self.grounds]
        self.special_foot = _towards(self.special, quiet)
        self.outline, self.focus = QPen(theme.color("focus"), 1.5), QPen(theme.color("focus"), 2.4)


def _towards(ground: QColor, ink: QColor, part: float = 0.42) -> QColor:
    def mix(one: int, other: int) -> int:
        return round(one + (other - one) * part)

    return QColor(mix(ground.red(), ink.red()), mix(ground.green(), ink.green()), mix(ground.blue(), ink.blue()))
