"""One field of a form: title, editor, help, a reset button, and a line for its error."""

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QPushButton, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app import theme
from app.core import formatting
from app.core.i18n import fill, tr
from app.widgets.card import label
from app.widgets.forms.field_editors import Editor, EnumEditor, NumberEditor, SwitchEditor, editor_for
from app.widgets.forms.schema_field import AUTO, FieldSchema, NotUsableError, accepted_words, mixed_text
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.text.elided_label import ElidedLabel

GAP = 15
"""Pixels below a field, which hold its error: it must not move the fields below."""
HELP_GAP = 8
"""Pixels below a field's help."""
COLUMNS = 4
MOST_SEARCHED = 220
"""Pixels of the values that are tried."""


class FieldRow(QObject):
    """Takes the next three lines of a grid; `key` is the field's key in a spec."""

    edited = Signal()
    reset_requested = Signal()
    search_requested = Signal()
    """Somebody wants to try several values."""

    def __init__(
        self, parent: QWidget, field: FieldSchema, key: str, grid: QGridLayout, width: int, shows_help: bool
    ) -> None:
        super().__init__(parent)
        self.field, self.key = field, key
        self.usual: Any = field.default
        self._reason = ""
        self.editor: Editor = editor_for(field)
        self.editor.changed.connect(self.edited)
        self.title = label(field.title + (f" ({field.unit})" if field.unit else ""), "muted", wrap=True)
        self.title.setMaximumWidth(width)
        self.title.setBuddy(self.editor.target)
        hint = "\n".join(help_lines(field, key))
        self.title.setToolTip(hint)
        self.editor.target.setToolTip(hint)
        self._reset: IconToolButton | None = None
        self.ask = QToolButton()
        self.ask.setText("?")
        theme.role(self.ask, "help")
        self.ask.setToolTip(hint)
        self.ask.setAccessibleName(tr("About {title}", title=field.title))
        self.ask.clicked.connect(self.show_help)
        self._mistake: ElidedLabel | None = None
        self._help = label(field.help, "faint", wrap=True) if shows_help and field.help else None
        self._searched: QPushButton | None = None
        self._search_words = ""
        self.can_be_searched = False
        self._used = self._sought = True
        self._place(grid)
        self.show_value(field.default)

    def show_chosen(self, value: bool | float | str | None, reason: str) -> None:
        """Show what `auto` means now, and the reason in the help; None and no reason if unknown."""
        if isinstance(self.editor, NumberEditor | SwitchEditor | EnumEditor) and AUTO in self.field.choices:
            self.editor.show_chosen(value)
            self._reason = reason
            hint = "\n".join(self._help_lines())
            for widget in (self.title, self.editor.target, self.ask):
                widget.setToolTip(hint)

    def _help_lines(self) -> list[str]:
        lines = help_lines(self.field, self.key)
        return [*lines[:1], formatting.sentence(self._reason), *lines[1:]] if self._reason else lines

    def _place(self, grid: QGridLayout) -> None:
        row = self._line = grid.rowCount()
        is_tall = self.field.editor == "yaml"
        self._top = Qt.AlignmentFlag.AlignTop if is_tall else Qt.AlignmentFlag.AlignVCenter
        self.title.setContentsMargins(0, 7 if is_tall else 0, 0, 0)
        grid.addWidget(self.title, row, 0, self._top)
        grid.addWidget(self.editor.widget, row, 1)
        grid.addWidget(self.ask, row, 3, self._top | Qt.AlignmentFlag.AlignRight)
        if self._help is not None:
            self._help.setContentsMargins(0, 0, 0, HELP_GAP)
            grid.addWidget(self._help, row + 2, 1)
        self._grid = grid
        grid.setRowMinimumHeight(row + 1, theme.pixels(GAP))

    # What most fields never show is made when it is first shown: a form has dozens of them.

    @property
    def reset(self) -> IconToolButton:
        """The button that restores the default."""
        if self._reset is None:
            self._reset = IconToolButton("undo", self._reset_words(), "faint", 14)
            self._reset.clicked.connect(self.reset_requested)
            self._reset.hide()
            self._grid.addWidget(self._reset, self._line, 2, self._top | Qt.AlignmentFlag.AlignHCenter)
            QWidget.setTabOrder(self.editor.target, self._reset)
        return self._reset

    def _reset_words(self) -> str:
        return tr("Reset {title} to {value_words}", title=self.field.title, value_words=value_words(self.usual))

    @property
    def mistake(self) -> str:
        """The field's error, as shown below it; empty if there is none."""
        return self._mistake.text() if self._mistake is not None else ""

    # The value

    def show_value(self, value: Any) -> None:
        """Put a value into the editor; if it already shows that value, what the user is typing stays."""
        self.value = value
        if not self._shows(value):
            self.editor.set_value(value)
        # A chosen value may be wrong; a missing choice is not an error.
        self.mark("" if value == self.field.default else self.field.mistake(value))
        self._show_changed()

    def is_changed(self) -> bool:
        """Whether the value differs from the current default."""
        return "default" in self.field.schema and self.value != self.usual

    def set_usual(self, value: Any) -> None:
        """Set the value that a reset returns to; a task's default overrides the field's own."""
        self.usual = value
        if self._reset is not None:
            self._reset.setToolTip(self._reset_words())
            self._reset.setAccessibleName(self._reset_words())
        self._show_changed()

    def read(self) -> str:
        """Apply the editor's value; returns the error, in which case the old value stays."""
        value, mistake = self._read_editor()
        if not mistake:
            self.value = value
        self.mark(mistake)
        self._show_changed()
        return mistake

    def own_mistake(self) -> str:
        """What is wrong with the editor's content; applies nothing, because no signal would be emitted."""
        return self._read_editor()[1]

    def _read_editor(self) -> tuple[Any, str]:
        try:
            value = self.editor.value()
        except NotUsableError as error:
            return None, str(error)
        return value, self.field.mistake(value)

    def _shows(self, value: Any) -> bool:
        current, mistake = self._read_editor()
        return not mistake and current == value and isinstance(current, bool) == isinstance(value, bool)

    def mark(self, sentence: str) -> None:
        """Show an error at the field; empty clears it."""
        if self._mistake is None and sentence:
            self._mistake = ElidedLabel("", "mistake")
            self._grid.addWidget(self._mistake, self._line + 1, 1, Qt.AlignmentFlag.AlignTop)
        if self._mistake is not None:
            self._mistake.setText(sentence)
            self._mistake.setVisible(bool(sentence) and self.is_shown)
        target = self.editor.target
        theme.flag(target, "mistaken", bool(sentence))
        target.setAccessibleDescription(sentence or self.field.help)

    # What is shown of it

    @property
    def is_used(self) -> bool:
        """Whether the field applies, given the values of the others."""
        return self._used

    @property
    def is_shown(self) -> bool:
        """Whether the field applies and is not filtered out by a search."""
        return self._used and self._sought

    def show_used(self, used: bool) -> None:
        """Show the field if its setting applies; hiding it discards invalid text."""
        if used != self._used:
            self._used = used
            if not used and self.own_mistake():
                self.show_value(self.value)
            self._show()

    def show_sought(self, sought: bool) -> None:
        """Hide the field from search results, or show it again."""
        if sought != self._sought:
            self._sought = sought
            self._show()

    def show_searched(self, words: str) -> None:
        """Show in place of the editor which values are tried; empty shows the editor again."""
        if words == self._search_words:
            return
        self._search_words = words
        if self._searched is None:
            self._searched = IconButton("", "search")
            self._searched.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            self._searched.clicked.connect(self.search_requested)
            self._grid.addWidget(self._searched, self._line, 1)
        self._searched.setText(
            self._searched.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, MOST_SEARCHED)
        )
        self._searched.setAccessibleName(f"{self.field.title}: {words}")
        self._searched.setToolTip(tr("Searched: {words}", words=words))
        self._show()

    def _show(self) -> None:
        for widget in (self.title, self.ask):
            widget.setVisible(self.is_shown)
        self.editor.widget.setVisible(self.is_shown and not self._search_words)
        if self._searched is not None:
            self._searched.setVisible(self.is_shown and bool(self._search_words))
        if self._mistake is not None:
            self._mistake.setVisible(self.is_shown and bool(self.mistake))
        if self._help is not None:
            self._help.setVisible(self.is_shown)
        self._grid.setRowMinimumHeight(self._line + 1, theme.pixels(GAP) if self.is_shown else 0)
        self._show_changed()

    def _show_changed(self) -> None:
        changed = self.is_changed() and not self._search_words
        if changed or self._reset is not None:
            self.reset.setVisible(changed and self.is_shown)
        theme.flag(self.title, "changed", changed)

    def show_help(self) -> None:
        """Show everything about the field, beside it, until a key or a click elsewhere."""
        shown = FieldHelp(self.field.title, self._help_lines(), self.ask)
        if self.can_be_searched:
            shown.offer(tr("Try several values…"), "search", self.search_requested.emit)
        shown.popup_at(self.ask)


