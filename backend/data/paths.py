"""Owns which files a split names: a file, a list, a pattern, a folder, or a folder that `datasets` has saved."""

import difflib
import glob
import json
import os
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.safe_files import user_path
from backend.data.formats.detect import is_data_file
from backend.data.formats.packed import plain_suffix


def data_files(value: str | list[str], split: str | None) -> list[Path]:
    """The files in their order; of a saved DatasetDict those of the split of that name. Raises InputError."""
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InputError("the list of files is empty; name at least one file")
    return [path for one in values for path in _files_of(one, split)]


def shown_names(paths: list[Path]) -> tuple[str, ...]:
    """Short names for people: file names, or paths below the common folder where two files are named alike."""
    names = tuple(path.name for path in paths)
    if len(set(names)) == len(names):
        return names
    common = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    return tuple(path.absolute().relative_to(common).as_posix() for path in paths)


def _files_of(value: str, split: str | None) -> list[Path]:
    path = user_path(value)
    if path.is_dir():
        return _files_in(path, split)
    if path.exists():
        return [path]
    if glob.has_magic(value):
        names = glob.iglob(str(path), recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
        found = sorted(Path(name) for name in names if Path(name).is_file())
        if not found:
            raise InputError(f"no file goes with the pattern {value}; check the folder and the pattern")
        return found
    raise InputError(f"{value}: there is no such file or folder{_similar(path)}; check the path")


def _similar(path: Path) -> str:
    if not path.parent.is_dir():
        return f" (the folder {path.parent} does not exist either)"
    names = difflib.get_close_matches(path.name, [other.name for other in path.parent.iterdir()], n=1)
    return f" (there is {names[0]})" if names else ""


def _files_in(folder: Path, split: str | None) -> list[Path]:
    if (folder / "dataset_dict.json").is_file():
        return _saved_files(_saved_split(folder, split))
    if saved_splits(folder) is not None:
        return _saved_files(folder)
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith((".", "_")))
    files = [path for path in files if is_data_file(path)] or files
    if not files:
        raise InputError(f"the folder {folder} holds no files; give a folder whose own files hold the rows")
    extensions = sorted({plain_suffix(path) for path in files})
    if len(extensions) > 1:
        raise InputError(
            f"the folder {folder} holds files of several kinds ({', '.join(extensions)}); "
            f"choose by a pattern such as {folder / ('*' + extensions[0])}"
        )
    return files


def saved_splits(folder: Path) -> list[str] | None:
    """The names of the splits of a data set that `datasets` has saved, none of one without splits; None of any other folder.

    Raises InputError where its list of splits cannot be read.
    """
    if (folder / "dataset_dict.json").is_file():
        return _json(folder / "dataset_dict.json").get("splits", [])
    return [] if (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file() else None


def passed_over(value: str | list[str] | None) -> list[str]:
    """The names of the files in named folders that `data_files` does not read: hidden ones are not told."""
    folders = [user_path(one) for one in (value if isinstance(value, list) else [value or ""])]
    found: list[str] = []
    for folder in folders:
        if folder.is_dir() and saved_splits(folder) is None:
            inside = [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]
            read = set(_files_in(folder, None))
            found += [path.name for path in inside if path not in read]
    return found


def _saved_split(folder: Path, split: str | None) -> Path:
    splits = _json(folder / "dataset_dict.json").get("splits", [])
    if split in splits or (split is None and len(splits) == 1):
        return folder / (split or splits[0])
    wanted = f"no split {split!r}" if split else "several splits"
    example = folder / (splits[0] if splits else "train")
    raise InputError(
        f"the data set {folder} has {wanted}, it has {', '.join(splits)}; name the folder of one, for example {example}"
    )


def _saved_files(folder: Path) -> list[Path]:
    names = [entry["filename"] for entry in _json(folder / "state.json").get("_data_files", [])]
    missing = next((name for name in names if not (folder / name).is_file()), None)
    if missing or not names:
        raise InputError(f"the data set {folder} lacks its file {missing or 'of rows'}; copy or save it again")
    return [folder / name for name in names]


def _json(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); save the data set again") from None
