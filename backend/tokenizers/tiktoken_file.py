"""Opens a tiktoken file: one line per piece, with its bytes in base64 and its rank."""

import base64
import binascii
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import open_regular
from backend.tokenizers.vocabulary.pieces import ALPHABET

_SIGNS = {byte: sign for sign, byte in ALPHABET.items()}
_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
_PATTERNS = {50_256: ("GPT-2's", _GPT2), 50_280: ("GPT-2's", _GPT2), 199_998: ("o200k's", _O200K)}
"""By the number of pieces; every other file is taken for one like cl100k (openai/tiktoken, `tiktoken_ext/openai_public.py`)."""


def is_one(path: Path) -> bool:
    """Whether the file starts as tiktoken files do."""
    with open_regular(path) as file:
        parts = file.readline(4096).split()
    try:
        return len(parts) == 2 and parts[1].isdigit() and len(base64.b64decode(parts[0], validate=True)) > 0
    except binascii.Error:
        return False


def tokenizer(path: Path) -> tuple[Tokenizer, str]:
    """The tokenizer, and a sentence on what the file does not contain. Raises InputError."""
    ranks = _ranks(path)
    name, pattern = _PATTERNS.get(len(ranks), ("cl100k's", _CL100K))
    vocabulary = {_as_signs(piece): rank for piece, rank in ranks.items()}
    merges = [(_as_signs(left), _as_signs(right)) for left, right in _merges(ranks)]
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder, made.post_processor = decoders.ByteLevel(), processors.ByteLevel(trim_offsets=False)
    return made, (
        message(
            "A tiktoken file contains only pieces: words are split by {name} rule, based on the "
            "number of pieces, and there are no special tokens.",
            name=name,
        )
    )


def _ranks(path: Path) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        parts = line.split()
        if not parts:
            continue
        try:
            piece, rank = base64.b64decode(parts[0], validate=True), int(parts[1])
        except (ValueError, IndexError):
            raise InputError(
                "{path}:{number}: this is not a line of a tiktoken file (base64 and a number); download the file again",
                "model.tokenizer",
                path=path,
                number=number,
            ) from None
        ranks[piece] = rank
    missing = 256 - sum(bytes([byte]) in ranks for byte in range(256))
    if missing:
        raise InputError(
            "{path}: {missing} of the 256 bytes have no piece, so the file is truncated; download it again",
            "model.tokenizer",
            path=path,
            missing=missing,
        )
    return ranks


def _merges(ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The pair that makes each piece: the result of byte-pair encoding with only lower ranks."""
    ordered = sorted((rank, piece) for piece, rank in ranks.items() if len(piece) > 1)
    found = []
    for rank, piece in ordered:
        parts = _parts(piece, ranks, rank)
        if len(parts) == 2:
            found.append((parts[0], parts[1]))
    return found


def _parts(piece: bytes, ranks: dict[bytes, int], below: int) -> list[bytes]:
    parts = [piece[place : place + 1] for place in range(len(piece))]
    while len(parts) > 2:
        best, at = below, -1
        for place in range(len(parts) - 1):
            rank = ranks.get(parts[place] + parts[place + 1], below)
            if rank < best:
                best, at = rank, place
        if at < 0:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def _as_signs(piece: bytes) -> str:
    return "".join(_SIGNS[byte] for byte in piece)
