"""Checks a spec's open settings with their owners: optimizer, adapter, configuration, tokenizer, frozen parts."""

from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from backend import registry
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.spec import RunSpec, Section, validate
from backend.contract.spec.training import STOCHASTIC
from backend.engines.weight_formats import QUANTIZED, QUANTIZER, has_experts
from backend.hardware.devices import FSDP, count_processes
from backend.hardware.run_sizes import read_config, trains_a_part
from backend.models import inspection
from backend.models.adapter_files import is_alone
from backend.models.config import estimate
from backend.models.frozen_parameters import may_match
from backend.models.remote_code import check_config, decides_code, open_config
from backend.models.weights import read_weights
from backend.tokenizers.loading import open_tokenizer

_DRAWN_BYTES = 4
"""Of a new weight: they are drawn in float32."""
_DECIDED_ELSEWHERE = {
    "model_type": message("choose another model"), "architectures": message("choose another task.type"), "auto_map": message("choose another model"),
    "id2label": message("they come from the task"), "label2id": message("they come from the task"), "num_labels": message("they come from the task"),
    "dtype": message("hardware.precision sets the number format"), "torch_dtype": message("hardware.precision sets the number format"),
}  # fmt: skip


def optimizer_options(spec: RunSpec) -> Section:
    """The optimizer's own settings. Raises InputError that names the option and the valid ones."""
    kind = registry.find("optimizer", spec.training.optimizer, "training.optimizer")
    given, known = spec.training.optimizer_options, kind.Settings.model_fields
    for name in given:
        if name not in known:
            key = f"training.optimizer_options.{name}"
            has = message("has {known}", known=", ".join(known)) if known else message("has no options of its own")
            raise InputError(
                "{key}: there is no such option; {optimizer} {has}",
                key,
                key=key,
                optimizer=spec.training.optimizer,
                has=has,
            )
    return validate(kind.Settings, given, "training.optimizer_options")


def adapter_settings(spec: RunSpec) -> Section | None:
    """The adapter's own settings, complete. Raises InputError."""
    if spec.adapter is None:
        return None
    kind = registry.find("adapter", spec.adapter.get("type", ""), "adapter.type")
    if spec.model.initialise == "from_config":
        raise InputError("adapter: new weights must all be trained; remove the adapter", "adapter")
    if spec.model.frozen:
        raise InputError("model.frozen: with an adapter every weight of the model is frozen already", "model.frozen")
    return validate(kind.Settings, spec.adapter, "adapter")


def check_weights(spec: RunSpec, folder: Path | None = None) -> None:
    """Raises InputError if the run cannot hold its weights as `model.weights` says, or shard those of this model."""
    wanted = spec.model.weights
    if folder is not None:
        _check_layer_drop(spec, folder)
    if wanted in ("auto", "float32"):
        return
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    if wanted not in engine.weight_formats:
        reason = message(
            "{title} holds all weights in float32; choose float32, or train with PyTorch (hardware.engine: torch)",
            title=engine.title,
        )
    elif spec.model.initialise == "from_config":
        reason = message("new weights are drawn in float32; choose auto, or start from pretrained weights")
    elif not trains_a_part(spec):
        reason = message(
            "{wanted} is for weights that are not trained, and this run trains all of them in float32; add an adapter "
            "(adapter.type: lora), or choose auto",
            wanted=wanted,
        )
    else:
        check_quantizer(wanted)
        return
    raise InputError("model.weights: {reason}", "model.weights", reason=reason)


def describe_merging(spec: RunSpec) -> str:
    """What saving a merged model means for weights in 4 or 8 bits; empty where it means nothing."""
    if spec.model.weights not in QUANTIZED or (spec.adapter or {}).get("saved", "merged") != "merged":
        return ""
    return message(
        "adapter.saved: the trained model is saved in float32, with the base's weights as {weights} has rounded them; "
        "with adapter.saved: adapter the base stays as it is.",
        weights=spec.model.weights,
    )


def check_new_weights(spec: RunSpec, folder: Path) -> None:
    """Raises InputError if the weights drawn by `from_config` cannot fit in this computer's memory."""
    if spec.model.initialise != "from_config":
        return
    parameters, there = estimate(read_config(folder, spec)), psutil.virtual_memory().total
    if parameters * _DRAWN_BYTES > there:
        raise InputError(
            "model.initialise: the configuration results in at least {parameters:,.1f} billion "
            "parameters, which would take {parameters_2:,.0f} GB of this computer's {there:,.0f} GB "
            "of memory; make the model smaller in model.config, or choose another model",
            "model.initialise",
            parameters=parameters / 1000000000.0,
            parameters_2=parameters * _DRAWN_BYTES / 1000000000.0,
            there=there / 1000000000.0,
        )


