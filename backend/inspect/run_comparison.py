"""Tests whether runs or groups differ by more than chance, by the predictions of the validation rows that they share."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from backend import registry
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.messages import message, plural
from backend.contract.rpc.predictions import ComparedRuns, DifferingRows, PairTest
from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup
from backend.contract.spec import validate
from backend.data.rows import Rows
from backend.metrics.metric import Predictions, Sums, declared_metrics, known_rows, weighted_scores
from backend.models import saved_model
from backend.statistics.paired import Resampled, differences, group_differences, holm, resample
from backend.statistics.resampling import FEWEST, WeightedScores, find_group_column, group_numbers
from backend.tasks.task import sums_of, vote

SURE = 0.05
LONGEST_CELL = 500
"""Characters of a cell that is shown."""
ReadTable = Callable[[str], pa.Table]
Compared = RunFolder | RunGroup | Sequence[RunFolder]
"""A run, or several that differ only in their seeds."""


@dataclass(frozen=True)
class PredictedRows:
    """A run's predictions of its validation or test rows, and what its task needs to score them."""

    name: str
    folder: RunFolder
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

    @property
    def outputs(self) -> pa.Table:
        """The prediction, the answer and the task's own columns."""
        names = self.table.column_names
        return self.table.select(names[names.index("prediction") :])

    @property
    def rows(self) -> Rows:
        """The same as the rows of a file."""
        files, lines = np.zeros(len(self.table), np.int32), np.arange(len(self.table))
        return Rows(self.inputs, (self.name,), files, lines, self.name)

    @property
    def groups(self) -> np.ndarray | None:
        """(rows,) the number of the group of each row, if rows depend on each other as the run's settings say."""
        wanted = _group_column_of(self.folder)
        if wanted == "none":
            return None
        there = wanted in self.inputs.column_names
        column = wanted if there else find_group_column(self.inputs, self.columns.get("context"))
        return None if column is None else group_numbers(self.inputs[column])

    def weighted_scores(self, scored_as: "PredictedRows") -> list[WeightedScores]:
        """The families of the task's metrics for these rows, with another run's labels and settings, so that both are scored alike.

        Raises InputError if the note of that run's model lacks them.
        """
        sums: Sums = sums_of(self.task, self.table, self.rows, self.columns)
        predictions, metrics = Predictions(self.table, sums), declared_metrics(self.task.metrics)
        try:
            return list(weighted_scores(metrics, predictions, scored_as.facts, scored_as.task.settings).values())
        except KeyError:
            raise saved_model.damaged_note_error(scored_as.folder.model) from None


def _group_column_of(folder: RunFolder) -> str:
    """The setting `evaluation.group_column` of a run or group; `auto` if its spec cannot be read."""
    try:
        spec = spec_file.read_run(folder.spec) if folder.exists() else RunGroup(folder.path).settings()
        return str((spec.get("evaluation") or {}).get("group_column") or "auto")
    except (InputError, AttributeError):
        return "auto"


def compare(compared: Sequence[Compared], names: Sequence[str], read: ReadTable, *, metric: str = "") -> ComparedRuns:
    """Each metric of every pair of runs and groups; `names` are shown, `read` opens a predictions file.

    The sentences are about `metric` if it was tested, else about the task's own.
    """
    try:
        opened = [_open(one, name, read) for one, name in zip(compared, names, strict=True)]
        aligned = iter(_align([run for runs in opened for run in runs]))
        every = [[next(aligned) for _ in runs] for runs in opened]
        tests = _correct(_test_pairs(every, names))
    except InputError as reason:
        return ComparedRuns(refusal=str(reason))
    task, measured = every[0][0].task, {test.metric for test in tests}
    shown = next(name for name in (metric, task.default_metric, *(test.metric for test in tests)) if name in measured)
    title = next((one.title for one in declared_metrics(task.metrics) if one.name == shown), shown)
    return ComparedRuns(tests=tests, sentences=[_say(test, title) for test in tests if test.metric == shown])


