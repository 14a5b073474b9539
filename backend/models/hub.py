"""A model's files on the hub, the hub's own safetensors conversions, and downloads.

The hub library finds its token, endpoint and cache by itself; no token ever passes through here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache
from tqdm import tqdm

from backend.contract.errors import InputError
from backend.data.hub_answers import check_commit, check_file_name, check_revision, install_limits
from backend.data.sources.source import Report
from backend.models import hub_transfer
from backend.models.hub_errors import ERRORS, FIELD, MALFORMED, model_mistake, search_mistake
from backend.models.hub_transfer import RemoteFile
from backend.models.weights import small_files, weight_files

_CONVERSION = re.compile(r"refs/pr/\d+")
_SPARE_BYTES = 50_000_000
"""What a download must leave free."""
_LARGE_BYTES, _LARGEST_BYTES = 5_000_000, 50_000_000_000
"""Smaller files are left to the hub library, which fetches several at once; so are larger ones, which the hub gives away
only in its own protocol."""

OnFile = Callable[[str, int, int], None]
"""Called with the file that is being fetched, its bytes that are here, and its size."""


@dataclass(frozen=True)
class RemoteModel:
    """A model on the hub at one commit."""

    name: str
    revision: str
    """The requested revision; the cache stores it beside the commit."""
    commit: str
    weights_format: str
    """`safetensors`, `bin`, `flax` or `none`."""
    small_files: tuple[str, ...]
    weight_files: tuple[str, ...]
    size: int = 0
    """Bytes of the weight files."""
    parameters: int = 0
    """0 where the hub does not say."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of every file of the repository."""

    @property
    def files(self) -> tuple[str, ...]:
        """All files needed from it."""
        return self.small_files + self.weight_files


def remote_model(name: str, revision: str) -> RemoteModel:
    """The hub's description of a model. Raises InputError if it does not exist, is not allowed or cannot be reached."""
    install_limits()
    check_revision(revision)
    try:
        info = HfApi().model_info(name, revision=revision, files_metadata=True, timeout=hub_transfer.SECONDS)
        sizes = {check_file_name(each.rfilename): int(each.size or 0) for each in info.siblings or []}
    except ERRORS as error:
        raise model_mistake(name, revision, error) from None
    except InputError:
        raise
    except MALFORMED as error:
        raise search_mistake(error) from None
    kind, files = weight_files(tuple(sizes))
    return RemoteModel(
        name=name,
        revision=revision,
        commit=check_commit(info.sha),
        weights_format=kind,
        small_files=small_files(tuple(sizes)),
        weight_files=files,
        size=sum(sizes[each] for each in files),
        parameters=info.safetensors.total if info.safetensors else 0,
        sizes=sizes,
    )


def conversion_of(model: RemoteModel) -> RemoteModel | None:
    """The same model with safetensors from its latest pull request that has them, pinned to its commit."""
    install_limits()
    try:
        refs = HfApi().list_repo_refs(model.name, include_pull_requests=True).pull_requests or []
    except ERRORS as error:
        raise model_mistake(model.name, "main", error) from None
    except InputError:
        raise
    except MALFORMED as error:
        raise search_mistake(error) from None
    for ref in sorted((ref for ref in refs if _CONVERSION.fullmatch(ref.ref)), key=_number, reverse=True):
        found = remote_model(model.name, ref.target_commit)
        if found.weights_format == "safetensors":
            return replace(found, commit=ref.target_commit)
    return None


def missing_files(model: RemoteModel, files: tuple[str, ...]) -> tuple[str, ...]:
    """The files that are not in the cache at the model's commit."""
    return tuple(
        name for name in files if not isinstance(try_to_load_from_cache(model.name, name, revision=model.commit), str)
    )


def remaining_bytes(model: RemoteModel, files: tuple[str, ...]) -> int:
    """The bytes still to download for those files."""
    missing = sum(model.sizes.get(name, 0) for name in missing_files(model, files))
    return max(0, missing - hub_transfer.started_bytes(model.name)) if missing else 0


def download(model: RemoteModel, files: tuple[str, ...], report: Report, on_file: OnFile | None = None) -> Path:
    """Download those files to the hub library's cache, except what is already there.

    An interrupted download resumes. Raises InputError, also if the disk is too full.
    """
    _check_room(model, files)
    missing = missing_files(model, files)
    total = sum(model.sizes.get(name, 0) for name in files)
    present_bytes = total - sum(model.sizes.get(name, 0) for name in missing)
    try:
        for name in missing:
            size = model.sizes.get(name, 0)
            if _is_fetched_here(model, name):
                before = present_bytes

                def arrived(done: int, name: str = name, size: int = size, before: int = before) -> None:
                    if on_file is not None:
                        on_file(name, done, size)
                    report(before + done, total, "bytes")

                hub_transfer.fetch(RemoteFile(model.name, model.commit, name, size), arrived)
                present_bytes += size
        folder = snapshot_download(
            model.name,
            revision=model.commit,
            allow_patterns=list(files),
            tqdm_class=_bar(lambda: report(present_bytes, total, "bytes") if present_bytes < total else None),
        )
    except ERRORS as error:
        raise model_mistake(model.name, model.revision, error) from None
    _remember(model)
    report(total, total, "bytes")
    return Path(folder)


def _is_fetched_here(model: RemoteModel, name: str) -> bool:
    size = model.sizes.get(name, 0)
    return 0 < size <= _LARGEST_BYTES and (size >= _LARGE_BYTES or name in model.weight_files)


def _check_room(model: RemoteModel, files: tuple[str, ...]) -> None:
    left, free = remaining_bytes(model, files), hub_transfer.free_bytes()
    if left and left + _SPARE_BYTES > free:
        raise InputError(
            "{field}: {name} needs another {left:.2f} GB, but only {free:.2f} GB is free on the disk "
            "of {parent}; free up some space, or set HF_HOME to a folder on another disk",
            FIELD,
            field=FIELD,
            name=model.name,
            left=left / 1000000000.0,
            free=free / 1000000000.0,
            parent=hub_transfer.storage(model.name).parent,
        )


def _remember(model: RemoteModel) -> None:
    """Store the commit that a branch or tag resolved to, where the hub library looks for it."""
    if model.revision != model.commit:
        ref = hub_transfer.storage(model.name) / "refs" / model.revision
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(model.commit, encoding="utf-8")


def _number(ref: object) -> int:
    return int(getattr(ref, "ref").rpartition("/")[2])  # noqa: B009 (the library's class is not exported)


def _bar(moved: Callable[[], None]) -> Any:
    """A progress bar that draws nothing and calls `moved`, which may raise to stop the download."""

    class Bar(tqdm):
        def __init__(self, *given: Any, **options: Any) -> None:
            options.pop("name", None)
            super().__init__(*given, **{**options, "file": StringIO(), "disable": False})

        def update(self, n: float | None = 1) -> bool | None:
            moved_on = super().update(n)
            moved()
            return moved_on

    return Bar
