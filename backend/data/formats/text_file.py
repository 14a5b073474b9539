"""Reads text files as lines: detects the encoding, and explains in one sentence if the bytes do not match it."""

import codecs
import io
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from backend.contract.errors import Fix, InputError
from backend.contract.messages import join, message
from backend.contract.safe_files import LONGEST_LINE
from backend.data.formats.compression import first_bytes, open_unpacked

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # starts like UTF-16's mark, so it is checked first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BLOCK = 1 << 16
_LOOKED_AT = 1 << 12
_NO_TEXT = {chr(code) for code in (*range(1, 9), *range(14, 32), 127)} - {"\x1b"}
_KINDS, _SHARE = 6, 0.02
"""Different control characters, and their share, that no text has: a file may be cut at one or two of them."""
WINDOWS = "windows-1252"
"""The encoding of Western European text that is not UTF-8; it includes the letters of Latin-1."""
_PREVIEW_LINES, _PREVIEW_CHARACTERS = 4, 100
ASCII, UTF_8 = "ASCII", "UTF-8"
_FEW = 3
"""Files that are named; of more the rest is counted."""


class UndecodableError(InputError):
    """Bytes that are invalid in a text file's encoding."""


class TextFile:
    """A text file, compressed or not, with a known encoding: as requested, by its byte order mark, or UTF-8."""

    def __init__(self, path: Path, encoding: str = "auto") -> None:
        self.path = path
        self.name = path.name
        self.encoding = _encoding_of_mark(path) if encoding == "auto" else _tolerant_encoding(encoding)
        if self.encoding in {"utf-16", "utf-32"} and _encoding_of_mark(path) != self.encoding:
            raise InputError(
                "{name} has no byte order mark for {encoding}; set data.encoding: {encoding_2}-le (or -be), or auto",
                name=path.name,
                encoding=self.encoding.upper(),
                encoding_2=self.encoding,
            )
        self._binary: BinaryIO | None = None
        self._walked = 0

    @property
    def position(self) -> int:
        """Bytes read from the file by the current or last iteration over the lines."""
        return self._binary.tell() if self._binary else self._walked

    def lines(self, newline: str | None = "") -> Generator[str, None, None]:
        """Every line with its end, as `open` splits them. Close it if you stop early. Raises InputError."""
        self.check_is_text()
        with open_unpacked(self.path) as (content, binary):
            self._binary, number = binary, 0
            text = io.TextIOWrapper(content, encoding=self.encoding, newline=newline)
            try:
                for line in iter(partial(text.readline, LONGEST_LINE), ""):
                    number += 1
                    if len(line) == LONGEST_LINE:
                        raise InputError(_endless_line(self.name, number))
                    if "\0" in line:
                        raise InputError(self._nul_sentence(number))
                    yield line
            except UnicodeDecodeError as error:
                raise self._undecodable(error) from None
            finally:
                self._walked, self._binary = 0 if binary.closed else binary.tell(), None

    def head(self, characters: int = 1 << 16) -> str:
        """The start of the text, line ends as `\\n`; undecodable bytes are replaced."""
        with (
            open_unpacked(self.path) as (content, _),
            io.TextIOWrapper(content, encoding=self.encoding, errors="replace") as text,
        ):
            return text.read(characters)

    def check_is_text(self) -> None:
        """Raises InputError for binary data (a program, an image, random bytes), which no encoding turns into rows."""
        head = self.head(_LOOKED_AT)
        control = [letter for letter in head if letter in _NO_TEXT]
        if len(set(control)) >= _KINDS and len(control) > _SHARE * len(head):
            raise InputError(
                "{name} contains control characters, which do not occur in text; use a file that "
                "contains rows, or set data.encoding to its encoding",
                name=self.name,
            )

    def _nul_sentence(self, line: int) -> str:
        return message(
            "{name} line {line} contains NUL bytes, so it is not {encoding} text; set data.encoding (for "
            "example utf-16-le), or save the file again as UTF-8",
            name=self.name,
            line=line,
            encoding=self.encoding,
        )

    def _undecodable(self, error: UnicodeDecodeError) -> UndecodableError:
        line, byte = _first_undecodable(self.path, self.encoding)
        encoding = self.encoding.removesuffix("-sig").upper()
        problem = message(
            "{name} line {line} is not {encoding} (byte 0x{byte}, {reason})",
            name=self.name,
            line=line,
            encoding=encoding,
            byte=f"{byte:02X}",
            reason=error.reason,
        )
        preview = _windows_lines(self.path) if self.encoding in {"utf-8", "utf-8-sig"} else []
        example = next((encoding for encoding, is_utf8 in preview if not is_utf8), "")
        if not example:
            return UndecodableError(
                message(
                    "{problem}; set data.encoding to its encoding, or save the file again as UTF-8",
                    problem=problem,
                )
            )
        return UndecodableError(
            message(
                "{problem}; as Windows-1252 it reads “{example}”: if that is right, use --set "
                "data.encoding={windows}, otherwise set its encoding, or save the file again as UTF-8",
                problem=problem,
                example=example,
                windows=WINDOWS,
            ),
            fix=Fix(
                message("Read as Windows-1252"),
                {"data.encoding": WINDOWS},
                tuple(line for line, _ in preview),
                message("{name} is not UTF-8. Read as Windows-1252, its rows would be:", name=self.name),
            ),
        )


