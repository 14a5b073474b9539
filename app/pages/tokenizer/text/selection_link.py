"""Owns that what is chosen among the tokens is chosen in the text too, and the other way round, and told in full."""

import numpy as np

from app.core.i18n import tr
from app.pages.tokenizer.text.text_input import TextInput
from app.pages.tokenizer.text.token_card import TokenCard
from app.pages.tokenizer.text.tokens_card import TokensCard


class SelectionLink:
    """Connects the editor, the tokens and the card about one token."""

    def __init__(self, source: TextInput, tokens: TokensCard, token: TokenCard) -> None:
        self._source, self._tokens, self._token = source, tokens, token
        self._view = tokens.view
        source.selected.connect(self._on_text_selected)
        self._view.token_hovered.connect(self._on_hovered)
        self._view.token_selected.connect(self._on_token)
        self._view.selection_changed.connect(self._on_tokens_selected)

    def _on_hovered(self, index: int) -> None:
        self._on_token(index if index >= 0 else self._view.current())

    def _on_token(self, index: int) -> None:
        table = self._tokens.table
        if not 0 <= index < len(table):
            self._token.show_nothing()
            return
        self._token.show_token(table, index)
        spoken = tr(
            "Token {first}: {shown_text}, id {id}",
            first=table.first + index + 1,
            shown_text=self._view.shown_text(index),
            id=table.piece(index).id,
        )
        self._view.setAccessibleDescription(spoken)

    def _on_tokens_selected(self, first: int, last: int) -> None:
        table = self._tokens.table
        if first == last or last > len(table):
            return
        sequence = int(table.columns["sequence"][self._view.current()])
        own = np.flatnonzero(table.columns["sequence"][first:last] == sequence) + first
        if sequence >= 0 and len(own):
            begin, end = int(table.columns["start"][own].min()), int(table.columns["end"][own].max())
            self._source.show_selection(sequence, table.begin + begin, table.begin + end)

    def _on_text_selected(self, sequence: int, begin: int, end: int) -> None:
        table = self._tokens.table
        if not len(table):
            return
        columns, begin, end = table.columns, begin - table.begin, end - table.begin
        within = (columns["sequence"] == sequence) & (columns["start"] < end) & (columns["end"] > begin)
        found = np.flatnonzero(within)
        if begin == end or not len(found):
            self._view.select(0, 0)
            return
        found = found[columns["window"][found] == columns["window"][found[0]]]
        self._view.select(int(found[0]), int(found[-1]) + 1)
        self._on_token(int(found[0]))
