"""Tokens as numpy columns, and the answer's table: the pieces that occur, bytes, and counts collected on the way."""

from dataclasses import dataclass, fields

import msgspec
import numpy as np

from backend.contract.tokens.tokens import TokenColumns, TokenPiece, Tokens, TokenTotals
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.offsets import byte_spans, is_partial
from backend.tokenizers.text import byte_places
from backend.tokenizers.vocabulary.pieces import Vocabulary, is_single_byte, vocabulary_of

NOWHERE = -1
"""Of no text, of no word."""


@dataclass(frozen=True)
class Columns:
    """Tokens; `start` and `end` are characters of the text that `sequence` names, 0 if it names none."""

    ids: np.ndarray
    sequence: np.ndarray
    start: np.ndarray
    end: np.ndarray
    word: np.ndarray
    type: np.ndarray
    mask: np.ndarray
    window: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, first: int, last: int) -> "Columns":
        """Those from `first` to before `last`."""
        return Columns(*(getattr(self, one.name)[first:last] for one in fields(Columns)))


def join_columns(parts: list[Columns]) -> Columns:
    """Concatenate columns."""
    if len(parts) == 1:
        return parts[0]
    return Columns(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Columns)))


Arrays = dict[str, np.ndarray]
"""Columns by the names of `TokenColumns`."""


@dataclass(frozen=True)
class Table:
    """The answer's tokens: `columns`, and everything else."""

    columns: Arrays
    rest: Tokens

    def answer(self) -> Tokens:
        """Everything in one value."""
        lists = {name: values.tolist() for name, values in self.columns.items()}
        return msgspec.structs.replace(self.rest, columns=TokenColumns(**lists))


class Tables:
    """Turns columns into answers, one block of text after another."""

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: Vocabulary = vocabulary_of(tokenizer)
        self._places = np.full(1, NOWHERE, np.int32)
        self.pieces: list[TokenPiece] = []
        self.counts = TokenTotals()

    def arrays(self, columns: Columns, sources: list[str]) -> Arrays:
        """The arrays of tokens whose offsets point into `sources`."""
        which = self._of_pieces(columns.ids)
        sizes = np.array([len(one.bytes) // 2 if one.bytes else NOWHERE for one in self.pieces], np.int64)
        unknown = np.array([one.unknown for one in self.pieces], bool)
        single = np.array([is_single_byte(one.piece) for one in self.pieces], bool)
        spans, cut = np.zeros((len(columns), 2), np.int64), np.zeros(len(columns), bool)
        for number, source in enumerate(sources):
            positions = np.flatnonzero((columns.sequence == number) & (columns.mask == 1))
            place, window = byte_places(source), columns.window[positions]
            first = np.append(True, window[1:] != window[:-1])[: len(positions)]
            begin, end = byte_spans(
                columns.start[positions], columns.end[positions], sizes[which[positions]], place, first
            )
            spans[positions, 0], spans[positions, 1] = begin, end
            cut[positions] = is_partial(begin, end, place)
        of_text = columns.sequence != NOWHERE
        padding = int((columns.mask == 0).sum())
        self.counts += TokenTotals(
            tokens=len(columns) - padding,
            padding=padding,
            unknown=self._unknown(columns, np.flatnonzero(unknown[which] & of_text), which, sources),
            partial=int(cut.sum()),
            byte_fallback=int((single[which] & of_text).sum()),
            windows=int(columns.window.max(initial=0)) + 1,
        )
        return {
            "piece": which.astype(np.int32),
            "sequence": columns.sequence.astype(np.int8),
            "start": columns.start.astype(np.int32),
            "end": columns.end.astype(np.int32),
            "byte_start": spans[:, 0].astype(np.int32),
            "byte_end": spans[:, 1].astype(np.int32),
            "partial": cut.astype(np.uint8),
            "word": columns.word.astype(np.int32),
            "type": columns.type.astype(np.int32),
            "mask": columns.mask.astype(np.int8),
            "window": columns.window.astype(np.int32),
        }

    def finish(self, rest: Tokens) -> Tokens:
        """Complete `rest` with the pieces and counts of all blocks."""
        return msgspec.structs.replace(rest, pieces=self.pieces, **msgspec.structs.asdict(self.counts))

    def _of_pieces(self, ids: np.ndarray) -> np.ndarray:
        """The index of each id in `pieces`; new ones are added in id order."""
        highest = int(ids.max(initial=0))
        if highest >= len(self._places):
            self._places = np.pad(self._places, (0, highest + 1 - len(self._places)), constant_values=NOWHERE)
        new = np.unique(ids[self._places[ids] == NOWHERE])
        self._places[new] = np.arange(len(self.pieces), len(self.pieces) + len(new))
        numbers = new.tolist()
        texts = self._tokenizer.convert_ids_to_tokens(numbers)
        self.pieces += [
            self._known.piece(number, "" if text is None else str(text))
            for number, text in zip(numbers, texts, strict=True)
        ]
        return self._places[ids]

    def _unknown(self, columns: Columns, places: np.ndarray, which: np.ndarray, sources: list[str]) -> int:
        """The number of unknown tokens, not counting a literal `[UNK]` in the text."""
        sizes = columns.end[places] - columns.start[places]
        lengths = np.array([len(one.piece) for one in self.pieces], np.int64)[which[places]]
        written = sum(
            sources[columns.sequence[place]][columns.start[place] : columns.end[place]]
            == self.pieces[which[place]].piece
            for place in places[sizes == lengths]
        )
        return len(places) - written
