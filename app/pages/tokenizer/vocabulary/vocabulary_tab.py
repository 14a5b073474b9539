"""The Vocabulary tab: all pieces or merges in a table, searched and sorted by the helper, and exported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtWidgets import QFileDialog, QWidget

from app.core.formatting import sentence
from app.core.i18n import tr, trn
from app.core.text.tokenizer_list import short_title
from app.pages.tokenizer.tokenizer_tab import TokenizerTab, waiting_question
from app.pages.tokenizer.vocabulary.piece_cards import ConvertCard, PieceCard
from app.pages.tokenizer.vocabulary.vocabulary_table import FrequencyBar, PieceSearch, VocabularyTable
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from app.services.vocabulary_rows import FREQUENCY, VocabularyFolder, VocabularyRows, read_numbers, write_numbers
from app.widgets.banner import Banner
from app.widgets.boxes import hbox, holder, stack, vbox
from app.widgets.forms.chips import chips
from app.widgets.progress import WaitingStack
from backend.contract.rpc.protocol import ErrorReply, ExportedFile
from backend.contract.tokens.vocabulary import FoundRows, PieceCounts, PieceOrigin, Vocabulary

SIDE_WIDTH = 296
LOADING = tr("Opening the tokenizer")
NOT_SHOWN = tr("The vocabulary can't be shown")


class VocabularyTab(TokenizerTab):
    """Opens the vocabulary on first use; the window never iterates over it."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.vocabulary: Vocabulary | None = None
        self._folder: VocabularyFolder | None = None
        self._tables: dict[str, VocabularyRows] = {}
        self._indices: np.ndarray | None = None
        self._sort: tuple[str, bool] = ("", False)
        self._find = self._question("find_pieces", self._on_found, self._on_not_found, opened="folder")
        self._origin = self._question("piece_origin", self._on_origin)
        self._counted = ""
        self.banner = Banner()
        self.search = PieceSearch()
        self.search.changed.connect(self.find_rows)
        self.search.table_chosen.connect(self._show_table)
        self.search.export_requested.connect(self._choose_output)
        self._export = LatestQuestion(
            context.client, "export_vocabulary", self._on_exported, self._on_not_exported, opened="", parent=self
        )
        self.frequency = FrequencyBar(context)
        self.frequency.counted.connect(self._on_counts)
        self.frequency.failed.connect(self._on_failed)
        self._connect_data(self.frequency.data, self.banner)
        self.waiting = WaitingStack(self._content())
        self._open = waiting_question(
            self.waiting,
            context.client,
            "vocabulary",
            self._on_vocabulary,
            opened="",
            failed=NOT_SHOWN,
            stopped=(NOT_SHOWN, tr("Opening the vocabulary was stopped."), tr("Try again")),
            ask_again=self._on_tokenizer,
        )
        self.waiting.show_waiting(LOADING)
        vbox(self.banner, (self.waiting, 1), spacing=10, parent=self)

    def _content(self) -> QWidget:
        card = self._card = VocabularyTable()
        self.table, self.counts = card.table, card.counts
        self.table.row_selected.connect(self._show_row)
        self.table.sort_requested.connect(self._on_sort_requested)
        self.piece, self.convert = PieceCard(), ConvertCard(self._context.client)
        row = hbox((card, 1), self._cards(), spacing=14)
        return holder(vbox(self.search, self.frequency, (row, 1), spacing=10))

    def _cards(self) -> QWidget:
        cards = stack(self.piece, self.convert)
        self.beside, titles = chips((tr("Piece"), tr("Convert")), cards.setCurrentIndex)
        titles.addStretch(1)
        side = holder(vbox(titles, (cards, 1), spacing=8))
        side.setFixedWidth(SIDE_WIDTH)
        return side

    # Opening

    def _on_tokenizer(self) -> None:
        for question in (self._export, self._open, self._find, self._origin):
            question.stop()
        self.frequency.set_about({})
        self._card.show_nothing()
        self._tables, self._indices, self._sort = {}, None, ("", False)
        self.vocabulary, self._counted = None, ""
        self.piece.show_piece(None)
        self.convert.use(self.tokenizer)
        self.banner.clear()
        if not self.tokenizer:
            self.waiting.show_sentence(NOT_SHOWN, tr("Choose a tokenizer above."), tr("Try again"))
            return
        self.waiting.show_waiting(LOADING)
        self._folder = VocabularyFolder()
        self._open.ask(self._about({"tokenizer": self.tokenizer}))

    def _on_vocabulary(self, vocabulary: Vocabulary) -> None:
        folder, self.vocabulary = self._folder, vocabulary
        assert folder is not None
        self._tables = {"pieces": VocabularyRows(folder, "pieces")}
        if vocabulary.merges:
            self._tables["merges"] = VocabularyRows(folder, "merges")
        self.search.offer(vocabulary)
        self.frequency.set_about(self._about({"tokenizer": self.tokenizer}))
        self._show_table()
        if not self._find.open:
            # The helper has then read the vocabulary, and loaded its libraries, when the first search comes.
            self._find.ask(self._about({"search": "a"}))
            self._find.ignore()

    # The table

    def rows(self) -> VocabularyRows:
        """The rows of the current table."""
        return self._tables[self.search.table]

    def _show_table(self) -> None:
        if not self._tables:
            return
        self._sort = ("", False)
        self._card.show_rows(self.rows(), self.search.table)
        self.piece.show_piece(None)
        self.find_rows()

    def _on_sort_requested(self, column: str, descending: bool) -> None:
        self._sort = (column, descending)
        self.find_rows()

    def find_rows(self) -> None:
        """Show the rows that match the search."""
        if not self._tables:
            return
        if self.search.is_all and not self._sort[0]:
            self._find.ignore()
            self._show_indices(None)
            return
        question = {
            "table": self.search.table,
            "search": self.search.search,
            "by": self.search.by,
            "types": self.search.types,
            "sort_by": self._sort[0],
            "descending": self._sort[1],
        }
        self._find.ask(self._about(question))

    def _on_found(self, found: FoundRows) -> None:
        numbers = read_numbers(found.path)
        if self._find.answered["table"] == self.search.table and not self._find.open:
            self.banner.clear()
            self._show_indices(numbers)

    def _on_not_found(self, mistake: ErrorReply) -> None:
        self.banner.show_message("warning", sentence(mistake.message.removeprefix("search: ")))

    def _show_indices(self, indices: np.ndarray | None) -> None:
        if indices is None:
            self.banner.clear()
        self._indices = indices
        self.search.offer_export(self._card.show_indices(indices), self.rows().row_count)
        if self._export.open:  # another export would stop it
            self.search.export.setDisabled(True)
        assert self.vocabulary is not None
        self._card.show_summary(self.vocabulary, self._counted)

    # One piece

    def _show_row(self, row: int) -> None:
        if row < 0 or not self._tables:
            self.piece.show_piece(None)
            return
        pieces = self._tables["pieces"]
        if self.search.table == "merges":
            number = self.rows().value(row, "id")
            row = pieces.row_of_id(number) if number is not None else -1
            if row < 0:
                self.piece.show_piece(None)
                return
        values = {name: pieces.value(row, name) for name in pieces.columns}
        self.piece.show_piece({name: "" if value is None else str(value) for name, value in values.items()})
        self._origin.ask({"tokenizer": self.tokenizer, "id": values["id"]})

    def _on_origin(self, origin: PieceOrigin) -> None:
        if not self._origin.open:
            self.piece.show_origin(origin)

    def _question(
        self,
        query: str,
        on_answer: Callable[[Any], None],
        on_mistake: Callable[[ErrorReply], None] | None = None,
        opened: str = "tokenizer",
    ) -> LatestQuestion:
        return LatestQuestion(
            self._context.client, query, on_answer, on_mistake or self._on_mistake, opened=opened, parent=self
        )

    def _about(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._folder is not None
        return {"folder": str(self._folder.path), **question}

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self._on_failed(mistake.message)

    def _on_failed(self, text: str) -> None:
        self.banner.show_message("error", sentence(text))

    # Frequency and export

    def _on_counts(self, counts: PieceCounts) -> None:
        self._tables["pieces"].set_counts(counts.path)
        self._counted = tr(
            "{count} occur in {name}",
            count=trn("{count} piece", "{count} pieces", counts.used),
            name=self.frequency.data.name,
        )
        self.search.tables.button(0).setChecked(True)
        self._show_table()
        self._card.mark_most_frequent_first()
        self._on_sort_requested(FREQUENCY, descending=True)

    def _choose_output(self, whole: bool) -> None:
        suggested = str(Path.home() / f"{short_title(self.tokenizer)}-{self.search.table}.csv")
        path, _ = QFileDialog.getSaveFileName(self, tr("Export as CSV"), suggested, tr("CSV (*.csv)"))
        if path:
            self.export(path, whole)

    def export(self, path: str, whole: bool) -> None:
        """Write the rows shown, or all, to a CSV file."""
        assert self._folder is not None
        preferences = self._context.preferences
        rows = None if whole or self._indices is None else write_numbers(self._folder, self._indices)
        chosen = {"output": path, "defuse": preferences.csv_defuse, "bom": preferences.csv_bom}
        self.search.export.setDisabled(True)
        self._export.ask(self._about({"table": self.search.table, "rows": rows, **chosen}))

    def _on_exported(self, answer: ExportedFile) -> None:
        self.search.export.setDisabled(False)
        rows = trn("{count} row", "{count} rows", answer.rows)
        self.message.emit("success", tr("Wrote {count} to {path}.", count=rows, path=answer.path))

    def _on_not_exported(self, mistake: ErrorReply) -> None:
        self.search.export.setDisabled(False)
        self.message.emit("error", mistake.message)