def check_master_weights(spec: RunSpec, precision: str | None = None) -> None:
    """Raises InputError if the run cannot hold what it trains as `training.master_weights` says.

    `precision` is that of the chosen device, once it is known.
    """
    if spec.training.master_weights != STOCHASTIC:
        return
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    if not engine.rounds_stochastically:
        reason = message(
            "{title} holds what it trains in float32; choose float32, or train with PyTorch (hardware.engine: torch)",
            title=engine.title,
        )
    elif trains_a_part(spec):
        reason = message(
            "{wanted} is for runs that train all weights, and this run trains a part of them; choose float32, or remove "
            "the adapter and model.frozen",
            wanted=STOCHASTIC,
        )
    elif spec.model.initialise == "from_config":
        reason = message("new weights are trained in float32; choose float32, or start from pretrained weights")
    elif count_processes(spec.hardware) > 1:
        reason = message(
            "{wanted} is for one device; choose float32, or train in one process on one device", wanted=STOCHASTIC
        )
    elif precision not in (None, "bfloat16"):
        reason = message(
            "{wanted} is for runs that compute in bfloat16, and this one computes in {precision}; choose float32, or set "
            "hardware.precision to bfloat16",
            wanted=STOCHASTIC,
            precision=precision,
        )
    else:
        return
    raise InputError("training.master_weights: {reason}", "training.master_weights", reason=reason)


def check_adapter(spec: RunSpec) -> None:
    """Raises InputError if the adapter cannot start as `adapter.initialization` says."""
    wanted = (spec.adapter or {}).get("initialization", "default")
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    if wanted not in engine.adapter_initializations:
        reason = message(
            "{title} does not have {wanted}; choose default, or train with PyTorch (hardware.engine: torch)",
            title=engine.title,
            wanted=wanted,
        )
    elif wanted == "loftq" and spec.model.weights not in QUANTIZED:
        reason = message(
            "loftq is for weights in 4 or 8 bits; set model.weights to nf4 or int8, or choose pissa or default"
        )
    else:
        return
    raise InputError("adapter.initialization: {reason}", "adapter.initialization", reason=reason)


def _check_layer_drop(spec: RunSpec, folder: Path) -> None:
    """Raises InputError if processes that gather a sharded model together would each skip other layers."""
    if (spec.hardware.model_extra or {}).get("strategy") != FSDP:
        return
    config = read_config(folder, spec)
    for name in ("layerdrop", "encoder_layerdrop", "decoder_layerdrop"):
        if config.get(name):
            key = f"model.config.{name}"
            raise InputError(
                "{key}: with hardware.strategy: fsdp a model cannot skip layers at random; set this to 0", key, key=key
            )


def check_quantizer(wanted: str) -> None:
    """Raises InputError if weights are to be held in a format whose package is not installed."""
    if wanted in QUANTIZED and find_spec(QUANTIZER) is None:
        raise InputError(
            "model.weights: {wanted} needs bitsandbytes, which is not installed; install it with: "
            "pip install 'burnish[quantized]'",
            "model.weights",
            wanted=wanted,
        )


def check_optimizer(spec: RunSpec, device: str | None = None) -> None:
    """Raises InputError if the optimizer's package is not installed, or it cannot run on this kind of device."""
    kind = registry.find("optimizer", spec.training.optimizer, "training.optimizer")
    package, kinds = getattr(kind, "requires", ""), devices_of_optimizer(spec)
    if package and find_spec(package) is None:
        raise InputError(
            "training.optimizer: {optimizer} needs {package}, which is not installed; install it with: "
            "pip install 'burnish[quantized]'",
            "training.optimizer",
            optimizer=spec.training.optimizer,
            package=package,
        )
    if device is not None and kinds and device not in kinds:
        raise InputError(
            "training.optimizer: {optimizer} runs on {kinds}, and this run would use {device}; choose another optimizer, "
            "such as adamw",
            "training.optimizer",
            optimizer=spec.training.optimizer,
            kinds=", ".join(kinds),
            device=device,
        )


