"""Says which files of a folder go with a model beside its weights, and copies them."""

import shutil
from pathlib import Path

from backend.models.model_files import check_link

_KEPT = {".json", ".txt", ".model", ".tiktoken", ".md", ".bpe", ".spm", ".jinja"}
_LISTS_OF_WEIGHTS = (".bin.index.json", ".msgpack.index.json")
_LARGEST = 100 * 1024 * 1024


def beside_weights(folder: Path) -> list[str]:
    """Configuration, tokenizer and model card; no list of weight files, and no code."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.suffix in _KEPT and not path.name.endswith(_LISTS_OF_WEIGHTS) and path.is_file()
    )


def copy_small_files(source: Path, target: Path) -> None:
    """The same, and the code of the model with its folders, into a converted copy. Raises InputError for links out of it."""
    code = [path.relative_to(source) for path in source.rglob("*.py") if path.is_file()]
    for name in [*map(Path, beside_weights(source)), *code]:
        check_link(source / name, source)
        if (source / name).stat().st_size <= _LARGEST:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)