def find_differing(
    compared: Sequence[RunFolder | RunGroup], names: Sequence[str], read: ReadTable, most: int
) -> DifferingRows:
    """The rows that two runs or groups answer differently, at most so many of them. Raises InputError."""
    opened = [_open(one, name, read) for one, name in zip(compared, names, strict=True)]
    aligned = iter(_align([run for runs in opened for run in runs]))
    first, second = ([next(aligned) for _ in runs] for runs in opened)
    a, b = _answers(first), _answers(second)
    table = first[0].table
    actual = table["actual"].to_pylist()
    if isinstance(actual[0], float):  # the larger their distance, the more they differ
        order = sorted((row for row in range(len(a)) if a[row] != b[row]), key=lambda row: -abs(a[row] - b[row]))
        right: list[int] = []
        wrong: list[int] = []
    else:
        right = [row for row in range(len(a)) if a[row] == actual[row] != b[row]]
        wrong = [row for row in range(len(a)) if b[row] == actual[row] != a[row]]
        both = [row for row in range(len(a)) if a[row] != b[row] and actual[row] not in (a[row], b[row])]
        order = [*right, *wrong, *both]
    columns = [*first[0].inputs.column_names, "actual"]
    cells = table.select(columns).take(pa.array(order[:most], pa.int64())).to_pylist()
    rows = [
        [*(_cell(own[name]) for name in columns), _cell(a[row]), _cell(b[row])]
        for own, row in zip(cells, order, strict=False)
    ]
    return DifferingRows(
        columns=columns, rows=rows, only_a=len(right), only_b=len(wrong), count=len(order), of=len(a)
    )  # fmt: skip


def _answers(runs: Sequence[PredictedRows]) -> list[Any]:
    """The answer to each row: a group's is a vote, or the mean of numbers."""
    each = [run.table["prediction"].to_pylist() for run in runs]
    if len(each) > 1 and isinstance(each[0][0], float):
        return np.mean(each, axis=0).tolist()
    return vote(each) if len(each) > 1 else each[0]


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"


def _open(compared: Compared, name: str, read: ReadTable) -> list[PredictedRows]:
    """The run, or those of a group that have predictions. Raises InputError if these are none, or a single one."""
    if isinstance(compared, RunFolder):
        return [open_run(compared, name, read)]
    runs = compared.made_runs() if isinstance(compared, RunGroup) else compared
    there = [run for run in runs if run.predictions("validation", "parquet").is_file()]
    if len(there) < 2:
        raise InputError(
            "{name}: {count} of its runs have predictions of validation rows; a group is compared by two or more",
            name=name,
            count=len(there),
        )
    return [open_run(run, run.name, read) for run in there]


def open_run(
    folder: RunFolder, name: str, read: ReadTable, split: str = "validation", model: RunFolder | None = None
) -> PredictedRows:
    """A run's predictions; `name` is shown, `model` is the run whose model made them. Raises InputError if it has none."""
    note = saved_model.read_note((model or folder).model)
    path = folder.predictions(split, "parquet")
    if note is None or not path.is_file():
        raise InputError("{name} has no predictions of validation rows, so only its metrics are shown", name=name)
    kind = registry.find("task", note["task"]["type"], "task.type")
    task = kind(validate(kind.Settings, note["task"], "task"))
    return PredictedRows(name, folder, note["task"]["type"], task, note["facts"], note["columns"], read(str(path)))


def _align(every: list[PredictedRows]) -> list[PredictedRows]:
    """The same rows in the same order. Raises InputError if the runs' predictions cannot be compared."""
    for one in every:
        if not {"prediction", "actual"} <= set(one.table.column_names):
            raise InputError("the validation rows of {name} have no known answers", name=one.name)
    first = every[0]
    keys = [list(_keys(one)) for one in every]
    for other, own in zip(every[1:], keys[1:], strict=True):
        if other.kind != first.kind:
            raise InputError(
                "{a} and {b} have different tasks, so their metrics cannot be compared", a=first.name, b=other.name
            )
        if first.kind == "text_classification" and _labels_of(other) != _labels_of(first):
            raise InputError(
                "{a} and {b} have different labels, so their metrics cannot be compared", a=first.name, b=other.name
            )
        shared = (Counter(own) & Counter(keys[0])).total()
        if not shared == len(own) == len(keys[0]):
            raise InputError(
                "{a} and {b} were evaluated on different rows ({shared} are the same, of {rows_a} and {rows_b}), so "
                "nothing is tested; evaluate both on one file",
                a=first.name,
                b=other.name,
                shared=shared,
                rows_a=len(keys[0]),
                rows_b=len(own),
            )
    orders = [sorted(range(len(key)), key=key.__getitem__) for key in keys]
    tables = [one.table.take(pa.array(order, pa.int64())) for one, order in zip(every, orders, strict=True)]
    known = pa.array(known_rows(Predictions(tables[0])))
    if len(known) < FEWEST:
        raise InputError(
            "{rows} rows with known answers are too few for a test; evaluate the runs on {fewest} or more",
            rows=len(known),
            fewest=FEWEST,
        )
    tables = [table.take(known) for table in tables]
    if first.kind == "causal_lm" and not all(_tokens_of(table) == _tokens_of(tables[0]) for table in tables):
        # Losses of different tokenizers are means over different tokens; without this column there are none.
        tables = [table.drop_columns([name for name in table.column_names if name == "tokens"]) for table in tables]
    return [replace(one, table=table) for one, table in zip(every, tables, strict=True)]


