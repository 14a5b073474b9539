"""Weights that are not trained, held in bfloat16 or in the 8- and 4-bit formats of bitsandbytes.

They are read from the file straight into their format. Vectors (biases, norms) and all that trains stay float32. An
embedding's output is float32 too, so that the residual stream is as exact as with float32 weights.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear
from transformers import BitsAndBytesConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from backend.engines.torch.lean_imports import import_bitsandbytes
from backend.engines.weight_formats import QUANTIZED, Format

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_REDUCED = (nn.Linear, nn.Embedding, Conv1D)
"""Layers whose weights are held in less than float32; subclasses may compute with their weights in ways of their own."""


@contextmanager
def loading_options(
    kind: Format, skeleton: PreTrainedModel, trained: set[str], device: torch.device, precision: str
) -> Iterator[dict[str, Any]]:
    """The arguments with which `from_pretrained` holds a model's weights in this format, valid within this context.

    `skeleton` is the model without memory; `trained` names parameters that stay float32 with all vectors.
    """
    layers = {name: part for name, part in skeleton.named_modules() if type(part) in _REDUCED}
    reduced = {f"{name}.weight" for name in layers} - trained
    options: dict[str, Any] = {"dtype": torch.bfloat16, "device_map": {"": device}}
    if kind in QUANTIZED:
        import_bitsandbytes()
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_8bit=kind == "int8",
            load_in_4bit=kind == "nf4",
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=_DTYPES[precision],
            llm_int8_skip_modules=[rf"^{re.escape(name)}$" for name in _unquantized(skeleton, layers, reduced)],
        )
    own = type(skeleton)
    usual = own._keep_in_fp32_modules_strict
    own._keep_in_fp32_modules_strict = {
        *(skeleton._keep_in_fp32_modules or ()),
        *(usual or ()),
        *(name for name, _ in skeleton.named_parameters() if name not in reduced),
    }
    try:
        yield options
    finally:
        own._keep_in_fp32_modules_strict = usual


def _unquantized(skeleton: PreTrainedModel, layers: Mapping[str, nn.Module], reduced: set[str]) -> list[str]:
    """The layers that no 8 or 4 bits may hold: what trains, embeddings, and the output layer."""
    output = skeleton.get_output_embeddings()
    return [
        name
        for name, part in layers.items()
        if f"{name}.weight" not in reduced or part is output or isinstance(part, nn.Embedding)
    ]


def is_float32(model: nn.Module) -> bool:
    """Whether all of the model's weights are float32."""
    return all(each.dtype is torch.float32 for each in model.parameters())


def has_adapter(model: nn.Module) -> bool:
    """Whether layers of PEFT stand in the model, which are not merged with its own."""
    return any(".base_layer." in name for name, _ in model.named_parameters())


def parameter_count(model: nn.Module, *, trained: bool = False) -> int:
    """The model's parameters, or only those that are trained; of packed ones, the numbers that they stand for."""
    return sum(
        prod(state.shape) if (state := getattr(each, "quant_state", None)) is not None else each.numel()
        for each in model.parameters()
        if each.requires_grad or not trained
    )


@torch.no_grad()
def make_float32(model: PreTrainedModel, names: set[str]) -> None:
    """Convert what transformers made in bfloat16 because the file lacks it; fixed tables are computed anew."""
    parameters = dict(model.named_parameters())
    for name in names & parameters.keys():
        parameters[name].data = parameters[name].data.float()
        owner = model.get_submodule(name.rpartition(".")[0])
        if type(owner) is not nn.Embedding and isinstance(owner, nn.Embedding):
            model._init_weights(owner)  # sinusoidal positions


@torch.no_grad()
def leave_file(model: nn.Module) -> None:
    """Copy what is still a view of the model's file: one small vector would keep all of it mapped."""
    for parameter in model.parameters():
        if parameter.is_floating_point() and parameter.device.type == "cpu":
            parameter.data = parameter.data.clone()


