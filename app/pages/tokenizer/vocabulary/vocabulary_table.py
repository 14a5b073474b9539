"""The table of pieces or merges, and the bars above it: search and export, and counting pieces in chosen data."""

from typing import Any

import numpy as np
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QMenu, QWidget

from app.core.backend_words import COLUMNS as COLUMN_TITLES
from app.core.backend_words import capitalize, translate_word
from app.core.formatting import group_digits
from app.core.i18n import tr, trn
from app.pages.tokenizer.data_choice import DataChoice
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from app.services.vocabulary_rows import FREQUENCY, VocabularyRows
from app.widgets.boxes import fill, hbox
from app.widgets.card import TableCard, label
from app.widgets.forms.chips import chips
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconButton
from app.widgets.progress import WorkStack
from app.widgets.tables.row_table import RowTable
from app.widgets.text.elided_label import ElidedLabel
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.tokens.vocabulary import TYPES, PieceCounts, SearchBy, Vocabulary

CALM_MS = 120
TABLES = ((tr("Pieces"), "pieces"), (tr("Merges"), "merges"))
WAYS: tuple[tuple[str, SearchBy, str], ...] = (
    (tr("Text"), "text", tr("Find text in a piece")),
    (tr("Regex"), "regex", tr("Regular expression, for example ^.un.*able$")),
    (tr("IDs"), "id", tr("For example 101, 7592-7600")),
    (tr("Script"), "script", ""),
)

HIDDEN = ("script",)
"""Columns that the card at the side shows; the table has room for those that people sort by."""
WIDTHS = {
    "id": 66, "piece": 124, "text": 124, "bytes": 96, "length": 66, "type": 78, "frequency": 90, "rank": 70, "score": 78,
    "left": 120, "right": 120, "result": 132,
}  # fmt: skip
STRETCHED = {"pieces": ("piece", "text"), "merges": ("left", "right", "result", "text")}
_COLORS = {"special": "accent_text", "added": "info", "byte": "warning", "unused": "faint"}


class VocabularyTable(TableCard):
    """Shows one of a vocabulary's tables, `pieces` or `merges`."""

    def __init__(self) -> None:
        self._rows: VocabularyRows | None = None
        self._name = "pieces"
        self.table = RowTable(name=tr("Vocabulary"), titles=COLUMN_TITLES)
        self.table.remember("vocabulary")
        self.table.set_color(self._color)
        self.counts = ElidedLabel("", "faint")
        super().__init__(self.table, self.counts)

    def show_nothing(self) -> None:
        """Show that no vocabulary is open."""
        self._rows = None
        self.table.set_source(None)
        self.counts.setText("")

    def show_rows(self, rows: VocabularyRows, name: str) -> None:
        """Show another table, unsorted."""
        self._rows, self._name = rows, name
        shown = _in_order(rows.columns)
        self.table.set_source(rows, shown)
        self.table.setColumnHidden(0, True)  # the id counts the rows already
        self.table.set_widths({name: WIDTHS[name] for name in shown}, STRETCHED[name])

    def show_indices(self, indices: np.ndarray | None) -> int:
        """Show only these rows, in this order, or all; returns how many."""
        self.table.set_indices(indices)  # type: ignore[arg-type]
        self.table.setColumnHidden(0, True)
        return self.table.shown_count()

    def mark_most_frequent_first(self) -> None:
        """Show in the header that rows are sorted by frequency."""
        assert self._rows is not None
        header = self.table.horizontalHeader()
        header.setSortIndicatorShown(True)
        place = _in_order(self._rows.columns).index(FREQUENCY)
        header.setSortIndicator(place + 1, Qt.SortOrder.DescendingOrder)

    def show_summary(self, vocabulary: Vocabulary, counted: str) -> None:
        """Show how many rows of which kinds there are; `counted` says how many pieces occur in the data."""
        assert self._rows is not None
        shown, total, is_pieces = self.table.shown_count(), self._rows.row_count, self._name == "pieces"
        if not is_pieces:
            whole = trn("{count} merge", "{count} merges", total)
        elif vocabulary.missing:
            whole = trn("{count} row", "{count} rows", total)
        else:
            whole = trn("{count} piece", "{count} pieces", total)
        words = [tr("{shown} of {whole}", shown=group_digits(shown), whole=whole) if shown != total else whole]
        words.append(vocabulary.kind)
        if is_pieces:
            words += [
                f"{group_digits(n)} {translate_word(name)}"
                for name, n in vocabulary.types.items()
                if n and name != "normal"
            ]
            if vocabulary.missing:
                ids = trn("{count} ID", "{count} IDs", vocabulary.missing)
                words.append(tr("{count} without a piece", count=ids))
            words += [counted] if counted else []
        self.counts.setText(" · ".join(words))

    def _color(self, row: int, column: str) -> str:
        if self._rows is None or self._name != "pieces":
            return ""
        if column == FREQUENCY:
            return "faint" if self._rows.value(row, FREQUENCY) == 0 else ""
        if column in ("bytes", "length", "score", "rank"):
            return "muted"
        return _COLORS.get(self._rows.value(row, "type"), "") if column in ("type", "piece", "text") else ""


