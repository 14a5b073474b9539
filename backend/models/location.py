"""Finds a model's files: in a folder, in the hub library's cache, on the hub, or as a converted copy.

The hub library takes half a second to import, and a folder needs nothing of it, so it is imported where it is used.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import user_path
from backend.data.sources.source import Report
from backend.models import conversion
from backend.models.model_files import check_links
from backend.models.remote_code import find_remote_code
from backend.models.tokenizer_files import read_tokenizer
from backend.models.weights import OLD_FORMATS, flax_problem, read_weights

if TYPE_CHECKING:
    from backend.models import hub

CONVERT_OPTION = "--convert-weights"
"""How a person agrees on a command line that old weights are converted."""
_FIELD = "model.name_or_path"
_WEIGHTS = {".safetensors", ".bin", ".msgpack", ".h5"}


@dataclass(frozen=True)
class ModelLocation:
    """Where a model's files are and where they came from."""

    folder: Path
    found: Literal["folder", "cache", "hub", "converted"]
    commit: str
    """The hub commit, or nothing for a folder."""
    name: str
    remote: "hub.RemoteModel | None" = None
    """What the hub says of weights that are not here yet (`look`)."""


def ignore_progress(done: int, total: int, unit: str) -> None:
    """Report nothing."""


def locate(
    name_or_path: str,
    revision: str = "main",
    *,
    cache: Path,
    offline: bool = False,
    report: Report = ignore_progress,
    consent_to_convert: bool = False,
    needs_weights: bool = True,
) -> ModelLocation:
    """The model's files, downloaded or converted if needed and allowed. Raises InputError."""
    local = _find_local(name_or_path, revision)
    if local is not None and (not needs_weights or read_weights(local.folder).format == "safetensors"):
        return local
    if local is not None and local.found == "folder":
        return _convert(local, cache, report, consent_to_convert)
    pin = _Pin(cache, name_or_path, local.commit if local else revision)
    if pinned := pin.location():
        return pinned
    if local is None or not offline:
        fetched = _fetch(name_or_path, revision, local, pin, report, offline, needs_weights, consent_to_convert)
        local = fetched or local
    elif needs_weights and _was_only_looked_at(local.folder):
        raise _not_here(name_or_path)
    assert local is not None
    return _convert(local, cache, report, consent_to_convert)


def locate_small_files(
    name_or_path: str, revision: str = "main", *, cache: Path | None = None, offline: bool = False
) -> ModelLocation:
    """The folder or, for a hub model, only its small files, to describe it. Raises InputError.

    If `cache` holds a converted copy of old weights, it is that copy, as with `locate`.
    """
    local = _find_local(name_or_path, revision)
    if cache is not None and (copy := _safe_copy(local, name_or_path, revision, cache)):
        return copy
    if local is not None and (local.found == "folder" or offline or read_weights(local.folder).format != "none"):
        return local
    if offline:
        raise _not_here(name_or_path)
    from backend.models import hub  # slow to import

    remote = hub.remote_model(name_or_path, revision)
    folder = hub.download(remote, remote.small_files, ignore_progress)
    return ModelLocation(folder, "hub", folder.name, name_or_path, remote)


def locate_without_weights(
    name_or_path: str,
    revision: str = "main",
    *,
    offline: bool = False,
    report: Report = ignore_progress,
    needs_tokenizer: bool = True,
) -> ModelLocation:
    """The folder as it is or, for a hub model, at least its small files: weights are neither downloaded nor read.

    Raises InputError.
    """
    local = _find_local(name_or_path, revision)
    if local is not None and (
        local.found == "folder" or offline or not needs_tokenizer or _has_tokenizer(local.folder)
    ):
        return local
    if offline:
        raise _not_here(name_or_path)
    from backend.models import hub  # slow to import

    remote = hub.remote_model(name_or_path, revision)
    folder = hub.download(remote, remote.small_files, report)
    return ModelLocation(folder, "hub", folder.name, name_or_path, remote)


def fetch(
    name: str, revision: str, *, cache: Path, report: Report = ignore_progress, on_file: "hub.OnFile | None" = None
) -> ModelLocation:
    """All the needed files of a hub model, downloaded to the hub library's cache. Raises InputError.

    For old weights the hub's own conversion is used if there is one; otherwise they are downloaded as they are.
    """
    from backend.models import hub  # slow to import

    if not _is_hub_id(name):
        raise InputError(
            "{field}: {name} is not the name of a Hub model; use a name such as google/mt5-small",
            _FIELD,
            field=_FIELD,
            name=repr(name),
        )
    remote = hub.remote_model(name, revision)
    if remote.weights_format == "none":
        raise InputError(
            "{field}: {name} has no weights that can be trained; choose one with safetensors",
            _FIELD,
            field=_FIELD,
            name=name,
        )
    taken = (hub.conversion_of(remote) if remote.weights_format in OLD_FORMATS else None) or remote
    folder = hub.download(taken, taken.files, report, on_file)
    if taken is not remote:
        _Pin(cache, name, revision).write(folder, taken.commit)
    return ModelLocation(folder, "hub", taken.commit, name)


def must_be_converted(name: str, weights_format: str) -> str:
    """The message for old weights whose conversion has not been approved, as the end of a sentence."""
    kind = {"bin": message("pytorch_model.bin, a format that can contain programs"), "flax": "flax_model.msgpack"}[
        weights_format
    ]
    return message(
        "{name} only has weights as {kind}; agree to convert them once to safetensors "
        "({convert_option} on the command line, Convert in the window)",
        name=name,
        kind=kind,
        convert_option=CONVERT_OPTION,
    )


