"""A search for the window: its trials as rows and as lines over parallel axes, and its findings in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.core import formatting
from app.core.backend_messages import translate_message
from app.core.i18n import figure, group_digits, tr
from app.core.runs.run_status import TITLES
from app.core.setting_titles import title_of_key
from backend.contract.rpc.search import Confirmation, SearchReport, TrialEntry
from backend.contract.run.comparison import format_short

FEW = 4
"""Different values that are all written beside an axis."""
WIDE = 20
"""A range whose ends differ by this factor has a logarithmic axis."""


@dataclass(frozen=True)
class Axis:
    """One vertical axis: where each trial crosses it, from 0 (bottom) to 1, and its labels."""

    title: str
    places: tuple[float | None, ...]
    ticks: tuple[tuple[float, str], ...]


def keys_of(report: SearchReport) -> list[str]:
    """The settings that were searched, in the order of the space."""
    return list(dict.fromkeys(key for trial in report.trials for key in trial.settings))


def axes_of(report: SearchReport) -> list[Axis]:
    """An axis for each setting, and one for the metric; the trials are in the report's order, best first."""
    axes = [_axis(title_of_key(key), [trial.settings.get(key) for trial in report.trials]) for key in keys_of(report)]
    return [*axes, _axis(formatting.metric_title(report.metric), [trial.metric for trial in report.trials])]


def _axis(title: str, values: Sequence[Any]) -> Axis:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == sum(value is not None for value in values) and len(set(numbers)) > 1:
        return _number_axis(title, values, float(min(numbers)), float(max(numbers)))
    texts = [None if value is None else format_short(value) for value in values]
    known = sorted({text for text in texts if text is not None})
    places = {text: (place + 0.5) / len(known) for place, text in enumerate(known)}
    return Axis(title, tuple(None if text is None else places[text] for text in texts), tuple((places[text], text) for text in known))  # fmt: skip


def _number_axis(title: str, values: Sequence[float | None], low: float, high: float) -> Axis:
    is_log = low > 0 and high / low >= WIDE

    def place(value: float) -> float:
        if is_log:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)

    middle = math.sqrt(low * high) if is_log else (low + high) / 2
    distinct = sorted({value for value in values if value is not None})
    marked = distinct if len(distinct) <= FEW else [low, middle, high]
    ticks = tuple((place(value), figure(value, ".3g")) for value in marked)
    return Axis(title, tuple(None if value is None else place(value) for value in values), ticks)


def header_of(report: SearchReport) -> list[str]:
    """The columns of the table of trials."""
    fixed = (tr("Trial"), formatting.metric_title(report.metric), tr("State"), tr("Steps"))
    return [*fixed, *map(title_of_key, keys_of(report))]


def rows_of(report: SearchReport) -> list[list[str]]:
    """The table of trials, best first; the best is marked."""
    return [_row(report, trial) for trial in report.trials]


def _row(report: SearchReport, trial: TrialEntry) -> list[str]:
    steps = group_digits(trial.steps)
    if trial.total_steps:
        steps = tr("{done} of {total}", done=steps, total=group_digits(trial.total_steps))
    mark = " ★" if trial.trial == report.best else ""
    value = "–" if trial.metric is None else formatting.number(trial.metric)
    settings = [_value_text(trial.settings.get(key)) for key in keys_of(report)]
    return [f"{trial.trial}{mark}", value, TITLES.get(trial.state, trial.state), steps, *settings]


def _value_text(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return figure(value, ".3g") if is_number else format_short(value)


def sentences(report: SearchReport) -> list[str]:
    """What the numbers say, most important first."""
    found = [translate_message(report.message)] if report.message else []
    if report.seconds_left is not None and report.state == "running":
        found.append(tr("About {left} left.", left=formatting.duration(report.seconds_left)))
    found += [_confirmation(one, report) for one in report.confirmed]
    if report.full_steps and report.steps < report.full_steps:
        found.append(
            tr(
                "{done} steps, {share} % of the {full} that training all of these trials through would take.",
                done=group_digits(report.steps),
                share=round(100 * report.steps / report.full_steps),
                full=group_digits(report.full_steps),
            )
        )
    for one in report.importance:
        low, high = one.interval
        found.append(
            tr(
                "{setting} explains {share} % of the differences ({low} to {high} %).",
                setting=title_of_key(one.setting), share=round(100 * one.share), low=round(100 * low), high=round(100 * high),
            )
        )  # fmt: skip
    for one in report.no_effect:
        names = ", ".join(map(title_of_key, one.settings))
        first, second = one.trials
        found.append(tr("{names} had no effect: trials {first} and {second} have identical losses.", names=names, first=first, second=second))  # fmt: skip
    return found


def _confirmation(one: Confirmation, report: SearchReport) -> str:
    values = {
        "trial": one.trial,
        "seeds": len(one.values),
        "metric": formatting.metric_title(report.metric),
        "mean": formatting.sure_number(one.mean, one.interval),
        "searched": formatting.number(one.searched),
        "luck": formatting.number(one.luck),
    }
    if one.luck is not None and one.luck > 0:
        return tr("Trial {trial} with {seeds} new seeds: mean {metric} {mean}. The search found {searched}, of which {luck} was luck.", **values)  # fmt: skip
    return tr("Trial {trial} with {seeds} new seeds: mean {metric} {mean}. The search found {searched}, and none of that was luck.", **values)  # fmt: skip
