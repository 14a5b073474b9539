"""Everything about one piece, and the card that turns ids into pieces and pieces into ids."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QPlainTextEdit

from app import theme
from app.core.i18n import fill, inside, plain, thin, tr, trn
from app.core.text.id_lists import read_ids, read_pieces, write_ids, write_pieces
from app.core.text.invisible_characters import SPACES
from app.core.text.pipeline_steps import tree_lines
from app.widgets.boxes import hbox
from app.widgets.card import Card, label
from app.widgets.icon_label import IconToolButton
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.text.glyphs import show_plain_signs
from backend.contract.tokens.vocabulary import PieceOrigin

CALM_MS = 150
SHOWN = 60
"""Characters of pieces that are named as missing."""

FACTS = ("id", "piece", "text", "bytes", "code points", "type", "script", "rank", "score", "frequency")
NUMBERS = ("id", "rank", "score", "frequency")
TITLES = {
    "id": tr("ID"), "piece": tr("Piece"), "text": tr("Text"), "bytes": tr("Bytes"), "type": tr("Type"),
    "script": tr("Script"), "frequency": tr("Frequency"), "code points": tr("Code points"), "rank": tr("Merge rank"), "score": tr("Log-probability"),
}  # fmt: skip
NOTHING = tr("Choose a piece in the table.")
MAX_POINTS = 12


class PieceCard(Card):
    """Shows one piece; its origin follows a moment later."""

    def __init__(self) -> None:
        super().__init__(tr("Piece"), spacing=6)
        self._values: dict[str, str] = {}
        self.corner.addWidget(IconToolButton("copy", tr("Copy these details"), clicked=self.copy))
        self.hint = label(NOTHING, "muted", wrap=True)
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(1, 1)
        self.facts: dict[str, tuple[ElidedLabel, ElidedLabel]] = {}
        for line, name in enumerate(FACTS):
            caption, value = ElidedLabel(TITLES[name], "caption"), ElidedLabel("", "mono")
            caption.setFixedWidth(104)
            show_plain_signs(value)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            grid.addWidget(caption, line, 0)
            grid.addWidget(value, line, 1)
            self.facts[name] = (caption, value)
        self.sentence = label("", "muted", wrap=True, selectable=True)
        self.tree = QPlainTextEdit(readOnly=True, lineWrapMode=QPlainTextEdit.LineWrapMode.NoWrap)
        self.tree.setAccessibleName(tr("What the piece is made of"))
        self.tree.setFrameShape(QFrame.Shape.NoFrame)
        self.tree.setMinimumHeight(60)
        theme.role(self.tree, "mono")
        show_plain_signs(self.tree)
        self.add_all(self.hint, grid, self.sentence, (self.tree, 1), 0)
        self.show_piece(None)

    def show_piece(self, values: Mapping[str, str] | None) -> None:
        """Show a piece's cells by column, or nothing."""
        self._values = dict(values or {})
        if self._values:
            text = self._values.get("text", "")
            points = " ".join(f"U+{ord(sign):04X}" for sign in text[:MAX_POINTS])
            self._values["code points"] = points + (" …" if len(text) > MAX_POINTS else "")
        for name, (caption, value) in self.facts.items():
            shown = self._values.get(name, "")
            value.setText(shown.translate(SPACES) if name == "text" else shown)
            for part in (caption, value):
                part.setVisible(bool(shown))
        self.hint.setVisible(not self._values)
        self.show_origin(None)

    def show_origin(self, origin: PieceOrigin | None) -> None:
        """Show the tree of merges, or a sentence."""
        lines = tree_lines(origin.parts) if origin is not None and len(origin.parts) > 1 else []
        self.tree.setPlainText("\n".join(lines))
        self.tree.setVisible(bool(lines))
        self.sentence.setText(thin(origin.sentence) if origin is not None else "")
        self.sentence.setVisible(bool(self.sentence.text()))
        self.body.setStretch(self.body.count() - 1, 0 if lines else 1)

    def copy(self) -> None:
        """Copy what is shown to the clipboard, one `name: value` per line, and the tree."""
        shown = {name: self._values[name] for name in FACTS if self._values.get(name)}
        lines = [f"{name}: {plain(value) if name in NUMBERS else value}" for name, value in shown.items()]
        QGuiApplication.clipboard().setText("\n".join(filter(None, [*lines, self.tree.toPlainText()])))


class ConvertCard(Card):
    """Two fields: typing in one converts to the other."""

    conversion_requested = Signal(dict)
    """`ids` or `pieces` to be converted; `show_conversion` takes both."""

    def __init__(self) -> None:
        super().__init__(tr("IDs and pieces"), spacing=4)
        self._from_ids = True
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self.convert)
        self.ids = self._field(tr("IDs"), "101, 7592, 102")
        self.pieces = self._field(tr("Pieces"), tr("[CLS] hello [SEP], one per line, or a JSON list"))
        self.ids.textChanged.connect(lambda: self._on_written(from_ids=True))
        self.pieces.textChanged.connect(lambda: self._on_written(from_ids=False))
        self.note = label("", "faint", wrap=True)
        self.add(self.note)
        self.note.hide()

    def _field(self, name: str, hint: str) -> QPlainTextEdit:
        field = QPlainTextEdit(placeholderText=hint, tabChangesFocus=True)
        field.setAccessibleName(name)
        field.setMinimumHeight(52)
        theme.role(field, "mono")
        show_plain_signs(field)

        def copy() -> None:
            QGuiApplication.clipboard().setText(field.toPlainText())

        button = IconToolButton("copy", tr("Copy the {name}", name=inside(name)), clicked=copy)
        self.add_all(hbox(label(name, "caption"), 1, button), (field, 1))
        return field

    def _on_written(self, from_ids: bool) -> None:
        self._from_ids = from_ids
        self._calm.start()

    def convert(self) -> None:
        """Convert again, for example because another vocabulary is shown."""
        source = self.ids if self._from_ids else self.pieces
        try:
            given = read_ids(source.toPlainText()) if self._from_ids else read_pieces(source.toPlainText())
        except ValueError as error:
            self._note(str(error))
            return
        if not given:
            self._write(self.pieces if self._from_ids else self.ids, "")
            self._note("")
            return
        self.conversion_requested.emit({"ids" if self._from_ids else "pieces": given})

    def show_conversion(self, ids: Sequence[int | None], pieces: Sequence[str | None]) -> None:
        """Write the other field, and name what has no counterpart (None)."""
        if self._from_ids:
            self._write(self.pieces, write_pieces(pieces, ids))
            missing = [str(number) for number, piece in zip(ids, pieces, strict=True) if piece is None]
            said, count = tr("{count} without a piece: {listed}"), trn("{count} ID", "{count} IDs", len(missing))
        else:
            self._write(self.ids, write_ids(ids))
            missing = [str(piece) for number, piece in zip(ids, pieces, strict=True) if number is None]
            said = tr("{count} not in the vocabulary: {listed}")
            count = trn("{count} piece", "{count} pieces", len(missing))
        self._note(fill(said, count=count, listed=_list_words(missing)) if missing else "")

    def _write(self, field: QPlainTextEdit, text: str) -> None:
        field.blockSignals(True)
        field.setPlainText(text)
        field.blockSignals(False)

    def _note(self, text: str) -> None:
        self.note.setText(text)
        self.note.setVisible(bool(text))


def _list_words(words: list[str]) -> str:
    text = ", ".join(words)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
