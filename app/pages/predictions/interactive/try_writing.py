"""Owns how text is written by the models that are asked: a task's decoding settings, for the second its own if wished."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from app.core.i18n import tr
from app.core.json_schema import defaults, only, resolved
from app.widgets.card import label
from app.widgets.forms.schema_form import SchemaForm
from backend.contract.catalog import TaskEntry
from backend.contract.rpc.generation import GenerationSettings

WRITING = [field.name for field in fields(GenerationSettings)]


class WritingSettings(QWidget):
    """Empty for tasks that write nothing."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form: SchemaForm | None = None
        self._second: SchemaForm | None = None
        self._schema: dict[str, Any] = {}
        self._values: dict[str, Any] = {}
        self._begun: dict[str, Any] = {}
        self.own = QCheckBox(tr("The second model writes otherwise"))
        self.own.setToolTip(tr("Give the second model settings of its own"))
        self._title = label(tr("HOW TEXT IS WRITTEN"), "heading")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self._title)
        self._column.addWidget(self.own)
        self.own.toggled.connect(self._show_own)
        self.hide()

    def show_task(self, entry: TaskEntry | None, values: Mapping[str, Any], two: bool) -> None:
        """The settings of a task, begun with a run's `values`."""
        for form in filter(None, (self.form, self._second)):
            form.hide()
            form.deleteLater()
        self.form = self._second = None
        self._schema = only(resolved(entry.settings), WRITING) if entry is not None else {}
        self.setVisible(bool(self._schema.get("properties")))
        if entry is None or not self._schema.get("properties"):
            return
        self._values, self._begun = dict(values), defaults(entry.settings) | dict(values)
        self.form = self._made(1)
        self.show_second(two)

    def _made(self, place: int) -> SchemaForm:
        form = SchemaForm(self._schema, "task", parent=self)
        form.set_values(self._values)
        self._column.insertWidget(place, form)
        return form

    def show_second(self, on: bool) -> None:
        """Whether there is a second model, which may write otherwise."""
        self.own.setVisible(on)
        self._show_own(on and self.own.isChecked())

    def _show_own(self, on: bool) -> None:
        """Its settings are made when they are first wished: few ask two models that write otherwise."""
        if on and self._second is None and self.form is not None:
            self._second = self._made(3)
        if self._second is not None:
            self._second.setVisible(on)

    def changed(self, place: int) -> dict[str, Any]:
        """What differs from how the run, or the task, begins, for the first (0) or second model (1)."""
        form = self._form(place)
        values = form.values() if form is not None else {}
        return {name: value for name, value in values.items() if value != self._begun.get(name)}

    def mistakes(self, count: int) -> bool:
        """Whether a setting of one of so many models is out of its bounds."""
        return any(form is not None and bool(form.mistakes()) for form in map(self._form, range(count)))

    def mark(self, place: int, field: str, sentence: str) -> bool:
        """Say at the setting what is wrong with it; False where there is none of that name."""
        form = self._form(place)
        return form is not None and form.mark(field, sentence)

    def _form(self, place: int) -> SchemaForm | None:
        return self._second if place and self.own.isChecked() else self.form
