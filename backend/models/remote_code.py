"""Decides whether the Python code that comes with a model or tokenizer may run, and where: as this user approved it.

A consent covers exactly these bytes in this place: the folder, or on the hub the repository and commit, and the digest
of every `*.py` below the folder. Approved code is copied to a private folder and runs from there, so nothing can
change between the check and the import. Compiled modules are never copied, so they cannot be imported.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from backend.contract import consents
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.places import cache_folder, private_folder
from backend.contract.run.folder import write_json
from backend.contract.versions import installed_versions
from backend.models.architectures import needs_code
from backend.models.config import config_mistake, read_checked
from backend.models.lean_transformers import leave_torch_out
from backend.models.model_files import (
    CONFIG_LIMIT,
    beside_weights,
    check_link,
    read_small,
    read_table,
    read_table_if_sound,
)

FIELD = "model.trust_remote_code"
_CONFIG, _TOKENIZER = "config.json", "tokenizer_config.json"
_MAX_FILES, _MAX_ENTRIES, _LARGEST_CODE = 500, 20_000, 5_000_000
"""Python files of a model, entries of its folder that are looked at for them, and bytes of one Python file."""
_DECIDING = {"auto_map", "name_or_path", "attn_implementation", "experts_implementation", "quantization_config"}
_MAX_OPENED = 1000
"""Configurations that are known to open."""
_REFERENCE = re.compile(r"(?P<module>[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*)\.[A-Za-z_]\w*")
"""`module.Class` or `folder/module.Class`, as transformers reads it below the model's folder."""


@dataclass(frozen=True)
class RemoteCode:
    """The code of one folder."""

    folder: Path
    name: str
    """The hub id, or the folder."""
    version: str
    """The commit, or the digest of the files."""
    code: str
    """The digest of the files."""
    files: tuple[str, ...]
    """Every Python file below the folder, as `sub/module.py`."""
    elsewhere: str = ""
    """Another repository that has the code, at whatever commit."""
    strange: str | None = None
    """A class that it names, in a file that is not among these."""

    @property
    def is_agreed(self) -> bool:
        """Whether this user has approved exactly this code in this place."""
        return self._can_be_agreed and consents.covers(self.name, self.version, self.code)

    @property
    def _can_be_agreed(self) -> bool:
        return bool(self.files) and not self.elsewhere and self.strange is None

    def agree(self) -> None:
        """Record this user's consent. Raises InputError if the code cannot be approved."""
        if not self._can_be_agreed:
            raise InputError(_consent_error(self), FIELD)
        consents.agree(self.name, self.version, self.code, self.files)


def find_remote_code(folder: Path, *, model: bool = True, tokenizer: bool = True) -> RemoteCode | None:
    """The code that is required to open `model` or `tokenizer` of the folder; None if they need none.

    Raises InputError if there is too much of it to read.
    """
    config, words = (read_table_if_sound(folder / name, CONFIG_LIMIT) for name in (_CONFIG, _TOKENIZER))
    return _describe(folder, config, words, read_code(folder)) if _needs(config, words, model, tokenizer) else None


def may_run(folder: Path, *, wanted: bool = True, model: bool = True, tokenizer: bool = False) -> bool:
    """Whether the folder's model or tokenizer needs its own code, and may run it.

    `wanted` comes from a spec, which alone is not a consent. Raises InputError if the code may not run.
    """
    found = find_remote_code(folder, model=model, tokenizer=tokenizer)
    if found is not None:
        _check(found, wanted)
    return found is not None


def code_folder(folder: Path, *, wanted: bool = True, model: bool = True, tokenizer: bool = False) -> Path | None:
    """A private copy of the folder's code and small files, to open with `trust_remote_code=True`.

    None if it needs no code of its own: then open the folder with `trust_remote_code=False`. The bytes
    that are checked are the bytes that are copied. Raises InputError if the code may not run.
    """
    if find_remote_code(folder, model=model, tokenizer=tokenizer) is None:
        return None
    files = {name: content for name in beside_weights(folder) if (content := read_small(folder / name)) is not None}
    code = read_code(folder)
    kept = _private_copy(files | code)
    # From here on the folder is not looked at again.
    config, words = (read_table(kept / name, CONFIG_LIMIT) for name in (_CONFIG, _TOKENIZER))
    _check(_describe(folder, config, words, code), wanted)
    return kept


