"""Owns the copy of a model folder for others, with weights of half the size where asked for."""

import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import Literal

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from backend.contract.errors import InputError
from backend.contract.output_file import check_output_folder, output_errors
from backend.models.model_files import read_table
from backend.models.new_folder import share

Numbers = Literal["float32", "float16"]


def copy_model(source: Path, target: Path, numbers: Numbers) -> None:
    """Write every file of `source` into the new folder `target`, its floating-point weights as `numbers`.

    Raises InputError where `target` is not empty or cannot be written, or where a weight is beyond the range of float16.
    """
    if target.exists() and not target.is_dir():
        raise InputError(f"--model: {target} is a file; name a new folder")
    if target.exists() and any(target.iterdir()):
        raise InputError(f"--model: {target} is not empty; name a new folder")
    check_output_folder(target, "--model")
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
    share(beside)
    if target.exists():
        target.rmdir()
    beside.rename(target)


def _convert(source: Path, target: Path, numbers: Numbers) -> None:
    with safe_open(source, framework="np") as file:
        metadata = file.metadata()
    tensors = load_file(source)
    converted = {name: _as(values, name, numbers) for name, values in tensors.items()}
    try:
        save_file(converted, target, metadata)
    except SafetensorError as error:  # what the system refused is in its words alone
        number = re.search(r"os error (\d+)|code: (\d+)", str(error))
        raise OSError(int(number[1] or number[2]) if number else errno.EIO, str(error), str(target)) from error


def _as(values: np.ndarray, name: str, numbers: Numbers) -> np.ndarray:
    if not np.issubdtype(values.dtype, np.floating):
        return values
    if numbers == "float16" and np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
        raise InputError(f"--dtype: {name} holds numbers beyond the range of float16; keep float32")
    return values.astype(numbers)


def _name_numbers(path: Path, numbers: Numbers) -> None:
    config = read_table(path)
    config.pop("torch_dtype", None)
    path.write_text(json.dumps({**config, "dtype": numbers}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