def adapt_layers(model: PreTrainedModel, precision: str) -> None:
    """Let layers accept what the layers before them compute, and the model be an ordinary one again."""
    layers: list[Any] = [*model.modules()]
    for part in layers:
        if type(part).__name__ == "Linear4bit":
            part.support_avx512bf16_for_cpu = False  # an evaluation would leave weights through which no gradient goes
            part.weight.quant_state.dtype = _DTYPES[precision]
        elif type(part).__name__ == "Linear8bitLt":
            part.init_8bit_state = partial(_take_scales, part)
        if is_quantized(part):
            vars(part)["forward"] = partial(_add_bias_apart, part)
        if type(part) not in _REDUCED or part.weight.dtype is not torch.bfloat16:
            continue
        if isinstance(part, nn.Embedding):
            part.register_forward_hook(_as_float32)
        elif precision == "float32":  # else autocast converts the weights
            vars(part)["forward"] = partial(_multiply, part)
    if quantizer := getattr(model, "hf_quantizer", None):
        quantizer.remove_quantization_config(model)  # what is saved is not quantized
    vars(model).pop("hf_device_map", None)  # else saving takes all that is on the CPU for offloaded


def _take_scales(layer: Any) -> None:
    """Keep the scales of an 8-bit layer: on a CPU, PEFT's DoRA replaces its weight by a copy that has none."""
    weight, state = layer.weight, layer.state
    state.CB, state.SCB = weight.CB, weight.SCB if weight.SCB is not None else state.SCB
    weight.CB = weight.SCB = None


def _add_bias_apart(layer: Any, states: torch.Tensor) -> torch.Tensor:
    """The forward pass of a quantized layer, whose own would round its bias, for good, to what it computes with."""
    bias, layer._parameters["bias"] = layer._parameters["bias"], None
    try:
        product = type(layer).forward(layer, states)  # (…, outputs)
    finally:
        layer._parameters["bias"] = bias
    return product if bias is None else product + bias


def _as_float32(_: nn.Module, __: Any, output: torch.Tensor) -> torch.Tensor:
    return output.float()


def _multiply(layer: nn.Linear | Conv1D, states: torch.Tensor) -> torch.Tensor:
    weight = layer.weight if isinstance(layer, nn.Linear) else layer.weight.T  # (outputs, inputs)
    product = _Product.apply(states, weight)  # (…, outputs)
    return product if layer.bias is None else product + layer.bias


class _Product(torch.autograd.Function):
    """States (…, inputs) by a weight (outputs, inputs) of another format, of which no copy outlives the product."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(weight)
        return linear(states, weight.to(states.dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        (gradient,), (weight,) = gradients, ctx.saved_tensors
        return gradient @ weight.to(gradient.dtype), None


# Back to float32


def is_quantized(layer: nn.Module) -> bool:
    """Whether bitsandbytes holds the layer's weight; PEFT's own layers have the same names, but are not linear layers."""
    return isinstance(layer, nn.Linear) and type(layer).__name__ in ("Linear4bit", "Linear8bitLt")


@torch.no_grad()
def float32_weight(layer: Any) -> torch.Tensor:
    """A layer's weight in float32 as its file has it, a copy if it is held otherwise."""
    if not is_quantized(layer):
        return layer.weight.detach().float()
    from bitsandbytes.functional import dequantize_4bit, int8_vectorwise_dequant

    if type(layer).__name__ == "Linear8bitLt":
        scales = layer.weight.SCB if layer.state.SCB is None else layer.state.SCB
        weight = int8_vectorwise_dequant(layer.weight.data, scales)  # (outputs, inputs)
    else:
        state = copy(layer.weight.quant_state)
        state.dtype = torch.float32  # it would round to what the file had
        weight = dequantize_4bit(layer.weight.data, state)  # (outputs, inputs)
    return weight.T if is_transposed(layer) else weight


