"""The source `glue`: the folders of the GLUE benchmark, whose tab-separated files differ from task to task.

Quotes belong to the text, some files start with a byte order mark, CoLA's have no header, and test files have no label
and some different columns (https://gluebenchmark.com/tasks).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
from backend.data.formats.reader import Options, Reader
from backend.data.formats.text_file import TextFile
from backend.data.rows import Rows
from backend.data.sources.files import Files, prefix_errors, read_files
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import ReadOptions, RecognisedSource, check_apart, is_fraction, split_value

_USUAL_NAMES = {"train": "train", "validation": "dev", "test": "test"}
"""Split → the name of its file without ending."""
_SUFFIXES = {"", ".tsv", ".txt"}
_OPTIONS = Options(delimiter="\t", quoting="none")

_USUAL_HEADERS = {"sst2", "rte", "wnli"}
"""Tasks whose first line other people's files have too, or each other's."""


class Settings(Section):
    """Which task of GLUE, and where its files are."""

    folder: Annotated[str, Field(title="Folder", min_length=1, json_schema_extra={"path": "folder"})]
    """The task's folder with train.tsv, dev.tsv and test.tsv, or the folder that contains all GLUE tasks."""
    task: Annotated[
        Literal["cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli"], Field(title="GLUE task")
    ]
    """The GLUE task of these files. It determines their columns."""


