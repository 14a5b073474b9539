"""What a folder's tokenizer files contain, and whether it is safe to open them, without opening the tokenizer."""

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.models.model_files import parse_table, read_small, read_table_if_sound
from backend.models.weights import is_pointer

_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json")
_OPAQUE = ("*.model", "*.tiktoken", "*.bpe", "tekken.json")
_WITHOUT_FILES = {"ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer"}


@dataclass(frozen=True)
class TokenizerFiles:
    """A folder's tokenizer. `tokens` is 0 if unknown."""

    kind: str = ""
    tokens: int = 0
    problem: str = ""
    """Why it cannot be used, with the way out; empty where it can."""


def read_tokenizer(folder: Path) -> TokenizerFiles:
    """Read the folder's tokenizer files."""
    kind = str(_read(folder / "tokenizer_config.json").get("tokenizer_class") or "")
    pointer = next((name for name in _VOCABULARIES if (folder / name).is_file() and is_pointer(folder / name)), None)
    if pointer:
        problem = message(
            "{folder} is a Git LFS pointer; run `git lfs pull` in {folder_2}", folder=folder / pointer, folder_2=folder
        )
        return TokenizerFiles(kind, problem=problem)
    try:
        tokens = _count(folder)
    except InputError as error:
        return TokenizerFiles(kind, problem=str(error))
    opaque = any(next(folder.glob(pattern), None) for pattern in _OPAQUE)
    if opaque or kind in _WITHOUT_FILES or any((folder / name).is_file() for name in _VOCABULARIES):
        return TokenizerFiles(kind or "tokenizer", tokens)
    problem = message(
        "{folder} has no tokenizer; add its tokenizer.json, or set model.tokenizer to another one", folder=folder
    )
    return TokenizerFiles(problem=problem)


