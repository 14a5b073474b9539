"""Owns the few settings that matter, and behind a button all the others; made from the catalog's schemas."""

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from app import theme
from app.core import schema, wording
from app.core.draft import Draft
from app.panels.new_run_cards.options_form import OptionsForm
from app.panels.new_run_cards.rows import Rows
from app.widgets.card import Card, label, rule
from app.widgets.quiet_combo_box import QuietComboBox
from app.widgets.schema_form import SchemaForm
from backend.contract.catalog import AdapterEntry, Catalog, OptimizerEntry, TaskEntry

MATTERS = {"training": ["epochs", "batch_size", "learning_rate", "seed"], "task": ["max_length"]}
ELSEWHERE = {
    "task": {"type"},
    "evaluation": {"best_metric"},
    "hardware": {"engine", "device", "precision"},
    "model": {"name_or_path", "trust_remote_code"},
    "training": {"optimizer_options"},
    "data": {"source", "train", "validation", "test", "columns"},
}
"""Fields that stand on other cards, or in the form of what was chosen."""
SECTIONS = ("task", "data", "training", "evaluation", "hardware", "model")
NO_ADAPTER = "None: every weight is trained"


class SettingsCard(Card):
    """Emits `changed` with the dotted key of the spec."""

    changed = Signal(str, object)
    mistakes_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("5 · Settings", parent)
        self._schemas: dict[str, dict[str, Any]] = {}
        self._draft = Draft()
        self._matters: dict[str, list[str]] = {}
        self._optimizers: dict[str, OptimizerEntry] = {}
        self._adapters: dict[str, AdapterEntry] = {}
        self.forms: dict[str, SchemaForm] = {}
        self.others: dict[str, SchemaForm] = {}
        self.best = QuietComboBox()
        self.best.activated.connect(
            lambda number: self.changed.emit("evaluation.best_metric", self.best.itemData(number))
        )
        self._few = QVBoxLayout()
        self._few.setSpacing(0)
        self.body.addLayout(self._few)
        rows = Rows()
        rows.setColumnMinimumWidth(0, 150)
        rows.setContentsMargins(0, 0, 37, 0)
        rows.add("Best checkpoint by", self.best)
        self.adapter = QuietComboBox()
        self.adapter.activated.connect(self._on_adapter)
        self.adapter_form = OptionsForm("adapter")
        self.optimizer_form = OptionsForm("training.optimizer_options", self)
        for form in (self.adapter_form, self.optimizer_form):
            form.changed.connect(self.changed)
            form.mistakes_changed.connect(self.mistakes_changed)
        rows.add("Adapter", self.adapter)
        self.body.addLayout(rows)
        self.body.addWidget(self.adapter_form)
        self._more = QToolButton()
        self._more.setText("All settings")
        self._more.setCheckable(True)
        self._more.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._more.toggled.connect(self.set_unfolded)
        theme.role(self._more, "fold")
        self.body.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        self._rest = QVBoxLayout()
        self._rest.setSpacing(8)
        self.body.addLayout(self._rest)
        self.apply_theme()

    def set_task(self, task: TaskEntry, catalog: Catalog) -> None:
        """Another task: its settings, its metrics."""
        self._schemas = {name: schema.section(catalog.spec, name) for name in SECTIONS if name != "task"}
        self._schemas["task"] = schema.resolved(task.settings)
        self._optimizers = {one.name: one for one in catalog.optimizers}
        self._adapters = {one.name: one for one in catalog.adapters}
        self._rest.removeWidget(self.optimizer_form)
        _remove(self._few, self.forms)
        _remove(self._rest, self.others)
        # What decides which columns are asked for cannot stand behind a button.
        self._matters = {
            **MATTERS,
            "task": [*dict.fromkeys(name for part in task.columns for name in part.when), *MATTERS["task"]],
        }
        for name, fields in self._matters.items():
            form = self.forms[name] = SchemaForm(schema.only(self._schemas[name], fields), prefix=name)
            self._connect(form)
            self._few.addWidget(form)
        self.best.clear()
        self.best.addItem("None: the last weights", None)
        for metric in task.metrics:
            self.best.addItem(wording.metric_title(metric), metric)
        self.adapter.clear()
        self.adapter.addItem(NO_ADAPTER, None)
        for entry in catalog.adapters:
            self.adapter.addItem(entry.title, entry.name)
            self.adapter.setItemData(self.adapter.count() - 1, entry.description, Qt.ItemDataRole.ToolTipRole)
        if self._more.isChecked():
            self.set_unfolded(True)

    def set_unfolded(self, unfolded: bool) -> None:
        """Show all settings; their forms are made when first asked for."""
        self._more.setChecked(unfolded)
        self.apply_theme()
        if unfolded and not self.others and self._schemas:
            self._build_others()
        for number in range(self._rest.count()):
            item = self._rest.itemAt(number)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.setVisible(unfolded)
        self._show_choices()

    def _build_others(self) -> None:
        for name in SECTIONS:
            left = set(self._matters.get(name, [])) | ELSEWHERE.get(name, set())
            fields = [field for field in self._schemas[name].get("properties", {}) if field not in left]
            if not fields:
                continue
            form = self.others[name] = SchemaForm(schema.only(self._schemas[name], fields), prefix=name)
            form.set_values(self._draft.get(name) or {})
            self._connect(form)
            for widget in (rule(), label(name.capitalize(), "strong"), form):
                self._rest.addWidget(widget)
            if name == "training":
                self._rest.addWidget(self.optimizer_form)

    def _connect(self, form: SchemaForm) -> None:
        form.changed.connect(self._on_changed)
        form.mistakes_changed.connect(self.mistakes_changed)

    def _on_changed(self, key: str, value: Any) -> None:
        self.changed.emit(key, value)
        if key == "training.optimizer":
            self._show_choices()

    def _on_adapter(self, number: int) -> None:
        name = self.adapter.itemData(number)
        self.changed.emit("adapter", {"type": name} if name else None)
        self._show_choices()

    def _show_choices(self) -> None:
        """The settings of the chosen optimizer and adapter."""
        optimizer = self._draft.get("training.optimizer", "adamw")
        entry = self._optimizers.get(optimizer)
        options = self._draft.get("training.optimizer_options") or {}
        self.optimizer_form.show_choice(
            optimizer, entry.settings if entry and self._more.isChecked() and self.others else None, options
        )
        adapter = self._draft.get("adapter") or {}
        name = str(adapter.get("type") or "")
        if name and self.adapter.findData(name) < 0:
            self.adapter.addItem(f"{name} (not known here)", name)
        self.adapter.setCurrentIndex(max(0, self.adapter.findData(name)) if name else 0)
        chosen = self._adapters.get(name)
        self.adapter_form.show_choice(name, chosen.settings if chosen else None, adapter)

    def show_draft(self, draft: Draft) -> None:
        """Show what the draft says."""
        self._draft = draft
        for forms in (self.forms, self.others):
            for name, form in forms.items():
                form.set_defaults()
                form.set_values(draft.get(name) or {})
        metric = draft.get("evaluation.best_metric")
        if metric is not None and self.best.findData(metric) < 0:
            self.best.addItem(str(metric), metric)
        self.best.setCurrentIndex(max(0, self.best.findData(metric)))
        self._show_choices()

    def mark(self, field: str, sentence: str) -> bool:
        """Show a mistake at its field; says whether there is such a field."""
        section = field.split(".")[0]
        if section == "adapter":
            return any(form.mark(field, sentence) for form in self.adapter_form.forms())
        if section in self.forms and self.forms[section].mark(field, sentence):
            return True
        if section not in self._schemas:
            return False
        self.set_unfolded(True)
        if field.startswith("training.optimizer_options"):
            return any(form.mark(field, sentence) for form in self.optimizer_form.forms())
        return section in self.others and self.others[section].mark(field, sentence)

    def clear_marks(self) -> None:
        """Take the mistakes away that were said from outside."""
        for form in self._all_forms():
            form.clear_marks()

    def mistakes(self) -> list[str]:
        """The sentences of all marked fields."""
        return [sentence for form in self._all_forms() for sentence in wording.mistakes(form.mistakes())]

    def _all_forms(self) -> list[SchemaForm]:
        options = [*self.adapter_form.forms(), *self.optimizer_form.forms()]
        return [*self.forms.values(), *self.others.values(), *options]

    def apply_theme(self) -> None:
        """The fold's arrow in the present colour."""
        name = "chevron-down" if self._more.isChecked() else "chevron-right"
        self._more.setIcon(theme.icon(name, "muted", 14))


def _remove(layout: QVBoxLayout, forms: dict[str, SchemaForm]) -> None:
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()
            widget.deleteLater()
    forms.clear()
