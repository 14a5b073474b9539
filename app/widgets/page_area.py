"""Owns the area in which a page scrolls: its bar stands in the page's margin, so that cards end where the header ends."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QScrollArea, QWidget

REACH = 12
"""Pixels that the area reaches into the margin at the page's right."""


class PageArea(QScrollArea):
    """Put it into a layout that reaches REACH further to the right than what stands above and below it."""

    def __init__(self, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # keys that its controls do not take scroll it all the same
        content.setObjectName("scrolled")
        self.setWidget(content)
        self.verticalScrollBar().rangeChanged.connect(self._make_room)
        self._make_room(0, 0)

    def _make_room(self, low: int, high: int) -> None:
        """What the bar does not take stays empty."""
        bar = self.verticalScrollBar()
        taken = bar.sizeHint().width() if high > low else 0
        self.setViewportMargins(0, 0, max(0, REACH - taken), 0)
