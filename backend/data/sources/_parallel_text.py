"""Reads parallel text: two files with matching lines, how such a pair is found, and its rows in either direction."""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import LONGEST_LINE, check_inside, open_regular
from backend.contract.spec import DataSection, Section
from backend.data.fingerprint import file_fingerprint
from backend.data.formats.compression import limit_unpacked
from backend.data.formats.detect import is_data_file
from backend.data.formats.reader import PIECE_ROWS, Reader, RowChunk
from backend.data.rows import Rows
from backend.data.sources.files import ADVANCED, Files, read_files
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import ReadOptions

Pair = tuple[Path, Path | None]
"""The files of the sources and of the targets; None where there are sources alone."""

Endings = tuple[tuple[str, str], ...]
"""Endings of source and target files that may belong together."""
ENDINGS: Endings = (("source", "target"), ("src", "trg"), ("src", "tgt"))
STEMS = {"train": ("train",), "validation": ("validation", "valid", "val", "dev", "eval"), "test": ("test",)}
"""What the files of a split are called in a folder."""
_LANGUAGE = re.compile(r"(?!md|py|js|gz|db|sh|h|c)[a-z]{2}([_-][A-Za-z]{2,4})?")
"""An ending that names a language, as Moses has them."""
_CHALLENGE = ("train", "dev", "test")

_WAY_OUT = message(
    "specify their folder or common prefix, and set data.source_ending and data.target_ending for other extensions"
)


class Direction(Section):
    """The direction in which parallel text is read."""

    direction: Annotated[Literal["forward", "backward", "both"], Field(title="Direction")] = "forward"
    """`forward` is from source to target, `backward` the other way; `both` makes two rows per line, backward
    first."""
    prefix_forward: Annotated[
        str, Field(title="Forward prefix", json_schema_extra={"examples": ["translate english to sinhala"]})
    ] = ""
    """The `prefix` column of rows from source to target. If no prefix is set, the column is omitted."""
    prefix_backward: Annotated[
        str, Field(title="Backward prefix", json_schema_extra={"examples": ["translate sinhala to english"]})
    ] = ""
    """The `prefix` column of rows from target to source."""
    source_language: Annotated[str | None, Field(title="Source file language", json_schema_extra=ADVANCED)] = None
    """Added as a `source_language` column (backward: `target_language`), for models with language tokens."""
    target_language: Annotated[str | None, Field(title="Target file language", json_schema_extra=ADVANCED)] = None
    """Added as a `target_language` column (backward: `source_language`)."""


def read_pairs(pairs: list[Pair], directions: Direction, max_rows: int | None, reading: ReadOptions) -> Rows:
    """The rows of pairs of files. Raises InputError if the two files of a pair have different numbers of lines."""
    targets = [target and file_fingerprint(target) for _, target in pairs]
    how = ("parallel", targets, [getattr(directions, name) for name in Direction.model_fields])

    def readers() -> list[Reader]:
        return [LinePairs(source, target, directions) for source, target in pairs]

    return read_files([source for source, _ in pairs], readers, how, max_rows, reading)


