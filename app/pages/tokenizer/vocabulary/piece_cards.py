"""Everything about one piece, and the card that converts ids and pieces."""

from collections.abc import Mapping

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QPlainTextEdit, QTreeWidget, QTreeWidgetItem

from app import theme
from app.core.i18n import plain, thin, tr
from app.core.text.invisible_characters import SPACES
from app.core.text.pipeline_steps import merge_row
from app.pages.tokenizer.ids_and_pieces import EMPTY, DecodedView, IdsQuestion
from app.services.backend_client import BackendClient
from app.widgets.card import Card, label
from app.widgets.icon_label import IconToolButton
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.text.glyphs import show_plain_signs
from backend.contract.tokens.vocabulary import MergeNode, PieceOrigin

CALM_MS = 150
FIELD_HEIGHT = 96

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
        self._parts: list[MergeNode] = []
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
        self.tree = QTreeWidget(columnCount=2)
        self.tree.setHeaderHidden(True)
        self.tree.setIndentation(14)
        self.tree.setAccessibleName(tr("What the piece is made of"))
        self.tree.setFrameShape(QFrame.Shape.NoFrame)
        self.tree.setMinimumHeight(60)
        theme.give_font(self.tree, 12, mono=True)
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
        self._parts = origin.parts if origin is not None and len(origin.parts) > 1 else []
        self._grow_tree()
        self.tree.setVisible(bool(self._parts))
        self.sentence.setText(thin(origin.sentence) if origin is not None else "")
        self.sentence.setVisible(bool(self.sentence.text()))
        self.body.setStretch(self.body.count() - 1, 0 if self._parts else 1)

    def _grow_tree(self) -> None:
        self.tree.clear()
        above: list[QTreeWidgetItem] = []
        for part in self._parts:
            item = QTreeWidgetItem(merge_row(part))
            del above[part.depth :]
            if above:
                above[-1].addChild(item)
            else:
                self.tree.addTopLevelItem(item)
            above.append(item)
        self.tree.expandAll()
        self.tree.resizeColumnToContents(0)

    def copy(self) -> None:
        """Copy what is shown to the clipboard, one `name: value` per line, and the tree."""
        shown = {name: self._values[name] for name in FACTS if self._values.get(name)}
        lines = [f"{name}: {plain(value) if name in NUMBERS else value}" for name, value in shown.items()]
        lines += [f"{'  ' * part.depth}{'   '.join(merge_row(part))}".rstrip() for part in self._parts]
        QGuiApplication.clipboard().setText("\n".join(lines))


class ConvertCard(Card):
    """What is typed, ids or pieces, is shown as the other."""

    def __init__(self, client: BackendClient) -> None:
        super().__init__(tr("IDs and pieces"), spacing=6)
        self._tokenizer = ""
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self.convert)
        self.field = QPlainTextEdit(placeholderText=EMPTY, tabChangesFocus=True)
        self.field.setAccessibleName(tr("IDs or pieces, one list per line"))
        self.field.setFixedHeight(theme.pixels(FIELD_HEIGHT))
        theme.role(self.field, "mono")
        show_plain_signs(self.field)
        self.field.textChanged.connect(self._calm.start)
        self.view = DecodedView()
        self._question = IdsQuestion(client, self.view)
        self.add_all(self.field, (self.view, 100), 1)

    def use(self, tokenizer: str) -> None:
        """Convert with another tokenizer."""
        self._tokenizer = tokenizer
        self.convert()

    def convert(self) -> None:
        """Ask for what is written."""
        self._question.ask(self.field.toPlainText() if self._tokenizer else "", {"tokenizer": self._tokenizer})
