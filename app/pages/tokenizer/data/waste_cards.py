"""Owns the cards on what is wasted: tokens that the tokenizer does not know, and padding by the way batches are made."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.i18n import thin, tr
from app.core.text.training_messages import percent, short_place
from app.widgets.card import Card, label
from app.widgets.progress_bar import ThinProgressBar
from app.widgets.tables.row_table import RowTable
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.training_data import PaddingRule, TrainingLengths, UnknownRow

COLUMNS = ("share", "row", "text")
SHORT_TITLES = {
    "length_buckets": tr("Like lengths together"),
    "random": tr("At random"),
    "in_order": tr("As they stand"),
    "fixed": tr("All filled to the limit"),
}


class _WorstRows:
    """The rows with unknown tokens as a table's source."""

    columns = COLUMNS

    def __init__(self, rows: list[UnknownRow]) -> None:
        self.rows = rows

    @property
    def row_count(self) -> int:
        return len(self.rows)

    def cell(self, row: int, column: int) -> object:
        one = self.rows[row]
        return (percent(one.unknown / max(1, one.tokens)), short_place(one.place, 12), one.text)[column]


class UnknownCard(Card):
    """`row_chosen` names a row that should be looked at."""

    row_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Unknown tokens"), parent, spacing=8)
        self._rows: list[UnknownRow] = []
        self.rate, self.sentence = label("", "section"), label("", "muted", wrap=True)
        self.corner.addWidget(self.rate)
        self.table = RowTable()
        self.table.set_titles(COLUMN_TITLES)
        self.table.setAccessibleName(tr("Rows with the largest share of unknown tokens"))
        self.table.setToolTip(tr("Double-click or press Enter to see what the model gets of a row"))
        self.table.setMinimumHeight(108)
        self.table.activated.connect(lambda index: self.row_chosen.emit(self._rows[index.row()].row))
        self.add(self.sentence)
        self.add(self.table, 1)

    def show_lengths(self, lengths: TrainingLengths) -> None:
        """Show how much is unknown, and where."""
        unknown = lengths.unknown
        self._rows = unknown.worst
        share = unknown.unknown / max(1, unknown.tokens)
        self.rate.setText(percent(share) if unknown.token else tr("None"))
        self.sentence.setText(thin(unknown.sentence))
        self.table.setVisible(bool(unknown.worst))
        grows = QSizePolicy.Policy.Preferred if unknown.worst else QSizePolicy.Policy.Maximum
        self.setSizePolicy(QSizePolicy.Policy.Preferred, grows)
        self.table.set_source(_WorstRows(unknown.worst))
        self.table.hideColumn(0)
        self.table.set_widths({"share": 66, "row": 112, "text": 80}, stretched="text")


class PaddingCard(Card):
    """A bar for every way of making batches; one that can be set has a button."""

    settings_chosen = Signal(dict)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Padding"), parent, spacing=9)
        self._lines: QWidget | None = None
        self.sentence = label("", "muted", wrap=True)
        self.add(self.sentence)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def show_lengths(self, lengths: TrainingLengths, *, can_set: bool) -> None:
        """Show what every rule computes in vain."""
        self.setVisible(bool(lengths.padding))
        if self._lines is not None:
            self.body.removeWidget(self._lines)
            self._lines.deleteLater()
        self._lines = QWidget()
        column = QVBoxLayout(self._lines)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(9)
        chosen = next((rule for rule in lengths.padding if rule.chosen), None)
        for rule in lengths.padding:
            saves = can_set and chosen is not None and bool(rule.setting) and rule.padding < chosen.padding
            column.addWidget(_rule_line(rule, saves, self.settings_chosen.emit))
        self.add(self._lines)
        self.sentence.setText(
            tr(
                "Of what is computed in batches of {batch_size:,}, {percent} is padding.",
                batch_size=lengths.batch_size,
                percent=percent(chosen.padding),
            )
            if chosen
            else ""
        )


def _rule_line(rule: PaddingRule, saves: bool, use: Callable[[dict], None]) -> QWidget:
    line = QWidget()
    line.setToolTip(
        tr(
            "{title}: {tokens:,} tokens an epoch, {padding:.1%} of them padding",
            title=rule.title,
            tokens=rule.tokens,
            padding=rule.padding,
        )
    )
    line.setAccessibleName(line.toolTip())
    title = ElidedLabel(SHORT_TITLES[rule.name], "section" if rule.chosen else "muted")
    title.setToolTip(line.toolTip())
    bar = ThinProgressBar()
    bar.set_fraction(rule.padding, "accent" if rule.chosen else "plot_1_raw")
    share = label(percent(rule.padding), "section" if rule.chosen else "muted")
    share.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    share.setMinimumWidth(48)
    column = QVBoxLayout(line)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(3)
    top = QHBoxLayout()
    top.addWidget(title, 1)
    if saves:
        button = QPushButton(tr("Use this"))
        theme.role(button, "chip")
        button.setAccessibleName(tr("Use: {title}", title=rule.title))
        button.clicked.connect(lambda: use(dict(rule.setting)))
        top.addWidget(button)
    elif rule.chosen:
        top.addWidget(label(tr("as set"), "faint"))
    top.addWidget(share)
    column.addLayout(top)
    column.addWidget(bar)
    return line
