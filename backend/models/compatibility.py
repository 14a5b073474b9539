"""Whether a model fits the run being set up, in one sentence, and what a model is for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from backend import catalog, registry
from backend.contract.catalog import Catalog, EngineEntry, find_refusal
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.models.architectures import explain_unsupported, needs_code


@cache
def _heads() -> dict[str, Head]:
    return {task.name: Head(task.head) for task in _catalog().tasks}


_CLASSES = (
    ("ForMaskedLM", message("fills in masked words")),
    ("ForCausalLM", message("continues a text")),
    ("LMHeadModel", message("continues a text")),
    ("ForSequenceClassification", message("classifies texts")),
    ("ForTokenClassification", message("labels words")),
    ("ForQuestionAnswering", message("answers questions about a text")),
    ("ForMultipleChoice", message("chooses among answers")),
    ("ForPreTraining", message("a base model for fine-tuning")),
    ("ForConditionalGeneration", message("turns one text into another")),
    ("MTModel", "translates"),
    ("Model", message("a base model for fine-tuning")),
)
_TASKS = {
    "fill-mask": message("fills in masked words"),
    "text-generation": message("continues a text"),
    "text2text-generation": message("turns one text into another"),
    "translation": "translates",
    "summarization": "summarises",
    "text-classification": message("classifies texts"),
    "token-classification": message("labels words"),
    "question-answering": message("answers questions about a text"),
    "multiple-choice": message("chooses among answers"),
    "zero-shot-classification": message("classifies texts with labels it has not seen"),
    "sentence-similarity": message("compares sentences"),
    "feature-extraction": message("turns texts into vectors"),
    "text-ranking": message("ranks texts"),
}


def purpose_of_class(architecture: str) -> str:
    """The task of a transformers class; empty if its name does not show it."""
    return next((words for ending, words in _CLASSES if architecture.endswith(ending)), "")


def purpose_of_hub_task(pipeline_tag: str) -> str:
    """What the hub's name of a task means."""
    return _TASKS.get(pipeline_tag, pipeline_tag.replace("-", " "))


_FLOAT, _GB = 4, 1e9
_OTHER_FORMATS = {
    "gguf": message(
        "GGUF files, which are only for running a model and cannot be trained; choose the model "
        "that they were converted from"
    ),
    "onnx": message(
        "ONNX files, which are only for running a model and cannot be trained; choose one with safetensors"
    ),
    "tensorflow": message(
        "TensorFlow weights (tf_model.h5); choose a model with safetensors, or save it from TensorFlow as safetensors"
    ),
    "adapter": message("an adapter, which cannot be used without its base model; choose the base model"),
}
_OLD_FORMATS = {
    "bin": message("Its weights are only available as pytorch_model.bin: they are converted once, with your approval."),
    "flax": message(
        "Its weights are only available as flax_model.msgpack: they are converted once, with your approval."
    ),
}
_OWN_CODE = message("It runs its own Python code after you review and approve it.")


@dataclass(frozen=True)
class RunNeeds:
    """The run that a model should fit; empty fields are unknown and rule nothing out."""

    task: str = ""
    engine: str = ""
    optimizer: str = "adamw"
    partly: bool = False
    """Whether only a part of the weights is trained: an adapter's, or what is not frozen."""
    from_scratch: bool = False
    """Whether weights are initialised randomly, so none are needed."""
    free_mb: float = 0
    """Memory of the device; 0 is unknown."""


@dataclass(frozen=True)
class ModelFacts:
    """What is known about a model before it is loaded."""

    config: Mapping[str, Any] = field(default_factory=dict)
    parameters: int = 0
    weights: str = ""
    """`safetensors`, `bin`, `flax`, `none`, or what it has instead: `gguf`, `onnx`, `tensorflow`, `adapter`."""
    lacking: str = ""
    """What is wrong with its files, or who may not have them, as the end of a sentence."""


def run_needs_of(values: Mapping[str, Any]) -> RunNeeds:
    """The needs in a query's arguments; missing ones are unknown."""
    known = {name: values[name] for name in RunNeeds.__dataclass_fields__ if values.get(name) is not None}
    return RunNeeds(**known)