def devices_of_optimizer(spec: RunSpec) -> tuple[str, ...]:
    """The kinds of devices that the optimizer can run on; empty if any."""
    kind = registry.find("optimizer", spec.training.optimizer, "training.optimizer")
    return getattr(kind, "devices", ())


def check_model_options(spec: RunSpec, folder: Path) -> None:
    """Raises InputError if the model in `folder` does not accept the spec's options for it."""
    _check_config(spec, folder)
    _check_layer_drop(spec, folder)
    if spec.model.weights not in ("auto", "float32") and has_experts(read_weights(folder).shapes):
        raise InputError(
            "model.weights: the experts of this model can only be held in float32; choose auto", "model.weights"
        )
    if spec.training.master_weights == STOCHASTIC and has_experts(read_weights(folder).shapes):
        raise InputError(
            "training.master_weights: the experts of this model can only be held in float32; choose float32",
            "training.master_weights",
        )
    if spec.model.weights in QUANTIZED and is_alone(folder):
        raise InputError(
            "model.weights: {folder} holds an adapter, which must be merged with its model before that can be held in "
            "{wanted}; export it first (burnish export RUN --model FOLDER --merged), or "
            "choose auto",
            "model.weights",
            folder=folder,
            wanted=spec.model.weights,
        )
    if spec.model.tokenizer_options:
        name = spec.model.tokenizer or str(folder)
        open_tokenizer(name, options=spec.model.tokenizer_options)
    shapes, adapter = read_weights(folder).shapes, adapter_settings(spec)
    if adapter is not None and shapes:
        kind = registry.find("adapter", str(spec.adapter and spec.adapter["type"]), "adapter.type")
        kind.check(adapter, shapes, str(inspection.read_config(folder).get("model_type", "")))
    if shapes:
        _check_frozen(spec, list(shapes))


def _check_config(spec: RunSpec, folder: Path) -> None:
    if not spec.model.config:
        check_config(folder, wanted=spec.model.trust_remote_code)
        return
    config = open_config(folder, wanted=spec.model.trust_remote_code)
    known: dict[str, Any] = config.to_dict() | {name: getattr(config, name) for name in config.attribute_map}
    for name, value in spec.model.config.items():
        key = f"model.config.{name}"
        if decides_code(name) and name not in _DECIDED_ELSEWHERE:
            raise InputError("{key}: this cannot be changed here, because it determines which code runs", key, key=key)
        if name in _DECIDED_ELSEWHERE:
            raise InputError(
                "{key}: this cannot be changed here; {decided_elsewhere}",
                key,
                key=key,
                decided_elsewhere=_DECIDED_ELSEWHERE[name],
            )
        if name not in known and not hasattr(config, name):
            near = get_close_matches(name, known, 3)
            suggestion = (
                message("did you mean {near}?", near=" or ".join(near))
                if near
                else message("the keys are {known}", known=", ".join(sorted(known)))
            )
            raise InputError(
                "{key}: the configuration of this {model_type} has no such key; {suggestion}",
                key,
                key=key,
                model_type=config.model_type,
                suggestion=suggestion,
            )
        if not _is_alike(value, known.get(name)):
            raise InputError(
                "{key}: {value} cannot be used; the model's file has {known}",
                key,
                key=key,
                value=repr(value),
                known=repr(known[name]),
            )


def _is_alike(value: Any, stored: Any) -> bool:
    """Whether a value has the stored one's type; an empty stored value accepts anything."""
    if stored is None or value is None:
        return True
    if isinstance(stored, bool) or isinstance(value, bool):
        return isinstance(stored, bool) and isinstance(value, bool)
    if isinstance(stored, int | float):
        return isinstance(value, int) or (isinstance(value, float) and isinstance(stored, float))
    return isinstance(value, type(stored)) or isinstance(stored, list | tuple | dict)


def _check_frozen(spec: RunSpec, names: list[str]) -> None:
    """Raises InputError for a pattern that matches no name in the file, nor a usual head name."""
    for pattern in spec.model.frozen:
        if isinstance(pattern, int) or pattern in ("embeddings", "encoder"):
            continue
        if not any(may_match(name, pattern) for name in [*names, *_HEADS]):
            examples = ", ".join(names[:: max(1, len(names) // 4)][:4])
            raise InputError(
                "model.frozen: {pattern} does not match any parameter of this model; the parameters include {examples}",
                "model.frozen",
                pattern=repr(pattern),
                examples=examples,
            )


_HEADS = ("classifier.weight", "score.weight", "lm_head.weight", "qa_outputs.weight", "pooler.dense.weight")
