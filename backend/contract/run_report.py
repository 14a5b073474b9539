"""Owns the report on a run that one person gives another to find out why it failed: what is in it, and what is left out."""

import platform
from pathlib import Path
from typing import Any

from backend.contract import events, spec_file
from backend.contract.errors import InputError
from backend.contract.landmarks import landmarks
from backend.contract.private_words import without_private_words
from backend.contract.run_folder import RunFolder

LAST_EVENTS = 20
LAST_LINES = 60
TAIL_BYTES = 64_000
HIDDEN = "[hidden]"
_MOSTLY_STEPS = (events.StepFinished, events.MemoryMeasured, events.StageProgress, events.RowsSampled)
"""Many, or somebody's data."""


def report(folder: RunFolder) -> str:
    """Versions, settings, the events' end and the log's, as Markdown.

    Without sampled rows, tokens and other keys, environment values, names, passwords and queries in URLs, e-mail addresses,
    and home folders.
    """
    said = landmarks(folder.events)
    parts = [
        f"# Report on the run {folder.name}",
        _how_it_ended(folder, said),
        f"## Versions\n\n{_versions(said)}",
        f"## Settings\n\n{_fenced(_settings(folder), 'yaml')}",
        f"## Last events\n\n{_fenced(_last(_at_the_end(folder.events)), 'json')}",
        f"## End of process.log\n\n{_fenced(_tail(folder.log, LAST_LINES))}",
    ]
    return without_private_words("\n\n".join(parts)) + "\n"


def _how_it_ended(folder: RunFolder, said: list[events.AnyEvent]) -> str:
    ends = [event for event in said if isinstance(event, events.RunFinished | events.RunResumed)]
    end = ends[-1] if ends else None  # where another attempt began after it, an end says nothing of how it stands now
    if isinstance(end, events.RunFinished):
        return f"State: {end.state} at step {end.step}. {end.message} (code {end.code or 'none'})"
    record = folder.exit_record()
    return f"State: {'queued' if folder.is_queued() else folder.life()}. " + (
        f"Exit code {record.returncode}. {record.message}" if record else ""
    )


def _versions(said: list[events.AnyEvent]) -> str:
    begun = [event for event in said if isinstance(event, events.RunStarted | events.RunResumed)]
    last = begun[-1] if begun else None
    lines = [f"- {name} {version}" for name, version in (last.versions if last else {}).items()]
    system = f"- {platform.system()} {platform.release()} {platform.machine()}"
    computed = f"- {last.engine} on {last.device} in {last.precision}" if last else ""
    return "\n".join(filter(None, [system, computed, *lines]))


def _settings(folder: RunFolder) -> str:
    try:
        values = spec_file.read(folder.spec)
    except InputError as error:
        return f"# {error}"
    hardware: Any = values.get("hardware")
    if isinstance(hardware, dict) and isinstance(hardware.get("environment"), dict):
        hardware["environment"] = dict.fromkeys(hardware["environment"], HIDDEN)
    return spec_file.dump(values).rstrip()


def _last(said: list[events.AnyEvent]) -> str:
    steps = [event for event in said if isinstance(event, events.StepFinished)][-3:]
    kept = [event for event in said if not isinstance(event, _MOSTLY_STEPS) or event in steps]
    return "\n".join(events.encode(event).decode("utf-8").rstrip() for event in kept[-LAST_EVENTS:])


def _at_the_end(path: Path) -> list[events.AnyEvent]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            return list(events.decode_all(file))
    except OSError:
        return []


def _tail(path: Path, lines: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return "There is no log."
    return "\n".join(line.rpartition("\r")[2] for line in text.rstrip().splitlines()[-lines:])


def _fenced(text: str, kind: str = "") -> str:
    return f"```{kind}\n{text}\n```"
