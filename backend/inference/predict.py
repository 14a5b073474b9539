"""Evaluates, predicts and generates with a trained model, through the same final stage as a training run."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.metrics import Interval
from backend.contract.output_file import check_output, output_errors
from backend.contract.spec import RunSpec
from backend.data.rows import Rows, SkippedRow
from backend.data.sources.source import Report
from backend.inference import predictions_file
from backend.inference.model import open_model
from backend.inference.new_file import NewFile, read_new_file
from backend.inference.spec import spec_of
from backend.preflight.datasets import choose_columns, drop_unusable, ignore_progress, make_task, misread
from backend.preflight.session import FeatureSession
from backend.preflight.timing import Timing, build_timing
from backend.tasks.task import Predictions, generation, to_predict, trivial_scores, used_columns

BATCH_SIZE = 64


@dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """The result of `evaluate`: metrics over the labelled rows."""

    metrics: dict[str, float]
    intervals: dict[str, Interval]
    """The 95 % confidence interval of each metric that has one."""
    trivial: dict[str, float]
    """What a rule without a model reaches on these rows, such as the commonest label."""
    rows: int
    skipped: tuple[SkippedRow, ...]
    timing: Timing
    notes: tuple[str, ...] = ()
    """How the task took the rows, in sentences."""


@dataclass(frozen=True, kw_only=True)
class PredictionResult(EvaluationResult):
    """The result of `predict`: as `evaluate`, and the file's path; `metrics` is empty if no labels are known."""

    output: Path


@dataclass(frozen=True)
class AnsweredFile:
    """A file with every answer of a model, and what is needed to score others for the same rows."""

    result: EvaluationResult
    rows: Rows
    predictions: Predictions
    session: FeatureSession


def evaluate(
    target: str,
    data: Path,
    task: str | None = None,
    changes: list[str] | None = None,
    report: Report = ignore_progress,
    say: Callable[[str], None] = lambda stage: None,
) -> EvaluationResult:
    """Evaluate a run's or folder's model on a labelled file.

    `say` is told each stage before its `report`s. Raises InputError, RunFailed.
    """
    result = answer_file(target, data, task, changes, report, say, labelled=True).result
    if not result.metrics:
        raise InputError(
            "{data}: no row has a label, so nothing can be evaluated; use burnish predict instead",
            "data.columns.label",
            data=data,
        )
    return result


def predict(
    target: str,
    data: Path,
    output: Path,
    task: str | None = None,
    changes: list[str] | None = None,
    report: Report = ignore_progress,
    glue: Path | None = None,
    parquet: Path | None = None,
    say: Callable[[str], None] = lambda stage: None,
) -> PredictionResult:
    """Write predictions for a file, labelled or not; to `glue` in its format, to `parquet` for the window.

    `say` is told each stage before its `report`s. Raises InputError, RunFailed.
    """
    if parquet is None:  # else it is the run's own file, for the window
        check_output(output, "--output", data)
    if glue is not None:
        check_output(glue, "--glue", data, output)
    answered = answer_file(target, data, task, changes, report, say, labelled=False)
    rows, predictions = answered.rows, answered.predictions
    table, documents = predictions_file.join_predictions(rows, predictions), predictions.documents
    with output_errors(output, "--output", output.parent):
        predictions_file.write(table, output, parquet, documents=documents)
    if glue is not None:
        with output_errors(glue, "--glue", glue.parent):
            predictions_file.write_glue(rows, predictions, glue)
    return PredictionResult(**vars(answered.result), output=output.absolute())


def generate(
    target: str,
    prompt: str,
    changes: list[str] | None = None,
    seed: int | None = None,
) -> Iterator[str]:
    """Continue `prompt` with the task's settings, yielding text as it is generated, or answer it as a whole.

    `seed` repeats a sample; the default is the spec's. Raises InputError if the model does not generate text.
    """
    spec = spec_of(target, None, changes or [], generates=True)
    task = make_task(spec)
    if task.head is Head.SEQ2SEQ_LM:
        return _answer(spec, prompt, seed)
    if task.head is not Head.CAUSAL_LM:
        raise InputError(
            "{target}: a model for {task} does not generate text; choose a causal or a "
            "sequence-to-sequence language model",
            target=target,
            task=spec.task["type"],
        )
    session = open_model(spec).session
    chosen = replace(generation(task, session.tokenizer), seed=spec.training.seed if seed is None else seed)
    prompt_ids = ids_of_prompt(task, {used_columns(task)[0].name: prompt}, session.tokenizer)
    if not prompt_ids:
        raise InputError("--prompt: the prompt has no tokens; enter at least one word")
    ids = session.engine.continue_prompt(prompt_ids, chosen)
    return as_text(ids, session.tokenizer, prompt_ids)


