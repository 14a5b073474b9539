"""One optimizer step: which weights train, which decay and at which rate, clipping by the global norm, state by name."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

import torch
from torch import nn

from backend import registry
from backend.adapters.lora import rate_ratio
from backend.contract.spec import TrainingSection, validate
from backend.engines.allocator import MATRIX, return_large_blocks
from backend.engines.layer_depth import LayerDepths
from backend.engines.torch.optimizers.optimizer import Groups
from backend.engines.torch.precision import Precision
from backend.engines.torch.sparse_embedding import SparseEmbedding
from backend.engines.torch.stochastic_rounding import RoundedWeights, total_norm

OPTIONS = "training.optimizer_options"


class Shards(Protocol):
    """What an optimizer needs to know of a model that several processes hold in parts (`distributed.sharded_model`)."""

    trained: list[tuple[str, nn.Parameter]]
    """This process's rows of each weight that trains, with its name in the model."""

    def total_norm(self, norm: torch.Tensor) -> torch.Tensor:
        """The gradients' norm over all processes, from that of this one."""
        ...


class Optimizer:
    """The spec's optimizer over a model's trainable parameters, or over the rows of them that this process holds."""

    def __init__(
        self, model: nn.Module, words: SparseEmbedding | None, training: TrainingSection, precision: Precision,
        adapter: Any = None, shards: Shards | None = None,
    ):  # fmt: skip
        self._words, self._training, self._precision, self._shards = words, training, precision, shards
        named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
        self._named: list[tuple[str, nn.Parameter]] = named if shards is None else shards.trained
        self._parameters = [parameter for _, parameter in self._named]
        by_name = layer_depths(model).rates(training.layer_decay)
        if adapter is not None:
            by_name |= {name: by_name[name] * rate_ratio(adapter, name, each.ndim) for name, each in self._named}
        self._word_rate = by_name[words.name] if words is not None else 1.0
        kind = registry.find("optimizer", training.optimizer, "training.optimizer")
        options = validate(kind.Settings, training.optimizer_options, OPTIONS)
        self._rounded = RoundedWeights(self._parameters, training.seed)
        groups = self._rounded.replace_in(_groups(model, self._named, by_name, training))
        self._inner: Any = kind.make(groups, training, options)
        # The fused kernel divides by `grad_scale` as it reads a gradient, which saves a pass over all of them.
        self._fused = bool(self._inner.defaults.get("fused"))
        self._never = torch.zeros((), device=self._parameters[0].device)

    def trained(self) -> Sequence[torch.Tensor]:
        """What has gradients: the trainable parameters, and this step's rows of the word embedding."""
        return self._parameters if self._words is None else [*self._parameters, self._words.leaf]

    def step(self, learning_rate: float, number: int) -> torch.Tensor:
        """Update the weights in step `number`, clear the gradients, and return the gradients' norm before clipping."""
        for group in self._inner.param_groups:
            group["lr"] = learning_rate * group["rate"]
        # The first step makes the state, which would settle among freed activations and leave the next ones too little room.
        with nullcontext() if self._inner.state else return_large_blocks(MATRIX):
            norm = self._scaled_step() if self._precision.scaler else self._plain_step(learning_rate, number)
        self._inner.zero_grad(set_to_none=True)
        return norm

    def _plain_step(self, learning_rate: float, number: int) -> torch.Tensor:
        norm = total_norm(self._gradients())
        if self._shards is not None:
            norm = self._shards.total_norm(norm)
        scale = self._clipping_divisor(norm)
        if self._fused and scale is not None:
            self._inner.grad_scale, self._inner.found_inf = scale, self._never
        elif scale is not None:
            torch.nn.utils.clip_grads_with_norm_(self._parameters, self._training.max_gradient_norm or 0.0, norm)
        self._rounded.step(self._inner, number)
        if self._words is not None:
            self._words.finish(learning_rate * self._word_rate, scale)
        return norm

    def _scaled_step(self) -> torch.Tensor:
        scaler = self._precision.scaler
        assert scaler is not None
        scaler.unscale_(self._inner)
        norm = torch.nn.utils.get_total_norm(self._gradients())
        if self._training.max_gradient_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(self._parameters, self._training.max_gradient_norm, norm)
        scaler.step(self._inner)
        scaler.update()
        return norm

    def _clipping_divisor(self, norm: torch.Tensor) -> torch.Tensor | None:
        limit = self._training.max_gradient_norm
        return None if limit is None else ((norm + 1e-6) / limit).clamp(min=1.0)  # as torch's clip_grad_norm_ has it

    def _gradients(self) -> list[torch.Tensor]:
        found = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        return found if self._words is None else [*found, self._words.gradient]

    def state(self) -> dict[str, torch.Tensor]:
        """The optimizer's state of each parameter, as `key.name`; integers as int64, else float32 or what holds 8 bits."""
        unsaved: frozenset[str] = getattr(self._inner, "unsaved", frozenset())
        tensors = {
            f"{key}.{name}": value if isinstance(value, torch.Tensor) else torch.tensor(value)
            for name, parameter in self._named
            for key, value in self._inner.state.get(self._rounded.master_of(parameter), {}).items()
            if value is not None and key not in unsaved
        }
        if self._words is not None:
            tensors |= {f"words.{key}": value for key, value in self._words.state().items()}
        return tensors

    @property
    def words(self) -> str:
        """The name of the word embedding trained by rows, whose decay `state` stores; empty if there is none."""
        return self._words.name if self._words is not None else ""

    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Restore the result of `state`; a parameter without a gradient so far has no entries.

        Raises ValueError if a fused kernel would read and write beyond a tensor that does not fit its parameter.
        """
        by_name: dict[str, dict[str, torch.Tensor]] = {}
        for place, value in tensors.items():
            key, _, name = place.partition(".")
            by_name.setdefault(name, {})[key] = value
        take = getattr(self._inner, "take_state", self._inner.state.__setitem__)
        for name, parameter in self._named:
            if name in by_name:
                if self._fused and not all(_fits(key, value, parameter) for key, value in by_name[name].items()):
                    raise ValueError(f"its optimizer state does not fit {name}")
                values = {key: self._to_device(key, value, parameter) for key, value in by_name[name].items()}
                take(self._rounded.master_of(parameter), values)
        if self._words is not None:
            words = {key.removeprefix("words."): value for key, value in tensors.items() if key.startswith("words.")}
            self._words.restore(words)

    def _to_device(self, key: str, value: torch.Tensor, parameter: torch.Tensor) -> Any:
        if value.dtype == torch.int64 and value.ndim == 0:
            return int(value)  # Adafactor counts in plain numbers
        # torch keeps a fused optimizer's step count beside the weights and another's on the processor.
        return value if key == "step" and not self._fused else value.to(parameter.device)


def _fits(key: str, value: torch.Tensor, parameter: torch.Tensor) -> bool:
    """Whether a fused kernel finds what it expects: a number of steps, and float32 values in the parameter's shape."""
    return value.dtype is torch.float32 and value.shape == (() if key == "step" else parameter.shape)