# Help: what a field does, its default, its bounds and its key in a spec


def help_lines(field: FieldSchema, key: str) -> list[str]:
    """Description, allowed values, unit, default, and key, one line each."""
    lines = [" ".join(field.help.split())] if field.help else []
    lines.append(tr("Accepts {taken}.", taken=_accepted_words(field)))
    if field.unit:
        lines.append(tr("Unit: {unit}", unit=field.unit))
    if "default" in field.schema:
        lines.append(tr("Default: {value_words}", value_words=_default_words(field)))
    lines.append(tr("In a spec: {key}", key=key))
    return lines


def _default_words(field: FieldSchema) -> str:
    return field.choice_words(field.default) if field.default in field.choices else value_words(field.default)


def value_words(value: Any) -> str:
    """A default in words: `not set`, `on`, `32`."""
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    return mixed_text(value) if value not in (None, "", [], {}) else tr("not set")


def _accepted_words(field: FieldSchema) -> str:
    if field.kinds == ("boolean",):
        return tr("“auto”, on or off") if field.choices else tr("on or off")
    bounds = _bounds(field)
    return f"{accepted_words(field)} {bounds}" if bounds else accepted_words(field)


_BOUNDS = (
    ("minimum", tr("at least {limit:,}")),
    ("exclusiveMinimum", tr("above {limit:,}")),
    ("maximum", tr("up to {limit:,}")),
    ("exclusiveMaximum", tr("below {limit:,}")),
)


