"""The source `squad`: SQuAD's JSON (v1.1 and v2.0), read as one row per question."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.spec import DataSection, Section
from backend.data.data_files import data_files, short_names
from backend.data.formats.compression import first_bytes, read_bytes
from backend.data.formats.reader import PIECE_ROWS, Reader, RowChunk
from backend.data.rows import Rows
from backend.data.sources.files import prefix_errors, read_files, split_files
from backend.data.sources.source import ReadOptions, RecognisedSource, split_value


class Settings(Section):
    """SQuAD files need no settings."""


class Squad:
    """Questions about paragraphs of articles.

    Columns: `id`, `title`, `context`, `question`, `answers` (texts and their offsets in characters; null if a file
    gives none), and for v2.0 `is_impossible`; the plausible answers of an impossible question are ignored.
    """

    title: ClassVar[str] = "SQuAD JSON"
    description: ClassVar[str] = "Questions about paragraphs, in the format of the Stanford Question Answering Dataset"
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings

    def read(self, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
        """All questions of the split; None if `data` names no files for it."""
        if split_value(split, data) is None:
            return None
        with prefix_errors(f"data.{split}"):
            return self._read(split_files(split, data), data.max_rows, reading)

    def read_file(self, path: Path, data: DataSection, reading: ReadOptions) -> Rows:
        """All questions of another file."""
        return self._read(data_files(str(path), None), None, reading)

    @staticmethod
    def recognise(paths: Sequence[Path]) -> RecognisedSource | None:
        """Recognises a file as SQuAD if it starts with an object with paragraphs and their questions."""
        if len(paths) != 1 or not paths[0].is_file():
            return None
        head = first_bytes(paths[0], 1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip()
        is_one = head.startswith(b"{") and b'"paragraphs"' in head and (b'"qas"' in head or len(head) > 60_000)
        return RecognisedSource(message("SQuAD JSON data"), "question_answering") if is_one else None

    def _read(self, paths: list[Path], max_rows: int | None, reading: ReadOptions) -> Rows:
        def readers() -> list[Reader]:
            decoded = [_decode_file(path, name) for path, name in zip(paths, short_names(paths), strict=True)]
            if not any(question for file in decoded for question in _rows(file)):
                raise InputError(
                    "{paths} has no questions; use a file with questions", paths=", ".join(short_names(paths))
                )
            version_2 = any(map(_is_version_2, decoded))
            return [
                _Questions(file, path.stat().st_size, version_2, max_rows)
                for file, path in zip(decoded, paths, strict=True)
            ]

        return read_files(paths, readers, ("squad",), max_rows, reading)


SOURCE = Squad

_ANSWERS = pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int64()))])
_COLUMNS = [
    ("id", pa.string()), ("title", pa.string()), ("context", pa.string()), ("question", pa.string()), ("answers", _ANSWERS)
]  # fmt: skip


class _Answer(msgspec.Struct):
    text: str
    answer_start: Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class _Question(msgspec.Struct):
    question: str
    id: str | int
    answers: list[_Answer] | None = None
    is_impossible: bool | None = None


class _Paragraph(msgspec.Struct):
    context: str
    qas: list[_Question]


class _Article(msgspec.Struct):
    paragraphs: list[_Paragraph]
    title: str = ""


class _File(msgspec.Struct):
    data: list[_Article]


class _Questions:
    """The questions of one file as rows, numbered from 1 because JSON has no lines."""

    def __init__(self, file: _File, size: int, version_2: bool, max_rows: int | None) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._file, self._size, self._version_2, self._max_rows = file, size, version_2, max_rows

    def schema(self) -> pa.Schema:
        """`is_impossible` is included if any of the files that are read together has it."""
        return pa.schema([*_COLUMNS, ("is_impossible", pa.bool_())] if self._version_2 else _COLUMNS)

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
        """The questions in order."""
        rows = islice(_rows(self._file), self._max_rows)
        total, done = max(1, sum(1 for _ in _rows(self._file))), 0
        while piece := list(islice(rows, PIECE_ROWS)):
            numbers = np.arange(done, done + len(piece), dtype=np.int64) + 1
            done += len(piece)
            yield RowChunk(pa.RecordBatch.from_pylist(piece, schema=schema), numbers, self._size * done // total)


def _rows(file: _File) -> Iterator[dict[str, Any]]:
    for article in file.data:
        for paragraph in article.paragraphs:
            for question in paragraph.qas:
                yield _row(question, paragraph.context, article.title)


def _row(question: _Question, context: str, title: str) -> dict[str, Any]:
    answers = [] if question.is_impossible else question.answers
    given = (
        {"text": [one.text for one in answers], "answer_start": [one.answer_start for one in answers]}
        if answers is not None
        else None
    )
    return {
        "id": str(question.id),
        "title": title,
        "context": context,
        "question": question.question,
        "answers": given,
        "is_impossible": bool(question.is_impossible),
    }


def _is_version_2(file: _File) -> bool:
    return any(
        question.is_impossible is not None
        for article in file.data
        for paragraph in article.paragraphs
        for question in paragraph.qas
    )


def _decode_file(path: Path, name: str) -> _File:
    content = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(content, type=_File)
    except msgspec.ValidationError as error:
        raise InputError(
            "{name} is not SQuAD JSON, which is {{data: [{{paragraphs: [{{context, qas}}]}}]}} "
            "({error}); for one row per question (JSON Lines, CSV, Parquet) set data.source: files",
            name=name,
            error=_describe_error(error),
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            "{name} is not valid JSON ({error}); download it again, or set data.source: files for another format",
            name=name,
            error=_describe_error(error),
        ) from None


def _describe_error(error: Exception) -> str:
    reason = str(error).replace("JSON is malformed: ", "")
    return reason[:1].lower() + reason[1:]
