"""The source `conll`: sentences in CoNLL columns, one word per line and a blank line after each sentence."""

import codecs
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator

from backend.contract.errors import InputError
from backend.contract.messages import message, plural
from backend.contract.spec import DataSection, Section
from backend.data.data_files import data_files
from backend.data.formats.compression import plain_suffix
from backend.data.formats.detect import format_of
from backend.data.formats.reader import PIECE_ROWS, Options, Reader, RowChunk, check_width
from backend.data.formats.text_file import TextFile
from backend.data.formats.workbook import ENDINGS as WORKBOOKS
from backend.data.rows import Rows
from backend.data.sources.files import (
    ADVANCED,
    OF_FILE,
    Files,
    explain_mixed_encodings,
    prefix_errors,
    read_files,
    split_files,
)
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import ReadOptions, RecognisedSource, split_value

_DELIMITERS = {"auto": None, "tab": "\t", "spaces": " "}
_TABLES = {".csv", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".arrow", ".feather", *WORKBOOKS}

TOKENS, TAGS = "tokens", "tags"
_USUAL = {
    1: (TOKENS,),
    2: (TOKENS, TAGS),
    3: (TOKENS, "pos", TAGS),
    4: (TOKENS, "pos", "chunk", TAGS),
}
"""What the columns of a file are called, by their number; beyond, those between words and tags are numbered."""
_CONLL_U = ("id", TOKENS, "lemma", TAGS, "xpos", "feats", "head", "deprel", "deps", "misc")
ENDINGS = {".conll", ".conllu", ".bio", ".iob", ".iob2"}
"""Endings that say as much by themselves."""
_COMMENT = re.compile(r"#\s*[\w. -]+=|#\s*(id|newdoc|newpar|sent_id|text)\b")
_DOCUMENT = "-DOCSTART-"
_TAG = re.compile(r"O|[BIESLUM][-_].+")
_WHOLE = 1 << 16
_SPACES = re.compile(r"[ \t]+")


class Settings(Section):
    """How the columns are read."""

    delimiter: Annotated[
        Literal["auto", "tab", "spaces"], Field(title="Column delimiter", json_schema_extra=ADVANCED | OF_FILE)
    ] = "auto"
    """`tab` allows spaces in cells; `auto` uses tabs if the first line has one."""
    column_names: Annotated[list[str] | None, Field(title="Column names", json_schema_extra=ADVANCED | OF_FILE)] = None
    """A name for every column of the files, one of them `tokens`. Empty means that words come first and tags last."""
    encoding: Annotated[str, Field(title="Encoding", json_schema_extra=ADVANCED | OF_FILE)] = "auto"
    """`auto` reads UTF-8, and UTF-16 with a byte order mark; otherwise an encoding such as `windows-1252`."""

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, encoding: str) -> str:
        if encoding != "auto":
            try:
                codecs.lookup(encoding)
            except LookupError:
                raise ValueError(message("it is not an encoding; use auto, utf-8, latin-1, cp1252 or utf-16")) from None
        return encoding

    @field_validator("column_names")
    @classmethod
    def _name_the_words(cls, names: list[str] | None) -> list[str] | None:
        if names is not None and (TOKENS not in names or len(set(names)) < len(names)):
            raise ValueError(message("list every column once, and name the column with the words `tokens`"))
        return names


