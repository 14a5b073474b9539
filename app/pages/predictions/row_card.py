"""Owns the card that shows one row whole, in the form that suits its task, with ways to the next mistake and to Try."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.core.i18n import tr
from app.core.predictions.predicted_row import PredictedRow
from app.widgets.card import Card
from app.widgets.icon_label import IconToolButton
from app.widgets.pill import Pill
from app.widgets.row_views.row_view import RowView


class RowCard(Card):
    """Shows rows in one view, which is made anew only for another task."""

    step_requested = Signal(int)
    """+1 for the next mistake below, −1 for the one above."""
    row_step_requested = Signal(int)
    """+1 for the row below, −1 for the one above, right or wrong."""
    try_requested = Signal(dict)
    """The row's values by column."""
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Row"), parent)
        self._values: Mapping[str, Any] = {}
        self.view: RowView | None = None
        self.verdict = Pill("")
        self.previous = self._step("chevron-up", tr("Mistake before (Ctrl+Up)"), -1)
        self.next = self._step("chevron-down", tr("Next mistake (Ctrl+Down)"), 1)
        before = IconToolButton("chevron-left", tr("Row before (Up in the table)"))
        after = IconToolButton("chevron-right", tr("Next row (Down in the table)"))
        for button, direction in ((before, -1), (after, 1)):
            button.clicked.connect(lambda _=False, direction=direction: self.row_step_requested.emit(direction))
        copy = IconToolButton("copy", tr("Copy this row"))
        copy.clicked.connect(self.copy)
        close = IconToolButton("close", tr("Close this row (Escape)"))
        close.setShortcut(QKeySequence("Escape"))
        close.clicked.connect(self.closed)
        self.attempt = IconToolButton("play", tr("Put this row into the Try box"), "accent_text")
        self.attempt.clicked.connect(lambda: self.try_requested.emit(dict(self._values)))
        for widget in (self.verdict, self.attempt, before, after, self.previous, self.next, copy, close):
            self.corner.addWidget(widget)
        self.corner.setSpacing(2)
        self.corner.insertSpacing(1, 6)
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.add(self._area, 1)
        self.setMinimumWidth(320)

    def _step(self, icon: str, hint: str, direction: int) -> IconToolButton:
        button = IconToolButton(icon, hint)
        button.clicked.connect(lambda: self.step_requested.emit(direction))
        return button

    def use(self, kind: type[RowView]) -> None:
        """Show rows in this form from now on."""
        if type(self.view) is not kind:
            self.view = kind()
            self._area.setWidget(self.view)
        for button in (self.previous, self.next):
            button.setVisible(kind.compares)

    def show_row(self, title: str, row: PredictedRow, right: bool | None) -> None:
        """Show a row, its verdict beside the title."""
        assert self.view is not None
        self._values = row.values
        self.set_title(title)
        self.verdict.setVisible(right is not None)
        self.verdict.set(tr("Right") if right else tr("Wrong"), "success" if right else "danger")
        self.view.show_row(row)
        self._area.verticalScrollBar().setValue(0)

    def copy(self) -> None:
        """Put the row on the clipboard, one `name: value` a line."""
        lines = (f"{name}: {value}" for name, value in self._values.items())
        QGuiApplication.clipboard().setText("\n".join(lines))
