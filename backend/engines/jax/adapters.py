"""LoRA in the JAX engine: which layers get low-rank matrices, what else trains, and both ways to save them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx

from backend.adapters.lora import (
    USUAL,
    Settings,
    cannot_leave_alone,
    check_leaves_alone,
    is_meant,
    no_such_matrix,
    rate_ratio,
)
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.engines.engine import LoadedModel, LoadRequest
from backend.engines.initial_weights import draw_normal, draw_uniform
from backend.engines.jax import peft_files
from backend.engines.jax.layers import Embedding
from backend.engines.jax.loading import LoadedParameters
from backend.engines.jax.lora import AdaptedEmbedding, AdaptedLinear, scaling
from backend.engines.jax.model import Model
from backend.models.adapter_files import PREFIX, is_alone

_OUTPUT = "lm_head"
"""What every family calls a layer of its own for the vocabulary; only a target of that name means it."""
_WORDS = ("word_embeddings", "wte", "embed_tokens", "shared")
"""What the families call their tables of tokens."""
Values = dict[str, np.ndarray]


class Adapter:
    """LoRA on one model. `trained` are the names of the trained parameters."""

    def __init__(self, loading: LoadRequest, opened: LoadedParameters) -> None:
        assert loading.training is not None
        if not isinstance(loading.adapter, Settings):
            raise InputError("adapter.type: the JAX engine supports only LoRA; choose PyTorch", "adapter.type")
        self._loading, self._settings = loading, loading.adapter
        self._base = opened.model
        self._in_full = _fully_trained(self._base, opened, loading.head.head)
        meant = _targets(self._base, loading.adapter.targets, loading.head.head)
        # A matrix without anything learnt in it has nothing to be adapted.
        self._targets = [name for name in meant if f"{name}.weight" not in self._in_full]
        if self.is_alone:
            self._check_alone(opened.loaded)
        self._seed = loading.training.seed
        self._model = self._base.with_change(self._put_in_place)
        self.trained = self._adapter_names() | self._in_full | self._biases()

    def add_to(self, opened: LoadedParameters) -> LoadedParameters:
        """Add the low-rank matrices to the model."""
        drawn = self._initialize(opened.parameters)
        more = sum(value.size for value in drawn.values())
        loaded = replace(opened.loaded, parameters=opened.loaded.parameters + more)
        return replace(opened, model=self._model, parameters=opened.parameters | drawn, loaded=loaded)

    @property
    def is_alone(self) -> bool:
        """Whether the adapter is saved without its model."""
        return self._settings.saved == "adapter"

    def rates(self, rates: Mapping[str, float]) -> dict[str, float]:
        """What the learning rate of each trained parameter is multiplied by, where `rates` has it for the model alone."""
        shapes = self._model.shapes
        return {name: rates[name] * rate_ratio(self._settings, name, len(shapes[name])) for name in self.trained}

    def export(self, folder: Path, parameters: Mapping[str, np.ndarray]) -> None:
        """Write PEFT's two files into a folder that has the model's configuration."""
        own = self._adapted_weights()
        tensors = {f"{PREFIX}{_peft_name(name) if name in own else name}": parameters[name] for name in self.trained}
        inputs_first = any(self._base.linear.get(name, False) for name in self._targets)
        peft_files.write(
            folder, tensors, self._loading, self._targets, sorted(self._modules_to_save()), inputs_first=inputs_first
        )

    def merge(self, parameters: Mapping[str, np.ndarray]) -> Values:
        """The weights under their usual names, with the adapter merged into them."""
        settings = self._settings
        scale = scaling(settings.alpha, settings.rank, rslora=settings.rslora)
        whole = {name: parameters[name] for name in self._base.shapes}
        for name in self._targets:
            is_table = name not in self._base.linear
            first, second = (
                (peft_files.WORDS_FIRST, peft_files.WORDS_SECOND) if is_table else (peft_files.FIRST, peft_files.SECOND)
            )
            size = parameters.get(f"{name}{peft_files.MAGNITUDE}")
            change = peft_files.AdapterDelta(parameters[f"{name}{first}"], parameters[f"{name}{second}"], scale, size)
            weight = parameters[f"{name}.weight"]
            whole[f"{name}.weight"] = change.merge(weight, inputs_first=self._inputs_first(name))
        return whole

    def _put_in_place(self, module: nnx.Module) -> None:
        for name in self._targets:
            *above, last = name.split(".")
            owner: Any = reduce(_submodule, above, module)
            layer = getattr(owner, last)
            is_table = isinstance(layer, Embedding)
            beside = AdaptedEmbedding(layer, self._settings) if is_table else AdaptedLinear(layer, self._settings)
            setattr(owner, last, beside)

    def _inputs_first(self, name: str) -> bool:
        """Whether a target's weight is (inputs, outputs), as an embedding table's is."""
        return self._base.linear.get(name, True)

    def _adapter_names(self) -> set[str]:
        return self._model.shapes.keys() - self._base.shapes.keys()

    def _initialize(self, parameters: Values) -> Values:
        """Draw the first matrix as PEFT does (Kaiming with a = √5: ±1/√inputs); the second is zero.

        For an embedding table the first is zero and the second normal.
        """
        found: Values = {}
        for name in sorted(self._adapter_names()):
            shape = self._model.shapes[name]
            if name.endswith(peft_files.FIRST):
                key = f"{PREFIX}{name.removesuffix('.weight')}.default.weight"
                found[name] = draw_uniform(key, shape, shape[1] ** -0.5, self._seed)
            elif name.endswith(peft_files.WORDS_SECOND):
                found[name] = draw_normal(f"{PREFIX}{name}.default", shape, self._seed)
            elif name.endswith((peft_files.SECOND, peft_files.WORDS_FIRST)):
                found[name] = np.zeros(shape, np.float32)
            else:  # DoRA starts with the model's own magnitudes
                layer = name.removesuffix(peft_files.MAGNITUDE)
                found[name] = np.linalg.norm(parameters[f"{layer}.weight"], axis=0 if self._inputs_first(layer) else 1)
        return found

    def _adapted_weights(self) -> set[str]:
        """The weights and biases of the adapted layers."""
        names = {f"{name}.{each}" for name in self._targets for each in ("weight", "bias")}
        return names & self._base.shapes.keys()

    def _biases(self) -> set[str]:
        if self._settings.bias == "none":
            return set()
        every = {name for name in self._base.shapes if f".{name}".endswith(".bias")}
        return every if self._settings.bias == "all" else every & self._adapted_weights()

    def _modules_to_save(self) -> set[str]:
        """The fully trained modules, in the form of PEFT's `modules_to_save`."""
        tops = {name.partition(".")[0] for name in self._in_full if _is_on_top(name, self._base)}
        return {top if (top := name.partition(".")[0]) in tops else name.rpartition(".")[0] for name in self._in_full}

    def _check_alone(self, loaded: LoadedModel) -> None:
        check_leaves_alone(resized=bool(loaded.resized), adapted=is_alone(self._loading.folder))
        of_vocabulary = (
            self._loading.head.head.declared.over_vocabulary and self._in_full
        )  # tied to what does not train
        others = self._base.shapes.keys() - self._in_full
        shared = (
            not owner or any(name.startswith(f"{owner}.") for name in others) for owner in self._modules_to_save()
        )
        if of_vocabulary or any(shared):
            raise cannot_leave_alone(message("the new weights of this model cannot be combined with an adapter"))