def _in_order(columns: list[str]) -> list[str]:
    """The column order: the frequency, if counted, beside the text, columns for experts last."""
    last = [name for name in ("rank", "score") if name in columns and columns[0] != name]
    shown = [name for name in columns if name not in (*HIDDEN, *last)] + last
    if FREQUENCY in shown:
        shown.remove(FREQUENCY)
        shown.insert(shown.index("text") + 1, FREQUENCY)
    return shown


class PieceSearch(QWidget):
    """Emits `changed` a moment after the last key press, and at once after a choice."""

    changed = Signal()
    table_chosen = Signal()
    export_requested = Signal(bool)
    """Whether the whole table is wanted, not only the rows that are shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tables, table_row = chips([title for title, _ in TABLES], lambda _: self._on_table())
        hint = tr("Search by text (case-insensitive), regular expression (RE2), IDs or script")
        ways = [(title, value) for title, value, _ in WAYS]
        self.way = QuietComboBox(name=tr("Search by"), hint=hint, items=ways, activated=self._on_way)
        self.way.setMinimumContentsLength(7)
        self.text = QLineEdit(clearButtonEnabled=True)
        self.text.setMinimumWidth(120)
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self.changed)
        self.text.textChanged.connect(lambda _: self._calm.start())
        hint = tr("Pieces with letters in this script")
        self.script = QuietComboBox(name=tr("Script"), hint=hint, activated=self.changed.emit)
        self.type = QuietComboBox(name=tr("Piece type"), hint=tr("Piece type"), activated=self.changed.emit)
        self.export = IconButton(tr("Export CSV"), "download")
        self.export.clicked.connect(lambda: self.export.open_menu(self.export_menu))
        self.export_menu = QMenu(self.export)
        self.export_shown = self.export_menu.addAction("", lambda: self.export_requested.emit(False))
        self.export_all = self.export_menu.addAction("", lambda: self.export_requested.emit(True))
        row = hbox(table_row, spacing=8, parent=self)
        row.addSpacing(6)
        fill(row, ((self.way, 2), (self.text, 4), (self.script, 4), (self.type, 3), self.export))
        find = QShortcut(QKeySequence.StandardKey.Find, self)
        find.activated.connect(self.text.setFocus)
        self._show_way()

    # What is wanted

    @property
    def table(self) -> str:
        """`pieces` or `merges`."""
        return TABLES[self.tables.checkedId()][1]

    @property
    def by(self) -> SearchBy:
        """How to interpret `search`."""
        return self.way.currentData()

    @property
    def search(self) -> str:
        """The search text; spaces are significant in a text."""
        return (self.script.currentData() or "") if self.by == "script" else self.text.text()

    @property
    def types(self) -> list[str]:
        """The wanted types of pieces; none means all."""
        return list(self.type.currentData() or ()) if self.table == "pieces" else []

    @property
    def is_all(self) -> bool:
        """Whether every row matches."""
        return not self.search and not self.types

    # What there is

    def offer(self, vocabulary: Vocabulary) -> None:
        """Prepare for another vocabulary; typed text is kept."""
        merges = self.tables.button(1)
        merges.setEnabled(vocabulary.merges > 0)
        merges.setToolTip("" if vocabulary.merges else tr("A {kind} has no merges", kind=vocabulary.kind))
        if not vocabulary.merges:
            self.tables.button(0).setChecked(True)
        types = [
            (f"{capitalize(translate_word(name))} ({group_digits(vocabulary.types.get(name, 0))})", [name])
            for name in TYPES
        ]
        not_special = (tr("Non-special only"), [name for name in TYPES if name != "special"])
        chosen = self.type.currentIndex()
        self.type.set_items([(tr("All types"), []), not_special, *types])
        self.type.setCurrentIndex(max(0, chosen))
        scripts = [
            (f"{name.replace('_', ' ')} ({group_digits(pieces)})", name) for name, pieces in vocabulary.scripts.items()
        ]
        self.script.set_items([(tr("Any script"), ""), *scripts], self.script.currentData())
        self._show_way()

    def offer_export(self, shown: int, total: int) -> None:
        """Show how many rows an export would write."""
        self.export_shown.setText(tr("Shown rows ({shown})…", shown=group_digits(shown)))
        self.export_all.setText(tr("All rows ({total})…", total=group_digits(total)))
        self.export_shown.setEnabled(shown > 0)
        self.export.setEnabled(total > 0)

    def _on_table(self) -> None:
        self._show_way()
        self.table_chosen.emit()

    def _on_way(self) -> None:
        self._show_way()
        self.changed.emit()

    def _show_way(self) -> None:
        if self.table == "merges" and self.by == "script":
            self.way.setCurrentIndex(0)
        by_script = self.by == "script"
        self.script.setVisible(by_script)
        self.text.setVisible(not by_script)
        hint = WAYS[self.way.currentIndex()][2]
        self.text.setPlaceholderText(hint)
        self.text.setAccessibleName(hint)
        self.type.setEnabled(self.table == "pieces")


class FrequencyBar(WorkStack):
    """Asks `count_pieces` for what it is `about`."""

    counted = Signal(object)
    """PieceCounts."""
    failed = Signal(str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._about: dict[str, Any] = {}
        self._question = LatestQuestion(
            context.client, "count_pieces", self._on_counts, self._on_mistake, self.work.show_progress, "", parent=self
        )
        self.data = DataChoice(context)
        self.data.failed.connect(self.failed)
        self.data.changed.connect(self._show_state)
        self.start = IconButton(tr("Count"), "chart", clicked=self.count_pieces)
        self.start.setToolTip(tr("Count how often each piece occurs in this column"))
        self.hold(hbox(label(tr("Frequency in"), "muted"), (self.data, 1), self.start, spacing=10))
        self.stopped.connect(self.cancel)
        self.setFixedHeight(34)
        self._show_state()

    def set_about(self, about: dict[str, Any]) -> None:
        """Tokenizer and folder of the questions from now on; a count that is under way is of no use any more."""
        self._about = about
        self.cancel()

    def count_pieces(self) -> None:
        """Ask; the helper reports progress."""
        if self._about and self.data.ready:
            self.begin(tr("Counting"))
            self._question.ask({**self._about, "data": self.data.data, "column": self.data.column.currentText()})

    def cancel(self) -> None:
        """Stop counting; what was counted before stays."""
        self._question.stop()
        self.end()
        self._show_state()

    def _show_state(self) -> None:
        self.start.setEnabled(self.data.ready and bool(self._about))

    def _on_counts(self, counts: PieceCounts) -> None:
        self.end()
        self.counted.emit(counts)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self.end()
        self.failed.emit(mistake.message)
