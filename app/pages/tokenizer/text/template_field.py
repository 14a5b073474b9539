"""The field for a chat template: the tokenizer's own, until the user writes another one."""

from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QTextCursor, QTextFormat
from PySide6.QtWidgets import QDialog, QFileDialog, QPlainTextEdit, QTextEdit, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr
from app.services import text_file
from app.widgets.boxes import hbox, vbox
from app.widgets.card import label
from app.widgets.icon_label import IconToolButton

HEIGHT = 150
LARGE = (760, 520)


class TemplateField(QWidget):
    """Jinja in a small editor, which can also be opened in a large window."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._own, self._shown, self._is_plain = "", "", False
        self._mistake: int | None = None
        self.editor = _editor()
        self.editor.setFixedHeight(HEIGHT)
        self.editor.textChanged.connect(self._on_text)
        self.whose = label("", "faint", wrap=True)
        self.mistake = label("", "danger", wrap=True, selectable=True)
        self.mistake.hide()
        self.open_button = IconToolButton("folder", tr("Open a file with a template"), clicked=self._on_browse)
        self.large_button = IconToolButton("external", tr("Edit in a large window"), clicked=self.show_large)
        self.reset_button = IconToolButton(
            "undo", tr("Back to the tokenizer's own template"), clicked=lambda: self.write(self._own)
        )
        top = hbox(
            (label(tr("Chat template"), "strong"), 1), self.reset_button, self.open_button, self.large_button, spacing=2
        )
        vbox(top, self.editor, self.mistake, self.whose, spacing=4, margins=(0, 6, 0, 0), parent=self)
        self.window_of_its_own: _Large | None = None
        self._show_origin()

    def changed_template(self) -> str | None:
        """The user's template; None if it is the tokenizer's own, or empty."""
        written = self.editor.toPlainText()
        return written if written.strip() and written != self._shown else None

    def offer(self, own: str, is_plain: bool) -> None:
        """Show another tokenizer's template; the user's own text is kept."""
        is_changed = self.changed_template() is not None
        self._own, self._shown, self._is_plain = own, own, is_plain
        if not is_changed:
            with QSignalBlocker(self):
                self.write(own)
            self._shown = self.editor.toPlainText()  # an editor has one kind of line ends
        self._show_origin()

    def write(self, template: str) -> None:
        """Replace the text as if typed, so that it can be undone."""
        if template == self.editor.toPlainText():
            return
        cursor = QTextCursor(self.editor.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(template)
        self.editor.moveCursor(QTextCursor.MoveOperation.Start)

    def show_mistake(self, sentence: str, line: int | None = None) -> None:
        """Show the error and mark the line, counted from 1."""
        self._mistake = line
        self.mistake.setText(sentence)
        self.mistake.show()
        self.apply_theme()

    def clear_mistake(self) -> None:
        """Clear the error."""
        self._mistake = None
        self.mistake.hide()
        self.apply_theme()

    def show_large(self) -> None:
        """Edit in a window with room for long lines; both editors show the same."""
        if self.window_of_its_own is None:
            self.window_of_its_own = _Large(self)
        self.window_of_its_own.open_beside()

    def _on_text(self) -> None:
        self._show_origin()
        self.changed.emit()

    def _show_origin(self) -> None:
        is_changed = self.changed_template() is not None
        self.reset_button.setEnabled(self.editor.toPlainText() != self._shown)
        if is_changed:
            self.whose.setText(tr("Your template replaces the tokenizer's."))
        elif self._is_plain:
            self.whose.setText(tr("This tokenizer has no chat template, so a plain one is used, here and in training."))
        else:
            self.whose.setText(tr("This is the tokenizer's own template. Change it here to see the effect."))

    def apply_theme(self) -> None:
        """Mark the line with the mistake, in the present colours."""
        block = self.editor.document().findBlockByNumber(-1 if self._mistake is None else self._mistake - 1)
        found = []
        if block.isValid():
            mark = QTextEdit.ExtraSelection()
            mark.format.setBackground(theme.color("danger_soft"))  # type: ignore[attr-defined]
            mark.format.setProperty(QTextFormat.Property.FullWidthSelection, True)  # type: ignore[attr-defined]
            mark.cursor = QTextCursor(block)  # type: ignore[attr-defined]
            found.append(mark)
        self.editor.setExtraSelections(found)
        if self.window_of_its_own is not None:
            self.window_of_its_own.editor.setExtraSelections(found)
            self.window_of_its_own.mistake.setText(self.mistake.text() if found else "")

    def _on_browse(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self,
            tr("Choose a chat template"),
            str(Path.home()),
            tr("Templates (*.jinja *.jinja2 *.j2 *.txt);;All files (*)"),
        )
        if path:
            self.open_file(Path(path))

    def open_file(self, path: Path) -> None:
        """Load the template from a file."""
        try:
            if text_file.is_small(path):
                self.write(text_file.read_text(path))
            else:
                self.show_mistake(tr("{name} is too large for a chat template; choose another file.", name=path.name))
        except OSError as error:
            self.show_mistake(text_file.refusal(path, error))


class _Large(QDialog):
    """The same document in a separate window."""

    def __init__(self, field: TemplateField) -> None:
        super().__init__(field)
        self.setWindowTitle(tr("Chat template"))
        self.resize(*LARGE)
        self.editor = _editor()
        self.editor.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.mistake = label("", "danger", wrap=True, selectable=True)
        column = QVBoxLayout(self)
        column.addWidget(self.editor, 1)
        column.addWidget(self.mistake)
        self._field = field
        self.editor.textChanged.connect(lambda: field.write(self.editor.toPlainText()))
        field.editor.textChanged.connect(self._take)

    def open_beside(self) -> None:
        """Show it with the current text."""
        self._take()
        self.show()
        self.raise_()

    def _take(self) -> None:
        written = self._field.editor.toPlainText()
        if written != self.editor.toPlainText():
            with QSignalBlocker(self.editor):
                self.editor.setPlainText(written)


def _editor() -> QPlainTextEdit:
    editor = QPlainTextEdit(placeholderText=tr("A Jinja template of messages"))
    editor.setAccessibleName(tr("Chat template"))
    editor.setTabChangesFocus(True)
    editor.setWordWrapMode(editor.wordWrapMode().WrapAnywhere)
    editor.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
    theme.role(editor, "mono")
    return editor
