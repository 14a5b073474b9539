"""Formats numbers, times and events for the screen."""

import math
from collections.abc import Iterable
from datetime import datetime

from app.core.backend_words import SPLITS, capitalize, translate_word
from app.core.i18n import figure, group_digits, inside, tr, trn
from app.core.setting_titles import in_titles
from backend.contract import time_span
from backend.contract.catalog import MetricEntry
from backend.contract.run import events

STALE_SECONDS = 60
"""From this age on a reading says how old it is; memory is measured every second or two."""


def number(value: float | None, digits: int = 4) -> str:
    """A metric or a loss: `0.4811`, `1.01e-04`, `–` if there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e6:
        return figure(value, ".2e")
    return figure(value, f".{digits}f") if abs(value) < 100 else group_digits(value, 1)


def sure_number(value: float | None, interval: tuple[float, float] | None, digits: int = 4) -> str:
    """A metric with its 95 % interval, if it has one: `0.8828 (0.855 to 0.906)`."""
    if interval is None:
        return number(value, digits)
    low, high = (number(end, 3) for end in interval)
    return tr("{value} ({low} to {high})", value=number(value, digits), low=low, high=high)


def scientific(value: float | None) -> str:
    """A learning rate, with at most three digits: `2.2e-4`, `0`."""
    if not value:
        return "–" if value is None else "0"
    digits, power = format(value, ".2e").split("e")
    return figure(f"{digits.rstrip('0').rstrip('.')}e{int(power)}")


def rate(value: float | None) -> str:
    """Something per second: `11 627`, `3.2`."""
    if value is None or not math.isfinite(value):
        return "–"
    return group_digits(value) if value >= 10 else figure(value, ".1f")


def epochs(number: float) -> str:
    """`4`, or `2.7` if the last one is incomplete."""
    return figure(round(number, 1), "g")


def count(value: int, noun: str) -> str:
    """`1 row`, `24 960 rows`."""
    return f"{group_digits(value)} {noun}{'' if value == 1 else 's'}"


def short_count(value: float) -> str:
    """Parameters and tokens: `4.4 M`, `1.3 B`."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        # What would be rounded to a thousand of one unit is one of the next.
        if value >= 0.9995 * size:
            return f"{figure(value / size, '.3g')} {unit}"
    return f"{value:.0f}"


def megabytes(value: float | None) -> str:
    """`412 MB`, `3.1 GB` (10^6 and 10^9 bytes)."""
    if value is None:
        return "–"
    return f"{group_digits(value)} MB" if value < 1000 else f"{group_digits(value / 1000, 1)} GB"


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
    """A date and time: `today 15:30`, `19 Nov 15:30`, `19 Nov 2025`."""
    when, now = _local_time(seconds), now or datetime.now()
    if when is None:
        return "–"
    if when.date() == now.date():
        return tr("today {when:%H:%M}", when=when)
    month = _MONTHS[when.month - 1]
    if when.year == now.year:
        return tr("{day} {month} {when:%H:%M}", day=when.day, month=month, when=when)
    return tr("{day} {month} {year}", day=when.day, month=month, year=when.year)


_MONTHS = (
    tr("Jan"), tr("Feb"), tr("Mar"), tr("Apr"), tr("May"), tr("Jun"), tr("Jul"), tr("Aug"), tr("Sep"), tr("Oct"),
    tr("Nov"), tr("Dec"),
)  # fmt: skip


def ago(seconds: float) -> str:
    """`3 minutes ago`, `just now`."""
    count, unit = time_span.age(seconds)
    if not count:
        return tr("just now")
    return {
        "minute": trn("{count} minute ago", "{count} minutes ago", count),
        "hour": trn("{count} hour ago", "{count} hours ago", count),
        "day": trn("{count} day ago", "{count} days ago", count),
    }[unit]


