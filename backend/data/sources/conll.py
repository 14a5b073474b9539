"""Owns the source `conll`: sentences in CoNLL columns, one word a line, as tagging data is usually kept."""

import codecs
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from backend.contract.errors import InputError
from backend.contract.spec import DataSection, Section
from backend.data.data_files import data_files
from backend.data.formats.compression import plain_suffix
from backend.data.formats.conll import ENDINGS, TOKENS, Conll, reads_like_columns
from backend.data.formats.detect import format_of
from backend.data.formats.reader import Options, Reader
from backend.data.formats.text_file import TextFile
from backend.data.formats.workbook import ENDINGS as WORKBOOKS
from backend.data.rows import Rows
from backend.data.sources.files import ADVANCED, OF_FILE, Files, naming, of_one_encoding, read_files, split_files
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import Known, Reading, named

_DELIMITERS = {"auto": None, "tab": "\t", "spaces": " "}
_TABLES = {".csv", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".arrow", ".feather", *WORKBOOKS}


class Settings(Section):
    """How the columns are read."""

    delimiter: Annotated[
        Literal["auto", "tab", "spaces"], Field(title="Columns end at", json_schema_extra=ADVANCED | OF_FILE)
    ] = "auto"
    """`tab` lets cells hold spaces; `auto` takes tabs where the first line has one."""
    column_names: Annotated[list[str] | None, Field(title="Column names", json_schema_extra=ADVANCED | OF_FILE)] = None
    """A name for every column of the files, one of them `tokens`; empty takes words first and tags last."""
    encoding: Annotated[str, Field(title="Encoding", json_schema_extra=ADVANCED | OF_FILE)] = "auto"
    """`auto` reads UTF-8, and UTF-16 with its mark; otherwise a name such as `windows-1252`."""

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, encoding: str) -> str:
        if encoding != "auto":
            try:
                codecs.lookup(encoding)
            except LookupError:
                raise ValueError("it is not an encoding; write auto, utf-8, latin-1, cp1252 or utf-16") from None
        return encoding

    @field_validator("column_names")
    @classmethod
    def _name_the_words(cls, names: list[str] | None) -> list[str] | None:
        if names is not None and (TOKENS not in names or len(set(names)) < len(names)):
            raise ValueError("name every column once and the one with the words tokens")
        return names


class Sentences:
    """Rows are sentences: `tokens`, `tags` and the columns between as lists; -DOCSTART- and comments are no words."""

    title: ClassVar[str] = "CoNLL columns"
    description: ClassVar[str] = "Sentences with one word a line: the word first, its tag last, a blank line between"
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings

    def read(self, split: str, data: DataSection, reading: Reading) -> Rows | None:
        """All sentences of the split; None where `data` names no files for it."""
        if named(split, data) is None:
            return None
        with naming(f"data.{split}"), of_one_encoding(data):
            return self._read(split_files(split, data), data.max_rows, reading)

    def read_file(self, path: Path, data: DataSection, reading: Reading) -> Rows:
        """The sentences of one more file, tagged or not; a table is known by its extension."""
        if path.suffix.lower() in _TABLES:
            return Files(FileSettings()).read_file(path, data, reading)
        return self._read(data_files(str(path), None), None, reading)

    @staticmethod
    def recognise(paths: Sequence[Path]) -> Known | None:
        """A file is in columns whose lines hold a word and its tags, with blank lines between the sentences."""
        if len(paths) != 1 or not paths[0].is_file():
            return None
        is_one = plain_suffix(paths[0]) in ENDINGS or reads_like_columns(TextFile(paths[0]).head())
        return Known("CoNLL columns, one word a line", "token_classification") if is_one else None

    def _read(self, paths: list[Path], max_rows: int | None, reading: Reading) -> Rows:
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
            raise InputError(f"{error.filename} cannot be read: {error.strerror}; check its permissions") from None


SOURCE = Sentences
