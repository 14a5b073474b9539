"""One editor for each type of field; a form chooses among them only by the field's schema."""

from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QFileDialog, QHBoxLayout, QLineEdit, QMenu, QPlainTextEdit, QWidget

from app import theme
from app.core.backend_messages import translate_message
from app.core.i18n import THIN, plain, tr
from app.widgets.forms.inputs import NumberLine, QuietComboBox
from app.widgets.forms.schema_field import (
    AUTO,
    FieldSchema,
    NotUsableError,
    accepted_words,
    list_text,
    list_value,
    mixed_text,
    mixed_value,
    number_text,
    with_texts,
)
from app.widgets.icon_label import IconButton
from backend.contract.errors import InputError
from backend.contract.spec_file import dump, parse


class Editor(QObject):
    """What all editors share: `widget` to place, `value()` (may raise NotUsableError), `set_value`, and `changed`."""

    changed = Signal()

    def __init__(self, field: FieldSchema, widget: QWidget, target: QWidget | None = None) -> None:
        super().__init__(widget)
        self.field = field
        self.widget = widget
        self.target = target or widget
        """What has the focus and shows a mistake."""
        self.target.setAccessibleName(field.title)
        self.target.setAccessibleDescription(field.help)
        self.target.setToolTip(field.help)

    def value(self) -> Any:
        """The value as the spec holds it."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Show a value; emits nothing."""
        raise NotImplementedError

    def flush(self) -> None:
        """Emit pending typed text at once, if an editor waits for more."""


class BooleanEditor(Editor):
    """A check box."""

    def __init__(self, field: FieldSchema) -> None:
        self._box = QCheckBox()
        super().__init__(field, self._box)
        self._box.toggled.connect(self.changed)

    def value(self) -> bool:
        return self._box.isChecked()

    def set_value(self, value: Any) -> None:
        self._box.setChecked(bool(value))


class EnumEditor(Editor):
    """A list to choose from."""

    def __init__(self, field: FieldSchema) -> None:
        self._box = QuietComboBox()
        super().__init__(field, self._box)
        choices = [choice for choice in field.choices if choice is not None]
        for choice in ([None] if field.nullable else []) + choices:
            self._box.addItem("–" if choice is None else field.choice_title(choice), choice)
        self._box.activated.connect(self.changed)

    def show_chosen(self, value: bool | float | str | None) -> None:
        """Show what `auto` means now; None if unknown."""
        title = self.field.choice_title(AUTO)
        words = title if value is None else tr("auto: {choice}", choice=self.field.choice_title(value))
        self._box.setItemText(self._box.findData(AUTO), words)

    def value(self) -> Any:
        return self._box.currentData()

    def set_value(self, value: Any) -> None:
        index = next((i for i in range(self._box.count()) if self._box.itemData(i) == value), -1)
        self._box.setCurrentIndex(index)


class SwitchEditor(Editor):
    """On, off, or left to Burnish."""

    def __init__(self, field: FieldSchema) -> None:
        self._box = QuietComboBox()
        super().__init__(field, self._box)
        for title, choice in ((AUTO, AUTO), (tr("on"), True), (tr("off"), False)):
            self._box.addItem(title, choice)
        self._box.activated.connect(self.changed)

    def show_chosen(self, value: bool | float | str | None) -> None:
        """Show what `auto` means now; None if unknown."""
        words = tr("auto: on") if value else tr("auto: off")
        self._box.setItemText(0, AUTO if value is None else words)

    def value(self) -> bool | str:
        return self._box.currentData()

    def set_value(self, value: Any) -> None:
        self._box.setCurrentIndex(0 if value == AUTO else 1 if value else 2)


class NumberEditor(Editor):
    """Integers and floats, also as 3e-5; empty if null is allowed, or where Burnish chooses the number."""

    def __init__(self, field: FieldSchema) -> None:
        self._line = NumberLine(field.kinds == ("integer",))
        super().__init__(field, self._line)
        self._is_auto = AUTO in field.choices
        if self._is_auto:
            self._line.setPlaceholderText(AUTO)
        elif field.nullable:
            self._line.setPlaceholderText(tr("not set"))
        self._line.textEdited.connect(self.changed)

    def show_chosen(self, value: float | str | None) -> None:
        """Show in grey the number that `auto` means now; None if unknown."""
        self._line.setPlaceholderText(AUTO if value is None else tr("auto: {number}", number=number_text(value)))

    def value(self) -> int | float | str | None:
        text = plain(self._line.text().strip().replace(" ", "").replace(THIN, ""))
        if self._is_auto and text.casefold() in ("", AUTO):
            return AUTO
        if not text and self.field.nullable:
            return None
        try:
            return int(text)
        except ValueError:
            return self._number(text)

    def _number(self, text: str) -> int | float:
        try:
            number = float(text)
        except ValueError:
            raise NotUsableError(tr("Enter {wanted}.", wanted=accepted_words(self.field))) from None
        if number != number or number in (float("inf"), float("-inf")):
            raise NotUsableError(tr("Enter {wanted}.", wanted=accepted_words(self.field)))
        return int(number) if self.field.kinds == ("integer",) and number.is_integer() else number

    def set_value(self, value: Any) -> None:
        self._line.setText("" if value is None or value == AUTO else number_text(value))


class TextEditor(Editor):
    """A line of text; empty means null if that is allowed."""

    def __init__(self, field: FieldSchema) -> None:
        self._line = QLineEdit()
        super().__init__(field, self._line)
        if field.examples:
            self._line.setPlaceholderText(tr("for example {examples}", examples=field.examples[0]))
        elif field.nullable:
            self._line.setPlaceholderText(tr("not set"))
        self._line.textEdited.connect(self.changed)

    def value(self) -> str | None:
        return self._line.text() or (None if self.field.nullable else "")

    def set_value(self, value: Any) -> None:
        self._line.setText("" if value is None else str(value))


