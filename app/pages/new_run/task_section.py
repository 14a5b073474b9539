"""The Task section: the task, the preset and the run's name."""

import json
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont, QStandardItemModel
from PySide6.QtWidgets import QLineEdit, QWidget

from app import theme
from app.core.draft.data_source import used_parts
from app.core.draft.draft import Draft
from app.core.i18n import tr
from app.pages.new_run.section import Panel, Section
from app.widgets.boxes import fill, hbox, holder
from app.widgets.card import FormGrid, label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconToolButton
from app.widgets.tables.preview_table import PreviewColumn, PreviewTable, part_color
from backend.contract.catalog import Column, Preset, TaskEntry

HEADING = "heading"
"""The data of a line that names a task and cannot be chosen."""


class TaskSection(Section):
    """Beside it: what the task is, which data it needs, and what the preset changes."""

    chosen = Signal(str)
    renamed = Signal(str)
    preset_chosen = Signal(object)
    """A Preset, or None."""
    presets_requested = Signal()
    save_requested = Signal()

    def __init__(self, panel: Panel, parent: QWidget | None = None) -> None:
        super().__init__(tr("Task"), panel, parent)
        self.tasks = QuietComboBox()
        self.tasks.activated.connect(lambda number: self.chosen.emit(self.tasks.itemData(number)))
        self.name = QLineEdit(placeholderText=tr("Run name"))
        self.name.setMaxLength(100)
        self.name.setProperty("follows_draft", True)
        self.name.textEdited.connect(self.renamed)
        self.presets = QuietComboBox()
        self.presets.activated.connect(self._on_preset)
        look = IconToolButton("table", tr("Browse presets and see what they change"), clicked=self.presets_requested)
        save = IconToolButton("save", tr("Save the current settings as a preset"), clicked=self.save_requested)
        rows = FormGrid()
        rows.add(tr("Task"), self.tasks)
        rows.add(tr("Preset"), holder(hbox((self.presets, 1), look, save, spacing=4)), self.presets)
        rows.add(tr("Name"), self.name)
        self.body.addLayout(rows)
        self._build_panel()
        self._entries: list[TaskEntry] = []
        self._presets: list[Preset] = []
        self._own: list[Preset] = []
        self._chosen: Preset | None = None
        self._offered_for = ""
        self.set_presets([])

    def _build_panel(self) -> None:
        self.description = label("", "muted", wrap=True)
        self.needs = label("", wrap=True)
        self.examples = PreviewTable(tr("Example rows"))
        self._examples_title = label(tr("For example").upper(), "heading")
        self.preset_title = label(tr("Preset").upper(), "heading")
        self.preset_words, self.preset_changes = label("", "muted", wrap=True), label("", wrap=True)
        fill(
            self.panel.body,
            (
                self.description,
                label(tr("Your data needs").upper(), "heading"),
                self.needs,
                self._examples_title,
                (self.examples, 2),
                self.preset_title,
                self.preset_words,
                self.preset_changes,
                1,
            ),
        )

    def set_tasks(self, tasks: Sequence[TaskEntry]) -> None:
        """Offer these."""
        self._entries = list(tasks)
        self.tasks.clear()
        for task in tasks:
            self.tasks.addItem(task.title, task.name)
        self.tasks.setCurrentIndex(-1)
        self.tasks.setPlaceholderText(tr("Choose a task"))

    def set_presets(self, presets: Sequence[Preset], own: Sequence[Preset] = ()) -> None:
        """Offer these."""
        self._presets, self._own = list(presets), list(own)
        self._offer_presets(str(self.tasks.currentData() or ""))

    def _offer_presets(self, task: str) -> None:
        """A heading per task, the chosen one's first, with the user's own above them."""
        self._offered_for = task
        self.presets.clear()
        self.presets.addItem(tr("None"), None)
        titles = {entry.name: entry.title for entry in self._entries}
        self._add_presets(tr("Your presets"), self._own)
        for kind in sorted({_task_of(preset) for preset in self._presets}, key=lambda name: (name != task, name)):
            self._add_presets(titles.get(kind, tr("Any task")), [one for one in self._presets if _task_of(one) == kind])
        self._select_preset()

    def _add_presets(self, heading: str, presets: Sequence[Preset]) -> None:
        if presets:
            self._add_heading(heading)
        for preset in presets:
            self.presets.addItem(preset.title, preset)
            self.presets.setItemData(self.presets.count() - 1, preset.description, Qt.ItemDataRole.ToolTipRole)

    def _add_heading(self, title: str) -> None:
        self.presets.addItem(title.upper(), HEADING)
        model = self.presets.model()
        assert isinstance(model, QStandardItemModel)
        item = model.item(self.presets.count() - 1)
        item.setEnabled(False)
        item.setFont(theme.font(11, QFont.Weight.DemiBold))

    def show_draft(self, draft: Draft) -> None:
        """Show the draft's values."""
        chosen = draft.get("task.type")
        if chosen != self._offered_for:
            self._offer_presets(str(chosen or ""))
        self.tasks.setCurrentIndex(self.tasks.findData(chosen))
        self.show_name(str(draft.get("name", "")))
        task = next((task for task in self._entries if task.name == chosen), None)
        if task is not None:
            self._describe(task, used_parts(task, draft))

    def _describe(self, task: TaskEntry, parts: Sequence[Column]) -> None:
        """Show what the task is, and rows as it takes them."""
        self.panel.title.setText(task.title)
        self.description.setText(task.description)
        optional = tr(" (optional)")
        self.needs.setText(
            "\n".join(f"{part.title}{'' if part.required else optional}: {part.description}" for part in parts)
        )
        shown = [part for part in parts if any(part.name in row for row in task.examples)]
        columns = [PreviewColumn(part.name, "", part.title, part_color(parts.index(part))) for part in shown]
        self.examples.show_rows(columns, [[_cell(row.get(part.name)) for part in shown] for row in task.examples])
        for widget in (self.examples, self._examples_title):
            widget.setVisible(bool(shown))

    def show_name(self, name: str) -> None:
        """Show the changed name."""
        if self.name.text() != name:
            self.name.setText(name)

    def _on_preset(self, number: int) -> None:
        chosen = self.presets.itemData(number)
        if chosen != HEADING:
            self.preset_chosen.emit(chosen)

    def show_preset(self, preset: Preset | None, changes: Sequence[str] = ()) -> None:
        """Show a preset as chosen, with its changes as `Epochs: 3 → 10`."""
        self._chosen = preset
        self._select_preset()
        self.preset_changes.setText("\n".join(changes))
        for widget in (self.preset_title, self.preset_words, self.preset_changes):
            widget.setVisible(preset is not None)

    def preset_name(self) -> str:
        """The chosen preset; empty without one."""
        return self._chosen.title if self._chosen is not None else ""

    def _select_preset(self) -> None:
        places = range(self.presets.count())
        self.presets.setCurrentIndex(next((at for at in places if self.presets.itemData(at) == self._chosen), 0))
        self.preset_words.setText(self._chosen.description if self._chosen else "")


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _task_of(preset: Preset) -> str:
    return str(preset.spec.get("task", {}).get("type") or "")
