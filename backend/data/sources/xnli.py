"""The source `xnli`: sentence pairs in fifteen languages, trained in one and evaluated in the same or another."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import user_path
from backend.contract.spec import DataSection, Section
from backend.data.data_files import data_files
from backend.data.formats.delimited import Delimited
from backend.data.formats.detect import format_of
from backend.data.formats.reader import Options, Reader, RowChunk
from backend.data.rows import Rows
from backend.data.sources.files import Files, prefix_errors, read_files
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import ReadOptions, RecognisedSource, check_apart, is_fraction, split_value

Language = Literal["ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh"]
_PLACES = ("XNLI-1.0", "XNLI-MT-1.0/multinli", "multinli", "")
"""Where the unpacked archives of XNLI keep their files."""
_FILES = {
    "train": "multinli.train.{language}.tsv",
    "validation": "xnli.dev.tsv",
    "dev": "xnli.dev.tsv",
    "test": "xnli.test.tsv",
}

SCHEMA = pa.schema([("premise", pa.string()), ("hypothesis", pa.string()), ("label", pa.string())])
"""The names that the hub's data set uses; the files themselves call them so, or `hypo`, `sentence1`, `gold_label` …"""
_NAMES = {
    "premise": ("premise", "sentence1"),
    "hypothesis": ("hypothesis", "hypo", "sentence2"),
    "label": ("label", "gold_label"),
}
_LANGUAGE = "language"


class Settings(Section):
    """Where XNLI is, and in which languages to read it."""

    folder: Annotated[str, Field(title="Folder", min_length=1, json_schema_extra={"path": "folder"})]
    """The folder with the unpacked XNLI-1.0.zip and XNLI-MT-1.0.zip."""
    language: Annotated[Language, Field(title="Language")]
    """The language of the validation and test rows."""
    train_language: Annotated[Language | None, Field(title="Training language")] = None
    """The language of the training rows. Empty uses the same language."""


class Source:
    """Rows have `premise`, `hypothesis` and `label`, whatever the files call them.

    `train` and `validation` have defaults; `test` is only read if it is named, such as `test`.
    """

    title: ClassVar[str] = "XNLI"
    description: ClassVar[str] = "Sentence pairs in fifteen languages: train in one and evaluate in another"
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ("folder",)
    own_splits: ClassVar[tuple[str, ...]] = ("train", "validation")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings

    @staticmethod
    def recognise(paths: Sequence[Path]) -> RecognisedSource | None:
        """Recognises a folder with xnli.dev.tsv where the archives put it."""
        if len(paths) != 1 or not any((paths[0] / place / _FILES["validation"]).is_file() for place in _PLACES):
            return None
        return RecognisedSource(message("XNLI; choose its language"), "text_classification", {"folder": str(paths[0])})

    def read(self, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
        """All rows of the split in its language."""
        value = split_value(split, data)
        if is_fraction(split, data) or (value is None and split not in self.own_splits):
            return None
        with prefix_errors(f"data.{split}"):
            check_apart(split, lambda one: self._split_files(one, data))
            return self._read(self._split_files(split, data), self._language(split), data.max_rows, reading)

    def _language(self, split: str) -> str:
        own = self.settings.train_language if split == "train" else None
        return own or self.settings.language

    def _split_files(self, split: str, data: DataSection) -> list[Path]:
        value = split_value(split, data)
        if is_fraction(split, data) or (value is None and split not in self.own_splits):
            return []
        names = value if isinstance(value, list) else [value or split]
        return [self._file(name, self._language(split)) for name in names]

    def read_file(self, path: Path, data: DataSection, reading: ReadOptions) -> Rows:
        """The rows of another file in the evaluation language; a table that is not a TSV is read as usual."""
        if path.suffix.lower() != ".tsv":
            return Files(FileSettings()).read_file(path, data, reading)
        return self._read(data_files(str(path), None), self.settings.language, None, reading)

    def _file(self, name: str, language: str) -> Path:
        folder = user_path(self.settings.folder)
        if not folder.is_dir():
            raise InputError("data.folder: there is no folder {folder}; check the path", "data.folder", folder=folder)
        file = _FILES.get(name, name).format(language=language)
        found = next((folder / place / file for place in _PLACES if (folder / place / file).is_file()), None)
        if found is None:
            raise InputError(
                "there is no {file} in {folder}; unpack XNLI-1.0.zip and XNLI-MT-1.0.zip there, or "
                "choose another folder",
                file=file,
                folder=folder,
            )
        return found

    def _read(self, paths: list[Path], language: str, max_rows: int | None, reading: ReadOptions) -> Rows:
        for path in paths:
            format_of(path, "tsv")  # refuses what is empty, packed or unreadable

        def readers() -> list[Reader]:
            return [Xnli(path, language) for path in paths]

        return read_files(paths, readers, ("xnli", language), max_rows, reading)


class Xnli:
    """The rows of one language; `label` is missing if the file has no labels. Quotes belong to the text."""

    def __init__(self, path: Path, language: str) -> None:
        self._name, self._language = path.name, language
        self._file = Delimited(path, Options(delimiter="\t", quoting="none"), "\t")
        self.skipped = self._file.skipped
        there = self._file.schema().names
        self._columns = {
            name: found
            for name, names in _NAMES.items()
            if (found := next((one for one in names if one in there), None))
        }
        for name in ("premise", "hypothesis"):
            if name not in self._columns:
                raise InputError(
                    "{name} is not an XNLI file: it has none of the columns {names}; check data.folder",
                    name=path.name,
                    names=", ".join(_NAMES[name]),
                )

    def schema(self) -> pa.Schema:
        """`premise`, `hypothesis` and, if present, `label`."""
        return pa.schema([field for field in SCHEMA if field.name in self._columns])

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
        """The rows of the language in order. Raises InputError if a file of several languages has none."""
        others: set[str] = set()
        found = False
        for piece in self._file.pieces(self._file.schema()):
            keep = self._keep(piece.batch, others)
            found = found or bool(keep.any())
            columns = [_normalize_labels(piece.batch[self._columns[field.name]]) for field in schema]
            batch = pa.record_batch(columns, schema=schema).filter(pa.array(keep))
            yield RowChunk(batch, piece.lines[keep], piece.position)
        if others and not found:
            raise InputError(
                "{name} has no rows in the language {language}; its languages are {others}",
                name=self._name,
                language=repr(self._language),
                others=", ".join(sorted(others)),
            )

    def _keep(self, batch: pa.RecordBatch, others: set[str]) -> np.ndarray:
        if _LANGUAGE not in batch.schema.names:
            return np.ones(batch.num_rows, dtype=bool)
        others |= set(batch[_LANGUAGE].unique().to_pylist()) - {self._language}
        return pc.equal(batch[_LANGUAGE], self._language).to_numpy(zero_copy_only=False)


def _normalize_labels(column: pa.Array) -> pa.Array:
    """Rename `contradictory`, which the translated training files use for `contradiction`."""
    return pc.if_else(pc.equal(column, "contradictory"), "contradiction", column)


SOURCE = Source
