"""Which parameters `model.frozen` freezes, by name, before any framework is loaded."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

_LAYER = re.compile(r"\.(\d+)\.")
_EMBEDDING_NAMES = ("wte", "wpe", "shared")


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern of `model.frozen` matches the parameter: its name, or a suffix at a module boundary."""
    parts = name.split(".")
    tails = [".".join(parts[start:]) for start in range(len(parts))]
    return any(fnmatchcase(tail, pattern) or tail.startswith(f"{pattern}.") for tail in tails)


def may_match(name: str, pattern: str) -> bool:
    """The same for a name in a file, which may lack the model's first prefix."""
    return matches(name, pattern) or ("." in pattern and matches(name, pattern.partition(".")[2]))


def frozen_names(names: Iterable[str], patterns: list[str | int]) -> set[str]:
    """The names that `model.frozen` freezes, as far as names can tell."""
    names = list(names)
    has_decoder = any("decoder" in name.split(".") for name in names)
    return {name for name in names if any(_is_meant(name, pattern, has_decoder) for pattern in patterns)}


def _is_meant(name: str, pattern: str | int, has_decoder: bool) -> bool:
    if isinstance(pattern, int):
        layer = _LAYER.search(f".{name}")
        if layer is None:
            return _is_embedding(name)
        return int(layer.group(1)) < pattern and not (has_decoder and "decoder" in name and "encoder" not in name)
    if pattern == "embeddings":
        return _is_embedding(name)
    if pattern == "encoder":
        return not has_decoder or "encoder" in name.split(".")
    return may_match(name, pattern)


def _is_embedding(name: str) -> bool:
    return _LAYER.search(f".{name}") is None and any(
        "emb" in part or part in _EMBEDDING_NAMES for part in name.split(".")
    )
