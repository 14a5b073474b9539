"""The layout of a page: header, margins, scroll area, and buttons that adapt to the width."""

from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.widgets.text.elided_label import ElidedLabel

MARGIN, GAP = 24, 14
"""Pixels at the left and right of a page, and between its parts."""
REACH = 12
"""Pixels that the area reaches into the margin at the page's right."""


class PageHeader(QWidget):
    """Title, subtitle, and the page's buttons on the right, in `buttons`."""

    def __init__(self, title: str, subtitle: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = ElidedLabel(title, "title")
        self.subtitle = ElidedLabel(subtitle, "subtitle")
        self.buttons = QHBoxLayout()
        self.buttons.setSpacing(10)
        texts = QVBoxLayout()
        texts.setSpacing(1)
        texts.addWidget(self.title)
        texts.addWidget(self.subtitle)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(14)
        row.addLayout(texts, 1)
        row.addLayout(self.buttons)

    def set_title(self, title: str) -> None:
        """Change the title."""
        self.title.setText(title)

    def set_subtitle(self, subtitle: str) -> None:
        """Change the subtitle."""
        self.subtitle.setText(subtitle)


class PageArea(QScrollArea):
    """A page's scroll area: its scroll bar is in the page's margin, so that cards end where the header ends.

    Put it into a layout that extends REACH pixels further to the right than what is above and below it.
    """

    def __init__(self, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # keys that its controls do not take scroll it all the same
        content.setObjectName("scrolled")
        self.setWidget(content)
        self.verticalScrollBar().rangeChanged.connect(self._make_room)
        self._make_room(0, 0)

    def _make_room(self, low: int, high: int) -> None:
        """The space not used by the scroll bar stays empty."""
        bar = self.verticalScrollBar()
        taken = bar.sizeHint().width() if high > low else 0
        self.setViewportMargins(0, 0, max(0, REACH - taken), 0)


def page_layout(page: QWidget) -> QVBoxLayout:
    """The margins and spacing that every page shares."""
    layout = QVBoxLayout(page)
    layout.setContentsMargins(MARGIN, 20, MARGIN, 20)
    layout.setSpacing(GAP)
    return layout


def scrolling_layout(page: QWidget, *above: QWidget) -> QVBoxLayout:
    """The same for a page with a PageArea, which is added to it, like anything else that extends into the margin."""
    layout = page_layout(page)
    layout.setContentsMargins(MARGIN, 20, MARGIN - REACH, 20)
    column = QVBoxLayout()
    column.setContentsMargins(0, 0, REACH, 0)
    column.setSpacing(GAP)
    for widget in above:
        column.addWidget(widget)
    layout.addLayout(column)
    return layout


def fit_words(words: Mapping[QAbstractButton, str], lack: Callable[[], int]) -> set[QAbstractButton]:
    """Make buttons of a row icon-only, in this order, until they fit; returns those buttons.

    `lack` is the number of pixels missing with the current texts.
    """
    for button, text in words.items():
        button.setText(text)
    wordless: set[QAbstractButton] = set()
    for button in words:
        if lack() <= 0:
            break
        button.setText("")
        wordless.add(button)
    return wordless
