"""Ends a window of a test for good: every later change of theme in the process would dress a closed one again."""

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QWidget


def gone(window: QWidget) -> None:
    """Close the window and let Qt delete it with all that it holds, now."""
    window.close()
    window.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
