"""Writes the report that a user can share to find out why a run failed.

It contains only what is known to be harmless: see `public_words`.
"""

import platform
import re
from pathlib import Path
from typing import Any

import msgspec

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.run import events
from backend.contract.run.event_summary import TOO_LONG, landmarks
from backend.contract.run.folder import RunFolder
from backend.contract.run.report_redaction import (
    PATH,
    TEXT,
    extract_facts,
    public_choice,
    public_metrics,
    public_setting,
    public_version,
    traceback_lines,
)
from backend.contract.safe_files import open_unlinked
from backend.contract.versions import PACKAGES_OF_A_RUN

LAST_EVENTS = 20
LAST_LINES = 60
TAIL_BYTES = 64_000
_MOSTLY_STEPS = (events.StepFinished, events.MemoryMeasured, events.StageProgress, events.RowsSampled)
"""Many, or user data."""
_OUR_WORDS = {"state", "code", "request", "engine", "device", "precision", "task"}
"""Fields whose text our own program chooses."""
_STAGES = {
    "finding model", "loading model", "loading data", "tokenising", "compiling", "meeting hosts", "training", "evaluating",
    "saving", "predicting",
}  # fmt: skip
_UNITS = {"bytes", "hosts", "rows", "steps"}
_OUR_WORD = re.compile(r"[A-Za-z][a-z0-9_]*(?:[ :][a-z0-9]+)?", re.ASCII)
_LONGEST_WORD = 32
_SENTENCES = {"message", "hint", "reason"}
_CLASS = re.compile(r"[A-Z][A-Za-z0-9]{1,30}(?:Model|For[A-Z][A-Za-z]{2,40}|LMHeadModel)")


def report(folder: RunFolder) -> str:
    """Versions, settings, last events and tracebacks from the log, as Markdown: only numbers and our own words."""
    summary = landmarks(folder.events)
    last_events = events.decode_all(_read_tail(folder.events).split(b"\n"))
    is_cut = any(isinstance(event, events.Warned) and event.code == TOO_LONG for event in summary)
    ends_only = (
        ["Of events.jsonl only the beginning and the end were read, for it is larger than any run writes."]
        if is_cut
        else []
    )
    parts = [
        "# Report on a run",
        "\n\n".join([_describe_end(folder, summary), *ends_only]),
        f"## Versions\n\n{_versions(summary)}",
        f"## Settings\n\n{_fence(_settings(folder), 'yaml')}",
        f"## Last events\n\n{_fence(_last(list(last_events)), 'json')}",
        f"## Tracebacks of process.log\n\n{_fence(_tracebacks(folder))}",
    ]
    return "\n\n".join(parts) + "\n"


def _describe_end(folder: RunFolder, landmark_events: list[events.AnyEvent]) -> str:
    ends = [event for event in landmark_events if isinstance(event, events.RunFinished | events.RunResumed)]
    end = ends[-1] if ends else None  # where another attempt began after it, an end says nothing of how it stands now
    if isinstance(end, events.RunFinished):
        code = _public("code", end.code) or "none"
        return f"State: {_public('state', end.state)} at step {end.step}. {extract_facts(end.message)} (code {code})"
    record = folder.exit_record()
    return f"State: {'queued' if folder.is_queued() else folder.life()}. " + (
        f"Exit code {record.returncode}. {extract_facts(record.message)}" if record else ""
    )


def _versions(landmark_events: list[events.AnyEvent]) -> str:
    begun = [event for event in landmark_events if isinstance(event, events.RunStarted | events.RunResumed)]
    last = begun[-1] if begun else None
    lines = [f"- {name} {version}" for name, version in _public("versions", last.versions if last else {}).items()]
    release = re.match(r"[\d.]*", platform.release())
    system = f"- {platform.system()} {release.group() if release else ''} {platform.machine()}"
    computed = [_public(name, getattr(last, name)) for name in ("engine", "device", "precision")] if last else []
    return "\n".join(filter(None, [system, "- {} on {} in {}".format(*computed) if computed else "", *lines]))


def _settings(folder: RunFolder) -> str:
    try:
        return spec_file.dump(public_setting(spec_file.read_run(folder.spec))).rstrip()
    except InputError as error:
        return f"# spec.yaml cannot be read: {extract_facts(str(error))}"


def _last(landmark_events: list[events.AnyEvent]) -> str:
    steps = [event for event in landmark_events if isinstance(event, events.StepFinished)][-3:]
    kept = [event for event in landmark_events if not isinstance(event, _MOSTLY_STEPS) or event in steps]
    lines = [_fields(msgspec.to_builtins(event)) for event in kept[-LAST_EVENTS:]]
    return "\n".join(msgspec.json.encode(line).decode("utf-8") for line in lines)


def _fields(event: dict[str, Any]) -> dict[str, Any]:
    return {name: _public(name, value) for name, value in event.items() if name != "messages"}  # the sentences' values


def _public(name: str, value: Any) -> Any:
    """One field of an event: numbers and our own words as they are, anything else as a count."""
    match value:
        case dict() if name == "versions":
            known = ("python", *PACKAGES_OF_A_RUN)
            return {package: public_version(value[package]) for package in known if package in value}
        case dict() if name in ("metrics", "trivial"):
            return public_metrics(value)
        case dict() if name == "labels":
            return list(value.values())
        case dict() if name == "mend":
            return {field: _public(field, inner) for field, inner in value.items()}
        case dict():
            return public_setting({key.rpartition(".")[2]: inner for key, inner in value.items()})
        case list():
            return f"{len(value)} of them"
        case str() if name == "event":
            return value  # what was decoded is one of ours
        case str() if name in _SENTENCES:
            return extract_facts(value)
        case str() if name in ("stage", "unit"):
            return value if value in (_STAGES if name == "stage" else _UNITS) else TEXT if value else ""
        case str() if name in _OUR_WORDS and len(value) <= _LONGEST_WORD and _OUR_WORD.fullmatch(value):
            return value
        case str() if name == "architecture" and _CLASS.fullmatch(value):
            return value
        case str() if name == "contract_version":
            return public_version(value)
        case str() if name == "split":
            return value if value in ("train", "validation", "test") else PATH
        case str():
            return public_choice(value) if value else ""
    return value


def _tracebacks(folder: RunFolder) -> str:
    lines = list(traceback_lines(_read_tail(folder.log).decode("utf-8", "replace").splitlines()))
    return "\n".join(lines[-LAST_LINES:]) or "There are none."


def _read_tail(path: Path) -> bytes:
    try:
        with open_unlinked(path) as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            return file.read()
    except OSError:
        return b""


def _fence(text: str, kind: str = "") -> str:
    return f"```{kind}\n{text}\n```"
