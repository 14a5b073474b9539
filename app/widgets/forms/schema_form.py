"""A form made only from a JSON Schema: it knows types of fields, never individual fields."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app import theme
from app.core import formatting
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.forms.field_editors import Editor
from app.widgets.forms.field_row import COLUMNS, FieldRow
from app.widgets.forms.schema_field import FieldSchema, fields_of
from backend.contract.rpc.plan import AutoSetting

LABEL_WIDTH = 150
GAP, RESET_WIDTH, HELP_WIDTH = 10, 34, 28
"""Pixels after a title, and those for the way back to a default and for the help; kept where there is none, so that all
fields end below each other."""


class SchemaForm(QWidget):
    """`prefix` is prepended to the keys in `changed`: a form for `training` emits `training.batch_size`."""

    changed = Signal(str, object)
    """Dotted key and the new, valid value."""
    mistakes_changed = Signal()
    search_requested = Signal(str)
    """Several values of the field with this dotted key are wanted."""

    def __init__(
        self,
        schema: Mapping[str, Any],
        prefix: str = "",
        shows_help: bool = False,
        parent: QWidget | None = None,
        label_width: int = LABEL_WIDTH,
    ) -> None:
        super().__init__(parent)
        theme.follow(self)
        self.prefix, self.shows_help, self.label_width = prefix, shows_help, label_width
        self._rows: dict[str, FieldRow] = {}
        self._headings: list[tuple[QLabel, list[FieldRow]]] = []
        self._left_out: frozenset[str] = frozenset()
        self._announced: dict[str, str] = {}
        """The mistakes when `mistakes_changed` was last emitted."""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        fields = [field for field in fields_of(schema) if not field.schema.get("hidden")]
        plain = [field for field in fields if not field.advanced]
        if plain:  # an empty section would have a gap below it
            column.addWidget(self._section(plain))
        folded = [field for field in fields if field.advanced]
        self._fold = self._fold_button(len(folded))
        self._more = self._section(folded)
        self._has_fold = bool(folded)
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
        grid.setHorizontalSpacing(0)  # an empty column would have none
        grid.setVerticalSpacing(0)
        grid.setColumnMinimumWidth(0, self.label_width + GAP)
        grid.setColumnStretch(1, 1)
        grid.setColumnMinimumWidth(2, RESET_WIDTH)
        grid.setColumnMinimumWidth(3, HELP_WIDTH)
        group = ""
        for field in fields:
            if field.group != group:
                group = field.group
                heading = label(group.upper(), "heading")
                grid.addWidget(heading, grid.rowCount(), 0, 1, COLUMNS)
                self._headings.append((heading, []))
            key = f"{self.prefix}.{field.name}" if self.prefix else field.name
            row = self._rows[field.name] = FieldRow(self, field, key, grid, self.label_width, self.shows_help)
            row.edited.connect(lambda row=row: self._on_edited(row))
            row.reset_requested.connect(lambda row=row: self._on_reset(row))
            row.search_requested.connect(lambda key=key: self.search_requested.emit(key))
            if group:
                self._headings[-1][1].append(row)
        return holder

    def _fold_button(self, count: int) -> QToolButton:
        button = QToolButton(self)
        button.setText(tr("More settings ({count})", count=count))
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setCheckable(True)
        button.toggled.connect(self.set_unfolded)
        theme.role(button, "fold")
        button.setIcon(theme.icon("chevron-right", "muted", 14))
        return button

    def apply_theme(self) -> None:
        """Redraw the arrow in the current colour."""
        name = "chevron-down" if self._fold.isChecked() else "chevron-right"
        self._fold.setIcon(theme.icon(name, "muted", 14))

    def set_unfolded(self, unfolded: bool) -> None:
        """Show or hide the advanced fields."""
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
        """Show these values; other fields keep theirs; emits nothing."""
        for name, value in values.items():
            if name in self._rows:
                self._rows[name].show_value(value)
        self._show_used()

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show these values, and defaults for all others; emits no change.

        A field that already shows its value is left alone, including the cursor: the user may be typing.
        """
        for name, row in self._rows.items():
            row.show_value(values.get(name, row.field.default))
        self._show_used()

    def set_defaults(self) -> None:
        """Show all defaults; emits nothing."""
        for row in self._rows.values():
            row.show_value(row.field.default)
        self._show_used()

    def set_usual(self, values: Mapping[str, Any]) -> None:
        """Defaults that override those of the schema; displayed values do not change."""
        for name, row in self._rows.items():
            row.set_usual(values.get(name, row.field.default))

    def show_chosen(self, settings: Sequence[AutoSetting]) -> None:
        """Show what `auto` means now in these fields, by dotted key; in all others it is unknown."""
        chosen = {setting.key: setting for setting in settings}
        for row in self._rows.values():
            found = chosen.get(row.key)
            row.show_chosen(found.value if found else None, found.reason if found else "")

    def offer_search(self, keys: Collection[str], searched: Mapping[str, str]) -> None:
        """Offer to try several values of the fields with these keys; `searched` says of some which ones are tried."""
        for row in self._rows.values():
            row.can_be_searched = row.key in keys
            row.show_searched(searched.get(row.key, ""))

    def leave_out(self, names: Collection[str]) -> None:
        """Hide these fields and show all others."""
        changed, self._left_out = self._left_out ^ frozenset(names), frozenset(names)
        for name in changed & self._rows.keys():
            self._rows[name].show_used(name not in self._left_out)
        self._show_used()

    def _show_used(self) -> None:
        """Hide fields whose `when` does not match other fields' values, along with their errors."""
        for own, row in self._rows.items():
            wanted = row.field.schema.get("when")
            if wanted and own not in self._left_out:
                row.show_used(
                    all(self._rows[name].value in values for name, values in wanted.items() if name in self._rows)
                )
        self._announce_mistakes()

    def editor(self, name: str) -> Editor:
        """The editor of a field, for a panel that must enable or focus it."""
        return self._rows[self._own(name)].editor

    # Mistakes

    def mistakes(self) -> dict[str, str]:
        """Field → sentence, for the visible marked fields."""
        return {name: row.mistake for name, row in self._rows.items() if row.mistake and row.is_used}

    def _announce_mistakes(self) -> None:
        """Listeners look at the whole page, which takes milliseconds: they are told of a change only."""
        mistakes = self.mistakes()
        if mistakes != self._announced:
            self._announced = mistakes
            self.mistakes_changed.emit()

    def first_mistaken(self) -> FieldRow | None:
        """The first visible marked field."""
        return next((self._rows[name] for name in self.mistakes()), None)

    def mistake_sentences(self) -> dict[str, str]:
        """The same by the fields' titles, as sentences that name them: `Batch size: enter 1 or more.`"""
        found = {self._rows[name].title.text(): text for name, text in self.mistakes().items()}
        return {title: formatting.mistake(title, text) for title, text in found.items()}

    def mark(self, name: str, sentence: str, *, unfold: bool = True) -> bool:
        """Show an error at a field, given by dotted key or name; returns whether the form has the field.

        Without `unfold` a folded field stays folded: what stands below it does not move.
        """
        row = self._rows.get(self._own(name))
        if row is None:
            return False
        row.mark(sentence)
        if unfold and row.field.advanced and sentence:
            self.set_unfolded(True)
        self._announce_mistakes()
        return True

    def clear_marks(self) -> None:
        """Clear the errors reported from outside; invalid input stays marked."""
        for row in self._rows.values():
            if row.mistake:
                row.mark(row.own_mistake())
        self._announce_mistakes()

    def _own(self, key: str) -> str:
        own = key.removeprefix(f"{self.prefix}.") if self.prefix else key
        return own if own in self._rows else own.split(".")[0]

    def _on_edited(self, row: FieldRow) -> None:
        before = row.value
        row.read()
        self._announce_mistakes()
        if not row.mistake and row.value != before:
            self._show_used()
            self.changed.emit(row.key, row.value)

    def _on_reset(self, row: FieldRow) -> None:
        row.show_value(row.usual)
        self._show_used()
        self.changed.emit(row.key, row.value)

    def flush(self) -> None:
        """Apply text that an editor has not emitted yet because it waits for more."""
        for row in self._rows.values():
            row.editor.flush()

    def forget_typed(self) -> bool:
        """Restore the last valid value wherever the text is invalid; returns whether there was such a field."""
        wrong = [row for row in self._rows.values() if row.own_mistake()]
        for row in wrong:
            row.editor.set_value(row.value)
            row.mark("")
        self._announce_mistakes()
        return bool(wrong)

    # Looking for fields

    def keys(self) -> list[str]:
        """The dotted keys of all fields that apply now, in order."""
        return [row.key for row in self._rows.values() if row.is_used]

    def show_matches(self, keys: Collection[str], *, alone: bool) -> None:
        """Show the fields with these dotted keys, including collapsed ones; `alone` hides all others."""
        for row in self._rows.values():
            row.show_sought(not alone or row.key in keys)
        for heading, rows in self._headings:
            heading.setVisible(any(row.is_shown for row in rows))
        if any(row.field.advanced and row.key in keys for row in self._rows.values()):
            self.set_unfolded(True)
        self._fold.setVisible(self._has_fold and not alone)

    def row_of(self, key: str) -> FieldRow | None:
        """The row of a field, by dotted key."""
        return next((row for row in self._rows.values() if row.key == key), None)
