"""A folder with only an adapter, in PEFT's layout: the base model that it needs, and its validated configuration."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.models.model_files import check_links, read_table, read_table_if_sound

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
PREFIX = "base_model.model."
"""What PEFT puts before the names of a model's parameters."""
_WHOLE = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_FIELD = "model.name_or_path"


@dataclass(frozen=True)
class BaseModel:
    """An adapter's base model: a folder or hub id and, for a hub model, the revision."""

    name: str
    revision: str


def base_of(folder: Path) -> BaseModel | None:
    """The base model of the adapter in the folder; None if there is no adapter."""
    found = read_table_if_sound(folder / CONFIG)
    name, revision = found.get("base_model_name_or_path"), found.get("revision") or "main"
    return BaseModel(name, revision) if isinstance(name, str) and name and isinstance(revision, str) else None


def is_alone(folder: Path) -> bool:
    """Whether the folder holds an adapter without a whole model."""
    return (folder / CONFIG).is_file() and not any((folder / name).is_file() for name in _WHOLE)


def weights_folder(folder: Path) -> Path:
    """Where a model's own weights are: the folder itself, or the base model of the adapter in it.

    Downloads nothing. Raises InputError if that model is not here, or the adapter cannot be loaded.
    """
    if not is_alone(folder):
        return _hide_adapter(folder)
    check_links(folder)
    read_adapter_config(folder)
    base = base_of(folder)
    if base is None:
        raise InputError(
            "{field}: {folder} does not specify the model that it belongs to",
            _FIELD,
            field=_FIELD,
            folder=folder / CONFIG,
        )
    # Only an absolute name is a folder: a hub id must not be answered by what happens to lie where Burnish was started.
    if Path(base.name).is_absolute() and Path(base.name).is_dir():
        return _hide_adapter(Path(base.name))
    from huggingface_hub import try_to_load_from_cache  # slow to import, and seldom needed
    from huggingface_hub.utils import HFValidationError

    try:
        found = try_to_load_from_cache(base.name, "config.json", revision=base.revision)
    except HFValidationError:
        found = None
    if not isinstance(found, str):
        raise InputError(
            "{field}: {folder} contains only an adapter, and its model {name} is not on this computer; {base}",
            _FIELD,
            field=_FIELD,
            folder=folder,
            name=base.name,
            base=_suggest_fix(base),
        )
    return _hide_adapter(Path(found).parent)


def _hide_adapter(folder: Path) -> Path:
    """The folder without its adapter, which transformers would otherwise load into the model beside it."""
    check_links(folder)
    if (folder / CONFIG).exists():
        raise InputError(
            "{field}: {folder} contains both a model and an adapter for it ({config}), so it is not "
            "clear which one you mean; move the adapter's files into their own folder",
            _FIELD,
            field=_FIELD,
            folder=folder,
            config=CONFIG,
        )
    return folder


def _suggest_fix(base: BaseModel) -> str:
    is_folder = Path(base.name).is_absolute() or base.name.startswith((".", "~"))
    return (
        message("restore it")
        if is_folder
        else message(
            "download it with: burnish hub download {name} --revision {revision}",
            name=base.name,
            revision=base.revision,
        )
    )


