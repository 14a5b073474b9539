"""The runs of a group as one model: each seed's answers, and the vote or mean of all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet

from backend import registry
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.output_file import check_output, output_errors
from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup
from backend.contract.safe_files import open_unlinked
from backend.data.sources.source import Report
from backend.inference import predictions_file
from backend.inference.predict import AnsweredFile, EvaluationResult, answer_file
from backend.inference.spec import has_model
from backend.inspect.run_comparison import open_run
from backend.preflight.datasets import ignore_progress
from backend.preflight.session import ScoredEvaluation
from backend.tasks.task import Predictions, Task, combine

OF_SEED = "prediction_seed_"
"""What the columns of each run's own predictions are called, before its seed."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class GroupResult:
    """What the runs of a group answer for one file."""

    each: dict[int, EvaluationResult]
    """By seed, of the runs that have a model."""
    together: EvaluationResult | None
    """Of the vote or mean; None if the task has none."""
    notes: tuple[str, ...] = ()
    output: Path | None = None


def evaluate(
    group: RunGroup, data: Path, changes: list[str], report: Report = ignore_progress, say: Say = lambda stage: None
) -> GroupResult:
    """Evaluate every run of a group, and all together, on a labelled file. Raises InputError, RunFailed."""
    answered, notes = _answer(group, data, changes, report, say, labelled=True)
    if not all(one.result.metrics for one in answered.values()):
        raise InputError(
            "{data}: no row has a label, so nothing can be evaluated; use burnish predict instead",
            "data.columns.label",
            data=data,
        )
    together = _combine(answered)
    if together is None:
        notes = (*notes, _no_vote(group, next(iter(answered.values())).session.task))
    each = {seed: one.result for seed, one in answered.items()}
    return GroupResult(each, together.result if together else None, notes)


def predict(
    group: RunGroup,
    data: Path,
    output: Path,
    changes: list[str],
    report: Report = ignore_progress,
    parquet_path: Path | None = None,
    say: Say = lambda stage: None,
) -> GroupResult:
    """Write what the runs of a group answer for a file: together, and each in a column of its own.

    Raises InputError, also if the task has no vote or mean, and RunFailed.
    """
    if parquet_path is None:  # else it is the group's own file, for the window
        check_output(output, "--output", data)
    _refuse_without_vote(group)
    answered, notes = _answer(group, data, changes, report, say, labelled=False)
    together = _combine(answered)
    assert together is not None
    table = _with_each(together.predictions, {seed: one.predictions.table for seed, one in answered.items()})
    with output_errors(output, "--output", output.parent):
        predictions_file.write(
            predictions_file.join_predictions(together.rows, Predictions(table)), output, parquet_path
        )
    each = {seed: one.result for seed, one in answered.items()}
    return GroupResult(each, together.result, notes, output.absolute())


def write_predictions(group: RunGroup) -> list[Path]:
    """Write the group's `predictions.csv`, and `predictions_test.csv`, from those of its runs; returns what is written.

    Nothing is done for what is written already, no older and of the same runs. Raises InputError, also if the task has no vote or mean.
    """
    _refuse_without_vote(group)
    own, written = RunFolder(group.path), []
    for split in ("validation", "test"):
        files = {seed: group.run(seed).predictions(split, "parquet") for seed in group.seeds()}
        there = {seed: path for seed, path in files.items() if path.is_file()}
        kept = own.predictions(split, "parquet")
        if len(there) < 2 or _is_up_to_date(kept, there):
            continue
        table = _combine_files(group, split, list(there))
        with output_errors(group.path, "", group.path):
            predictions_file.write(table, own.predictions(split), kept)
        written.append(own.predictions(split))
    return written


def _is_up_to_date(kept: Path, files: dict[int, Path]) -> bool:
    if not kept.is_file() or any(kept.stat().st_mtime_ns < path.stat().st_mtime_ns for path in files.values()):
        return False
    try:
        with open_unlinked(kept) as source, parquet.ParquetFile(source) as file:
            names = file.schema_arrow.names
    except (OSError, pa.ArrowInvalid):
        return False
    own = {name.removeprefix(OF_SEED) for name in names if name.startswith(OF_SEED)}
    return own == set(map(str, files))


