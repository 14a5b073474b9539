"""Owns showing a folder in the system's file manager."""

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from app.core.i18n import tr


def open_folder(path: str | Path) -> str:
    """Show the folder; returns why that was not possible, or nothing."""
    if QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
        return ""
    return tr("No file manager could be opened. The folder is {path}", path=path)