def describe_mixed(paths: Sequence[Path]) -> str:
    """Which of these text files are UTF-8 and which are not, in a sentence; empty if one encoding fits them all."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(_detect_encoding(path), []).append(path.name)
    found.pop(ASCII, None)
    if len(found) < 2:
        return ""
    kinds = join(
        "; ",
        (
            message("{encoding}: {names}", encoding=encoding, names=_list_few(names))
            for encoding, names in found.items()
        ),
    )
    odd = [name for encoding, names in found.items() if encoding != UTF_8 for name in names]
    return message(
        "the files have different encodings ({kinds}), but a run reads all of them with the same "
        "encoding; save {odd} again as UTF-8",
        kinds=kinds,
        odd=_list_few(odd),
    )


def _list_few(names: list[str]) -> str:
    listed = ", ".join(names[:_FEW])
    return message("{names} and {count} more", names=listed, count=len(names) - _FEW) if len(names) > _FEW else listed


def _detect_encoding(path: Path) -> str:
    """A file's encoding, judged by all of its bytes: ASCII fits most others, and anything not UTF-8 is ambiguous."""
    marked = _encoding_of_mark(path)
    if marked in ("utf-16", "utf-32"):
        return marked.upper()
    decoder, is_ascii = codecs.getincrementaldecoder("utf-8")(), True
    with open_unpacked(path) as (content, _):
        try:
            for block in iter(partial(content.read, _BLOCK), b""):
                is_ascii = is_ascii and block.isascii()
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return message("not UTF-8")
    return ASCII if is_ascii else UTF_8


def _windows_lines(path: Path) -> list[tuple[str, bool]]:
    """The first line and the first non-UTF-8 lines, decoded as Windows-1252, and whether they are UTF-8.

    None if they are not such text.
    """
    found: list[bytes] = []
    with open_unpacked(path) as (content, _):
        for number, line in enumerate(iter(partial(content.readline, LONGEST_LINE), b"")):
            if number == 0 or not _is_utf8(line):
                found.append(line)
            if len(found) == _PREVIEW_LINES:
                break
    try:
        return [(_excerpt_around_non_ascii(line.decode(WINDOWS).strip()), _is_utf8(line)) for line in found]
    except UnicodeDecodeError:
        return []


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _excerpt_around_non_ascii(line: str) -> str:
    """An excerpt of the line that includes the first non-ASCII character."""
    place = next((number for number, letter in enumerate(line) if not letter.isascii()), 0)
    start = 0 if place < _PREVIEW_CHARACTERS - 20 else place - 40
    cut = line[start : start + _PREVIEW_CHARACTERS]
    return f"{'…' if start else ''}{cut}{'…' if start + len(cut) < len(line) else ''}"


def _endless_line(name: str, line: int) -> str:
    return message(
        "{name} line {line} has more than {longest_line:,} characters, so it is unlikely to be text in lines; "
        "check the file",
        name=name,
        line=line,
        longest_line=LONGEST_LINE,
    )


def _encoding_of_mark(path: Path) -> str:
    start = first_bytes(path, 4)
    return next((encoding for mark, encoding in _MARKS if start.startswith(mark)), "utf-8")


def _tolerant_encoding(encoding: str) -> str:
    name = codecs.lookup(encoding).name
    return "utf-8-sig" if name == "utf-8" else name


def _first_undecodable(path: Path, encoding: str) -> tuple[int, int]:
    """Line and value of the first undecodable byte; the decoder's own position is relative to a block."""
    decoder, newlines = codecs.getincrementaldecoder(encoding)(), 0
    with open_unpacked(path) as (file, _):
        while True:
            block = file.read(_BLOCK)
            try:
                newlines += decoder.decode(block, final=not block).count("\n")
            except UnicodeDecodeError as error:
                good = error.object[: error.start].decode(encoding, "ignore")
                return newlines + good.count("\n") + 1, error.object[error.start]
            assert block, "the file could not be decoded a moment ago"
