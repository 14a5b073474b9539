"""LoRA in PyTorch: PEFT's layers inside the model, what else trains, and both ways to save them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from peft.tuners.lora import Linear
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils.constants import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from backend.adapters.lora import USUAL, cannot_leave_alone, check_leaves_alone, is_meant, no_such_matrix
from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import message
from backend.engines.engine import LoadedModel, LoadRequest
from backend.engines.initial_weights import draw_normal, draw_uniform
from backend.engines.torch.adapter_initialization import Start, initialize, set_magnitudes, subtract_start
from backend.engines.torch.frozen_weights import (
    float32_weight,
    float32_weights,
    is_quantized,
    is_transposed,
    parameter_count,
    save_float32,
)
from backend.engines.torch.heads import head_modules
from backend.models.adapter_files import PREFIX, WEIGHTS, is_alone, read_adapter_config


class Adapter:
    """LoRA on one model: PEFT's layers replace the chosen matrices, new heads train in full."""

    def __init__(self, model: PreTrainedModel, loading: LoadRequest, loaded: LoadedModel) -> None:
        assert loading.training is not None
        self._model, self._loading = model, loading
        self._settings: Any = loading.adapter
        self._resized = bool(loaded.resized)
        self._in_full = _fully_trained(model, loading, loaded)
        meant = _targets(model, self._settings.targets, head_modules(model, loading.head.head))
        # A matrix without anything learnt in it has nothing to be adapted.
        targets = [name for name in meant if not any(_is_inside(new, name) for new in self._in_full)]
        if self._settings.saved == "adapter":
            self._check_alone()
        with _old_names():
            self._peft: Any = get_peft_model(model, self._config(targets))
        _draw(model, loading.training.seed)
        self._starts: dict[str, Start] = {}
        if self._settings.initialization != "default":
            self._starts = initialize(model, self._settings.initialization, loading.folder, loading.training.seed)
        set_magnitudes(model)
        for name, parameter in model.named_parameters():
            if name in self._in_full:
                parameter.requires_grad_(True)

    def count_trainable(self, loaded: LoadedModel) -> LoadedModel:
        """The model's description with the parameters that train now."""
        trained = parameter_count(self._model, trained=True)
        return replace(loaded, parameters=parameter_count(self._model), trainable=trained)

    def export(self, folder: Path, decayed: Mapping[str, torch.Tensor]) -> None:
        """Write a whole model in Hugging Face layout, or PEFT's two files with the model's configuration.

        `decayed` are weights whose current values are not in the model: a word embedding that is trained by rows.
        """
        if self._settings.saved == "merged":
            with merged_weights(self._model, folder) as weights:
                save_float32(self._model, folder, {**weights, **decayed})
            return
        self._model.config.save_pretrained(folder)
        config = self._peft.peft_config["default"]
        saved = replace(
            config,
            inference_mode=True,
            **self._for_the_models_file(),
            task_type=self._loading.head.head.declared.peft or None,
            modules_to_save=sorted(self._modules_to_save()) or None,
            base_model_name_or_path=self._loading.model.name_or_path,
            revision=None if Path(self._loading.model.name_or_path).is_dir() else self._loading.model.revision,
        )
        saved.save_pretrained(str(folder))
        # Each on its own: biases that are tied in the model would share memory, which no safetensors file may.
        tensors = {name: value.detach().cpu().contiguous().clone() for name, value in self._adapter_weights().items()}
        save_file(tensors, folder / WEIGHTS, {"format": "pt"})

    def _adapter_weights(self) -> dict[str, torch.Tensor]:
        weights = get_peft_model_state_dict(self._peft, save_embedding_layers=False)
        if self._starts:
            weights = subtract_start(weights, self._starts)
        parameters = dict(self._model.named_parameters())
        return weights | {f"{PREFIX}{name}": parameters[name] for name in self._in_full}

    def _config(self, targets: list[str]) -> LoraConfig:
        settings, modules = self._settings, dict(self._model.named_modules())
        return LoraConfig(
            r=settings.rank,
            lora_alpha=settings.alpha,
            lora_dropout=settings.dropout,
            target_modules=targets,
            use_dora=settings.dora,
            use_rslora=settings.rslora,
            bias=settings.bias,
            fan_in_fan_out=any(isinstance(modules[name], Conv1D) for name in targets),
        )

    def _for_the_models_file(self) -> dict[str, Any]:
        """Rank and alpha of the saved adapter, whose scale is that of this one, and which way its matrices lie there."""
        settings, factor = self._settings, 2 if self._starts else 1
        layers: list[Any] = [each for each in self._model.modules() if isinstance(each, BaseTunerLayer)]
        bases = [each.get_base_layer() for each in layers]
        return {
            "r": factor * settings.rank,
            "lora_alpha": settings.alpha * (factor**0.5 if settings.rslora else factor),
            "fan_in_fan_out": any(isinstance(b, Conv1D) or (is_quantized(b) and is_transposed(b)) for b in bases),
        }

    def _modules_to_save(self) -> set[str]:
        """The fully trained modules, in the form of PEFT's `modules_to_save`."""
        tops = set(head_modules(self._model, self._loading.head.head))
        return {next((top for top in tops if _is_inside(name, top)), name.rpartition(".")[0]) for name in self._in_full}

    def _check_alone(self) -> None:
        check_leaves_alone(resized=self._resized, adapted=is_alone(self._loading.folder))
        names = {name for name, _ in self._model.named_parameters(remove_duplicate=False)}
        for owner in self._modules_to_save():
            other = next((name for name in sorted(names - self._in_full) if _is_inside(name, owner)), None)
            if other or not owner:
                raise cannot_leave_alone(message("the new weights of this model cannot be combined with an adapter"))


