"""Owns the choice of the task, and the run's name."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from app.core.draft import Draft
from app.panels.new_run_cards.rows import Rows
from app.widgets.card import Card, label
from app.widgets.quiet_combo_box import QuietComboBox
from backend.contract.catalog import Preset, TaskEntry


class TaskCard(Card):
    """What shall be learnt."""

    chosen = Signal(str)
    renamed = Signal(str)
    preset_chosen = Signal(object)
    """A Preset, or None."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("1 · Task", parent)
        self.tasks = QuietComboBox()
        self.tasks.activated.connect(lambda number: self.chosen.emit(self.tasks.itemData(number)))
        self.name = QLineEdit(placeholderText="A name for this run")
        self.name.setMaxLength(100)
        self.name.textEdited.connect(self.renamed)
        self.presets = QuietComboBox()
        self.presets.activated.connect(self._on_preset)
        self.description = label("", "faint", wrap=True)
        rows = Rows()
        rows.add("Task", self.tasks)
        rows.addWidget(self.description, rows.rowCount(), 1)
        self._preset_caption = rows.add("Preset", self.presets)
        rows.add("Name", self.name)
        self.body.addLayout(rows)
        self._entries: list[TaskEntry] = []
        self.set_presets([])

    def set_tasks(self, tasks: Sequence[TaskEntry]) -> None:
        """Offer these."""
        self._entries = list(tasks)
        self.tasks.clear()
        for task in tasks:
            self.tasks.addItem(task.title, task.name)
        self.tasks.setCurrentIndex(-1)
        self.tasks.setPlaceholderText("Choose what the model shall learn")

    def set_presets(self, presets: Sequence[Preset]) -> None:
        """Offer these; no presets, no row."""
        self.presets.clear()
        self.presets.addItem("None", None)
        for preset in presets:
            self.presets.addItem(preset.title, preset)
            self.presets.setItemData(self.presets.count() - 1, preset.description, 3)
        for widget in (self.presets, self._preset_caption):
            widget.setVisible(bool(presets))

    def show_draft(self, draft: Draft) -> None:
        """Show what the draft says."""
        chosen = draft.get("task.type")
        self.tasks.setCurrentIndex(self.tasks.findData(chosen))
        self.description.setText(next((task.description for task in self._entries if task.name == chosen), ""))
        self.show_name(str(draft.get("name", "")))

    def show_name(self, name: str) -> None:
        """Show another name."""
        if self.name.text() != name:
            self.name.setText(name)

    def _on_preset(self, number: int) -> None:
        self.preset_chosen.emit(self.presets.itemData(number))

    def show_preset(self, preset: Preset | None) -> None:
        """Show another preset as chosen."""
        self.presets.setCurrentIndex(0 if preset is None else self.presets.findData(preset))
