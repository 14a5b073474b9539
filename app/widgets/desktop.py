"""Desktop integration: shows notifications and folders, and detects the desktop's language."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QLocale, QObject, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from app import theme
from app.core import i18n
from app.core.i18n import tr

SHOWN_MS = 10_000
NO_MARKUP = str.maketrans("<>", "‹›")
"""A desktop may read the text as HTML or may not, and Qt does not say which one does: these look alike in both."""


def shows_messages() -> bool:
    """Whether this desktop shows notifications."""
    return QSystemTrayIcon.isSystemTrayAvailable() and QSystemTrayIcon.supportsMessages()


class DesktopMessages(QObject):
    """Desktop notifications, if available. `show_message` sends one; the tray icon exists only while one is shown."""

    def __init__(self, window: QWidget, on_clicked: Callable[[], None]) -> None:
        super().__init__(window)
        self._window, self._on_clicked = window, on_clicked
        self._icon: QSystemTrayIcon | None = None

    def show_message(self, title: str, text: str, is_error: bool) -> bool:
        """Show a notification; returns whether that worked. The window always requests attention in the task bar."""
        QApplication.alert(self._window)
        if not shows_messages():
            return False
        icons = QSystemTrayIcon.MessageIcon
        tray = self._tray()
        tray.show()
        tray.showMessage(title, text.translate(NO_MARKUP), icons.Critical if is_error else icons.Information, SHOWN_MS)
        return True

    def withdraw(self) -> None:
        """Withdraw the notification: the user is looking at the window."""
        if self._icon is not None:
            self._icon.hide()

    def _tray(self) -> QSystemTrayIcon:
        if self._icon is None:
            self._icon = QSystemTrayIcon(theme.icon("chart", "accent", 64), self)
            self._icon.setToolTip(tr("Burnish"))
            self._icon.messageClicked.connect(self._on_clicked)
            self._icon.activated.connect(lambda _: self._on_clicked())
        return self._icon


def open_folder(path: str | Path) -> str:
    """Open the folder in the file manager; returns why that failed, or empty."""
    if QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
        return ""
    return tr("Couldn't open a file manager. The folder is {path}", path=path)


def choose_language(wanted: str) -> str:
    """The language code for a code or `system`; for the desktop's languages, the first supported one."""
    return i18n.pick_language(QLocale.system().uiLanguages() if wanted == i18n.SYSTEM else [wanted])


def language_name(code: str) -> str:
    """`Deutsch` for `de`."""
    if code == i18n.ENGLISH:
        return "English"  # Qt would say of which country
    name = QLocale(code).nativeLanguageName()
    return name[:1].upper() + name[1:]
