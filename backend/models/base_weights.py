"""Owns whether the model below an adapter is still the one that the adapter was trained on."""

import hashlib
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.models.adapter_folder import is_alone, weights_folder
from backend.models.model_files import read_table_if_sound
from backend.models.weights import read_weights

NOTE, KEY = "burnish.json", "base"
_BLOCK, _BLOCKS = 65_536, 32
"""Bytes of one look into a file, and how many looks: other training changes every weight, and gigabytes need not be read."""


def fact(folder: Path, name: str) -> dict[str, str]:
    """What an adapter's note keeps of the model in `folder`, which is called `name`."""
    return {"name": name, "weights": _digest(folder)}


def check_base(folder: Path, note: dict[str, Any] | None, base: Path) -> None:
    """Raises InputError where the model in `base` is not the one of the note of the adapter in `folder`."""
    known = (note or {}).get(KEY)
    if isinstance(known, dict) and known.get("weights") != _digest(base):
        raise InputError(
            f"model.name_or_path: {folder} holds an adapter, and its model {known.get('name', base)} has other weights than "
            "when it was trained; put the former model back, or train again",
            "model.name_or_path",
        )


def check_alone(folder: Path) -> None:
    """The same of a folder that holds an adapter alone, if it does."""
    if is_alone(folder):
        check_base(folder, _note(folder), weights_folder(folder))


def _note(folder: Path) -> dict[str, Any] | None:
    return read_table_if_sound(folder / NOTE) or None  # an adapter of another origin says nothing


def _digest(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in read_weights(folder).files:
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            for place in sorted({max(0, size - _BLOCK) * number // (_BLOCKS - 1) for number in range(_BLOCKS)}):
                file.seek(place)
                digest.update(file.read(_BLOCK))
    return digest.hexdigest()