class Glue:
    """`train` and `validation` default to train.tsv and dev.tsv; `test` is only read if it is named, such as `test`.

    Names are file names in the folder, with or without `.tsv`; `dev` and `test` of MNLI mean both of its files.
    """

    title: ClassVar[str] = "GLUE folder"
    description: ClassVar[str] = "A GLUE benchmark task in its original files: train.tsv, dev.tsv, test.tsv"
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ("folder",)
    own_splits: ClassVar[tuple[str, ...]] = ("train", "validation")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings
        self._layout = LAYOUTS[settings.task]

    def read(self, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
        """All rows of the split; test files may lack labels."""
        value = split_value(split, data)
        if is_fraction(split, data) or (value is None and split not in self.own_splits):
            return None
        folder = self._folder()
        with prefix_errors(f"data.{split}"):
            check_apart(split, lambda one: self._split_files(folder, one, data))
            rows = self._read(self._split_files(folder, split, data), data.max_rows, reading)
            if split != "test":
                self._check_labelled(rows)
        return rows

    def read_file(self, path: Path, data: DataSection, reading: ReadOptions) -> Rows:
        """The rows of another file of the task, labelled or not; for a folder, those of its test files.

        A table that is not a TSV is read as usual.
        """
        if path.is_dir():
            return self._read(self._files(path, "test"), None, reading)
        if path.suffix.lower() not in _SUFFIXES:
            return Files(FileSettings()).read_file(path, data, reading)
        return self._read(data_files(str(path), None), None, reading)

    @staticmethod
    def recognise(paths: Sequence[Path]) -> RecognisedSource | None:
        """Recognises a folder whose train.tsv starts as one task's does, or the folder above all tasks."""
        if len(paths) != 1 or not paths[0].is_dir():
            return None
        folder = paths[0]
        if (folder / "train.tsv").is_file():
            name = _task_in(folder)
            if not name:
                return None
            task = "text_classification" if LAYOUTS[name].labels else "text_regression"
            return RecognisedSource(
                message("the GLUE task {folder}", folder=LAYOUTS[name].folder),
                task,
                {"folder": str(folder), "task": name},
            )
        there = [name for name, layout in LAYOUTS.items() if (folder / layout.folder / "train.tsv").is_file()]
        if len(there) < 2:
            return None
        return RecognisedSource(
            message("GLUE with {there} tasks; choose one of them", there=len(there)), settings={"folder": str(folder)}
        )

    def _folder(self) -> Path:
        """The task's folder, which may be one of several in the given folder."""
        folder = user_path(self.settings.folder)
        if not folder.is_dir():
            raise InputError("data.folder: there is no folder {folder}; check the path", "data.folder", folder=folder)
        if any(folder.glob("*.tsv")):
            return folder
        wanted = self._layout.folder.lower()
        return next((one for one in sorted(folder.iterdir()) if one.is_dir() and one.name.lower() == wanted), folder)

    def _split_files(self, folder: Path, split: str, data: DataSection) -> list[Path]:
        value = split_value(split, data)
        if is_fraction(split, data) or (value is None and split not in self.own_splits):
            return []
        names = value if isinstance(value, list) else [value or _USUAL_NAMES[split]]
        return [path for name in names for path in self._files(folder, name)]

    def _files(self, folder: Path, name: str) -> list[Path]:
        usual = _USUAL_NAMES.get(name, name)
        if usual in self._layout.parts:
            return [path for part in self._layout.parts[usual] for path in data_files(str(folder / part), None)]
        path = folder / user_path(usual)
        return data_files(str(path if path.suffix or path.exists() else path.with_suffix(".tsv")), None)

    def _read(self, paths: list[Path], max_rows: int | None, reading: ReadOptions) -> Rows:
        names = [self._column_names(path) for path in paths]

        def readers() -> list[Reader]:
            return [Delimited(path, _OPTIONS, "\t", own) for path, own in zip(paths, names, strict=True)]

        rows = read_files(paths, readers, ("glue", names), max_rows, reading)
        self._check_labels(rows)
        return replace(rows, metric_names=self._metric_names(paths))

    def _column_names(self, path: Path) -> tuple[str, ...] | None:
        """The columns of a file without a header, None if it has one. Raises InputError for another task's file."""
        format_of(path, "tsv")  # refuses what is empty, packed or unreadable
        first = tuple(TextFile(path).head().partition("\n")[0].rstrip("\r").split("\t"))
        if self._layout.is_row(first):
            return self._layout.without_header
        if not self._layout.has(first):
            self._refuse(path.name, first)
        return None

    def _refuse(self, name: str, first: tuple[str, ...]) -> None:
        task, others = self.settings.task, tasks_of(first)
        if others:
            why = message(
                "it is a file of {others}; set data.task to that, or set data.folder to the folder of {task}",
                others=" or ".join(others),
                task=task,
            )
        else:
            why = message(
                "it does not have the columns {texts}; check it and data.folder", texts=", ".join(self._layout.texts)
            )
        raise InputError(
            "data.task: {name} is not a file of the GLUE task {task}: {why}", "data.task", name=name, task=task, why=why
        )

    def _check_labelled(self, rows: Rows) -> None:
        label = self._layout.label
        if label not in rows.table.column_names:
            raise InputError(
                "{files} has no labels (column {label}); choose a file with labels, or set data.test",
                files=rows.files[0],
                label=repr(label),
            )

    def _check_labels(self, rows: Rows) -> None:
        """Raises InputError for a label that the task does not have; RTE and WNLI, for one, have the same columns."""
        layout, label = self._layout, self._layout.label
        if not layout.labels or label not in rows.table.column_names:
            return
        known = pc.is_in(rows.table[label], pa.array([*layout.labels, ""]))
        strangers = np.flatnonzero(~known.to_numpy())
        if len(strangers):
            row, task = int(strangers[0]), self.settings.task
            raise InputError(
                "data.task: {rows} has the label {table}, but the labels of the GLUE task {task} are "
                "{labels}; check it and data.folder, or correct the row",
                "data.task",
                rows=rows.place(row),
                table=repr(rows.table[label][row].as_py()),
                task=task,
                labels=", ".join(layout.labels),
            )

    def _metric_names(self, paths: list[Path]) -> tuple[str, ...]:
        """MNLI's metrics have no suffix for the matched file and `_mm` for the mismatched one."""
        names = tuple(self._layout.metric_name(path.name) for path in paths)
        return names if sorted(names) == ["{metric}", "{metric}_mm"] else ()


def _task_in(folder: Path) -> str:
    """The task that matches train.tsv's first line; among several, the folder's name decides. Empty if unknown."""
    first = TextFile(folder / "train.tsv").head().partition("\n")[0].rstrip("\r")
    found = tasks_of(tuple(first.split("\t")))
    called = [name for name in found if _normalize_name(LAYOUTS[name].folder) == _normalize_name(folder.name)]
    own = [name for name in found if name not in _USUAL_HEADERS]
    return next(iter([*called, *(own if len(own) == 1 else [])]), "")


def _normalize_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@dataclass(frozen=True)
class TaskFiles:
    """The files of one task."""

    folder: str
    """The task's folder with train.tsv, dev.tsv and test.tsv, or the folder that contains all GLUE tasks."""
    texts: tuple[str, ...]
    """The one or two columns of text."""
    label: str
    labels: tuple[str, ...]
    """All labels; empty for numbers."""
    headers: tuple[tuple[str, ...], ...]
    """The first lines of its files that are known."""
    without_header: tuple[str, ...] = ()
    """Names for the columns of files without a header; empty where all have one."""
    parts: dict[str, tuple[str, str]] = field(default_factory=dict)
    """`dev` and `test` → their files, where there are two: matched, then mismatched."""

    def has(self, header: tuple[str, ...]) -> bool:
        """Whether a file with this header is the task's, or is not a GLUE file but has the task's texts."""
        return header in self.headers or (not tasks_of(header) and set(self.texts) <= set(header))

    def is_row(self, cells: tuple[str, ...]) -> bool:
        """Whether the first line is already a row."""
        at = self.without_header.index(self.label) if self.without_header else 0
        return bool(self.without_header) and len(cells) == len(self.without_header) and cells[at] in self.labels

    def metric_name(self, file: str) -> str:
        """The name pattern for a file's metrics, to tell two parts apart; empty if there is only one."""
        matched, mismatched = zip(*self.parts.values(), strict=True) if self.parts else ((), ())
        return "{metric}" if file in matched else "{metric}_mm" if file in mismatched else ""


_PARSES = ("sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse", "sentence2_parse")
_MNLI = ("index", "promptID", "pairID", "genre", *_PARSES, "sentence1", "sentence2")
_STSB = ("index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2")
_PAIR = ("index", "sentence1", "sentence2")

LAYOUTS = {
    "cola": TaskFiles(
        "CoLA", ("sentence",), "label", ("0", "1"), (("index", "sentence"),),
        without_header=("source", "label", "original_label", "sentence"),
    ),
    "sst2": TaskFiles("SST-2", ("sentence",), "label", ("0", "1"), (("sentence", "label"), ("index", "sentence"))),
    "mrpc": TaskFiles(
        "MRPC", ("#1 String", "#2 String"), "Quality", ("0", "1"),
        (
            ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
            ("index", "#1 ID", "#2 ID", "#1 String", "#2 String"),
        ),
    ),
    "stsb": TaskFiles("STS-B", ("sentence1", "sentence2"), "score", (), ((*_STSB, "score"), _STSB)),
    "qqp": TaskFiles(
        "QQP", ("question1", "question2"), "is_duplicate", ("0", "1"),
        (("id", "qid1", "qid2", "question1", "question2", "is_duplicate"), ("id", "question1", "question2")),
    ),
    "mnli": TaskFiles(
        "MNLI", ("sentence1", "sentence2"), "gold_label", ("contradiction", "entailment", "neutral"),
        (
            (*_MNLI, "label1", "gold_label"),
            (*_MNLI, "label1", "label2", "label3", "label4", "label5", "gold_label"),
            _MNLI,
            _PAIR,  # the diagnostic set, which models of MNLI answer
        ),
        parts={
            "dev": ("dev_matched.tsv", "dev_mismatched.tsv"),
            "test": ("test_matched.tsv", "test_mismatched.tsv"),
        },
    ),
    "qnli": TaskFiles(
        "QNLI", ("question", "sentence"), "label", ("entailment", "not_entailment"),
        (("index", "question", "sentence", "label"), ("index", "question", "sentence")),
    ),
    "rte": TaskFiles("RTE", ("sentence1", "sentence2"), "label", ("entailment", "not_entailment"), ((*_PAIR, "label"), _PAIR)),
    "wnli": TaskFiles("WNLI", ("sentence1", "sentence2"), "label", ("0", "1"), ((*_PAIR, "label"), _PAIR)),
}  # fmt: skip
"""GLUE task → how its files look, as the benchmark's download of 2018 has them."""


def tasks_of(first: tuple[str, ...]) -> list[str]:
    """The tasks whose files may start with these cells."""
    return [task for task, layout in LAYOUTS.items() if first in layout.headers or layout.is_row(first)]


SOURCE = Glue