def _bounds(field: FieldSchema) -> str:
    least, most = field.bound("minimum"), field.bound("maximum")
    if least is not None and most is not None:
        return tr("from {least:,} to {most:,}", least=least, most=most)
    bounds = [fill(words, limit=limit) for name, words in _BOUNDS if (limit := field.bound(name)) is not None]
    return tr(" and ").join(bounds)


HELP_WIDTH = 320


class FieldHelp(QFrame):
    """A popup over the page that closes at the next key or click."""

    def __init__(self, title: str, lines: list[str], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        theme.role(self, "sheet")
        self.setAccessibleName(f"{title}: {' '.join(lines)}")
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 11, 14, 12)
        column.setSpacing(4)
        column.addWidget(label(title, "strong"))
        for number, line in enumerate(lines):
            line_label = label(line, "" if number == 0 else "faint", wrap=True, selectable=number == len(lines) - 1)
            column.addWidget(line_label)
        self.setFixedWidth(HELP_WIDTH)

    def offer(self, words: str, icon: str, action: Callable[[], object]) -> None:
        """Offer something to do with the field, below the words."""
        button = IconButton(words, icon, "small", clicked=lambda: (self.close(), action()))
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        column.addSpacing(4)
        column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)

    def popup_at(self, widget: QWidget) -> None:
        """Below a widget, within its screen."""
        for words in self.findChildren(QLabel):
            words.ensurePolished()  # lines are counted with the font in which they are shown
        column = self.layout()
        assert column is not None
        column.invalidate()
        self.setFixedHeight(column.totalHeightForWidth(HELP_WIDTH))
        corner = widget.mapToGlobal(QPoint(widget.width() - HELP_WIDTH, widget.height() + 4))
        area = widget.screen().availableGeometry()
        left = min(max(corner.x(), area.left() + 8), area.right() - HELP_WIDTH - 8)
        above = corner.y() - widget.height() - self.height() - 8
        self.move(left, corner.y() if corner.y() + self.height() < area.bottom() else max(area.top() + 8, above))
        self.show()
        self.setFocus()

    def keyPressEvent(self, event) -> None:
        """Any key closes it."""
        self.close()