_PLAIN_BEGINNINGS = (None, True, False, "gaussian", "orthogonal", "eva")
"""Of `init_lora_weights`, those that leave the model's own weights as they are: nothing of them outlives loading."""
_CHANGING_BEGINNINGS = re.compile(r"pissa(_niter_[1-9]\d?)?|olora")
"""Those that change the model's weights, and must be computed again for what was learnt to fit them."""
_LARGEST_RANK, _MAX_NAMES, _LONGEST_NAME = 10_000, 100_000, 2_000
_SWITCHES = ("fan_in_fan_out", "use_rslora", "use_dora", "lora_bias", "inference_mode", "ensure_weight_tying")
_NAMES = ("target_modules", "exclude_modules", "modules_to_save", "layers_pattern", "target_parameters")
_PATTERNS = ("rank_pattern", "alpha_pattern")
_LAYERS, _TOKENS = "layers_to_transform", "trainable_token_indices"
_TEXTS = ("peft_type", "task_type", "base_model_name_or_path", "revision", "bias")
_TASK_TYPES = ("SEQ_CLS", "SEQ_2_SEQ_LM", "CAUSAL_LM", "TOKEN_CLS", "QUESTION_ANS", "FEATURE_EXTRACTION")
_USED = (
    *_SWITCHES, *_NAMES, *_PATTERNS, *_TEXTS, _LAYERS, _TOKENS, "r", "lora_alpha", "lora_dropout", "init_lora_weights",
)  # fmt: skip
_REFUSED = (
    "alora_invocation_tokens", "arrow_config", "kasa_config", "layer_replication", "megatron_config", "monteclora_config",
    "use_bdlora", "use_qalora", "velora_config",
)  # fmt: skip
"""What changes the layers beyond LoRA and DoRA, or names a module that PEFT would import."""
_MAX_REPEATS, _MAX_REPEATS_IN_ALL = 6, 60
_REPEAT = re.compile(r"[*+?]|\{\d*,?\d*\}")
_NESTED = re.compile(r"\)([*+]|\{\d*,?\d*\})")
_LOOK = re.compile(r"\(\?(?![:=!])")


def read_adapter_config(folder: Path) -> dict[str, Any]:
    """The keys of the folder's adapter_config.json that describe what was learned; others are left out.

    The file may be untrusted, and PEFT treats texts in it as regular expressions, as a module to import, or as
    instructions to recompute initial weights.

    Raises InputError if one of them is not valid for an adapter.
    """
    path = folder / CONFIG
    config = read_table(path, unique=True)
    if problem := _problem(config):
        raise InputError(
            "{field}: {path}: {problem}; correct it there, merge the adapter with PEFT, or choose another adapter",
            _FIELD,
            field=_FIELD,
            path=path,
            problem=problem,
        )
    found = {key: config[key] for key in _USED if config.get(key) is not None}
    if config.get("init_lora_weights") in _PLAIN_BEGINNINGS:
        found["init_lora_weights"] = False  # every number comes from the file
    return found


def _problem(config: dict[str, Any]) -> str:
    if config.get("peft_type") != "LORA":
        return message(
            "its type is {config}, but Burnish only supports LoRA adapters",
            config=f"{config.get('peft_type')!r:.40}",
        )
    if beyond := next((key for key in _REFUSED if config.get(key)), None):
        return message("Burnish does not support adapters with {beyond}", beyond=beyond)
    beginning = config.get("init_lora_weights")
    is_changing = isinstance(beginning, str) and _CHANGING_BEGINNINGS.fullmatch(beginning)
    if not is_changing and not any(beginning is one or beginning == one for one in _PLAIN_BEGINNINGS):
        return message("init_lora_weights: Burnish does not support {beginning}", beginning=f"{beginning!r:.40}")
    return _kinds(config) or _numbers(config) or _names(config)


def _kinds(config: dict[str, Any]) -> str:
    for kind, words, keys in (
        (bool, message("true or false"), _SWITCHES),
        (str, "a text", _TEXTS),
        (dict, "a table", _PATTERNS),
    ):
        for key in keys:
            if not isinstance(config.get(key), kind | None):
                return message("{key}: {config} is not {words}", key=key, config=f"{config[key]!r:.40}", words=words)
    if config.get("task_type") not in (None, *_TASK_TYPES):
        return message(
            "task_type: {config} is not one of {task_types}",
            config=f"{config['task_type']!r:.40}",
            task_types=", ".join(_TASK_TYPES),
        )
    if config.get("bias") not in (None, "none", "all", "lora_only"):
        return message("bias: {config} is not one of none, all, lora_only", config=f"{config['bias']!r:.40}")
    return ""


