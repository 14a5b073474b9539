"""The form of the Try box: models, task, inputs, and generation settings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.core.i18n import inside, tr
from app.core.predictions.interactive import Question
from app.core.runs.run_library import RunSummary
from app.core.runs.run_spec import RunTask, read_run_task, typed_columns
from app.pages.predictions.interactive.try_fields import HINT, InputFields, WritingSettings
from app.pages.predictions.interactive.try_target import GONE, TargetChoice
from app.widgets.boxes import keep_room
from app.widgets.card import Card, label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.forms.schema_form import SchemaForm
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.progress import ThinProgressBar
from backend.contract.catalog import TaskEntry
from backend.contract.resources import DEMO_MODELS
from backend.contract.rpc.models import CachedModel

_DEMO_TASKS = {str(model.folder): model.task for model in DEMO_MODELS if model.task}


class TryForm(Card):
    """Emits queries; it sends none itself."""

    answer_requested = Signal()
    cancelled = Signal()
    example_wanted = Signal()
    targets_changed = Signal()
    """Another model or task was chosen: it may be described."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Ask a model"), parent)
        self._tasks: dict[str, TaskEntry] = {}
        self._task = RunTask()
        self.parts, self.writing = InputFields(), WritingSettings()
        self.parts.entered.connect(self.answer_requested)
        self.first, self.second = TargetChoice(), TargetChoice(tr("Second model"))
        self.first.changed.connect(self._on_target)
        self.second.changed.connect(self._on_second)
        self.add(self.first)
        self.add(self._second_row())
        self.add(self._task_row())
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setWidget(self._make_inputs())
        self.add(self._area, 1)
        self.mistake = label("", "mistake", wrap=True)
        self.mistake.hide()
        self.add(self.mistake)
        self.progress = ThinProgressBar()
        keep_room(self.progress)
        self.progress.hide()
        self.add(self.progress)
        self.body.addLayout(self._buttons())
        self.setMinimumWidth(340)
        self._build()

    # Building

    def _make_inputs(self) -> QWidget:
        holder = QWidget()
        holder.setObjectName("scrolled")
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.parts)
        column.addWidget(self.writing)
        column.addStretch(1)
        return holder

    def _second_row(self) -> QWidget:
        self.also = IconButton(tr("Add a second model"), "plus", "quiet")
        self.also.setToolTip(tr("Ask a second model the same thing and compare the answers"))
        self.also.clicked.connect(lambda: self.show_second(True))
        swap = IconToolButton("refresh", tr("Swap the two models"))
        swap.clicked.connect(self.swap)
        remove = IconToolButton("close", tr("Remove the second model"))
        remove.clicked.connect(lambda: self.show_second(False))
        self.second.row.addWidget(swap)
        self.second.row.addWidget(remove)
        self.second.hide()
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.second)
        column.addWidget(self.also, 0, Qt.AlignmentFlag.AlignLeft)
        return holder

    def _task_row(self) -> QWidget:
        self.task = QuietComboBox()
        self.task.setAccessibleName(tr("Task"))
        self.task.activated.connect(lambda _: self._on_task())
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(label(tr("Task"), "muted"))
        row.addWidget(self.task, 1)
        return holder

    def _buttons(self) -> QHBoxLayout:
        self.answer = IconButton(tr("Answer"), "play", "primary")
        self.answer.setToolTip(HINT)
        self.answer.clicked.connect(self.answer_requested)
        self.cancel = IconButton(tr("Stop"), "stop")
        self.cancel.setToolTip(tr("Stop answering"))
        self.cancel.clicked.connect(self.cancelled)
        self.cancel.hide()
        self.example = IconButton(tr("Example"), "refresh", "quiet")
        self.example.setToolTip(tr("Fill in the next row of the run's validation data, or an example for the task"))
        self.example.clicked.connect(self.example_wanted)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.answer)
        row.addWidget(self.cancel)
        row.addStretch(1)
        row.addWidget(self.example)
        return row

    def offer_tasks(self, tasks: Sequence[TaskEntry]) -> None:
        """Offer the catalog's tasks, for models that no run has trained."""
        self._tasks = {entry.name: entry for entry in tasks}
        self.task.clear()
        for entry in tasks:
            self.task.addItem(entry.title, entry.name)
        self._on_target()

    def offer_targets(
        self, runs: Sequence[RunSummary], models: Sequence[str], cached: Sequence[CachedModel] = ()
    ) -> None:
        """Offer runs with a model, demo models, and recently used or cached models."""
        for choice in (self.first, self.second):
            choice.offer(runs, models, cached)

    # Which models

    def show_run(self, run: Path | None, kind: str = "") -> None:
        """Query this run's model."""
        if run is not None:
            self.first.show_run(str(run), kind)

    def show_model(self, name: str) -> None:
        """Query the model of a folder or hub id."""
        self.first.show_model(name)

    def chosen_target(self) -> str:
        """The run's, checkpoint's or model's folder, or a hub id."""
        return self.first.chosen()

    @property
    def asks_two(self) -> bool:
        """Whether a second model gets the same query."""
        return not self.second.isHidden()

    def choices(self) -> list[TargetChoice]:
        """The models to query."""
        return [self.first, self.second] if self.asks_two else [self.first]

    def show_second(self, on: bool) -> None:
        """Query another model too, or only the first."""
        self.second.setVisible(on)
        self.also.setVisible(not on)
        self.set_title(tr("Ask two models") if on else tr("Ask a model"))
        self.writing.show_second(on)
        self.targets_changed.emit()
        if on:
            self.second.target.setFocus()

    def swap(self) -> None:
        """Swap the two models."""
        first, second = self.first.chosen(), self.second.chosen()
        if second:
            self.first.show_target(second, self._task.kind)
            self.second.show_target(first, self._task.kind)

    def _on_target(self) -> None:
        self.show_mistake("")
        target, is_run = self.first.chosen_whole(), self.first.is_run
        known = _DEMO_TASKS.get(target) or self.task.currentData() or ""
        task = read_run_task(target) if is_run else RunTask(known)
        self.task.setEnabled(not is_run)
        if self.task.findData(task.kind) >= 0:
            self.task.setCurrentIndex(self.task.findData(task.kind))
        self._use(task)
        self.targets_changed.emit()

    def _on_second(self) -> None:
        self.show_mistake("")
        self.targets_changed.emit()

    def _on_task(self) -> None:
        self._use(RunTask(self.task.currentData() or ""))
        self.targets_changed.emit()

    def _use(self, task: RunTask) -> None:
        if task != self._task or not self.fields:
            self._task = task
            self._build()

    @property
    def task_chosen(self) -> RunTask:
        """The task, with the run's settings for it."""
        return self._task

    @property
    def entry(self) -> TaskEntry | None:
        """The task's catalog entry."""
        return self.entry_of(self._task.kind)

    def entry_of(self, kind: str) -> TaskEntry | None:
        """The catalog entry of any task."""
        return self._tasks.get(kind)

    # What is typed

    @property
    def fields(self) -> Mapping[str, QWidget]:
        """The fields by role."""
        return self.parts.fields

    @property
    def settings(self) -> SchemaForm | None:
        """The first model's generation settings, if it generates text."""
        return self.writing.form

    def _build(self) -> None:
        entry = self.entry
        self.parts.show_parts(typed_columns(entry, self._task) if entry is not None else ())
        self.writing.show_task(entry, dict(self._task.settings), self.asks_two)
        self.show_mistake("")

    def fill(self, values: Mapping[str, Any]) -> None:
        """Fill the fields with text by role."""
        self.parts.fill(values)

    def fill_row(self, values: Mapping[str, Any], columns: Mapping[str, str]) -> None:
        """Fill the fields from a row of a predictions file."""
        roles = {name: name for name in values} | dict(columns)
        self.fill({role: values.get(name) for role, name in roles.items()})

    # The question

    def question(self) -> Question:
        """The query for the first model."""
        return self.questions()[0]

    def questions(self) -> list[Question]:
        """The query for each model: the same row."""
        row = self.parts.row()
        return [
            Question(choice.chosen(), self._task.kind, row, self.writing.changed(place), self._task)
            for place, choice in enumerate(self.choices())
        ]

    def mistake_before_asking(self) -> str:
        """Why no query can be sent; empty if it can."""
        if not all(choice.chosen() for choice in self.choices()):
            return tr("Choose a run, or enter a model folder or Hub ID.")
        if any(choice.is_gone for choice in self.choices()):
            return GONE
        if not self.fields:
            return tr("Choose a task first.")
        if self.asks_two and (mistake := self._second_mistake()):
            return mistake
        if part := self.parts.missing():
            return tr("Enter {part} first.", part=part)
        if self.writing.mistakes(len(self.choices())):
            return tr("Fix the marked settings first.")
        return ""

    def _second_mistake(self) -> str:
        if not self.second.is_run:
            return ""
        other = read_run_task(self.second.chosen_whole()).kind
        if other == self._task.kind:
            return ""
        titles = [
            inside(entry.title) if (entry := self._tasks.get(kind)) else kind for kind in (other, self._task.kind)
        ]
        return tr(
            "{name} was trained for {titles}, but the first model was trained for {titles_2}. Choose another model.",
            name=self.second.name,
            titles=titles[0],
            titles_2=titles[1],
        )

    def show_mistake(self, sentence: str, field: str | None = None, place: int = 0) -> None:
        """Show an error, at a setting of a model (0 or 1) if it is about one."""
        if field and field.startswith("task.") and self.writing.mark(place, field, sentence):
            return
        self.mistake.setText(sentence)
        self.mistake.setVisible(bool(sentence))
        self.parts.mark(field)

    def show_busy(self, busy: bool) -> None:
        """While a query is running it can only be cancelled."""
        self.answer.setVisible(not busy)
        self.cancel.setVisible(busy)
        self.progress.setVisible(busy)
        self.progress.set_fraction(None if busy else 0.0)
