"""Finds where two texts differ: word by word, or letter by letter in scripts without spaces."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

MAX_WORDS = 3000
"""Limit for either text: comparing takes quadratic time, and longer texts are not read to the end."""
_WORDS = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]|\\s+|\\w+|[^\\w\\s]"
)
"""One sign of a script without spaces, white space, a word, or a mark."""

Part = tuple[str, bool]
"""A piece of text, and whether it is shared with the other text."""


def words_of(text: str) -> list[str]:
    """The text split into words, punctuation and white space; joined they give the text again."""
    return _WORDS.findall(text)


def difference(one: str, other: str) -> tuple[list[Part], list[Part]]:
    """Both texts as shared and differing parts; texts that are too long are one shared part each."""
    words, other_words = words_of(one), words_of(other)
    if max(len(words), len(other_words)) > MAX_WORDS:
        return [(one, True)], [(other, True)]
    opcodes = SequenceMatcher(None, words, other_words, autojunk=False).get_opcodes()
    ours = [("".join(words[a:b]), tag == "equal") for tag, a, b, _, _ in opcodes]
    theirs = [("".join(other_words[c:d]), tag == "equal") for tag, _, _, c, d in opcodes]
    return list(_join(ours)), list(_join(theirs))


def is_comparable(one: str, other: str) -> bool:
    """Whether both are short enough to be compared."""
    return max(len(words_of(one)), len(words_of(other))) <= MAX_WORDS


def _join(parts: list[Part]) -> Iterator[Part]:
    """Merge adjacent parts of one kind; a space between two differing words differs too."""
    kept: list[Part] = []
    for place, (text, shared) in enumerate(parts):
        if not text:
            continue
        between = shared and text.isspace() and 0 < place < len(parts) - 1
        shared = shared and not (between and not parts[place - 1][1] and not parts[place + 1][1])
        if kept and kept[-1][1] == shared:
            kept[-1] = (kept[-1][0] + text, shared)
        else:
            kept.append((text, shared))
    yield from kept