@torch.no_grad()
def replace_weight(layer: Any, weight: torch.Tensor) -> None:
    """Give a layer another weight, in float32 as its file would have it; the layer holds it in its own format."""
    if not is_quantized(layer):
        layer.weight.data = weight.to(layer.weight.dtype).contiguous()
        return
    from bitsandbytes.functional import int8_vectorwise_quant, quantize_4bit

    weight, held = (weight.T if is_transposed(layer) else weight).contiguous(), layer.weight  # (outputs, inputs)
    if type(layer).__name__ == "Linear8bitLt":
        held.data, scales, _ = int8_vectorwise_quant(weight.half())
        held.CB, held.SCB = held.data, scales  # the next forward pass takes them
        layer.state.CB = layer.state.SCB = None
        return
    before = held.quant_state
    held.data, state = quantize_4bit(
        weight, blocksize=before.blocksize, compress_statistics=before.nested, quant_type=before.quant_type
    )
    state.dtype = before.dtype
    held.quant_state = layer.quant_state = state


def is_transposed(layer: Any) -> bool:
    """Whether a quantized layer holds its weight (outputs, inputs), but its model's file (inputs, outputs)."""
    return issubclass(layer.source_cls, Conv1D)


def quantized_state(model: nn.Module) -> set[str]:
    """The names in the model's state of what bitsandbytes keeps beside a weight."""
    found = set[str]()
    for name, layer in model.named_modules():
        if is_quantized(layer):
            own = {key for key in layer.state_dict() if key not in ("weight", "bias")}
            found |= {f"{name}.{key}" for key in own}
    return found


@contextmanager
def float32_weights(
    model: nn.Module, folder: Path, changed: Mapping[str, Callable[[], torch.Tensor]] | None = None
) -> Iterator[dict[str, torch.Tensor]]:
    """The model's weights by name, in float32, without what bitsandbytes keeps beside them.

    `changed` maps a weight's name to a function that computes its replacement. In float32 a model may be larger than
    the memory: unless it is held so, it is computed one weight after another, in files within `folder`.
    """
    extra, fits_memory = quantized_state(model), is_float32(model)
    computed: dict[str, Callable[[], torch.Tensor]] = {
        f"{name}.weight": partial(float32_weight, layer) for name, layer in model.named_modules() if is_quantized(layer)
    }
    computed |= changed or {}
    state = {name: value for name, value in model.state_dict().items() if name not in extra}
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as place:
        found: dict[str, torch.Tensor] = {}
        tied: dict[tuple[int, torch.Size], torch.Tensor] = {}
        for number, (name, value) in enumerate(state.items()):
            key = value.data_ptr(), value.shape
            if name in computed:
                replacement = computed[name]()
                found[name] = replacement if fits_memory else _on_disk(replacement, Path(place) / str(number))
            elif value.dtype is torch.float32 or not value.is_floating_point():
                found[name] = value
            else:  # tied weights stay one
                found[name] = tied[key] = tied[key] if key in tied else _on_disk(value, Path(place) / str(number))
        yield found
        found.clear()
        tied.clear()  # no file can be deleted on Windows while it is mapped


def _on_disk(value: torch.Tensor, path: Path) -> torch.Tensor:
    """A float32 copy whose memory is that file. Raises OSError if the disk is full."""
    if hasattr(os, "posix_fallocate"):  # a mapped file that finds no room would end the process
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 4 * value.numel())
    return torch.from_file(str(path), shared=True, size=value.numel()).view(value.shape).copy_(value)


def save_float32(model: PreTrainedModel, folder: Path, weights: dict[str, torch.Tensor]) -> None:
    """Write these weights with the model's configuration, whatever format the model itself is in."""
    model.save_pretrained(folder, state_dict=weights)
    if model.dtype is not torch.float32:
        model.config.dtype = torch.float32
        model.config.save_pretrained(folder)
