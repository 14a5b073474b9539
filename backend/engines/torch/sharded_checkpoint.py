"""Saves and restores the checkpoint of a divided model: the files of `checkpoint.py`, which any number of processes opens."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from backend.engines.torch.checkpoint import OPTIMIZER, WEIGHTS, read_metadata, reading, take_weights
from backend.engines.torch.distributed import shared_file
from backend.engines.torch.distributed.process_group import ProcessGroup
from backend.engines.torch.distributed.shared_file import Part
from backend.engines.torch.optimizer import Optimizer
from backend.engines.torch.sparse_embedding import convert_words

if TYPE_CHECKING:
    from backend.engines.torch.distributed.sharded_model import ShardedModel


def save(
    folder: Path, shards: "ShardedModel", frozen: frozenset[str], optimizer: Optimizer | None, group: ProcessGroup
) -> None:
    """Write both files together; without an optimizer, only the weights. Raises OSError if the disk is full."""
    weights = shards.weights(frozen)
    shared_file.write(folder / WEIGHTS, weights, {"format": "pt"}, group)
    if optimizer is not None:
        metadata = {"scaler": json.dumps({}), "words": ""}
        shared_file.write(folder / OPTIMIZER, _state(optimizer.state(), weights), metadata, group)


def _state(state: Mapping[str, torch.Tensor], weights: Mapping[str, Part]) -> dict[str, Part]:
    found: dict[str, Part] = {}
    for key, value in state.items():
        weight = weights[key.partition(".")[2]]
        is_divided = value.ndim > 0 and value.shape == weight.rows.shape
        found[key] = (
            Part(value, weight.shape, weight.first) if is_divided else Part(value, tuple(value.shape), is_whole=True)
        )
    return found


def restore(folder: Path, shards: "ShardedModel", frozen: frozenset[str], optimizer: Optimizer) -> None:
    """Restore this process's rows of what any number of processes wrote. Raises RunFailed as `checkpoint.restore` does."""
    wanted = shards.weights(frozen)

    def part_of(key: str, shape: tuple[int, ...]) -> Part | None:
        part = wanted.get(key) or wanted.get(key.partition(".")[2])
        return part if part is not None and part.shape == shape else None

    with reading(folder):
        weights = shared_file.read(folder / WEIGHTS, part_of)
        state = shared_file.read(folder / OPTIMIZER, part_of)
        stored = read_metadata(folder / OPTIMIZER).get("words", "")
        convert_words(state, weights, stored, "", wanted[stored].first if stored else 0)
        take_weights({name: part.rows for name, part in wanted.items()}, weights)
        optimizer.restore(state)
