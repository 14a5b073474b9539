"""Owns the line between a run's numbers and its plots: how it goes in words, and what all plots are drawn over."""

import time

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.core.preferences import Preferences
from app.core.run_state import RunState
from app.core.step_clock import AXES
from app.core.verdict import verdict
from app.widgets.card import label
from app.widgets.elided_label import ElidedLabel
from app.widgets.icon_label import IconLabel
from app.widgets.plot_series import SMOOTHING
from app.widgets.quiet_combo_box import QuietComboBox

SMOOTHINGS = {"none": 0.0, "light": 0.01, "medium": SMOOTHING, "strong": 0.1}
"""Name → the share of what is visible over which a smoothed point is averaged."""
LOOKS = {
    "info": ("info", "info"),
    "success": ("check", "success"),
    "warning": ("warning", "warning"),
    "error": ("error", "danger"),
}
CHOICE_WIDTH = 104
LEAST_SECONDS = 1.0
"""Time between two judgements: they change slowly, and a long curve is walked for each."""


class Course(QWidget):
    """What is chosen here is remembered."""

    axis_chosen = Signal(str)
    smoothing_chosen = Signal(float)

    def __init__(self, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._judged = 0.0
        self.icon, self.words = IconLabel(*LOOKS["info"], 16), ElidedLabel()
        self.words.setMinimumHeight(26)
        self.axis = self._choice("X axis", AXES, preferences.plot_axis)
        self.smoothing = self._choice("Smoothing", tuple(SMOOTHINGS), preferences.plot_smoothing)
        self.smoothing.setToolTip("Of loss, gradient norm and speed: how many neighbours a strong line is the mean of")
        self.axis.currentTextChanged.connect(self._on_axis)
        self.smoothing.currentTextChanged.connect(self._on_smoothing)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.icon, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.words, 1)
        for title, box in (("X axis", self.axis), ("Smoothing", self.smoothing)):
            row.addSpacing(6)
            row.addWidget(label(title, "muted"))
            row.addWidget(box)
        self.clear()

    def _choice(self, title: str, names: tuple[str, ...], chosen: str) -> QuietComboBox:
        box = QuietComboBox()
        box.addItems([name.capitalize() for name in names])
        # A settings file of another version may name what is not here.
        box.setCurrentIndex(names.index(chosen) if chosen in names else 0)
        box.setAccessibleName(title)
        box.setFixedWidth(CHOICE_WIDTH)
        return box

    @property
    def share(self) -> float:
        """The chosen smoothing."""
        return SMOOTHINGS[self.smoothing.currentText().lower()]

    def _on_axis(self, title: str) -> None:
        self._preferences.set("plot_axis", title.lower())
        self.axis_chosen.emit(title.lower())

    def _on_smoothing(self, title: str) -> None:
        self._preferences.set("plot_smoothing", title.lower())
        self.smoothing_chosen.emit(self.share)

    def clear(self) -> None:
        """Another run is shown."""
        self._judged = 0.0
        self.words.setText("")
        self.icon.hide()

    def show_state(self, state: RunState, alive: bool) -> None:
        """Judge the run, but not again and again; an end is judged at once."""
        if alive and time.monotonic() - self._judged < LEAST_SECONDS:
            return
        self._judged = time.monotonic()
        found = verdict(state, alive)
        if found.text != self.words.text():
            self.words.setText(found.text)
            self.icon.set_icon(*LOOKS[found.kind])
            self.icon.setAccessibleName(found.kind)
        self.icon.show()
