"""A number line with a predicted and an actual number, and the distance between them."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import figure, tr
from app.widgets.accessibility import Role

HEIGHT, LINE, DOT = 112, 56, 7
MARGIN = 14


class NumberScale(QWidget):
    """The range is that of all rows, extended if a number is outside."""

    spoken_role = Role.Chart

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._predicted: float | None = None
        self._actual: float | None = None
        self._low, self._high = 0.0, 1.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Predicted and actual value"))

    def show_numbers(
        self, predicted: float | None, actual: float | None, bounds: tuple[float, float] | None = None
    ) -> None:
        """Show both on the range of `bounds`, or on one around them."""
        self._predicted, self._actual = predicted, actual
        numbers = [number for number in (predicted, actual, *(bounds or ())) if number is not None]
        self._low, self._high = min(numbers, default=0.0), max(numbers, default=1.0)
        if self._low == self._high:
            room = max(1.0, abs(self._low) / 2)
            self._low, self._high = self._low - room, self._high + room
        spoken = [tr("predicted {short}", short=_short(predicted)) if predicted is not None else ""]
        spoken += (
            [tr("actual {short}, error {short_2}", short=_short(actual), short_2=_short(self.error()))]
            if actual is not None
            else []
        )
        self.setAccessibleDescription(", ".join(filter(None, spoken)))
        self.update()

    def error(self) -> float | None:
        """Predicted minus actual."""
        return None if self._predicted is None or self._actual is None else self._predicted - self._actual

    def sizeHint(self) -> QSize:
        """One line with text above and below."""
        return QSize(240, HEIGHT)

    def x_of(self, number: float) -> float:
        """The x position of a number."""
        share = (number - self._low) / (self._high - self._low)
        return MARGIN + share * (self.width() - 2 * MARGIN)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint range, error, both dots, and their text: predicted above, actual below."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme.color("track"), 4, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            painter.drawLine(QPointF(MARGIN, LINE), QPointF(self.width() - MARGIN, LINE))
            self._paint_range(painter)
            if self._predicted is not None and self._actual is not None:
                painter.setPen(QPen(theme.color("warning"), 4))
                painter.drawLine(QPointF(self.x_of(self._predicted), LINE), QPointF(self.x_of(self._actual), LINE))
            if self._actual is not None:
                self._paint_dot(
                    painter, self._actual, "success", tr("actual {short}", short=_short(self._actual)), LINE + 11
                )
            if self._predicted is not None:
                self._paint_dot(
                    painter,
                    self._predicted,
                    "accent",
                    tr("predicted {short}", short=_short(self._predicted)),
                    LINE - 31,
                )

    def _paint_range(self, painter: QPainter) -> None:
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("faint"))
        area = QRectF(MARGIN - DOT, LINE + 34, self.width() - 2 * MARGIN + 2 * DOT, 18)
        painter.drawText(area, Qt.AlignmentFlag.AlignLeft, _short(self._low))
        painter.drawText(area, Qt.AlignmentFlag.AlignRight, _short(self._high))

    def _paint_dot(self, painter: QPainter, number: float, token: str, words: str, top: float) -> None:
        x = self.x_of(number)
        painter.setPen(QPen(theme.color("card"), 2))
        painter.setBrush(theme.color(token))
        painter.drawEllipse(QPointF(x, LINE), DOT, DOT)
        font = theme.font(12, QFont.Weight.DemiBold)
        width = QFontMetrics(font).horizontalAdvance(words) + 4
        left = min(max(0.0, x - width / 2), self.width() - width)
        painter.setFont(font)
        painter.setPen(theme.color("accent_text" if token == "accent" else token))
        painter.drawText(QRectF(left, top, width, 20), Qt.AlignmentFlag.AlignCenter, words)


def _short(number: float | None) -> str:
    return "–" if number is None else figure(number, ".4g")
