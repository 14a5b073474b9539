"""A label that shows a theme icon and follows the theme."""

from typing import Any

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QAbstractButton, QLabel, QMenu, QPushButton, QToolButton, QWidget

from app import theme


class IconLabel(QLabel):
    """An icon in a token's colour."""

    def __init__(self, name: str, token: str = "muted", size: int = 18, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._name, self._token, self._size = name, token, size
        self.apply_theme()

    def set_icon(self, name: str, token: str) -> None:
        """Show another icon."""
        self._name, self._token = name, token
        self.apply_theme()

    def apply_theme(self) -> None:
        """Redraw in the current colours."""
        self.setPixmap(theme.pixmap(self._name, self._token, self._size))


_TOKENS = {"primary": "on_accent", "danger": "danger", "quiet": "accent_text"}
"""Role of a button → the colour of its icon."""


class IconButton(QPushButton):
    """A push button with text and an icon that follows the theme; `role` as in app.theme.

    `hint` is its tooltip, `clicked` the slot or signal that a click reaches.
    """

    def __init__(
        self,
        text: str,
        name: str,
        role: str = "",
        token: str = "text",
        parent: QWidget | None = None,
        *,
        hint: str = "",
        clicked: Any = None,
    ) -> None:
        super().__init__(text, parent)
        theme.follow(self)
        self.setToolTip(hint)
        if clicked is not None:
            self.clicked.connect(clicked)
        self._name, self._plain = name, token
        self.setIconSize(QSize(20, 16))
        self.set_role(role)

    def set_role(self, role: str) -> None:
        """Change the button's style; empty is a plain one."""
        self._token = _TOKENS.get(role, self._plain)
        theme.role(self, role)
        self.apply_theme()

    def set_icon(self, name: str) -> None:
        """Show another icon."""
        self._name = name
        self.apply_theme()

    def make_room(self, *texts: str) -> None:
        """Be wide enough for each of these texts too, so that nothing beside the button moves when one is shown."""
        self.setMinimumWidth(widest(self, self.text(), *texts))

    def open_menu(self, menu: QMenu) -> None:
        """Open a menu below the button."""
        menu.popup(self.mapToGlobal(self.rect().bottomLeft()))

    def apply_theme(self) -> None:
        """Draw the icon again in the present colours."""
        self.setIcon(theme.icon(self._name, self._token, 16, room=4))


def widest(button: QAbstractButton, *texts: str) -> int:
    """The pixels that the button needs for the longest of these texts."""
    shown, widths = button.text(), []
    for text in texts:
        button.setText(text)
        widths.append(button.sizeHint().width())
    button.setText(shown)
    return max(widths)


class IconToolButton(QToolButton):
    """A button of an icon alone; `hint` is its tooltip and its accessible name, `clicked` what a click reaches."""

    def __init__(
        self,
        name: str,
        hint: str,
        token: str = "muted",
        size: int = 16,
        parent: QWidget | None = None,
        *,
        clicked: Any = None,
    ) -> None:
        super().__init__(parent)
        if clicked is not None:
            self.clicked.connect(clicked)
        theme.follow(self)
        self._name, self._token, self._size = name, token, size
        self.setToolTip(hint)
        self.setAccessibleName(hint)
        self.apply_theme()

    def set_icon(self, name: str) -> None:
        """Show another icon."""
        self._name = name
        self.apply_theme()

    def set_token(self, token: str) -> None:
        """Show the icon in another colour."""
        self._token = token
        self.apply_theme()

    def apply_theme(self) -> None:
        """Redraw the icon in the current colours."""
        self.setIcon(theme.icon(self._name, self._token, self._size))
