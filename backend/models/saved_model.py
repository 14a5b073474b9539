"""Writes, reads and copies `model/`: the Hugging Face folder that a run saves, with its facts in `burnish.json`."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from backend.contract.errors import InputError, RunFailed
from backend.contract.messages import message
from backend.contract.output_file import check_output_folder, output_errors
from backend.contract.run.folder import write_json
from backend.data.removal import ASIDE, RemovalFailure, delete, set_aside
from backend.models import calibration
from backend.models.adapter_files import is_alone, weights_folder
from backend.models.model_files import CONFIG_LIMIT, parse_table, read_small, read_table, read_table_if_sound
from backend.models.weights import read_weights

NOTE = "burnish.json"
BASE = "base"
"""The key of the note under which an adapter's names its model."""
_BLOCK, _BLOCKS = 65_536, 32
"""Bytes of one look into a file, and how many looks: other training changes every weight, and gigabytes need not be read."""
Numbers = Literal["float32", "float16"]


def write(folder: Path, fill: Callable[[Path], None], note: dict[str, Any]) -> list[RemovalFailure]:
    """Let `fill` write the model to a temporary folder, add the note, and rename it as a whole, replacing an older one.

    Returns what could not be deleted of older ones. Raises OSError, and RunFailed if an older one cannot be moved.
    """
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    kept = delete(_leftovers(folder))
    try:
        beside.mkdir()
        fill(beside)
        write_json(beside / NOTE, note)
        flush_to_disk(beside)
        older = [_set_aside(folder)] if folder.exists() else []
        beside.rename(folder)
        return [*kept, *delete(older)]
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _leftovers(folder: Path) -> list[Path]:
    """What killed processes left of `folder`: half-written or replaced ones. All else of such a name may be the user's."""
    pattern = re.compile(rf"\.{re.escape(folder.name.lstrip('.'))}(?:\.|{re.escape(ASIDE)})\d+")
    return [path for path in folder.parent.glob(".*") if pattern.fullmatch(path.name) and path.is_dir()]


def _set_aside(folder: Path) -> Path:
    try:
        return set_aside(folder)
    except OSError as error:
        raise RunFailed(
            "{folder} could not be replaced ({strerror}), so the new model was not written",
            "model_in_use",
            hint=message(
                "Close any program that uses that folder, or move the folder away, then resume the run; "
                "its checkpoints are untouched."
            ),
            folder=folder,
            strerror=error.strerror or error,
        ) from error


def read_note(folder: Path) -> dict[str, Any] | None:
    """What Burnish wrote beside the weights (`task`, `facts`, `columns`), or None for a model from elsewhere.

    Raises InputError if it is damaged, or not Burnish's.
    """
    content = read_small(folder / NOTE, CONFIG_LIMIT)
    note = None if content is None else parse_table(content, folder / NOTE)
    if note is not None and not _is_note(note):
        raise damaged_note_error(folder)
    return note


def damaged_note_error(folder: Path) -> InputError:
    """The message for a note that lacks what its task needs."""
    return InputError(
        "{folder} lacks the information that Burnish saves with a model (task, labels, columns); "
        "copy or export the model again, or delete this file and specify the task (--task)",
        folder=folder / NOTE,
    )


def _is_note(note: dict[str, Any]) -> bool:
    task, facts, columns = (note.get(name) for name in ("task", "facts", "columns"))
    if not (isinstance(task, dict) and isinstance(facts, dict) and isinstance(columns, dict)):
        return False
    labels = facts.get("labels", [])
    return (
        isinstance(task.get("type"), str) and isinstance(labels, list) and all(isinstance(one, str) for one in labels)
    )


def share(folder: Path) -> None:
    """Give a new folder's files the folder's own permissions; safetensors makes its files private."""
    usual = folder.stat().st_mode & 0o666
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(usual)


