"""Reads a file that a trained model predicts: as its content suggests, or else as the run's own files were read."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.places import runs_folder
from backend.contract.run.folder import find_run
from backend.contract.safe_files import user_path
from backend.contract.spec import RunSpec, run_spec
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.inference.spec import checkpoint_of, file_settings, spec_of
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
    *,
    to_predict: bool = True,
) -> NewFile:
    """The file's rows. What `changes` say of reading it always counts. Raises InputError."""
    given = changes or []
    own = {name: value for name, value in _own_settings(target).items() if f"data.{name}" not in _keys(given)}
    path = user_path(data).absolute()

    def read(settings: Mapping[str, Any]) -> NewFile:
        spec = spec_of(
            target, task, [*(f"data.{name}={json.dumps(value)}" for name, value in settings.items()), *given], data
        )
        return NewFile(spec, make_source(spec).read_file(path, spec.data, reading(report)))

    if not own:
        return read({})
    readable: NewFile | None = None
    refusal: InputError | None = None
    for settings in _attempts(own):
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


def _attempts(own: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Nothing of the run's first, as it says little about a file that can be read without; then more of it."""
    yield {}
    if _ENCODING in own:
        yield {_ENCODING: own[_ENCODING]}
    if own.keys() != {_ENCODING}:
        yield dict(own)


def _describe(name: str, settings: Mapping[str, Any]) -> str:
    used = ", ".join(f"data.{key}={_shown(value)}" for key, value in settings.items())
    return message("{name} was read like the run's own files, with {used}", name=name, used=used) if used else ""


def _shown(value: Any) -> str:
    return repr(value) if len(str(value)) == 1 else str(value)  # a delimiter may be a tab


def _fits(found: NewFile, to_predict: bool) -> bool:
    """Whether the file has the columns that the model needs."""
    try:
        choose_columns(make_task(found.spec), dict(found.spec.data.columns), found.rows, to_predict=to_predict)
    except InputError:
        return False
    return True


def _own_settings(target: str) -> dict[str, Any]:
    """How a run's own files were read, as far as its spec says so; nothing for a model folder."""
    checkpoint = checkpoint_of(target)
    run = checkpoint.run if checkpoint else find_run(target, runs_folder())
    if run is None:
        return {}
    data = run_spec(spec_file.read_run(run.spec)).data
    own = file_settings({"source": data.source, **(data.model_extra or {})})
    return {name: value for name, value in own.items() if value not in (None, "auto")}


def _keys(changes: list[str]) -> set[str]:
    return {change.split("=", 1)[0] for change in changes}
