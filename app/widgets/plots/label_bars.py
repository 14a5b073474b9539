"""Bars of labels with their probabilities, most likely first, with the predicted and the actual label marked."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import figure, tr
from app.core.predictions.predicted_row import labels_in
from app.widgets.accessibility import Role
from app.widgets.icon_label import IconButton

ROW, BAR = 30, 6
GUTTER, GAP, VALUE = 22, 10, 58
SHOWN = 10
"""Labels that are shown at once; the rest unfolds."""


@dataclass(frozen=True)
class Bar:
    """One label; `mark` is predicted, right, wrong, actual or nothing."""

    label: str
    probability: float
    mark: str = ""


_COLORS = {"predicted": "accent", "right": "success", "wrong": "danger", "actual": "success", "": "plot_1_raw"}
_ICONS = {"right": ("check", "success"), "wrong": ("close", "danger"), "actual": ("check", "success")}
_WORDS = {"predicted": "", "right": "", "wrong": tr("predicted"), "actual": tr("actual")}


def bars_of(probabilities: Mapping[str, float], prediction: str, actual: str | None) -> list[Bar]:
    """The bars of a row, most likely first; several labels may be predicted and actual."""
    ordered = sorted(probabilities.items(), key=lambda each: -each[1])
    predicted = labels_in(prediction, probabilities)
    right = None if actual is None else labels_in(actual, probabilities)
    return [Bar(label, value, _mark(label, predicted, right)) for label, value in ordered]


def _mark(label: str, predicted: Collection[str], actual: Collection[str] | None) -> str:
    if label in predicted:
        return "predicted" if actual is None else "right" if label in actual else "wrong"
    return "actual" if actual is not None and label in actual else ""


class LabelBars(QWidget):
    """The first labels, including the marked ones whatever their rank, and the rest on request."""

    def __init__(self, name: str = tr("Probabilities"), parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bars: list[Bar] = []
        self._canvas = _Canvas(name)
        self._more = IconButton("", "chevron-down", "quiet")
        self._more.clicked.connect(self._unfold)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self._canvas)
        column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        self.show_bars([])

    def show_bars(self, bars: list[Bar]) -> None:
        """Show these, in this order."""
        self._bars = bars
        few = len(bars) <= SHOWN + 1
        self._canvas.show_bars(bars if few else [bar for place, bar in enumerate(bars) if place < SHOWN or bar.mark])
        self._more.setText(tr("Show all {number}", number=len(bars)))
        self._more.setVisible(not few)

    def visible_bars(self) -> list[Bar]:
        """The bars currently drawn."""
        return self._canvas.bars

    def _unfold(self) -> None:
        self._canvas.show_bars(self._bars)
        self._more.hide()


class _Canvas(QWidget):
    spoken_role = Role.Chart
    hovered = Signal(int)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.bars: list[Bar] = []
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_bars(self, bars: list[Bar]) -> None:
        self.bars = bars
        spoken = (" ".join(filter(None, (bar.label, _percent(bar.probability), bar.mark))) for bar in bars)
        self.setAccessibleDescription(", ".join(spoken))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, ROW * len(self.bars))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, ROW * len(self.bars))

    def _label_width(self) -> int:
        """As wide as the widest label, at most two thirds: the number beside the bar shows the value too."""
        metrics = QFontMetrics(theme.font(13, QFont.Weight.DemiBold))
        widest = max((metrics.horizontalAdvance(bar.label) + _suffix_width(bar) for bar in self.bars), default=0)
        room = self.width() - GUTTER - VALUE - 2 * GAP
        return min(widest + 2, max(60, round(room * 0.67)))

    def paintEvent(self, event: QPaintEvent) -> None:
        label_width, gutter = self._label_width(), GUTTER if any(bar.mark in _ICONS for bar in self.bars) else 0
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for place, bar in enumerate(self.bars):
                if event.rect().intersects(QRectF(0, place * ROW, self.width(), ROW).toRect()):
                    self._paint_bar(painter, bar, place * ROW, gutter, label_width)

    def _paint_bar(self, painter: QPainter, bar: Bar, top: int, gutter: int, label_width: int) -> None:
        if bar.mark in _ICONS:
            painter.drawPixmap(0, top + (ROW - 15) // 2, theme.pixmap(*_ICONS[bar.mark], 15))
        font = theme.font(13, QFont.Weight.DemiBold if bar.mark else QFont.Weight.Normal)
        suffix = _suffix_width(bar)
        metrics = QFontMetrics(font)
        elided = metrics.elidedText(bar.label, Qt.TextElideMode.ElideRight, label_width - suffix)
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.setFont(font)
        painter.setPen(theme.color("text"))
        painter.drawText(QRectF(gutter, top, label_width - suffix, ROW), middle | Qt.AlignmentFlag.AlignLeft, elided)
        if suffix:
            painter.setFont(theme.font(11))
            painter.setPen(theme.color("faint"))
            left = gutter + min(metrics.horizontalAdvance(elided), label_width - suffix) + 6
            painter.drawText(QRectF(left, top, suffix, ROW + 1), middle, _WORDS[bar.mark])
        left = gutter + label_width + GAP
        self._paint_track(painter, bar, QRectF(left, top + (ROW - BAR) / 2, self.width() - left - GAP - VALUE, BAR))
        painter.setFont(theme.font(13, QFont.Weight.DemiBold if bar.mark else QFont.Weight.Normal))
        painter.setPen(theme.color("text" if bar.mark else "muted"))
        value = QRectF(self.width() - VALUE, top, VALUE, ROW)
        painter.drawText(value, middle | Qt.AlignmentFlag.AlignRight, _percent(bar.probability))

    def _paint_track(self, painter: QPainter, bar: Bar, track: QRectF) -> None:
        if track.width() < BAR:
            return
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("track"))
        painter.drawRoundedRect(track, BAR / 2, BAR / 2)
        length = track.width() * min(1.0, max(0.0, bar.probability))
        if bar.probability > 0:
            painter.setBrush(theme.color(_COLORS[bar.mark]))
            painter.drawRoundedRect(QRectF(track.left(), track.top(), max(BAR, length), BAR), BAR / 2, BAR / 2)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            place = event.pos().y() // ROW
            if 0 <= place < len(self.bars):
                QToolTip.showText(
                    event.globalPos(), f"{self.bars[place].label} {figure(self.bars[place].probability, '.6f')}", self
                )
            return True
        return super().event(event)


def _suffix_width(bar: Bar) -> int:
    word = _WORDS.get(bar.mark, "")
    return QFontMetrics(theme.font(11)).horizontalAdvance(word) + 8 if word else 0


def _percent(value: float) -> str:
    return figure(value, ".1%") if value >= 0.0005 or value == 0 else f"< {figure(0.001, '.1%')}"