@contextmanager
def merged_weights(model: PreTrainedModel, folder: Path) -> Iterator[dict[str, torch.Tensor]]:
    """The weights under their usual names in float32, with what adapters learned added; the model is unchanged.

    Those that the model does not hold in float32 lie in files within `folder`, as long as this context lasts.
    """
    layers = {name: part for name, part in model.named_modules() if isinstance(part, BaseTunerLayer)}
    changed = {f"{name}.base_layer.weight": partial(_merge_layer, layer) for name, layer in layers.items()}
    with float32_weights(model, folder, changed) as weights:
        yield {name.replace(".base_layer.", "."): value for name, value in weights.items() if ".lora_" not in name}


@contextmanager
def _old_names() -> Iterator[None]:
    # PEFT asks a model by a name that transformers is about to give up.
    with catch_warnings():
        filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        yield


def take_stored(model: PreTrainedModel, folder: Path) -> set[str]:
    """Merge the adapter in `folder` into the model; returns the names of the parameters that it stores in full.

    Beside quantized weights it stays on its own, because their sum would take eight times their memory in float32. Raises RunFailed if it does not fit the model, and InputError if its configuration is not an adapter's.
    """
    tensors = load_file(folder / WEIGHTS)
    trains = {name: each.requires_grad for name, each in model.named_parameters()}
    shapes = {name: each.shape for name, each in model.named_parameters()}
    held = {name.removeprefix(PREFIX) for name in tensors}
    learnt = {key: value for key, value in read_adapter_config(folder).items() if key != "peft_type"}
    try:
        turned = any(isinstance(each, Conv1D) for each in model.modules())  # not where they are quantized
        config = LoraConfig(**{**learnt, "inference_mode": True, "fan_in_fan_out": turned})
        with _old_names():
            made = PeftModel.from_pretrained(model, str(folder), config=config, ignore_mismatched_sizes=True)
            beside = _replace_small_layers(model)
            made.merge_and_unload()  # type: ignore[operator]
            for name, layer in beside.items():
                model.set_submodule(name, layer.eval())
    except (RuntimeError, ValueError, KeyError, TypeError, AttributeError, ImportError, AssertionError) as error:
        first = next(iter(str(error).strip().splitlines()), "")
        reason = f"{type(error).__name__}: {first}".removesuffix(": ")
        raise RunFailed(
            "{folder}: its adapter does not match the model it is for ({reason}); correct its "
            "adapter_config.json, merge it with PEFT, or choose another adapter",
            "adapter_mismatch",
            folder=folder,
            reason=reason,
        ) from error
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(trains.get(name, False))
    return {name for name in held if shapes.get(name) == tensors[f"{PREFIX}{name}"].shape}


