"""Owns what can be said of a folder's tokenizer without opening it: whether there is one and how many tokens it has."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.models.model_files import read_table, read_table_if_sound
from backend.models.weights import is_pointer

_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json")
_OPAQUE = ("*.model", "*.tiktoken", "*.bpe", "tekken.json")
_WITHOUT_FILES = {"ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer"}


@dataclass(frozen=True)
class TokenizerFiles:
    """A folder's tokenizer. `tokens` is 0 where the files do not tell."""

    kind: str = ""
    tokens: int = 0
    problem: str = ""
    """Why it cannot be used, with the way out; empty where it can."""


def read_tokenizer(folder: Path) -> TokenizerFiles:
    """What the folder's tokenizer files say."""
    kind = str(_read(folder / "tokenizer_config.json").get("tokenizer_class") or "")
    pointer = next((name for name in _VOCABULARIES if (folder / name).is_file() and is_pointer(folder / name)), None)
    if pointer:
        problem = f"{folder / pointer} is a Git LFS pointer; run `git lfs pull` in {folder}"
        return TokenizerFiles(kind, problem=problem)
    try:
        tokens = _count(folder)
    except InputError as error:
        return TokenizerFiles(kind, problem=str(error))
    opaque = any(next(folder.glob(pattern), None) for pattern in _OPAQUE)
    if opaque or kind in _WITHOUT_FILES or any((folder / name).is_file() for name in _VOCABULARIES):
        return TokenizerFiles(kind or "tokenizer", tokens)
    problem = f"{folder} holds no tokenizer; add its tokenizer.json, or name another in model.tokenizer"
    return TokenizerFiles(problem=problem)


def end_token(folder: Path) -> str:
    """The text of the token that ends a sequence; empty where the folder names none."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        found = _read(folder / name).get("eos_token")
        text = found.get("content") if isinstance(found, dict) else found
        if isinstance(text, str) and text:
            return text
    return ""


def _count(folder: Path) -> int:
    """Raises InputError where the file that says it is damaged."""
    stored = read_table(folder / "tokenizer.json")
    if stored:
        model, added = stored.get("model"), stored.get("added_tokens")
        vocabulary = model.get("vocab") if isinstance(model, dict) else None
        ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else range(len(vocabulary or ()))
        more = [token.get("id") for token in added if isinstance(token, dict)] if isinstance(added, list) else []
        return max((one for one in [*ids, *more] if isinstance(one, int)), default=-1) + 1
    if (folder / "vocab.txt").is_file():
        with (folder / "vocab.txt").open("rb") as file:
            return sum(1 for _ in file)
    return len(_read(folder / "vocab.json"))


def _read(path: Path) -> dict[str, Any]:
    return read_table_if_sound(path)
