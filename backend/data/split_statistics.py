"""Measures what a split contains: lengths, labels, numbers and duplicates of its columns, in one pass of any size."""

import hashlib
import json
import math
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from backend.contract.messages import message
from backend.contract.rpc.data import ColumnReport, LabelShare, NumberSummary, SplitReport
from backend.data.rows import Rows
from backend.data.sources.source import Report

CountTokens = Callable[[list[Any]], list[int]]
"""Texts, or sentences as lists of words → how many tokens each has."""
MAX_LABELS = 200
"""A column with more different values holds no labels."""
REPEATED = 10
"""Values in lists, and words of texts, are labels where each occurs so often on average."""
LABEL_CHARACTERS = 200
SHOWN = 5
_CHUNK = 1000

_HASHED_AT_ONCE = 10_000


class SplitMeasure:
    """Measures one split. Close it to remove its file.

    Two rows are equal if their `inputs` are. The cells of `tagged` columns hold a label for every word.
    """

    def __init__(
        self, rows: Rows, inputs: list[str], count_tokens: CountTokens | None, cache: Path, report: Report,
        tagged: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self._rows, self._inputs, self._count_tokens, self._report = rows, inputs, count_tokens, report
        self._file, total = SpillFile(cache), len(rows)
        self._columns = {
            name: _ColumnMeasure(
                rows.table.schema.field(name).type,
                self._file.numbers(np.float64, total),
                is_tags=name in tagged,
            )
            for name in rows.table.column_names
        }
        self._hashes = self._file.numbers(np.uint64, total)
        self._sorted = self._file.numbers(np.uint64, total)
        try:
            self._measure_rows()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove the file on disk."""
        self._file.close()

    def _measure_rows(self) -> None:
        total = len(self._rows)
        for start in range(0, total, _CHUNK):
            part = self._rows.table.slice(start, _CHUNK)
            cells = {name: part[name].to_pylist() for name in part.column_names}
            for name, values in cells.items():
                self._columns[name].add(values)
            hashes = np.array(
                [_hash(row) for row in zip(*(cells[name] for name in self._inputs), strict=True)], np.uint64
            )
            self._hashes.append(hashes)
            self._sorted.append(hashes)
            self._report_progress(min(start + _CHUNK, total))
        self._sorted.sort()

    def _report_progress(self, done: int) -> None:
        total = len(self._rows)
        self._report(done, total if self._count_tokens is None else 2 * total, "rows")

    def count_in(self, other: "SplitMeasure") -> int:
        """How many of these rows the other split also contains."""
        known, found = other._sorted.map(), 0
        for part in _split_parts(self._hashes.map()):
            places = np.searchsorted(known, part)
            inside = places < len(known)
            found += int(np.count_nonzero(known[places[inside]] == part[inside]))
        return found

    def kinds(self, targets: set[str]) -> dict[str, str]:
        """Column → `label`, `text`, `number` or `other`; `targets` are treated as labels if possible."""
        return {name: column.kind(name in targets) for name, column in self._columns.items()}

    def build_report(
        self,
        parts: dict[str, str],
        kinds: dict[str, str],
        unusable: list[tuple[str, str]],
        train: "SplitMeasure | None",
    ) -> SplitReport:
        """The report: `parts` column → role; `kinds` are the training data's; `unusable` place and reason."""
        tokens = self._token_counts([name for name in self._columns if kinds.get(name) == "text"])
        duplicates, examples = self._duplicates()
        return SplitReport(
            files=list(self._rows.files),
            rows=len(self._rows),
            columns={
                name: column.build_report(parts.get(name, ""), kinds.get(name, "other"), tokens.get(name))
                for name, column in self._columns.items()
            },
            duplicates=duplicates,
            first_duplicates=examples,
            in_train=self.count_in(train) if train is not None else None,
            unusable=len(unusable),
            unusable_reasons=dict(Counter(reason for _, reason in unusable)),
            first_unusable=[
                message("{place}: {reason}", place=place, reason=reason) for place, reason in unusable[:100]
            ],
        )

    def _token_counts(self, texts: list[str]) -> dict[str, Counter[int]]:
        counts: dict[str, Counter[int]] = {name: Counter() for name in texts}
        if self._count_tokens is None:
            return {}
        total = len(self._rows)
        for start in range(0, total, _CHUNK):
            for name in texts:
                values = self._rows.table[name].slice(start, _CHUNK).to_pylist()
                given = [_split_list(value) for value in values if not _is_empty(value)]
                counts[name].update(self._count_tokens(given) if given else [])
            self._report_progress(total + min(start + _CHUNK, total))
        return counts

    def _duplicates(self) -> tuple[int, list[list[str]]]:
        known = self._sorted.map()
        twice = np.flatnonzero(known[1:] == known[:-1]) if len(known) else np.zeros(0, np.int64)
        examples: dict[int, list[str]] = {int(known[place]): [] for place in twice[: 20 * SHOWN]}
        examples = dict(list(examples.items())[:SHOWN])
        done = 0
        for part in _split_parts(self._hashes.map() if examples else np.zeros(0, np.uint64)):
            for place in np.flatnonzero(np.isin(part, np.array(list(examples), np.uint64))).tolist():
                places = examples[int(part[place])]
                if len(places) < SHOWN:
                    places.append(self._rows.place(done + place))
            done += len(part)
        return len(twice), sorted(examples.values())


class SpillFile:
    """One file in the cache folder for any number of lists of numbers. It is deleted when closed.

    Each list has its own region, which takes disk space only where it is written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Not in the system's temporary folder, which is often in memory.
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed in close)
        self._end = 0

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def numbers(self, kind: type[np.generic], most: int) -> "SpilledNumbers":
        """An empty list for at most this many numbers of one type."""
        begin, self._end = self._end, self._end + most * np.dtype(kind).itemsize
        return SpilledNumbers(self._file, begin, kind)


class SpilledNumbers:
    """Numbers of one type in a region of a file."""

    def __init__(self, file: IO[bytes], begin: int, kind: type[np.generic]) -> None:
        self._file, self._begin, self._kind = file, begin, np.dtype(kind)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, values: np.ndarray) -> None:
        """Append numbers."""
        self._file.seek(self._begin + self._count * self._kind.itemsize)
        self._file.write(values.astype(self._kind).tobytes())
        self._count += len(values)

    def map(self) -> np.ndarray:
        """All numbers in insertion order; changing them changes the file."""
        if self._count == 0:
            return np.zeros(0, self._kind)
        self._file.flush()
        return np.memmap(self._file, dtype=self._kind, mode="r+", offset=self._begin, shape=(self._count,))

    def sort(self) -> np.ndarray:
        """All numbers sorted; the insertion order is lost."""
        values = self.map()
        values.sort()
        return values


class _ColumnMeasure:
    """Counts what one column holds, cell by cell."""

    def __init__(self, kind: pa.DataType, numbers: SpilledNumbers, is_tags: bool) -> None:
        self._type, self._is_tags = kind, is_tags
        self._empty = 0
        self._split_words: Counter[int] = Counter()
        self._values: Counter[str] | None = Counter()
        self._members: Counter[str] | None = Counter()
        self._numbers = numbers
        self._is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        self._may_be_numbers = self._is_number or pa.types.is_string(kind)
        self._is_list = pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type)
        self._is_text = pa.types.is_string(kind) or self._is_list

    def add(self, cells: list[Any]) -> None:
        there = [cell for cell in cells if not _is_empty(cell)]
        self._empty += len(cells) - len(there)
        if self._may_be_numbers:
            self._add_numbers(there)
        if self._is_text:
            words = [_split_words(cell) for cell in there]
            self._split_words.update(map(len, words))
            self._members = _update_counts(self._members, (word for one in words for word in one))
        if not pa.types.is_nested(self._type):
            self._values = _update_counts(self._values, map(_format_label, there))

    def _add_numbers(self, cells: list[Any]) -> None:
        try:
            self._numbers.append(np.array([float(cell) for cell in cells], np.float64))
        except ValueError:
            self._may_be_numbers = False

    def kind(self, is_target: bool) -> str:
        """`label`, `text`, `number` or `other`."""
        if self._holds_labels(is_target):
            return "label"
        if self._is_number or (self._may_be_numbers and len(self._numbers)):
            return "number"
        return "text" if self._is_text else "other"

    def _holds_labels(self, is_target: bool) -> bool:
        labels = self._labels()
        if not labels or pa.types.is_floating(self._type):
            return False
        repeated = REPEATED if labels is self._members else 2
        return is_target or sum(labels.values()) >= repeated * len(labels)

    def _labels(self) -> Counter[str] | None:
        """The distinct values or, if there are too many, the distinct members of lists or words of texts."""
        too_many = self._values is None and self._is_text and not self._may_be_numbers
        return self._members if self._is_list or self._is_tags or too_many else self._values

    def build_report(self, part: str, kind: str, tokens: Counter[int] | None) -> ColumnReport:
        """The report on this column, treated as that kind."""
        labels = (self._labels() if kind == "label" else None) or Counter[str]()
        total = sum(labels.values())
        return ColumnReport(
            part=part,
            kind=kind,
            empty=self._empty,
            distinct=len(labels) if kind == "label" else None,
            words=summarise_counts(self._split_words) if kind == "text" else None,
            tokens=summarise_counts(tokens) if tokens else None,
            numbers=summarise_sorted(self._numbers.sort()) if self._may_be_numbers else None,
            labels=[LabelShare(label, count, count / total) for label, count in labels.most_common()],
        )


def _update_counts(counter: Counter[str] | None, values: Any) -> Counter[str] | None:
    """Update the counts; None once there are too many distinct values to be labels."""
    if counter is None:
        return None
    counter.update(values)
    return counter if len(counter) <= MAX_LABELS else None


def _is_empty(cell: Any) -> bool:
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, list) and not cell)


def _split_words(cell: Any) -> list[str]:
    return [str(one) for one in cell] if isinstance(cell, list) else cell.split()


def _split_list(cell: Any) -> Any:
    return _split_words(cell) if isinstance(cell, list) else cell


def _format_label(cell: Any) -> str:
    return (str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell))[:LABEL_CHARACTERS]


def _hash(cells: tuple[Any, ...]) -> int:
    content = json.dumps(cells, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _split_parts(values: np.ndarray) -> list[np.ndarray]:
    size = 1 << 20
    return [values[start : start + size] for start in range(0, len(values), size)]


def summarise_counts(counts: Counter[int]) -> NumberSummary | None:
    """Summarize integers, given how often each occurs; None if there are none."""
    if not counts:
        return None
    values = np.array(sorted(counts), dtype=np.float64)
    times = np.array([counts[int(value)] for value in values], dtype=np.int64)
    total = int(times.sum())
    mean = float((values * times).sum() / total)
    squares = float((times * (values - mean) ** 2).sum())
    ends = np.cumsum(times)
    return _summarise(total, mean, squares, lambda place: float(values[np.searchsorted(ends, place, side="right")]))


def summarise_sorted(values: np.ndarray) -> NumberSummary | None:
    """Summarize numbers in ascending order; None if there are none."""
    if len(values) == 0:
        return None
    mean = float(values.mean(dtype=np.float64))
    squares = sum(float(((part - mean) ** 2).sum()) for part in np.array_split(values, 1 + len(values) // (1 << 20)))
    return _summarise(len(values), mean, squares, lambda place: float(values[place]))


def _summarise(count: int, mean: float, squares: float, at: Callable[[int], float]) -> NumberSummary:
    def quantile(share: float) -> float:
        place = share * (count - 1)
        low = math.floor(place)
        return at(low) + (place - low) * (at(min(low + 1, count - 1)) - at(low))

    return NumberSummary(
        count=count,
        mean=mean,
        std=math.sqrt(squares / (count - 1)) if count > 1 else None,
        min=at(0),
        p50=quantile(0.5),
        p95=quantile(0.95),
        p99=quantile(0.99),
        p99_9=quantile(0.999),
        max=at(count - 1),
    )


def row_numbers(table: pa.Table, inputs: list[str], report: Report) -> np.ndarray:
    """(rows,) int64, equal if the inputs are; valid only within one process, which is enough here."""
    numbers = np.zeros(table.num_rows, dtype=np.int64)
    for start in range(0, table.num_rows, _HASHED_AT_ONCE):
        part = table.slice(start, _HASHED_AT_ONCE)
        columns = [map(_value, part[name].to_pylist()) for name in inputs]
        numbers[start : start + part.num_rows] = np.fromiter(
            map(hash, zip(*columns, strict=True)), dtype=np.int64, count=part.num_rows
        )
        report(start + part.num_rows, table.num_rows, "rows")
    return numbers


def count_repeated(numbers: np.ndarray) -> int:
    """Rows whose inputs occur in an earlier row."""
    return len(numbers) - len(np.unique(numbers))


def count_shared(numbers: np.ndarray, known: np.ndarray) -> int:
    """Rows whose inputs are among the known ones."""
    return int(np.isin(numbers, known).sum())


def _value(cell: Any) -> Any:
    return cell if isinstance(cell, str | int | float | bool | None) else repr(cell)
