"""Tests whether runs differ by more than chance, by the predictions of the validation rows that they share."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from backend import registry
from backend.contract.messages import message
from backend.contract.rpc.predictions import ComparedRuns, PairTest
from backend.contract.run.folder import RunFolder
from backend.contract.spec import validate
from backend.data.rows import Rows
from backend.metrics.metric import Predictions, Sums, declared_metrics, known_rows, resamplings
from backend.models import saved_model
from backend.statistics.paired import differences, holm
from backend.statistics.resampling import Resampling, find_group_column, group_numbers
from backend.tasks.task import sums_of

SURE = 0.05
ReadTable = Callable[[str], pa.Table]


@dataclass(frozen=True)
class _Predicted:
    """A run's predictions of its validation rows, and what its task needs to score them."""

    name: str
    kind: str
    task: Any
    facts: Mapping[str, Any]
    columns: Mapping[str, str]
    table: pa.Table

    @property
    def inputs(self) -> pa.Table:
        """The columns of the data, which come before the prediction."""
        names = self.table.column_names
        return self.table.select(names[: names.index("prediction")])

    def resamplings(self) -> dict[Any, Resampling]:
        """The families of the task's metrics for these rows."""
        rows = Rows(
            self.inputs, (self.name,), np.zeros(len(self.table), np.int32), np.arange(len(self.table)), self.name
        )
        sums: Sums = sums_of(self.task, self.table, rows, self.columns)
        predictions = Predictions(self.table, sums)
        return resamplings(declared_metrics(self.task.metrics), predictions, self.facts, self.task.settings)


def compare(folders: Sequence[RunFolder], names: Sequence[str], read: ReadTable) -> ComparedRuns:
    """Each metric of every pair of runs; `names` are shown, `read` opens a predictions file.

    Raises InputError if predictions cannot be read.
    """
    try:
        every = [_open(folder, name, read) for folder, name in zip(folders, names, strict=True)]
        every = _align(every)
    except _NotComparable as reason:
        return ComparedRuns(refusal=str(reason))
    column = find_group_column(every[0].table, every[0].columns.get("context"))
    groups = group_numbers(every[0].table[column]) if column is not None else None
    tests = [test for pair in combinations(every, 2) for test in _test(*pair, groups)]
    corrected = _correct(tests)
    task = every[0].task
    [title] = [one.title for one in declared_metrics(task.metrics) if one.name == task.default_metric]
    sentences = [_say(test, title) for test in corrected if test.metric == task.default_metric]
    return ComparedRuns(tests=corrected, sentences=sentences)


class _NotComparable(Exception):
    """Why these runs cannot be tested, in a sentence."""


def _open(folder: RunFolder, name: str, read: ReadTable) -> _Predicted:
    note = saved_model.read_note(folder.model)
    path = folder.predictions("validation", "parquet")
    if note is None or not path.is_file():
        raise _NotComparable(
            message("{name} has no predictions of validation rows, so only its metrics are shown", name=name)
        )
    kind = registry.find("task", note["task"]["type"], "task.type")
    task = kind(validate(kind.Settings, note["task"], "task"))
    table = read(str(path))
    if not {"prediction", "actual"} <= set(table.column_names):
        raise _NotComparable(message("the validation rows of {name} have no known answers", name=name))
    return _Predicted(name, note["task"]["type"], task, note["facts"], note["columns"], table)


def _align(every: list[_Predicted]) -> list[_Predicted]:
    """The same rows in the same order. Raises _NotComparable if the runs were not evaluated on the same."""
    first = every[0]
    if other := next((one for one in every if one.kind != first.kind), None):
        raise _NotComparable(
            message("{a} and {b} have different tasks, so their metrics cannot be compared", a=first.name, b=other.name)
        )
    keys = [list(_keys(one)) for one in every]
    for own, key in zip(every[1:], keys[1:], strict=True):
        if sorted(key) != sorted(keys[0]):
            shared = len(set(key) & set(keys[0]))
            raise _NotComparable(
                message(
                    "{a} and {b} were evaluated on different rows ({shared} are the same, of {rows_a} and {rows_b}), so "
                    "nothing is tested; evaluate both on one file",
                    a=first.name,
                    b=own.name,
                    shared=shared,
                    rows_a=len(keys[0]),
                    rows_b=len(key),
                )
            )
    orders = [sorted(range(len(key)), key=key.__getitem__) for key in keys]
    tables = [one.table.take(pa.array(order, pa.int64())) for one, order in zip(every, orders, strict=True)]
    known = pa.array(known_rows(Predictions(tables[0])))
    return [replace(one, table=table.take(known)) for one, table in zip(every, tables, strict=True)]


def _keys(one: _Predicted) -> Iterator[bytes]:
    """What tells each row from others: a digest of its cells in the data and of its answer."""
    columns = [one.inputs[name].to_pylist() for name in sorted(one.inputs.column_names)]
    for cells in zip(*columns, one.table["actual"].to_pylist(), strict=True):
        yield hashlib.blake2b(msgspec.json.encode(cells, enc_hook=str), digest_size=16).digest()


def _test(first: _Predicted, second: _Predicted, groups: np.ndarray | None) -> list[PairTest]:
    rows = first.table.num_rows
    own, others = first.resamplings(), second.resamplings()
    pairs = [(own[family], others[family]) for family in own if family in others]
    return [
        PairTest(
            metric=name, test=one.test, a=first.name, b=second.name, values=one.values, difference=one.value,
            interval=one.interval, p=one.p, p_holm=one.p, rows=rows, detectable=one.detectable,
            rows_needed=one.rows_needed(rows),
        )
        for name, one in differences(pairs, rows, groups).items()
    ]  # fmt: skip


def _correct(tests: list[PairTest]) -> list[PairTest]:
    """With Holm's correction for the pairs of each metric."""
    corrected: dict[int, float] = {}
    for metric in {test.metric for test in tests}:
        own = [place for place, test in enumerate(tests) if test.metric == metric]
        corrected |= zip(own, holm([tests[place].p for place in own]), strict=True)
    return [msgspec.structs.replace(test, p_holm=corrected[place]) for place, test in enumerate(tests)]


def _say(test: PairTest, title: str) -> str:
    """The result in words; `title` is the metric's."""
    a, b = test.values
    found = {"a": test.a, "b": test.b, "title": title, "value_a": a, "value_b": b, "rows": test.rows}
    if test.difference == 0:
        return message("{a} and {b} have the same result on these {rows:,} rows: {title} {value_a:.4g}", **found)
    low, high = test.interval
    found |= {"p": test.p_holm, "low": low, "high": high}
    if test.p_holm >= SURE:
        return message(
            "these {rows:,} rows do not tell {a} and {b} apart: {title} {value_a:.4g} and {value_b:.4g}, a difference of {low:.2g} to "
            "{high:.2g} (p = {p:.2g}); you would need about {needed:,} rows",
            **found,
            needed=test.rows_needed or 0,
        )
    return message(
        "{a} and {b} differ by more than chance: {title} {value_a:.4g} and {value_b:.4g}, a difference of {low:.2g} to {high:.2g} "
        "(p = {p:.2g})",
        **found,
    )