def reading_age(measured: float, now: float) -> str:
    """How old a reading is, empty while it is new."""
    return ago(now - measured) if now - measured >= STALE_SECONDS else ""


def clock(seconds: float) -> str:
    """The time of day of a log line."""
    when = _local_time(seconds)
    return "–" if when is None else f"{when:%H:%M:%S}"


def _local_time(seconds: float | None) -> datetime | None:
    """None for an out-of-range time too: an untrusted run may contain any number."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds)
    except (OverflowError, OSError, ValueError):
        return None


_metric_titles: dict[str, str] = {}


def learn_metrics(metrics: Iterable[MetricEntry]) -> None:
    """Use these metrics' titles from now on."""
    _metric_titles.update((metric.name, metric.title) for metric in metrics)


def metric_title(name: str) -> str:
    """A metric's display name: `Macro F1`, `Accuracy`, `RTE.tsv · accuracy`; its own name before the catalog loads."""
    if name in _metric_titles:
        return _metric_titles[name]
    if "/" in name:
        part, _, metric = name.rpartition("/")
        return f"{part} · {inside(metric_title(metric))}"
    return translate_word(capitalize(name.replace("_", " ").lower()))


def name_of_path(path: str) -> str:
    """The last part of a path or hub id."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def short_name(name: str, most: int = 32) -> str:
    """A name from data or a run, with its middle removed if it is longer than `most` characters."""
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"


def short_path(path: str, parts: int = 2) -> str:
    """A hub id unchanged, or the last folders of a local path: `…/demo/bert-tiny`."""
    names = path.replace("\\", "/").rstrip("/").split("/")
    return path if len(names) <= parts else f"…/{'/'.join(names[-parts:])}"


def sentence(text: str, field: str | None = None) -> str:
    """A backend message without the key of the field beside which it is shown, with a capital first letter.

    Other settings are shown by title.
    """
    rest = in_titles(text.removeprefix(f"{field}: ") if field else text)
    first = rest.split(maxsplit=1)[0] if rest.split() else ""
    return capitalize(rest) if first.isalpha() else rest


def with_full_stop(text: str) -> str:
    """A sentence that another one may follow."""
    return text if text.endswith((".", "!", "?", "…", ":")) else f"{text}."


_SPLITS = {"data.train": tr("Training data"), "data.validation": tr("Validation data"), "data.test": tr("Test data")}


def note(text: str) -> str:
    """A note of a plan as a sentence; its split is shown by name."""
    key, colon, rest = text.partition(": ")
    return f"{_SPLITS[key]}: {in_titles(rest)}" if colon and key in _SPLITS else sentence(text)


def dtype(name: str) -> str:
    """A safetensors type by its common name: `F16` is `float16`."""
    return {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}.get(name, name)


def step_line(event: events.StepFinished) -> str:
    """One journal line about a step."""
    tokens = event.tokens / event.seconds if event.seconds > 0 else None
    return tr(
        "step {step:>6}  loss {loss}  learning rate {learning_rate}  gradient norm {gradient_norm}  {tokens} tokens/s",
        step=event.step,
        loss=number(event.loss),
        learning_rate=scientific(event.learning_rate),
        gradient_norm=number(event.gradient_norm, 2),
        tokens=rate(tokens),
    )


def evaluation_line(event: events.EvaluationFinished, names: Iterable[str], *, is_best: bool) -> str:
    """One journal line about an evaluation, with the metrics of these names."""
    values = "  ".join(f"{inside(metric_title(name))} {number(event.metrics[name])}" for name in names)
    return tr(
        "step {step:>6}  {split}: {values}{value}",
        step=event.step,
        split=SPLITS.get(event.split, event.split),
        values=values,
        value=tr("  (best)") if is_best else "",
    )


def mistake(title: str, text: str) -> str:
    """A field's error as a complete sentence: `Batch size: enter 1 or more.`"""
    return f"{title}: {text[:1].lower()}{text[1:]}"
