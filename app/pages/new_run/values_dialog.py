"""The dialog for the values of one setting that a search tries: a list of them, or a range."""

import re
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core.backend_messages import translate_message
from app.core.draft import search_space
from app.core.draft.draft_settings import Setting
from app.core.draft.search_space import range_of
from app.core.i18n import plain, tr
from app.widgets.boxes import hbox, holder, keep_room, stack
from app.widgets.card import FormGrid, label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.forms.schema_field import (
    FieldSchema,
    NotUsableError,
    field_of,
    list_text,
    list_value,
    mixed_text,
    mixed_value,
)
from backend.contract.errors import InputError
from backend.contract.spec_file import parse

LIST, LINEAR, LOG = "list", "linear", "log"
WIDTH = 440
KIND_WORDS = {LIST: tr("A list of values"), LINEAR: tr("A range"), LOG: tr("A range on a log scale")}


class ValuesDialog(QDialog):
    """`chosen` has the values as a spec has them: a list, or a range."""

    chosen = Signal(object)

    def __init__(self, setting: Setting, values: Any, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Search {title}", title=setting.title))
        self.field = field_of(setting.key.rpartition(".")[2], setting.extras)
        self._is_number = bool({"integer", "number"} & set(self.field.kinds))
        self._is_whole = "number" not in self.field.kinds
        self._was_whole = False
        self.kind = QuietComboBox(name=tr("What to try"), items=[(words, kind) for kind, words in KIND_WORDS.items()])
        self.kind.setVisible(self._is_number)
        self.line, self.low, self.high = QLineEdit(), QLineEdit(), QLineEdit()
        self.choices = [(QCheckBox(words), value) for words, value in _choices(self.field)]
        self.mistake = label("", "mistake", wrap=True)
        keep_room(self.mistake)
        self.accept_button = QPushButton(tr("Try these values"))
        theme.role(self.accept_button, "primary")
        self.accept_button.setDefault(True)
        self._build(setting)
        self._show(values)
        self.kind.currentIndexChanged.connect(self._on_kind)
        for line in (self.line, self.low, self.high):
            line.textEdited.connect(self._check)
        for box, _ in self.choices:
            box.toggled.connect(self._check)
        self.accept_button.clicked.connect(self._on_accepted)
        self._on_kind()

    def _build(self, setting: Setting) -> None:
        ends = FormGrid()
        ends.setContentsMargins(0, 0, 0, 0)
        ends.add(tr("From"), self.low)
        ends.add(tr("To"), self.high)
        self.line.setPlaceholderText(self._example())
        self.line.setAccessibleName(tr("Values to try"))
        listed = holder(_column(*(box for box, _ in self.choices))) if self.choices else self.line
        self._pages = stack(listed, holder(ends))
        cancel = QPushButton(tr("Cancel"))
        cancel.clicked.connect(self.reject)
        cancel.setAutoDefault(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(10)
        about = label(" ".join((self.field.help or setting.description).split()), "muted", wrap=True)
        about.setMinimumHeight(about.heightForWidth(theme.pixels(WIDTH) - 40))
        column.addWidget(about)
        column.addWidget(self.kind)
        column.addWidget(self._pages)
        column.addWidget(self.mistake)
        column.addStretch(1)
        column.addLayout(hbox(1, cancel, self.accept_button, spacing=8))
        self.setFixedWidth(theme.pixels(WIDTH))

    def _example(self) -> str:
        if self.field.editor in ("list", "yaml"):
            return tr("a, b; a, b, c")
        return f"{mixed_text(16)}{_separator()} {mixed_text(32)}" if self._is_whole and self._is_number else f"{mixed_text(2e-5)}{_separator()} {mixed_text(5e-5)}" if self._is_number else "a, b"  # fmt: skip

    def _show(self, values: Any) -> None:
        found = range_of(values)
        if found is not None and self._is_number:
            form, low, high = found
            self._was_whole = form in search_space.WHOLE
            self.kind.setCurrentIndex(2 if form in search_space.LOGARITHMIC else 1)
            self.low.setText(mixed_text(low))
            self.high.setText(mixed_text(high))
            return
        listed = values if isinstance(values, list) else []
        for box, value in self.choices:
            box.setChecked(any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in listed))
        written = list_text if self.field.editor == "list" else mixed_text
        mark = ";" if self.field.editor in ("list", "yaml") else _separator()
        self.line.setText(f"{mark} ".join(map(written, listed)))

    def _on_kind(self) -> None:
        self._pages.setCurrentIndex(0 if self.kind.currentData() == LIST or not self._is_number else 1)
        self._check()

    def _check(self) -> None:
        mistake = self.read()[1]
        self.accept_button.setEnabled(not mistake)
        self.mistake.setText(mistake)

    def _on_accepted(self) -> None:
        values, mistake = self.read()
        if not mistake:
            self.chosen.emit(values)
            self.accept()

    # What was entered

    def read(self) -> tuple[Any, str]:
        """The values as a spec has them, or what is wrong with them as a sentence."""
        try:
            values = self._range() if self._pages.currentIndex() else self._listed()
        except NotUsableError as error:
            return None, str(error)
        return values, ""

    def _range(self) -> dict[str, list[Any]]:
        low, high = (self._end(line.text()) for line in (self.low, self.high))
        is_log = self.kind.currentData() == LOG
        if is_log and low <= 0:
            raise NotUsableError(tr("A log scale must start above 0."))
        if low >= high:
            raise NotUsableError(tr("The first number must be smaller than the second."))
        is_whole = self._is_whole or (self._was_whole and float(low).is_integer() and float(high).is_integer())
        if is_whole:
            return {"log_int" if is_log else "int": [int(low), int(high)]}
        form = "log" if is_log else "uniform"
        return {form: [low, high]}

    def _end(self, text: str) -> Any:
        if not text.strip():
            raise NotUsableError(tr("Enter a number for both ends."))
        try:
            number = float(plain(text.strip()))
        except ValueError:
            raise NotUsableError(tr("{text} is not a number.", text=text.strip())) from None
        if self._is_whole and not number.is_integer():
            raise NotUsableError(tr("This setting takes whole numbers."))
        return self._checked(int(number) if self._is_whole else number, text.strip())

    def _listed(self) -> list[Any]:
        if self.choices:
            found = [value for box, value in self.choices if box.isChecked()]
        else:
            mark = r";" if self.field.editor in ("list", "yaml") else r";|,\s|,$" if _separator() == ";" else r"[;,]"
            cells = [cell.strip() for cell in re.split(mark, self.line.text()) if cell.strip()]
            found = [self._checked(self._value(cell), cell) for cell in cells]
        if len(found) < 2:
            raise NotUsableError(tr("Give at least two values."))
        twice = next(
            (one for number, one in enumerate(found) if any(_is_same(one, other) for other in found[:number])), None
        )
        if twice is not None:
            raise NotUsableError(tr("{value} is listed twice.", value=mixed_text(twice)))
        return found

    def _value(self, cell: str) -> Any:
        if self.field.editor == "list":
            return list_value(cell, self.field)
        if self.field.editor == "yaml":
            try:
                return parse(cell, self.field.title)
            except InputError as error:
                raise NotUsableError(f"{translate_message(str(error))}.") from None
        return mixed_value(cell, self.field)

    def _checked(self, value: Any, text: str) -> Any:
        if mistake := self.field.mistake(value):
            raise NotUsableError(tr("{text}: {mistake}", text=text, mistake=mistake))
        return value


def _choices(field: FieldSchema) -> list[tuple[str, Any]]:
    """What is ticked where a setting has only so many values; empty where they are written."""
    if field.editor not in ("boolean", "switch", "enum"):
        return []
    switch = [(tr("on"), True), (tr("off"), False)] if "boolean" in field.kinds else []
    return [*((field.choice_title(one) if one is not None else "–", one) for one in field.choices), *switch]


def _separator() -> str:
    """Between numbers: a semicolon where the comma is the decimal separator."""
    return ";" if plain("0,5") == "0.5" else ","


def _is_same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _column(*boxes: QWidget) -> QVBoxLayout:
    column = QVBoxLayout()
    column.setContentsMargins(0, 0, 0, 0)
    for box in boxes:
        column.addWidget(box)
    return column
