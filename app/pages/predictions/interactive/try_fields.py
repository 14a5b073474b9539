"""The inputs of the Try box: one field for each input of the task, and the generation settings."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QPlainTextEdit, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import inside, tr
from app.core.json_schema import defaults, only, resolve
from app.widgets.card import label
from app.widgets.forms.schema_form import SchemaForm
from app.widgets.text.chat_editor import TypedChat
from app.widgets.text.text_editor import TypedText, text_of
from backend.contract.catalog import Column, TaskEntry
from backend.contract.rpc.generation import GenerationSettings

WRITING = [field.name for field in fields(GenerationSettings)]

LISTED, CHAT = "choices", "messages"
"""Parts that are lists: typed with one text a line, and as a conversation."""
ALONE, SHARED = 5, 2
"""Lines of a field that is the only one, and of one among others."""
HINT = tr("Enter to send, Shift+Enter for a new line")


class InputFields(QWidget):
    """Emits `entered` when the user wants an answer."""

    entered = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.fields: dict[str, TypedText | TypedChat] = {}
        self._typed: dict[str, str] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)

    def show_parts(self, parts: Sequence[Column]) -> None:
        """Show one field per role; typed text is kept for the same role."""
        self._typed |= {role: field.toPlainText() for role, field in self.fields.items()}
        self.fields = {}
        while item := self._column.takeAt(0):
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for part in parts:
            self._add(part, ALONE if len(parts) == 1 else SHARED)

    def _add(self, part: Column, lines: int) -> None:
        title = label(part.title if part.required else tr("{title} (optional)", title=part.title), "muted")
        title.setToolTip(part.description)
        field = TypedChat(part.title) if part.name == CHAT else TypedText(part.title, lines)
        field.setPlainText(self._typed.get(part.name, ""))
        if isinstance(field, TypedText):
            field.setPlaceholderText(tr("One per line") if part.name == LISTED else "" if self.fields else HINT)
        field.entered.connect(self.entered)
        title.setBuddy(field)
        self._column.addWidget(title)
        self._column.addWidget(field)
        self._column.addSpacing(8)
        self.fields[part.name] = field

    def fill(self, values: Mapping[str, Any]) -> None:
        """Fill the fields with text by role."""
        self._typed |= {role: typed_text(value) for role, value in values.items()}
        for role, field in self.fields.items():
            field.setPlainText(self._typed.get(role, ""))

    def continue_chat(self, answer: str) -> None:
        """Append the answer to the conversation, if the task is a chat."""
        chat = self.fields.get(CHAT)
        if isinstance(chat, TypedChat):
            chat.go_on(answer)

    def row(self) -> dict[str, Any]:
        """The typed text by role; empty roles are left out."""
        row: dict[str, Any] = {}
        for role, field in self.fields.items():
            text = text_of(field) if isinstance(field, QPlainTextEdit) else field.toPlainText()
            if role == LISTED:
                row[role] = [line.strip() for line in text.splitlines() if line.strip()]
            elif text:
                row[role] = text
        return row

    def missing(self) -> str:
        """The first role, phrased for a sentence, if nothing at all is typed; else empty."""
        if any(field.toPlainText().strip() for field in self.fields.values()):
            return ""
        return inside(next(iter(self.fields.values())).accessibleName())

    def mark(self, role: str | None) -> None:
        """Outline the field of the invalid role, and no other."""
        wrong = self.fields.get(role or "")
        for field in self.fields.values():
            theme.flag(field, "mistaken", field is wrong)


def typed_text(value: object) -> str:
    """A value as a person would type it."""
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "\n".join(map(str, value)) if any(" " in str(one) for one in value) else " ".join(map(str, value))
    return "" if value is None else str(value)


class WritingSettings(QWidget):
    """Empty for tasks that generate no text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form: SchemaForm | None = None
        self._second: SchemaForm | None = None
        self._schema: dict[str, Any] = {}
        self._values: dict[str, Any] = {}
        self._begun: dict[str, Any] = {}
        self.own = QCheckBox(tr("Different generation settings for the second model"))
        self.own.setToolTip(tr("Use separate generation settings for the second model"))
        self._title = label(tr("GENERATION SETTINGS"), "heading")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self._title)
        self._column.addWidget(self.own)
        self.own.toggled.connect(self._show_own)
        self.hide()

    def show_task(self, entry: TaskEntry | None, values: Mapping[str, Any], two: bool) -> None:
        """Show a task's settings, starting from a run's `values`; what these leave at its default is as the task is tried."""
        for form in filter(None, (self.form, self._second)):
            form.hide()
            form.deleteLater()
        self.form = self._second = None
        self._schema = only(resolve(entry.settings), WRITING) if entry is not None else {}
        self.setVisible(bool(self._schema.get("properties")))
        if entry is None or not self._schema.get("properties"):
            return
        usual = defaults(entry.settings)
        tried = {key: value for key, value in entry.try_settings.items() if values.get(key, usual[key]) == usual[key]}
        self._values, self._begun = {**values, **tried}, usual | dict(values)
        self.form = self._make_form(1)
        self.show_second(two)

    def _make_form(self, place: int) -> SchemaForm:
        form = SchemaForm(self._schema, "task", parent=self)
        form.set_values(self._values)
        self._column.insertWidget(place, form)
        return form

    def show_second(self, on: bool) -> None:
        """Show whether there is a second model, which may have its own settings."""
        self.own.setVisible(on)
        self._show_own(on and self.own.isChecked())

    def _show_own(self, on: bool) -> None:
        """Create the second model's settings on first use: few people give two models different ones."""
        if on and self._second is None and self.form is not None:
            self._second = self._make_form(3)
        if self._second is not None:
            self._second.setVisible(on)

    def changed(self, place: int) -> dict[str, Any]:
        """What differs from the run's or task's settings, for the first (0) or second model (1)."""
        form = self._form(place)
        values = form.values() if form is not None else {}
        return {name: value for name, value in values.items() if value != self._begun.get(name)}

    def mistakes(self, count: int) -> bool:
        """Whether any setting of this many models is out of range."""
        return any(form is not None and bool(form.mistakes()) for form in map(self._form, range(count)))

    def mark(self, place: int, field: str, sentence: str) -> bool:
        """Show an error at the setting; False if there is none with that name."""
        form = self._form(place)
        return form is not None and form.mark(field, sentence)

    def _form(self, place: int) -> SchemaForm | None:
        return self._second if place and self.own.isChecked() else self.form
