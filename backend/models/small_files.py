"""Owns which files beside its weights a model takes along into a converted copy."""

import shutil
from pathlib import Path

_KEPT = {".json", ".txt", ".model", ".tiktoken", ".md", ".bpe", ".py"}
_LARGEST = 100 * 1024 * 1024


def copy_small_files(source: Path, target: Path) -> None:
    """Configuration, tokenizer, code of its own and model card; no list of weight files, which the copy has its own of."""
    for path in source.iterdir():
        small = path.is_file() and path.stat().st_size <= _LARGEST
        if small and path.suffix in _KEPT and not path.name.endswith((".bin.index.json", ".msgpack.index.json")):
            shutil.copyfile(path, target / path.name)
