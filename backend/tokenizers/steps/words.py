"""Owns how the model of a tokenizer cut each word, by its kind."""

from typing import TYPE_CHECKING, Any

import msgspec

from backend.contract.tokens.steps import Choice, WordTrace
from backend.tokenizers.steps import bpe, unigram

if TYPE_CHECKING:
    from backend.tokenizers.vocabulary import Vocabulary


def trace(word: str, start: int, end: int, known: "Vocabulary") -> WordTrace:
    """How the word was cut; the pieces are always the library's own."""
    told = _KINDS.get(known.kind, _whole)(word, start, end, known)
    tokens = known.model.tokenize(word)
    pieces, ids = [token.value for token in tokens], [token.id for token in tokens]
    if told.ids == ids:
        return msgspec.structs.replace(told, pieces=pieces)
    # Dropout draws anew each time, and equal sums may be told apart otherwise.
    return WordTrace(
        word=word, start=start, end=end, pieces=pieces, ids=ids,
        sentence="How these pieces were chosen cannot be told: the model draws by chance, or several ways are equally good.",
    )  # fmt: skip


def _word_piece(word: str, start: int, end: int, known: "Vocabulary") -> WordTrace:
    """The longest piece at each place; the whole word is unknown where there is none."""
    vocabulary, model = known.stored["vocab"], known.model
    unknown = vocabulary.get(model.unk_token, -1)
    base: dict[str, Any] = {"word": word, "start": start, "end": end}
    if len(word) > model.max_input_chars_per_word:
        why = f"The word is longer than {model.max_input_chars_per_word} characters, so it becomes {model.unk_token}."
        return WordTrace(**base, pieces=[model.unk_token], ids=[unknown], sentence=why)
    choices: list[Choice] = []
    place = 0
    while place < len(word):
        prefix = model.continuing_subword_prefix if place else ""
        stop = next((stop for stop in range(len(word), place, -1) if prefix + word[place:stop] in vocabulary), None)
        if stop is None:
            rest = word[place:] if len(word) - place <= 20 else word[place : place + 20] + "…"
            why = f"No piece fits the beginning of {prefix}{rest}, so the whole word becomes {model.unk_token}."
            given_up = [msgspec.structs.replace(one, taken=False) for one in choices]
            return WordTrace(**base, pieces=[model.unk_token], ids=[unknown], choices=given_up, sentence=why)
        choices.append(Choice(prefix + word[place:stop], place, stop, taken=True))
        place = stop
    pieces = [one.piece for one in choices]
    why = "The whole word is a piece of the vocabulary." if len(pieces) == 1 else ""
    return WordTrace(**base, pieces=pieces, ids=[vocabulary[one] for one in pieces], choices=choices, sentence=why)


def _whole(word: str, start: int, end: int, known: "Vocabulary") -> WordTrace:
    tokens = known.model.tokenize(word)
    there = "is" if word in [token.value for token in tokens] else "is not"
    return WordTrace(
        word=word, start=start, end=end, pieces=[token.value for token in tokens], ids=[token.id for token in tokens],
        sentence=f"The whole word {there} in the vocabulary; this model knows no parts of words.",
    )  # fmt: skip


_KINDS = {"BPE": bpe.trace, "Unigram": unigram.trace, "WordPiece": _word_piece}