def _numbers(config: dict[str, Any]) -> str:
    ranks = {"r": config.get("r"), **(config.get("rank_pattern") or {})}
    for key, rank in ranks.items():
        if not (rank is None and key == "r") and not (_is_count(rank) and 1 <= rank <= _LARGEST_RANK):
            return message(
                "{key}: {rank} is not a rank (a whole number from 1 to {largest_rank:,})",
                key=key[:40],
                rank=f"{rank!r:.40}",
                largest_rank=_LARGEST_RANK,
            )
    alphas = {"lora_alpha": config.get("lora_alpha"), **(config.get("alpha_pattern") or {})}
    for key, alpha in alphas.items():
        if not (alpha is None and key == "lora_alpha") and not _is_number(alpha):
            return message("{key}: {alpha} is not a number", key=key[:40], alpha=f"{alpha!r:.40}")
    dropout = config.get("lora_dropout")
    if dropout is not None and not (_is_number(dropout) and 0 <= dropout < 1):
        return message("lora_dropout: {dropout} is not a number from 0 to below 1", dropout=f"{dropout!r:.40}")
    layers = config.get(_LAYERS)
    if layers is not None and not all(map(_is_count, layers if isinstance(layers, list) else [layers])):
        return message("{layers}: {layers_2} are not layer numbers", layers=_LAYERS, layers_2=f"{layers!r:.40}")
    tokens = config.get(_TOKENS)
    lists = list(tokens.values()) if isinstance(tokens, dict) else [[] if tokens is None else tokens]
    if not all(isinstance(one, list) and all(map(_is_count, one)) for one in lists):
        return message("{tokens}: {tokens_2} are not token IDs", tokens=_TOKENS, tokens_2=f"{tokens!r:.40}")
    return ""


def _names(config: dict[str, Any]) -> str:
    """Every name may be a pattern: whether it is read as one depends on the key and on PEFT's version."""
    repeats = 0
    for key in (*_NAMES, *_PATTERNS, _TOKENS):
        value = config.get(key)
        if key == _TOKENS:
            value = list(value) if isinstance(value, dict) else None
        names = [value] if isinstance(value, str) else list(value) if isinstance(value, list | dict) else value
        if names is None:
            continue
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return message("{key}: {value} are not module names", key=key, value=f"{value!r:.40}")
        if len(names) > _MAX_NAMES:
            return message(
                "{key}: {names:,} names are too many (at most {max_names:,})",
                key=key,
                names=len(names),
                max_names=_MAX_NAMES,
            )
        for name in names:
            count = _repeats(name)
            if count is None:
                return message(
                    "{key}: {name} is neither a module's name nor a pattern that is certain to terminate",
                    key=key,
                    name=f"{name!r:.60}",
                )
            repeats += count
    return (
        message(
            "it has too many patterns (at most {max_repeats_in_all} repeats)", max_repeats_in_all=_MAX_REPEATS_IN_ALL
        )
        if repeats > _MAX_REPEATS_IN_ALL
        else ""
    )


def _repeats(pattern: str) -> int | None:
    """The number of `*`, `+`, `?` or `{}` in it; None if it is too costly to match, or not a pattern.

    Without a repeated group a match costs at most the name's length to the power of that number.
    """
    if len(pattern) > _LONGEST_NAME:
        return None
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None
    plain = re.sub(r"\[\^?\]?[^\]]*\]", "x", re.sub(r"\\[1-9]", "(?", re.sub(r"\\[^1-9]", "x", pattern)))
    if _LOOK.search(plain) or _NESTED.search(plain):
        return None
    count = len(_REPEAT.findall(re.sub(r"\(\?|([*+?}])[?+]", r"\1", plain)))
    return count if count <= _MAX_REPEATS else None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**9


def _is_number(value: object) -> TypeGuard[float]:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and abs(value) <= 10**9
    )
