"""Divides a model among the processes that train it (PyTorch's FSDP2): of each weight a process keeps some of the rows.

A block's weights are gathered for its forward and its backward pass; those outside of the blocks (embeddings, the head)
stay gathered in between. The optimizer sees only plain tensors: the rows of this process.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
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
from backend.engines.torch.distributed.process_group import ProcessGroup
from backend.engines.torch.distributed.shared_file import Part

_CALL = "run_gathered"
"""The method that FSDP takes for a forward pass of the whole model."""

Returned = TypeVar("Returned")


class ShardedModel:
    """The parts that this process holds of a model, whose modules are changed in place."""

    def __init__(
        self, model: Any, group: ProcessGroup, device: torch.device, precision: str, *, offloads: bool
    ) -> None:
        self._model, self._group = model, group
        _divide(model, group, device, precision, offloads=offloads)
        self._named: dict[str, Any] = dict(model.named_parameters())
        self.trained = [(name, nn.Parameter(_rows(each))) for name, each in self._named.items() if each.requires_grad]
        """This process's rows of each weight that trains, with its name in the model; maybe none."""

    def take_gradients(self) -> None:
        """Move this step's gradients to `trained`."""
        for name, rows in self.trained:
            whole = self._named[name]
            rows.data = _rows(whole)  # FSDP replaces them when it pins their memory
            rows.grad = None if whole.grad is None else _rows(whole.grad)
            whole.grad = None

    def total_norm(self, norm: torch.Tensor) -> torch.Tensor:
        """The norm of all processes' gradients, from that of this one's."""
        return self._group.add_up(norm.square()).sqrt()

    def weights(self, left_out: frozenset[str]) -> dict[str, Part]:
        """The parts of the model's state; tied weights once, under their first name."""
        self._model.reshard()
        parameters = {name for name, _ in self._model.named_parameters(remove_duplicate=False)}
        return {
            name: self._part(value)
            for name, value in self._model.state_dict().items()
            if name not in left_out and (name in self._named or name not in parameters)
        }

    def run(self, compute: Callable[[], Returned]) -> Returned:
        """Run what uses the model in another way than by its forward pass, with its outer weights gathered."""
        return getattr(self._model, _CALL)(compute)

    def _part(self, value: torch.Tensor) -> Part:
        if not isinstance(value, DTensor):
            return Part(value, tuple(value.shape), is_whole=True)
        first = self._group.rank * -(-value.shape[0] // self._group.size)  # as torch.chunk divides rows
        return Part(_rows(value), tuple(value.shape), min(first, value.shape[0]))


def _rows(weight: Any) -> torch.Tensor:
    with torch.no_grad():
        return weight.to_local()


def _divide(model: Any, group: ProcessGroup, device: torch.device, precision: str, *, offloads: bool) -> None:
    mesh = group.mesh(device)
    offloading = CPUOffloadPolicy() if offloads and device.type != "cpu" else OffloadPolicy()
    # A block is gathered in the format that it computes in: autocast would keep its own copies of all blocks' weights
    # until the backward pass. Inputs stay as they are, as does what is outside: so the residual stream is float32.
    inside = MixedPrecisionPolicy()
    if precision != "float32":
        inside = MixedPrecisionPolicy(getattr(torch, precision), torch.float32, cast_forward_inputs=False)
    for parameter in model.parameters():
        parameter.data = parameter.data.contiguous()
    try:
        for block in find_blocks(model):
            if inside.param_dtype is not None:
                _normalize_in_float32(block)
            fully_shard(block, mesh=mesh, mp_policy=inside, offload_policy=offloading, reshard_after_forward=True)
        # Its weights are needed again at once, and by a loss that is computed from the output layer's weight.
        fully_shard(model, mesh=mesh, offload_policy=offloading, reshard_after_forward=False)
    except ValueError as error:
        raise InputError(
            "hardware.strategy: PyTorch cannot divide this model ({error}); set it to ddp",
            "hardware.strategy",
            error=next(iter(str(error).splitlines()), ""),
        ) from error
    chooses = any(name.endswith("experts") and isinstance(part, nn.ModuleList) for name, part in model.named_modules())
    model.set_reduce_scatter_unused_params(chooses)  # each process's rows use other experts
    for module in model.modules():
        if isinstance(module, FSDPModule):
            # Sums, because a loss is divided by the targets of all processes; plain ones, because gloo has no others.
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    model.computes_on = device
    setattr(model, _CALL, lambda compute: compute())
    register_fsdp_forward_method(model, _CALL)
    # Nothing here changes what a block returns in place.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")


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
