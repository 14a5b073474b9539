"""Owns what is known of a tokenizer's pieces: which are special, unknown or bytes, their merge ranks and log-probabilities."""

import json
import re
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from backend.contract.tokens import TokenPiece

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_KEPT: "WeakKeyDictionary[PreTrainedTokenizerBase, Vocabulary]" = WeakKeyDictionary()


def vocabulary_of(tokenizer: "PreTrainedTokenizerBase") -> "Vocabulary":
    """The same one for the same tokenizer, since a large model takes a second to look through."""
    if tokenizer not in _KEPT:
        _KEPT[tokenizer] = Vocabulary(tokenizer)
    return _KEPT[tokenizer]


class Vocabulary:
    """Facts of pieces, each found when it is first asked for."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self._model: Any = getattr(backend, "model", None)
        # Not the tokenizer itself, which would keep it open for ever.
        added = backend.get_added_tokens_decoder() if backend is not None else tokenizer.added_tokens_decoder
        self.added = {number: token.content for number, token in added.items()}
        self.special = {int(one) for one in tokenizer.all_special_ids} | {n for n, one in added.items() if one.special}
        self.kind = type(self._model).__name__ if self._model is not None else ""
        self.byte_level = backend is not None and "ByteLevel" in _names(
            backend.pre_tokenizer, backend.decoder, backend.normalizer
        )
        self.unknown = self._unknown(tokenizer)

    @property
    def byte_fallback(self) -> bool:
        """Whether characters without a piece become single bytes."""
        return bool(getattr(self._model, "byte_fallback", False))

    @cached_property
    def stored(self) -> dict[str, Any]:
        """The model as JSON values: `vocab`, `merges` …; large."""
        return json.loads(self._model.__getstate__()) if self._model is not None else {}

    @cached_property
    def ranks(self) -> dict[str, int]:
        """Piece → place of the first merge that makes it."""
        if self.kind != "BPE":
            return {}
        suffix = self._model.continuing_subword_prefix or ""
        ranks: dict[str, int] = {}
        for rank, merge in enumerate(self.stored["merges"]):
            left, right = merge if isinstance(merge, list) else merge.split(" ", 1)
            ranks.setdefault(left + right.removeprefix(suffix), rank)
        return ranks

    @cached_property
    def log_probabilities(self) -> list[float]:
        """By id, of Unigram."""
        return [score for _, score in self.stored["vocab"]] if self.kind == "Unigram" else []

    def piece(self, number: int, text: str) -> TokenPiece:
        """What is known of one piece."""
        known = self.log_probabilities
        has_score = 0 <= number < len(known) and number not in self.added
        return TokenPiece(
            id=number,
            piece=text,
            special=number in self.special,
            unknown=number == self.unknown,
            rank=None if number in self.added else self.ranks.get(text),
            log_probability=known[number] if has_score else None,
            bytes="" if number in self.added else (self.bytes_of(text) or b"").hex(),
        )

    def bytes_of(self, piece: str) -> bytes | None:
        """The bytes that a piece of a vocabulary of bytes stands for; None of any other."""
        if match := _BYTE.fullmatch(piece):
            return bytes([int(match.group(1), 16)])
        if not self.byte_level:
            return None
        try:
            return bytes(ALPHABET[sign] for sign in piece)
        except KeyError:
            return None

    def _unknown(self, tokenizer: "PreTrainedTokenizerBase") -> int | None:
        if self._model is None:
            found = tokenizer.unk_token_id
            return found if isinstance(found, int) else None
        if self.kind == "Unigram":
            return self.stored.get("unk_id")
        token = getattr(self._model, "unk_token", None)
        return self._model.token_to_id(token) if token else None


def is_single_byte(piece: str) -> bool:
    """Whether it is a piece of byte fallback."""
    return _BYTE.fullmatch(piece) is not None


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's: printable Latin-1 bytes stand for themselves, the others follow from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{chr(byte): byte for byte in printable}, **{chr(256 + n): byte for n, byte in enumerate(others)}}


ALPHABET = _byte_alphabet()
"""Sign of a byte-level vocabulary → its byte."""


def _names(*steps: Any) -> Iterable[str]:
    for step in steps:
        if type(step).__name__ == "Sequence":
            yield from _names(*step)
        elif step is not None:
            yield type(step).__name__
