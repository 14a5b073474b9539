"""The Hardware section: engine, devices and precision, each with a reason if it is not available."""

import time
from collections.abc import Collection, Sequence
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QVBoxLayout, QWidget

from app.core import formatting, json_schema
from app.core.backend_messages import translate_messages
from app.core.backend_words import translate_word
from app.core.draft.device_choice import (
    against_precision,
    candidate_devices,
    device_words,
    memory_words,
    selected_devices,
)
from app.core.draft.draft import Draft
from app.core.i18n import tr
from app.pages.new_run.section import Panel, Section
from app.widgets.boxes import hbox, holder, vbox
from app.widgets.card import FormGrid, label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.forms.schema_form import SchemaForm
from app.widgets.icon_label import IconToolButton
from app.widgets.progress import ThinProgressBar
from backend.contract.catalog import Device, EngineEntry, find_refusal
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.plan import DeviceList, RunPlan

AGING_MS = 5000
"""Between two looks at how old the free memory is."""
PRECISIONS = (
    ("auto", tr("Automatic")),
    ("float32", tr("float32 · exact")),
    ("bfloat16", tr("bfloat16 · half the memory")),
    ("float16", tr("float16 · half the memory, loss scaling")),
)
AUTOMATIC = {
    "float32": tr("Automatic → float32"),
    "bfloat16": tr("Automatic → bfloat16"),
    "float16": tr("Automatic → float16"),
}
ELSEWHERE = {"engine", "device", "devices", "precision"}
"""Settings that have a place of their own in the section."""

OF_PROCESSES = ("strategy", "cpu_offload")
"""An engine's settings for several processes, which stand below their number."""


