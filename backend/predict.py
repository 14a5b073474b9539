"""Owns what a trained model does with new rows: evaluate, predict, generate; the same tail as a training run's."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend import registry
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.places import is_offline, runs_folder
from backend.contract.run_folder import find_run
from backend.contract.spec import RunSpec
from backend.contract.spec import file as spec_file
from backend.data.rows import Rows, Skipped
from backend.data.sources.source import Report
from backend.engines.engine import Loading
from backend.hardware import devices
from backend.models import inspection
from backend.run import predictions_file
from backend.run.model_folder import read_note
from backend.run.preparation import (
    choose_columns,
    locate_model,
    make_source,
    make_task,
    model_labels,
    quiet,
    reading,
    resolve,
    usable,
    with_max_length,
)
from backend.run.session import Scored, Session
from backend.tokenizers.loading import ensure_pad_token, open_tokenizer

BATCH_SIZE = 64
OVERRIDABLE = ("hardware", "evaluation", "task", "data", "model")
"""Sections that `--set` reaches without training again."""


@dataclass(frozen=True)
class EvaluationResult:
    """`evaluate`: metrics over the labelled rows; `startup_seconds` is everything before the first batch."""

    metrics: dict[str, float]
    rows: int
    skipped: tuple[Skipped, ...]
    seconds: float
    rows_per_second: float
    startup_seconds: float


@dataclass(frozen=True)
class PredictionResult:
    """`predict`: as `evaluate`, and where the file is; `metrics` is empty where no labels are known."""

    output: Path
    metrics: dict[str, float]
    rows: int
    skipped: tuple[Skipped, ...]
    seconds: float
    rows_per_second: float
    startup_seconds: float


def evaluate(
    target: str, data: Path, task: str | None = None, changes: list[str] | None = None, report: Report = quiet
) -> EvaluationResult:
    """Measure a run's or a folder's model on a labelled file. Raises InputError, RunFailed."""
    started = time.perf_counter()
    spec = _spec_of(target, task, changes or [])
    _, rows, scored, ready = _scored(spec, data, report, labelled=True)
    if not scored.metrics:
        raise InputError(
            f"{data}: no row has a label, so nothing can be measured; use burnish predict instead", "data.columns.label"
        )
    return EvaluationResult(
        scored.metrics, len(rows), rows.skipped, scored.seconds, len(rows) / scored.seconds, ready - started
    )


def predict(
    target: str,
    data: Path,
    output: Path,
    task: str | None = None,
    changes: list[str] | None = None,
    report: Report = quiet,
) -> PredictionResult:
    """Write the predictions for a file, labelled or not. Raises InputError, RunFailed."""
    started = time.perf_counter()
    if not output.absolute().parent.is_dir():
        raise InputError(f"--output: the folder {output.absolute().parent} does not exist; make it first")
    if output.exists() and output.samefile(data.expanduser()):
        raise InputError(f"--output: {output} is the file that is read; name another one")
    spec = _spec_of(target, task, changes or [])
    _, rows, scored, ready = _scored(spec, data, report, labelled=False)
    table, documents = predictions_file.joined(rows, scored.predictions), scored.predictions.documents
    predictions_file.write(table, output, documents=documents)
    return PredictionResult(
        output.absolute(), scored.metrics, len(rows), rows.skipped, scored.seconds, len(rows) / scored.seconds,
        ready - started,
    )  # fmt: skip


def generate(
    target: str,
    prompt: str,
    changes: list[str] | None = None,
    seed: int | None = None,
) -> Iterator[str]:
    """Continue `prompt` as the task's settings say, piece by piece of text as it is made.

    `seed` repeats a sample; without it the spec's is taken. Raises InputError where the model continues no text.
    """
    spec = _spec_of(target, None, changes or [], generates=True)
    task = make_task(spec)
    if task.head is not Head.CAUSAL_LM:
        raise InputError(f"{target}: a model for {spec.task['type']} continues no text; choose a language model")
    session = _open(spec)
    chosen = replace(task.generation(session.tokenizer), seed=spec.training.seed if seed is None else seed)
    prompt_ids = session.tokenizer(prompt)["input_ids"]
    end = session.tokenizer.eos_token_id
    if prompt_ids[-1:] == [end] and end is not None:
        prompt_ids = prompt_ids[:-1]  # a prompt that ends with end-of-text would be finished already
    if not prompt_ids:
        raise InputError("--prompt: the prompt holds no token; write at least a word")
    ids = session.engine.continue_prompt(prompt_ids, chosen)
    return _as_text(ids, session.tokenizer, prompt_ids)


def _as_text(ids: Iterator[int], tokenizer: Any, prompt_ids: list[int]) -> Iterator[str]:
    """Text that is certain by now: a character that is still being made of bytes waits."""
    made: list[int] = []
    said = len(tokenizer.decode(prompt_ids, skip_special_tokens=True))
    for one in ids:
        made.append(one)
        text = tokenizer.decode([*prompt_ids, *made], skip_special_tokens=True)
        if not text.endswith("\ufffd"):
            yield text[said:]
            said = len(text)
    rest = tokenizer.decode([*prompt_ids, *made], skip_special_tokens=True)[said:]
    if rest:
        yield rest


def _spec_of(target: str, task: str | None, changes: list[str], *, generates: bool = False) -> RunSpec:
    """The spec under which a target predicts: the run's own with its `model/`, or a fresh one around a model folder."""
    _check_changes(changes)
    run = find_run(target, runs_folder())
    if run is not None:
        if not (run.model / "config.json").is_file():
            raise InputError(f"{target}: this run has no model yet; let it finish, or stop it, first")
        values = spec_file.read(run.spec)
        values["model"] = {
            **values["model"],
            "name_or_path": str(run.model),
            "tokenizer": None,
            "initialise": "pretrained",
            "config": {},
        }
        return resolve(spec_file.with_changes(values, changes), run.path)
    folder = Path(target).expanduser()
    note = read_note(folder) if folder.is_dir() else None
    kind = task or (note["task"]["type"] if note else "causal_lm" if generates else None)
    if kind is None:
        raise InputError(
            f"{target}: there is no run of that name (burnish runs lists them); for a model add --task, one of {', '.join(registry.names('task'))}"
        )
    own = note["task"] if note and note["task"]["type"] == kind else {"type": kind}
    values = {
        "task": own,
        "model": {"name_or_path": target},
        "data": {"columns": note["columns"] if note else {}},
    }
    return resolve(spec_file.with_changes(values, changes), Path.cwd())


