"""Owns the choice of the theme, of the text's size and of the language."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup

from app import theme
from app.core.i18n import tr
from app.core.preferences import Preferences
from app.pages.settings.language_choice import LanguageChoice
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips

THEMES = ((tr("Follow the system"), "system"), (tr("Light"), "light"), (tr("Dark"), "dark"))
SIZES = ((tr("Small"), 12), (tr("Normal"), 13), (tr("Large"), 15), (tr("Largest"), 16))
"""Title and pixels of plain text."""


class LookCard(Card):
    """Tells what was chosen; what is shown follows `show_preferences`."""

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
        """Show what was chosen, perhaps elsewhere. What another version of the settings names becomes the first, or usual."""
        themes = [value for _, value in THEMES]
        chosen = self._preferences.theme
        self.themes.button(themes.index(chosen) if chosen in themes else 0).setChecked(True)
        sizes = [value for _, value in SIZES]
        self.sizes.button(sizes.index(theme.text_size())).setChecked(True)
        self.language.show_preferences()
