"""Owns the line for a path: while nobody types, it shows the end of what is too long for it."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QLineEdit, QStyle, QStyleOptionFrame

MARGIN = 4
"""Pixels between the style's contents and the text, as QLineEdit has them."""


class PathLine(QLineEdit):
    """The name at the end tells paths apart; their beginnings are alike."""

    left_out = Qt.TextElideMode.ElideLeft

    def paintEvent(self, event: QPaintEvent) -> None:
        """The shortened text unless it fits or is being written."""
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        area = self.style().subElementRect(QStyle.SubElement.SE_LineEditContents, option, self)
        room = area.width() - 2 * MARGIN
        if self.hasFocus() or self.fontMetrics().horizontalAdvance(self.text()) <= room:
            super().paintEvent(event)
            return
        shown = self.fontMetrics().elidedText(self.text(), self.left_out, room)
        with QPainter(self) as painter:
            self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelLineEdit, option, painter, self)
            painter.setPen(self.palette().color(QPalette.ColorRole.Text))
            painter.drawText(area.adjusted(MARGIN, 0, -MARGIN, 0), int(Qt.AlignmentFlag.AlignVCenter), shown)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Nobody types any more."""
        super().focusOutEvent(event)
        self.update()
