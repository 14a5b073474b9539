"""Owns the form that is made from a JSON Schema alone: it knows types of fields, never fields."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QToolButton, QVBoxLayout, QWidget

from app import theme
from app.widgets.card import label
from app.widgets.field_editor import Editor
from app.widgets.field_editors import editor_for
from app.widgets.field_values import NotUsableError
from app.widgets.icon_label import IconToolButton
from app.widgets.schema_field import FieldSchema, fields_of

LABEL_WIDTH = 150
GAP = 8
"""Pixels below a field."""


class FieldRow:
    """One field of the form: title, editor, reset button, and a line for its mistake."""

    def __init__(self, form: "SchemaForm", field: FieldSchema, grid: QGridLayout) -> None:
        self.field = field
        self.editor: Editor = editor_for(field)
        self.title = label(field.title + (f" ({field.unit})" if field.unit else ""), "muted", wrap=True)
        self.title.setMaximumWidth(form.label_width)
        self.title.setBuddy(self.editor.target)
        self.title.setToolTip(field.help)
        self.reset = IconToolButton("refresh", f"Reset {field.title} to its default", "faint", 14)
        self.mistake = label("", "mistake", wrap=True)
        self.help = label(field.help, "faint", wrap=True)
        row = grid.rowCount()
        top = Qt.AlignmentFlag.AlignTop if field.editor == "yaml" else Qt.AlignmentFlag.AlignVCenter
        self.title.setContentsMargins(0, 7 if field.editor == "yaml" else 0, 0, 0)
        grid.addWidget(self.title, row, 0, top)
        grid.addWidget(self.editor.widget, row, 1)
        grid.addWidget(self.reset, row, 2)
        grid.addWidget(self.mistake, row + 1, 1)
        grid.addWidget(self.help, row + 2, 1)
        self.mistake.hide()
        self._shows_help = form.shows_help and bool(field.help)
        self.help.setVisible(self._shows_help)
        self._grid, self._gap = grid, row + 3
        grid.setRowMinimumHeight(self._gap, GAP)
        grid.addWidget(QWidget(), self._gap, 0)
        kept = self.reset.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(kept)
        self.show_value(field.default)

    def show_value(self, value: Any) -> None:
        """Put a value into the editor; one that it shows already is left as a person is writing it."""
        self.value = value
        if not self._shows(value):
            self.editor.set_value(value)
        self.mark("")
        self.reset.setVisible(self.is_changed())

    def is_changed(self) -> bool:
        """Whether the value differs from the default that there is."""
        return "default" in self.field.schema and self.value != self.field.default

    def read(self) -> str:
        """Take the editor's value over; returns the mistake, in which case the old value stays."""
        value, mistake = self._looked_at()
        if not mistake:
            self.value = value
        return mistake

    def own_mistake(self) -> str:
        """What is wrong with what the editor shows; takes nothing over, as nobody would be told."""
        return self._looked_at()[1]

    def _looked_at(self) -> tuple[Any, str]:
        try:
            value = self.editor.value()
        except NotUsableError as error:
            return None, str(error)
        return value, self.field.mistake(value)

    def _shows(self, value: Any) -> bool:
        shown, mistake = self._looked_at()
        return not mistake and shown == value and isinstance(shown, bool) == isinstance(value, bool)

    def show_used(self, used: bool) -> None:
        """Show the field where its settings mean something."""
        for widget in (self.title, self.editor.widget):
            widget.setVisible(used)
        self.reset.setVisible(used and self.is_changed())
        self.mistake.setVisible(used and bool(self.mistake.text()))
        self.help.setVisible(used and self._shows_help)
        self._grid.setRowMinimumHeight(self._gap, GAP if used else 0)

    def mark(self, sentence: str) -> None:
        """Show a mistake at the field; empty takes it away."""
        self.mistake.setText(sentence)
        self.mistake.setVisible(bool(sentence))
        target = self.editor.target
        if bool(target.property("mistaken")) != bool(sentence):
            target.setProperty("mistaken", bool(sentence))
            target.style().unpolish(target)
            target.style().polish(target)
        target.setAccessibleDescription(sentence or self.field.help)


