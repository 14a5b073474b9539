"""What a search has found: its trials, the confirmed winners, what mattered, what had no effect, and what it cost."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from backend.contract.metrics import spread
from backend.contract.rpc.search import Confirmation, Importance, Ineffective, SearchReport, TrialEntry
from backend.contract.run.comparison import format_settings, format_short
from backend.contract.run.event_summary import EventSummary, landmarks, last_end
from backend.contract.run.folder import RunFolder
from backend.search.plan import Plan, read_plan
from backend.search.space import Observation, make_study, quiet_optuna
from backend.search.trials import SEED, Trial, rank, rank_all, read_trials, rungs

FEWEST_STEPS = 5
"""Steps that two trials have in common, at least, before equal losses say that a setting had no effect."""
FEWEST_TRIALS = 8
"""Finished trials below which nothing is said about which setting mattered."""
DRAWS, TREES = 20, 32


def report(folder: RunFolder, *, importance: bool = False) -> SearchReport:
    """The report of a search. With `importance`, which takes seconds, also which setting mattered. Raises InputError."""
    plan = read_plan(folder)
    trials = read_trials(folder, plan.metric)
    own = [trial for trial in trials if not trial.confirms]
    ranked = rank(own, greater=plan.greater)
    state, words = state_of(folder)
    total = _usual_total(own)
    return SearchReport(
        search=str(folder.path), name=folder.name, state=state, message=words, metric=plan.metric,
        greater_is_better=plan.greater, sampler=plan.section.sampler, planned=plan.trials,
        trials=[_entry(trial, plan) for trial in rank_all(own, greater=plan.greater)],
        best=ranked[0].number if ranked else None,
        confirmed=confirmations(ranked, trials, plan),
        no_effect=find_ineffective(own),
        importance=measure_importance(plan, own) if importance else [],
        steps=sum(trial.step for trial in own),
        full_steps=sum(trial.total or total for trial in own),
        seconds=sum(trial.seconds for trial in trials),
        seconds_left=_guess_time_left(plan, trials) if state != "finished" else None,
    )  # fmt: skip


def _entry(trial: Trial, plan: Plan) -> TrialEntry:
    passed = sum(trial.at(level) is not None for level in rungs(plan.section.halving))
    return TrialEntry(
        trial=trial.number, run=str(trial.folder.path), state=trial.state, settings=trial.settings, metric=trial.value,
        steps=trial.step, total_steps=trial.total, seconds=trial.seconds, rung=passed, message=trial.message,
    )  # fmt: skip


def state_of(folder: RunFolder) -> tuple[str, str]:
    """How a search is, and the sentence that it ended with."""
    if folder.is_carried():
        return ("queued" if folder.waits() else "running"), ""
    if (end := last_end(landmarks(folder.events))) is not None:
        return end.state, end.message
    if (record := folder.exit_record()) is not None and record.state:
        return record.state, record.message
    return "lost", ""


def _usual_total(trials: Iterable[Trial]) -> int:
    totals = [trial.total for trial in trials if trial.total]
    return round(statistics.mean(totals)) if totals else 0


def _guess_time_left(plan: Plan, trials: Sequence[Trial]) -> float | None:
    """Trials that are left times what one has taken so far, and confirmations as long as what was trained through."""
    own = [trial for trial in trials if not trial.confirms]
    over = [trial for trial in own if trial.state in ("finished", "paused", "stopped", "failed")]
    if not over:
        return None
    left = (plan.trials - len(over)) * statistics.mean(trial.seconds for trial in over)
    through = [trial.seconds for trial in trials if trial.state == "finished"]
    if plan.section.confirm is not None and through:
        done = sum(trial.state == "finished" for trial in trials if trial.confirms)
        wanted = plan.section.confirm.best * plan.section.confirm.seeds
        left += max(0, wanted - done) * statistics.mean(through)
    return left


# Is it skill?


def confirmations(ranked: Sequence[Trial], trials: Iterable[Trial], plan: Plan) -> list[Confirmation]:
    """The best trials that were trained again, best first."""
    again: dict[int, dict[str, float]] = {}
    for trial in trials:
        if trial.confirms and trial.state == "finished" and trial.value is not None:
            again.setdefault(trial.confirms, {})[str(trial.settings[SEED])] = trial.value
    return [_confirm(trial, again[trial.number], plan.greater) for trial in ranked if trial.number in again]


def _confirm(trial: Trial, values: dict[str, float], greater: bool) -> Confirmation:
    found = list(values.values())
    again, searched = spread(found), trial.value
    assert searched is not None
    return Confirmation(
        trial=trial.number, searched=searched, values=values, mean=again.mean, interval=again.interval,
        luck=searched - again.mean if greater else again.mean - searched,
    )  # fmt: skip


# What mattered


def find_ineffective(trials: Iterable[Trial]) -> list[Ineffective]:
    """Settings in which two trials differ, although their losses are equal to the bit; the fewest settings first."""
    curves = [(trial, losses) for trial in trials if len(losses := read_losses(trial.folder)) >= FEWEST_STEPS]
    found: dict[frozenset[str], Ineffective] = {}
    for (one, first), (other, second) in combinations(curves, 2):
        shared = min(len(first), len(second))
        if not np.array_equal(first[:shared], second[:shared]):
            continue
        keys = [key for key, value in one.settings.items() if value != other.settings.get(key)]
        entry = Ineffective(
            settings={key: [one.settings[key], other.settings.get(key)] for key in keys},
            trials=[one.number, other.number],
            steps=shared,
        )
        if keys and (frozenset(keys) not in found or found[frozenset(keys)].steps < shared):
            found[frozenset(keys)] = entry
    return [found[keys] for keys in sorted(found, key=len) if not any(fewer < keys for fewer in found)]


def read_losses(folder: RunFolder) -> np.ndarray:
    """A run's losses, (steps,), up to the first step that has none."""
    reader, losses = EventSummary(folder.events), dict[int, float]()
    while not reader.is_complete:
        reader.read()
        losses |= {step: loss for step, loss, _ in reader.losses()}
    length = next((step - 1 for step in range(1, len(losses) + 2) if step not in losses), 0)
    return np.array([losses[step] for step in range(1, length + 1)])


