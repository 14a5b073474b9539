"""The theme and text size of the window, applied as soon as they are chosen."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from app import theme
from app.core.actions import Action
from app.core.i18n import tr
from app.core.preferences import Preferences


class Appearance(QObject):
    """Stores the choice in `preferences`; code that writes it there directly must call `apply`."""

    changed = Signal()

    def __init__(self, preferences: Preferences, window: QWidget) -> None:
        super().__init__(window)
        self._preferences = preferences

    def offered_actions(self) -> list[Action]:
        """For the palette and the keyboard."""
        return [
            Action(tr("Use the light theme"), lambda: self.choose_theme("light"), icon="sun"),
            Action(tr("Use the dark theme"), lambda: self.choose_theme("dark"), icon="moon"),
            Action(tr("Use the system theme"), lambda: self.choose_theme("system"), icon="settings"),
            Action(
                tr("Larger text"),
                lambda: self.choose_text_size(1),
                "Ctrl++; Ctrl+=",
                "text",
                lambda: tr("This is the largest size") if theme.text_size() == theme.TEXT_SIZES[-1] else "",
                words=tr("zoom in"),
            ),
            Action(
                tr("Smaller text"),
                lambda: self.choose_text_size(-1),
                "Ctrl+-",
                "text",
                lambda: tr("This is the smallest size") if theme.text_size() == theme.TEXT_SIZES[0] else "",
                words=tr("zoom out"),
            ),
            Action(tr("Reset text size"), lambda: self.choose_text_size(0), "Ctrl+0", "text"),
        ]

    def choose_theme(self, choice: str) -> None:
        """Apply the theme `choice` (system, light or dark) from now on."""
        self._preferences.set("theme", choice)
        self.apply()

    def choose_text_size(self, steps: int) -> None:
        """Make all text this many steps larger (or smaller) from now on; 0 is the usual size."""
        present = theme.TEXT_SIZES.index(theme.text_size())
        place = max(0, min(len(theme.TEXT_SIZES) - 1, present + steps))
        self._preferences.set("text_size", theme.TEXT_SIZES[place] if steps else theme.USUAL_SIZE)
        self.apply()

    def apply(self) -> None:
        """Apply the theme, text size and motion setting from the preferences."""
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        theme.apply(application, self._preferences.theme, self._preferences.text_size)
        self.changed.emit()
