"""Saves and restores a checkpoint: trainable weights and optimizer state as safetensors, bit-exact."""

import errno
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from backend.contract.errors import RunFailed
from backend.engines import allocator
from backend.engines.engine import Finish
from backend.engines.torch import memory
from backend.engines.torch.frozen_weights import quantized_state
from backend.engines.torch.optimizer import Optimizer
from backend.engines.torch.precision import Precision
from backend.engines.torch.sparse_embedding import convert_words

WEIGHTS, OPTIMIZER = "model.safetensors", "optimizer.safetensors"


def frozen_weights(model: nn.Module) -> frozenset[str]:
    """Names that no checkpoint needs, because the model's file or the seed reproduces them."""
    named = model.named_parameters(remove_duplicate=False)
    return frozenset(name for name, parameter in named if not parameter.requires_grad) | quantized_state(model)


def omitted_weights(folder: Path, model: nn.Module) -> frozenset[str]:
    """Names of weights that the checkpoint omits because they were not trained; none if it cannot be read."""
    try:
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            held = set(file.keys())
    except (OSError, SafetensorError):
        return frozenset()
    return frozenset() if held.isdisjoint(model.state_dict()) else frozenset(set(model.state_dict()) - held)


@dataclass(frozen=True)
class _File:
    path: Path
    tensors: dict[str, torch.Tensor]
    metadata: dict[str, str]


def save(
    folder: Path, model: nn.Module, frozen: frozenset[str], optimizer: Optimizer | None, precision: Precision
) -> Finish:
    """Copy the trained state into memory; calling the returned function, from any thread, writes both files.

    If there is no memory for a copy, the files are written before this returns. Raises OSError if the disk is full.
    """
    files = [_File(folder / WEIGHTS, _weights(model, frozen), {"format": "pt"})]
    if optimizer is not None:
        metadata = {"scaler": json.dumps(precision.state()), "words": optimizer.words}
        files.append(_File(folder / OPTIMIZER, optimizer.state(), metadata))
    copies = _copy_files(files)
    if copies is None:
        _write(files)
        return lambda: None
    return partial(_write, copies)


def _copy_files(files: list[_File]) -> list[_File] | None:
    """The files with copies of their tensors, or None if memory cannot hold a second copy."""
    size = sum(tensor.nbytes for file in files for tensor in file.tensors.values())
    if 2 * size > memory.available_bytes():
        return None
    try:
        # The next step's activations would settle in what a written copy leaves free, and the next copy would need new memory.
        with memory.translate_out_of_memory(), allocator.return_large_blocks(allocator.MATRIX):
            return [replace(file, tensors=_copy(file.tensors)) for file in files]
    except RunFailed:
        return None


def _copy(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}


def restore(
    folder: Path, model: nn.Module, frozen: frozenset[str], optimizer: Optimizer | None, precision: Precision
) -> None:
    """Restore what `save` wrote. Raises RunFailed if it belongs to another model or is damaged."""
    with reading(folder):
        weights = load_file(folder / WEIGHTS)
        if optimizer is None:
            take_weights(_weights(model, frozen), weights)
            return
        state, metadata = load_file(folder / OPTIMIZER), read_metadata(folder / OPTIMIZER)
        convert_words(state, weights, metadata.get("words", ""), optimizer.words)
        take_weights(_weights(model, frozen), weights)
        optimizer.restore(state)
        precision.restore(json.loads(metadata.get("scaler", "{}")))


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Raises RunFailed if the checkpoint cannot be read."""
    try:
        yield
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise RunFailed(
            "{folder}: this checkpoint cannot be read ({error}); resume from an older one",
            "checkpoint_unreadable",
            folder=folder,
            error=error,
        ) from error


def read_metadata(path: Path) -> dict[str, str]:
    """What a safetensors file says besides its tensors."""
    with safe_open(path, framework="pt") as file:
        return file.metadata() or {}


def _weights(model: nn.Module, frozen: frozenset[str]) -> dict[str, torch.Tensor]:
    # Tied weights stand once, under their first name; buffers that the model does not store are made again on loading.
    tensors: dict[str, torch.Tensor] = {}
    seen: set[tuple[int, torch.Size]] = set()
    for name, value in model.state_dict().items():
        is_new = (key := (value.data_ptr(), value.shape)) not in seen or value.numel() == 0
        if name not in frozen and is_new:
            seen.add(key)
            tensors[name] = value.contiguous()
    return tensors


@torch.no_grad()
def take_weights(places: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor]) -> None:
    """Copy stored weights into their places. Raises RunFailed if one is missing or has another shape."""
    if wrong := [name for name, place in places.items() if not _fits(tensors.get(name), place)]:
        raise RunFailed(
            "This checkpoint belongs to another model: {wrong} does not match; start a new run",
            "checkpoint_mismatch",
            wrong=wrong[0],
        )
    for name, place in places.items():
        place.copy_(tensors[name])


def _fits(stored: torch.Tensor | None, place: torch.Tensor) -> bool:
    if stored is None or stored.shape != place.shape:
        return False
    return stored.is_floating_point() == place.is_floating_point()  # packed bytes take no numbers


def _write(files: list[_File]) -> None:
    for file in files:
        _write_one(file)
        file.tensors.clear()  # gives the memory of a copy back while the next one is written


def _write_one(file: _File) -> None:
    try:
        save_file({name: value.detach().cpu() for name, value in file.tensors.items()}, file.path, file.metadata)
    except SafetensorError as error:
        if "os error 28" in str(error):  # the library hides the system's own error in its text
            raise OSError(errno.ENOSPC, "No space left on device", str(file.path)) from error
        raise
