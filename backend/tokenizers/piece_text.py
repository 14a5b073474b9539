"""Owns what a piece of a vocabulary stands for in a text: its bytes, whichever way the tokenizer writes them down."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
SPACE_SIGN = "▁"  # U+2581, sentencepiece's


@dataclass(frozen=True)
class Writing:
    """How a tokenizer writes its pieces."""

    byte_level: bool = False
    """Every sign stands for one byte, as GPT-2 has it."""
    byte_fallback: bool = False
    """`<0x0A>` stands for one byte."""
    spaces: tuple[str, ...] = ()
    """Signs that stand for a space."""
    prefix: str = ""
    """What a piece begins with that goes on a word (`##`)."""
    suffix: str = ""
    """What a piece ends with that ends a word (`</w>`)."""

    def is_byte(self, piece: str) -> bool:
        """Whether a piece stands for one byte by itself."""
        if self.byte_level:
            return len(piece) == 1 and piece in _BYTE_OF
        return self.byte_fallback and BYTE_PIECE.fullmatch(piece) is not None

    def content(self, piece: str) -> bytes:
        """The bytes that a piece stands for; those of byte-level pieces may be a part of a character."""
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


def merged(left: str, right: str, prefix: str) -> str:
    """What a merge of BPE makes; `prefix` is what a piece bears that goes on a word, which the right one loses."""
    return left + right.removeprefix(prefix)


def writing_of(values: dict[str, Any]) -> Writing:
    """As a `tokenizer.json` says it."""
    steps = [*_steps(values.get("decoder")), *_steps(values.get("pre_tokenizer"))]
    kinds = {step.get("type") for step in steps}
    model = values.get("model") or {}
    replaced = [_replaced(step) for step in steps]
    prefixes = [step.get("prefix") for step in steps if step.get("type") == "WordPiece"]
    suffixes = [step.get("suffix") for step in steps if step.get("type") == "BPEDecoder"]
    return Writing(
        byte_level="ByteLevel" in kinds,
        byte_fallback=bool(model.get("byte_fallback")) or "ByteFallback" in kinds,
        spaces=tuple(dict.fromkeys(filter(None, replaced))),
        prefix=model.get("continuing_subword_prefix") or next(filter(None, prefixes), ""),
        suffix=model.get("end_of_word_suffix") or next(filter(None, suffixes), ""),
    )


def writing_by_pieces(tokenizer: "PreTrainedTokenizerBase", pieces: Iterable[str]) -> Writing:
    """A guess, where the tokenizer is Python code that does not tell."""
    some = list(pieces)
    marked = any(piece.startswith(SPACE_SIGN) for piece in some)
    continued = any(piece.startswith("##") and len(piece) > 2 for piece in some)
    ended = sum(piece.endswith("</w>") for piece in some) > len(some) / 10
    return Writing(
        byte_level=type(tokenizer).__name__.startswith(("GPT2", "Roberta", "Bart")),
        byte_fallback=any(BYTE_PIECE.fullmatch(piece) for piece in some),
        spaces=(SPACE_SIGN,) if marked else (),
        prefix="##" if continued else "",
        suffix="</w>" if ended else "",
    )


def _steps(step: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(step, dict):
        return
    inner = next((step[name] for name in ("decoders", "pretokenizers") if isinstance(step.get(name), list)), None)
    if inner is None:
        yield step
    for each in inner or ():
        yield from _steps(each)


def _replaced(step: dict[str, Any]) -> str:
    """The sign that a step takes for a space."""
    if step.get("type") == "Metaspace":
        return step.get("replacement") or SPACE_SIGN
    pattern = step.get("pattern")
    if step.get("type") == "Replace" and step.get("content") == " " and isinstance(pattern, dict):
        return pattern.get("String") or ""
    return ""


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _alphabet() -> dict[str, int]:
    """Sign → byte of byte-level pieces: printable Latin-1 stands for itself, the rest follows from U+0100 on
    (https://github.com/openai/gpt-2, encoder.py, bytes_to_unicode)."""
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + place): byte for place, byte in enumerate(rest)}


_BYTE_OF = _alphabet()
# What is no sign of the alphabet becomes something that Latin-1 does not have, so that it is noticed.
_BYTES = {ord(sign): byte for sign, byte in _BYTE_OF.items()} | {
    byte: 0x2581 for byte in range(256) if chr(byte) not in _BYTE_OF
}
Content = Callable[[str], bytes]
