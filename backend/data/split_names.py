"""Says which split a file is for by its name and that of its folder, and which files of a folder hold no rows."""

import re
from collections.abc import Sequence
from pathlib import Path

from backend.data.formats.compression import plain_suffix

_WORDS = {
    "train": {"train", "training", "trn"},
    "validation": {"validation", "valid", "val", "dev", "devel", "development", "eval", "evaluation", "testa"},
    "test": {"test", "testing", "tst", "testb"},
}
_NO_DATA = {
    ".md", ".rst", ".pdf", ".doc", ".docx", ".html", ".htm", ".xml", ".py", ".ipynb", ".sh", ".yaml", ".yml", ".toml", ".ini",
    ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".log", ".lock", ".bib", ".tex", ".tar", ".exe", ".bin", ".pt",
    ".safetensors", ".md5", ".sha256",
}  # fmt: skip
_ABOUT = re.compile(
    r"(readme|licen[cs]e|copying|changelog|notice|citation|dataset_infos?|checksums?)\b.*", re.IGNORECASE
)


def split_of(path: Path, within: Path | None = None) -> str | None:
    """`train`, `validation` or `test` by a word in the file's name, else in its folders below `within`."""
    parents = list(path.parent.relative_to(within).parts)[::-1] if within is not None else []
    for name in (path.name, *parents):
        words = re.findall(r"[a-z]+", name.lower())
        found = [split for split, known in _WORDS.items() if known & set(words)]
        if len(found) == 1:
            return found[0]
    return None


def by_split(files: Sequence[Path], within: Path | None = None) -> dict[str | None, list[Path]]:
    """Split → the files that are named for it; under None those whose names say no split."""
    found: dict[str | None, list[Path]] = {}
    for path in files:
        found.setdefault(split_of(path, within if within in path.parents else None), []).append(path)
    return found


def files_for(split: str, files: Sequence[Path], within: Path | None = None) -> list[Path]:
    """The files of a folder or pattern that a split consists of; none where they are all for other splits.

    Names decide only where they say different splits: files that are all named alike, or not at all, are one split's.
    """
    found = by_split(files, within)
    if len(found) == 1:
        return list(files)
    return found.get(split) or (found.get(None, []) if split == "train" else [])


def why_no_data(path: Path) -> str:
    """Why a file of a folder is not taken for data by its name; empty where it may be."""
    if path.name.startswith((".", "_")):
        return "hidden"
    if _ABOUT.fullmatch(path.name):
        return "tells about the data"
    return f"{path.suffix} files hold no rows" if plain_suffix(path) in _NO_DATA else ""
