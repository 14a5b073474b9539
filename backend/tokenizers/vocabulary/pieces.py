"""Facts about a tokenizer's pieces: which are special, unknown or bytes, their ranks and scores, and their text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from backend.contract.tokens.tokens import TokenPiece
from backend.tokenizers import AnyTokenizer
from backend.tokenizers.offsets import is_of_bytes

BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
SPACE_SIGN = "▁"  # U+2581, sentencepiece's

_KEPT: "WeakKeyDictionary[AnyTokenizer, Vocabulary]" = WeakKeyDictionary()


def vocabulary_of(tokenizer: AnyTokenizer) -> "Vocabulary":
    """Cached per tokenizer, because scanning a large model takes a second."""
    if tokenizer not in _KEPT:
        _KEPT[tokenizer] = Vocabulary(tokenizer)
    return _KEPT[tokenizer]


class Vocabulary:
    """Facts about pieces, each computed on first use."""

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self.model: Any = getattr(backend, "model", None)
        # Not the tokenizer itself, which would keep it open for ever.
        added = backend.get_added_tokens_decoder() if backend is not None else tokenizer.added_tokens_decoder
        self.added = {number: token.content for number, token in added.items()}
        self.special = {int(one) for one in tokenizer.all_special_ids} | {n for n, one in added.items() if one.special}
        self.kind = type(self.model).__name__ if self.model is not None else ""
        parts = (backend.pre_tokenizer, backend.decoder, backend.normalizer) if backend is not None else ()
        self.byte_level = any(step.get("type") == "ByteLevel" for one in parts for step in _states(one))
        self._of_bytes = is_of_bytes(tokenizer)
        self.unknown = self._unknown(tokenizer)

    @property
    def byte_fallback(self) -> bool:
        """Whether characters without a piece become single bytes."""
        return bool(getattr(self.model, "byte_fallback", False))

    @cached_property
    def stored(self) -> dict[str, Any]:
        """The model as JSON values, `vocab` and others; large. Merges are in `merges`."""
        return msgspec.json.decode(self.model.__getstate__()) if self.model is not None else {}

    @cached_property
    def merges(self) -> list[tuple[str, str]]:
        """Left and right of each merge of BPE, by rank; before tokenizers 0.20 both are one text with a space."""
        if self.kind != "BPE":
            return []
        merges = self.stored.pop("merges", [])  # kept here alone: a large model has half a million
        pairs = (one.split(" ", 1) if isinstance(one, str) else one for one in merges)
        return [(left, right) for left, right in pairs]

    @cached_property
    def pairs(self) -> dict[tuple[str, str], int]:
        """The BPE merges and their ranks."""
        return {pair: rank for rank, pair in enumerate(self.merges)}

    @cached_property
    def scores(self) -> dict[str, float]:
        """Piece → log-probability, for Unigram."""
        return dict(self.stored["vocab"]) if self.kind == "Unigram" else {}

    @cached_property
    def lowest_score(self) -> float:
        """The log-probability of the rarest piece, for Unigram."""
        return min(self.scores.values(), default=0.0)

    @cached_property
    def longest_piece(self) -> int:
        """The longest piece's characters, for Unigram."""
        return max(map(len, self.scores), default=0)

    @property
    def unknown_piece(self) -> int:
        """The id of the unknown token; −1 if there is none."""
        return -1 if self.unknown is None else self.unknown

    def number(self, piece: str, otherwise: int) -> int:
        """The id of a piece."""
        found = self.model.token_to_id(piece)
        return otherwise if found is None else int(found)

    @cached_property
    def merged(self) -> list[str]:
        """What each merge of BPE makes, by rank."""
        prefix = getattr(self.model, "continuing_subword_prefix", None) or ""
        return [merge_pieces(left, right, prefix) for left, right in self.merges]

    @cached_property
    def ranks(self) -> dict[str, int]:
        """Piece → rank of the first merge that makes it."""
        merged = self.merged
        return dict(zip(reversed(merged), range(len(merged) - 1, -1, -1), strict=True))  # of several the lowest stays

    @cached_property
    def log_probabilities(self) -> list[float]:
        """Log-probabilities by id, for Unigram."""
        return [score for _, score in self.stored["vocab"]] if self.kind == "Unigram" else []

    def piece(self, number: int, text: str) -> TokenPiece:
        """The facts about one piece."""
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
        """The bytes of a piece in a byte vocabulary; None for any other."""
        if match := BYTE_PIECE.fullmatch(piece):
            return bytes([int(match.group(1), 16)])
        if self._of_bytes:
            return bytes([ord(piece)]) if len(piece) == 1 and ord(piece) < 256 else None
        if not self.byte_level:
            return None
        try:
            return bytes(ALPHABET[sign] for sign in piece)
        except KeyError:
            return None

    def _unknown(self, tokenizer: AnyTokenizer) -> int | None:
        if self.model is None:
            found = tokenizer.unk_token_id
            return found if isinstance(found, int) else None
        if self.kind == "Unigram":
            return self.stored.get("unk_id")
        token = getattr(self.model, "unk_token", None)
        return self.model.token_to_id(token) if token else None


