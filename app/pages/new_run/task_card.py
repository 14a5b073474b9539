"""The task card: the run's name, the task and the preset."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont, QStandardItemModel
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from app import theme
from app.core.draft.draft import Draft
from app.core.i18n import tr
from app.widgets.card import Card, FormGrid, label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconToolButton
from backend.contract.catalog import Preset, TaskEntry

SHOWN_CHANGES = 4
HEADING = "heading"
"""The data of a line that names a task and cannot be chosen."""


class TaskCard(Card):
    """The card on which the user chooses the task."""

    chosen = Signal(str)
    renamed = Signal(str)
    preset_chosen = Signal(object)
    """A Preset, or None."""
    look_asked = Signal()
    save_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("1 · Task"), parent)
        self.tasks = QuietComboBox()
        self.tasks.activated.connect(lambda number: self.chosen.emit(self.tasks.itemData(number)))
        self.name = QLineEdit(placeholderText=tr("Run name"))
        self.name.setMaxLength(100)
        self.name.setProperty("follows_draft", True)
        self.name.textEdited.connect(self.renamed)
        self.presets = QuietComboBox()
        self.presets.activated.connect(self._on_preset)
        self.description = label("", "faint", wrap=True)
        rows = FormGrid()
        rows.add(tr("Task"), self.tasks)
        rows.addWidget(self.description, rows.rowCount(), 1)
        self.look = IconToolButton("table", tr("Browse presets and see what they change"))
        self.look.clicked.connect(self.look_asked)
        self.save = IconToolButton("save", tr("Save the current settings as a preset"))
        self.save.clicked.connect(self.save_asked)
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.presets, 1)
        row.addWidget(self.look)
        row.addWidget(self.save)
        rows.add(tr("Preset"), holder, self.presets)
        self.preset_words = label("", "faint", wrap=True)
        rows.addWidget(self.preset_words, rows.rowCount(), 1)
        self.preset_changes = label("", "muted", wrap=True)
        rows.addWidget(self.preset_changes, rows.rowCount(), 1)
        self.preset_changes.hide()
        rows.add(tr("Name"), self.name)
        self.body.addLayout(rows)
        self._entries: list[TaskEntry] = []
        self._presets: list[Preset] = []
        self._own: list[Preset] = []
        self._chosen: Preset | None = None
        self._offered_for = ""
        self.set_presets([])

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
        self.description.setText(next((task.description for task in self._entries if task.name == chosen), ""))
        self.show_name(str(draft.get("name", "")))

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
        self.preset_changes.setText(_change_words(changes))
        self.preset_changes.setToolTip("\n".join(changes))
        self.preset_changes.setVisible(bool(changes))

    def _select_preset(self) -> None:
        places = range(self.presets.count())
        self.presets.setCurrentIndex(next((at for at in places if self.presets.itemData(at) == self._chosen), 0))
        self.preset_words.setText(self._chosen.description if self._chosen else "")
        self.preset_words.setVisible(self._chosen is not None)


def _change_words(changes: Sequence[str]) -> str:
    more = len(changes) - SHOWN_CHANGES
    return "  ·  ".join([*changes[:SHOWN_CHANGES], *([tr("{more} more", more=more)] if more > 0 else [])])


def _task_of(preset: Preset) -> str:
    return str(preset.spec.get("task", {}).get("type") or "")
