"""Small groups of bars, such as two tokenizers per measure, with their numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.widgets.accessibility import Role

TITLE, ROW, BAR, GAP = 22, 20, 8, 12
NAME, VALUE = 96, 60
TOKENS = ("plot_1", "plot_2", "plot_3", "plot_4")


@dataclass(frozen=True)
class Group:
    """One measure: a number per name, as drawn and as text."""

    title: str
    values: Sequence[float | None]
    """None has no bar."""
    words: Sequence[str]
    most: float = 0
    """What fills a bar; 0 for the largest number."""


class PairedBars(QWidget):
    """Each group has its own scale, from zero to its `most`."""

    spoken_role = Role.Chart

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._names: Sequence[str] = ()
        self._groups: Sequence[Group] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_groups(self, names: Sequence[str], groups: Sequence[Group]) -> None:
        """Show other bars; `names` label them, the same in every group."""
        self._names, self._groups = names, groups
        lines = [
            f"{group.title}: {', '.join(f'{name} {words}' for name, words in zip(names, group.words, strict=True))}"
            for group in groups
        ]
        self.setAccessibleDescription("; ".join(lines))
        self.setFixedHeight(self.sizeHint().height())
        self.update()

    def sizeHint(self) -> QSize:
        """The height of all groups."""
        each = TITLE + ROW * len(self._names) + GAP
        return QSize(320, max(0, each * len(self._groups) - GAP))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint a title, then a name, a bar and a number for each."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            top = 0.0
            for group in self._groups:
                painter.setFont(theme.font(12))
                painter.setPen(theme.color("text"))
                painter.drawText(QRectF(0, top, self.width(), TITLE), Qt.AlignmentFlag.AlignVCenter, group.title)
                top += TITLE
                for place in range(len(self._names)):
                    self._paint_bar(painter, group, place, top)
                    top += ROW
                top += GAP

    def _paint_bar(self, painter: QPainter, group: Group, place: int, top: float) -> None:
        room = max(0.0, self.width() - NAME - VALUE)
        largest = group.most or max((value or 0 for value in group.values), default=0) or 1.0
        middle = top + (ROW - BAR) / 2
        painter.setPen(theme.color("muted"))
        name = painter.fontMetrics().elidedText(self._names[place], Qt.TextElideMode.ElideMiddle, NAME - 10)
        painter.drawText(QRectF(0, top, NAME, ROW), Qt.AlignmentFlag.AlignVCenter, name)
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(QRectF(self.width() - VALUE, top, VALUE, ROW), right, group.words[place])
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("track"))
        painter.drawRoundedRect(QRectF(NAME, middle, room, BAR), BAR / 2, BAR / 2)
        value = group.values[place]
        if value is None:
            return
        painter.setBrush(theme.color(TOKENS[place % len(TOKENS)]))
        width = max(BAR, room * value / largest) if room else 0.0
        painter.drawRoundedRect(QRectF(NAME, middle, width, BAR), BAR / 2, BAR / 2)
