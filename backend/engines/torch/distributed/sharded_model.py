"""Shards a model over the processes that train it (PyTorch's FSDP2): of each weight a process keeps some of the rows.

A block's weights are gathered for its forward and its backward pass; those outside of the blocks (embeddings, the head)
stay gathered in between. The optimizer sees only plain tensors: the rows of this process.
"""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.tensor import DTensor
from torch.nn.functional import layer_norm

from backend.contract.errors import InputError
from backend.engines.torch.checkpoint import OPTIMIZER, WEIGHTS, read_metadata, reading, take_weights
from backend.engines.torch.distributed import shared_file
from backend.engines.torch.distributed.process_group import ProcessGroup
from backend.engines.torch.distributed.shared_file import Part
from backend.engines.torch.optimizer import Optimizer
from backend.engines.torch.sparse_embedding import convert_words

_FORWARD_METHOD = "run_gathered"
"""The method that FSDP takes for a forward pass of the whole model."""

Returned = TypeVar("Returned")


class ShardedModel:
    """The parts that this process holds of a model, whose modules are changed in place."""

    def __init__(
        self, model: Any, group: ProcessGroup, device: torch.device, precision: str, *, offloads: bool
    ) -> None:
        self._model, self._group = model, group
        _shard(model, group, device, precision, offloads=offloads)
        self._named: dict[str, Any] = dict(model.named_parameters())
        self._used = set[str]()
        """The weights for which this process computed a gradient since the last step."""
        self._watched = set[str]()
        for name, module in model.named_modules():
            if _is_gathered_by_itself(module):
                module.register_forward_pre_hook(partial(self._watch_use, name))
        self.trained = [(name, nn.Parameter(_rows(each))) for name, each in self._named.items() if each.requires_grad]
        """This process's rows of each weight that trains, with its name in the model; maybe none."""

    def take_gradients(self) -> None:
        """Move this step's gradients to `trained`; as on one process, a weight has none if no row used it."""
        used = self._group.any_process([name in self._used for name, _ in self.trained])
        for (name, rows), is_used in zip(self.trained, used, strict=True):
            whole = self._named[name]
            rows.data = _rows(whole)  # FSDP replaces them when it pins their memory
            rows.grad = _rows(whole.grad) if is_used else None
            whole.grad = None
        self._used.clear()

    def _watch_use(self, prefix: str, module: nn.Module, _: Any = None) -> None:
        """Note which of the module's weights get gradients: FSDP adds up zeros of those that no row used."""
        if prefix in self._watched:
            return
        self._watched.add(prefix)  # gathered weights are parameters of their own, from the first forward pass on
        for name, weight in module.named_parameters(prefix):
            if weight.requires_grad and not isinstance(weight, DTensor):
                weight.register_post_accumulate_grad_hook(partial(self._note_use, name))

    def _note_use(self, name: str, _: torch.Tensor) -> None:
        self._used.add(name)

    def total_norm(self, norm: torch.Tensor) -> torch.Tensor:
        """The norm of all processes' gradients, from that of this one's."""
        return self._group.add_up(norm.square()).sqrt()

    def save(self, folder: Path, frozen: frozenset[str], optimizer: Optimizer | None) -> None:
        """Write both files of `checkpoint.py` together; without an optimizer, only the weights.

        Raises OSError if the disk is full.
        """
        weights = self._weights(frozen)
        shared_file.write(folder / WEIGHTS, weights, {"format": "pt"}, self._group)
        if optimizer is not None:
            metadata = {"scaler": json.dumps({}), "words": ""}
            shared_file.write(folder / OPTIMIZER, _state_parts(optimizer.state(), weights), metadata, self._group)

    def restore(self, folder: Path, frozen: frozenset[str], optimizer: Optimizer) -> None:
        """Restore this process's rows of what any number of processes wrote. Raises RunFailed as `checkpoint.restore` does."""
        wanted = self._weights(frozen)

        def part_of(key: str, shape: tuple[int, ...]) -> Part | None:
            part = wanted.get(key) or wanted.get(key.partition(".")[2])
            return part if part is not None and part.shape == shape else None

        with reading(folder):
            weights = shared_file.read(folder / WEIGHTS, part_of)
            state = shared_file.read(folder / OPTIMIZER, part_of)
            stored = read_metadata(folder / OPTIMIZER).get("words", "")
            if stored:
                convert_words(state, weights, stored, "", wanted[stored].first, wanted[stored].shape[0])
            take_weights({name: part.rows for name, part in wanted.items()}, weights)
            optimizer.restore(state)

    def _weights(self, frozen: frozenset[str]) -> dict[str, Part]:
        """The parts of the model's state; tied weights once, under their first name."""
        self._model.reshard()
        parameters = {name for name, _ in self._model.named_parameters(remove_duplicate=False)}
        return {
            name: self._part(value)
            for name, value in self._model.state_dict().items()
            if name not in frozen and (name in self._named or name not in parameters)
        }

    def run(self, compute: Callable[[], Returned]) -> Returned:
        """Run what uses the model in another way than by its forward pass, with its outer weights gathered."""

        def compute_watched() -> Returned:
            self._watch_use("", self._model)
            return compute()

        return getattr(self._model, _FORWARD_METHOD)(compute_watched)

    def _part(self, value: torch.Tensor) -> Part:
        if not isinstance(value, DTensor):
            return Part(value, tuple(value.shape), is_whole=True)
        first = self._group.rank * -(-value.shape[0] // self._group.size)  # as torch.chunk divides rows
        return Part(_rows(value), tuple(value.shape), min(first, value.shape[0]))


def _state_parts(state: Mapping[str, torch.Tensor], weights: Mapping[str, Part]) -> dict[str, Part]:
    found: dict[str, Part] = {}
    for key, value in state.items():
        weight = weights[key.partition(".")[2]]
        is_sharded = value.ndim > 0 and value.shape == weight.rows.shape
        found[key] = (
            Part(value, weight.shape, weight.first) if is_sharded else Part(value, tuple(value.shape), is_whole=True)
        )
    return found


def _is_gathered_by_itself(module: nn.Module) -> bool:
    return isinstance(module, FSDPModule)


def _rows(weight: Any) -> torch.Tensor:
    with torch.no_grad():
        return weight.to_local()


def _shard(model: Any, group: ProcessGroup, device: torch.device, precision: str, *, offloads: bool) -> None:
    mesh = group.mesh(device)
    offloading = CPUOffloadPolicy() if offloads and device.type != "cpu" else OffloadPolicy()
    # A block is gathered in the format that it computes in: autocast would keep its own copies of all blocks' weights
    # until the backward pass. Inputs stay as they are, as does what is outside: so the residual stream is float32.
    inside = MixedPrecisionPolicy()
    if precision != "float32":
        inside = MixedPrecisionPolicy(getattr(torch, precision), torch.float32, cast_forward_inputs=False)
    try:
        for block in find_blocks(model):
            _complete(block, group, becomes_float32=getattr(model, "becomes_float32", False))
            if inside.param_dtype is not None:
                _normalize_in_float32(block)
            fully_shard(block, mesh=mesh, mp_policy=inside, offload_policy=offloading, reshard_after_forward=True)
        _complete(model, group, becomes_float32=getattr(model, "becomes_float32", False))
        # Its weights are needed again at once, and by a loss that is computed from the output layer's weight.
        fully_shard(model, mesh=mesh, offload_policy=offloading, reshard_after_forward=False)
    except ValueError as error:
        raise InputError(
            "hardware.strategy: PyTorch cannot shard this model ({error}); set it to ddp",
            "hardware.strategy",
            error=next(iter(str(error).splitlines()), ""),
        ) from error
    model.set_reduce_scatter_unused_params(True)  # the rows of each process may use other weights, such as experts
    for module in model.modules():
        if isinstance(module, FSDPModule):
            # Sums, because a loss is divided by the targets of all processes; plain ones, because gloo has no others.
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    model.computes_on = device
    setattr(model, _FORWARD_METHOD, lambda compute: compute())
    register_fsdp_forward_method(model, _FORWARD_METHOD)
    # Nothing here changes what a block returns in place.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")


def _complete(part: nn.Module, group: ProcessGroup, *, becomes_float32: bool) -> None:
    """Give a part that is not sharded yet its final weights: until then they may be pages of the model's file.

    They are copies, because a changed page stays in memory as long as any part needs the file.
    """
    weights = [each for each in part.parameters() if not isinstance(each, DTensor)]
    for weight in weights:
        dtype = torch.float32 if becomes_float32 else weight.dtype
        weight.data = weight.data.to(dtype, copy=True, memory_format=torch.contiguous_format)
    group.share_weights([each for each in weights if each.requires_grad])


def _normalize_in_float32(block: nn.Module) -> None:
    """Let layer norms accept weights in less than what they normalize: autocast converts them on accelerators alone."""
    for part in block.modules():
        if type(part) is nn.LayerNorm:
            vars(part)["forward"] = partial(_normalize, part)


def _normalize(norm: nn.LayerNorm, states: torch.Tensor) -> torch.Tensor:
    weight, bias = (None if each is None else each.float() for each in (norm.weight, norm.bias))
    return layer_norm(states.float(), norm.normalized_shape, weight, bias, norm.eps)


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """The layers that the model repeats: the outermost lists of modules."""
    return [block for child in model.children() for block in _blocks(child)]


def _blocks(module: nn.Module) -> Iterator[nn.Module]:
    if not isinstance(module, nn.ModuleList):
        for child in module.children():
            yield from _blocks(child)
        return
    for part in module:
        if isinstance(part, nn.ModuleList):
            yield from _blocks(part)
        elif any(True for _ in part.parameters()):
            yield part