def end_token(folder: Path) -> str:
    """The text of the token that ends a sequence; empty if the folder names none."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        found = _read(folder / name).get("eos_token")
        text = found.get("content") if isinstance(found, dict) else found
        if isinstance(text, str) and text:
            return text
    return ""


_COUNTED: dict[bytes, int | None] = {}
"""Tokens by the hash of a tokenizer.json, None if it is empty: to parse a vocabulary takes ten times as long as to hash it."""


def _count(folder: Path) -> int:
    """The number of tokens. Raises InputError if its file is damaged."""
    path = folder / "tokenizer.json"
    content = read_small(path)
    if content is not None:
        key = hashlib.sha256(content).digest()
        if key not in _COUNTED:
            stored = parse_table(content, path)
            _COUNTED[key] = _count_stored(stored) if stored else None
        if (count := _COUNTED[key]) is not None:
            return count
    if (folder / "vocab.txt").is_file():
        with (folder / "vocab.txt").open("rb") as file:
            return sum(1 for _ in file)
    return len(_read(folder / "vocab.json"))


def _count_stored(stored: dict[str, Any]) -> int:
    model, added = stored.get("model"), stored.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else range(len(vocabulary or ()))
    more = [token.get("id") for token in added if isinstance(token, dict)] if isinstance(added, list) else []
    found = [*ids, *more]
    if set(map(type, found)) != {int}:  # looked at one by one only in a damaged file: a vocabulary is long
        found = [one for one in found if isinstance(one, int)]
    return max(found, default=-1) + 1


def _read(path: Path) -> dict[str, Any]:
    return read_table_if_sound(path)


MAX_STEPS = 1_000
"""Of a normaliser, pre-tokenizer, decoder or post-processor; real ones have twenty."""
MAX_GROWTH = 4_096
"""Characters that one character of a text may become; NFKC makes 18 of the longest ligature."""
MAX_ADDED = 100_000
"""Characters or tokens that are put around every text."""
PARTS = ("normalizer", "pre_tokenizer", "decoder", "post_processor")
_LISTS = ("normalizers", "pretokenizers", "decoders", "processors")
_BYTES_OF_SIGN = 4
_MAY_BE_EMPTY = re.compile(r"\(\?|[\^$*{|]|\?|\\[bBAzZGKyY]")
"""In a regular expression: what may match between two characters, so that a replacement is put in beside them."""


def problem_of(tokenizer: Any, *, is_whole: bool = True) -> str:
    """Why it is not safe to open a tokenizer.json; empty if nothing is wrong.

    The tokenizers library trusts its file: it allocates any stated length, looks up any name and expands texts as
    often as it says. A failed allocation ends the process, and an endless loop cannot be stopped. The other
    files beside it (not `is_whole`) only have to be JSON objects.
    """
    if not isinstance(tokenizer, dict):
        return message("it is not a JSON object")
    if is_whole and not isinstance(tokenizer.get("model"), dict):
        return message("it has no model")
    for part in PARTS if is_whole else ():
        steps = _flatten(tokenizer.get(part))
        if steps is None:
            return message(
                "its {part} is not a table of steps, or has more than {max_steps:,}", part=part, max_steps=MAX_STEPS
            )
        if problem := next(filter(None, map(_problem_of_step, steps)), ""):
            return message("its {part} {problem}", part=part, problem=problem)
        if part == "post_processor":
            problem = _problem_of_templates([step for step in steps if "single" in step])
        else:
            problem = _problem_of_growth(steps)
        if problem:
            return message("its {part} {problem}", part=part, problem=problem)
    return ""


def problem_of_charsmap(charsmap: bytes) -> str:
    """Why the compiled table of a normaliser is invalid: it must be a 4-byte trie size, the trie, then texts."""
    size = int.from_bytes(charsmap[:4], "little")
    if len(charsmap) < 8 or not 0 < size <= len(charsmap) - 4 or size % 4:
        return message("has a damaged table (precompiled_charsmap)")
    return ""


def _flatten(step: Any) -> list[dict[str, Any]] | None:
    """The steps in order, with nested sequences flattened; None if they are not valid steps."""
    found: list[dict[str, Any]] = []
    waiting = [] if step is None else [step]
    while waiting:
        step = waiting.pop()
        if not isinstance(step, dict) or len(found) + len(waiting) > MAX_STEPS:
            return None
        inner = [step[name] for name in _LISTS if name in step]
        if any(not isinstance(steps, list) for steps in inner):
            return None
        waiting += reversed(list(chain(*inner)))
        found.append(step)
    return found


def _problem_of_step(step: dict[str, Any]) -> str:
    if "precompiled_charsmap" in step:
        return problem_of_charsmap(_charsmap(step))
    if step.get("type") == "FixedLength" and not step.get("length", 1):
        return message("splits a text after every 0 characters")
    if "pattern" in step and not isinstance(step["pattern"], dict | str):
        return message("has an invalid pattern")
    return ""


def _charsmap(step: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(step["precompiled_charsmap"], validate=True)
    except (TypeError, ValueError, binascii.Error):
        return b""


# How long a text becomes


def _problem_of_growth(steps: list[dict[str, Any]]) -> str:
    """Compute, from the last step to the first, an upper bound on what each character expands to."""
    other, costs = 1.0, dict[str, float]()

    def cost(text: Any) -> float:
        return math.fsum(costs.get(sign, other) for sign in text) if isinstance(text, str) else 0.0

    for step in reversed(steps):
        if "prepend" in step and cost(step["prepend"]) > MAX_ADDED:
            return message("adds more than {max_added:,} characters before a text", max_added=MAX_ADDED)
        if "pattern" in step and "content" in step:
            pattern, added = step["pattern"], cost(step["content"])
            plain = pattern.get("String") if isinstance(pattern, dict) else pattern
            if isinstance(plain, str) and plain:
                costs |= {sign: max(cost(sign), added / len(plain)) for sign in plain}
            else:
                most = max([other, *costs.values()])
                regex = str(pattern.get("Regex", "")) if isinstance(pattern, dict) else ""
                beside = not regex or _MAY_BE_EMPTY.search(regex)
                other, costs = (most + added if beside else max(most, added)), {}
        elif not any(name in step for name in _LISTS):
            other, costs = max([other, *costs.values()]) * _factor(step), {}
        if max([other, *costs.values()]) > MAX_GROWTH:
            return message("may turn one character into more than {max_growth:,}", max_growth=MAX_GROWTH)
    return ""


def _factor(step: dict[str, Any]) -> float:
    if step.get("type") == "ByteLevel":
        return _BYTES_OF_SIGN
    if "precompiled_charsmap" in step:
        charsmap = _charsmap(step)
        texts = charsmap[4 + int.from_bytes(charsmap[:4], "little") :]
        return max(1, *(len(text.decode("utf-8", "replace")) for text in texts.split(b"\0")))
    return 1


def _problem_of_templates(templates: list[dict[str, Any]]) -> str:
    copies = 1
    for template in templates:
        special = template.get("special_tokens")
        known = special if isinstance(special, dict) else {}
        for name in ("single", "pair"):
            pieces = template.get(name) or []
            if not isinstance(pieces, list) or len(pieces) > MAX_STEPS:
                return message("has a template with more than {max_steps:,} parts", max_steps=MAX_STEPS)
            if (missing := next((one for one in _special(pieces) if one not in known), None)) is not None:
                return message("refers to the token {missing}, which it does not define", missing=repr(missing[:80]))
        copies *= max(1, sum("Sequence" in piece for piece in template.get("single") or [] if isinstance(piece, dict)))
        added = sum(len(one.get("ids") or ()) for one in known.values() if isinstance(one, dict))
        if copies > MAX_GROWTH or added > MAX_ADDED:
            return message(
                "repeats a text more than {max_growth:,} times, or adds more than {max_added:,} tokens to it",
                max_growth=MAX_GROWTH,
                max_added=MAX_ADDED,
            )
    return ""


def _special(pieces: list[Any]) -> Iterator[str]:
    for piece in pieces:
        token = piece.get("SpecialToken") if isinstance(piece, dict) else None
        if isinstance(token, dict) and isinstance(token.get("id"), str):
            yield token["id"]
