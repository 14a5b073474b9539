"""Owns the top of every page: title, one line below it, and the page's buttons at the right."""

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.widgets.card import label
from app.widgets.elided_label import ElidedLabel


class PageHeader(QWidget):
    """Put buttons and pills into `buttons`."""

    def __init__(self, title: str, subtitle: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = label(title, "title")
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


def page_layout(page: QWidget) -> QVBoxLayout:
    """The margins and spacing that every page shares."""
    layout = QVBoxLayout(page)
    layout.setContentsMargins(24, 20, 24, 20)
    layout.setSpacing(14)
    return layout