class LinePairs:
    """One pair of files; implements `backend.data.formats.reader.Reader`. Files may be gzipped."""

    def __init__(self, source: Path, target: Path | None, directions: Direction) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._source, self._target, self._directions = source, target, directions
        self._ways = {"both": ("backward", "forward")}.get(directions.direction, (directions.direction,))
        if target is None:  # the only file is the input, whatever its direction
            self._ways = self._ways[-1:]

    def schema(self) -> pa.Schema:
        """`prefix`, `source`, `target`, `source_language`, `target_language`, as far as they are known."""
        directions = self._directions
        names = ["prefix"] if directions.prefix_forward or directions.prefix_backward else []
        names += ["source"] if self._target is None else ["source", "target"]
        names += (
            ["source_language", "target_language"] if directions.source_language or directions.target_language else []
        )
        return pa.schema([(name, pa.string()) for name in names])

    def pieces(self, schema: pa.Schema) -> Iterator[RowChunk]:
        """All rows in order; those from the same line are adjacent."""
        with ExitStack() as opened:
            source = opened.enter_context(_TextLines(self._source))
            target = opened.enter_context(_TextLines(self._target)) if self._target else None
            rows: list[dict[str, str]] = []
            lines: list[int] = []
            for number, (one, other) in enumerate(self._pair_lines(source, target), 1):
                rows += [self._row(direction, one, other) for direction in self._ways]
                lines += [number] * len(self._ways)
                if len(rows) >= PIECE_ROWS:
                    yield _piece(rows, lines, schema, source.position)
                    rows, lines = [], []
            if rows:
                yield _piece(rows, lines, schema, source.position)

    def _pair_lines(self, source: "_TextLines", target: "_TextLines | None") -> Iterator[tuple[str, str]]:
        if target is None:
            yield from ((line, "") for line in source)
            return
        for one, other in zip_longest(source, target):
            if one is None or other is None:
                counts = [lines.number + sum(1 for _ in lines) for lines in (source, target)]
                raise InputError(
                    "{name} has {counts:,} lines and {name_2} has {counts_2:,}, but they must have the same "
                    "number of lines; find out which lines are missing",
                    name=source.name,
                    counts=counts[0],
                    name_2=target.name,
                    counts_2=counts[1],
                )
            yield one, other

    def _row(self, direction: str, source: str, target: str) -> dict[str, str]:
        directions = self._directions
        row = {
            "prefix": directions.prefix_forward,
            "source": source,
            "target": target,
            "source_language": directions.source_language or "",
            "target_language": directions.target_language or "",
        }
        if direction == "forward":
            return row
        back = {"prefix": directions.prefix_backward}
        back |= {"source_language": row["target_language"], "target_language": row["source_language"]}
        return row | back | ({"source": target, "target": source} if self._target else {})


def _piece(rows: list[dict[str, str]], lines: list[int], schema: pa.Schema, position: int) -> RowChunk:
    columns = [pa.array([row[name] for row in rows], pa.string()) for name in schema.names]
    return RowChunk(pa.record_batch(columns, schema=schema), np.array(lines, dtype=np.int64), position)


class _TextLines:
    """The lines of a UTF-8 file, gzipped or not; only a line feed ends a line, to keep the two files in step."""

    def __init__(self, path: Path) -> None:
        self.name, self.number = path.name, 0
        self._raw = open_regular(path)
        zipped = self._raw.read(2) == b"\x1f\x8b"
        self._raw.seek(0)
        self._stream = limit_unpacked(gzip.GzipFile(fileobj=self._raw), path) if zipped else self._raw

    def __enter__(self) -> "_TextLines":
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()
        self._raw.close()

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        return self._raw.tell()

    def __iter__(self) -> Iterator[str]:
        try:
            for line in iter(partial(self._stream.readline, LONGEST_LINE), b""):
                self.number += 1
                if len(line) == LONGEST_LINE:
                    raise InputError(
                        "{name} line {number} is too long to be a line of text; check the file",
                        name=self.name,
                        number=self.number,
                    )
                yield self._text(line)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise InputError("{name} is damaged or incomplete; download or create it again", name=self.name) from None

    def _text(self, line: bytes) -> str:
        try:
            text = line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                "{name} line {number} is not UTF-8 (byte 0x{line}); save the file again as UTF-8",
                name=self.name,
                number=self.number,
                line=f"{line[error.start]:02X}",
            ) from None
        if "\0" in text:
            raise InputError(
                "{name} line {number} contains NUL bytes, so it is not UTF-8 text; save it again as UTF-8",
                name=self.name,
                number=self.number,
            )
        return text.removesuffix("\n").removesuffix("\r")


def find_pair(path: Path, stems: tuple[str, ...], endings: Endings) -> Pair:
    """The two files given by a folder (and stems), a common prefix or one of the files. Raises InputError."""
    if path.is_dir():
        found = [pair for stem in stems if (pair := _pair_of(path / stem, endings))]
        if not found:
            raise InputError(
                "{path} has no pair of files such as {path_2}; {way_out}",
                path=path,
                path_2=_example(path / stems[0], endings),
                way_out=_WAY_OUT,
            )
        return found[0]
    if path.is_file() and _is_half(path, endings):
        partner = _partner(path, endings)
        if partner is None:
            raise InputError("{path} exists, but its matching file does not; {way_out}", path=path, way_out=_WAY_OUT)
        return (path, partner) if _ending(path) in {first for first, _ in endings} else (partner, path)
    if pair := _pair_of(path, endings):
        return pair
    raise InputError(
        "there is no pair of files such as {path}; {way_out}", path=_example(path, endings), way_out=_WAY_OUT
    )


