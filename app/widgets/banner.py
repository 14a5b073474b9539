"""Owns the coloured line that tells of a mistake or a warning inside a page."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app import theme
from app.widgets.card import label
from app.widgets.icon_label import IconLabel

_LOOK = {"info": "info", "success": "success", "warning": "warning", "error": "danger"}
_ICON = {"info": "info", "success": "check", "warning": "warning", "error": "error"}

NARROWEST = 120
"""Pixels of the text."""


class Banner(QFrame):
    """Hidden until `show_message(kind, text)`; kind is info, success, warning or error."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon = IconLabel("info", "info", 18)
        self._text = label("", wrap=True, selectable=True)
        self._text.setMinimumWidth(NARROWEST)  # of a long text Qt would want half a page
        self.buttons = QHBoxLayout()
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 9, 12, 9)
        row.setSpacing(10)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._text, 1)
        row.addLayout(self.buttons)
        self.hide()

    def text(self) -> str:
        """The sentence shown."""
        return self._text.text()

    def show_message(self, kind: str, text: str) -> None:
        """Show one sentence; empty text hides the banner."""
        theme.role(self, f"banner-{kind}")
        self._icon.set_icon(_ICON[kind], _LOOK[kind])
        self._text.setText(text)
        self.setAccessibleName(text)
        self.setVisible(bool(text))

    def clear(self) -> None:
        """Hide the banner."""
        self.show_message("info", "")
