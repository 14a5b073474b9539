"""Searches and sorts runs, for the window and the terminal."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")


def matches(words: str, texts: Iterable[str], tags: Sequence[str]) -> bool:
    """Whether every word occurs in some text or tag, ignoring case; `#word` matches the start of a tag."""
    folded_tags = [tag.casefold() for tag in tags]
    folded = [*(text.casefold() for text in texts), *folded_tags]
    return all(
        any(tag.startswith(word[1:]) for tag in folded_tags)
        if word.startswith("#")
        else any(word in text for text in folded)
        for word in words.casefold().split()
    )


def sort_items(items: Iterable[Item], value: Callable[[Item], Any], *, descending: bool) -> list[Item]:
    """Items sorted by a value; those without one (None, empty, not a number) always come last, ties keep order."""
    valued = [(value(item), item) for item in items]
    known = [pair for pair in valued if not _is_absent(pair[0])]
    known.sort(key=lambda pair: pair[0], reverse=descending)
    return [item for _, item in (*known, *(pair for pair in valued if _is_absent(pair[0])))]


def _is_absent(value: Any) -> bool:
    return value in (None, "", ()) or (isinstance(value, float) and math.isnan(value))