def _find_local(name: str, revision: str) -> ModelLocation | None:
    path = user_path(name)
    if path.is_dir():
        check_links(path.absolute())
        return ModelLocation(path.absolute(), "folder", "", name)
    if path.is_file():
        raise InputError(
            "{field}: {path} is a file; use the folder that contains the model", _FIELD, field=_FIELD, path=path
        )
    if not _is_hub_id(name):
        raise InputError(
            "{field}: there is no folder {path}, and this is not the name of a Hub model",
            _FIELD,
            field=_FIELD,
            path=path,
        )
    from huggingface_hub import try_to_load_from_cache  # slow to import

    from backend.data.hub_answers import check_revision

    config = try_to_load_from_cache(name, "config.json", revision=check_revision(revision))
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    check_links(folder)
    code = find_remote_code(folder)
    lacks_code = code is not None and not code.files  # fetched before code was fetched with it
    return None if lacks_code else ModelLocation(folder, "cache", folder.name, name)


def _has_tokenizer(folder: Path) -> bool:
    return not read_tokenizer(folder).problem


def _is_hub_id(name: str) -> bool:
    if Path(name).is_absolute() or name.startswith((".", "~")) or "\\" in name:
        return False
    from huggingface_hub.utils import HFValidationError, validate_repo_id  # slow to import

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _fetch(
    name: str,
    revision: str,
    location: ModelLocation | None,
    pin: "_Pin",
    report: Report,
    offline: bool,
    needs_weights: bool,
    consent: bool,
) -> ModelLocation | None:
    from backend.models import hub  # slow to import

    if offline:
        raise _not_here(name)
    remote = hub.remote_model(name, revision)
    if remote.weights_format in OLD_FORMATS and needs_weights:
        converted = hub.conversion_of(remote)
        if converted is not None:
            folder = hub.download(converted, converted.files, report)
            pin.write(folder, converted.commit)
            return ModelLocation(folder, "hub", converted.commit, name)
        if not consent:
            raise InputError(
                "{field}: {name}", _FIELD, field=_FIELD, name=must_be_converted(name, remote.weights_format)
            )
        if remote.weights_format == "flax":  # the configuration says whether to fetch what may be gigabytes
            _check_flax(name, hub.download(remote, remote.small_files, report))
    files = remote.small_files + (remote.weight_files if needs_weights else ())
    folder = hub.download(remote, files, report)
    return ModelLocation(folder, "hub", folder.name, name)


def _check_flax(name: str, folder: Path) -> None:
    if problem := flax_problem(folder):
        raise InputError("{field}: {name}: {problem}", _FIELD, field=_FIELD, name=name, problem=problem)


def _convert(location: ModelLocation, cache: Path, report: Report, consent: bool) -> ModelLocation:
    kind = read_weights(location.folder).format
    if kind not in OLD_FORMATS:
        return location  # nothing to convert; what is wrong with it is said by `inspection.check`
    ready = conversion.converted_folder(location.folder, cache)
    if not conversion.is_converted(ready):
        if not consent:
            raise InputError("{field}: {name}", _FIELD, field=_FIELD, name=must_be_converted(location.name, kind))
        conversion.convert(location.folder, cache, report)
    return ModelLocation(ready, "converted", location.commit, location.name)


def _was_only_looked_at(folder: Path) -> bool:
    """Whether only a hub model's small files are in the cache, as after describing it."""
    return not any(path.suffix in _WEIGHTS for path in folder.iterdir())


def _safe_copy(location: ModelLocation | None, name: str, revision: str, cache: Path) -> ModelLocation | None:
    is_folder = location is not None and location.found == "folder"
    if not is_folder and (pinned := _Pin(cache, name, location.commit if location else revision).location()):
        return pinned
    if location is None or read_weights(location.folder).format not in OLD_FORMATS or not conversion.any_in(cache):
        return None
    ready = conversion.converted_folder(location.folder, cache)
    return ModelLocation(ready, "converted", location.commit, location.name) if conversion.is_converted(ready) else None


def _not_here(name: str) -> InputError:
    from huggingface_hub import constants  # slow to import

    return InputError(
        "{field}: {name} is not a folder, is not complete in the cache ({hf_hub_cache}), and "
        "network access is not allowed; download it first, or use a local folder",
        _FIELD,
        field=_FIELD,
        name=name,
        hf_hub_cache=constants.HF_HUB_CACHE,
    )


class _Pin:
    """Remembers which commit of the hub's conversions replaces a commit without safetensors."""

    def __init__(self, cache: Path, name: str, revision: str) -> None:
        safe = f"{name}@{revision}".replace("/", "--")
        self._name, self._path = name, cache / "pinned" / f"{safe}.json"

    def location(self) -> ModelLocation | None:
        """The pinned snapshot, if it is still complete in the cache."""
        try:
            pin = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        folder = Path(pin["folder"])
        whole = folder.is_dir() and read_weights(folder).format == "safetensors"
        return ModelLocation(folder, "cache", pin["commit"], self._name) if whole else None

    def write(self, folder: Path, commit: str) -> None:
        """Store it for the next time."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps({"folder": str(folder), "commit": commit}), encoding="utf-8")
        beside.replace(self._path)
