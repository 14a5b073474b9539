"""Finds text that was decoded with the wrong encoding: “poesÃ­a” instead of “poesía” in UTF-8.

The bytes of a UTF-8 letter, read as Windows-1252 or Latin-1, are one of a few letters, then characters that rarely
follow it. Only runs that are whole UTF-8 letters when decoded again are reported; quotes that can follow a
letter (“CAFÉ»”) do not count.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.messages import message, plural

ROWS = 20_000
"""So many rows are searched, from the first."""
MAX_BYTES = 100_000_000
"""So much text of each column is searched: rows may be whole books, and this runs before every training."""
_AFTER = "".join(
    sorted({bytes([one]).decode("cp1252", "ignore") for one in range(0x80, 0xC0)} | {*map(chr, range(0x80, 0xC0))})
)
_QUOTES = "«»“”„‘’‚‹›…–—"
_SIGNS = re.escape("".join(set(_AFTER) - set(_QUOTES)))
_ANY = re.escape(_AFTER)
_RUN = (
    f"[ÂÃÄÅ][{_SIGNS}]"  # accented letters of Latin script, signs such as ° and £
    f"|(?:[ÎÏÐÑØÙ×][{_ANY}]){{2,}}"  # Greek, Cyrillic, Arabic, Hebrew: at least two letters of a word
    f"|â[€‚„\x80\x82\x84][{_ANY}]"  # typographic quotes, dashes, the euro's and the trademark's sign
    f"|ð[Ÿ\x9f][{_ANY}]{{2}}"  # emoji
    f"|(?:[à-ï][{_ANY}]{{2}}){{2,}}"  # scripts of three bytes, at least two letters
    f"|ï»¿"  # a byte order mark
)
_FOUND = re.compile(_RUN)
_WORD_CHARACTERS = 24
_PART = 1000


def warnings(table: pa.Table, place: Callable[[int], str], encoding: str) -> Iterator[str]:
    """Warnings about a table's texts; `place` names a row, and `encoding` is how the file was read."""
    if found := find_mojibake(table):
        yield describe(found, place(found.row), encoding)
    if lost := find_lost_characters(table):
        yield describe_lost_characters(lost, place(lost.row))


@dataclass(frozen=True)
class Mojibake:
    """The first garbled text: where it is and how it should probably read."""

    column: str
    row: int
    text: str
    right: str


def find_mojibake(table: pa.Table) -> Mojibake | None:
    """The first such text in a table's columns; None if there is none."""
    for name, column in zip(table.column_names, table.slice(0, ROWS).columns, strict=True):
        for texts, rows in _texts(column):
            for place in pc.indices_nonzero(pc.fill_null(pc.match_substring_regex(texts, _RUN), False)).to_pylist():
                if found := find_garbled_word(texts[place].as_py()):
                    return Mojibake(name, rows[place].as_py(), *found)
    return None


def find_garbled_word(text: str) -> tuple[str, str] | None:
    """The first such word, and its repaired form; None if there is none."""
    for match in _FOUND.finditer(text):
        right = _decode_again(match.group())
        if right is not None:
            start = max(text.rfind(" ", 0, match.start()) + 1, match.start() - _WORD_CHARACTERS)
            end = (text.find(" ", match.end()) + len(text) + 1) % (len(text) + 1)
            word = text[start : min(end, match.end() + _WORD_CHARACTERS)].strip(".,;:!?\"'()\r\n\t")
            return word, _FOUND.sub(lambda one: _decode_again(one.group()) or one.group(), word)
    return None


def describe(found: Mojibake, place: str, encoding: str) -> str:
    """The warning about it; `encoding` is how the file was read."""
    fix = (
        message("export the data again from its source, as UTF-8")
        if encoding in ("auto", "", "utf-8")
        else message(
            "data.encoding is {encoding}, but the file is probably UTF-8: set data.encoding: auto", encoding=encoding
        )
    )
    return message(
        "The column “{column}” seems to have been read with the wrong encoding: “{text}” in "
        "{place} is probably “{right}”; {fix}.",
        column=found.column,
        text=found.text,
        place=place,
        right=found.right,
        fix=fix,
    )


@dataclass(frozen=True)
class LostCharacters:
    """Letters that another program failed to decode and replaced by U+FFFD: how many, and the first affected word."""

    column: str
    row: int
    text: str
    count: int


def find_lost_characters(table: pa.Table) -> LostCharacters | None:
    """The replacement characters in the first column that has any; None if there are none."""
    for name, column in zip(table.column_names, table.slice(0, ROWS).columns, strict=True):
        count, first = 0, None
        for texts, rows in _texts(column):
            counts = pc.fill_null(pc.count_substring(texts, "\ufffd"), 0)
            if (found := pc.sum(counts).as_py() or 0) and first is None:
                place = pc.index(pc.greater(counts, 0), True).as_py()
                word = next(word for word in texts[place].as_py().split() if "\ufffd" in word)
                start = max(0, word.index("\ufffd") - _WORD_CHARACTERS)
                first = rows[place].as_py(), word[start : start + 2 * _WORD_CHARACTERS]
            count += found
        if first is not None:
            return LostCharacters(name, *first, count)
    return None


def describe_lost_characters(found: LostCharacters, place: str) -> str:
    """The warning about letters that cannot be recovered from the file."""
    return plural(
        "The column “{column}” has 1 replacement character (U+FFFD) where letters were lost, for example "
        "“{text}” in {place}; export the data again from its source, as UTF-8.",
        "The column “{column}” has {count:,} replacement characters (U+FFFD) where letters were lost, for "
        "example “{text}” in {place}; export the data again from its source, as UTF-8.",
        found.count,
        column=found.column,
        text=found.text,
        place=place,
    )


def _decode_again(text: str) -> str | None:
    content = bytearray()
    for letter in text:
        try:
            content += letter.encode("cp1252")
        except UnicodeEncodeError:
            if ord(letter) > 0xFF:
                return None
            content.append(ord(letter))  # the five bytes that Windows-1252 leaves out stay what they are
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _texts(column: pa.ChunkedArray) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The texts of a text column or lists of text, with their rows, in parts, up to MAX_BYTES."""
    first, searched = 0, 0
    for chunk in column.chunks:
        for start in range(0, len(chunk), _PART):
            part = chunk.slice(start, _PART)
            if pa.types.is_string(column.type):
                texts, rows = part, pa.array(range(len(part)), pa.int64())
            elif pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
                texts, rows = part.flatten(), pc.list_parent_indices(part)
            else:
                return
            yield texts, pc.add(rows, first)
            first, searched = first + len(part), searched + part.nbytes
            if searched > MAX_BYTES:
                return
