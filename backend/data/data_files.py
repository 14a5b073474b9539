"""Resolves the files that a split names: a file, a list, a pattern, a folder, or a folder saved by `datasets`.

Files named one by one are taken as they are. From a folder or a pattern a split gets the files named for it
(`files_for`), whether the user drops it, types it or writes it in a spec.
"""

import difflib
import glob
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import MAX_TEXT, check_inside, is_file_name, read_regular, user_path
from backend.contract.safe_text import parse_json
from backend.data.formats.compression import plain_suffix
from backend.data.formats.detect import is_data_file

MAX_FILES = 2000
"""Of a folder; more are a mistake of the person who names it."""
MAX_ENTRIES = 100_000
"""Of a folder and those below, hidden files among them, that are looked through for its files."""

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


def data_files(value: str | list[str], split: str | None) -> list[Path]:
    """The files in order; for a saved DatasetDict, those of the split with that name. Raises InputError.

    Without a split (a file to predict), a folder or pattern must not hold files of several splits.
    """
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InputError("the list of files is empty; specify at least one file")
    return [path for one in values for path in _files_of(one, split)]


def _files_of(value: str, split: str | None) -> list[Path]:
    path = user_path(value)
    if path.is_dir():
        return _files_in(path, split)
    if path.exists():
        return [path]
    if glob.has_magic(value):
        return _for_split(pattern_files(value), split, None, message("the pattern {value}", value=value))
    raise InputError(
        "{value}: there is no such file or folder{path}; check the path", value=value, path=_suggest_similar(path)
    )


def _files_in(folder: Path, split: str | None) -> list[Path]:
    if (folder / "dataset_dict.json").is_file():
        return _saved_files(_saved_split(folder, split))
    if saved_splits(folder) is not None:
        return _saved_files(folder)
    found, _ = folder_files(folder)
    if not found:
        raise InputError(
            "the folder {folder} has no files; choose a folder whose files contain the rows", folder=folder
        )
    files = _for_split(
        [path for path in found if is_data_file(path)] or found,
        split,
        folder,
        message("the folder {folder}", folder=folder),
    )
    extensions = sorted({plain_suffix(path) for path in files})
    if len(extensions) > 1:
        raise InputError(
            "the folder {folder} contains files of several types ({extensions}); select some with a "
            "pattern such as {folder_2}",
            folder=folder,
            extensions=", ".join(extensions),
            folder_2=folder / ("*" + extensions[0]),
        )
    return files


def short_names(paths: list[Path]) -> tuple[str, ...]:
    """Short names for people: file names, or paths below the common folder if two files have the same name."""
    names = tuple(path.name for path in paths)
    if len(set(names)) == len(names):
        return names
    common = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    return tuple(path.absolute().relative_to(common).as_posix() for path in paths)


