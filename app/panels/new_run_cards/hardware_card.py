"""Owns where a run computes."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from app.core import wording
from app.core.draft import Draft
from app.panels.new_run_cards.rows import Rows
from app.widgets.card import Card, label
from app.widgets.quiet_combo_box import QuietComboBox
from backend.contract.catalog import Bridge, Device, EngineEntry
from backend.contract.queries import DeviceList

PRECISIONS = (
    ("auto", "Automatic"),
    ("float32", "float32 · exact"),
    ("bfloat16", "bfloat16 · half the memory"),
    ("float16", "float16 · half the memory, scaled loss"),
)


class HardwareCard(Card):
    """Emits `changed` with the dotted key of the spec."""

    changed = Signal(str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("4 · Hardware", parent)
        self._bridges: dict[str, Bridge] = {}
        self.engine, self.device, self.precision = QuietComboBox(), QuietComboBox(), QuietComboBox()
        for value, words in PRECISIONS:
            self.precision.addItem(words, value)
        for key, box in (("engine", self.engine), ("device", self.device), ("precision", self.precision)):
            box.activated.connect(
                lambda number, key=key, box=box: self.changed.emit(f"hardware.{key}", box.itemData(number))
            )
        self.note = label("", "faint", wrap=True)
        rows = Rows()
        self._engine_caption = rows.add("Engine", self.engine)
        rows.add("Device", self.device)
        rows.add("Precision", self.precision)
        self.bridge = QCheckBox("Any other architecture")
        self.bridge.clicked.connect(self._on_bridge)
        self._bridge_caption = rows.add("Bridge", self.bridge)
        self.bridge_note = label("", "faint", wrap=True)
        self.body.addLayout(rows)
        self.add(self.bridge_note)
        self.add(self.note)
        self.set_devices(DeviceList([]))

    def set_engines(self, engines: Sequence[EngineEntry]) -> None:
        """Offer these; a single one is not worth a row."""
        self.engine.clear()
        self._bridges = {engine.name: engine.bridge for engine in engines if engine.bridge is not None}
        for engine in engines:
            self.engine.addItem(engine.title + (" (not installed)" if engine.missing else ""), engine.name)
            self.engine.setItemData(self.engine.count() - 1, engine.missing or engine.description, 3)
        for widget in (self.engine, self._engine_caption):
            widget.setVisible(len(engines) > 1)

    def set_devices(self, found: DeviceList) -> None:
        """Offer what is here."""
        chosen = self.device.currentData() or "auto"
        self.device.clear()
        best = next((device for device in found.devices if device.kind != "cpu"), None)
        best = best or next(iter(found.devices), None)
        self.device.addItem(f"Automatic · {best.name}" if best else "Automatic", "auto")
        for device in _one_per_kind(found.devices):
            memory = f" · {wording.megabytes(device.free_mb)} free of {wording.megabytes(device.memory_mb)}"
            self.device.addItem(f"{device.name}{memory if device.memory_mb else ''}", device.kind)
        self.device.setCurrentIndex(max(0, self.device.findData(chosen)))
        self.note.setText(found.note)
        self.note.setVisible(bool(found.note))

    def show_draft(self, draft: Draft) -> None:
        """Show what the draft says; a device that is not here is shown all the same."""
        for key, box in (("engine", self.engine), ("device", self.device), ("precision", self.precision)):
            value = draft.get(f"hardware.{key}", "auto")
            if box.findData(value) < 0 and box is self.device:
                box.addItem(f"{value} (not on this computer)", value)
            box.setCurrentIndex(box.findData(value))
        self._show_bridge(draft)

    def _on_bridge(self, wanted: bool) -> None:
        if (bridge := self._bridges.get(self.engine.currentData())) is not None:
            self.changed.emit(bridge.setting, wanted)

    def _show_bridge(self, draft: Draft) -> None:
        """Where the engine has one: what it is for, or what must be installed before it can be switched on."""
        bridge = self._bridges.get(self.engine.currentData())
        wanted = bridge is not None and bool(draft.get(bridge.setting, False))
        for widget in (self.bridge, self._bridge_caption, self.bridge_note):
            widget.setVisible(bridge is not None)
        if bridge is not None:
            self.bridge.setChecked(wanted)
            self.bridge.setEnabled(wanted or not bridge.missing)  # who has switched it on may switch it off
            self.bridge_note.setText(f"{bridge.title}: {bridge.missing or bridge.description}")


def _one_per_kind(devices: Sequence[Device]) -> list[Device]:
    kinds: dict[str, Device] = {}
    for device in devices:
        kinds.setdefault(device.kind, device)
    return list(kinds.values())
