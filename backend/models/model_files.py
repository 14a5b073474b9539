"""Reads the small files of a model folder with care: regular files of bounded size, and JSON without tricks."""

import json
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.safe_files import MB, read_regular

CONFIG_LIMIT = 50 * MB
"""Bytes of a config.json: a million labels and their numbers take about 40 MB."""
SMALL_LIMIT = 200 * MB
"""Bytes of any other file beside the weights; the largest tokenizers take about 35 MB."""


class RepeatedKeyError(InputError):
    """A key stands twice in one object of a file."""


def read_small(path: Path, limit: int = SMALL_LIMIT) -> bytes | None:
    """The content of a file beside the weights; None where it does not exist. Raises InputError."""
    try:
        return read_regular(path, limit)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({(error.strerror or str(error)).lower()}); check its rights"
        ) from None


def parse_table(content: bytes, path: Path | str, *, unique: bool = False) -> dict[str, Any]:
    """A JSON object, of which no key stands twice where `unique`. Raises InputError for anything else, however deep."""
    try:
        found = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_refuse_repeated_keys if unique else None)
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; download it again") from None
    except _KeyTwiceError as error:
        raise RepeatedKeyError(f"{path} has the key {str(error)[:80]!r} twice; keep one of them") from None
    except ValueError as error:  # also bytes that are not UTF-8, and integers of thousands of digits
        raise InputError(f"{path} is no readable JSON table ({_reason(error)}); download it again") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is no readable JSON table ({_kind(found)}); download it again")
    return found


def read_table(path: Path, limit: int = SMALL_LIMIT, *, unique: bool = False) -> dict[str, Any]:
    """The JSON object in a file; empty where the file does not exist. Raises InputError."""
    content = read_small(path, limit)
    return {} if content is None else parse_table(content, path, unique=unique)


def read_table_if_sound(path: Path, limit: int = SMALL_LIMIT) -> dict[str, Any]:
    """The same, empty too where the file is damaged: whoever opens the model says what is wrong with it."""
    try:
        return read_table(path, limit)
    except InputError:
        return {}


class _KeyTwiceError(ValueError):
    """A key stands twice in one object; which value counts depends on who reads it."""


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        raise _KeyTwiceError(next(key for key, _ in pairs if key in seen or seen.add(key)))
    return found


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} in line {error.lineno}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return "a number in it has too many digits" if "digits" in str(error) else type(error).__name__


def _kind(value: Any) -> str:
    return {
        list: "it holds a list",
        str: "it holds a text",
        bool: "it holds true or false",
        type(None): "it holds null",
    }.get(type(value), "it holds a number")