def _submodule(module: Any, name: str) -> Any:
    return module[int(name)] if name.isdigit() else getattr(module, name)


def _peft_name(name: str) -> str:
    """PEFT's name for a parameter of a layer that it has wrapped."""
    layer, _, last = name.rpartition(".")
    return f"{layer}.base_layer.{last}"


def _is_on_top(name: str, model: Model) -> bool:
    """Whether a parameter belongs to the task's head; a language model's output layer belongs to the model."""
    return name.partition(".")[0] in model.tops


def _fully_trained(model: Model, opened: LoadedParameters, head: Head) -> set[str]:
    """Heads and newly drawn parameters; the word embedding too if it has new rows."""
    found = set(opened.loaded.new_weights)
    if not head.declared.over_vocabulary:
        found |= {name for name in model.shapes if _is_on_top(name, model)}
    if opened.loaded.resized:
        rows = opened.config.vocab_size
        found |= {name for name, shape in model.shapes.items() if len(shape) == 2 and shape[0] == rows}
    return found - model.fixed


def _targets(model: Model, wanted: str | list[str], head: Head) -> list[str]:
    """The full names of the layers that get low-rank matrices. Raises InputError for an unknown name."""
    below = [name for name in model.linear if head.declared.over_vocabulary or not _is_on_top(name, model)]
    linear = [name for name in below if name != _OUTPUT]
    if wanted == "auto":
        return [name for name in linear if any(is_meant(name, one) for one in USUAL)] or linear
    if wanted == "all-linear":
        return linear
    tables = sorted(model.layer_depths.tables)
    named = {target: [name for name in (*below, *tables) if is_meant(name, target)] for target in wanted}
    for target, found in named.items():
        if not found:
            raise no_such_matrix(target, linear)
        for name in set(found) & set(tables):
            _check_table(model, name, target, head)
    return sorted({name for found in named.values() for name in found})


def _check_table(model: Model, name: str, target: str, head: Head) -> None:
    """Raises InputError for an embedding that PEFT cannot adapt, or would adapt differently."""
    last = name.rpartition(".")[2]
    reason = ""
    if f"{name.removeprefix(f'{model.body}.')}.weight" in model.aliases.values():
        reason = message("is shared by the encoder and the decoder, and PEFT would adapt each of them separately")
    elif head.declared.over_vocabulary and last in _WORDS and _OUTPUT not in model.linear:
        reason = message("shares its weights with the model's output")
    elif last == "embed_positions":
        reason = message("computes positions itself, which PEFT does not support")
    if reason:
        raise InputError(
            "adapter.targets: {target} {reason}; leave it out", "adapter.targets", target=repr(target), reason=reason
        )
