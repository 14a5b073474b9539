"""What a model folder's weight files contain: their format, tensors and damage, read from headers only."""

import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import is_file_name, open_regular
from backend.models.adapter_files import weights_folder
from backend.models.model_files import parse_table, read_table_if_sound

SAFETENSORS, SAFETENSORS_INDEX = "model.safetensors", "model.safetensors.index.json"
BIN, BIN_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
FLAX, FLAX_INDEX = "flax_model.msgpack", "flax_model.msgpack.index.json"
OLD_FORMATS = ("bin", "flax")
"""What is turned into safetensors once, after consent."""
_POINTER = b"version https://git-lfs"
_LARGEST_HEADER = 100_000_000  # the format's own limit
_BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
"""The types of the format."""
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
        """Number of parameters; tied weights are stored only once."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.files)


def read_weights(folder: Path) -> Weights:
    """The folder's weights, or those of its adapter's base model; safetensors come before `.bin` and `.msgpack`."""
    try:
        folder = weights_folder(folder)
    except InputError as error:
        return Weights("none", problem=str(error).removeprefix("model.name_or_path: "))
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
            return _lfs_pointer_weights(pointer) if pointer else Weights(kind, files)
    return Weights(
        "none",
        problem=message(
            "{folder} has no weights (model.safetensors); {folder_2}",
            folder=folder,
            folder_2=_explain_no_weights(folder),
        ),
    )


def is_pointer(path: Path) -> bool:
    """Whether a file is a Git LFS pointer without its content."""
    with path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER


def _files(folder: Path, single: str, index: str) -> tuple[tuple[Path, ...], str]:
    if (folder / single).is_file():
        return (folder / single,), ""
    if not (folder / index).is_file():
        return (), ""
    places = read_table_if_sound(folder / index).get("weight_map")
    # Transformers would follow any path.
    names = set(places.values()) if isinstance(places, dict) and all(map(is_file_name, places.values())) else set()
    if not names:
        return (), message(
            "{folder} is not a readable list of weight files; download the model again", folder=folder / index
        )
    paths = tuple(folder / name for name in sorted(names))
    missing = [path.name for path in paths if not path.is_file()]
    return paths, message(
        "{folder} lacks {missing}; download the model again", folder=folder, missing=", ".join(missing[:3])
    ) if missing else ""


def _explain_no_weights(folder: Path) -> str:
    if (folder / FLAX).is_file() or (folder / FLAX_INDEX).is_file():
        return flax_problem(folder)
    if (folder / "tf_model.h5").is_file():
        return message("tf_model.h5 belongs to another framework: save the model from there as safetensors")
    return message("choose a folder with weights, or set model.initialise to from_config to train from scratch")


def _read_all(files: tuple[Path, ...]) -> Weights:
    shapes: dict[str, tuple[int, ...]] = {}
    dtypes: dict[str, int] = {}
    for path in files:
        if is_pointer(path):
            return _lfs_pointer_weights(path)
        try:
            header = read_header(path)
        except (ValueError, OSError) as error:
            problem = message("{path} is damaged ({error}); download it again", path=path, error=error)
            return Weights("broken", files, problem=problem)
        for name, entry in header.items():
            if entry["dtype"] in _NUMBERS:
                shapes[name] = tuple(entry["shape"])
                dtypes[entry["dtype"]] = dtypes.get(entry["dtype"], 0) + math.prod(entry["shape"])
    if not shapes:
        return Weights(
            "broken", files, problem=message("{files} contains no weights; download the model again", files=files[0])
        )
    return Weights("safetensors", files, shapes, max(dtypes, key=lambda name: dtypes[name], default=""))


def _lfs_pointer_weights(path: Path) -> Weights:
    problem = message(
        "{path} is a Git LFS pointer, not the weights; run `git lfs pull` in {parent}", path=path, parent=path.parent
    )
    return Weights("lfs-pointer", (path,), problem=problem)


def read_header(path: Path) -> dict[str, dict]:
    """Tensor → its entry in a safetensors file. Raises ValueError if the file is damaged."""
    size = path.stat().st_size
    with open_regular(path) as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(_LARGEST_HEADER, size - 8):
            raise ValueError(message("its header is truncated or is not a safetensors header"))
        content = file.read(length)
    try:
        header = parse_table(content, path, unique=True)
    except InputError:
        raise ValueError(message("its header is not a JSON table, or has one key twice")) from None
    header.pop("__metadata__", None)
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: _offsets(*item)):
        begin, after = _offsets(name, entry)
        if begin != end:
            raise ValueError(
                message(
                    "tensor {name} starts at byte {begin:,} instead of {end:,}",
                    name=repr(name[:80]),
                    begin=begin,
                    end=end,
                )
            )
        if after - begin != _bytes(name, entry):
            raise ValueError(
                message(
                    "tensor {name} has {after:,} bytes, which does not match its shape",
                    name=repr(name[:80]),
                    after=after - begin,
                )
            )
        end = after
    if 8 + length + end != size:
        raise ValueError(message("it should be {value:,} bytes but is {size:,}", value=8 + length + end, size=size))
    return header


def _offsets(name: str, entry: Any) -> tuple[int, int]:
    found = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not (isinstance(found, list) and len(found) == 2 and all(map(_is_count, found)) and found[0] <= found[1]):
        raise ValueError(message("tensor {name} has no offsets in the file", name=repr(name[:80])))
    return found[0], found[1]


def _bytes(name: str, entry: dict) -> int:
    kind, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(kind, str) or kind not in _BITS:
        raise ValueError(
            message("tensor {name} has the unknown type {kind}", name=repr(name[:80]), kind=repr(str(kind)[:20]))
        )
    if not (isinstance(shape, list) and all(map(_is_count, shape))):
        raise ValueError(message("tensor {name} has no shape", name=repr(name[:80])))
    return math.prod(shape) * _BITS[kind] // 8


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


_FORMATS = {
    "safetensors": (SAFETENSORS, SAFETENSORS_INDEX, re.compile(r"model-\d+-of-\d+\.safetensors")),
    "bin": (BIN, BIN_INDEX, re.compile(r"pytorch_model-\d+-of-\d+\.bin")),
    "flax": (FLAX, FLAX_INDEX, re.compile(r"flax_model-\d+-of-\d+\.msgpack")),
}
_SMALL = re.compile(r"[^/]+\.(json|txt|model|tiktoken|bpe|md|jinja)|LICENSE|LICENCE|([^/]+/)*[^/]+\.py")
_NOT_SMALL = re.compile(r".*\.(safetensors|bin|msgpack)\.index\.json")


def weight_files(names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The preferred available format and its files; `none` if there are none."""
    for kind, (single, index, shard) in _FORMATS.items():
        if single in names:
            return kind, (single,)
        shards = tuple(name for name in names if shard.fullmatch(name))
        if index in names and shards:
            return kind, (index, *shards)
    return "none", ()


