"""Owns the form of the Try box: which model, which task, what is typed, and how text is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.core.run_library import RunSummary
from app.core.run_task import RunTask, read_run_task, typed_columns
from app.core.schema import defaults, only, resolved
from app.widgets.card import Card, label
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.progress_bar import ThinProgressBar
from app.widgets.quiet_combo_box import QuietComboBox
from app.widgets.schema_form import SchemaForm
from app.widgets.typed_text import TypedText
from backend.contract.catalog import Column, TaskEntry
from backend.contract.demo_models import DEMO_MODELS
from backend.contract.generation import GenerationSettings

WRITING = [field.name for field in fields(GenerationSettings)]
LISTED = "choices"
"""The part that is a list: it is typed with one of its texts a line."""
_DEMO_TASKS = {str(model.folder): model.task for model in DEMO_MODELS if model.task}


@dataclass(frozen=True)
class Question:
    """What the form asks."""

    target: str
    task: str
    row: dict[str, Any]
    settings: dict[str, Any]


class TryForm(Card):
    """Emits what is asked; it asks nothing itself."""

    asked = Signal()
    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Ask a model", parent)
        self._tasks: dict[str, TaskEntry] = {}
        self._task = RunTask()
        self._runs: dict[str, str] = {}
        self._typed: dict[str, str] = {}
        self.fields: dict[str, TypedText] = {}
        self.settings: SchemaForm | None = None
        self.add(self._target_row())
        self.add(self._task_row())
        self._holder = QVBoxLayout()
        self._holder.setContentsMargins(0, 0, 0, 0)
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.add(self._area, 1)
        self.mistake = label("", "mistake", wrap=True)
        self.mistake.hide()
        self.add(self.mistake)
        self.progress = ThinProgressBar()
        kept = self.progress.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(kept)
        self.progress.hide()
        self.add(self.progress)
        self.body.addLayout(self._buttons())
        self.setMinimumWidth(340)
        self._build()

    # Building

    def _target_row(self) -> QWidget:
        self.target = QuietComboBox()
        self.target.setEditable(True)
        self.target.setAccessibleName("Model")
        self.target.setToolTip("A run, or type a folder or the id of a model on the hub and press Enter")
        self.target.activated.connect(lambda _: self._on_target())
        line = self.target.lineEdit()
        assert line is not None
        line.editingFinished.connect(self._on_target)
        line.setPlaceholderText("Run, folder or hub id")
        browse = IconToolButton("folder", "Choose a model folder")
        browse.clicked.connect(self._browse)
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self.target, 1)
        row.addWidget(browse)
        return holder

    def _task_row(self) -> QWidget:
        self.task = QuietComboBox()
        self.task.setAccessibleName("Task")
        self.task.activated.connect(lambda _: self._on_task())
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(label("Task", "muted"))
        row.addWidget(self.task, 1)
        return holder

    def _buttons(self) -> QHBoxLayout:
        self.answer = IconButton("Answer", "play", "primary")
        self.answer.setToolTip("Enter or Ctrl+Enter in a field")
        self.answer.clicked.connect(self.asked)
        self.cancel = IconButton("Cancel", "stop")
        self.cancel.clicked.connect(self.cancelled)
        self.cancel.hide()
        self.hint = label("Enter answers, Shift+Enter breaks the line", "faint", wrap=True)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.answer)
        row.addWidget(self.cancel)
        row.addWidget(self.hint, 1)
        return row

    def offer_tasks(self, tasks: Sequence[TaskEntry]) -> None:
        """Let choose among the catalog's tasks, for models that no run has trained."""
        self._tasks = {entry.name: entry for entry in tasks}
        self.task.clear()
        for entry in tasks:
            self.task.addItem(entry.title, entry.name)
        self._on_target()

    def offer_runs(self, runs: Sequence[RunSummary], models: Sequence[str]) -> None:
        """Let choose among runs that have a model, the demo's model, and models that were used before."""
        there = [run for run in runs if run.has_predictions]
        listed = {str(run.path) for run in there}
        offers = [(f"{run.title} · {run.name}", str(run.path)) for run in there]
        offers += [(Path(path).name, path) for path in self._runs if path not in listed]
        offers += [(f"Demo model ({model.name})", str(model.folder)) for model in DEMO_MODELS]
        offers += [(name, name) for name in models]
        self._runs |= {str(run.path): run.task for run in there}
        if offers != [(self.target.itemText(n), self.target.itemData(n)) for n in range(self.target.count())]:
            kept = self.chosen_target()
            self.target.clear()
            for title, value in offers:
                self.target.addItem(title, value)
            place = self.target.findData(kept)
            self.target.setCurrentIndex(place)
            if place < 0:
                self.target.setEditText(kept)

    # Which model

    def show_run(self, run: Path | None, kind: str = "") -> None:
        """Ask this run's model."""
        if run is None:
            return
        self._runs.setdefault(str(run), kind)
        place = self.target.findData(str(run))
        if place < 0:
            self.target.insertItem(0, run.name, str(run))
            place = 0
        self.target.setCurrentIndex(place)
        self._on_target()

    def show_model(self, name: str) -> None:
        """Ask the model of a folder or hub id."""
        place = self.target.findData(name)
        if place >= 0:
            self.target.setCurrentIndex(place)
        else:
            self.target.setEditText(name)
        self._on_target()

    def chosen_target(self) -> str:
        """The run's or model's folder, or a hub id."""
        text = self.target.currentText().strip()
        at = self.target.currentIndex()  # two runs may have one title
        place = at if at >= 0 and self.target.itemText(at).strip() == text else self.target.findText(text)
        return str(self.target.itemData(place)) if place >= 0 else text

    def _browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Choose the folder of a model", str(Path.home()))
        if folder:
            self.show_model(folder)

    def _on_target(self) -> None:
        target = self.chosen_target()
        is_run = target in self._runs
        known = _DEMO_TASKS.get(target) or self.task.currentData() or ""
        task = read_run_task(target) if is_run else RunTask(known)
        self.task.setEnabled(not is_run)
        if self.task.findData(task.kind) >= 0:
            self.task.setCurrentIndex(self.task.findData(task.kind))
        self._use(task)

    def _on_task(self) -> None:
        self._use(RunTask(self.task.currentData() or ""))

    def _use(self, task: RunTask) -> None:
        if task != self._task or not self.fields:
            self._task = task
            self._build()

    # What is typed

    def _build(self) -> None:
        self._typed |= {role: field.toPlainText() for role, field in self.fields.items()}
        self.fields, self.settings = {}, None
        holder = QWidget()
        holder.setObjectName("scrolled")
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        entry = self._tasks.get(self._task.kind)
        if entry is not None:
            for part in typed_columns(entry, self._task):
                self._add_field(column, part)
            self._add_settings(column, entry)
        column.addStretch(1)
        self._area.setWidget(holder)
        self.show_mistake("")

    def _add_field(self, column: QVBoxLayout, part: Column) -> None:
        title = label(part.title if part.required else f"{part.title} (optional)", "muted")
        title.setToolTip(part.description)
        field = TypedText(part.title, 2)
        field.setPlainText(self._typed.get(part.name, ""))
        field.setPlaceholderText("One a line" if part.name == LISTED else "")
        field.entered.connect(self.asked)
        title.setBuddy(field)
        column.addWidget(title)
        column.addWidget(field)
        column.addSpacing(8)
        self.fields[part.name] = field

    def _add_settings(self, column: QVBoxLayout, entry: TaskEntry) -> None:
        schema = only(resolved(entry.settings), WRITING)
        if not schema.get("properties"):
            return
        column.addWidget(label("HOW TEXT IS WRITTEN", "heading"))
        self.settings = SchemaForm(schema, "task")
        self.settings.set_values(dict(self._task.settings))
        column.addWidget(self.settings)

    def fill(self, values: Mapping[str, Any]) -> None:
        """Put typed parts, by role, into the fields."""
        self._typed |= {role: typed(value) for role, value in values.items()}
        for role, field in self.fields.items():
            field.setPlainText(self._typed.get(role, ""))

    def fill_row(self, values: Mapping[str, Any], columns: Mapping[str, str]) -> None:
        """Put a row of a predictions file into the fields."""
        roles = {name: name for name in values} | dict(columns)
        self.fill({role: values.get(name) for role, name in roles.items()})

    # The question

    def question(self) -> Question:
        """What is asked now."""
        row: dict[str, Any] = {}
        for role, field in self.fields.items():
            text = field.toPlainText()
            if role == LISTED:
                row[role] = [line.strip() for line in text.splitlines() if line.strip()]
            elif text:
                row[role] = text
        return Question(self.chosen_target(), self._task.kind, row, self._changed_settings())

    def _changed_settings(self) -> dict[str, Any]:
        if self.settings is None:
            return {}
        begun = defaults(self._tasks[self._task.kind].settings) | dict(self._task.settings)
        return {name: value for name, value in self.settings.values().items() if value != begun.get(name)}

    def mistake_before_asking(self) -> str:
        """Why nothing can be asked; empty where it can."""
        if not self.chosen_target():
            return "Choose a run, or type a model's folder or hub id."
        if not self.fields:
            return "Choose a task first."
        if not any(field.toPlainText().strip() for field in self.fields.values()):
            return f"Write something into {next(iter(self.fields.values())).accessibleName().lower()} first."
        if self.settings is not None and self.settings.mistakes():
            return "Mend the marked settings first."
        return ""

    def show_mistake(self, sentence: str, field: str | None = None) -> None:
        """Say what is wrong, at a setting where there is one."""
        if field and self.settings is not None and field.startswith("task.") and self.settings.mark(field, sentence):
            return
        self.mistake.setText(sentence)
        self.mistake.setVisible(bool(sentence))
        wrong = self.fields.get(field or "")
        for each in self.fields.values():
            _mark(each, each is wrong)

    def show_busy(self, busy: bool) -> None:
        """While a question is open it can only be taken back."""
        self.answer.setVisible(not busy)
        self.cancel.setVisible(busy)
        self.progress.setVisible(busy)
        self.progress.set_fraction(None if busy else 0.0)


def typed(value: object) -> str:
    """A value as a person would type it."""
    if isinstance(value, list):
        return "\n".join(map(str, value)) if any(" " in str(one) for one in value) else " ".join(map(str, value))
    return "" if value is None else str(value)


def _mark(field: TypedText, mistaken: bool) -> None:
    if bool(field.property("mistaken")) != mistaken:
        field.setProperty("mistaken", mistaken)
        field.style().unpolish(field)
        field.style().polish(field)
