"""The input to tokenize: a text, a pair, words, a conversation, several texts, or ids to decode."""

from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QFileDialog, QPlainTextEdit, QWidget

from app import theme
from app.core.formatting import group_digits, megabytes
from app.core.i18n import tr
from app.services import text_file
from app.widgets.boxes import hbox, holder, stack, vbox
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.text.chat_editor import ChatEditor
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.text.text_editor import Places, TextEditor, fits, text_of

TEXT, PAIR, WORDS, CHAT, BATCH, IDS, FILE = range(7)
MODES = (
    (tr("Text"), tr("One text, as written")),
    (tr("Pair"), tr("Two texts that the model sees as one input, for example a question and its context")),
    (tr("Words"), tr("Words separated by whitespace, as for tagging (is_split_into_words)")),
    (tr("Chat"), tr("A conversation, written out by the chat template")),
    (tr("Batch"), tr("Several texts, one per line, as the padded batch that the model sees")),
    (tr("IDs"), tr("Decode IDs or pieces to text, one list per line")),
)
EXAMPLE = tr(
    "Fine-tuning transformers shouldn't require a terminal.\nUnbelievably long words get split into sub-word pieces."
)
SECOND = tr("The second text of a pair.")
SEVERAL = tr("A short text.\nA longer text, which determines the width of the batch.\nUnbelievable!")
MAX_PASTED = 10_000_000
SOME_IDS = "101, 7592, 2088, 102"