class HardwareSection(Section):
    """Beside it: the devices with their free memory. Emits `changed` with the dotted key of the spec."""

    changed = Signal(str, object)
    mistakes_changed = Signal()
    look_again = Signal()
    """The user asked to detect the devices again."""

    def __init__(self, panel: Panel, parent: QWidget | None = None) -> None:
        super().__init__(tr("Hardware"), panel, parent)
        self._engines: dict[str, EngineEntry] = {}
        self._schema: dict[str, Any] = {}
        self.present: list[Device] = []
        """The devices of this computer, as far as they are known."""
        self._draft = Draft()
        self._model: ModelDescription | None = None
        self._plan: RunPlan | None = None
        self.form: SchemaForm | None = None
        self.engine, self.device, self.precision = QuietComboBox(), QuietComboBox(), QuietComboBox()
        for value, words in PRECISIONS:
            self.precision.addItem(words, value)
        for key, box in (("engine", self.engine), ("device", self.device), ("precision", self.precision)):
            box.activated.connect(
                lambda number, key=key, box=box: self.changed.emit(f"hardware.{key}", box.itemData(number))
            )
        self._build()
        self._build_panel()
        self.set_devices(DeviceList([]))

    def _build(self) -> None:
        rows = FormGrid()
        self._engine_caption = rows.add(tr("Engine"), self.engine)
        device = rows.add(tr("Device"), self.device)
        precision = rows.add(tr("Precision"), self.precision)
        self.captions: dict[str, QLabel] = {
            "hardware.engine": self._engine_caption,
            "hardware.device": device,
            "hardware.devices": device,
            "hardware.precision": precision,
        }
        self.body.addLayout(rows)
        self._more = QVBoxLayout()
        self.body.addLayout(self._more)

    def _build_panel(self) -> None:
        """The devices, and what is known about them: placed above the plan."""
        self.again = IconToolButton("refresh", tr("Refresh the free memory"), "faint", 14, clicked=self.look_again)
        self.age = label("", "faint")
        self._read_at, self._device_note = 0.0, ""
        self._aging = QTimer(self, interval=AGING_MS)
        self._aging.timeout.connect(self._show_age)
        self.devices = DeviceTable()
        self.devices.chosen.connect(lambda numbers: self.changed.emit("hardware.devices", numbers))
        self.engine_note, self.precision_note = label("", "faint", wrap=True), label("", "faint", wrap=True)
        self.note = label("", "faint", wrap=True)
        head = hbox(label(tr("Devices").upper(), "heading"), self.again, self.age, 1)
        notes = (self.note, self.precision_note, self.engine_note)
        self.beside = holder(vbox(head, self.devices, *notes, spacing=6))
        self.panel.body.insertWidget(0, self.beside)

    def set_open(self, wanted: bool) -> None:
        """The devices are shown beside this section only."""
        super().set_open(wanted)
        self.beside.setVisible(wanted)
        if wanted:
            self._show_age()
            self._aging.start()
        else:
            self._aging.stop()

    def _show_age(self) -> None:
        """Say how old the free memory is, once it is no longer new."""
        words = formatting.reading_age(self._read_at, time.time()) if any(one.memory_mb for one in self.present) else ""
        self.age.setText(words)

    # What there is

    def set_engines(self, engines: Sequence[EngineEntry], section: dict[str, Any] | None = None) -> None:
        """Offer these engines; a single one hides the row. `section` is the schema of the shared settings."""
        self._engines, self._schema = {engine.name: engine for engine in engines}, section or self._schema
        self.engine.clear()
        for engine in engines:
            self.engine.addItem(engine.title, engine.name)
        for widget in (self.engine, self._engine_caption):
            widget.setVisible(len(engines) > 1)
        self._show_engines()

    def set_devices(self, found: DeviceList) -> None:
        """Offer the available devices."""
        self.present, self._read_at = found.devices, time.time()
        self._show_age()
        self.device.clear()
        best = next(iter(selected_devices(Draft({}), found.devices)), None)
        self.device.addItem(
            tr("Automatic → {name}", name=translate_word(best.name)) if best else tr("Automatic"), "auto"
        )
        for device in _one_per_kind(found.devices):
            self.device.addItem(translate_word(device.name), device.kind)
        self._device_note = formatting.sentence(found.note)
        self._show_note(self._device_note)
        self._show_devices()

    def _show_note(self, sentence: str) -> None:
        self.note.setText(sentence)
        self.note.setVisible(bool(sentence))

    def show_model(self, model: ModelDescription | None) -> None:
        """Show the engines for this model: it determines which ones can train it."""
        self._model = model
        self._show_engines()

    def show_plan(self, plan: RunPlan | None) -> None:
        """Show what the automatic settings resolve to, and why; None if unknown."""
        self._plan = plan
        self._show_precision()
        self._show_chosen()

    # What is chosen

    def show_draft(self, draft: Draft) -> None:
        """Show the draft's values; a device that is not available is shown too."""
        self._draft = draft
        self.engine.setCurrentIndex(self.engine.findData(draft.get("hardware.engine", "torch")))
        self.precision.setCurrentIndex(self.precision.findData(draft.get("hardware.precision", "auto")))
        self._show_devices()
        self._show_form()
        self._show_engines()

    def _entry(self) -> EngineEntry | None:
        return self._engines.get(str(self._draft.get("hardware.engine", "torch")))

    def _show_engines(self) -> None:
        """List every engine; one that cannot train this model shows the reason."""
        sentences: list[str] = []
        for name, engine in self._engines.items():
            reason = self._against(engine)
            hint = reason or engine.description
            _enable(self.engine, self.engine.findData(name), not reason, hint)
            if reason:
                sentences.append(reason)
        self.engine_note.setText("\n".join(sentences))
        self.engine_note.setVisible(bool(sentences) and len(self._engines) > 1)

    def _against(self, engine: EngineEntry) -> str:
        model_type = self._model.model_type if self._model is not None else ""
        refused = translate_messages(find_refusal(engine, model_type, ""))
        if refused is None:
            return ""
        if engine.missing:
            return tr(
                "{reason}. Run “burnish doctor” to see what else is missing.",
                reason=formatting.sentence(refused.reason),
            )
        return f"{formatting.sentence(refused.reason)}."

    def _show_devices(self) -> None:
        value = self._draft.get("hardware.device", "auto")
        if self.device.findData(value) < 0:
            self.device.addItem(tr("{value} (not on this computer)", value=value), value)
        self.device.setCurrentIndex(self.device.findData(value))
        possible, taken = candidate_devices(self._draft, self.present), selected_devices(self._draft, self.present)
        self.devices.show_devices(self.present, possible, taken)
        self.devices.setVisible(bool(self.present))
        self._show_processes()
        self._show_precision()

    def _show_precision(self) -> None:
        wanted = str(self._draft.get("hardware.precision", "auto"))
        taken = selected_devices(self._draft, self.present)
        for number, (value, words) in enumerate(PRECISIONS):
            reason = against_precision(value, taken)
            _enable(self.precision, number, not reason, reason or words)
        plan = self._plan if wanted == "auto" else None
        self.precision.setItemText(0, AUTOMATIC.get(plan.precision, tr("Automatic")) if plan else tr("Automatic"))
        why = f"{formatting.sentence(plan.precision_reason)}." if plan and plan.precision_reason else ""
        self.precision_note.setText(against_precision(wanted, taken) or why)
        self.precision_note.setVisible(bool(self.precision_note.text()))

    # What else there is to set

    def _show_form(self) -> None:
        """Show the shared settings and the chosen engine's own, collapsed."""
        entry = self._entry()
        name = entry.name if entry is not None else ""
        if self.form is None or self.form.property("engine") != name:
            self._build_form(entry)
        if self.form is not None:
            self.form.show_values(self._draft.get("hardware") or {})
            self._show_processes()
            self._show_chosen()

    def _show_chosen(self) -> None:
        if self.form is not None:
            self.form.show_chosen(self._plan.auto if self._plan is not None else ())

    def _show_processes(self) -> None:
        """Offer what several processes do differently where there may be several."""
        processes, strategy = self._draft.get("hardware.processes"), self._draft.get("hardware.strategy", "ddp")
        several = len(candidate_devices(self._draft, self.present)) > 1 or (
            isinstance(processes, int) and processes > 1
        )
        if self.form is not None:
            self.form.leave_out(() if several or strategy != "ddp" else OF_PROCESSES)

    def _build_form(self, entry: EngineEntry | None) -> None:
        if self.form is not None:
            self.form.hide()
            self._more.removeWidget(self.form)
            self.form.deleteLater()
        own = json_schema.resolve(entry.settings).get("properties", {}) if entry is not None else {}
        shared = self._schema.get("properties", {})
        fields = {}
        for key, field in shared.items():
            fields |= {key: field}
            if key == "processes":
                fields |= {name: own[name] for name in OF_PROCESSES if name in own}
        fields |= own
        left = json_schema.without({**self._schema, "properties": fields}, ELSEWHERE)
        self.form = SchemaForm(json_schema.fold(left), prefix="hardware")
        self.form.setProperty("engine", entry.name if entry is not None else "")
        self.form.changed.connect(self.changed)
        self.form.mistakes_changed.connect(self.mistakes_changed)
        self._more.addWidget(self.form)

    def show_matches(self, keys: Collection[str] | None) -> None:
        """Highlight the settings with these keys."""
        if self.form is not None:
            self.form.show_matches(keys or (), alone=False)

    # Mistakes

    def mark(self, field: str, sentence: str) -> bool:
        """Show an error at its field, or below the choice that it is about; returns whether it belongs here."""
        if field in ("hardware.device", "hardware.devices"):
            self._show_note(sentence)
            return True
        return field.startswith("hardware.") and self.form is not None and self.form.mark(field, sentence, unfold=False)

    def clear_marks(self) -> None:
        """Clear the errors reported from outside."""
        self._show_note(self._device_note)
        if self.form is not None:
            self.form.clear_marks()

    def forms_shown(self) -> list[SchemaForm]:
        """The form, if there is one."""
        return [] if self.form is None else [self.form]

    def mistakes(self) -> dict[str, str]:
        """Title → error message of all marked fields."""
        return self.form.mistake_sentences() if self.form is not None else {}


