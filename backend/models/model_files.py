"""Reads the small files of a model folder safely: regular files of bounded size inside it, and well-behaved JSON."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import MB, leads_out, read_regular


def _kind(value: Any) -> str:
    return {
        list: message("it contains a list"),
        str: message("it contains a string"),
        bool: message("it contains true or false"),
        type(None): message("it contains null"),
    }.get(type(value), "it holds a number")


_KEPT = {".json", ".txt", ".model", ".tiktoken", ".md", ".bpe", ".spm", ".jinja"}
_LISTS_OF_WEIGHTS = (".bin.index.json", ".msgpack.index.json")
_LARGEST_COPIED = 100 * 1024 * 1024


def beside_weights(folder: Path) -> list[str]:
    """Configuration, tokenizer and model card; no weight indexes, and no code."""
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.suffix in _KEPT and not path.name.endswith(_LISTS_OF_WEIGHTS) and path.is_file()
    )


CONFIG_LIMIT = 50 * MB
"""Bytes of a config.json: a million labels and their numbers take about 40 MB."""
SMALL_LIMIT = 200 * MB
"""Bytes of any other file beside the weights; the largest tokenizers take about 35 MB."""
_TEMPLATES = "additional_chat_templates"
"""The folder within a model folder from which transformers reads."""
_WEIGHTS = {".safetensors", ".bin", ".msgpack", ".h5"}
"""They may lie on another disk: nothing of them is shown, and a file that holds none is refused."""


class RepeatedKeyError(InputError):
    """A key occurs twice in one object of a file."""


def check_links(folder: Path) -> None:
    """Raises InputError if a file beside the weights is a link that leads out of the folder.

    Otherwise an untrusted folder could expose any file of the user, or have it copied into the models trained from it.
    """
    for place in (folder, folder / _TEMPLATES):
        try:
            with os.scandir(place) as entries:
                links = sorted(Path(entry.path) for entry in entries if entry.is_symlink())
        except OSError:  # missing; or opening the folder reports the error later
            continue
        for path in links:
            is_folder = os.path.isdir(path)  # noqa: PTH112 (Path.is_dir fails behind a closed folder)
            if path.suffix not in _WEIGHTS and (path.name == _TEMPLATES or not is_folder):
                check_link(path, folder)


def check_link(path: Path, folder: Path) -> None:
    """Raises InputError if a file of a model folder is a link that leads out of it."""
    if path.is_symlink() and leads_out(path, folder) and not _is_of_hub_cache(path):
        raise InputError(
            "{path} is a link that points outside the model's folder; replace it with its target", path=path
        )


def _is_of_hub_cache(path: Path) -> bool:
    """Whether the link leads to a blob of the hub's cache, as in folders by older hub libraries (`--local-dir`)."""
    from huggingface_hub import constants  # the tests and the user's variables say where it is

    real = Path(os.path.realpath(path))
    return real.parent.name == "blobs" and real.parent.parent.parent == Path(os.path.realpath(constants.HF_HUB_CACHE))


def read_small(path: Path, limit: int = SMALL_LIMIT) -> bytes | None:
    """The content of a file beside the weights; None if it does not exist. Raises InputError."""
    try:
        return read_regular(path, limit)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(
            "{path} cannot be read ({strerror}); check its permissions",
            path=path,
            strerror=(error.strerror or str(error)).lower(),
        ) from None


def parse_table(content: bytes, path: Path | str, *, unique: bool = False) -> dict[str, Any]:
    """A JSON object, without duplicate keys if `unique`. Raises InputError for anything else, however deeply nested."""
    try:
        found = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_refuse_repeated_keys if unique else None)
    except RecursionError:
        raise InputError("{path} is nested too deeply; download it again", path=path) from None
    except _KeyTwiceError as error:
        raise RepeatedKeyError(
            message("{path} has the key {error} twice; keep one of them", path=path, error=repr(str(error)[:80]))
        ) from None
    except ValueError as error:  # also bytes that are not UTF-8, and integers of thousands of digits
        raise InputError(
            "{path} is not a readable JSON table ({error}); download it again", path=path, error=_describe_error(error)
        ) from None
    if not isinstance(found, dict):
        raise InputError(
            "{path} is not a readable JSON table ({found}); download it again", path=path, found=_kind(found)
        )
    return found


def read_table(path: Path, limit: int = SMALL_LIMIT, *, unique: bool = False) -> dict[str, Any]:
    """The JSON object in a file; empty if the file does not exist. Raises InputError."""
    content = read_small(path, limit)
    return {} if content is None else parse_table(content, path, unique=unique)


def read_table_if_sound(path: Path, limit: int = SMALL_LIMIT) -> dict[str, Any]:
    """The same, also empty if the file is damaged: loading the model reports what is wrong with it."""
    try:
        return read_table(path, limit)
    except InputError:
        return {}


class _KeyTwiceError(ValueError):
    """A key occurs twice in one object; which value counts depends on the reader."""


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        raise _KeyTwiceError(next(key for key, _ in pairs if key in seen or seen.add(key)))
    return found


def _describe_error(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return message("{msg} in line {lineno}", msg=error.msg, lineno=error.lineno)
    if isinstance(error, UnicodeDecodeError):
        return message("it is not UTF-8")
    return message("a number in it has too many digits") if "digits" in str(error) else type(error).__name__


def copy_small_files(source: Path, target: Path) -> None:
    """Copy the small files and code, with its folders, to a converted copy. Raises InputError for outside links."""
    code = [path.relative_to(source) for path in source.rglob("*.py") if path.is_file()]
    for name in [*map(Path, beside_weights(source)), *code]:
        check_link(source / name, source)
        if (source / name).stat().st_size <= _LARGEST_COPIED:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)