def _groups(
    model: nn.Module, named: list[tuple[str, nn.Parameter]], by_name: dict[str, float], training: TrainingSection
) -> Groups:
    """Parameters with the same rate and weight decay together, in the model's order; those with decay first."""
    undecayed = set(undecayed_parameters(model))
    groups: dict[tuple[bool, float], dict[str, nn.Parameter]] = {}
    for name, parameter in named:
        groups.setdefault((name in undecayed, by_name[name]), {})[name] = parameter
    return [
        {
            "params": [*groups[key].values()],
            "names": [*groups[key]],
            "weight_decay": 0.0 if key[0] else training.weight_decay,
            "rate": key[1],
        }
        for key in sorted(groups, key=lambda key: key[0])
    ]


def layer_depths(model: nn.Module) -> LayerDepths:
    """The depths of the model's parameters."""
    inside = {id(each) for each in getattr(model, "base_model", model).parameters()}
    named = dict(model.named_parameters())
    return LayerDepths(
        names=tuple(named),
        fixed=_fixed_tables(model),
        body=frozenset(name for name, each in named.items() if id(each) in inside),
        tables=frozenset(prefix for prefix, module in model.named_modules() if isinstance(module, nn.Embedding)),
    )


def _fixed_tables(model: nn.Module) -> frozenset[str]:
    """Sinusoidal positions, which `from_pretrained` makes trainable like any parameter.

    Up to transformers 5.23, their `forward` computed no gradient. That of 5.24 does, and would train them.
    """
    return frozenset(
        f"{name}.weight"
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding) and "Sinusoidal" in type(module).__name__
    )


def freeze(model: nn.Module, patterns: list[str | int]) -> None:
    """Freeze parameters, and what never trains. Raises InputError as `LayerDepths.frozen_names` does."""
    parameters, depths = dict(model.named_parameters()), layer_depths(model)
    for name in depths.frozen_names(patterns) | depths.fixed:
        parameters[name].requires_grad_(False)


def undecayed_parameters(model: nn.Module) -> Iterator[str]:
    """Biases and the parameters of normalisation layers, found by layer type: names vary too much."""
    for prefix, module in model.named_modules():
        is_norm = "Norm" in type(module).__name__
        for name, _ in module.named_parameters(recurse=False):
            if is_norm or name.endswith("bias"):
                yield f"{prefix}.{name}" if prefix else name
