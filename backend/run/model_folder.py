"""Owns `model/`: the Hugging Face folder that a run leaves, with what its task must know in `burnish.json`."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backend.contract.run_folder import write_json
from backend.run.checkpoints import flush_to_disk

NOTE = "burnish.json"


def write(folder: Path, fill: Callable[[Path], None], note: dict[str, Any]) -> None:
    """Let `fill` write the model beside, add the note, and put it in place whole; an older one is replaced."""
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    for leftover in folder.parent.glob(f".{folder.name}.*"):  # of a process that was killed while it wrote
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        beside.mkdir()
        fill(beside)
        write_json(beside / NOTE, note)
        flush_to_disk(beside)
        if folder.exists():
            old = folder.with_name(f".{folder.name}.old.{os.getpid()}")
            folder.rename(old)
            beside.rename(folder)
            shutil.rmtree(old)
        else:
            beside.rename(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def read_note(folder: Path) -> dict[str, Any] | None:
    """What Burnish wrote beside the weights (`task`, `facts`, `columns`), or None for a model of another origin."""
    try:
        return json.loads((folder / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