def _answer(spec: RunSpec, prompt: str, seed: int | None) -> Iterator[str]:
    """What a text-to-text model generates for one source."""
    if seed is not None:
        spec = spec.model_copy(update={"training": spec.training.model_copy(update={"seed": seed})})
    role = make_task(spec).columns[0].name
    rows = Rows(pa.table({role: [prompt]}), ("--prompt",), np.zeros(1, np.int32), np.ones(1, np.int64), "typed")
    drop_unusable(make_task(spec), rows, {role: role}, "--prompt", "predicting")
    session = replace(open_model(spec).session, columns={role: role})
    yield session.score(rows, session.typed_features(rows), 1).predictions.table["prediction"][0].as_py()


def ids_of_prompt(task: Any, cells: Mapping[str, Any], tokenizer: Any) -> list[int]:
    """The tokens to continue: of a question as its task formats it, else of the first cell's text.

    A text that ended with an end-of-text token would already be finished.
    """
    prompt = task.prompt_ids(cells, tokenizer) if hasattr(task, "prompt_ids") else None
    if prompt is not None:
        return prompt
    ids, end = tokenizer(next(iter(cells.values())))["input_ids"], tokenizer.eos_token_id
    return ids[:-1] if end is not None and ids[-1:] == [end] else ids


def as_text(ids: Iterator[int], tokenizer: Any, prompt_ids: list[int]) -> Iterator[str]:
    """The text that is final by now: a character with bytes still missing is held back."""
    made: list[int] = []
    prompt_length = len(tokenizer.decode(prompt_ids, skip_special_tokens=True))
    for one in ids:
        made.append(one)
        text = tokenizer.decode([*prompt_ids, *made], skip_special_tokens=True)
        if not text.endswith("\ufffd"):
            yield text[prompt_length:]
            prompt_length = len(text)
    rest = tokenizer.decode([*prompt_ids, *made], skip_special_tokens=True)[prompt_length:]
    if rest:
        yield rest


def answer_file(
    target: str,
    data: Path,
    task: str | None,
    changes: list[str] | None,
    report: Report,
    say: Callable[[str], None],
    *,
    labelled: bool,
    calibrated: bool = True,
) -> AnsweredFile:
    """Answer every row of a file, and measure the answers that are known; `labelled` requires them. See `evaluate`."""
    started = time.perf_counter()
    new = read_new_file(target, data, task, changes, report, say, to_predict=not labelled)
    return _answer_rows(new, report, started, labelled=labelled, calibrated=calibrated, say=say)


def _answer_rows(
    new: NewFile, report: Report, started: float, *, labelled: bool, calibrated: bool, say: Callable[[str], None]
) -> AnsweredFile:
    spec, rows = new.spec, new.rows
    task, wrong = make_task(spec), misread({"--data": rows}, spec.data)
    columns = choose_columns(task, dict(spec.data.columns), rows, to_predict=not labelled)
    rows = drop_unusable(task, rows, columns, "--data", "measuring" if labelled else "predicting")
    say("Loading the model")
    opened = open_model(spec, report, calibrated=calibrated)
    session = replace(opened.session, columns=columns)
    if not labelled:
        session = replace(session, task=to_predict(task, rows, columns))
    facts = dict(session.facts)  # the session's own are part of the key under which features are kept
    if labelled:
        task.check(rows, columns, facts, "--data")
        session.group_column(rows)  # says now if it is missing
    say("Tokenizing")
    source_features = session.features(rows, report)
    say("Predicting")
    ready = time.perf_counter()
    batch_size = spec.evaluation.batch_size or BATCH_SIZE
    scored = session.score(rows, source_features, batch_size, lambda done, total: report(done, total, "rows"))
    tokens = int(source_features.lengths.sum())
    say("Computing intervals")
    found = session.intervals(scored, rows)
    trivial = trivial_scores(session.task, rows, columns, facts) if scored.metrics else {}
    timing = build_timing(len(rows), tokens, scored.seconds, opened.compiled.seconds, ready - started)
    notes = (*(facts.get("notes", ()) if labelled else ()), *filter(None, [new.note, wrong]))
    result = EvaluationResult(
        metrics=scored.metrics, intervals=found, trivial=trivial, rows=len(rows), skipped=rows.skipped, timing=timing,
        notes=notes,
    )  # fmt: skip
    return AnsweredFile(result, rows, scored.predictions, session)