def small_files(names: tuple[str, ...]) -> tuple[str, ...]:
    """Configuration, tokenizer, its own code (never run without approval), model card and licence."""
    return tuple(each for each in names if _SMALL.fullmatch(each) and not _NOT_SMALL.fullmatch(each))


_FLAX_FAMILIES = frozenset(
    {
        "bert",
        "roberta",
        "xlm-roberta",
        "distilbert",
        "gpt2",
        "opt",
        "llama",
        "mistral",
        "t5",
        "mt5",
        "marian",
        "bart",
        "mbart",
    }
)


def flax_problem(folder: Path) -> str:
    """Why Flax weights of the folder's architecture cannot be read, as the end of a sentence; empty if they can."""
    return flax_family_problem(str(read_table_if_sound(folder / "config.json").get("model_type", "")))


def flax_family_problem(model_type: str) -> str:
    """Why a family's Flax weights cannot be read, as the end of a sentence; empty if they can."""
    if model_type in _FLAX_FAMILIES:
        return ""
    return message(
        "flax_model.msgpack of the architecture {model_type} cannot be converted here: save the "
        "model as safetensors with transformers 4 (from_pretrained with from_flax=True)",
        model_type=model_type or message("that config.json does not specify"),
    )


_FLAX_WEIGHTS = {"kernel", "scale", "embedding"}
_FLAX_KEPT = {"weight", "bias", "final_logits_bias"}


