"""Owns the shortcut sheet: every key of the window and its pages, side by side."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.core.actions import Action
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.curtain import Curtain
from app.widgets.icon_label import IconToolButton
from app.widgets.palette import native

WIDTH = 780
COLUMNS = 2


class ShortcutSheet(Curtain):
    """`open_with` shows the groups in their order; a group without keys is left out."""

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.setAccessibleName(tr("Keyboard shortcuts"))
        close = IconToolButton("close", tr("Close the shortcuts"), size=14)
        close.clicked.connect(self.close_curtain)
        self.close_button = close
        top = QHBoxLayout()
        top.addWidget(label(tr("Keyboard shortcuts"), "section"), 1)
        top.addWidget(close)
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._area.setAccessibleName(tr("Shortcuts, by page"))
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        column = QVBoxLayout(self.card)
        column.setContentsMargins(20, 14, 14, 16)
        column.setSpacing(10)
        column.addLayout(top)
        column.addWidget(self._area, 1)
        self.lines: dict[str, list[tuple[str, str]]] = {}

    def open_with(self, groups: Mapping[str, Sequence[Action]]) -> None:
        """Title of each group and its actions."""
        self.lines = {
            title: [(action.title, ", ".join(map(native, action.shortcuts()))) for action in actions if action.shortcut]
            for title, actions in groups.items()
        }
        self.lines = {title: lines for title, lines in self.lines.items() if lines}
        self._area.setWidget(self._body())
        self.open(self.close_button)

    def place_card(self) -> None:
        """As high as its lines need, where there is room."""
        body = self._area.widget()
        needed = (body.sizeHint().height() if body else 0) + 76
        width, height = min(WIDTH, self.width() - 32), min(needed, self.height() - 64)
        self.card.setGeometry((self.width() - width) // 2, (self.height() - height) // 2, width, height)

    def _body(self) -> QWidget:
        body = QWidget()
        body.setObjectName("scrolled")
        row = QHBoxLayout(body)
        row.setContentsMargins(0, 0, 10, 0)
        row.setSpacing(32)
        columns = [QVBoxLayout() for _ in range(COLUMNS)]
        heights = [0] * COLUMNS
        for title, lines in self.lines.items():
            place = heights.index(min(heights))
            heights[place] += len(lines) + 2
            columns[place].addLayout(_group(title, lines))
            columns[place].addSpacing(14)
        for column in columns:
            column.addStretch(1)
            row.addLayout(column, 1)
        return body


def _group(title: str, lines: Sequence[tuple[str, str]]) -> QGridLayout:
    grid = QGridLayout()
    grid.setVerticalSpacing(7)
    grid.setColumnStretch(0, 1)
    grid.addWidget(label(title.upper(), "heading"), 0, 0)
    for number, (words, keys) in enumerate(lines, start=1):
        said = label(words, wrap=True)
        said.setAccessibleName(f"{words}: {keys}")
        grid.addWidget(said, number, 0)
        grid.addWidget(label(keys, "key"), number, 1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
    return grid