def _tokens_of(table: pa.Table) -> list[int]:
    return table["tokens"].to_pylist() if "tokens" in table.column_names else []


def _labels_of(one: PredictedRows) -> tuple[set[str], Any]:
    """The labels, and what stands between those of a row, if it has several."""
    return set(one.facts.get("labels", ())), one.facts.get("separator")


def _keys(one: PredictedRows) -> Iterator[bytes]:
    """What tells each row from others: a digest of its cells in the data and of its answer."""
    columns = [one.inputs[name].to_pylist() for name in sorted(one.inputs.column_names)]
    for cells in zip(*columns, one.table["actual"].to_pylist(), strict=True):
        yield hashlib.blake2b(msgspec.json.encode(cells, enc_hook=str), digest_size=16).digest()


def _test_pairs(every: Sequence[Sequence[PredictedRows]], names: Sequence[str]) -> list[PairTest]:
    """Raises InputError if the runs have no metric that can be tested."""
    first = every[0][0]
    groups, rows = first.groups, first.table.num_rows
    measured = [
        (name, [resample(one.weighted_scores(first), rows, groups) for one in runs])
        for name, runs in zip(names, every, strict=True)
    ]
    tests = [test for pair in combinations(measured, 2) for test in _test(*pair, rows)]
    if not tests:
        raise InputError("these runs have no metric that can be tested; loss and perplexity need the same tokenizer")
    return tests


def _test(first: tuple[str, list[Resampled]], second: tuple[str, list[Resampled]], rows: int) -> list[PairTest]:
    (a, own), (b, others) = first, second
    seeds = len(own), len(others)
    found = differences(own[0], others[0]) if seeds == (1, 1) else group_differences(own, others)
    return [
        PairTest(
            metric=name, test=one.test, a=a, b=b, values=one.values, difference=one.value, interval=one.interval,
            p=one.p, p_holm=one.p, rows=rows, detectable=one.detectable, rows_needed=one.rows_needed(rows), seeds=seeds,
            seeds_needed=one.seeds_needed(),
        )
        for name, one in found.items()
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
    named = {"a": test.a, "b": test.b}
    if test.seeds != (1, 1):
        named = {
            end: plural("{name} ({count} seed)", "{name} ({count} seeds)", count, name=name)
            for (end, name), count in zip(named.items(), test.seeds, strict=True)
        }
    found = {**named, "title": title, "value_a": a, "value_b": b, "rows": test.rows}
    if test.difference == 0:
        return message("{a} and {b} have the same result on these {rows:,} rows: {title} {value_a:.4g}", **found)
    low, high = test.interval
    found |= {"p": test.p_holm, "low": low, "high": high}
    if test.p_holm < SURE:
        return message(
            "{a} and {b} differ by more than chance: {title} {value_a:.4g} and {value_b:.4g}, a difference of {low:.2g} to {high:.2g} "
            "(p = {p:.2g})",
            **found,
        )
    if test.seeds_needed is not None and test.seeds_needed > max(test.seeds):
        return message(
            "these {rows:,} rows do not tell {a} and {b} apart: {title} {value_a:.4g} and {value_b:.4g}, a difference of {low:.2g} to "
            "{high:.2g} (p = {p:.2g}); you would need about {needed:,} seeds of each",
            **found,
            needed=test.seeds_needed,
        )
    if test.rows_needed is None or test.rows_needed <= test.rows:  # only for one pair, of so many
        return message(
            "these {rows:,} rows do not tell {a} and {b} apart: {title} {value_a:.4g} and {value_b:.4g}, a difference of {low:.2g} to "
            "{high:.2g} (p = {p:.2g})",
            **found,
        )
    return message(
        "these {rows:,} rows do not tell {a} and {b} apart: {title} {value_a:.4g} and {value_b:.4g}, a difference of {low:.2g} to "
        "{high:.2g} (p = {p:.2g}); you would need about {needed:,} rows",
        **found,
        needed=test.rows_needed,
    )
