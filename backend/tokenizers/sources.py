"""Owns what is done to a text before a tokenizer gets it, and the way from its characters to its bytes and words."""

import re

import numpy as np

_SURROGATES = re.compile("[\ud800-\udfff]")
REPLACED = "\N{REPLACEMENT CHARACTER}"


def cleaned(text: str) -> tuple[str, int]:
    """The text with every lone surrogate as U+FFFD, so that places stay, and how many there were."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.subn(REPLACED, text)
    return text, 0


def lines_of(text: str) -> list[str]:
    """What line feeds part, as in a file, without the ends of lines; U+2028 and the like stay within a line."""
    lines = text.split("\n")
    return [line.rstrip("\r") for line in (lines if lines[-1] else lines[:-1])]


def words_of(text: str) -> tuple[list[str], np.ndarray]:
    """What white space parts, and where each word begins."""
    found = list(re.finditer(r"\S+", text))
    return [one.group() for one in found], np.array([one.start() for one in found], np.int64)


def byte_places(text: str) -> np.ndarray:
    """(characters + 1,) where each character begins in UTF-8, and where the last one ends."""
    if text.isascii():
        return np.arange(len(text) + 1, dtype=np.int64)
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate([[0], np.cumsum(sizes)])
