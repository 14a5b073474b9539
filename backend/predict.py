"""Owns what a trained model does with new rows: evaluate, predict, generate; the same tail as a training run's."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from backend import registry
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.places import is_offline, runs_folder
from backend.contract.run_folder import find_run
from backend.contract.spec import RunSpec, Section
from backend.data.rows import Rows, Skipped
from backend.data.sources.source import Report
from backend.engines.engine import Loaded, Loading
from backend.engines.new_rows import NewTokens
from backend.hardware import devices, planner
from backend.models import inspection
from backend.models.base_weights import check_base
from backend.run import glue_file, options, predictions_file
from backend.run.added_tokens import new_tokens
from backend.run.asked_checkpoint import begun_from, checkpoint_of, has_model, note_of
from backend.run.engine_choice import check_engine, to_ask
from backend.run.material import (
    choose_columns,
    make_source,
    make_task,
    model_labels,
    quiet,
    reading,
    usable,
    with_max_length,
)
from backend.run.model_folder import read_note
from backend.run.preparation import locate_model
from backend.run.resolving import resolve
from backend.run.session import Scored, Session
from backend.run.timing import Compiled, Timing, timed
from backend.tasks.task import generation, to_predict, used_columns
from backend.tokenizers.loading import ensure_pad_token, open_tokenizer
from backend.tokenizers.replaced import rows_needed

BATCH_SIZE = 64
OVERRIDABLE = ("hardware", "evaluation", "task", "data", "model")
"""Sections that `--set` reaches without training again."""

_LABELLED = (Head.SEQUENCE_CLASSIFICATION, Head.TOKEN_CLASSIFICATION)
"""Heads that name their labels."""


@dataclass(frozen=True)
class EvaluationResult:
    """`evaluate`: metrics over the labelled rows."""

    metrics: dict[str, float]
    rows: int
    skipped: tuple[Skipped, ...]
    timing: Timing
    notes: tuple[str, ...] = ()
    """How the task took the rows, in sentences."""


@dataclass(frozen=True)
class PredictionResult:
    """`predict`: as `evaluate`, and where the file is; `metrics` is empty where no labels are known."""

    output: Path
    metrics: dict[str, float]
    rows: int
    skipped: tuple[Skipped, ...]
    timing: Timing


@dataclass(frozen=True)
class OpenedModel:
    """A model that can be asked: the session, what became of its weights, and the device it is on."""

    session: Session
    loaded: Loaded
    device: str
    compiled: Compiled
    """What its engine has compiled since."""
    folder: Path
    """Where its configuration is."""


def evaluate(
    target: str, data: Path, task: str | None = None, changes: list[str] | None = None, report: Report = quiet
) -> EvaluationResult:
    """Measure a run's or a folder's model on a labelled file. Raises InputError, RunFailed."""
    started = time.perf_counter()
    spec = spec_of(target, task, changes or [])
    notes, rows, scored, timing = _scored(spec, data, report, started, labelled=True)
    if not scored.metrics:
        raise InputError(
            f"{data}: no row has a label, so nothing can be measured; use burnish predict instead", "data.columns.label"
        )
    return EvaluationResult(scored.metrics, len(rows), rows.skipped, timing, notes)


def predict(
    target: str,
    data: Path,
    output: Path,
    task: str | None = None,
    changes: list[str] | None = None,
    report: Report = quiet,
    glue: Path | None = None,
    parquet: Path | None = None,
    say: Callable[[str], None] = lambda stage: None,
) -> PredictionResult:
    """Write the predictions for a file, labelled or not; to `glue` as that benchmark wants them, to `parquet` for the window.

    `say` is told each stage before its `report`s. Raises InputError, RunFailed.
    """
    started = time.perf_counter()
    _check_output("--output", output, data)
    if glue is not None:
        _check_output("--glue", glue, data)
        _check_output("--glue", glue, output)
    spec = spec_of(target, task, changes or [])
    _, rows, scored, timing = _scored(spec, data, report, started, labelled=False, say=say)
    table, documents = predictions_file.joined(rows, scored.predictions), scored.predictions.documents
    predictions_file.write(table, output, parquet, documents=documents)
    if glue is not None:
        glue_file.write(rows, scored.predictions, glue)
    return PredictionResult(output.absolute(), scored.metrics, len(rows), rows.skipped, timing)


def _check_output(option: str, output: Path, other: Path) -> None:
    if not output.absolute().parent.is_dir():
        raise InputError(f"{option}: the folder {output.absolute().parent} does not exist; make it first")
    other = other.expanduser()
    is_same = output.samefile(other) if output.exists() and other.exists() else output.resolve() == other.resolve()
    if is_same:
        raise InputError(f"{option}: {output} is the file that is read, or written as well; name another one")


def generate(
    target: str,
    prompt: str,
    changes: list[str] | None = None,
    seed: int | None = None,
) -> Iterator[str]:
    """Continue `prompt` as the task's settings say, piece by piece of text as it is made, or answer it as a whole.

    `seed` repeats a sample; without it the spec's is taken. Raises InputError where the model writes no text.
    """
    spec = spec_of(target, None, changes or [], generates=True)
    task = make_task(spec)
    if task.head is Head.SEQ2SEQ_LM:
        return _answer(spec, prompt, seed)
    if task.head is not Head.CAUSAL_LM:
        raise InputError(
            f"{target}: a model for {spec.task['type']} writes no text; choose a language model or one of text to text"
        )
    session = open_model(spec).session
    chosen = replace(generation(task, session.tokenizer), seed=spec.training.seed if seed is None else seed)
    prompt_ids = ids_of_prompt(task, {used_columns(task)[0].name: prompt}, session.tokenizer)
    if not prompt_ids:
        raise InputError("--prompt: the prompt holds no token; write at least a word")
    ids = session.engine.continue_prompt(prompt_ids, chosen)
    return as_text(ids, session.tokenizer, prompt_ids)


def _answer(spec: RunSpec, prompt: str, seed: int | None) -> Iterator[str]:
    """What a model of text to text writes for one source."""
    if seed is not None:
        spec = spec.model_copy(update={"training": spec.training.model_copy(update={"seed": seed})})
    role = make_task(spec).columns[0].name
    rows = Rows(pa.table({role: [prompt]}), ("--prompt",), np.zeros(1, np.int32), np.ones(1, np.int64), "typed")
    usable(make_task(spec), rows, {role: role}, "--prompt", "predicting")
    session = replace(open_model(spec).session, columns={role: role})
    yield session.score(rows, session.typed_features(rows), 1).predictions.table["prediction"][0].as_py()


def ids_of_prompt(task: Any, cells: Mapping[str, Any], tokenizer: Any) -> list[int]:
    """The tokens that are to be continued: of a question as its task writes it out, else of the first cell's text.

    A text that ended with end-of-text would be finished already.
    """
    asked = task.prompt_ids(cells, tokenizer) if hasattr(task, "prompt_ids") else None
    if asked is not None:
        return asked
    ids, end = tokenizer(next(iter(cells.values())))["input_ids"], tokenizer.eos_token_id
    return ids[:-1] if end is not None and ids[-1:] == [end] else ids


def as_text(ids: Iterator[int], tokenizer: Any, prompt_ids: list[int]) -> Iterator[str]:
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


def spec_of(target: str, task: str | None, changes: list[str], *, generates: bool = False) -> RunSpec:
    """The spec under which a target predicts: the run's own with its `model/` or the checkpoint named, or a fresh one
    around a model folder."""
    _check_changes(changes)
    checkpoint = checkpoint_of(target)
    run = checkpoint.run if checkpoint else find_run(target, runs_folder())
    if run is not None:
        if checkpoint is None and not has_model(run):
            raise InputError(
                f"{target}: this run has no model yet; name one of its checkpoints, or let it finish, or stop it, first"
            )
        values = spec_file.read(run.spec)
        values["model"] = {
            **values["model"],
            "name_or_path": str(checkpoint.folder if checkpoint else run.model),
            "tokenizer": None,
            "initialise": "pretrained",
            "config": {},
        }
        hardware = values.get("hardware") or {}
        wish = spec_file.with_changes({"hardware": {}}, changes)["hardware"].get("engine")
        values["hardware"] = to_ask(hardware, wish)
        return resolve(spec_file.with_changes(values, changes), run.path)
    folder = Path(target).expanduser()
    note = read_note(folder) if folder.is_dir() else None
    kind = task or (note["task"]["type"] if note else _writing_task(folder) if generates else None)
    if kind is None:
        raise InputError(
            f"{target}: there is no run of that name (burnish runs lists them); for a model add --task, one of {', '.join(registry.names('task'))}"
        )
    own = note["task"] if note and note["task"]["type"] == kind else {"type": kind}
    values = {
        "task": own,
        "model": {"name_or_path": target, "trust_remote_code": True},  # a consent is asked for all the same
        "data": {"columns": note["columns"] if note else {}},
    }
    return resolve(spec_file.with_changes(values, changes), Path.cwd())


def _writing_task(folder: Path) -> str:
    """What a model of another origin does with a prompt: one with an encoder answers it, any other continues it."""
    return "seq2seq_lm" if inspection.read_config(folder).get("is_encoder_decoder") else "causal_lm"


def _check_changes(changes: list[str]) -> None:
    for change in changes:
        section = change.split(".", 1)[0].split("=", 1)[0]
        if section not in OVERRIDABLE:
            raise InputError(
                f"--set {change}: without training again only {', '.join(OVERRIDABLE)} can be changed", section
            )
        if change.startswith("data.max_rows"):
            raise InputError(
                f"--set {change}: every row of --data is taken; give a file with fewer rows", "data.max_rows"
            )


def open_model(spec: RunSpec, report: Report = quiet, *, accepts_untrained: bool = False) -> OpenedModel:
    """Tokenizer and model in place for evaluation.

    Raises InputError for weights that were not trained for the task, unless they are accepted: then a new head is drawn.
    """
    task, checkpoint = make_task(spec), checkpoint_of(spec.model.name_or_path)
    begun = begun_from(checkpoint) if checkpoint is not None else None
    if begun is not None:
        spec = spec.model_copy(update={"model": begun.model})
    folder = checkpoint.run.model if checkpoint and begun is None else locate_model(spec, report).folder
    check_engine(spec, folder, task.head, trains=False)
    inspection.check(
        folder,
        task.head,
        max_length=None,
        needs_tokenizer=spec.model.tokenizer is None,
        runs_code=spec.model.trust_remote_code,
    )
    note = note_of(checkpoint) if checkpoint is not None and begun is not None else read_note(folder)
    if begun is not None and begun.adapter is not None:
        check_base(checkpoint.folder if checkpoint else folder, note, folder)
    is_own = note is not None and note["task"]["type"] == spec.task["type"]
    facts = note["facts"] if note and is_own else _facts_of(spec, folder, accepts_untrained)
    tokenizer = open_tokenizer(
        spec.model.tokenizer or str(folder), options=spec.model.tokenizer_options, offline=is_offline()
    )
    engine_kind = registry.find("engine", spec.hardware.engine, "hardware.engine")
    choice = devices.choose(spec, engine_kind.devices())
    engine = engine_kind.create()
    pad_token_id, compiled = ensure_pad_token(tokenizer), Compiled()
    loaded = engine.load(
        Loading(
            folder=folder,
            head=task.head_facts(facts),
            model=spec.model,
            training=begun.training if begun is not None and begun.adapter is not None else None,
            devices=choice.names,
            precision=choice.precision,
            vocabulary=rows_needed(tokenizer),
            new_tokens=new_tokens(begun, tokenizer, folder) if begun is not None else NewTokens(),
            pad_token_id=pad_token_id,
            bos_token_id=tokenizer.bos_token_id,  # type: ignore[arg-type]
            eos_token_id=tokenizer.eos_token_id,  # type: ignore[arg-type]
            adapter=_in_place(begun) if begun is not None else None,
            compiling=compiled,
            hardware=planner.engine_settings(spec),
        )
    )
    if checkpoint is not None:
        engine.restore(checkpoint.folder)
        loaded = replace(loaded, new_weights=[])  # they are in the checkpoint
    if loaded.new_weights and not accepts_untrained:
        raise InputError(
            f"{spec.model.name_or_path}: this model was not trained for {spec.task['type']} (it lacks {loaded.new_weights[0]}); "
            "train it first, or choose a model that was",
            "model.name_or_path",
        )
    columns = {role: name for role, name in spec.data.columns.items() if name is not None}
    session = Session(spec, task, facts, columns, tokenizer, pad_token_id, engine)
    return OpenedModel(session, loaded, choice.words, compiled, folder)


def _in_place(begun: RunSpec) -> Section | None:
    """The adapter of a checkpoint: whatever it leaves as, here it stands in its model."""
    settings = options.adapter_settings(begun)
    known = settings is not None and "saved" in type(settings).model_fields
    return settings.model_copy(update={"saved": "merged"}) if settings is not None and known else settings


def _facts_of(spec: RunSpec, folder: Path, accepts_untrained: bool = False) -> dict[str, Any]:
    """What the configuration tells; a head that must name its labels and was never trained gets the nameless ones."""
    task = make_task(spec)
    labels = model_labels(folder)
    if not labels and accepts_untrained and task.head in _LABELLED:
        labels = tuple(getattr(task.settings, "labels", None) or inspection.nameless_labels(folder))
    return with_max_length(task, task.facts_of_model(labels), folder)


def _scored(
    spec: RunSpec,
    data: Path,
    report: Report,
    started: float,
    *,
    labelled: bool,
    say: Callable[[str], None] = lambda stage: None,
) -> tuple[tuple[str, ...], Rows, Scored, Timing]:
    """What a person should know of the rows, the rows, their predictions, and how long these took."""
    task, source = make_task(spec), make_source(spec)
    say("Reading the file")
    rows = source.read_file(data.expanduser().absolute(), spec.data, reading(report))
    columns = choose_columns(task, dict(spec.data.columns), rows, to_predict=not labelled)
    rows = usable(task, rows, columns, "--data", "measuring" if labelled else "predicting")
    say("Loading the model")
    opened = open_model(spec, report)
    session = replace(opened.session, columns=columns)
    if not labelled:
        session = replace(session, task=to_predict(task, rows, columns))
    facts = dict(session.facts)  # the session's own are part of the key under which features are kept
    if labelled:
        task.check(rows, columns, facts, "--data")
    say("Tokenising")
    source_features = session.features(rows, report)
    say("Predicting")
    ready = time.perf_counter()
    batch_size = spec.evaluation.batch_size or BATCH_SIZE
    scored = session.score(rows, source_features, batch_size, lambda done, total: report(done, total, "rows"))
    tokens = int(source_features.lengths.sum())
    timing = timed(len(rows), tokens, scored.seconds, opened.compiled.seconds, ready - started)
    return tuple(facts.get("notes", ())), rows, scored, timing