def _enable(box: QuietComboBox, number: int, enabled: bool, hint: str) -> None:
    if number < 0:
        return
    model = box.model()
    assert isinstance(model, QStandardItemModel)
    model.item(number).setEnabled(enabled)
    box.setItemData(number, hint, Qt.ItemDataRole.ToolTipRole)


def _one_per_kind(devices: Sequence[Device]) -> list[Device]:
    kinds: dict[str, Device] = {}
    for device in devices:
        kinds.setdefault(device.kind, device)
    return list(kinds.values())


class DeviceTable(QWidget):
    """Emits `chosen` with the numbers of the devices, or None if the backend may choose."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.boxes: dict[int, QCheckBox] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 2)
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(0, 1)
        self._shown: object = None

    def show_devices(self, devices: Sequence[Device], possible: Sequence[Device], ticked: Sequence[Device]) -> None:
        """All `devices`; the `possible` ones can be ticked."""
        content = (list(devices), list(possible), list(ticked))
        if content == self._shown:
            return
        self._shown = content
        self._clear()
        offers = len(possible) > 1
        for row, device in enumerate(devices):
            is_ticked = device in ticked
            if offers and device in possible:
                name: QWidget = self._box(device, is_ticked)
            else:
                name = label(device_words(device), "" if is_ticked else "muted")
            free = label(memory_words(device), "faint")
            bar = ThinProgressBar()
            bar.setFixedWidth(48)
            bar.set_fraction(1 - device.free_mb / device.memory_mb if device.memory_mb else 0.0)
            bar.setToolTip(tr("Memory in use: {memory_words}", memory_words=memory_words(device)))
            bar.setVisible(bool(device.memory_mb))
            for column, widget in enumerate((name, bar, free)):
                self._grid.addWidget(widget, row, column)

    def _box(self, device: Device, ticked: bool) -> QCheckBox:
        box = self.boxes[device.index] = QCheckBox(device_words(device))
        box.setChecked(ticked)
        box.clicked.connect(self._on_ticked)
        return box

    def _on_ticked(self) -> None:
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
