"""A colored banner for an error or a warning inside a page."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app import theme
from app.core.backend_messages import translate_message
from app.core.setting_titles import in_titles
from app.widgets.boxes import hbox, vbox
from app.widgets.card import label
from app.widgets.icon_label import IconButton, IconLabel
from backend.contract.errors import Fix

_STYLES = {"info": "info", "success": "success", "warning": "warning", "error": "danger"}
_ICON = {"info": "info", "success": "check", "warning": "warning", "error": "error"}

NARROWEST = 120
"""Pixels of the text."""


class Banner(QFrame):
    """Hidden until `show_message(kind, text)`; kind is info, success, warning or error."""

    fix_taken = Signal(dict)
    """Dotted keys of the spec and their values, which a person wants to be changed."""

    def __init__(self, parent: QWidget | None = None, *, is_narrow: bool = False) -> None:
        """In a narrow place the buttons are below the text."""
        super().__init__(parent)
        self._icon = IconLabel("info", "info", 18)
        self._text = label("", wrap=True, selectable=True)
        self._text.setMinimumWidth(NARROWEST)  # of a long text Qt would want half a page
        self._fix = Fix("")
        self.fix = IconButton("", "check", "quiet")
        self.fix.clicked.connect(lambda: self.fix_taken.emit(dict(self._fix.changes)))
        self.fix.hide()
        self.buttons = QHBoxLayout()
        self.buttons.addWidget(self.fix)
        # The icon is beside the first line, and both are in the middle of higher buttons.
        words = hbox((vbox(self._icon, 1), 0), (self._text, 1), spacing=10)
        if is_narrow:
            vbox(words, hbox(1, self.buttons), spacing=4, margins=(12, 9, 8, 6), parent=self)
        else:
            hbox((vbox(1, words, 1), 1), self.buttons, spacing=10, margins=(12, 9, 12, 9), parent=self)
        self.hide()

    def text(self) -> str:
        """The sentence shown."""
        return self._text.text()

    def show_message(self, kind: str, text: str) -> None:
        """Show one sentence, with setting titles instead of keys; empty text hides the banner."""
        text = in_titles(text)
        self.fix.hide()
        theme.role(self, f"banner-{kind}")
        self._icon.set_icon(_ICON[kind], _STYLES[kind])
        self._text.setText(text)
        self.setAccessibleName(text)
        self.setVisible(bool(text))

    def offer_fix(self, fix: Fix, problem: str = "", kind: str = "error") -> None:
        """Show a problem, a preview of the data after the fix, and a button that applies it."""
        self.show_message(kind, "\n".join([translate_message(fix.sentence) or problem, *fix.preview]))
        self._fix = fix
        self.fix.setText(translate_message(fix.title))
        self.fix.show()

    def clear(self) -> None:
        """Hide the banner."""
        self.show_message("info", "")