@contextmanager
def running(folder: Path, *, trusted: bool) -> Iterator[None]:
    """Turn what a library raises while opening part of the folder into one sentence. Raises InputError.

    Wrap only the library's call, so that Burnish's own bugs are not blamed on the folder. `trusted` is
    whether Python code of the folder runs in it.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # any error in a library or in third-party code
        if refused := config_mistake(folder, error):
            raise refused from error
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = f"{type(error).__name__}: {' '.join(lines[:2])}"[:300].rstrip(".: ")
        failure = (
            message(
                "the Python code of {folder} failed ({reason}); install what it requires, or choose another model",
                folder=folder,
                reason=reason,
            )
            if trusted
            else message(
                "the model in {folder} cannot be opened ({reason}); choose another model", folder=folder, reason=reason
            )
        )
        raise InputError("model.name_or_path: {reason}", "model.name_or_path", reason=failure) from error


def open_config(folder: Path, *, wanted: bool) -> Any:
    """The folder's `PreTrainedConfig`. Raises InputError if it cannot be opened, or its code may not run."""
    config = read_checked(folder)
    code = code_folder(folder, wanted=wanted)
    with running(folder, trusted=code is not None):
        from transformers import AutoConfig  # takes seconds, because it imports torch if installed

        opened = AutoConfig.from_pretrained(code or folder, local_files_only=True, trust_remote_code=code is not None)
    if code is None and (key := _config_key(folder, config)):
        _remember_opened(key)
    return opened


def check_config(folder: Path, *, wanted: bool) -> None:
    """Raises InputError if `open_config` would; a configuration that opened before is not opened again."""
    config = read_checked(folder)
    if may_run(folder, wanted=wanted):  # its code may need torch
        open_config(folder, wanted=wanted)
    elif _config_key(folder, config) not in _opened_before():
        with leave_torch_out(config):
            open_config(folder, wanted=wanted)


def _config_key(folder: Path, config: Mapping[str, Any]) -> str:
    """What determines whether a configuration opens; empty if that depends on more than its file."""
    if not config.get("model_type") or "configuration_files" in config:  # then by the folder's name, or by another file
        return ""
    content = read_small(folder / _CONFIG, CONFIG_LIMIT) or b""
    version = installed_versions(["transformers"]).get("transformers", "")
    return hashlib.sha256(version.encode() + b"\0" + content).hexdigest()


def _opened_path() -> Path:
    return cache_folder() / "opened_configs.json"


def _opened_before() -> list[str]:
    """The keys of configurations that the library has opened for this user, newest last."""
    found = read_table_if_sound(_opened_path(), CONFIG_LIMIT).get("opened")
    return found if isinstance(found, list) else []


def _remember_opened(key: str) -> None:
    known = _opened_before()
    if key not in known:
        with suppress(OSError):  # the next check takes a few seconds more
            _opened_path().parent.mkdir(parents=True, exist_ok=True)
            write_json(_opened_path(), {"opened": [*known, key][-_MAX_OPENED:]})


def decides_code(key: str) -> bool:
    """Whether a configuration key decides which code runs, so that no spec may change it."""
    return key.startswith("_") or key in _DECIDING


def read_code(folder: Path) -> dict[str, bytes]:
    """Every Python file below the folder by name, as `sub/module.py`; folders that are links are left out.

    A file may be a link, because the hub's cache consists of them. Raises InputError if there is too much, or if one
    leads out of the folder.
    """
    found: dict[str, bytes] = {}
    entries = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not Path(place, name).is_symlink())
        entries += len(folders) + len(names)
        for name in sorted(name for name in names if name.endswith(".py")):
            path = Path(place, name)
            check_link(path, folder)
            content = read_small(path, _LARGEST_CODE)
            if content is not None:
                found[path.relative_to(folder).as_posix()] = content
        if len(found) > _MAX_FILES or entries > _MAX_ENTRIES:
            raise InputError(
                "{field}: {folder} contains too many files to read its Python code (at most {max_files} "
                "of {max_entries:,}); move the model into its own folder",
                FIELD,
                field=FIELD,
                folder=folder,
                max_files=_MAX_FILES,
                max_entries=_MAX_ENTRIES,
            )
    return dict(sorted(found.items()))


def copy_code(source: Path, target: Path) -> None:
    """Copy the code to a saved model, exactly as it is in `source`, and refer to it in the same way.

    transformers leaves its own copies of some files in the target, without their folders.
    """
    if find_remote_code(source) is None:
        return
    for path in target.rglob("*.py"):
        path.unlink()
    for name, content in read_code(source).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)
    for name in (_CONFIG, _TOKENIZER):
        mapped, saved = read_table(source / name).get("auto_map"), read_table(target / name)
        if mapped and saved and saved.get("auto_map") != mapped:
            write_json(target / name, {**saved, "auto_map": mapped})


def agree_to_copy(source: Path, target: Path) -> None:
    """Extend the consent for the code of `source` to its copy in `target`, which this user's own Burnish has made.

    Only while the copy is exactly the approved code; withdrawing the original consent withdraws this one too.
    """
    first, copy = find_remote_code(source), find_remote_code(target)
    if first is not None and copy is not None and first.is_agreed and first.code == copy.code:
        consents.agree(copy.name, copy.version, copy.code, copy.files, origin=first.name)


def _needs(config: dict[str, Any], words: dict[str, Any], model: bool, tokenizer: bool) -> bool:
    return (model and needs_code(config)) or (tokenizer and _tokenizer_needs_code(words))


