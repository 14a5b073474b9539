"""Owns `answer`: what a model says to typed rows, with the model kept open for the next question."""

import json
import os
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from backend.contract import consents
from backend.contract.places import runs_folder
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.rpc.queries import Answer, Progress
from backend.contract.run.folder import find_run
from backend.contract.safe_files import user_path
from backend.helper.query import DEVICE_GIVEN_UP, Arguments, Query, Tell, needed, reporting

if TYPE_CHECKING:
    from backend.inference.interactive import Answerer

_DECODING = {field.name for field in fields(GenerationSettings) if field.compare}
"""Settings under which an open model can be asked; any other changes the model and opens it anew."""


def _answer(arguments: Arguments, tell: Tell, stop_requested: Callable[[], bool]) -> Answer:
    settings: dict[str, Any] = arguments.get("settings") or {}
    target, task = needed(arguments, "target"), str(arguments.get("task") or "")
    opening = {name: value for name, value in settings.items() if name not in _DECODING}
    _remember(tell)
    answerer = _opened(target, task, json.dumps(opening, sort_keys=True), _version(target))
    told: list[str] = []

    def say(piece: str) -> None:
        told.append(piece)
        tell(Progress(done=len(told), unit="pieces", text=piece))

    decoding = {name: value for name, value in settings.items() if name in _DECODING}
    return answerer.answer(needed(arguments, "rows", list), decoding, say, stop_requested)


_present: dict[str, Tell] = {}


def _remember(tell: Tell) -> None:
    """Whom to tell of a download; no part of the key by which an open model is found."""
    _present["tell"] = tell


@lru_cache(maxsize=1)
def _opened(target: str, task: str, settings: str, version: str) -> "Answerer":
    from backend.hardware import claims
    from backend.inference import interactive  # loads the framework

    changes = [f"task.{name}={json.dumps(value)}" for name, value in json.loads(settings).items()]
    answerer = interactive.Answerer(target, task or None, changes, reporting(_present["tell"]))
    if not answerer.device.startswith("cpu"):
        claims.Waiting(lambda: os._exit(DEVICE_GIVEN_UP))
    return answerer


def _version(target: str) -> str:
    """Changes when a run has written its model again, or a person has agreed to code or withdrawn that."""
    run = find_run(target, runs_folder())
    path = (run.model if run is not None else user_path(target)) / "config.json"
    try:
        return f"{path.stat().st_mtime_ns} {consents.changed_at()}"
    except OSError:
        return str(consents.changed_at())


QUERIES = (Query("answer", _answer, warm_by="target", can_stop=True),)