def pattern_files(pattern: str) -> list[Path]:
    """The files that match a pattern, in order. Raises InputError if there are none."""
    names = glob.iglob(str(user_path(pattern)), recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
    found = sorted(islice((Path(name) for name in names if Path(name).is_file()), MAX_FILES + 1))
    if len(found) > MAX_FILES:
        raise InputError(
            "more than {max_files:,} files match the pattern {pattern}; use a pattern that matches fewer",
            max_files=MAX_FILES,
            pattern=pattern,
        )
    if not found:
        raise InputError("no file matches the pattern {pattern}; check the folder and the pattern", pattern=pattern)
    parts = user_path(pattern).parts
    fixed = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    for path in found:
        check_inside(path, Path(*parts[:fixed]))
    return found


def folder_files(folder: Path) -> tuple[list[Path], dict[Path, str]]:
    """The files of a folder that may hold rows, and others → why they are left out; hidden ones are not listed.

    Subfolders count if the folder has no data files of its own, or if their names are splits. Raises InputError,
    also for a link that leads out of the folder, because the folder may be untrusted.
    """
    inside = sorted(islice(_visible(folder), MAX_FILES + 1))
    if len(inside) > MAX_FILES:
        raise InputError(
            "{folder} contains more than {max_files:,} files; specify a subfolder or the files with "
            "the rows, or write all rows into one table",
            folder=folder,
            max_files=MAX_FILES,
        )
    files, left_out = [], {}
    for path in inside:
        if path.is_file():
            reason = why_no_data(path)
            if reason:
                left_out[path] = reason
            else:
                check_inside(path, folder)
                files.append(path)
    below = [path for path in files if path.parent != folder]
    if len(below) < len(files) and not any(split_of(path, folder) for path in below):
        own = [path for path in files if path.parent == folder]
        if any(is_data_file(path) for path in own):
            left_out |= dict.fromkeys(below, message("is in a subfolder"))
            files = own
    return files, left_out


def _visible(folder: Path) -> Iterator[Path]:
    """The contents of the folder and its subfolders. Hidden folders and links to folders are skipped."""
    entries, rest = 0, [folder]
    while rest:
        with suppress(PermissionError), os.scandir(rest.pop()) as found:
            for entry in found:
                entries += 1
                if entries > MAX_ENTRIES:
                    raise InputError(
                        "{folder} contains more than {max_entries:,} files and folders, including hidden ones; "
                        "specify the files with the rows, or move them into their own folder",
                        folder=folder,
                        max_entries=MAX_ENTRIES,
                    )
                if entry.name.startswith((".", "_")):
                    continue
                yield Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    rest.append(Path(entry.path))


def _for_split(files: list[Path], split: str | None, within: Path | None, place: str) -> list[Path]:
    """The files that belong to the split by name. Raises InputError if there are none."""
    chosen = files_for(split, files, within) if split else files
    named = [path for name, paths in group_by_split(files, within).items() if name for path in paths]
    if not split and len(group_by_split(files, within).keys() - {None}) > 1:
        raise InputError(
            "{place} contains files of several splits ({named}); specify one, for example {named_2}",
            place=place,
            named=_list_some(named),
            named_2=named[0],
        )
    if not chosen:
        raise InputError(
            "{place} has no file named after the split {key}, only {files}; specify a file, for example {files_2}",
            place=place,
            key=split,
            files=_list_some(files),
            files_2=files[0],
        )
    return chosen


def _list_some(paths: list[Path]) -> str:
    names = ", ".join(path.name for path in paths[:3])
    return message("{names} and {count} more", names=names, count=len(paths) - 3) if len(paths) > 3 else names


def _suggest_similar(path: Path) -> str:
    if not path.parent.is_dir():
        return message(" (the folder {parent} does not exist either)", parent=path.parent)
    names = difflib.get_close_matches(path.name, [other.name for other in path.parent.iterdir()], n=1)
    return message(" (found: {names})", names=names[0]) if names else ""


def saved_splits(folder: Path) -> list[str] | None:
    """The split names of a data set saved by `datasets`, empty if it has no splits; None for any other folder.

    Raises InputError if its list of splits cannot be read.
    """
    if (folder / "dataset_dict.json").is_file():
        return _names(folder / "dataset_dict.json", _json(folder / "dataset_dict.json").get("splits", []))
    return [] if (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file() else None


def ignored_files(value: str | list[str] | None, split: str = "train") -> list[str]:
    """The files in named folders that the split does not read; hidden ones are not listed."""
    folders = [user_path(one) for one in (value if isinstance(value, list) else [value or ""])]
    found: list[str] = []
    for folder in folders:
        if folder.is_dir() and saved_splits(folder) is None:
            files, left_out = folder_files(folder)
            read = set(files_for(split, [path for path in files if is_data_file(path)] or files, folder))
            found += [path.name for path in sorted([*files, *left_out]) if path not in read]
    return found


def split_of(path: Path, within: Path | None = None) -> str | None:
    """`train`, `validation` or `test` by a word in the file's name, else in its folders below `within`."""
    parents = list(path.parent.relative_to(within).parts)[::-1] if within is not None else []
    for name in (path.name, *parents):
        words = re.findall(r"[a-z]+", name.lower())
        found = [split for split, known in _WORDS.items() if known & set(words)]
        if len(found) == 1:
            return found[0]
    return None


def group_by_split(files: Sequence[Path], within: Path | None = None) -> dict[str | None, list[Path]]:
    """Split → the files named for it; under None those whose names indicate no split."""
    found: dict[str | None, list[Path]] = {}
    for path in files:
        found.setdefault(split_of(path, within if within in path.parents else None), []).append(path)
    return found


def files_for(split: str, files: Sequence[Path], within: Path | None = None) -> list[Path]:
    """The files of a folder or pattern that belong to a split; none if all are for other splits.

    Names only count if they indicate different splits: files all named alike, or with no split, belong to one split.
    """
    found = group_by_split(files, within)
    if len(found) == 1:
        return list(files)
    return found.get(split) or (found.get(None, []) if split == "train" else [])


def why_no_data(path: Path) -> str:
    """Why a file in a folder is not taken for data, by its name; empty if it may be."""
    if path.name.startswith((".", "_")):
        return "hidden"
    if _ABOUT.fullmatch(path.name):
        return message("describes the data")
    return message("{suffix} files do not contain rows", suffix=path.suffix) if plain_suffix(path) in _NO_DATA else ""


def _saved_split(folder: Path, split: str | None) -> Path:
    splits = saved_splits(folder) or []
    if split in splits or (split is None and len(splits) == 1):
        chosen = folder / (split or splits[0])
        check_inside(chosen, folder)
        return chosen
    wanted = message("no split {split}", split=repr(split)) if split else message("several splits")
    example = folder / (splits[0] if splits else "train")
    raise InputError(
        "the dataset {folder} has {wanted}: {splits}; specify the folder of one, for example {example}",
        folder=folder,
        wanted=wanted,
        splits=", ".join(splits),
        example=example,
    )


def _saved_files(folder: Path) -> list[Path]:
    entries = _json(folder / "state.json").get("_data_files", [])
    files = [entry.get("filename") if isinstance(entry, dict) else entry for entry in _list(entries)]
    names = _names(folder / "state.json", files)
    missing = next((name for name in names if not (folder / name).is_file()), None)
    if missing or not names:
        raise InputError(
            "the dataset {folder} is missing its file {missing}; copy or save the dataset again",
            folder=folder,
            missing=missing or message("with the rows"),
        )
    for name in names:
        check_inside(folder / name, folder)
    return [folder / name for name in names]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _names(path: Path, found: Any) -> list[str]:
    """The files that a saved data set's list names, all beside the list. Raises InputError."""
    names = _list(found)
    wrong = [str(name)[:80] for name in names if not is_file_name(name)]
    if wrong:
        raise InputError(
            "{path} lists {wrong}, which is not in its folder; save the dataset again", path=path, wrong=repr(wrong[0])
        )
    return names


def _json(path: Path) -> dict:
    try:
        found = parse_json(read_regular(path, MAX_TEXT))
    except (OSError, ValueError) as error:
        raise InputError("{path} cannot be read ({error}); save the dataset again", path=path, error=error) from None
    if not isinstance(found, dict):
        raise InputError("{path} is not the file list of a saved dataset; save the dataset again", path=path)
    return found
