"""A search for the window: its trials as rows and as lines over parallel axes, and its findings in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.core import formatting
from app.core.backend_messages import translate_message
from app.core.i18n import figure, group_digits, tr, trn
from app.core.runs.run_comparison import setting_title
from app.core.runs.run_status import TITLES
from backend.contract.rpc.search import BASELINE, Confirmation, Importance, SearchReport, TrialEntry
from backend.contract.run.comparison import format_short

FEW = 4
"""Different values that are all written beside an axis."""
SEED = "training.seed"
TINY = 0.001
"""Numbers below it are written with a power of ten."""
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
    axes = [_axis(setting_title(key), [trial.settings.get(key) for trial in report.trials]) for key in keys_of(report)]
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
    ticks = tuple((place(value), _value_text(value)) for value in marked)
    return Axis(title, tuple(None if value is None else place(value) for value in values), ticks)


def header_of(report: SearchReport) -> list[str]:
    """The columns of the table of trials."""
    fixed = (tr("Trial"), formatting.metric_title(report.metric), tr("State"), tr("Steps"))
    return [*fixed, *map(setting_title, keys_of(report))]


def entries_of(report: SearchReport) -> list[TrialEntry]:
    """The trials, best first, then their repeats with new seeds: a row of the table each."""
    return [*report.trials, *report.repeats]


def rows_of(report: SearchReport) -> list[list[str]]:
    """The table of trials, best first; the best is marked."""
    return [_row(report, trial) for trial in entries_of(report)]


def _row(report: SearchReport, trial: TrialEntry) -> list[str]:
    steps = group_digits(trial.steps)
    if trial.total_steps:
        steps = tr("{done} of {total}", done=steps, total=group_digits(trial.total_steps))
    mark = " ★" if trial.trial == report.best else ""
    value = "–" if trial.metric is None else formatting.number(trial.metric)
    settings = [_value_text(trial.settings.get(key)) for key in keys_of(report)]
    return [f"{name_of(trial)}{mark}", value, TITLES.get(trial.state, trial.state), steps, *settings]


def name_of(trial: TrialEntry) -> str:
    """`7`, or of its repeat with another seed `7 · seed 43`."""
    if not trial.confirms:
        return str(trial.trial)
    seed = trial.settings.get(SEED)
    if trial.confirms == BASELINE:
        return tr("Own · seed {seed}", seed=seed)
    return tr("{trial} · seed {seed}", trial=trial.confirms, seed=seed)


def title_of_trial(trial: TrialEntry) -> str:
    """`Trial 7`, or `Own settings · seed 43`."""
    if trial.confirms == BASELINE:
        return tr("Own settings · seed {seed}", seed=trial.settings.get(SEED))
    return tr("Trial {number}", number=name_of(trial))


def _value_text(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and value != 0 and abs(value) < TINY:
        return formatting.scientific(value)
    return "" if value is None else figure(value, ".3g") if is_number else format_short(value)


def settings_words(trial: TrialEntry) -> str:
    """`Learning rate 3e-4, Batch size 16`."""
    return ", ".join(f"{setting_title(key)} {_value_text(value)}" for key, value in trial.settings.items())


def describe_best(report: SearchReport) -> str:
    """`Trial 7: Accuracy 0.8219 with Learning rate 4e-4, Batch size 32`; empty before a trial has finished."""
    best = next((one for one in report.trials if one.trial == report.best), None)
    if best is None:
        return ""
    return tr(
        "Trial {trial}: {metric} {value} with {settings}",
        trial=best.trial, metric=formatting.metric_title(report.metric), value=formatting.number(best.metric), settings=settings_words(best),
    )  # fmt: skip


def training_now(report: SearchReport) -> list[tuple[str, str]]:
    """What trains now and why, and with which settings at which step."""
    return [
        (
            _reason_words(one),
            tr("{settings} · step {steps}", settings=settings_words(one), steps=_row(report, one)[3]),
        )
        for one in entries_of(report)
        if one.state == "running"
    ]


def _reason_words(trial: TrialEntry) -> str:
    reason = translate_message(trial.reason) or tr("training")
    if trial.confirms:
        return formatting.sentence(reason)
    return tr("Trial {trial}: {reason}", trial=name_of(trial), reason=reason)


# The numbers above


def tile_of_trials(report: SearchReport) -> tuple[str, str]:
    """How many trials have come to an end or wait at a rung, and how many are planned."""
    over = [one for one in report.trials if one.state not in ("running", "queued", "proposed")]
    waiting = sum(one.state == "paused" for one in over)
    return str(len(over)), tr("of {planned}, {waiting} paused early", planned=report.planned, waiting=waiting) if waiting else tr("of {planned}", planned=report.planned)  # fmt: skip


def tile_of_steps(report: SearchReport) -> tuple[str, str]:
    """The steps of all trials, and those of training each of them through."""
    if not report.full_steps:
        return group_digits(report.steps), " "
    share = round(100 * report.steps / report.full_steps)
    return group_digits(report.steps), tr("instead of {full} ({share} %)", share=share, full=group_digits(report.full_steps)) if share < 100 else tr("all trials trained through")  # fmt: skip


def tile_of_time(report: SearchReport) -> tuple[str, str, str]:
    """Time left; of a search that is over the time it took, beside a full grid."""
    spent = formatting.duration(report.seconds)
    if report.state in ("running", "queued"):
        left = formatting.duration(report.seconds_left) if report.seconds_left is not None else "–"
        return tr("Time left"), left, tr("{spent} trained", spent=spent)
    grid = formatting.duration(report.grid_seconds) if report.grid_seconds else ""
    return tr("Training time"), spent, tr("full grid ≈ {grid}", grid=grid) if grid else tr("of all trials")


# Findings


def sentences(report: SearchReport) -> list[str]:
    """What the numbers say, most important first."""
    found = [translate_message(report.message)] if report.message else []
    found += [formatting.with_full_stop(formatting.sentence(line)) for line in report.verdict]
    found += [_confirmation(one, report) for one in report.confirmed]
    for one in report.no_effect:
        names = ", ".join(map(setting_title, one.settings))
        first, second = one.trials
        found.append(tr("{names} had no effect: trials {first} and {second} have identical losses.", names=names, first=first, second=second))  # fmt: skip
    if report.state not in ("running", "queued") and (words := _cost(report)):
        found.append(words)
    return found


def _cost(report: SearchReport) -> str:
    """What the search took, beside training all trials through and a full grid."""
    if report.full_seconds is None or report.grid_seconds is None:
        return ""
    count = trn("{count} trial", "{count} trials", report.combinations)
    grid = (
        tr("{count}, {values} values of each continuous range", count=count, values=report.samples)
        if report.samples
        else count
    )
    return tr(
        "The trials took {spent} of training, and the runs with new seeds {again}. Training all of these trials through would take about {full}, a full grid ({grid}) about {whole}.",
        spent=formatting.duration(report.seconds - report.confirmation_seconds), again=formatting.duration(report.confirmation_seconds),
        full=formatting.duration(report.full_seconds), grid=grid, whole=formatting.duration(report.grid_seconds),
    ) if report.confirmation_seconds else tr(
        "The trials took {spent} of training. Training all of them through would take about {full}, a full grid ({grid}) about {whole}.",
        spent=formatting.duration(report.seconds), full=formatting.duration(report.full_seconds), grid=grid,
        whole=formatting.duration(report.grid_seconds),
    )  # fmt: skip


def importance_words(one: Importance) -> str:
    """`80 % (50 to 95 %)`."""
    low, high = one.interval
    return tr("{share} % ({low} to {high} %)", share=round(100 * one.share), low=round(100 * low), high=round(100 * high))  # fmt: skip


def _confirmation(one: Confirmation, report: SearchReport) -> str:
    return tr(
        "Trial {trial} with {seeds} new seeds: mean {metric} {mean}. The search found {searched}; {luck}",
        trial=one.trial, seeds=len(one.values), metric=formatting.metric_title(report.metric),
        mean=formatting.sure_number(one.mean, one.interval), searched=formatting.number(one.searched), luck=_luck_words(one),
    )  # fmt: skip


def _luck_words(one: Confirmation) -> str:
    """As much as the interval allows: a few seeds rarely tell how much of a result was luck."""
    if one.luck is None or one.luck_interval is None:
        return tr("one new seed can't say how much of that was luck.")
    low, high = one.luck_interval
    if low > 0:
        ends = {"low": formatting.number(low, 2), "high": formatting.number(high, 2)}
        return tr("{luck} of that was luck ({low} to {high}).", luck=formatting.number(one.luck, 2), **ends)
    if high < 0:
        return tr("if anything, that was bad luck.")
    return tr("at most {high} of that was luck, and perhaps none: more seeds would tell.", high=formatting.number(high, 2))  # fmt: skip
