"""Owns the proposal of a folder that is not there yet."""

import re
from pathlib import Path


def free_folder(above: Path, name: str) -> Path:
    """`above/name`, or with -2, -3 … where that exists; what no file system likes in a name becomes a dash."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "tokenizer"
    path, number = above / plain, 2
    while path.exists():
        path, number = above / f"{plain}-{number}", number + 1
    return path
