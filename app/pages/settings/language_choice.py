"""Owns the choice of the window's language, which holds from the next start on, and the button that brings it at once."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.core import i18n
from app.core.i18n import said_in, tr
from app.core.preferences import Preferences
from app.widgets import system_language
from app.widgets.card import label
from app.widgets.forms.quiet_combo_box import QuietComboBox
from app.widgets.icon_label import IconButton


class LanguageChoice(QWidget):
    """Tells what was chosen. What comes of it is said in the language that was chosen."""

    chosen = Signal(str)
    restart_wanted = Signal()

    def __init__(self, preferences: Preferences) -> None:
        super().__init__()
        self._preferences = preferences
        self.box = QuietComboBox()
        self.box.setAccessibleName(tr("Language"))
        self.box.setMinimumContentsLength(16)
        self.box.addItem(tr("Follow the system"), i18n.SYSTEM)
        for code in i18n.languages():
            self.box.addItem(system_language.own_name(code), code)
        self.hint = label("", "faint", wrap=True)
        self.restart = IconButton("", "refresh")
        self.restart.clicked.connect(self.restart_wanted)
        self._place()
        self.show_preferences()
        self.box.activated.connect(lambda _: self._on_activated())

    def _place(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(label(tr("Language"), "muted"))
        column.addWidget(self.box, 0, Qt.AlignmentFlag.AlignLeft)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.hint, 1)
        row.addWidget(self.restart)
        column.addLayout(row)

    def show_preferences(self) -> None:
        """Show what was chosen; a language that this version does not speak becomes the desktop's."""
        self.box.setCurrentIndex(max(0, self.box.findData(self._preferences.language)))
        code = system_language.meant_by(self.box.currentData())
        self.hint.setText(said_in(code, "Burnish speaks English when it is started again. Runs go on meanwhile."))
        self.restart.setText(said_in(code, "Restart Burnish"))
        for part in (self.hint, self.restart):
            part.setVisible(code != i18n.chosen())

    def _on_activated(self) -> None:
        self.chosen.emit(self.box.currentData())
        self.show_preferences()