def problem(known: ModelFacts, needs: RunNeeds) -> str:
    """Why the model does not fit the run, as the end of a sentence; empty if it does."""
    return (
        known.lacking
        or _format_problem(known, needs)
        or _architecture_problem(known, needs)
        or _engine_problem(known, needs)
        or _memory_problem(known, needs)
    )


def notes(known: ModelFacts, needs: RunNeeds) -> list[str]:
    """What to know before choosing the model."""
    found = [_OLD_FORMATS[known.weights]] if known.weights in _OLD_FORMATS and not needs.from_scratch else []
    found += [_OWN_CODE] if needs_code(dict(known.config)) else []
    least, free = _minimum_bytes(known, needs, whole=True), needs.free_mb * 1e6
    if needs.free_mb and not needs.partly and free < least and _minimum_bytes(known, needs, whole=False) <= free:
        found.append(
            message(
                "Full fine-tuning needs at least {least:.1f} GB, but only {free:.1f} GB is free; add an "
                "adapter (LoRA) to train a small part.",
                least=least / _GB,
                free=free / _GB,
            )
        )
    return found


def tasks_of(config: Mapping[str, Any]) -> list[str]:
    """The tasks for which the configuration's architecture has a head."""
    if not config.get("model_type"):
        return []
    return [name for name, head in _heads().items() if not explain_unsupported(dict(config), head)]


def _format_problem(known: ModelFacts, needs: RunNeeds) -> str:
    if known.weights in _OTHER_FORMATS:
        return message("it is only available as {other_formats}", other_formats=_OTHER_FORMATS[known.weights])
    if known.weights == "none" and not needs.from_scratch:
        return message(
            "it has no weights; choose another, or start from new weights (model.initialise) to train from scratch"
        )
    return ""


def _architecture_problem(known: ModelFacts, needs: RunNeeds) -> str:
    config = dict(known.config)
    if not config.get("model_type"):
        return message(
            "its config.json does not specify an architecture, so its type is unknown; choose a "
            "model made for transformers"
        )
    head = _heads().get(needs.task)
    return explain_unsupported(config, head) if head is not None else ""


def _engine_problem(known: ModelFacts, needs: RunNeeds) -> str:
    engines = {entry.name: entry for entry in _catalog().engines}
    entry, model_type = engines.get(needs.engine), str(known.config.get("model_type", ""))
    if entry is None or entry.missing:
        return ""  # an engine problem is not the model's fault
    found = find_refusal(entry, model_type, "")
    if found is None:
        return ""
    others = [other.title for other in engines.values() if other is not entry and _supports(other, model_type)]
    return message(
        "{reason}; choose {others}", reason=found.reason, others=" or ".join(others) or message("another model")
    )


def _supports(engine: EngineEntry, model_type: str) -> bool:
    return find_refusal(engine, model_type, "") is None


def _memory_problem(known: ModelFacts, needs: RunNeeds) -> str:
    """Even with an adapter all weights must fit in memory; that part of the estimate is certain."""
    least, free = _minimum_bytes(known, needs, whole=False), needs.free_mb * 1e6
    if not needs.free_mb or least <= free:
        return ""
    return message(
        "its weights alone need {least:.1f} GB in float32, but only {free:.1f} GB is free; "
        "choose a smaller model, or a device with more memory",
        least=least / _GB,
        free=free / _GB,
    )


def _minimum_bytes(known: ModelFacts, needs: RunNeeds, whole: bool) -> float:
    """Weights and, for all that trains, gradients and optimizer state; activations are extra."""
    each = 1 + (1 + _state_per_weight(needs.optimizer) if whole else 0)
    return _FLOAT * known.parameters * each


@cache
def _state_per_weight(optimizer: str) -> float:
    try:
        kind = registry.find("optimizer", optimizer, "training.optimizer")
    except InputError:
        return 0.0  # what is wrong with the optimizer is said at its own field
    return float(kind.state_per_weight(kind.Settings()))


@cache
def _catalog() -> Catalog:
    return catalog.catalog()
