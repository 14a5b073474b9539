"""Owns what is asked of the model hub: a model's files, the hub's own safetensors conversions, and downloads.

The hub library finds its token, endpoint and cache by itself; no token ever passes through here.
"""

import re
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HTTPError,  # type: ignore[attr-defined]  # of whichever HTTP library the hub library was built on
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from tqdm import tqdm

from backend.contract.errors import InputError
from backend.data.sources.source import Report
from backend.models.weights import BIN, BIN_INDEX, FLAX, FLAX_INDEX, SAFETENSORS, SAFETENSORS_INDEX

_FIELD = "model.name_or_path"
_SMALL = re.compile(r"[^/]+\.(json|txt|model|tiktoken|bpe|md)|LICENSE|LICENCE")
_NOT_SMALL = re.compile(r".*\.(safetensors|bin|msgpack)\.index\.json")
_WEIGHTS = {
    "safetensors": (SAFETENSORS, SAFETENSORS_INDEX, re.compile(r"model-\d+-of-\d+\.safetensors")),
    "bin": (BIN, BIN_INDEX, re.compile(r"pytorch_model-\d+-of-\d+\.bin")),
    "flax": (FLAX, FLAX_INDEX, re.compile(r"flax_model-\d+-of-\d+\.msgpack")),
}
_CONVERSION = re.compile(r"refs/pr/\d+")


@dataclass(frozen=True)
class RemoteModel:
    """A model on the hub at one commit."""

    name: str
    revision: str
    """What was asked for: the cache remembers it beside the commit."""
    commit: str
    weights_format: str
    """`safetensors`, `bin`, `flax` or `none`."""
    small_files: tuple[str, ...]
    weight_files: tuple[str, ...]
    size: int = 0
    """Bytes of the weight files."""
    parameters: int = 0
    """0 where the hub does not say."""


def remote_model(name: str, revision: str) -> RemoteModel:
    """What the hub says of a model. Raises InputError where it is not there, not allowed or not reachable."""
    try:
        info = HfApi().model_info(name, revision=revision, files_metadata=True)
    except (HTTPError, OSError) as error:
        raise mistake(name, revision, error) from None
    sizes = {each.rfilename: each.size or 0 for each in info.siblings or []}
    kind, files = _weight_files(tuple(sizes))
    return RemoteModel(
        name=name,
        revision=revision,
        commit=info.sha or revision,
        weights_format=kind,
        small_files=tuple(each for each in sizes if _SMALL.fullmatch(each) and not _NOT_SMALL.fullmatch(each)),
        weight_files=files,
        size=sum(sizes[each] for each in files),
        parameters=info.safetensors.total if info.safetensors else 0,
    )


def conversion_of(model: RemoteModel) -> RemoteModel | None:
    """The same model with safetensors from one of its pull requests, the latest that has them, pinned to its commit."""
    try:
        refs = HfApi().list_repo_refs(model.name, include_pull_requests=True).pull_requests or []
    except (HTTPError, OSError) as error:
        raise mistake(model.name, "main", error) from None
    for ref in sorted((ref for ref in refs if _CONVERSION.fullmatch(ref.ref)), key=_number, reverse=True):
        found = remote_model(model.name, ref.target_commit)
        if found.weights_format == "safetensors":
            return replace(found, commit=ref.target_commit)
    return None


def download(model: RemoteModel, files: tuple[str, ...], report: Report) -> Path:
    """Those files in the hub library's cache, what is there already left out. Interrupted, it resumes. Raises InputError."""
    try:
        folder = snapshot_download(
            model.name, revision=model.revision, allow_patterns=list(files), tqdm_class=_bar(report)
        )
    except (HTTPError, OSError) as error:
        raise mistake(model.name, model.revision, error) from None
    return Path(folder)


def mistake(name: str, revision: str, error: Exception) -> InputError:
    """What went wrong at the hub, as one sentence with the way out."""
    if isinstance(error, GatedRepoError):
        text = f"{name} is given only to people who accepted its terms; accept them on its page, then `hf auth login`"
    elif isinstance(error, RevisionNotFoundError):
        return InputError(
            f"model.revision: {name} has no revision {revision!r}; take main or a commit", "model.revision"
        )
    elif isinstance(error, RepositoryNotFoundError):
        text = f"the hub has no model {name} that you may see; check the name, or log in with `hf auth login`"
    elif getattr(error, "errno", None) == 28:
        text = (
            f"the disk is full while {name} is downloaded; free some space and start again, it goes on where it stopped"
        )
    else:
        text = f"the hub cannot be reached for {name} ({type(error).__name__}); check the network, or give a folder"
    return InputError(f"{_FIELD}: {text}", _FIELD)


def _weight_files(names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    for kind, (single, index, shard) in _WEIGHTS.items():
        if single in names:
            return kind, (single,)
        shards = tuple(name for name in names if shard.fullmatch(name))
        if index in names and shards:
            return kind, (index, *shards)
    return "none", ()


def _number(ref: object) -> int:
    return int(getattr(ref, "ref").rpartition("/")[2])  # noqa: B009 (the library's class is not exported)


def _bar(report: Report) -> Any:
    """A progress bar that draws nothing and tells `report` of bytes, which may raise to stop the download."""

    class Bar(tqdm):
        def __init__(self, *given: Any, **options: Any) -> None:
            options.pop("name", None)
            super().__init__(*given, **{**options, "file": StringIO(), "disable": False})

        def update(self, n: float | None = 1) -> bool | None:
            moved = super().update(n)
            if self.unit == "B" and self.desc.startswith("Reconstruct"):
                report(int(self.n), int(self.total or 0), "bytes")
            return moved

    return Bar
