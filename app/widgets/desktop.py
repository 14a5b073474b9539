"""Owns messages of the desktop, where there is one that shows them."""

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from app import theme
from app.core.i18n import tr

SHOWN_MS = 10_000
NO_MARKUP = str.maketrans("<>", "‹›")
"""A desktop may read the text as HTML or may not, and Qt does not say which one does: these look alike in both."""


def are_possible() -> bool:
    """Whether this desktop shows messages of programs."""
    return QSystemTrayIcon.isSystemTrayAvailable() and QSystemTrayIcon.supportsMessages()


class DesktopMessages(QObject):
    """`show_message` says it through the desktop; the icon in its tray is there only while a message is."""

    def __init__(self, window: QWidget, on_clicked: Callable[[], None]) -> None:
        super().__init__(window)
        self._window, self._on_clicked = window, on_clicked
        self._icon: QSystemTrayIcon | None = None

    def show_message(self, title: str, text: str, is_error: bool) -> bool:
        """Whether the desktop was told. The window asks for attention in the task bar in any case."""
        QApplication.alert(self._window)
        if not are_possible():
            return False
        icons = QSystemTrayIcon.MessageIcon
        tray = self._tray()
        tray.show()
        tray.showMessage(title, text.translate(NO_MARKUP), icons.Critical if is_error else icons.Information, SHOWN_MS)
        return True

    def withdraw(self) -> None:
        """Somebody looks at the window."""
        if self._icon is not None:
            self._icon.hide()

    def _tray(self) -> QSystemTrayIcon:
        if self._icon is None:
            self._icon = QSystemTrayIcon(theme.icon("chart", "accent", 64), self)
            self._icon.setToolTip(tr("Burnish"))
            self._icon.messageClicked.connect(self._on_clicked)
            self._icon.activated.connect(lambda _: self._on_clicked())
        return self._icon