def _fully_trained(model: PreTrainedModel, loading: LoadRequest, loaded: LoadedModel) -> set[str]:
    """Heads and newly drawn parameters; the word embedding too if it has new rows."""
    tops, new = head_modules(model, loading.head.head), set(loaded.new_weights)
    names = dict(model.named_parameters())
    found = {name for name in names if name in new or any(_is_inside(name, top) for top in tops)}
    if loaded.resized:
        words: Any = model.get_input_embeddings()
        found |= {name for name, each in names.items() if each.ndim == 2 and len(each) == len(words.weight)}
    return found


def _is_inside(name: str, module: str) -> bool:
    return name.startswith(f"{module}.")


# Which matrices


def _targets(model: PreTrainedModel, wanted: str | list[str], tops: list[str]) -> list[str]:
    """The full names of the modules that get low-rank matrices. Raises InputError for an unknown name."""
    modules: dict[str, nn.Module] = {
        name: part for name, part in model.named_modules() if not any(_is_inside(f"{name}.", top) for top in tops)
    }
    output = model.get_output_embeddings()
    linear = [name for name, part in modules.items() if isinstance(part, nn.Linear | Conv1D) and part is not output]
    if wanted == "auto":
        usual = TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.get(str(model.config.model_type), [*USUAL])
        found = [name for name in linear if _matches(name, usual)]
        return found or linear
    if wanted == "all-linear":
        return linear
    return sorted({name for target in wanted for name in _matching_modules(model, modules, target, linear)})


def _matching_modules(
    model: PreTrainedModel, modules: dict[str, nn.Module], target: str, linear: list[str]
) -> list[str]:
    can = (nn.Linear, Conv1D, nn.Embedding, nn.Conv1d, nn.Conv2d)
    found = [name for name, part in modules.items() if isinstance(part, can) and _matches(name, [target])]
    if not found:
        raise no_such_matrix(target, linear)
    output = model.get_output_embeddings()
    if output is not None and any(
        modules[name].weight is output.weight and modules[name] is not output for name in found
    ):
        raise InputError(
            "adapter.targets: {target} shares its weights with the model's output; leave it out",
            "adapter.targets",
            target=repr(target),
        )
    return found


def _matches(name: str, wanted: str | list[str]) -> bool:
    if isinstance(wanted, str):
        return re.fullmatch(wanted, name) is not None
    return any(is_meant(name, one) for one in wanted)


# Numbers


@torch.no_grad()
def _draw(model: nn.Module, seed: int) -> None:
    """Draw the first matrix as PEFT does (Kaiming with a = √5: ±1/√inputs); the second stays zero."""
    for name, parameter in model.named_parameters():
        if ".lora_A." in name:
            bound = (parameter.numel() // len(parameter)) ** -0.5
            parameter.copy_(torch.from_numpy(draw_uniform(f"{PREFIX}{name}", tuple(parameter.shape), bound, seed)))
        elif ".lora_embedding_B." in name:  # of an embedding the other one is zero, and this one normal
            parameter.copy_(torch.from_numpy(draw_normal(f"{PREFIX}{name}", tuple(parameter.shape), seed)))


def _replace_small_layers(model: PreTrainedModel) -> dict[str, nn.Module]:
    """Merge what is learned into layers that are not float32 by replacing them: in their own format it would be rounded.

    Returns the layers that adapt quantized ones, by name, which are out of the model now.
    """
    beside = {}
    for name, layer in [*model.named_modules()]:
        if not isinstance(layer, BaseTunerLayer):
            continue
        base: Any = layer.get_base_layer()
        if is_quantized(base):
            beside[name] = layer
        elif base.weight.dtype is torch.float32:
            continue
        else:
            base.weight = nn.Parameter(_merge_layer(layer), requires_grad=False)
        model.set_submodule(name, base)
    return beside


@torch.no_grad()
def _merge_layer(layer: Any) -> torch.Tensor:
    """The layer's weight in float32 with its update merged; the layer itself is unchanged."""
    base = layer.get_base_layer()
    held, weight, merge = base.weight, float32_weight(base), type(layer).merge
    turned = is_quantized(base) and is_transposed(base)
    if is_quantized(base):
        merge = Linear.merge  # its own would quantize again
    base.weight = nn.Parameter((weight.T if turned else weight).clone(), requires_grad=False)
    try:
        merge(layer)
        return base.weight.T if turned else base.weight
    finally:
        base.weight = held
        layer.merged_adapters.clear()
        getattr(layer, "_caches", {}).clear()
