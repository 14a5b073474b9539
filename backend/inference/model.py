"""Loads a model for inference: tokenizer, weights and device, without what training needs."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend import registry
from backend.contract.errors import InputError
from backend.contract.heads import HeadFacts
from backend.contract.spec import RunSpec, Section
from backend.data.sources.source import Report
from backend.engines.engine import LoadedModel, LoadRequest
from backend.engines.initial_weights import NewTokens
from backend.engines.weight_formats import FORMATS, QUANTIZED
from backend.hardware import devices, run_sizes
from backend.inference.spec import checkpoint_of, note_of, start_spec
from backend.models import calibration, inspection
from backend.models.adapter_files import is_alone
from backend.models.saved_model import BASE, check_base, damaged_note_error, read_note
from backend.preflight import model_options
from backend.preflight.checks import locate_model
from backend.preflight.datasets import ignore_progress, make_task, model_labels, with_max_length
from backend.preflight.engine_choice import check_engine
from backend.preflight.session import FeatureSession, new_tokens
from backend.preflight.timing import CompileTimer
from backend.tasks.task import Task, spread_columns, used_columns
from backend.tokenizers.added_tokens import rows_needed
from backend.tokenizers.loading import ensure_pad_token, open_tokenizer

_PER_ROW = "labels_per_row"


@dataclass(frozen=True)
class OpenedModel:
    """A model ready for inference: the session, what happened to its weights, and its device."""

    session: FeatureSession
    loaded: LoadedModel
    device: str
    compiled: CompileTimer
    """What its engine has compiled since."""
    folder: Path
    """Where its configuration is."""


def open_model(
    spec: RunSpec, report: Report = ignore_progress, *, accepts_untrained: bool = False, calibrated: bool = True
) -> OpenedModel:
    """Load tokenizer and model for evaluation; a checkpoint's probabilities are never `calibrated`.

    Raises InputError for weights not trained for the task, unless they are accepted: then a new head is drawn.
    """
    task, checkpoint = make_task(spec), checkpoint_of(spec.model.name_or_path)
    begun = start_spec(checkpoint) if checkpoint is not None else None
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
    spec = _with_weights_of_adapter(spec, folder, note)
    is_own = note is not None and note["task"]["type"] == spec.task["type"]
    if note is not None and is_own:
        _check_labels_per_row(spec, note)
    facts = note["facts"] if note and is_own else _facts_of(spec, folder, accepts_untrained)
    tokenizer = open_tokenizer(spec.model.tokenizer or str(folder), options=spec.model.tokenizer_options)
    engine_kind = registry.find("engine", spec.hardware.engine, "hardware.engine")
    choice = devices.choose(spec, engine_kind.devices())
    engine = engine_kind.create()
    pad_token_id, compiled = ensure_pad_token(tokenizer), CompileTimer()
    loaded = engine.load(
        LoadRequest(
            folder=folder,
            head=_head_facts(task, facts, folder),
            model=spec.model,
            training=begun.training if begun is not None and begun.adapter is not None else None,
            devices=choice.names,
            precision=choice.precision,
            vocabulary=rows_needed(tokenizer),
            new_tokens=new_tokens(begun, tokenizer, folder) if begun is not None else NewTokens(),
            pad_token_id=pad_token_id,
            bos_token_id=tokenizer.bos_token_id,  # type: ignore[arg-type]
            eos_token_id=tokenizer.eos_token_id,  # type: ignore[arg-type]
            adapter=_adapter_in_place(begun) if begun is not None else None,
            compiling=compiled,
            hardware=run_sizes.engine_settings(spec),
        )
    )
    if checkpoint is not None:
        engine.restore(checkpoint.folder)
        loaded = replace(loaded, new_weights=[])  # they are in the checkpoint
    if loaded.new_weights and not accepts_untrained:
        raise InputError(
            "{name_or_path}: this model was not trained for {task} (it lacks {new_weights}); train "
            "it first, or choose one that was trained for it",
            "model.name_or_path",
            name_or_path=spec.model.name_or_path,
            task=spec.task["type"],
            new_weights=loaded.new_weights[0],
        )
    given, _ = spread_columns(used_columns(task), spec.data.columns)
    columns = {role: name for role, name in given.items() if name is not None}
    scaling = _calibration_of(folder, task, facts) if calibrated and checkpoint is None else None
    session = FeatureSession(spec, task, facts, columns, tokenizer, pad_token_id, engine, scaling)
    return OpenedModel(session, loaded, choice.words, compiled, folder)


def _calibration_of(folder: Path, task: Task, facts: dict[str, Any]) -> calibration.Calibration | None:
    return calibration.read_for(folder, task.head, len(facts["labels"]) if task.head.declared.names_labels else None)


def _check_labels_per_row(spec: RunSpec, note: dict[str, Any]) -> None:
    """Raises InputError if the model has learned to give one label where many are asked of it, or the other way round."""
    own = note["task"].get(_PER_ROW, "one")
    if spec.task.get(_PER_ROW, "one") != own:
        raise InputError(
            "task.labels_per_row: this model was trained with {own}, which only training again can change",
            "task.labels_per_row",
            own=own,
        )


def _with_weights_of_adapter(spec: RunSpec, folder: Path, note: dict[str, Any] | None) -> RunSpec:
    """The spec with an adapter's model held as it was in training; otherwise its outputs would differ.

    Raises InputError if that is not possible here.
    """
    base, model = (note or {}).get(BASE), spec.model
    trained_on = base.get("format") if isinstance(base, dict) and is_alone(folder) else None
    if model.weights == "auto" and trained_on in FORMATS:
        model = model.model_copy(update={"weights": trained_on})
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    if model.weights in QUANTIZED and model.weights not in engine.weight_formats:
        raise InputError(
            "hardware.engine: {title} cannot hold this model's weights in {weights}; choose PyTorch",
            "hardware.engine",
            weights=model.weights,
            title=engine.title,
        )
    model_options.check_quantizer(model.weights)
    return spec.model_copy(update={"model": model})


def _head_facts(task: Task, facts: dict[str, Any], folder: Path) -> HeadFacts:
    """The head described by the note's facts, which may be untrusted. Raises InputError."""
    try:
        return task.head_facts(facts)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise damaged_note_error(folder) from None


def _adapter_in_place(begun: RunSpec) -> Section | None:
    """A checkpoint's adapter, kept in its model here however it will be saved."""
    settings = model_options.adapter_settings(begun)
    known = settings is not None and "saved" in type(settings).model_fields
    return settings.model_copy(update={"saved": "merged"}) if settings is not None and known else settings


def _facts_of(spec: RunSpec, folder: Path, accepts_untrained: bool = False) -> dict[str, Any]:
    """The facts in the configuration; an untrained head that needs label names gets the default ones."""
    task = make_task(spec)
    labels = model_labels(folder)
    if not labels and accepts_untrained and task.head.declared.names_labels:
        labels = tuple(getattr(task.settings, "labels", None) or inspection.nameless_labels(folder))
    return with_max_length(task, task.facts_of_model(labels), folder)
