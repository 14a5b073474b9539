"""Owns which language a wish means on this desktop, and how each language calls itself."""

from PySide6.QtCore import QLocale

from app.core import i18n


def meant_by(wish: str) -> str:
    """The code of the language that a code, or `system`, stands for; of the desktop's, the first that is spoken."""
    return i18n.spoken(QLocale.system().uiLanguages() if wish == i18n.SYSTEM else [wish])


def own_name(code: str) -> str:
    """`Deutsch` for `de`."""
    if code == i18n.ENGLISH:
        return "English"  # Qt would say of which country
    name = QLocale(code).nativeLanguageName()
    return name[:1].upper() + name[1:]
