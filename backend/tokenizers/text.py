"""A text before tokenization: reading, replacing lone surrogates, and the positions of its lines, words and bytes."""

import io
import re

import numpy as np

from backend.contract.errors import InputError
from backend.contract.safe_files import open_regular, user_path

_SURROGATES = re.compile("[\ud800-\udfff]")
REPLACED = "\N{REPLACEMENT CHARACTER}"


def replace_surrogates(text: str) -> tuple[str, int]:
    """The text with every lone surrogate replaced by U+FFFD, which keeps positions, and how many there were."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.subn(REPLACED, text)
    return text, 0


def lines_of(text: str) -> list[str]:
    """The text split at line feeds, as in a file, without line ends; U+2028 and the like stay within a line."""
    lines = text.split("\n")
    return [line.rstrip("\r") for line in (lines if lines[-1] else lines[:-1])]


def words_of(text: str) -> tuple[list[str], np.ndarray]:
    """The words between white space, and where each starts."""
    found = list(re.finditer(r"\S+", text))
    return [one.group() for one in found], np.array([one.start() for one in found], np.int64)


def byte_places(text: str) -> np.ndarray:
    """(characters + 1,) where each character starts in UTF-8, and where the last one ends."""
    if text.isascii():
        return np.arange(len(text) + 1, dtype=np.int64)
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate([[0], np.cumsum(sizes)])


MARK = b"\xef\xbb\xbf"


class Text:
    """A text in memory."""

    unit = "characters"
    skip = 0

    def __init__(self, text: str) -> None:
        self.text, self.replaced = replace_surrogates(text)
        self.size = len(self.text)
        self.read_so_far = 0

    def read(self, count: int) -> str:
        """The next characters; an empty text at the end."""
        part = self.text[self.read_so_far : self.read_so_far + count]
        self.read_so_far += len(part)
        return part

    def close(self) -> None:
        """Nothing to close."""


class File:
    """A UTF-8 file unchanged, including line ends, but without a byte order mark."""

    unit = "bytes"
    text, replaced = "", 0

    def __init__(self, path: str) -> None:
        self._path = user_path(path)
        self.path = str(self._path)
        try:
            self._raw = open_regular(self._path)
            self.size = self._path.stat().st_size
            self.skip = len(MARK) if self._raw.read(len(MARK)) == MARK else 0
            self._raw.seek(self.skip)
        except OSError as error:
            raise InputError(
                "{path}: {strerror}; check the file", path=path, strerror=(error.strerror or str(error)).lower()
            ) from None
        self._lines = io.TextIOWrapper(self._raw, encoding="utf-8", newline="")

    @property
    def read_so_far(self) -> int:
        """Bytes read so far."""
        return self._raw.tell()

    def read(self, count: int) -> str:
        """The next characters; an empty text at the end. Raises InputError if they are not UTF-8."""
        try:
            return self._lines.read(count)
        except UnicodeDecodeError as error:
            raise InputError(
                "{path}: it is not UTF-8 text (byte {start} of the text that was read); convert it first",
                path=self._path,
                start=error.start + self.skip,
            ) from None

    def close(self) -> None:
        """Can be called before the end of the file, too."""
        self._lines.close()
