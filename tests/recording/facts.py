"""Write what a program said as lines of text that two recordings are compared by: one fact a line, no times or places."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

UNSTABLE = {"time", "started", "versions", "memory_mb", "available_mb", "measured"}
"""Keys that say how long something took, on what, or when; so does every key that ends with `seconds`."""
UNSTEADY = {"StageProgress", "MemoryMeasured"}
"""Events that come by the clock."""
BESIDE = {"StepFinished", "CheckpointSaved", "CheckpointRemoved"}
"""Events of work that goes on beside other work: in order among their own kind, but not with the others."""


def flatten(value: Any, path: str = "") -> Iterator[str]:
    """`a.b[0] = value` of everything in it; a float reads back to the bit."""
    if isinstance(value, dict) and value:
        for key, inner in sorted(value.items()):
            yield from flatten(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            name = inner.get("name", number) if isinstance(inner, dict) else number
            yield from flatten(inner, f"{path}[{name}]")
    else:
        yield f"{path} = {json.dumps(value, ensure_ascii=False)}"


def steady(value: Any) -> Any:
    """The same without what another run of the same thing may say otherwise; the keys stay."""
    if isinstance(value, dict):
        return {key: "…" if _is_unstable(key) else steady(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [steady(inner) for inner in value]
    return value


def _is_unstable(key: str) -> bool:
    return key in UNSTABLE or key.endswith("seconds")


def event_lines(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """All that a run said, event by event; what is done beside other work comes last.

    How its sentences were made is left out: an older tree records them without that.
    """
    heard = [steady(event) for event in _without_compiling(events) if event["event"] not in UNSTEADY]
    for event in sorted(heard, key=lambda event: event["event"] if event["event"] in BESIDE else ""):
        yield from flatten(
            {key: value for key, value in event.items() if key not in ("event", "messages")}, event["event"]
        )


def _without_compiling(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Without the stage `compiling` and the return from it: only what takes a while to compile is announced."""
    is_away = False
    for event in events:
        if event["event"] == "StageStarted":
            was_away, is_away = is_away, event["stage"] == "compiling"
            if was_away or is_away:
                continue
        yield event


def loss_lines(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The curves, every number to the bit; of a step that was made twice, the second."""
    steps: dict[int, str] = {}
    for event in events:
        if event["event"] == "RunResumed":
            steps = {step: line for step, line in steps.items() if step <= event["from_step"]}
        if event["event"] == "StepFinished":
            numbers = ((name, event.get(name)) for name in ("loss", "gradient_norm", "learning_rate"))
            steps[event["step"]] = " ".join(f"{name} {_exact(number)}" for name, number in numbers)
    yield from (f"step {step}: {line}" for step, line in steps.items())


def metric_lines(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Every evaluation's numbers, to the bit."""
    for event in events:
        if event["event"] in ("EvaluationFinished", "PredictionsWritten", "RunFinished"):
            where = f"{event['event']} {event.get('split', '')} {event.get('step', '')}"
            yield from (f"{where} {name} {_exact(number)}" for name, number in event.get("metrics", {}).items())


def _exact(number: float | None) -> str:
    return "none" if number is None else float(number).hex()
