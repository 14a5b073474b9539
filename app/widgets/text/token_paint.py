"""Paints tokens: one box each with a line below, and the text of several that form one character drawn once."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen, QTextCharFormat
from PySide6.QtWidgets import QWidget

from app import theme
from app.core.text.token_boxes import SPECIAL, UNKNOWN, TokenBoxes
from app.widgets.text.token_paragraphs import BOX, LINE, MARGIN, PAD, Place, TokenParagraphs

COLORS = 6
FOOT = 2.0
"""Pixels of the line that marks each token for people who cannot distinguish the colours."""


class TokenPaint:
    """Draws the visible lines of paragraphs."""

    def __init__(self, viewport: QWidget, hovered: int, selected: tuple[int, int], current: int) -> None:
        self._viewport, self._colors = viewport, TokenColors()
        self._hovered, self._selected, self._current = hovered, selected, current

    def paint(self, paragraphs: TokenParagraphs, top: int) -> None:
        """Paint everything inside the viewport; `top` is the scroll position."""
        first, last = max(0, (top - MARGIN) // LINE), (top + self._viewport.height()) // LINE
        area, colors = QRectF(self._viewport.rect()), self._colors
        inks = {name: QTextCharFormat() for name in ("special", "faint")}
        inks["special"].setForeground(colors.quiet)
        inks["faint"].setForeground(colors.faint)
        with QPainter(self._viewport) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for begin, caption, paragraph in paragraphs.paragraphs_between(first, last):
                y = MARGIN + begin * LINE - top
                if caption:
                    self._caption(painter, caption, y - LINE)
                if paragraph is None:
                    continue
                for number, places in enumerate(paragraph.lines[: last + 1 - begin]):
                    for place in places if begin + number >= first else []:
                        self._box(painter, paragraphs.boxes, place, y + number * LINE)
                painter.setPen(colors.ink)
                paragraph.layout.draw(painter, QPointF(MARGIN + PAD, y), paragraph.formats(inks), area)

    def _box(self, painter: QPainter, boxes: TokenBoxes, place: Place, y: float) -> None:
        colors, index = self._colors, place.index
        box = QRectF(place.left, y, place.width, BOX)
        kind, number = int(boxes.kind[index]), index % COLORS
        foot = colors.special_foot if kind == SPECIAL else colors.feet[number]
        if boxes.faint[index]:
            painter.setPen(QPen(foot, 1, Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.special if kind == SPECIAL else colors.grounds[number])
            if boxes.linked[index] or (index + 1 < len(boxes) and boxes.linked[index + 1]):
                painter.drawRect(box.adjusted(0.5, 0, -0.5, 0))
            else:
                painter.drawRoundedRect(box, 4, 4)
            # A line at the foot: colours alone would not show everybody where a token ends.
            painter.setBrush(colors.unknown if kind == UNKNOWN else foot)
            painter.drawRoundedRect(QRectF(box.left() + 1, box.bottom() - FOOT, box.width() - 2, FOOT), 1, 1)
        is_current = index == self._current
        if is_current or index == self._hovered or self._selected[0] <= index < self._selected[1]:
            painter.setPen(colors.focus if is_current else colors.outline)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 4, 4)

    def _caption(self, painter: QPainter, words: str, y: float) -> None:
        painter.save()
        painter.setFont(theme.font(11, QFont.Weight.DemiBold))
        painter.setPen(self._colors.faint)
        area = QRectF(MARGIN, y, self._viewport.width() - 2 * MARGIN, BOX)
        painter.drawText(area, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)
        painter.restore()


class TokenColors:
    """The colours of one paint."""

    def __init__(self) -> None:
        self.ink, self.quiet = theme.color("token_text"), theme.color("token_special_text")
        self.faint = theme.color("faint")
        self.special, self.unknown = theme.color("token_special"), theme.color("danger")
        self.grounds = [theme.color(f"token_{number}") for number in range(COLORS)]
        self.feet = [_towards(ground, self.ink) for ground in self.grounds]
        self.special_foot = _towards(self.special, self.quiet)
        self.outline, self.focus = QPen(theme.color("focus"), 1.5), QPen(theme.color("focus"), 2.4)


def _towards(ground: QColor, ink: QColor, part: float = 0.42) -> QColor:
    def mix(one: int, other: int) -> int:
        return round(one + (other - one) * part)

    return QColor(mix(ground.red(), ink.red()), mix(ground.green(), ink.green()), mix(ground.blue(), ink.blue()))