def is_single_byte(piece: str) -> bool:
    """Whether it is a byte-fallback piece."""
    return BYTE_PIECE.fullmatch(piece) is not None


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: printable Latin-1 bytes stand for themselves, the others are mapped from U+0100 on
    (https://github.com/openai/gpt-2, encoder.py, bytes_to_unicode)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{chr(byte): byte for byte in printable}, **{chr(256 + n): byte for n, byte in enumerate(others)}}


ALPHABET = _byte_alphabet()
"""Sign of a byte-level vocabulary → its byte."""


@dataclass(frozen=True)
class Writing:
    """How a tokenizer writes its pieces."""

    byte_level: bool = False
    """Each character represents one byte, as in GPT-2."""
    byte_fallback: bool = False
    """`<0x0A>` represents one byte."""
    spaces: tuple[str, ...] = ()
    """Characters that represent a space."""
    prefix: str = ""
    """The prefix of pieces that continue a word (`##`)."""
    suffix: str = ""
    """What a piece ends with that ends a word (`</w>`)."""

    def is_byte(self, piece: str) -> bool:
        """Whether a piece is a single byte."""
        if self.byte_level:
            return len(piece) == 1 and piece in ALPHABET
        return self.byte_fallback and BYTE_PIECE.fullmatch(piece) is not None

    def content(self, piece: str) -> bytes:
        """The bytes of a piece; those of byte-level pieces may be part of a character."""
        if self.byte_level:
            try:
                return piece.translate(_BYTES).encode("latin-1")
            except UnicodeEncodeError:  # a piece from outside the alphabet
                return _utf8(piece)
        if self.byte_fallback and (byte := BYTE_PIECE.fullmatch(piece)):
            return bytes([int(byte[1], 16)])
        if self.prefix and piece.startswith(self.prefix) and piece != self.prefix:
            piece = piece[len(self.prefix) :]
        if self.suffix and piece.endswith(self.suffix):
            piece = f"{piece[: -len(self.suffix)]} "
        for sign in self.spaces:
            piece = piece.replace(sign, " ")
        return _utf8(piece)

    def text(self, piece: str) -> str:
        """What a piece stands for in a text; part of a character is U+FFFD."""
        return self.content(piece).decode("utf-8", "replace")


UNUSED = re.compile(r"[\[<]unused[_ ]?\d+[\]>]", re.IGNORECASE)


def type_of(number: int, piece: str, writing: Writing, known: "Vocabulary") -> str:
    """One of TYPES."""
    if number in known.special:
        return "special"
    if UNUSED.fullmatch(piece):
        return "unused"
    if number in known.added:
        return "added"
    return "byte" if writing.is_byte(piece) else "normal"


def merge_pieces(left: str, right: str, prefix: str) -> str:
    """The result of a BPE merge; `prefix` marks a piece that continues a word, and the right one loses it."""
    return left + right.removeprefix(prefix)


def writing_of(tokenizer: AnyTokenizer, pieces: Sequence[str]) -> Writing:
    """According to its steps, or by `pieces` if it is Python code that does not say."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return _guess_writing(tokenizer, pieces)
    steps = [*_states(backend.decoder), *_states(backend.pre_tokenizer)]
    kinds, model = {step.get("type") for step in steps}, vocabulary_of(tokenizer).stored
    replaced = [_space_character(step) for step in steps]
    prefixes = [step.get("prefix") for step in steps if step.get("type") == "WordPiece"]
    suffixes = [step.get("suffix") for step in steps if step.get("type") == "BPEDecoder"]
    return Writing(
        byte_level="ByteLevel" in kinds,
        byte_fallback=bool(model.get("byte_fallback")) or "ByteFallback" in kinds,
        spaces=tuple(dict.fromkeys(filter(None, replaced))),
        prefix=model.get("continuing_subword_prefix") or next(filter(None, prefixes), ""),
        suffix=model.get("end_of_word_suffix") or next(filter(None, suffixes), ""),
    )


def _guess_writing(tokenizer: AnyTokenizer, pieces: Sequence[str]) -> Writing:
    marked = any(piece.startswith(SPACE_SIGN) for piece in pieces)
    continued = any(piece.startswith("##") and len(piece) > 2 for piece in pieces)
    ended = sum(piece.endswith("</w>") for piece in pieces) > len(pieces) / 10
    return Writing(
        byte_level=type(tokenizer).__name__.startswith(("GPT2", "Roberta", "Bart")),
        byte_fallback=any(BYTE_PIECE.fullmatch(piece) for piece in pieces),
        spaces=(SPACE_SIGN,) if marked else (),
        prefix="##" if continued else "",
        suffix="</w>" if ended else "",
    )


def _states(step: Any) -> Iterator[dict[str, Any]]:
    """A step, or the members of a sequence, as JSON values; not every sequence lets its members out otherwise."""
    try:
        state = msgspec.json.decode(step.__getstate__()) if step is not None else {}
    except (TypeError, AttributeError):  # a step written in Python cannot be looked into
        return
    waiting = [state]
    while waiting:
        one = waiting.pop(0)
        inner = next((one[name] for name in ("decoders", "pretokenizers", "normalizers") if name in one), None)
        if inner is None:
            yield one
        waiting = [*(inner or ()), *waiting]


def _space_character(step: dict[str, Any]) -> str:
    """The character that a step uses for a space."""
    if step.get("type") == "Metaspace":
        return step.get("replacement") or SPACE_SIGN
    pattern = step.get("pattern")
    if step.get("type") == "Replace" and step.get("content") == " " and isinstance(pattern, dict):
        return pattern.get("String") or ""
    return ""


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# What is no sign of the alphabet becomes something that Latin-1 does not have, so that it is noticed.
_BYTES = {ord(sign): byte for sign, byte in ALPHABET.items()} | {
    byte: 0x2581 for byte in range(256) if chr(byte) not in ALPHABET
}
