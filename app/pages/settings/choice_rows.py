"""Owns the rows that several cards of the Settings page are made of: a check box with its reason, a captioned line."""

from collections.abc import Callable

from PySide6.QtWidgets import QCheckBox, QVBoxLayout

from app.widgets.card import Card, label

INDENT = 26
"""Pixels from a check box to its words."""


def check_row(card: Card, title: str, reason: str, checked: bool, changed: Callable[[bool], object]) -> QCheckBox:
    """A check box in a card, and below it what it is good for."""
    box = QCheckBox(title)
    box.setChecked(checked)
    box.setAccessibleDescription(reason)
    box.toggled.connect(changed)
    why = label(reason, "faint", wrap=True)
    why.setContentsMargins(INDENT, 0, 0, 0)
    holder = QVBoxLayout()
    holder.setSpacing(0)
    holder.addWidget(box)
    holder.addWidget(why)
    card.body.addLayout(holder)
    return box