def _tokenizer_needs_code(values: dict[str, Any]) -> bool:
    """Whether a tokenizer_config.json names a class in its own Python file."""
    mapped = values.get("auto_map")
    return "AutoTokenizer" in mapped if isinstance(mapped, dict) else bool(mapped)


def _describe(folder: Path, config: dict[str, Any], words: dict[str, Any], code: dict[str, bytes]) -> RemoteCode:
    repository, digest = _repository(folder), _digest(code)
    references = [*_references(config), *_references(words)]
    return RemoteCode(
        folder=folder,
        name=repository or str(folder.resolve()),
        version=folder.name if repository else digest,
        code=digest,
        files=tuple(code),
        elsewhere=next((name.partition("--")[0] for name in references if "--" in name), ""),
        strange=next((name for name in references if not _is_among(name, code)), None),
    )


def _check(found: RemoteCode, wanted: bool) -> None:
    if not wanted:
        raise InputError(
            "{field}: {name} runs its own Python code; read it, then set {field} to true and approve it "
            "(--trust-remote-code on the command line, or the question in the window)",
            FIELD,
            field=FIELD,
            name=found.name,
        )
    if not found.is_agreed:
        raise InputError(_consent_error(found), FIELD)


def _consent_error(found: RemoteCode) -> str:
    if found.elsewhere:
        return message(
            "{field}: the code of {name} is in another repository ({elsewhere}), with no fixed "
            "version; put its .py files next to the model and reference them in its config.json, or "
            "choose another model",
            field=FIELD,
            name=found.name,
            elsewhere=found.elsewhere,
        )
    if not found.files:
        return message(
            "{field}: {name} needs its own Python code, which is not in {folder}; download it again",
            field=FIELD,
            name=found.name,
            folder=found.folder,
        )
    if found.strange is not None:
        return message(
            "{field}: {name} refers to a class in a file that is not in its folder ({strange}); "
            "download it again, or choose another model",
            field=FIELD,
            name=found.name,
            strange=repr(found.strange[:80]),
        )
    version, files = found.version[:12], ", ".join(found.files[:4])
    if len(found.files) > 4:
        files = message("{names} and {count} more", names=files, count=len(found.files) - 4)
    return message(
        "{field}: {name} runs its own Python code ({files}), and you have not approved this version of it "
        "({version}); read it in {folder}, then approve it (--trust-remote-code on the command line, or the "
        "question in the window)",
        field=FIELD,
        name=found.name,
        files=files,
        version=version,
        folder=found.folder,
    )


def _digest(code: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in code.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _private_copy(files: dict[str, bytes]) -> Path:
    """A folder with exactly these files that only this user can open, written once for their content.

    Raises InputError if it cannot be written, or belongs to another user.
    """
    parent = private_folder("code")
    folder = parent / _digest(dict(sorted(files.items())))[:32]
    if folder.exists() and _has_files(folder, files):
        return folder
    beside = parent / f".{folder.name}.{os.getpid()}"
    try:
        shutil.rmtree(beside, ignore_errors=True)
        for name, content in files.items():
            (beside / name).parent.mkdir(parents=True, exist_ok=True)
            (beside / name).write_bytes(content)
        if folder.exists():  # cut off while it was written, or changed since
            shutil.rmtree(folder, ignore_errors=True)
        try:
            beside.rename(folder)
        except OSError:
            if not _has_files(folder, files):  # else another process has just written the same
                raise
    except OSError as error:
        raise InputError(
            "{parent}: the code of the model cannot be copied there ({strerror}); set BURNISH_CACHE "
            "to a folder that you can write to",
            parent=parent,
            strerror=(error.strerror or str(error)).lower(),
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def _has_files(folder: Path, files: dict[str, bytes]) -> bool:
    present = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    return present.keys() == files.keys() and all(read_small(path) == files[name] for name, path in present.items())


def _repository(folder: Path) -> str:
    """The hub id of a folder in the hub library's cache (`models--team--name/snapshots/COMMIT`); empty for any other."""
    from huggingface_hub import constants  # the tests and the user's variables say where it is

    cached = folder.absolute().parent
    is_cache = cached.parent.parent == Path(constants.HF_HUB_CACHE).absolute()
    if not is_cache or cached.name != "snapshots" or not cached.parent.name.startswith("models--"):
        return ""
    return cached.parent.name.removeprefix("models--").replace("--", "/")


def _references(values: Any) -> list[str]:
    """Every class that an `auto_map` names, anywhere in a configuration."""
    found: list[str] = []
    rest = [values]
    while rest:
        value = rest.pop()
        children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, child in children:
            if key == "auto_map":
                found += _texts(child)
            else:
                rest.append(child)
    return found


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for one in inner for found in _texts(one)]


def _is_among(reference: str, code: dict[str, bytes]) -> bool:
    found = _REFERENCE.fullmatch(reference)
    return found is not None and str(PurePosixPath(found["module"] + ".py")) in code