class TextInput(Card):
    """`mode` is one of the constants above; FILE is a file, or pasted text, that is too long for an editor."""

    changed = Signal()
    mode_changed = Signal()
    selected = Signal(int, int, int)
    """Which text, first and last + 1 of the selected characters."""
    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent, spacing=8)
        self.path: Path | None = None
        self.pasted: str | None = None
        """What is shown in FILE where it is no file."""
        self._places: dict[int, tuple[int, Places]] = {}
        self.modes, row = chips([title for title, _ in MODES], self.set_mode)
        for place, (_, hint) in enumerate(MODES):
            self.modes.button(place).setToolTip(hint)
        self.open_button = IconToolButton("folder", tr("Open a text file (or drop one here)"), clicked=self._browse)
        row.setSpacing(3)
        self.text, self.second = _editor(tr("Text"), EXAMPLE), _editor(tr("Second text"), SECOND)
        self.words, self.lines = _editor(tr("Words"), EXAMPLE), _editor(tr("Texts, one per line"), SEVERAL)
        self.ids = _editor(tr("IDs or pieces, one list per line"), SOME_IDS)
        theme.role(self.ids, "mono")
        self.chat = ChatEditor()
        both = holder(hbox(self.text, self.second, spacing=10))
        self.second.hide()
        self.pages = stack(both, self.words, self.chat, self.lines, self.ids, self._file_page(), parent=self)
        self.add_all(hbox(row, 1, self.open_button, spacing=2), (self.pages, 1))
        self._connect()

    def _file_page(self) -> QWidget:
        self.file_name, self.file_size = ElidedLabel("", "strong"), label("", "faint")
        self.close_file = IconButton(tr("Close"), "close", "quiet", clicked=lambda: self.set_mode(TEXT))
        return holder(vbox(hbox((self.file_name, 1), self.close_file), self.file_size, 1))

    def _connect(self) -> None:
        for editor in (self.text, self.second, self.words, self.lines, self.ids):
            editor.textChanged.connect(self._on_text)
        self.text.too_long.connect(self._on_long_text)
        for editor in (self.second, self.words, self.lines, self.ids, self.chat):
            editor.too_long.connect(self._on_too_long)
        self.chat.changed.connect(self.changed)
        for sequence, editor in ((0, self.text), (1, self.second), (0, self.words)):
            editor.selectionChanged.connect(lambda number=sequence, one=editor: self._emit_selection(number, one))

    # What is written

    def mode(self) -> int:
        """Which of the constants above."""
        return FILE if self.pages.currentIndex() == 5 else self.modes.checkedId()

    def set_mode(self, mode: int) -> None:
        """Switch to another input mode."""
        if mode != FILE:
            self.modes.button(mode).setChecked(True)
        self.second.setVisible(mode == PAIR)
        self.pages.setCurrentIndex({TEXT: 0, PAIR: 0, WORDS: 1, CHAT: 2, BATCH: 3, IDS: 4, FILE: 5}[mode])
        self.mode_changed.emit()

    def set_text(self, text: str) -> None:
        """Set the text, as if the user had typed it."""
        if not fits(text):
            self._on_long_text(text)
            return
        self.text.setPlainText(text)
        if self.mode() not in (TEXT, PAIR):
            self.set_mode(TEXT)

    def texts(self) -> list[str]:
        """Several texts, one per line; trailing empty lines are ignored."""
        return text_of(self.lines).rstrip("\n").split("\n")

    def length(self) -> int:
        """Approximate number of characters in the query."""
        return sum(one.document().characterCount() for one in (self.text, self.second, self.words, self.lines))

    def open_file(self, path: str) -> None:
        """Load a small file into the editor; a large one stays a file."""
        self.path = Path(path)
        try:
            if text_file.is_small(self.path) and fits(text := text_file.read_text(self.path)):
                self.set_text(text)
                return
            size = self.path.stat().st_size
        except OSError as error:
            self.refused.emit(text_file.refusal(self.path, error))
            return
        said = tr("{size}: too long for the editor, so only the tokens are shown.", size=megabytes(size / 1000000.0))
        self._show_file(None, str(self.path), said)

    def _on_long_text(self, text: str) -> None:
        if len(text) > MAX_PASTED:
            self._on_too_long(text)
            return
        said = tr(
            "{number} characters: too long for the editor, so only the tokens are shown.",
            number=group_digits(len(text)),
        )
        self._show_file(text, tr("The pasted text"), said)

    def _show_file(self, pasted: str | None, name: str, size: str) -> None:
        self.pasted = pasted
        self.file_name.setText(name)
        self.file_size.setText(size)
        self.set_mode(FILE)

    def _on_too_long(self, text: str) -> None:
        self.refused.emit(
            tr("{number} characters are too long for this field; open them as a file.", number=group_digits(len(text)))
        )

    def _browse(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, tr("Choose a text file"), str(Path.home()))
        if path:
            self.open_file(path)

    def _on_text(self) -> None:
        self._places.clear()
        self.changed.emit()

    # Selection

    def show_selection(self, sequence: int, begin: int, end: int) -> None:
        """Select characters of a text in its editor; emits nothing."""
        editor = self._editor_of(sequence)
        if editor is None:
            return
        places = self._places_of(sequence, editor)
        cursor = editor.textCursor()
        cursor.setPosition(places.units(begin))
        cursor.setPosition(places.units(end), QTextCursor.MoveMode.KeepAnchor)
        with QSignalBlocker(editor):
            editor.setTextCursor(cursor)
            editor.ensureCursorVisible()

    def _editor_of(self, sequence: int) -> QPlainTextEdit | None:
        return {(TEXT, 0): self.text, (PAIR, 0): self.text, (PAIR, 1): self.second, (WORDS, 0): self.words}.get(
            (self.mode(), sequence)
        )

    def _emit_selection(self, sequence: int, editor: QPlainTextEdit) -> None:
        if editor is not self._editor_of(sequence):
            return
        cursor, places = editor.textCursor(), self._places_of(sequence, editor)
        begin, end = places.characters(cursor.selectionStart()), places.characters(cursor.selectionEnd())
        self.selected.emit(sequence, begin, end)

    def _places_of(self, sequence: int, editor: QPlainTextEdit) -> Places:
        revision = editor.document().revision()
        known = self._places.get(sequence)
        if known is None or known[0] != revision:
            known = self._places[sequence] = revision, Places(text_of(editor))
        return known[1]


def _editor(name: str, text: str) -> TextEditor:
    editor = TextEditor(text, name)
    editor.setAccessibleName(name)
    editor.setTabChangesFocus(True)
    editor.setAcceptDrops(False)
    editor.setMinimumHeight(48)
    return editor
