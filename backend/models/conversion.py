"""Converts pickled and Flax weights once: a short-lived process reads them, a safetensors copy stays."""

import hashlib
import os
import subprocess
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.processes import python_command
from backend.contract.redaction import TOKEN_VARIABLES
from backend.data.cache import DamagedCacheError, open_or_write
from backend.data.sources.source import Report
from backend.models.remote_code import agree_to_copy, read_code
from backend.models.weights import BIN, BIN_INDEX, FLAX, FLAX_INDEX, read_weights

_CONVERTERS = {"bin": "backend.engines.torch.convert_weights", "flax": "backend.engines.jax.convert_weights"}
_FIELD = "model.name_or_path"


def convert(folder: Path, cache: Path, report: Report = lambda done, total, unit: None) -> Path:
    """A copy of `folder` with safetensors, made once for its content. Raises InputError if it contains code."""
    copy = open_or_write(converted_folder(folder, cache), _check, lambda target: _run(folder, target), report)
    agree_to_copy(folder, copy)
    return copy


def converted_folder(folder: Path, cache: Path) -> Path:
    """Where a folder's converted copy is or will be, by the content of its files."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.iterdir()):
        if path.is_file() and (path.suffix == ".json" or path.name.startswith(("pytorch_model", "flax_model"))):
            digest.update(path.name.encode() + b"\0")
            digest.update(_content(path))
    for name, content in read_code(folder).items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return cache / "converted" / digest.hexdigest()


def any_in(cache: Path) -> bool:
    """Whether anything was ever converted; finding out which takes reading the weights."""
    return (cache / "converted").is_dir()


def is_converted(folder: Path) -> bool:
    """Whether a converted copy is complete."""
    return folder.is_dir() and read_weights(folder).format == "safetensors"


def _check(folder: Path) -> Path:
    if not is_converted(folder):
        raise DamagedCacheError
    return folder


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def _run(folder: Path, target: Path) -> None:
    # The process has no other task, so whatever a file from elsewhere does to it ends with it; it gets no hub token.
    # JAX is told to leave accelerators alone, of which a run may hold the only one.
    changes = {"HF_HUB_OFFLINE": "1", "JAX_PLATFORMS": "cpu", **dict.fromkeys(TOKEN_VARIABLES, "")}
    ended = subprocess.run(
        python_command(_CONVERTERS[read_weights(folder).format], str(folder), str(target)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, **changes},
        check=False,
    )
    if ended.returncode:
        errors = ended.stderr.strip().splitlines()
        name = next(name for name in (BIN, BIN_INDEX, FLAX, FLAX_INDEX) if (folder / name).exists())
        reason = (
            errors[-1] if errors else message("the converter exited with {returncode}", returncode=ended.returncode)
        )
        raise InputError(
            "{field}: {folder} was not converted: {reason}; use a model with safetensors weights",
            _FIELD,
            field=_FIELD,
            folder=folder / name,
            reason=reason,
        )
