"""PiSSA and LoftQ: an adapter that starts from the singular vectors of a matrix, beside what they leave of it.

With W the matrix in its file, A (rank, inputs) and B (outputs, rank) the adapter's, and s its scale, the frozen layer then
holds W - s·B·A, in its own format. A resumed run computes the same again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors import safe_open
from torch import nn

from backend.contract.errors import RunFailed
from backend.engines.initial_weights import draw_normal
from backend.engines.torch.frozen_weights import float32_weight, is_quantized, is_transposed, replace_weight
from backend.models.adapter_files import weights_folder
from backend.models.weights import read_header, read_weights

LOFTQ_ROUNDS = 5
"""How often LoftQ quantizes what the adapter leaves, as in Li et al. 2023."""
_NAME = "default"


@dataclass(frozen=True)
class Start:
    """An adapter's two matrices before training."""

    first: torch.Tensor
    """(rank, inputs)"""
    second: torch.Tensor
    """(outputs, rank)"""


@torch.no_grad()
def initialize(model: nn.Module, kind: str, folder: Path, seed: int) -> dict[str, Start]:
    """Start the adapters of all linear layers as `kind` says; what the frozen layers hold changes.

    `folder` holds the model, whose file has the weights that were quantized. Raises RunFailed if it lacks one.
    """
    stored, starts = _StoredWeights(folder), {}
    for name, layer in _linear_layers(model):
        base = layer.get_base_layer()
        weight = stored.read(name, base) if is_quantized(base) else float32_weight(base)
        weight = _outputs_first(layer, weight)
        if kind == "loftq":
            for _ in range(LOFTQ_ROUNDS):
                _replace_base(layer, weight - _update(layer))
                _set_factors(layer, weight - _outputs_first(layer, float32_weight(base)), kind, f"{seed}/{name}")
        else:
            _set_factors(layer, weight, kind, f"{seed}/{name}")
            _replace_base(layer, weight - _update(layer))
        first, second = layer.lora_A[_NAME].weight, layer.lora_B[_NAME].weight
        starts[name] = Start(first.detach().clone(), second.detach().clone())
    return starts


@torch.no_grad()
def set_magnitudes(model: nn.Module) -> None:
    """Start DoRA's magnitudes from float32 weights; PEFT computes them in the format in which the layer holds its own."""
    for _, layer in _linear_layers(model):
        if _NAME in layer.lora_magnitude_vector:
            weight = _outputs_first(layer, float32_weight(layer.get_base_layer())) + _update(layer)
            layer.lora_magnitude_vector[_NAME].weight.copy_(torch.linalg.norm(weight, dim=1))


def subtract_start(weights: Mapping[str, torch.Tensor], starts: Mapping[str, Start]) -> dict[str, torch.Tensor]:
    """An adapter's weights by PEFT's names, as an adapter of twice the rank for the weights in the model's own file.

    W - s·B₀·A₀ + s·B·A = W + s·[B, -B₀]·[A; A₀]. Matrices that started as usual are padded with zeros.
    """
    found = dict(weights)
    for name, value in weights.items():
        layer, _, rest = name.removeprefix("base_model.model.").partition(".lora_")
        start, side = starts.get(layer), rest.removeprefix("embedding_")[:1]
        if side == "A":
            more = torch.zeros_like(value) if start is None else start.first.to(value)
            found[name] = torch.cat([value, more], dim=0)
        elif side == "B":
            more = torch.zeros_like(value) if start is None else -start.second.to(value)
            found[name] = torch.cat([value, more], dim=1)
    return found


def _linear_layers(model: nn.Module) -> Iterator[tuple[str, Any]]:
    adapted: dict[str, Any] = {name: each for name, each in model.named_modules() if isinstance(each, BaseTunerLayer)}
    for name, layer in adapted.items():
        if _NAME in layer.lora_A and layer.lora_A[_NAME].weight.ndim == 2:  # neither a table nor a convolution
            yield name, layer


def _outputs_first(layer: Any, weight: torch.Tensor) -> torch.Tensor:
    """A weight as in the model's file, as (outputs, inputs); also the other way round."""
    base = layer.get_base_layer()
    turned = is_transposed(base) if is_quantized(base) else layer.fan_in_fan_out
    return weight.T if turned else weight


def _update(layer: Any) -> torch.Tensor:
    first, second = layer.lora_A[_NAME].weight, layer.lora_B[_NAME].weight
    return layer.scaling[_NAME] * second @ first  # (outputs, inputs)


def _replace_base(layer: Any, weight: torch.Tensor) -> None:
    replace_weight(layer.get_base_layer(), _outputs_first(layer, weight))


def _set_factors(layer: Any, weight: torch.Tensor, kind: str, key: str) -> None:
    """Set s·B·A to the best approximation of a weight (outputs, inputs); ranks beyond its own stay as they are."""
    first, second = layer.lora_A[_NAME].weight, layer.lora_B[_NAME].weight
    rank = min(len(first), *weight.shape)
    left, sizes, right = _factor(weight, rank, kind, key)
    roots = (sizes / layer.scaling[_NAME]).sqrt()
    first[:rank] = roots[:, None] * right
    second[:, :rank] = left * roots


def _factor(weight: torch.Tensor, rank: int, kind: str, key: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The largest singular values (rank) with their vectors, (outputs, rank) and (rank, inputs)."""
    if "_niter_" not in kind:
        left, sizes, right = torch.linalg.svd(weight, full_matrices=False)
        return left[:, :rank], sizes[:rank], right[:rank]
    # Halko et al. 2011, algorithm 4.4, whose random matrix depends on nothing but the layer and the seed.
    drawn = draw_normal(key, (weight.shape[1], rank), 0)
    basis = torch.linalg.qr(weight @ torch.from_numpy(np.asarray(drawn)).to(weight)).Q
    for _ in range(int(kind.rpartition("_")[2])):
        basis = torch.linalg.qr(weight @ torch.linalg.qr(weight.T @ basis).Q).Q
    left, sizes, right = torch.linalg.svd(basis.T @ weight, full_matrices=False)
    return basis @ left, sizes, right


class _StoredWeights:
    """The weights of a model in its file, of which the model itself holds only rounded ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = weights_folder(folder)
        self._places = {name: file for file in read_weights(folder).files for name in read_header(file)}

    def read(self, layer: str, base: Any) -> torch.Tensor:
        """A layer's weight in float32 on its device; heads call the body by other names than the file may."""
        name = f"{layer}.weight"
        body, held = name.partition(".")[2], float32_weight(base)
        for each in sorted(self._places, key=lambda stored: stored != name):
            if each in (name, body) or each.partition(".")[2] in (name, body):
                with safe_open(self._places[each], framework="pt") as file:
                    found = file.get_tensor(each).float().to(held.device)
                if found.shape == held.shape and torch.dist(found, held) < 0.5 * held.norm():
                    return found
        raise RunFailed(
            "{folder}: the weights of {layer} are not in its file, so its adapter cannot start from them; set "
            "adapter.initialization to default",
            "no_stored_weight",
            folder=self._folder,
            layer=layer,
        )
