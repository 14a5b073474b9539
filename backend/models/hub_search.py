"""Owns looking for models on the hub, each judged for the run that is being set up."""

from collections.abc import Sequence
from typing import Any

from huggingface_hub import HfApi, ModelInfo, get_token

from backend.contract.errors import InputError
from backend.contract.rpc.model_choices import HubSearch, ModelChoice
from backend.models import compatibility, task_detection
from backend.models.compatibility import Known, Wish
from backend.models.hub_mistakes import ERRORS, MALFORMED, offline, search_mistake
from backend.models.hub_session import asked_once
from backend.models.weights_names import weight_files

MOST = 40
WANTED: Any = [
    "config", "safetensors", "downloads", "gated", "private", "disabled", "pipeline_tag", "tags", "siblings", "gguf",
]  # fmt: skip
_POPULAR = {
    "causal_lm": "text-generation",
    "seq2seq_lm": "text2text-generation",
    "question_answering": "fill-mask",
    "token_classification": "fill-mask",
    "text_classification": "fill-mask",
    "text_regression": "fill-mask",
    "multiple_choice": "fill-mask",
    "masked_lm": "fill-mask",
}
"""What a task is usually trained from, shown before anything is typed."""
_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_OTHER = ((".gguf", "gguf"), (".onnx", "onnx"), ("tf_model.h5", "tensorflow"), ("adapter_config.json", "adapter"))


def search(query: str, wish: Wish, *, is_offline: bool = False, most: int = MOST) -> HubSearch:
    """The most downloaded models whose name has the words. Raises InputError where the hub does not say."""
    if is_offline:
        raise offline()
    words = query.strip()
    usual = {} if words else {"filter": "transformers", "pipeline_tag": _POPULAR.get(wish.task)}
    try:
        with asked_once():
            found = list(
                HfApi().list_models(search=words or None, sort="downloads", limit=most + 1, expand=WANTED, **usual)
            )
            models = [choice_of(one, wish) for one in found[:most]]
    except InputError:
        raise
    except (*ERRORS, *MALFORMED) as error:
        raise search_mistake(error) from None
    return HubSearch(models, len(found) > most)


def choice_of(info: ModelInfo, wish: Wish) -> ModelChoice:
    """One model of the hub as a row of the chooser."""
    known = known_of(info)
    return ModelChoice(
        name=info.id,
        group="hub",
        use=task_detection.of_hub_task(info.pipeline_tag or ""),
        model_type=str(known.config.get("model_type") or ""),
        parameters=known.parameters,
        size_mb=_bytes(info) / 1e6,
        licence=_licence(info.tags or []),
        downloads=info.downloads,
        tasks=compatibility.tasks_of(known.config),
        is_here=False,
        notes=[*([] if known.lacking else _access_notes(info)), *compatibility.notes(known, wish)],
        problem=compatibility.problem(known, wish),
    )


def known_of(info: ModelInfo) -> Known:
    """What the hub says of a model, as far as it decides whether it can be used."""
    names = tuple(file.rfilename for file in info.siblings or [])
    kind, _ = weight_files(names)
    if kind == "none":
        kind = "gguf" if info.gguf else _other_format(names) or ("none" if names else "")
    config = info.config if isinstance(info.config, dict) else {}
    total = info.safetensors.total if info.safetensors else 0
    return Known(config, total, kind, _no_access(info))


def _other_format(names: Sequence[str]) -> str:
    return next((kind for ending, kind in _OTHER if any(name.endswith(ending) for name in names)), "")


def _no_access(info: ModelInfo) -> str:
    if info.disabled:
        return "the hub has closed it"
    if info.gated and not get_token():
        return (
            "it is given only to people who accepted its terms; accept them on its page, then log in "
            "(Settings, or `hf auth login`)"
        )
    if info.private and not get_token():
        return "it is private; log in first (Settings, or `hf auth login`)"
    return ""


def _access_notes(info: ModelInfo) -> list[str]:
    if info.gated:
        return ["It is given only to people who accepted its terms on its page."]
    return ["It is private: only people with access to it can repeat the run."] if info.private else []


def _licence(tags: Sequence[str]) -> str:
    return next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), "")


def _bytes(info: ModelInfo) -> float:
    counts = info.safetensors.parameters if info.safetensors else {}
    return float(sum(_BYTES.get(kind, 1) * count for kind, count in counts.items()))
