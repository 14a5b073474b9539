"""Owns the side card that shows one row whole: every column with its name, long texts wrapped."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from app.widgets.card import Card, label
from app.widgets.icon_label import IconToolButton
from app.widgets.progress_bar import ThinProgressBar

LONGEST = 20_000
"""Characters of one value that are shown; laying out a whole book would stop the window."""


class RowDetails(Card):
    """Values by column name; numbers from 0 to 1 named `probability_…` get a bar."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(title, parent)
        self._values: Mapping[str, Any] = {}
        copy = IconToolButton("copy", "Copy this row")
        copy.clicked.connect(self.copy)
        self.corner.addWidget(copy)
        self._area = QScrollArea(widgetResizable=True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.add(self._area, 1)
        self.setMinimumWidth(250)

    def show_values(self, values: Mapping[str, Any], tokens: Mapping[str, str] | None = None) -> None:
        """Show a row; `tokens` colours values by column name."""
        self._values = values
        holder = QWidget()
        holder.setObjectName("scrolled")
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(3)
        for name, value in values.items():
            column.addWidget(label(name.removeprefix("probability_").replace("_", " "), "faint", wrap=True))
            column.addWidget(label(_text(value), (tokens or {}).get(name, ""), wrap=True, selectable=True))
            if name.startswith("probability_") and value is not None:
                bar = ThinProgressBar()
                bar.set_fraction(float(value))
                column.addWidget(bar)
            column.addSpacing(9)
        column.addStretch(1)
        self._area.setWidget(holder)

    def copy(self) -> None:
        """Put the row on the clipboard, one `name: value` a line."""
        lines = (f"{name}: {value}" for name, value in self._values.items())
        QGuiApplication.clipboard().setText("\n".join(lines))


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4f}"
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
