"""Owns one model of the hub: what its download would bring, and bringing it."""

import time
from pathlib import Path

from huggingface_hub import HfApi, constants
from msgspec.structs import replace

from backend.contract.errors import InputError
from backend.contract.rpc.model_choices import DownloadedModel, HubModel
from backend.data.sources.source import Report
from backend.models import hub, hub_transfer, location
from backend.models.compatibility import Wish
from backend.models.hub_mistakes import ERRORS, MALFORMED, model_mistake, offline, search_mistake
from backend.models.hub_search import WANTED, choice_of
from backend.models.hub_session import asked_once


def details(name: str, revision: str, wish: Wish, *, is_offline: bool = False) -> HubModel:
    """What one model is, and what its download would bring. Raises InputError."""
    if is_offline:
        raise offline()
    try:
        with asked_once():
            info = HfApi().model_info(name, revision=revision, expand=WANTED)
            remote = hub.remote_model(name, revision)
    except (*ERRORS, *MALFORMED) as error:
        raise _mistake(name, revision, error) from None
    choice = choice_of(info, wish)
    return HubModel(
        choice=replace(choice, size_mb=remote.size / 1e6, parameters=choice.parameters or remote.parameters),
        commit=remote.commit,
        files=list(remote.files),
        total_mb=sum(remote.sizes[file] for file in remote.files) / 1e6,
        left_mb=hub.left_bytes(remote, remote.files) / 1e6,
        free_mb=hub_transfer.free_bytes() / 1e6,
        page=f"{constants.ENDPOINT}/{name}",
    )


def download(
    name: str, revision: str, cache: Path, report: Report, on_file: hub.OnFile | None, *, is_offline: bool = False
) -> DownloadedModel:
    """Bring a model here. Raises InputError; what has arrived by then is kept for the next time."""
    if is_offline:
        raise offline()
    counted = _Counted(report)
    started = time.perf_counter()
    found = location.fetch(name, revision, cache=cache, report=counted, on_file=on_file)
    return DownloadedModel(name, found.commit, str(found.folder), counted.fetched / 1e6, time.perf_counter() - started)


class _Counted:
    """Passes reports on, and counts what came since the first."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._first: int | None = None
        self.fetched = 0

    def __call__(self, done: int, total: int, unit: str) -> None:
        self._first = done if self._first is None else min(self._first, done)
        self.fetched = done - self._first
        self._report(done, total, unit)


def _mistake(name: str, revision: str, error: Exception) -> InputError:
    if isinstance(error, InputError):
        return error
    return model_mistake(name, revision, error) if isinstance(error, ERRORS) else search_mistake(error)
