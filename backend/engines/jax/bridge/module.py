"""Owns an architecture of transformers as a function of its parameters, which JAX traces as it does a family of ours."""

from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.func import functional_call
from transformers import PreTrainedModel

from backend.contract.heads import Head
from backend.engines.jax.bridge.environment import as_jax, as_torch, bridged
from backend.engines.jax.bridge.inputs import Inputs
from backend.engines.jax.bridge.recomputing import recompute_layers
from backend.engines.jax.layers import Noise, numbers
from backend.engines.jax.models.family import Arrays
from backend.engines.jax.sharding import Rules
from backend.engines.torch_layers import standing, undecayed_parameters

_WIDE = {torch.int64: torch.int32, torch.float64: torch.float32}
"""What JAX computes with instead."""


class BridgedModel:
    """One head of one architecture; what `backend.engines.jax.model.Model` is to a family of ours.

    Its parameters bear transformers' names. Beside them `shapes` holds the module's buffers, which never train.
    """

    def __init__(self, module: PreTrainedModel, head: Head, constant: frozenset[str] = frozenset()) -> None:
        """`constant` are parameters that no gradient reaches."""
        self._module = module
        self.architecture = type(module).__name__
        self._own = _own_names(module)
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        self._weights = frozenset(parameters)
        self.fixed = constant | buffers.keys()
        self.shapes = {name: tuple(each.shape) for name, each in {**parameters, **buffers}.items()}
        self.undecayed = frozenset(undecayed_parameters(module))
        self.standing = standing(module)
        self.divided: Rules = {}
        self._inputs = Inputs(module, head)
        recompute_layers(module)

    def take_parameters(self) -> dict[str, np.ndarray]:
        """The values of `shapes`; the module has none afterwards, for they would lie in memory twice."""
        found = {name: _array(each) for name, each in self._tensors().items()}
        for parameter in self._module.parameters():
            parameter.data = parameter.data.new_empty(0)
        return found

    def at(self, parameters: Mapping[str, jax.Array]) -> "Placed":
        """The model with these values, inside or outside of a trace."""
        return Placed(self, parameters)

    def write(self, folder: Path, parameters: Mapping[str, np.ndarray]) -> None:
        """Configuration and weights as transformers writes them, tied ones once and under the names that files use."""
        for name, parameter in self._module.named_parameters():
            parameter.data = torch.tensor(parameters[name])
        self._module.save_pretrained(folder)
        for parameter in self._module.parameters():
            parameter.data = parameter.data.new_empty(0)

    def answer(self, parameters: Mapping[str, jax.Array], arrays: Arrays, noise: Noise | None) -> dict[str, jax.Array]:
        """What transformers' forward pass gives: `logits`, or those of starts and ends.

        Of a language model `logits` are (targets, vocabulary), of the places that `arrays` asks for.
        """
        values = self._values(parameters)
        self._module.train(noise is not None)
        with bridged(None if noise is None else noise.next()):
            given = self._inputs.given(arrays)
            with self._inputs.chosen(arrays) as select:
                found = functional_call(self._module, as_torch(values), kwargs=given, tie_weights=False)
            return {name: select(as_jax(found[name])) for name in OUTPUTS if name in found}

    def read(self, parameters: Mapping[str, jax.Array], arrays: Arrays) -> jax.Array:
        """What the encoder makes of sources, (batch, length, width)."""
        encoder: torch.nn.Module = self._module.get_encoder()
        [prefix] = [name for name, each in self._module.named_modules() if each is encoder]
        values = {
            name.removeprefix(f"{prefix}."): value
            for name, value in self._values(parameters).items()
            if name.startswith(f"{prefix}.")
        }
        self._module.eval()
        with bridged(None):
            found = functional_call(encoder, as_torch(values), kwargs=as_torch(arrays), tie_weights=False)
            return as_jax(found.last_hidden_state)

    def _values(self, parameters: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """By every name that the module has; weights in the number format of the computation."""
        cast = {name: value.astype(numbers()) for name, value in parameters.items() if name in self._weights}
        return {name: cast.get(own, parameters[own]) for name, own in self._own.items()}

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {**dict(self._module.named_parameters()), **dict(self._module.named_buffers())}


OUTPUTS = ("logits", "start_logits", "end_logits")
"""What forward passes call what the heads want of them."""


class Placed:
    """A model with its parameters in place, as the heads ask it (`backend.engines.jax.heads`)."""

    def __init__(self, model: BridgedModel, parameters: Mapping[str, jax.Array]) -> None:
        self._model, self._parameters = model, parameters

    def __call__(self, arrays: Arrays, noise: Noise | None) -> jax.Array:
        """Logits of rows (batch, outputs) or tokens (batch, length, outputs); of spans a start and an end each."""
        found = self._model.answer(self._parameters, arrays, noise)
        return found["logits"] if "logits" in found else jnp.stack([found["start_logits"], found["end_logits"]], -1)

    def at_targets(self, arrays: Arrays, noise: Noise | None) -> jax.Array:
        """A language model's logits of the batch's targets, (targets, vocabulary)."""
        return self._model.answer(self._parameters, arrays, noise)["logits"]


def _own_names(module: torch.nn.Module) -> dict[str, str]:
    """Every name of a parameter or buffer → the one that `shapes` has for it: tied ones are the same."""
    first: dict[int, str] = {}
    every = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    return {name: first.setdefault(id(each), name) for name, each in every}


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach()
    return tensor.to(_WIDE.get(tensor.dtype, tensor.dtype)).numpy()