def measure_importance(plan: Plan, trials: Iterable[Trial]) -> list[Importance]:
    """How much of the metric's variance each setting explains, most first; empty with too few trials or without Optuna."""
    observations = [
        Observation(trial.settings, "finished", trial.value)
        for trial in trials
        if trial.state == "finished" and trial.value is not None
    ]
    if len(observations) < FEWEST_TRIALS or len(plan.parameters) < 2:
        return []
    chance = np.random.default_rng(plan.section.seed)
    draws = [
        observations,
        *(
            [observations[place] for place in chance.integers(len(observations), size=len(observations))]
            for _ in range(DRAWS)
        ),
    ]
    try:
        with quiet_optuna() as optuna:
            evaluator = optuna.importance.FanovaImportanceEvaluator(n_trees=TREES, seed=plan.section.seed)
            shares: list[Mapping[str, float]] = []
            for drawn in draws:
                if len({one.value for one in drawn}) > 1:
                    study = make_study(plan.parameters, drawn, greater=plan.greater)
                    shares.append(optuna.importance.get_param_importances(study, evaluator=evaluator))
    except ImportError:
        return []
    if not shares:
        return []
    found = []
    for one in plan.parameters:
        drawn = np.array([share.get(one.key, 0.0) for share in shares])
        low, high = np.percentile(drawn[1:] if len(drawn) > 1 else drawn, [2.5, 97.5])
        found.append(Importance(setting=one.key, share=float(drawn[0]), interval=(float(low), float(high))))
    return sorted(found, key=lambda one: -one.share)


# In words


def format_report(found: SearchReport) -> str:
    """The report as text: a table of the trials, best first, and what else there is to say."""
    rows = [["trial", found.metric, "state", "steps", *(key for key in _keys(found))]]
    for one in found.trials:
        steps = f"{one.steps}/{one.total_steps}" if one.total_steps else str(one.steps)
        value = "–" if one.metric is None else f"{one.metric:.4g}"
        rows.append(
            [str(one.trial), value, one.state, steps, *(format_short(one.settings.get(key)) for key in _keys(found))]
        )
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, "", *sentences(found)])


def _keys(found: SearchReport) -> list[str]:
    return list(dict.fromkeys(key for one in found.trials for key in one.settings))


def sentences(found: SearchReport) -> list[str]:
    """What the numbers say, one sentence a line."""
    lines = [
        f"{found.state}: {len(found.trials)} of {found.planned} trials{f': {found.message}' if found.message else ''}"
    ]
    if found.full_steps:
        share = f"{100 * found.steps / found.full_steps:.0f} %"
        lines.append(f"{found.steps:,} steps, {share} of the {found.full_steps:,} that training all of these trials through would take")  # fmt: skip
    for one in found.trials:
        if one.state == "running":
            lines.append(f"trial {one.trial} is training: {format_settings(one.settings)}")
    if found.seconds_left is not None and found.state == "running":
        lines.append(f"about {_duration(found.seconds_left)} left")
    lines += [_confirmation_line(one, found.metric) for one in found.confirmed]
    if len(found.confirmed) > 1:
        lines.append(_winner_line(found))
    for one in found.importance:
        low, high = one.interval
        lines.append(f"{one.setting} explains {100 * one.share:.0f} % of the differences ({100 * low:.0f} to {100 * high:.0f} %)")  # fmt: skip
    for one in found.no_effect:
        names = " and ".join(one.settings)
        values = "; ".join(" and ".join(map(format_short, pair)) for pair in one.settings.values())
        lines.append(f"{names} had no effect: trials {one.trials[0]} and {one.trials[1]} ({values}) have identical losses in all {one.steps} steps")  # fmt: skip
    return lines


def _confirmation_line(one: Confirmation, metric: str) -> str:
    sure = "" if one.interval is None else f" ({one.interval[0]:.4g} to {one.interval[1]:.4g})"
    luck = one.luck or 0.0
    words = f"{luck:.4g} of its result was luck" if luck > 0 else "none of its result was luck"
    seeds = len(one.values)
    return f"trial {one.trial}, confirmed with {seeds} new seeds: mean {metric} {one.mean:.4g}{sure}; the search found {one.searched:.4g}, so {words}"  # fmt: skip


def _winner_line(found: SearchReport) -> str:
    first, second = found.confirmed[:2]
    assert first.mean is not None
    assert second.mean is not None
    sign = 1 if found.greater_is_better else -1
    lead, kept = sign * (first.searched - second.searched), sign * (first.mean - second.mean)
    return f"trial {first.trial} led trial {second.trial} by {lead:.4g} in the search, and by {kept:.4g} with the new seeds"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
