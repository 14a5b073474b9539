"""Owns `hub_search`, `hub_model` and `download_model`: looking for models on the hub, and bringing one here."""

import time

from backend.contract.places import cache_folder, is_offline
from backend.contract.rpc.model_choices import DownloadedModel, HubModel, HubSearch
from backend.contract.rpc.queries import Progress
from backend.helper.query import Arguments, Query, Tell, needed
from backend.models.compatibility import Wish, wish_of

_TOLD_SECONDS = 0.2


def _search(arguments: Arguments, tell: Tell) -> HubSearch:
    from backend.models import hub_search  # loads the hub library

    return hub_search.search(str(arguments.get("words") or ""), wish(arguments), is_offline=is_offline())


def _model(arguments: Arguments, tell: Tell) -> HubModel:
    from backend.models import hub_details

    name, revision = needed(arguments, "name"), str(arguments.get("revision") or "main")
    return hub_details.details(name, revision, wish(arguments), is_offline=is_offline())


def _download(arguments: Arguments, tell: Tell) -> DownloadedModel:
    from backend.models import hub_details

    name, revision = needed(arguments, "name"), str(arguments.get("revision") or "main")
    watched = _Watched(tell)
    return hub_details.download(
        name, revision, cache_folder() / "weights", watched.report, watched.on_file, is_offline=is_offline()
    )


class _Watched:
    """Tells how far a download is, the whole and the file that is fetched, a few times a second."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._told = tell, 0.0
        self._file = Progress()

    def on_file(self, name: str, done: int, size: int) -> None:
        self._file = Progress(part=name, part_done=done, part_total=size)

    def report(self, done: int, total: int, unit: str) -> None:
        now = time.monotonic()
        if done >= total or now - self._told >= _TOLD_SECONDS:
            self._told = now
            file = self._file
            self._tell(Progress(done, total, unit, "", file.part, file.part_done, file.part_total))


def wish(arguments: Arguments) -> Wish:
    """The run that a model is wanted for."""
    return wish_of(arguments.get("wish") or {})


QUERIES = (
    Query("hub_search", _search),
    Query("hub_model", _model),
    Query("download_model", _download),
)
