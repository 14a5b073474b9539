"""The choice of the theme, the text size and the language."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QVBoxLayout, QWidget

from app import theme
from app.core import i18n
from app.core.i18n import said_in, tr
from app.core.preferences import Preferences
from app.widgets import desktop
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconButton

THEMES = ((tr("Follow the system"), "system"), (tr("Light"), "light"), (tr("Dark"), "dark"))
SIZES = ((tr("Small"), 12), (tr("Normal"), 13), (tr("Large"), 15), (tr("Largest"), 16))
"""Title and pixels of plain text."""


class AppearanceCard(Card):
    """Emits the choice; the display follows `show_preferences`."""

    theme_chosen = Signal(str)
    size_chosen = Signal(int)

    def __init__(self, preferences: Preferences) -> None:
        super().__init__(tr("Appearance"))
        self._preferences = preferences
        self.themes = self._choice(tr("Theme"), [title for title, _ in THEMES])
        self.sizes = self._choice(tr("Text size"), [title for title, _ in SIZES])
        self.language = LanguageChoice(preferences)
        self.add(self.language)
        self.show_preferences()
        self.themes.idClicked.connect(lambda place: self.theme_chosen.emit(THEMES[place][1]))
        self.sizes.idClicked.connect(lambda place: self.size_chosen.emit(SIZES[place][1]))

    def _choice(self, title: str, names: list[str]) -> QButtonGroup:
        self.add(label(title, "muted"))
        group, row = chips(names)
        for button in group.buttons():
            button.setAccessibleName(f"{title}: {button.text()}")
        row.addStretch(1)
        self.body.addLayout(row)
        return group

    def show_preferences(self) -> None:
        """Show the current choice; values unknown to this version fall back to the first or usual one."""
        themes = [value for _, value in THEMES]
        chosen = self._preferences.theme
        self.themes.button(themes.index(chosen) if chosen in themes else 0).setChecked(True)
        sizes = [value for _, value in SIZES]
        self.sizes.button(sizes.index(theme.text_size())).setChecked(True)
        self.language.show_preferences()


class LanguageChoice(QWidget):
    """Emits the choice. Its effect is described in the chosen language."""

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
            self.box.addItem(desktop.language_name(code), code)
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
        """Show the current choice; a language unknown to this version becomes the desktop's."""
        self.box.setCurrentIndex(max(0, self.box.findData(self._preferences.language)))
        code = desktop.choose_language(self.box.currentData())
        self.hint.setText(said_in(code, "Burnish switches to English when you restart it. Runs are not interrupted."))
        self.restart.setText(said_in(code, "Restart Burnish"))
        for part in (self.hint, self.restart):
            part.setVisible(code != i18n.current_language())

    def _on_activated(self) -> None:
        self.chosen.emit(self.box.currentData())
        self.show_preferences()
