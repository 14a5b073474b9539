"""Owns what stands in a model folder's weight files: their format, tensors and damage, read from headers alone."""

import json
import math
import struct
from dataclasses import dataclass, field
from pathlib import Path

from backend.contract.errors import InputError
from backend.models import flax_names
from backend.models.adapter_folder import weights_folder

SAFETENSORS, SAFETENSORS_INDEX = "model.safetensors", "model.safetensors.index.json"
BIN, BIN_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
FLAX, FLAX_INDEX = "flax_model.msgpack", "flax_model.msgpack.index.json"
OLD_FORMATS = ("bin", "flax")
"""What is turned into safetensors once, after consent."""
_POINTER = b"version https://git-lfs"
_LARGEST_HEADER = 100_000_000  # the format's own limit
_NUMBERS = {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"}


@dataclass(frozen=True)
class Weights:
    """The weights of a folder. `format` is `safetensors`, `bin`, `flax`, `none`, `lfs-pointer` or `broken`."""

    format: str
    files: tuple[Path, ...] = ()
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    dtype: str = ""
    problem: str = ""
    """What is wrong with the files and the way out, as a sentence; empty where nothing is."""

    @property
    def parameters(self) -> int:
        """Numbers that can be trained; tied weights stand in a file once."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.files)


def read_weights(folder: Path) -> Weights:
    """What the folder holds, or the model whose adapter alone lies there; safetensors go before `.bin` and `.msgpack`."""
    try:
        folder = weights_folder(folder)
    except InputError as error:
        return Weights("none", problem=str(error).partition(": ")[2])
    files, problem = _files(folder, SAFETENSORS, SAFETENSORS_INDEX)
    if problem:
        return Weights("broken", problem=problem)
    if files:
        return _read_all(files)
    for kind, single, index in (("bin", BIN, BIN_INDEX), ("flax", FLAX, FLAX_INDEX)):
        files, problem = _files(folder, single, index)
        if problem:
            return Weights("broken", problem=problem)
        if files and not (kind == "flax" and flax_problem(folder)):
            pointer = next((path for path in files if is_pointer(path)), None)
            return _pointed(pointer) if pointer else Weights(kind, files)
    return Weights("none", problem=f"{folder} holds no weights (model.safetensors); {_none_way_out(folder)}")


def flax_problem(folder: Path) -> str:
    """Why Flax weights of the folder's architecture cannot be read, as the end of a sentence; nothing where they can."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = None
    return flax_names.problem(str(config.get("model_type", "")) if isinstance(config, dict) else "")


def is_pointer(path: Path) -> bool:
    """Whether a file is what Git LFS leaves where it has not fetched the content."""
    with path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER


def _files(folder: Path, single: str, index: str) -> tuple[tuple[Path, ...], str]:
    if (folder / single).is_file():
        return (folder / single,), ""
    if not (folder / index).is_file():
        return (), ""
    try:
        names = sorted(set(json.loads((folder / index).read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError):
        return (), f"{folder / index} is no readable list of weight files; download the model again"
    paths = tuple(folder / Path(name).name for name in names)
    missing = [path.name for path in paths if not path.is_file()]
    return paths, f"{folder} lacks {', '.join(missing[:3])}; download the model again" if missing else ""


def _none_way_out(folder: Path) -> str:
    if (folder / FLAX).is_file() or (folder / FLAX_INDEX).is_file():
        return flax_problem(folder)
    if (folder / "tf_model.h5").is_file():
        return "tf_model.h5 is of another framework: save the model from there as safetensors"
    return "choose a folder with weights, or set model.initialise to from_config to train from scratch"


def _read_all(files: tuple[Path, ...]) -> Weights:
    shapes: dict[str, tuple[int, ...]] = {}
    dtypes: dict[str, int] = {}
    for path in files:
        if is_pointer(path):
            return _pointed(path)
        try:
            header = read_header(path)
        except (ValueError, struct.error, KeyError, TypeError) as error:
            problem = f"{path} is damaged ({error}); download it again"
            return Weights("broken", files, problem=problem)
        for name, entry in header.items():
            if entry["dtype"] in _NUMBERS:
                shapes[name] = tuple(entry["shape"])
                dtypes[entry["dtype"]] = dtypes.get(entry["dtype"], 0) + math.prod(entry["shape"])
    return Weights("safetensors", files, shapes, max(dtypes, key=lambda name: dtypes[name], default=""))


def read_header(path: Path) -> dict[str, dict]:
    """Tensor → its entry in a safetensors file. Raises ValueError where the file is damaged."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(_LARGEST_HEADER, size - 8):
            raise ValueError("its header is cut off or no safetensors header")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is no table of tensors")
    header.pop("__metadata__", None)
    end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if 8 + length + end != size:
        raise ValueError(f"it should have {8 + length + end:,} bytes and has {size:,}")
    return header


def _pointed(path: Path) -> Weights:
    problem = f"{path} is a Git LFS pointer and not the weights; run `git lfs pull` in {path.parent}"
    return Weights("lfs-pointer", (path,), problem=problem)