def _check_changes(changes: list[str]) -> None:
    for change in changes:
        section = change.split(".", 1)[0].split("=", 1)[0]
        if section not in OVERRIDABLE:
            raise InputError(
                f"--set {change}: without training again only {', '.join(OVERRIDABLE)} can be changed", section
            )


def _open(spec: RunSpec, report: Report = quiet) -> Session:
    """Tokenizer and model in place for evaluation."""
    task = make_task(spec)
    folder = locate_model(spec, report).folder
    inspection.check(folder, task.head, max_length=None, needs_tokenizer=spec.model.tokenizer is None)
    note = read_note(folder)
    facts = note["facts"] if note and note["task"]["type"] == spec.task["type"] else _facts_of(spec, folder)
    tokenizer = open_tokenizer(
        spec.model.tokenizer or str(folder), options=spec.model.tokenizer_options, offline=is_offline()
    )
    engine_kind = registry.find("engine", spec.hardware.engine, "hardware.engine")
    choice = devices.choose(spec, engine_kind.devices())
    engine = engine_kind.create()
    pad_token_id = ensure_pad_token(tokenizer)
    loaded = engine.load(
        Loading(
            folder=folder,
            head=task.head_facts(facts),
            model=spec.model,
            training=None,
            device=choice.name,
            precision=choice.precision,
            vocabulary=len(tokenizer),
            pad_token_id=pad_token_id,
            threads=getattr(spec.hardware, "threads", None),
        )
    )
    if loaded.new_weights:
        raise InputError(
            f"{spec.model.name_or_path}: this model was not trained for {spec.task['type']} (it lacks {loaded.new_weights[0]}); "
            "train it first, or choose a model that was",
            "model.name_or_path",
        )
    return Session(spec, task, facts, {}, tokenizer, pad_token_id, engine)


def _facts_of(spec: RunSpec, folder: Path) -> dict[str, Any]:
    task = make_task(spec)
    return with_max_length(task, task.facts_of_model(model_labels(folder)), folder)


def _scored(spec: RunSpec, data: Path, report: Report, *, labelled: bool) -> tuple[Session, Rows, Scored, float]:
    """Session, rows, their predictions, and when everything was ready to compute."""
    task, source = make_task(spec), make_source(spec)
    rows = source.read_file(data.expanduser().absolute(), spec.data, reading(report))
    columns = choose_columns(task, dict(spec.data.columns), rows, to_predict=not labelled)
    rows = usable(task, rows, columns, "--data", labelled)
    session = replace(_open(spec, report), columns=columns)
    if labelled:
        task.check(rows, columns, session.facts, "--data")
    source_features = session.features(rows, report)
    ready = time.perf_counter()
    batch_size = spec.evaluation.batch_size or BATCH_SIZE
    scored = session.score(rows, source_features, batch_size, lambda done, total: report(done, total, "rows"))
    return session, rows, scored, ready