class Sentences:
    """Rows are sentences: `tokens`, `tags` and the columns between as lists; -DOCSTART- and comments are not words."""

    title: ClassVar[str] = "CoNLL columns"
    description: ClassVar[str] = "One word per line: the word first, its tag last, and a blank line between sentences"
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings

    def read(self, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
        """All sentences of the split; None if `data` names no files for it."""
        if split_value(split, data) is None:
            return None
        with prefix_errors(f"data.{split}"), explain_mixed_encodings(data):
            return self._read(split_files(split, data), data.max_rows, reading)

    def read_file(self, path: Path, data: DataSection, reading: ReadOptions) -> Rows:
        """The sentences of another file, tagged or not; a table is recognised by its extension."""
        if path.suffix.lower() in _TABLES:
            return Files(FileSettings()).read_file(path, data, reading)
        return self._read(data_files(str(path), None), None, reading)

    @staticmethod
    def recognise(paths: Sequence[Path]) -> RecognisedSource | None:
        """Recognises a file in columns by lines with a word and its tags, and blank lines between sentences."""
        if len(paths) != 1 or not paths[0].is_file():
            return None
        is_one = plain_suffix(paths[0]) in ENDINGS or reads_like_columns(TextFile(paths[0]).head())
        return RecognisedSource(message("CoNLL columns, one word per line"), "token_classification") if is_one else None

    def _read(self, paths: list[Path], max_rows: int | None, reading: ReadOptions) -> Rows:
        settings = self.settings
        for path in paths:
            format_of(path, "text", settings.encoding)  # refuses what is empty, packed or no text
        options = Options(_DELIMITERS[settings.delimiter], settings.encoding, max_rows=max_rows)
        names = tuple(settings.column_names or ())

        def readers() -> list[Reader]:
            return [Conll(path, options, names) for path in paths]

        try:
            return read_files(paths, readers, ("conll", settings.model_dump(mode="json")), max_rows, reading)
        except OSError as error:
            raise InputError(
                "{filename} cannot be read: {strerror}; check its permissions",
                filename=error.filename,
                strerror=error.strerror,
            ) from None


def reads_like_columns(head: str) -> bool:
    """Whether lines have a word and its tags, the same number of cells without spaces, and blank lines between."""
    lines = [line.strip(" \t\r") for line in head.split("\n")[:400]][: 400 if len(head) < _WHOLE else -1]
    words = [re.split(r"\t|[ ]+", line) for line in lines if line and not line.startswith(("#", _DOCUMENT))]
    if any(line.startswith(_DOCUMENT) for line in lines):
        return True
    widths = {len(cells) for cells in words}
    blank = any(not line for line in lines[:-1]) and any(lines)
    if len(words) < 2 or len(widths) != 1 or widths == {1} or not blank:
        return False
    tags = [cells[-1] for cells in words]
    marked = sum(bool(_TAG.fullmatch(tag)) for tag in tags)
    few = (
        len(words) >= 10
        and len(set(tags)) <= len(words) // 4
        and all(re.fullmatch(r"[A-Z.,:;'`$()#-]{1,8}", tag) for tag in tags)
    )
    return marked >= 0.9 * len(tags) or few or (widths == {len(_CONLL_U)} and words[0][0].isdecimal())


@dataclass(frozen=True)
class _Layout:
    """How a file's lines are split (at tabs or runs of spaces), and the column names."""

    tabs: bool
    names: tuple[str, ...]

    def cells(self, line: str) -> list[str]:
        return line.split("\t") if self.tabs else _SPACES.split(line.strip(" \t"))


class Conll:
    """Words first and tags last unless `column_names` says otherwise; a file of one column holds only words."""

    def __init__(self, path: Path, options: Options, column_names: tuple[str, ...] = ()) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._text = TextFile(path, options.encoding)
        self._layout = self._find_layout(options.delimiter, column_names)
        check_width(path.name, self._layout.names)

    def schema(self) -> pa.Schema:
        """A list of text per column."""
        return pa.schema([(name, pa.list_(pa.string())) for name in self._layout.names])

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
        """The sentences in order."""
        sentences: list[list[list[str]]] = []
        lines: list[int] = []
        for line, words in self._sentences():
            sentences.append(words)
            lines.append(line)
            if len(sentences) == PIECE_ROWS:
                yield self._piece(sentences, lines, schema)
                sentences, lines = [], []
        if sentences:
            yield self._piece(sentences, lines, schema)

    def _piece(self, sentences: list[list[list[str]]], lines: list[int], schema: pa.Schema) -> RowChunk:
        by_name = dict(zip(self._layout.names, zip(*chain.from_iterable(sentences), strict=True), strict=True))
        ends = np.cumsum([0, *map(len, sentences)]).astype(np.int32)
        columns = [pa.ListArray.from_arrays(ends, pa.array(by_name[field.name], pa.string())) for field in schema]
        batch = pa.record_batch(columns, schema=schema)
        return RowChunk(batch, np.array(lines, dtype=np.int64), self._text.position)

    def _sentences(self) -> Iterator[tuple[int, list[list[str]]]]:
        """Each sentence's first line number and its words' cells. Raises InputError for a line of another width."""
        words: list[list[str]] = []
        first, skips_ranges = 0, self._layout.names == _CONLL_U
        with closing(self._text.lines()) as content:
            for number, line in enumerate(content, 1):
                line = line.rstrip("\r\n")
                if not line.strip(" \t"):
                    if words:
                        yield first, words
                    words = []
                    continue
                cells = self._layout.cells(line)
                if self._is_aside(line, cells, at_start=not words):
                    continue
                if len(cells) != len(self._layout.names):
                    raise InputError(self._describe_width(number, len(cells)))
                if skips_ranges and not cells[0].isdecimal():
                    continue  # "3-4" and "5.1" stand beside the words that they join or leave out
                first = first if words else number
                words.append(cells)
        if words:
            yield first, words

    def _is_aside(self, line: str, cells: list[str], at_start: bool) -> bool:
        if cells[0] == _DOCUMENT:
            return True
        is_comment = line.startswith("#") and (
            len(cells) != len(self._layout.names) or bool(_COMMENT.match(line) and not self._layout.tabs)
        )
        return at_start and is_comment

    def _find_layout(self, delimiter: str | None, column_names: tuple[str, ...]) -> _Layout:
        line = self._first_line()
        tabs = "\t" in line if delimiter is None else delimiter == "\t"
        width = len(_Layout(tabs, ()).cells(line))
        if column_names:
            if len(column_names) != width:
                raise InputError(
                    "data.column_names: {column_names} columns are listed, but {name} has {width}; list every column",
                    "data.column_names",
                    column_names=len(column_names),
                    name=self._text.name,
                    width=width,
                )
            return _Layout(tabs, column_names)
        if width == len(_CONLL_U) and tabs and re.fullmatch(r"\d+(-\d+)?", line.split("\t")[0]):
            return _Layout(tabs, _CONLL_U)
        between = tuple(f"column_{number}" for number in range(2, width))
        return _Layout(tabs, _USUAL.get(width, (TOKENS, *between, TAGS)))

    def _first_line(self) -> str:
        """The first line with a word; comments are skipped unless there is nothing else."""
        comment = ""
        with closing(self._text.lines()) as content:
            for line in content:
                line = line.rstrip("\r\n")
                if not line.strip(" \t") or line.startswith(_DOCUMENT):
                    continue
                if not line.startswith("#"):
                    return line
                comment = comment or line
        if not comment:
            raise InputError("{name} has no words; use a file with one word per line", name=self._text.name)
        return comment

    def _describe_width(self, number: int, width: int) -> str:
        cut = message("tabs") if self._layout.tabs else message("spaces")
        expected = len(self._layout.names)
        return plural(
            "{name}:{number} has {count} column, but the file has {expected} (split at {cut}); fix "
            "the line, or set data.delimiter",
            "{name}:{number} has {count} columns, but the file has {expected} (split at {cut}); fix "
            "the line, or set data.delimiter",
            width,
            name=self._text.name,
            number=number,
            expected=expected,
            cut=cut,
        )


SOURCE = Sentences
