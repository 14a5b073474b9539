"""Owns the card that tells everything about one piece: what it stands for, and what it is made of."""

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QPlainTextEdit

from app import theme
from app.core.i18n import plain, thin, tr
from app.core.text.merge_tree import SPACES, tree_lines
from app.widgets.card import Card, label
from app.widgets.icon_label import IconToolButton
from app.widgets.text.elided_label import ElidedLabel
from app.widgets.text.plain_signs import show_plain_signs
from backend.contract.tokens.vocabulary import PieceOrigin

FACTS = ("id", "piece", "text", "bytes", "code points", "type", "script", "rank", "score", "frequency")
NUMBERS = ("id", "rank", "score", "frequency")
TITLES = {
    "id": tr("Id"), "piece": tr("Piece"), "text": tr("Text"), "bytes": tr("Bytes"), "type": tr("Type"),
    "script": tr("Script"), "frequency": tr("Frequency"), "code points": tr("Code points"), "rank": tr("Merge rank"), "score": tr("Log-probability"),
}  # fmt: skip
NOTHING = tr("Choose a piece in the table.")
MAX_POINTS = 12


class PieceCard(Card):
    """Shows one piece; what it is made of comes a moment later."""

    def __init__(self) -> None:
        super().__init__(tr("Piece"), spacing=6)
        self._values: dict[str, str] = {}
        copy = IconToolButton("copy", tr("Copy what is known of this piece"))
        copy.clicked.connect(self.copy)
        self.corner.addWidget(copy)
        self.hint = label(NOTHING, "muted", wrap=True)
        self.add(self.hint)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(1, 1)
        self.facts: dict[str, tuple[ElidedLabel, ElidedLabel]] = {}
        for line, name in enumerate(FACTS):
            caption, value = ElidedLabel(TITLES[name], "caption"), ElidedLabel("", "mono")
            caption.setFixedWidth(104)
            show_plain_signs(value)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._grid.addWidget(caption, line, 0)
            self._grid.addWidget(value, line, 1)
            self.facts[name] = (caption, value)
        self.body.addLayout(self._grid)
        self.sentence = label("", "muted", wrap=True, selectable=True)
        self.add(self.sentence)
        self.tree = QPlainTextEdit(readOnly=True, lineWrapMode=QPlainTextEdit.LineWrapMode.NoWrap)
        self.tree.setAccessibleName(tr("What the piece is made of"))
        self.tree.setFrameShape(QFrame.Shape.NoFrame)
        self.tree.setMinimumHeight(60)
        theme.role(self.tree, "mono")
        show_plain_signs(self.tree)
        self.add(self.tree, 1)
        self.body.addStretch(0)
        self.show_piece(None)

    def show_piece(self, values: Mapping[str, str] | None) -> None:
        """The cells of a piece by column, or nothing."""
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
        """The tree of merges, or a sentence."""
        lines = tree_lines(origin.parts) if origin is not None and len(origin.parts) > 1 else []
        self.tree.setPlainText("\n".join(lines))
        self.tree.setVisible(bool(lines))
        self.sentence.setText(thin(origin.sentence) if origin is not None else "")
        self.sentence.setVisible(bool(self.sentence.text()))
        self.body.setStretch(self.body.count() - 1, 0 if lines else 1)

    def copy(self) -> None:
        """Put what is shown on the clipboard, one `name: value` a line, and the tree."""
        shown = {name: self._values[name] for name in FACTS if self._values.get(name)}
        lines = [f"{name}: {plain(value) if name in NUMBERS else value}" for name, value in shown.items()]
        QGuiApplication.clipboard().setText("\n".join(filter(None, [*lines, self.tree.toPlainText()])))
