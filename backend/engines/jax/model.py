"""A model as a function of its parameters, a dictionary with Hugging Face's names."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

import jax
import numpy as np
from flax import nnx
from safetensors.numpy import save_file

from backend import registry
from backend.contract.heads import Head
from backend.engines.jax.layers import Conv1D, Embedding, LayerNorm, Linear, RMSNorm, UnsupportedModelError
from backend.engines.jax.models.family import Build, Config, Family
from backend.engines.layer_depth import LayerDepths

WEIGHTS = "model.safetensors"
Parameters = dict[str, jax.Array]
Change = Callable[[nnx.Module], None]
"""Exchanges parts of a module that is being built."""


class Model:
    """One head of one family. `shapes` describes its parameters; `at` binds it to values."""

    def __init__(self, config: Config, head: Head, outputs: int, change: Change | None = None) -> None:
        family = find_family(config, head)
        family.check(config)
        self.architecture, build = family.heads[head]
        self._build = build if change is None else _with_change(build, change)
        self.body, self.bodies = family.bodies.get(head, family.body), {family.body, *family.bodies.values()}
        self.fixed, self.divided, self.aliases = family.fixed, family.divided, family.aliases
        self.reads_packed_rows = family.reads_packed_rows
        self.words = f"{self.body}.{family.words}.weight" if family.words and head is not Head.MASKED_LM else ""
        """The table of tokens, if only the input's tokens are looked up in it."""
        self._config, self._head, self._outputs = config, head, outputs
        abstract = nnx.eval_shape(lambda: self._build(config, outputs))
        self._graph, state = nnx.split(abstract)
        found = list(nnx.to_flat_state(state))
        self._paths = {".".join(map(str, path)): path for path, _ in found}
        self.shapes = {".".join(map(str, path)): tuple(value.shape) for path, value in found}
        self.undecayed = _undecayed_names(abstract, self._paths)
        self.layer_depths = LayerDepths(
            names=tuple(name for name in self.shapes if name not in self.fixed),
            body=frozenset(name for name in self.shapes if not self.body or name.startswith(f"{self.body}.")),
            tables=frozenset(_modules(abstract, Embedding)),
        )
        below = {name.partition(".")[0] for name in self.layer_depths.tables}
        self.tops = frozenset(name.partition(".")[0] for name in self.shapes) - below
        """The parts on top of what the heads share: those without a table."""
        self.linear = {
            ".".join(map(str, path)): isinstance(each, Conv1D)
            for path, each in nnx.iter_graph(abstract)
            if isinstance(each, Linear | Conv1D)
        }
        """Names of the linear layers, and whether their weight is (inputs, outputs)."""

    def with_change(self, change: Change) -> "Model":
        """The same model with other parts."""
        return Model(self._config, self._head, self._outputs, change)

    @cached_property
    def output_names(self) -> frozenset[str]:
        """The parameters with a row for each output of the head."""
        return self._growing(self._config, self._outputs + 1)

    @cached_property
    def token_names(self) -> frozenset[str]:
        """The parameters with a row for each token."""
        return self._growing({**self._config, "vocab_size": self._config["vocab_size"] + 1}, self._outputs) - self.fixed

    def _growing(self, config: Config, outputs: int) -> frozenset[str]:
        """The parameters that grow with this configuration and number of outputs."""
        larger = nnx.state(nnx.eval_shape(lambda: self._build(config, outputs)))
        return frozenset(
            name
            for path, value in nnx.to_flat_state(larger)
            if tuple(value.shape) != self.shapes[name := ".".join(map(str, path))]
        )

    def write(self, folder: Path, parameters: Mapping[str, np.ndarray]) -> None:
        """Write the weights as a file in Hugging Face layout, under their own names."""
        save_file(dict(parameters), folder / WEIGHTS, {"format": "pt"})

    def bind(self, parameters: Mapping[str, jax.Array]) -> nnx.Module:
        """The module bound to these values, inside or outside of a trace."""
        state = nnx.from_flat_state([(path, nnx.Param(parameters[name])) for name, path in self._paths.items()])
        return nnx.merge(self._graph, state)


def _with_change(build: Build, change: Change) -> Build:
    def build_changed(config: Config, outputs: int) -> nnx.Module:
        module = build(config, outputs)
        change(module)
        return module

    return build_changed


def find_family(config: Config, head: Head | None = None) -> Family:
    """Raises UnsupportedModelError for an architecture, or a head of it, that no family supports."""
    name = str(config["model_type"]).replace("-", "_")
    if name not in registry.names("family"):
        raise UnsupportedModelError("does not support the architecture {config}", config=repr(config["model_type"]))
    family: Family = registry.find("family", name, "hardware.engine")
    if head is not None and head not in family.heads:
        raise UnsupportedModelError(
            "has no {head} for {config}", head=head.replace("_", " "), config=config["model_type"]
        )
    return family


def _modules(module: nnx.Module, *kinds: type) -> set[str]:
    """The names of the modules of some types."""
    return {".".join(map(str, path)) for path, each in nnx.iter_graph(module) if isinstance(each, kinds)}


def _undecayed_names(module: nnx.Module, names: Mapping[str, tuple[object, ...]]) -> frozenset[str]:
    """Biases and the parameters of norms."""
    norms = _modules(module, LayerNorm, RMSNorm)
    return frozenset(name for name in names if name.endswith("bias") or name.rpartition(".")[0] in norms)