def rename_flax_parameters(tree: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A transformers 4 Flax checkpoint as tensors under torch's names. Raises ValueError for unsupported families.

    All these families follow one rule: modules have torch's names, a layer's `kernel` is torch's `weight`, transposed
    (for GPT-2 too, which stores it transposed), and the `scale` of a norm and the `embedding` of a table are its
    `weight`.
    """
    tensors = {}
    for path, value in _flax_leaves(tree.get("params", tree)):
        last = path[-1]
        if last not in _FLAX_WEIGHTS | _FLAX_KEPT:
            raise ValueError(message("{path} is not a parameter of a supported family", path="/".join(path)))
        numbers = value if value.dtype in (np.float16, np.float32) else value.astype(np.float32)
        name = ".".join([*path[:-1], "weight" if last in _FLAX_WEIGHTS else last])
        tensors[name] = np.ascontiguousarray(numbers.T if last == "kernel" else numbers)
    return tensors


def _flax_leaves(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    for name, value in tree.items():
        path = (*above, str(name))
        if isinstance(value, Mapping):
            yield from _flax_leaves(value, path)
        elif isinstance(value, np.ndarray):
            yield path, value
        else:
            raise ValueError(message("{path} is not an array", path="/".join(path)))


CHUNK_BYTES = 1 << 24
_FRACTIONS = {"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
_KINDS = (*_FRACTIONS, "BF16")
_EXPONENT = np.uint16(0x7F80)  # all of bfloat16's exponent bits: infinite or not a number


@dataclass(frozen=True)
class UnsoundTensor:
    """A tensor with infinite or NaN values."""

    name: str
    file: Path


def first_unsound(folder: Path) -> UnsoundTensor | None:
    """The first such tensor in the folder's safetensors, in file order; None if all are fine or there are none.

    Reads the weights once, a few megabytes at a time. Raises OSError and ValueError if they cannot be read.
    """
    weights = read_weights(folder)
    for file in weights.files if weights.format == "safetensors" else ():
        for name, kind, begin, end in _tensors(file):
            if any(not _is_sound(chunk, kind) for chunk in _chunks(file, begin, end)):
                return UnsoundTensor(name, file)
    return None


def _tensors(file: Path) -> Iterator[tuple[str, str, int, int]]:
    start = _data_start(file)
    for name, entry in sorted(read_header(file).items(), key=lambda item: item[1]["data_offsets"][0]):
        if entry["dtype"] in _KINDS:
            begin, end = entry["data_offsets"]
            yield name, entry["dtype"], start + begin, start + end


def _data_start(file: Path) -> int:
    with file.open("rb") as opened:
        return 8 + int.from_bytes(opened.read(8), "little")


def _chunks(file: Path, begin: int, end: int) -> Iterator[bytes]:
    with file.open("rb") as opened:
        opened.seek(begin)
        while begin < end:
            chunk = opened.read(min(CHUNK_BYTES, end - begin))
            if not chunk:
                raise ValueError(message("{file} is truncated", file=file))
            begin += len(chunk)
            yield chunk


def _is_sound(chunk: bytes, kind: str) -> bool:
    if kind == "BF16":
        bits = np.frombuffer(chunk, np.dtype("<u2"))
        return not bool(((bits & _EXPONENT) == _EXPONENT).any())
    return bool(np.isfinite(np.frombuffer(chunk, _FRACTIONS[kind])).all())
