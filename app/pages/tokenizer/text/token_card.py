"""Owns the card that tells everything about one token."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QScrollArea, QWidget

from app.core.i18n import tr
from app.core.text.token_facts import Fact, facts_of
from app.core.text.token_table import TokenTable
from app.widgets.card import Card, label
from app.widgets.text import missing_glyphs
from app.widgets.text.elided_label import ElidedLabel

NOTHING = tr("Click a token, or walk through them with the arrow keys.")


class TokenCard(Card):
    """A name and a value a line; values can be selected and copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Token"), parent, spacing=4)
        self.place = ElidedLabel("", "faint")
        self.place.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.corner.addWidget(self.place)
        self.nothing = label(NOTHING, "muted", wrap=True)
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        holder = QWidget()
        holder.setObjectName("scrolled")
        self._grid = QGridLayout(holder)
        self._grid.setContentsMargins(0, 0, 6, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(1, 1)
        self._lines: list[tuple[QLabel, QLabel]] = []
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setWidget(holder)
        self.add(self.nothing)
        self.add(self._area, 1)
        self.show_nothing()

    def show_nothing(self) -> None:
        """No token is looked at."""
        self.place.setText("")
        self._area.hide()
        self.nothing.show()

    def show_token(self, table: TokenTable, index: int) -> None:
        """Everything about one token of a table."""
        self.nothing.hide()
        self._area.show()
        self.place.setText(
            tr(
                "{first:,} of {tokens:,}",
                first=table.first + index + 1,
                tokens=table.answer.tokens + table.answer.padding,
            )
        )
        facts = facts_of(table, index, missing_glyphs.sentence_of(table.text(index)))
        for line, fact in enumerate(facts):
            self._write(line, fact)
        for name, value in self._lines[len(facts) :]:
            name.hide()
            value.hide()

    def values(self) -> dict[str, str]:
        """What is shown, by name."""
        return {name.text(): value.text() for name, value in self._lines if not name.isHidden()}

    def _write(self, line: int, fact: Fact) -> None:
        if line == len(self._lines):
            name, value = label("", "caption"), label("", "mono", wrap=True, selectable=True)
            self._grid.addWidget(name, line, 0)
            self._grid.addWidget(value, line, 1)
            self._grid.setRowStretch(line, 0)
            self._grid.setRowStretch(line + 1, 1)
            self._lines.append((name, value))
        name, value = self._lines[line]
        name.setText(fact.name)
        name.setToolTip(fact.hint)
        value.setText(fact.value)
        name.show()
        value.show()
