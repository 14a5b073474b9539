"""The short-lived process that converts pickled weights to safetensors: `-m … SOURCE_FOLDER TARGET_FOLDER`.

Only tensors are unpickled (`weights_only=True`); a file that holds anything else is rejected in one line on stderr.
"""

import json
import pickle
import re
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from backend.contract.messages import message
from backend.models.model_files import copy_small_files
from backend.models.weights import BIN, BIN_INDEX, SAFETENSORS, SAFETENSORS_INDEX

_REFUSED = 3
_GLOBAL = re.compile(r"(?:GLOBAL|global|function) ([\w.]+)")


def main(source: Path, target: Path) -> int:
    """Write the folder; returns the exit code."""
    try:
        if (source / BIN).is_file():
            _convert_file(source / BIN, target / SAFETENSORS)
        else:
            _convert_shards(source, target)
    except (pickle.UnpicklingError, ValueError, RuntimeError, EOFError) as error:
        sys.stderr.write(f"\n{_describe_error(error)}\n")
        return _REFUSED
    copy_small_files(source, target)
    return 0


def _convert_shards(source: Path, target: Path) -> None:
    index = json.loads((source / BIN_INDEX).read_text(encoding="utf-8"))
    shards = sorted(set(index["weight_map"].values()))
    places: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        places |= dict.fromkeys(_convert_file(source / Path(shard).name, target / name), name)
    text = json.dumps({"metadata": index.get("metadata", {}), "weight_map": places}, indent=2)
    (target / SAFETENSORS_INDEX).write_text(text, encoding="utf-8")


def _convert_file(source: Path, target: Path) -> list[str]:
    tensors = _drop_ties(_read(source))
    if not tensors:
        raise ValueError(message("{name} does not contain any tensors", name=source.name))
    save_file(tensors, target, metadata={"format": "pt"})
    return list(tensors)


def _read(path: Path) -> dict[str, torch.Tensor]:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        if "mmap" not in str(error):
            raise
        found = torch.load(path, map_location="cpu", weights_only=True)  # the format before torch 1.6
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    if not isinstance(found, dict):
        raise ValueError(message("{name} does not contain a table of tensors", name=path.name))
    return {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}


def _drop_ties(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    # Tied weights are stored once, as transformers writes them: some architectures untie what a file holds twice.
    kept: dict[str, torch.Tensor] = {}
    seen: set[tuple] = set()
    for name, value in tensors.items():
        view = (value.untyped_storage().data_ptr(), value.storage_offset(), value.shape, value.stride())
        if value.numel() == 0 or view not in seen:
            seen.add(view)
            kept[name] = value.clone(memory_format=torch.contiguous_format)
    return kept


def _describe_error(error: Exception) -> str:
    if isinstance(error, pickle.UnpicklingError):
        found = _GLOBAL.search(str(error))
        what = f" ({found.group(1)})" if found else ""
        return message("it contains code where only weights are allowed{what}, so it was not opened", what=what)
    return str(error).splitlines()[0]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
