"""Owns how numbers, times and events read on screen."""

import math
from collections.abc import Mapping
from datetime import datetime

from backend.contract import events


def number(value: float | None, digits: int = 4) -> str:
    """A metric or a loss: `0.4811`, `1.01e-04`, `–` where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    return f"{value:.{digits}f}" if abs(value) < 100 else f"{value:,.1f}"


def scientific(value: float | None) -> str:
    """A learning rate: `3.00e-04`, `0`."""
    return "–" if value is None else "0" if value == 0 else f"{value:.2e}"


def rate(value: float | None) -> str:
    """Something per second: `11,627`, `3.2`."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def grouped(value: int) -> str:
    """A whole number with thin groups: `24 960`."""
    return f"{value:,}".replace(",", "\u202f")


def epochs(number: float) -> str:
    """`4`, or `2.7` where the last one is not whole."""
    return f"{round(number, 1):g}"


def count(value: int, noun: str) -> str:
    """`1 row`, `24 960 rows`."""
    return f"{grouped(value)} {noun}{'' if value == 1 else 's'}"


def short_count(value: float) -> str:
    """Parameters and tokens: `4.4 M`, `1.3 B`."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        # What would be rounded to a thousand of one unit is one of the next.
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f}"


def megabytes(value: float | None) -> str:
    """`412 MB`, `3.1 GB` (10^6 and 10^9 bytes)."""
    if value is None:
        return "–"
    return f"{value:,.0f} MB" if value < 1000 else f"{value / 1000:.1f} GB"


def duration(seconds: float | None) -> str:
    """`8 s`, `4 min 20 s`, `3 h 05 min`, `2 d 4 h`."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def moment(seconds: float | None, now: datetime | None = None) -> str:
    """When: `today 15:30`, `19 Nov 15:30`, `19 Nov 2025`."""
    if seconds is None:
        return "–"
    when, now = datetime.fromtimestamp(seconds), now or datetime.now()
    if when.date() == now.date():
        return f"today {when:%H:%M}"
    return f"{when.day} {when:%b %H:%M}" if when.year == now.year else f"{when.day} {when:%b %Y}"


def clock(seconds: float) -> str:
    """The time of day of a log line."""
    return f"{datetime.fromtimestamp(seconds):%H:%M:%S}"


def metric_title(name: str) -> str:
    """A metric's name for people: `Macro F1`, `Accuracy`, `RTE.tsv · accuracy`."""
    if name in _METRIC_TITLES:
        return _METRIC_TITLES[name]
    if "/" in name:
        part, _, metric = name.rpartition("/")
        return f"{part} · {metric_title(metric).lower()}"
    return name.replace("_", " ").capitalize()


_METRIC_TITLES = {
    "loss": "Loss",
    "accuracy": "Accuracy",
    "precision": "Precision",
    "recall": "Recall",
    "combined": "Combined",
    "f1": "F1",
    "f1_macro": "Macro F1",
    "f1_weighted": "Weighted F1",
    "matthews": "Matthews correlation",
}


def name_of_path(path: str) -> str:
    """The last part of a path or hub id."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def short_path(path: str, parts: int = 2) -> str:
    """A hub id as it is, of a path on this computer the last folders: `…/demo/bert-tiny`."""
    names = path.replace("\\", "/").rstrip("/").split("/")
    return path if len(names) <= parts else f"…/{'/'.join(names[-parts:])}"


def sentence(text: str, field: str | None = None) -> str:
    """What the backend says, without the key of the field beside which it is shown, and begun like a sentence."""
    rest = text.removeprefix(f"{field}: ") if field else text
    first = rest.split(maxsplit=1)[0] if rest.split() else ""
    return rest[:1].upper() + rest[1:] if first.isalpha() else rest


_SPLITS = {"data.train": "Training data", "data.validation": "Validation data", "data.test": "Test data"}


def note(text: str) -> str:
    """A note of a plan as a sentence; the split that it is about is called by its name."""
    key, colon, rest = text.partition(": ")
    return f"{_SPLITS[key]}: {rest}" if colon and key in _SPLITS else sentence(text)


def dtype(name: str) -> str:
    """A safetensors type in everybody's words: `F16` is `float16`."""
    return {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}.get(name, name)


def step_line(event: events.StepFinished) -> str:
    """One journal line about a step."""
    tokens = event.tokens / event.seconds if event.seconds > 0 else None
    return (
        f"step {event.step:>6}  loss {number(event.loss)}  learning rate {event.learning_rate:.2e}"
        f"  gradient norm {number(event.gradient_norm, 2)}  {rate(tokens)} tokens/s"
    )


def evaluation_line(event: events.EvaluationFinished) -> str:
    """One journal line about an evaluation."""
    values = "  ".join(f"{name} {number(value)}" for name, value in event.metrics.items())
    return f"step {event.step:>6}  {event.split}: {values}{'  (best)' if event.is_best else ''}"


def mistakes(found: Mapping[str, str]) -> list[str]:
    """Field → what is wrong with it, as sentences: `Batch size: enter 1 or more.`"""
    return [f"{name.replace('_', ' ').capitalize()}: {text[:1].lower()}{text[1:]}" for name, text in found.items()]
