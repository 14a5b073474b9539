"""Owns the reading of a long text: from memory or from a file, some characters at a time."""

import io

from backend.contract.errors import InputError
from backend.contract.safe_files import open_regular, user_path
from backend.tokenizers.sources import cleaned

MARK = b"\xef\xbb\xbf"


class Text:
    """A text in memory."""

    unit = "characters"
    skip = 0

    def __init__(self, text: str) -> None:
        self.text, self.replaced = cleaned(text)
        self.size = len(self.text)
        self.read_so_far = 0

    def read(self, count: int) -> str:
        """The next characters; an empty text at the end."""
        part = self.text[self.read_so_far : self.read_so_far + count]
        self.read_so_far += len(part)
        return part

    def close(self) -> None:
        """Nothing is open."""


class File:
    """A UTF-8 file as it is, line ends and all, but for a byte order mark."""

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
            raise InputError(f"{path}: {(error.strerror or str(error)).lower()}; check the file") from None
        self._lines = io.TextIOWrapper(self._raw, encoding="utf-8", newline="")

    @property
    def read_so_far(self) -> int:
        """Bytes."""
        return self._raw.tell()

    def read(self, count: int) -> str:
        """The next characters; an empty text at the end. Raises InputError where they are not UTF-8."""
        try:
            return self._lines.read(count)
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self._path}: it is not UTF-8 text (byte {error.start + self.skip} of what was read); convert it first"
            ) from None

    def close(self) -> None:
        """Before the end of the file, too."""
        self._lines.close()