class SchemaForm(QWidget):
    """`prefix` is put before the keys of `changed`: a form for `training` tells of `training.batch_size`."""

    changed = Signal(str, object)
    """Dotted key and the new, valid value."""
    mistakes_changed = Signal()

    def __init__(
        self,
        schema: Mapping[str, Any],
        prefix: str = "",
        shows_help: bool = False,
        parent: QWidget | None = None,
        label_width: int = LABEL_WIDTH,
    ) -> None:
        super().__init__(parent)
        self.prefix, self.shows_help, self.label_width = prefix, shows_help, label_width
        self._rows: dict[str, FieldRow] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        fields = [field for field in fields_of(schema) if not field.schema.get("hidden")]
        column.addWidget(self._section([field for field in fields if not field.advanced]))
        folded = [field for field in fields if field.advanced]
        self._fold = self._fold_button(len(folded))
        self._more = self._section(folded)
        if folded:
            column.addWidget(self._fold, 0, Qt.AlignmentFlag.AlignLeft)
            column.addWidget(self._more)
        else:
            self._fold.hide()
        self._more.hide()
        column.addStretch(1)
        self._show_used()

    def _section(self, fields: list[FieldSchema]) -> QWidget:
        holder = QWidget(self)
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(0)
        grid.setColumnMinimumWidth(0, self.label_width)
        grid.setColumnStretch(1, 1)
        group = ""
        for field in fields:
            if field.group != group:
                group = field.group
                grid.addWidget(label(group.upper(), "heading"), grid.rowCount(), 0, 1, 3)
            row = FieldRow(self, field, grid)
            self._rows[field.name] = row
            row.editor.changed.connect(lambda row=row: self._on_edited(row))
            row.reset.clicked.connect(lambda _=False, row=row: self._on_reset(row))
        return holder

    def _fold_button(self, count: int) -> QToolButton:
        button = QToolButton(self)
        button.setText(f"More settings ({count})")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setCheckable(True)
        button.toggled.connect(self.set_unfolded)
        theme.role(button, "fold")
        button.setIcon(theme.icon("chevron-right", "muted", 14))
        return button

    def apply_theme(self) -> None:
        """The fold's arrow in the present colour."""
        name = "chevron-down" if self._fold.isChecked() else "chevron-right"
        self._fold.setIcon(theme.icon(name, "muted", 14))

    def set_unfolded(self, unfolded: bool) -> None:
        """Show the advanced fields or fold them away."""
        self._fold.setChecked(unfolded)
        self._more.setVisible(unfolded)
        self.apply_theme()

    # Values

    def values(self) -> dict[str, Any]:
        """Field → last valid value."""
        return {name: row.value for name, row in self._rows.items()}

    def changed_values(self) -> dict[str, Any]:
        """Only what differs from the defaults, and what has no default."""
        return {
            name: row.value
            for name, row in self._rows.items()
            if row.is_changed() or ("default" not in row.field.schema and row.value is not None)
        }

    def set_values(self, values: Mapping[str, Any]) -> None:
        """Show these values; fields that are not named keep theirs; emits nothing."""
        for name, value in values.items():
            if name in self._rows:
                self._rows[name].show_value(value)
        self._show_used()

    def set_defaults(self) -> None:
        """Show the defaults everywhere; emits nothing."""
        for row in self._rows.values():
            row.show_value(row.field.default)
        self._show_used()

    def _show_used(self) -> None:
        """Fields whose `when` names other values of other fields mean nothing now."""
        for row in self._rows.values():
            wanted = row.field.schema.get("when")
            if wanted:
                row.show_used(
                    all(self._rows[name].value in values for name, values in wanted.items() if name in self._rows)
                )

    def editor(self, name: str) -> Editor:
        """The editor of a field, for a panel that must enable or focus it."""
        return self._rows[self._own(name)].editor

    # Mistakes

    def mistakes(self) -> dict[str, str]:
        """Field → sentence, for the marked fields."""
        return {name: row.mistake.text() for name, row in self._rows.items() if row.mistake.text()}

    def mark(self, name: str, sentence: str) -> bool:
        """Show a mistake at a field, given by dotted key or name; returns whether the form has the field."""
        row = self._rows.get(self._own(name))
        if row is None:
            return False
        row.mark(sentence)
        if row.field.advanced and sentence:
            self.set_unfolded(True)
        self.mistakes_changed.emit()
        return True

    def clear_marks(self) -> None:
        """Take away the mistakes that were said from outside; what cannot be read stays marked."""
        for row in self._rows.values():
            row.mark(row.own_mistake())
        self.mistakes_changed.emit()

    def _own(self, key: str) -> str:
        own = key.removeprefix(f"{self.prefix}.") if self.prefix else key
        return own if own in self._rows else own.split(".")[0]

    def _dotted(self, row: FieldRow) -> str:
        return f"{self.prefix}.{row.field.name}" if self.prefix else row.field.name

    def _on_edited(self, row: FieldRow) -> None:
        before, had = row.value, row.mistake.text()
        row.mark(row.read())
        row.reset.setVisible(row.is_changed())
        if row.mistake.text() != had:
            self.mistakes_changed.emit()
        if not row.mistake.text() and row.value != before:
            self._show_used()
            self.changed.emit(self._dotted(row), row.value)

    def _on_reset(self, row: FieldRow) -> None:
        row.show_value(row.field.default)
        self._show_used()
        self.mistakes_changed.emit()
        self.changed.emit(self._dotted(row), row.value)
