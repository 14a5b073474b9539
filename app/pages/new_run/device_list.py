"""Owns the list of this computer's devices with their memory; where several can be taken, they are ticked here."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QWidget

from app.core.draft.device_choice import device_words, memory_words
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.progress_bar import ThinProgressBar
from backend.contract.catalog import Device


class DeviceTable(QWidget):
    """Emits `chosen` with the numbers of the devices, or None for the first."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.boxes: dict[int, QCheckBox] = {}
        self._several = False
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 2)
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(0, 1)
        self._shown: object = None

    def show_devices(
        self, here: Sequence[Device], possible: Sequence[Device], ticked: Sequence[Device], several: bool
    ) -> None:
        """All that are `here`; of the `possible` ones one is taken, or several where the engine trains on several."""
        shown = (list(here), list(possible), list(ticked), several)
        if shown == self._shown:
            return
        self._shown, self._several = shown, several
        self._clear()
        offers = len(possible) > 1
        for row, device in enumerate(here):
            is_ticked = device in ticked
            if offers and device in possible:
                name: QWidget = self._box(device, is_ticked)
            else:
                name = label(device_words(device), "" if is_ticked else "muted")
            free = label(memory_words(device), "faint")
            bar = ThinProgressBar()
            bar.setFixedWidth(64)
            bar.set_fraction(1 - device.free_mb / device.memory_mb if device.memory_mb else 0.0)
            bar.setToolTip(tr("Memory in use; {memory_words}", memory_words=memory_words(device)))
            bar.setVisible(bool(device.memory_mb))
            for column, widget in enumerate((name, bar, free)):
                self._grid.addWidget(widget, row, column)

    def _box(self, device: Device, ticked: bool) -> QCheckBox:
        box = self.boxes[device.index] = QCheckBox(device_words(device))
        box.setChecked(ticked)
        if not self._several:
            box.setToolTip(tr("This engine trains on one device at a time"))
        box.clicked.connect(lambda on, index=device.index: self._on_ticked(index, on))
        return box

    def _on_ticked(self, index: int, on: bool) -> None:
        if not self._several:
            numbers = [index] if on else []
        else:
            numbers = [number for number, box in self.boxes.items() if box.isChecked()]
        self._shown = None  # whatever the draft says next is shown
        self.chosen.emit(numbers or None)

    def _clear(self) -> None:
        self.boxes.clear()
        while item := self._grid.takeAt(0):
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
