"""Owns the font in which signs stand as they are written: no arrow for `->`, no triangle for `<|`."""

from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget


def show_plain_signs(widget: QWidget) -> None:
    """Switch off what joins signs in the widget's font; its role in the style sheet comes first."""
    font = widget.font()
    font.setFeature(QFont.Tag("calt"), 0)
    widget.setFont(font)
