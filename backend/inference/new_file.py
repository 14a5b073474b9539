"""Reads a file that a trained model predicts: as its content suggests, or else as the run's own files were read."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import user_path
from backend.contract.spec import RunSpec, run_spec
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.inference.spec import Target, check_changes, file_settings, find_target, spec_of
from backend.preflight.datasets import choose_columns, ignore_progress, make_source, make_task, reading

_ENCODING = "encoding"


@dataclass(frozen=True)
class NewFile:
    """The rows of a file, and the spec with which they were read."""

    spec: RunSpec
    rows: Rows
    note: str = ""
    """Which of the run's own settings were used, in a sentence; empty if the file alone was enough."""


def read_new_file(
    target: str,
    data: Path,
    task: str | None = None,
    changes: list[str] | None = None,
    report: Report = ignore_progress,
    say: Callable[[str], None] = lambda stage: None,
    *,
    to_predict: bool = True,
) -> NewFile:
    """The file's rows. What `changes` say of reading it always counts. Raises InputError.

    `say` is told that reading begins, once the run's own spec is known to be whole.
    """
    given = changes or []
    check_changes(given)
    model = find_target(target)
    own = {name: value for name, value in _own_settings(model).items() if f"data.{name}" not in _keys(given)}
    path = user_path(data).absolute()
    say(message("Reading the file"))

    def read(settings: Mapping[str, Any]) -> NewFile:
        own_changes = [f"data.{name}={json.dumps(value)}" for name, value in settings.items()]
        spec = spec_of(model, task, [*own_changes, *given], data)
        return NewFile(spec, make_source(spec).read_file(path, spec.data, reading(report)))

    if not own:
        return read({})
    refusal: InputError | None = None
    for attempts in _list_attempts(own):
        readable: NewFile | None = None
        for settings in attempts:
            try:
                found = read(settings)
            except InputError as error:
                refusal = refusal or error
                continue
            found = replace(found, note=_describe(path.name, settings))
            if _fits(found, to_predict):
                return found
            readable = readable or found
        if readable is not None:
            return readable
    assert refusal is not None
    raise refusal  # the first one is about the file alone, so it is the one that helps


def _list_attempts(own: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """Nothing of the run's first, as it says little about a file that can be read without; then more of it.

    The run's encoding is for a file that cannot be read without: an 8-bit one turns any other file into mojibake.
    """
    others = {name: value for name, value in own.items() if name != _ENCODING}
    attempts = [{}, others] if others else [{}]
    if _ENCODING not in own:
        return [attempts]
    return [attempts, [{_ENCODING: own[_ENCODING], **attempt} for attempt in attempts]]


def _describe(name: str, settings: Mapping[str, Any]) -> str:
    used = ", ".join(f"data.{key}: {_format_value(value)}" for key, value in settings.items())
    return message("{name} was read like the run's own files, with {used}", name=name, used=used) if used else ""


def _format_value(value: Any) -> str:
    return repr(value) if len(str(value)) == 1 else str(value)  # a delimiter may be a tab


def _fits(found: NewFile, to_predict: bool) -> bool:
    """Whether the file has the columns that the model needs."""
    try:
        choose_columns(make_task(found.spec), dict(found.spec.data.columns), found.rows, to_predict=to_predict)
    except InputError:
        return False
    return True


def _own_settings(target: Target) -> dict[str, Any]:
    """How a run's own files were read, as far as its spec says so; nothing for a model folder."""
    if target.run is None:
        return {}
    data = run_spec(spec_file.read_run(target.run.spec)).data
    own = file_settings({"source": data.source, **(data.model_extra or {})})
    return {name: value for name, value in own.items() if value not in (None, "auto")}


def _keys(changes: list[str]) -> set[str]:
    return {change.split("=", 1)[0] for change in changes}
