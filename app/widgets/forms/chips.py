"""Owns a row of round buttons of which one is chosen."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QHBoxLayout, QPushButton

from app import theme


def chips(titles: Sequence[str]) -> tuple[QButtonGroup, QHBoxLayout]:
    """Round buttons of which one is chosen; ids count from 0."""
    row = QHBoxLayout()
    row.setSpacing(6)
    group: QButtonGroup | None = None
    for place, title in enumerate(titles):
        button = QPushButton(title)
        theme.role(button, "chip")
        button.setCheckable(True)
        button.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        group = group or QButtonGroup(button)
        group.addButton(button, place)
        row.addWidget(button)
    assert group is not None
    group.buttonToggled.connect(_reach)
    group.button(0).setChecked(True)
    return group, row


def _reach(button: QAbstractButton, chosen: bool) -> None:
    """Tab comes to the chosen one, arrows to the others; Qt itself does so only once one had the focus."""
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus if chosen else Qt.FocusPolicy.ClickFocus)