def _combine_files(group: RunGroup, split: str, seeds: Sequence[int]) -> pa.Table:
    """The input columns, the answers of these runs together and of each, from their predictions files."""
    opened = [open_run(group.run(seed), group.run(seed).name, _read, split) for seed in seeds]
    first = opened[0]
    for other in opened[1:]:
        if not other.inputs.equals(first.inputs):
            raise InputError(
                "{a} and {b} predicted different rows, so their answers cannot be combined", a=first.name, b=other.name
            )
    each = [Predictions(one.outputs) for one in opened]
    _check_alike({one.name: one.table for one in opened})
    together = combine(first.task, each, first.rows, first.columns, dict(first.facts))
    assert together is not None
    own = _with_each(together, {seed: one.table for seed, one in zip(seeds, opened, strict=True)})
    return predictions_file.join_predictions(first.rows, Predictions(own))


def _read(path: str) -> pa.Table:
    with open_unlinked(Path(path)) as source, parquet.ParquetFile(source) as file:
        return file.read()


def _with_each(together: Predictions, each: dict[int, pa.Table]) -> pa.Table:
    table = together.table
    for seed, own in each.items():
        table = table.append_column(f"{OF_SEED}{seed}", own["prediction"])
    return table


def _answer(
    group: RunGroup, data: Path, changes: list[str], report: Report, say: Say, *, labelled: bool
) -> tuple[dict[int, AnsweredFile], tuple[str, ...]]:
    seeds = group.seeds()
    trained = [seed for seed in seeds if group.run(seed).exists() and has_model(group.run(seed))]
    if not trained:
        raise InputError("{name}: no run of this group has a model yet; let them finish first", name=group.name)
    found = {}
    for seed in trained:
        say(message("Seed {seed}", seed=seed))
        found[seed] = answer_file(str(group.run(seed).path), data, None, changes, report, say, labelled=labelled)
    notes = dict.fromkeys(note for one in found.values() for note in one.result.notes)
    if len(trained) < len(seeds):
        left_out = message(
            "{count} of {total} runs have a model; the others are left out", count=len(trained), total=len(seeds)
        )
        notes = {left_out: None, **notes}
    return found, tuple(notes)


def _combine(answered: dict[int, AnsweredFile]) -> AnsweredFile | None:
    """The answers of all together, scored as those of the first; None if the task has no such thing."""
    first = next(iter(answered.values()))
    session, rows = first.session, first.rows
    each = [one.predictions for one in answered.values()]
    _check_alike({str(seed): one.predictions.table for seed, one in answered.items()})
    together = combine(session.task, each, rows, session.columns, session.facts)
    if together is None:
        return None
    metrics = session.measure(together, rows)
    intervals = session.intervals(ScoredEvaluation(together, metrics, 0.0), rows)
    return replace(first, result=replace(first.result, metrics=metrics, intervals=intervals), predictions=together)


def _check_alike(tables: dict[str, pa.Table]) -> None:
    """Raises InputError if a run does not answer with the same columns as the first: it is of another training."""
    first, *others = tables
    for other in others:
        if tables[other].column_names != tables[first].column_names:
            raise InputError(
                "{a} and {b} were not trained for the same labels, so their answers cannot be combined",
                a=first,
                b=other,
            )


def _refuse_without_vote(group: RunGroup) -> None:
    kind = registry.find("task", group.read()[0]["task"]["type"], "task.type")
    if not hasattr(kind, "combine"):
        raise InputError(_no_vote(group, kind))


def _no_vote(group: RunGroup, task: "Task | type[Task]") -> str:
    return message(
        "{name}: answers of the task {title} have no vote or mean; predict with one of its runs, such as {run}",
        name=group.name,
        title=task.title,
        run=group.runs()[0].name,
    )
