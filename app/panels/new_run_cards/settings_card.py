"""Owns the few settings that matter, and behind a button all the others; made from the catalog's schemas."""

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from app import theme
from app.core import schema, wording
from app.core.draft import Draft
from app.panels.new_run_cards.rows import Rows
from app.widgets.card import Card, label, rule
from app.widgets.quiet_combo_box import QuietComboBox
from app.widgets.schema_form import SchemaForm
from backend.contract.catalog import Catalog, TaskEntry

MATTERS = {"training": ["epochs", "batch_size", "learning_rate", "seed"], "task": ["max_length"]}
ELSEWHERE = {
    "task": {"type"},
    "evaluation": {"best_metric"},
    "hardware": {"engine", "device", "precision"},
    "model": {"name_or_path", "trust_remote_code"},
}
"""Fields that stand on other cards."""
SECTIONS = ("task", "training", "evaluation", "hardware", "model")


class SettingsCard(Card):
    """Emits `changed` with the dotted key of the spec."""

    changed = Signal(str, object)
    mistakes_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("5 · Settings", parent)
        self._schemas: dict[str, dict[str, Any]] = {}
        self._draft = Draft()
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
        self.body.addLayout(rows)
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
        _remove(self._few, self.forms)
        _remove(self._rest, self.others)
        for name, fields in MATTERS.items():
            form = self.forms[name] = SchemaForm(schema.only(self._schemas[name], fields), prefix=name)
            self._connect(form)
            self._few.addWidget(form)
        self.best.clear()
        self.best.addItem("None: the last weights", None)
        for metric in task.metrics:
            self.best.addItem(wording.metric_title(metric), metric)
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

    def _build_others(self) -> None:
        for name in SECTIONS:
            left = set(MATTERS.get(name, [])) | ELSEWHERE.get(name, set())
            fields = [field for field in self._schemas[name].get("properties", {}) if field not in left]
            if not fields:
                continue
            form = self.others[name] = SchemaForm(schema.only(self._schemas[name], fields), prefix=name)
            form.set_values(self._draft.get(name) or {})
            self._connect(form)
            for widget in (rule(), label(name.capitalize(), "strong"), form):
                self._rest.addWidget(widget)

    def _connect(self, form: SchemaForm) -> None:
        form.changed.connect(self.changed)
        form.mistakes_changed.connect(self.mistakes_changed)

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

    def mark(self, field: str, sentence: str) -> bool:
        """Show a mistake at its field; says whether there is such a field."""
        section = field.split(".")[0]
        if section in self.forms and self.forms[section].mark(field, sentence):
            return True
        if section not in self._schemas:
            return False
        self.set_unfolded(True)
        return section in self.others and self.others[section].mark(field, sentence)

    def clear_marks(self) -> None:
        """Take the mistakes away that were said from outside."""
        for form in (*self.forms.values(), *self.others.values()):
            form.clear_marks()

    def mistakes(self) -> list[str]:
        """The sentences of all marked fields."""
        found = [form.mistakes() for form in (*self.forms.values(), *self.others.values())]
        return [
            f"{name.replace('_', ' ').capitalize()}: {_lowered(text)}" for one in found for name, text in one.items()
        ]

    def apply_theme(self) -> None:
        """The fold's arrow in the present colour."""
        name = "chevron-down" if self._more.isChecked() else "chevron-right"
        self._more.setIcon(theme.icon(name, "muted", 14))


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _remove(layout: QVBoxLayout, forms: dict[str, SchemaForm]) -> None:
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()
            widget.deleteLater()
    forms.clear()