def flush_to_disk(folder: Path) -> None:
    """Flush every file of the folder to disk before it is renamed, and give the files the folder's permissions."""
    share(folder)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
    for inner in (path for path in folder.rglob("*") if path.is_dir()):
        flush_folder(inner)


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    if os.name == "nt":  # Windows cannot open a folder to flush it
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def base_fact(folder: Path, name: str, held: str = "float32") -> dict[str, str]:
    """What an adapter's note stores about its base model in `folder`, named `name`, whose weights were `held` so."""
    return {"name": name, "weights": _weights_digest(folder), "format": held}


def check_base(folder: Path, note: dict[str, Any] | None, base: Path) -> None:
    """Raises InputError if the model in `base` is not the one in the note of the adapter in `folder`."""
    known = (note or {}).get(BASE)
    if isinstance(known, dict) and known.get("weights") != _weights_digest(base):
        raise InputError(
            "model.name_or_path: {folder} contains an adapter, and the weights of its model {known} "
            "have changed since it was trained; restore the original model, or train again",
            "model.name_or_path",
            folder=folder,
            known=known.get("name", base),
        )


def check_alone(folder: Path) -> None:
    """The same check for a folder that contains only an adapter, if it does."""
    if is_alone(folder):
        check_base(folder, _note_of(folder), weights_folder(folder))


def _note_of(folder: Path) -> dict[str, Any] | None:
    return read_table_if_sound(folder / NOTE) or None  # an adapter of another origin says nothing


def _weights_digest(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in read_weights(folder).files:
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            for place in sorted({max(0, size - _BLOCK) * number // (_BLOCKS - 1) for number in range(_BLOCKS)}):
                file.seek(place)
                digest.update(file.read(_BLOCK))
    return digest.hexdigest()


def copy_model(source: Path, target: Path, numbers: Numbers) -> None:
    """Copy every file of `source` to the new folder `target`, with floating-point weights converted to `numbers`.

    A calibration becomes part of the weights, if their last layer is known; else its file is copied. Raises InputError if `target` is not empty or not writable, or if a weight exceeds the range of float16.
    """
    if target.exists() and not target.is_dir():
        raise InputError("--model: {target} is a file; choose a new folder", target=target)
    if target.exists() and any(target.iterdir()):
        raise InputError("--model: {target} is not empty; choose a new folder", target=target)
    check_output_folder(target, "--model")
    delete(_leftovers(target))
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with output_errors(target, "--model", beside):
            _copy(source, beside, target, numbers)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _copy(source: Path, beside: Path, target: Path, numbers: Numbers) -> None:
    shutil.copytree(source, beside, ignore=shutil.ignore_patterns("*.safetensors"))
    for path in sorted(source.glob("*.safetensors")):
        _convert(path, beside / path.name, numbers)
    _name_numbers(beside / "config.json", numbers)
    found = calibration.read(beside)
    if found is not None:
        calibration.fold_into_weights(beside, found)
    share(beside)
    if target.exists():
        target.rmdir()
    beside.rename(target)


def _convert(source: Path, target: Path, numbers: Numbers) -> None:
    with safe_open(source, framework="np") as file:
        metadata = file.metadata()
    tensors = load_file(source)
    converted = {name: _as_numbers(values, name, numbers) for name, values in tensors.items()}
    try:
        save_file(converted, target, metadata)
    except SafetensorError as error:  # what the system refused is in its words alone
        number = re.search(r"os error (\d+)|code: (\d+)", str(error))
        raise OSError(int(number[1] or number[2]) if number else errno.EIO, str(error), str(target)) from error


def _as_numbers(values: np.ndarray, name: str, numbers: Numbers) -> np.ndarray:
    if not np.issubdtype(values.dtype, np.floating):
        return values
    if numbers == "float16" and np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
        raise InputError("--dtype: {name} contains values outside the range of float16; keep float32", name=name)
    return values.astype(numbers)


def _name_numbers(path: Path, numbers: Numbers) -> None:
    config = read_table(path)
    config.pop("torch_dtype", None)
    path.write_text(json.dumps({**config, "dtype": numbers}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