def read_one(path: Path, directions: Direction, endings: Endings, data: DataSection, reading: ReadOptions) -> Rows:
    """A user's input for prediction: a pair, a file of sources without a partner, or a table."""
    half = _is_half(path, endings)
    if path.is_file() and not half and is_data_file(path) and path.suffix != ".txt":
        return Files(FileSettings()).read_file(path, data, reading)
    alone = path.is_file() and (not half or _partner(path, endings) is None)
    every = tuple(stem for stems in STEMS.values() for stem in stems)
    pair: Pair = (path, None) if alone else find_pair(path, every, endings)
    return read_pairs([pair], directions, None, reading)


def pairs_among(paths: Sequence[Path]) -> tuple[tuple[str, str], dict[str, str]] | None:
    """The two extensions and split → common prefix, if all files form pairs with the same extensions; else None."""
    files = [path for one in paths for path in (sorted(one.iterdir()) if one.is_dir() else [one]) if path.is_file()]
    files = [path for path in files if _is_half(path, ENDINGS) or _LANGUAGE.fullmatch(_ending(path))]
    for path in files:
        if path.parent in paths:
            check_inside(path, path.parent)
    endings = sorted({_ending(path) for path in files})
    known = next((pair for pair in ENDINGS if sorted(pair) == endings), None)
    if len(endings) != 2 or len(files) % 2:
        return None
    beginnings = {_strip_gz(path).with_suffix("") for path in files}
    if 2 * len(beginnings) != len(files):
        return None
    first, second = known or endings
    splits = {split: str(one) for one in sorted(beginnings) for split, stems in STEMS.items() if one.name in stems}
    if len(beginnings) == 1:
        splits = {"train": str(next(iter(beginnings)))}
    return ((first, second), splits) if "train" in splits else None


def challenge_pair(folder: Path, stem: str) -> Pair:
    """`train`, `dev` or `test` of a Tatoeba Challenge folder. Raises InputError that lists what is there."""
    if pair := _pair_of(folder / stem, (("src", "trg"),)):
        return pair
    there = [one for one in _CHALLENGE if _pair_of(folder / one, (("src", "trg"),))]
    has = (
        message("it has {there}", there=", ".join(there))
        if there
        else message("a language pair of the Tatoeba Challenge has train.src, train.trg, test.src, test.trg")
    )
    raise InputError("{folder} has no {stem}.src with a matching {stem}.trg; {has}", folder=folder, stem=stem, has=has)


def has_dev(folder: Path) -> bool:
    """Whether a Tatoeba Challenge folder has a development set; small languages have none."""
    return _pair_of(folder / "dev", (("src", "trg"),)) is not None


def _pair_of(beginning: Path, endings: Endings) -> tuple[Path, Path] | None:
    for first, second in endings:
        source, target = _existing(beginning, first), _existing(beginning, second)
        if source and target:
            return source, target
    return None


def _partner(path: Path, endings: Endings) -> Path | None:
    """The other file of this file's pair."""
    ending, beginning = _ending(path), _strip_gz(path).with_suffix("")
    others = [first if ending == second else second for first, second in endings if ending in (first, second)]
    return next((found for other in others if (found := _existing(beginning, other))), None)


def _is_half(path: Path, endings: Endings) -> bool:
    return any(_ending(path) in pair for pair in endings)


def _ending(path: Path) -> str:
    return _strip_gz(path).suffix[1:]


def _existing(beginning: Path, ending: str) -> Path | None:
    names = [f"{beginning.name}.{ending}{zipped}" for zipped in ("", ".gz")]
    return next((path for name in names if (path := beginning.with_name(name)).is_file()), None)


def _strip_gz(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".gz" else path


def _example(beginning: Path, endings: Endings) -> str:
    first, second = endings[0]
    return f"{beginning}.{first} and {beginning.name}.{second}"
