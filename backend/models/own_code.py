"""Owns whether the Python code that comes with a model or tokenizer may run: as this user agreed to it, file by file.

A folder of the hub's cache is known by its repository and commit, any other by its files alone, so a run's `model/` is
covered by the consent to the model that it began from. transformers takes code files from the top of a folder only.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.contract import consents
from backend.contract.errors import InputError
from backend.models.architectures import needs_code

FIELD = "model.trust_remote_code"


@dataclass(frozen=True)
class OwnCode:
    """The code of one folder."""

    folder: Path
    name: str
    """The hub id, or the folder."""
    version: str
    """The commit, or the digest of the files."""
    code: str
    """The digest of the files."""
    files: tuple[str, ...]
    elsewhere: str = ""
    """Another repository that has the code, at whatever commit."""

    @property
    def is_agreed(self) -> bool:
        """Whether this user has agreed to it as it stands now."""
        if self.elsewhere or not self.files:
            return False
        if self.version == self.code:
            return any(one.code == self.code for one in consents.read())
        return consents.covers(self.name, self.version, self.code)

    def agree(self) -> None:
        """Keep this user's consent. Raises InputError where there is nothing that one could agree to."""
        if self.elsewhere or not self.files:
            raise InputError(_refusal(self), FIELD)
        consents.agree(self.name, self.version, self.code)


def own_code(folder: Path, *, model: bool = True, tokenizer: bool = True) -> OwnCode | None:
    """The code without which `model` or `tokenizer` of the folder cannot be opened; None where they need none."""
    config, words = _read(folder / "config.json"), _read(folder / "tokenizer_config.json")
    maps = [config.get("auto_map")] if model and needs_code(config) else []
    maps += [words.get("auto_map")] if tokenizer and _tokenizer_needs_code(words) else []
    if not maps:
        return None
    files = code_files(folder)
    digest = _digest(files)
    repository = _repository(folder)
    return OwnCode(
        folder=folder,
        name=repository or str(folder.absolute()),
        version=folder.name if repository else digest,
        code=digest,
        files=tuple(path.name for path in files),
        elsewhere=next((found for one in maps for found in _repositories(one)), ""),
    )


def may_run(folder: Path, *, wanted: bool = True, model: bool = True, tokenizer: bool = False) -> bool:
    """What to give transformers as `trust_remote_code` to open that of the folder: False where it needs no code of its own.

    `wanted` is what a spec says, which alone is no consent. Raises InputError where the code may not run.
    """
    found = own_code(folder, model=model, tokenizer=tokenizer)
    if found is None:
        return False
    if not wanted:
        raise InputError(
            f"{FIELD}: {found.name} runs Python code of its own; read it, then set {FIELD} to true and agree to it "
            "(--trust-remote-code on the command line, or the question in the window)",
            FIELD,
        )
    if not found.is_agreed:
        raise InputError(_refusal(found), FIELD)
    return True


def _tokenizer_needs_code(values: dict[str, Any]) -> bool:
    """Whether a tokenizer_config.json names a class in a file of its own."""
    mapped = values.get("auto_map")
    return "AutoTokenizer" in mapped if isinstance(mapped, dict) else bool(mapped)


@contextmanager
def running(folder: Path, *, trusted: bool) -> Iterator[None]:
    """While code of the folder may run: what it raises is a sentence. Raises InputError."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # whatever a stranger's code comes upon
        if not trusted:
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(
            f"model.name_or_path: the Python code of {folder} failed ({type(error).__name__}: {reason}); install what it "
            "asks for, or choose another model",
            "model.name_or_path",
        ) from error


def code_files(folder: Path) -> list[Path]:
    """The Python files at the top of the folder."""
    return sorted(path for path in folder.glob("*.py") if path.is_file())


def copy_code(source: Path, target: Path) -> None:
    """Let the files go with a model that is saved, all of them, so that they stay those that were agreed to."""
    if own_code(source) is not None:
        for path in code_files(source):
            shutil.copyfile(path, target / path.name)


def _refusal(found: OwnCode) -> str:
    if found.elsewhere:
        return (
            f"{FIELD}: the code of {found.name} lies in another repository ({found.elsewhere}), at no certain version; "
            "put its .py files beside the model and name them in its config.json, or choose another model"
        )
    if not found.files:
        return f"{FIELD}: {found.name} needs Python code of its own, which is not in {found.folder}; download it again"
    version = found.version[:12]
    return (
        f"{FIELD}: {found.name} runs Python code of its own ({', '.join(found.files[:4])}), and you have not agreed to this "
        f"version of it ({version}); read it in {found.folder}, then agree (--trust-remote-code on the command line, or the "
        "question in the window)"
    )


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _repository(folder: Path) -> str:
    """The hub id of a folder in the hub library's cache (`models--team--name/snapshots/COMMIT`); empty for any other."""
    cached = folder.absolute().parent
    if cached.name != "snapshots" or not cached.parent.name.startswith("models--"):
        return ""
    return cached.parent.name.removeprefix("models--").replace("--", "/")


def _repositories(mapped: Any) -> list[str]:
    """Those before the `--` of a class's name."""
    if isinstance(mapped, str):
        return [mapped.partition("--")[0]] if "--" in mapped else []
    parts = mapped.values() if isinstance(mapped, dict) else mapped if isinstance(mapped, list | tuple) else []
    return [found for one in parts for found in _repositories(one)]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
