"""Searches models on the hub, says how large a download would be, and downloads one."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, ModelInfo, constants, get_session, get_token
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]
from huggingface_hub.utils import hf_raise_for_status
from msgspec.structs import replace

from backend import registry
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.rpc.models import DownloadedModel, HubModel, HubSearch, ModelChoice
from backend.data.hub_answers import install_limits
from backend.data.sources.source import Report
from backend.models import compatibility, hub, hub_transfer, location
from backend.models.compatibility import ModelFacts, RunNeeds
from backend.models.hub_errors import ERRORS, MALFORMED, HubTimeoutError, model_mistake, offline, search_mistake
from backend.models.weights import weight_files

MOST = 40
WANTED: Any = [
    "config", "safetensors", "downloads", "gated", "private", "disabled", "pipeline_tag", "tags", "siblings", "gguf",
]  # fmt: skip
_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_OTHER = ((".gguf", "gguf"), (".onnx", "onnx"), ("tf_model.h5", "tensorflow"), ("adapter_config.json", "adapter"))
SECONDS = 12.0
"""Time limit for an answer while the user waits for a list, however long the Hub library would wait."""


def search(query: str, needs: RunNeeds, *, is_offline: bool = False, most: int = MOST) -> HubSearch:
    """The most downloaded models whose name contains the words. Raises InputError if the hub does not answer."""
    if is_offline:
        raise offline()
    words = query.strip()
    usual = {} if words else {"filter": "transformers", "pipeline_tag": _default_hub_task(needs.task)}
    try:
        with request_once():
            found = list(
                HfApi().list_models(search=words or None, sort="downloads", limit=most + 1, expand=WANTED, **usual)
            )
            models = [choice_of(one, needs) for one in found[:most]]
    except InputError:
        raise
    except (*ERRORS, *MALFORMED) as error:
        raise search_mistake(error) from None
    return HubSearch(models, len(found) > most)


def details(name: str, revision: str, needs: RunNeeds, *, is_offline: bool = False) -> HubModel:
    """What one model is, and what would be downloaded. Raises InputError."""
    if is_offline:
        raise offline()
    try:
        with request_once():
            info = HfApi().model_info(name, revision=revision, expand=WANTED)
            remote = hub.remote_model(name, revision)
    except (*ERRORS, *MALFORMED) as error:
        raise _mistake(name, revision, error) from None
    choice = choice_of(info, needs)
    return HubModel(
        choice=replace(choice, size_mb=remote.size / 1e6, parameters=choice.parameters or remote.parameters),
        commit=remote.commit,
        files=list(remote.files),
        total_mb=sum(remote.sizes[file] for file in remote.files) / 1e6,
        left_mb=hub.remaining_bytes(remote, remote.files) / 1e6,
        free_mb=hub_transfer.free_bytes() / 1e6,
        page=f"{constants.ENDPOINT}/{name}",
    )


def download(
    name: str, revision: str, cache: Path, report: Report, on_file: hub.OnFile | None, *, is_offline: bool = False
) -> DownloadedModel:
    """Download a model. Raises InputError; what has arrived is kept for the next attempt."""
    if is_offline:
        raise offline()
    counted = _CountedProgress(report)
    started = time.perf_counter()
    found = location.fetch(name, revision, cache=cache, report=counted, on_file=on_file)
    return DownloadedModel(name, found.commit, str(found.folder), counted.fetched / 1e6, time.perf_counter() - started)


class _CountedProgress:
    """Passes reports on, counting only what arrived since the first."""

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


@contextmanager
def request_once(seconds: float = SECONDS) -> Iterator[None]:
    """In this block the hub library asks once, with this timeout; by default it asks six times without one.

    Raises HubTimeoutError if there is no answer, and the hub library's own error for a bad status.
    """
    install_limits()
    session: Any = get_session()
    ask = session.request

    def once(*given: Any, **options: Any) -> Any:
        try:
            response = ask(*given, **{**options, "timeout": seconds})
        except HTTPError as error:
            raise HubTimeoutError(error) from None
        hf_raise_for_status(response)
        return response

    session.request = once
    try:
        yield
    finally:
        del session.request


def _default_hub_task(task: str) -> str | None:
    """The hub's name for the models that a task usually starts from, shown before anything is typed."""
    known = registry.find("task", task, "task.type") if task in registry.names("task") else None
    return getattr(known, "hub_filter", "") or None


def choice_of(info: ModelInfo, needs: RunNeeds) -> ModelChoice:
    """A hub model as a row of the chooser."""
    known = to_facts(info)
    return ModelChoice(
        name=info.id,
        group="hub",
        use=compatibility.purpose_of_hub_task(info.pipeline_tag or ""),
        model_type=str(known.config.get("model_type") or ""),
        parameters=known.parameters,
        size_mb=_bytes(info) / 1e6,
        licence=_licence(info.tags or []),
        downloads=info.downloads,
        tasks=compatibility.tasks_of(known.config),
        is_here=False,
        notes=[*([] if known.lacking else _access_notes(info)), *compatibility.notes(known, needs)],
        problem=compatibility.problem(known, needs),
    )


def to_facts(info: ModelInfo) -> ModelFacts:
    """The hub's facts about a model, as far as they decide whether it can be used."""
    names = tuple(file.rfilename for file in info.siblings or [])
    kind, _ = weight_files(names)
    if kind == "none":
        kind = "gguf" if info.gguf else _other_format(names) or ("none" if names else "")
    config = info.config if isinstance(info.config, dict) else {}
    total = info.safetensors.total if info.safetensors else 0
    return ModelFacts(config, total, kind, _no_access(info))


def _other_format(names: Sequence[str]) -> str:
    return next((kind for ending, kind in _OTHER if any(name.endswith(ending) for name in names)), "")


def _no_access(info: ModelInfo) -> str:
    if info.disabled:
        return message("the Hub closed the connection")
    if info.gated and not get_token():
        return message("it is gated; accept its terms on its page, then sign in (Settings, or `hf auth login`)")
    if info.private and not get_token():
        return message("it is private; sign in first (Settings, or `hf auth login`)")
    return ""


def _access_notes(info: ModelInfo) -> list[str]:
    if info.gated:
        return [message("It is gated: accept its terms on its page first.")]
    return [message("It is private: only people with access to it can reproduce the run.")] if info.private else []


def _licence(tags: Sequence[str]) -> str:
    return next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), "")


def _bytes(info: ModelInfo) -> float:
    counts = info.safetensors.parameters if info.safetensors else {}
    return float(sum(_BYTES.get(kind, 1) * count for kind, count in counts.items()))
