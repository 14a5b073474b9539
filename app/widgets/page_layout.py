"""Owns the top of every page: title, one line below it, and the page's buttons at the right."""

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.widgets import page_area
from app.widgets.text.elided_label import ElidedLabel


class PageHeader(QWidget):
    """Put buttons and pills into `buttons`."""

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
        """Change the line below the title."""
        self.subtitle.setText(subtitle)


MARGIN, GAP = 24, 14
"""Pixels at the left and right of a page, and between its parts."""


def page_layout(page: QWidget) -> QVBoxLayout:
    """The margins and spacing that every page shares."""
    layout = QVBoxLayout(page)
    layout.setContentsMargins(MARGIN, 20, MARGIN, 20)
    layout.setSpacing(GAP)
    return layout


def scrolling_layout(page: QWidget, *above: QWidget) -> QVBoxLayout:
    """The same for a page with a PageArea, which is added to it, as is all that reaches as far into the margin."""
    layout = page_layout(page)
    layout.setContentsMargins(MARGIN, 20, MARGIN - page_area.REACH, 20)
    column = QVBoxLayout()
    column.setContentsMargins(0, 0, page_area.REACH, 0)
    column.setSpacing(GAP)
    for widget in above:
        column.addWidget(widget)
    layout.addLayout(column)
    return layout