class WordsEditor(Editor):
    """A line of text with suggestions."""

    def __init__(self, field: FieldSchema) -> None:
        self._box = QuietComboBox()
        self._box.setEditable(True)
        self._box.addItems(field.examples)
        super().__init__(field, self._box)
        self._box.editTextChanged.connect(self.changed)

    def value(self) -> str | None:
        return self._box.currentText() or (None if self.field.nullable else "")

    def set_value(self, value: Any) -> None:
        self._box.blockSignals(True)
        self._box.setEditText("" if value is None else str(value))
        self._box.blockSignals(False)


class ListEditor(Editor):
    """A list of words or numbers on one line, separated by commas."""

    def __init__(self, field: FieldSchema) -> None:
        self._line = QLineEdit(placeholderText=tr("not set") if field.nullable else tr("none, or a, b, c"))
        super().__init__(field, self._line)
        self._line.textEdited.connect(self.changed)

    def value(self) -> Any:
        return list_value(self._line.text(), self.field)

    def set_value(self, value: Any) -> None:
        self._line.setText(list_text(value))


class MixedEditor(Editor):
    """Words and numbers in one field, for example `epoch`, `never` or 500; the words are suggested."""

    def __init__(self, field: FieldSchema) -> None:
        self._box = QuietComboBox()
        self._box.setEditable(True)
        self._box.addItems([field.choice_words(choice) for choice in field.choices if choice is not None])
        super().__init__(field, self._box)
        line = self._box.lineEdit()
        assert line is not None
        line.setPlaceholderText(tr("not set") if field.nullable else "")
        line.textEdited.connect(self.changed)
        self._box.activated.connect(self.changed)

    def value(self) -> Any:
        return mixed_value(self._box.currentText(), self.field)

    def set_value(self, value: Any) -> None:
        self._box.setEditText(self.field.choice_words(value) if value in self.field.choices else mixed_text(value))


class PathEditor(Editor):
    """A file, a folder or a hub id, with Browse; `path` in the schema may be file or folder."""

    def __init__(self, field: FieldSchema) -> None:
        holder = QWidget()
        self._line = QLineEdit()
        self._line.setPlaceholderText(tr("not set") if field.nullable else "")
        self._button = IconButton(tr("Browse"), "folder")
        row = QHBoxLayout(holder)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._line, 1)
        row.addWidget(self._button)
        super().__init__(field, holder, self._line)
        self._button.setAccessibleName(tr("Browse for {title}", title=field.title))
        self._line.textEdited.connect(self.changed)
        self._offer(str(field.schema.get("path")))

    def _offer(self, what: str) -> None:
        if what == "file":
            self._button.clicked.connect(self._choose_file)
        elif what == "folder":
            self._button.clicked.connect(self._choose_folder)
        else:
            menu = QMenu(self._button)
            menu.addAction(tr("Choose a folder…"), self._choose_folder)
            menu.addAction(tr("Choose a file…"), self._choose_file)
            self._button.setMenu(menu)

    def _choose_file(self) -> None:
        self._take(QFileDialog.getOpenFileName(self.widget, self.field.title)[0])

    def _choose_folder(self) -> None:
        self._take(QFileDialog.getExistingDirectory(self.widget, self.field.title))

    def _take(self, path: str) -> None:
        if path:
            self._line.setText(path)
            self.changed.emit()

    def value(self) -> Any:
        return mixed_value(self._line.text(), self.field)

    def set_value(self, value: Any) -> None:
        self._line.setText(mixed_text(value))


class YamlEditor(Editor):
    """A list or mapping as YAML text."""

    def __init__(self, field: FieldSchema) -> None:
        self._text = QPlainTextEdit()
        theme.role(self._text, "mono")
        self._text.setTabChangesFocus(True)
        self._text.setFixedHeight(62)
        self._text.setPlaceholderText(tr("[first, second]") if "array" in field.kinds else tr("name: value"))
        super().__init__(field, self._text)
        # A mapping is wrong at nearly every key press while it is typed.
        self._calm = QTimer(self, interval=300, singleShot=True)
        self._calm.timeout.connect(self.changed)
        self._text.textChanged.connect(self._calm.start)

    def flush(self) -> None:
        if self._calm.isActive():
            self._calm.stop()
            self.changed.emit()

    def value(self) -> Any:
        text = self._text.toPlainText().strip()
        if not text:
            return None if self.field.nullable else ([] if self.field.kinds == ("array",) else {})
        try:
            found = parse(text, self.field.title)
        except InputError as error:
            raise NotUsableError(f"{translate_message(str(error))}.") from None
        return with_texts(found) if self.field.holds_texts else found

    def set_value(self, value: Any) -> None:
        self._text.blockSignals(True)
        self._text.setPlainText(dump(value).strip() if value else "")
        self._text.blockSignals(False)


EDITORS: dict[str, type[Editor]] = {
    "boolean": BooleanEditor,
    "switch": SwitchEditor,
    "enum": EnumEditor,
    "number": NumberEditor,
    "text": TextEditor,
    "words": WordsEditor,
    "list": ListEditor,
    "mixed": MixedEditor,
    "path": PathEditor,
    "yaml": YamlEditor,
}


def editor_for(field: FieldSchema) -> Editor:
    """The editor for a field's type."""
    return EDITORS[field.editor](field)  # type: ignore[call-arg]
