"""Owns one field of a form: title, editor, help, the way back to its default, and a line for its mistake."""

from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QToolButton, QWidget

from app import theme
from app.widgets.card import label
from app.widgets.field_editor import Editor
from app.widgets.field_editors import editor_for
from app.widgets.field_help import FieldHelp, help_lines, value_words
from app.widgets.field_values import NotUsableError
from app.widgets.icon_label import IconToolButton
from app.widgets.schema_field import FieldSchema

GAP = 8
"""Pixels below a field."""
COLUMNS = 4


class FieldRow(QObject):
    """Takes the next three lines of a grid; `key` is what the field is called in a spec."""

    edited = Signal()
    reset_asked = Signal()

    def __init__(
        self, parent: QWidget, field: FieldSchema, key: str, grid: QGridLayout, width: int, shows_help: bool
    ) -> None:
        super().__init__(parent)
        self.field, self.key = field, key
        self.editor: Editor = editor_for(field)
        self.editor.changed.connect(self.edited)
        self.title = label(field.title + (f" ({field.unit})" if field.unit else ""), "muted", wrap=True)
        self.title.setMaximumWidth(width)
        self.title.setBuddy(self.editor.target)
        hint = "\n".join(help_lines(field, key))
        self.title.setToolTip(hint)
        self.editor.target.setToolTip(hint)
        self.reset = IconToolButton("undo", f"Reset {field.title} to {value_words(field.default)}", "faint", 14)
        self.reset.clicked.connect(self.reset_asked)
        self.ask = QToolButton()
        self.ask.setText("?")
        theme.role(self.ask, "help")
        self.ask.setToolTip(hint)
        self.ask.setAccessibleName(f"What is {field.title}?")
        self.ask.clicked.connect(self.show_help)
        self.mistake = label("", "mistake", wrap=True)
        self.help = label(field.help, "faint", wrap=True)
        self._has_help = shows_help and bool(field.help)
        self._used = self._sought = True
        self._place(grid)
        self.show_value(field.default)

    def _place(self, grid: QGridLayout) -> None:
        row = grid.rowCount()
        is_tall = self.field.editor == "yaml"
        top = Qt.AlignmentFlag.AlignTop if is_tall else Qt.AlignmentFlag.AlignVCenter
        self.title.setContentsMargins(0, 7 if is_tall else 0, 0, 0)
        grid.addWidget(self.title, row, 0, top)
        grid.addWidget(self.editor.widget, row, 1)
        grid.addWidget(self.reset, row, 2, top)
        grid.addWidget(self.ask, row, 3, top)
        grid.addWidget(self.mistake, row + 1, 1)
        grid.addWidget(self.help, row + 2, 1)
        self._grid, self._gap = grid, row + 3
        grid.setRowMinimumHeight(self._gap, GAP)
        grid.addWidget(QWidget(), self._gap, 0)
        kept = self.reset.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(kept)
        self.mistake.hide()
        self.help.setVisible(self._has_help)

    # The value

    def show_value(self, value: Any) -> None:
        """Put a value into the editor; one that it shows already is left as a person is writing it."""
        self.value = value
        if not self._shows(value):
            self.editor.set_value(value)
        # A value that somebody chose may be wrong; what is not chosen yet is no mistake.
        self.mark("" if value == self.field.default else self.field.mistake(value))
        self._show_changed()

    def is_changed(self) -> bool:
        """Whether the value differs from the default that there is."""
        return "default" in self.field.schema and self.value != self.field.default

    def read(self) -> str:
        """Take the editor's value over; returns the mistake, in which case the old value stays."""
        value, mistake = self._looked_at()
        if not mistake:
            self.value = value
        self.mark(mistake)
        self._show_changed()
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

    def mark(self, sentence: str) -> None:
        """Show a mistake at the field; empty takes it away."""
        self.mistake.setText(sentence)
        self.mistake.setVisible(bool(sentence) and self.is_shown)
        target = self.editor.target
        _set_property(target, "mistaken", bool(sentence))
        target.setAccessibleDescription(sentence or self.field.help)

    # What is shown of it

    @property
    def is_used(self) -> bool:
        """Whether the field means something under the values of the others."""
        return self._used

    @property
    def is_shown(self) -> bool:
        """Whether the field means something now and is not left out by a search."""
        return self._used and self._sought

    def show_used(self, used: bool) -> None:
        """Show the field where its setting means something."""
        if used != self._used:
            self._used = used
            self._show()

    def show_sought(self, sought: bool) -> None:
        """Leave the field out of what is shown, or take it in again."""
        if sought != self._sought:
            self._sought = sought
            self._show()

    def _show(self) -> None:
        for widget in (self.title, self.editor.widget, self.ask):
            widget.setVisible(self.is_shown)
        self.mistake.setVisible(self.is_shown and bool(self.mistake.text()))
        self.help.setVisible(self.is_shown and self._has_help)
        self._grid.setRowMinimumHeight(self._gap, GAP if self.is_shown else 0)
        self._show_changed()

    def _show_changed(self) -> None:
        changed = self.is_changed()
        self.reset.setVisible(changed and self.is_shown)
        kept = self.reset.sizePolicy()
        if kept.retainSizeWhenHidden() != self.is_shown:
            kept.setRetainSizeWhenHidden(self.is_shown)
            self.reset.setSizePolicy(kept)
        _set_property(self.title, "changed", changed)

    def show_help(self) -> None:
        """All that is known of the field, beside it, until a key or a click elsewhere."""
        FieldHelp(self.field.title, help_lines(self.field, self.key), self.ask).popup_at(self.ask)


def _set_property(widget: QWidget, name: str, value: bool) -> None:
    if bool(widget.property(name)) != value:
        widget.setProperty(name, value)
        if widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
            widget.style().unpolish(widget)
            widget.style().polish(widget)
