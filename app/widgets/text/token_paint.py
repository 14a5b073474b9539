"""Owns how tokens look: a box each with a line at its foot, the text of several that form one character drawn once."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen, QStaticText
from PySide6.QtWidgets import QWidget

from app import theme
from app.core.text import bidirectional, invisible_characters
from app.core.text.token_boxes import SPECIAL, UNKNOWN
from app.widgets.text.token_layout import MARGIN, PAD, SPACE, Place, TokenLayout

COLORS = 6
LINE, BOX = 27, 21
FOOT = 2.0
"""Pixels of the line that marks each token for those who cannot tell the colours apart."""
_KEPT = 20_000
_JOINER = "\u200d"


class TokenPaint:
    """Draws the visible lines of a TokenLayout."""

    def __init__(self, font: QFont, layout: TokenLayout) -> None:
        self._font, self._layout = font, layout
        self._metrics = QFontMetricsF(font)
        self._small = theme.font(11, QFont.Weight.DemiBold)
        self.drawn: dict[str, QStaticText] = {}

    def forget(self) -> None:
        """Texts may be other ones now."""
        if len(self.drawn) > _KEPT:
            self.drawn.clear()

    def paint(
        self, viewport: QWidget, top: int, hovered: int, selected: tuple[int, int], whitespace: bool, current: int
    ) -> None:
        """Everything between the viewport's edges; `top` is how far it is scrolled."""
        layout = self._layout
        first = max(0, (top - MARGIN) // LINE)
        last = min(layout.line_count(), (top + viewport.height()) // LINE + 1)
        self._whitespace, self._width = whitespace, viewport.width()
        self._colors = _Colors()
        with QPainter(viewport) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setFont(self._font)
            for line in range(first, last):
                y = MARGIN + line * LINE - top
                places = layout.places(line)
                for place in places:
                    marked = place.index == hovered or selected[0] <= place.index < selected[1]
                    self._box(painter, place, y, marked, place.index == current)
                self._texts(painter, places, y)
                if not places:
                    self._caption(painter, line, y)

    def _box(self, painter: QPainter, place: Place, y: float, marked: bool, current: bool) -> None:
        boxes, colors = self._layout.boxes, self._colors
        if place.index >= len(boxes):
            return
        box = QRectF(place.left, y, place.width, BOX)
        kind, number = int(boxes.kind[place.index]), place.index % COLORS
        ground = colors.special if kind == SPECIAL else colors.grounds[number]
        foot = colors.special_foot if kind == SPECIAL else colors.feet[number]
        faint = bool(boxes.faint[place.index])
        painter.setPen(Qt.PenStyle.NoPen)
        if faint:
            painter.setPen(QPen(foot, 1, Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        else:
            painter.setBrush(ground)
            self._rounded(painter, box, place.index)
            # A line at the foot: colours alone would not show everybody where a token ends.
            painter.setBrush(colors.unknown if kind == UNKNOWN else foot)
            painter.drawRoundedRect(QRectF(box.left() + 1, box.bottom() - FOOT, box.width() - 2, FOOT), 1, 1)
        if marked or current:
            painter.setPen(colors.outline if not current else colors.focus)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 4, 4)

    def _rounded(self, painter: QPainter, box: QRectF, index: int) -> None:
        linked = self._layout.boxes.linked
        goes_on = index + 1 < len(linked) and linked[index + 1]
        if linked[index] or goes_on:
            painter.drawRect(box.adjusted(0.5, 0, -0.5, 0))
        else:
            painter.drawRoundedRect(box, 4, 4)

    def _texts(self, painter: QPainter, places: list[Place], y: float) -> None:
        boxes, at = self._layout.boxes, 0
        while at < len(places):
            place = places[at]
            self._gap(painter, place, y)
            if place.index >= len(boxes):
                return
            first, last = boxes.group(place.index)
            members = places[at : at + last - first]
            left, right = min(one.left for one in members), max(one.left + one.width for one in members)
            is_special = int(boxes.kind[first]) == SPECIAL
            painter.setPen(
                self._colors.quiet if is_special else self._colors.faint if boxes.faint[first] else self._colors.ink
            )
            made = self._static(self._shown(first, last))
            x = left + PAD if last - first == 1 else (left + right - made.size().width()) / 2
            painter.drawStaticText(QPointF(x, y + (BOX - made.size().height()) / 2), made)
            at += last - first

    def _shown(self, first: int, last: int) -> str:
        text = self._layout.boxes.shown(first, last)
        shown = invisible_characters.visible(text, self._whitespace)
        if text and bidirectional.direction(text) == bidirectional.RIGHT and first not in self._layout.boxes.labels:
            # Letters keep the form that they have in the whole word.
            source, begin = self._layout.boxes.source, int(self._layout.boxes.start[first])
            end = begin + len(text)
            before = begin > 0 and source[begin - 1].isalpha() and text[0].isalpha()
            after = end < len(source) and source[end].isalpha() and text[-1].isalpha()
            shown = f"{_JOINER * before}{shown}{_JOINER * after}"
        return shown

    def _gap(self, painter: QPainter, place: Place, y: float) -> None:
        text = self._layout.shown_gap(place.index)
        if text:
            made = self._static(invisible_characters.visible(text, self._whitespace))
            is_tail = place.index >= len(self._layout.boxes)
            x = place.left if is_tail else place.left - made.size().width() - SPACE / 2
            painter.setPen(self._colors.faint)
            painter.drawStaticText(QPointF(x, y + (BOX - made.size().height()) / 2), made)

    def _caption(self, painter: QPainter, line: int, y: float) -> None:
        words = self._layout.caption(line)
        if words:
            painter.save()
            painter.setFont(self._small)
            painter.setPen(self._colors.faint)
            area = QRectF(MARGIN, y, self._width - 2 * MARGIN, BOX)
            painter.drawText(area, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)
            painter.restore()

    def _static(self, text: str) -> QStaticText:
        made = self.drawn.get(text)
        if made is None:
            if len(self.drawn) > _KEPT:
                self.drawn.clear()
            made = self.drawn[text] = QStaticText(text)
            made.setTextFormat(Qt.TextFormat.PlainText)
            made.prepare(font=self._font)
        return made


class _Colors:
    """Those of one paint."""

    def __init__(self) -> None:
        self.ink, self.quiet = theme.color("token_text"), theme.color("token_special_text")
        self.faint = theme.color("faint")
        self.special, self.unknown = theme.color("token_special"), theme.color("danger")
        self.grounds = [theme.color(f"token_{number}") for number in range(COLORS)]
        self.feet = [_towards(ground, self.ink) for ground in self.grounds]
        self.special_foot = _towards(self.special, self.quiet)
        self.outline, self.focus = QPen(theme.color("focus"), 1.5), QPen(theme.color("focus"), 2.4)


def _towards(ground: QColor, ink: QColor, part: float = 0.42) -> QColor:
    def mixed(one: int, other: int) -> int:
        return round(one + (other - one) * part)

    return QColor(mixed(ground.red(), ink.red()), mixed(ground.green(), ink.green()), mixed(ground.blue(), ink.blue()))
