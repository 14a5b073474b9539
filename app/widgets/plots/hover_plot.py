"""Owns how a drawn plot answers the mouse: the part under it is told in words and painted otherwise."""

from typing import Any

from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QToolTip, QWidget


class HoverPlot(QWidget):
    """A part is whatever the plot knows it by: the place of a bar or dot, the row and column of a cell."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._hovered: Any = None
        self.setMouseTracking(True)

    def part_at(self, place: QPointF) -> Any:
        """The part under a place, None where there is none."""
        raise NotImplementedError

    def words_of(self, part: Any) -> str:
        """What a part says of itself."""
        raise NotImplementedError

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Say what the part under the mouse is."""
        part = self.part_at(event.position())
        if part == self._hovered:
            return
        self._hovered = part
        self.setCursor(Qt.CursorShape.ArrowCursor if part is None else Qt.CursorShape.PointingHandCursor)
        QToolTip.showText(event.globalPosition().toPoint(), "" if part is None else self.words_of(part), self)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        """The hover ends."""
        self._hovered = None
        self.update()
