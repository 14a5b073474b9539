"""What a search has found: its trials, the confirmed winners, what mattered, what had no effect, and what it cost."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations as pairs_of
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from backend.contract.messages import message
from backend.contract.metrics import spread
from backend.contract.rpc.predictions import PairTest
from backend.contract.rpc.search import BASELINE, Confirmation, Importance, Ineffective, SearchReport, TrialEntry
from backend.contract.run.comparison import format_settings, format_short
from backend.contract.run.event_summary import EventSummary, landmarks, last_end
from backend.contract.run.folder import RunFolder
from backend.search.plan import Plan, count_grid, read_plan
from backend.search.space import Observation, count_combinations, make_study, quiet_optuna
from backend.search.trials import KEPT, SEED, Trial, file_version, rank, rank_all, read_trials, rungs

if TYPE_CHECKING:
    from backend.inspect.run_comparison import ReadTable

FEWEST_SEEDS = 2
"""Runs of the best trial and of the spec's own settings, at least, before these are compared."""
FEWEST_STEPS = 5
"""Steps that two trials have in common, at least, before equal losses say that a setting had no effect."""
FEWEST_TRIALS = 8
"""Finished trials below which nothing is said about which setting mattered."""
DRAWS, TREES = 20, 32
"""With how many samples of the trials the importance is computed again. All of them take 2 CPU seconds for 24 trials, 7 for 100."""


def report(folder: RunFolder, *, importance: bool = False, read: "ReadTable | None" = None) -> SearchReport:
    """The report of a search. Raises InputError.

    With `importance`, which takes seconds, it says which setting mattered. With `read`, which opens a predictions file, it
    says whether the best trial is better than the spec's own settings.
    """
    plan = read_plan(folder)
    trials = read_trials(folder, plan.metric)
    own = [trial for trial in trials if not trial.confirms]
    ranked = rank(own, greater=plan.greater)
    state, words = state_of(folder)
    total, whole = _usual_total(own), _seconds_of_whole_trial(own)
    combinations, samples = count_grid(plan.parameters)
    possible = count_combinations(plan.parameters)
    verdict, test = _compare_with_baseline(ranked, trials, plan, read) if read is not None else ([], None)
    return SearchReport(
        search=str(folder.path), name=folder.name, state=state, message=words, metric=plan.metric,
        greater_is_better=plan.greater, sampler=plan.section.sampler, planned=plan.trials,
        trials=[_entry(trial, own, plan) for trial in rank_all(own, greater=plan.greater)],
        best=ranked[0].number if ranked else None,
        confirmed=confirmations(ranked, trials, plan),
        repeats=[_entry(trial, own, plan) for trial in trials if trial.confirms],
        verdict=verdict,
        verdict_test=test,
        no_effect=find_ineffective(own),
        importance=measure_importance(plan, own) if importance else [],
        steps=sum(trial.step for trial in own),
        full_steps=sum(trial.total or total for trial in own),
        seconds=sum(trial.seconds for trial in trials),
        confirmation_seconds=sum(trial.seconds for trial in trials if trial.confirms),
        full_seconds=None if whole is None else whole * len(own),
        combinations=combinations,
        samples=samples,
        grid_seconds=None if whole is None else whole * combinations,
        left=None if possible == math.inf else int(possible) - plan.trials,
        seconds_left=_guess_time_left(plan, trials) if state != "finished" else None,
    )  # fmt: skip


def _entry(trial: Trial, own: Sequence[Trial], plan: Plan) -> TrialEntry:
    passed = sum(trial.at(level) is not None for level in rungs(plan.section.halving))
    is_running = trial.state == "running"
    return TrialEntry(
        trial=trial.number, run=str(trial.folder.path), settings=trial.settings, metric=trial.value,
        state="queued" if is_running and trial.folder.waits() else trial.state,
        steps=trial.step, total_steps=trial.total, seconds=trial.seconds, rung=passed, message=trial.message,
        confirms=trial.confirms, reason=_reason(trial, own, plan) if is_running else "",
    )  # fmt: skip


def _reason(trial: Trial, own: Sequence[Trial], plan: Plan) -> str:
    """Why a trial is training now, as far as its search has recorded that; empty in a search of an older Burnish."""
    seed = trial.settings.get(SEED)
    if trial.confirms == BASELINE:
        return message("the spec's own settings with seed {seed}, to compare with", seed=seed)
    if trial.confirms:
        return message("confirms trial {trial} with seed {seed}", trial=trial.confirms, seed=seed)
    return _promotion(trial, own, plan) or _source(trial, own, plan)


def _promotion(trial: Trial, own: Sequence[Trial], plan: Plan) -> str:
    """At which rung a trial was promoted, and how it compares with the others that have come there; empty before the first."""
    levels = rungs(plan.section.halving)
    below = [level for level in levels if trial.pause is None or level < trial.pause]
    if not below or (value := trial.at(below[-1])) is None:
        return ""
    there = [found for other in own if (found := other.at(below[-1])) is not None]
    better = sum(found > value if plan.greater else found < value for found in there)
    return message(
        "promoted at rung {rung} of {rungs}: it is number {place} of the {count} trials that have come so far",
        rung=len(below),
        rungs=len(levels),
        place=better + 1,
        count=len(there),
    )


def _source(trial: Trial, own: Sequence[Trial], plan: Plan) -> str:
    """What its settings come from."""
    sampler = {"tpe": "TPE", "gp": message("the Gaussian process")}.get(plan.section.sampler, "")
    match trial.source:
        case "grid":
            number = [other.number for other in own].index(trial.number) + 1
            return message("combination {number} of the grid", number=number)
        case "results":
            return message("proposed by {sampler} from the results of {count} trials", sampler=sampler, count=trial.results)  # fmt: skip
        case "chance" if sampler:
            return message("drawn by chance: {sampler} did not have enough results yet ({count})", sampler=sampler, count=trial.results)  # fmt: skip
        case "chance":
            return message("drawn by chance")
        case "untried":
            return message("one of the combinations that were left")
        case _:
            return ""


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


def _seconds_of_whole_trial(trials: Iterable[Trial]) -> float | None:
    """About how long a trial takes that is trained through, by the seconds that the steps of these took."""
    measured = [trial.seconds / trial.step * trial.total for trial in trials if trial.step and trial.total]
    return statistics.mean(measured) if measured else None


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
        wanted = (plan.section.confirm.best + plan.section.confirm.baseline) * plan.section.confirm.seeds
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
    low, high = again.interval or (0.0, 0.0)
    luck = (searched - high, searched - low) if greater else (low - searched, high - searched)
    return Confirmation(
        trial=trial.number, searched=searched, values=values, mean=again.mean, interval=again.interval,
        luck=searched - again.mean if greater else again.mean - searched,
        luck_interval=None if again.interval is None else luck,
    )  # fmt: skip


def _compare_with_baseline(
    ranked: Sequence[Trial], trials: Iterable[Trial], plan: Plan, read: "ReadTable"
) -> tuple[list[str], PairTest | None]:
    """Whether the best trial is better than the spec's own settings, over the same new seeds and rows, in words."""
    runs: dict[int, list[RunFolder]] = {}
    for trial in trials:
        if trial.confirms and trial.state == "finished":
            runs.setdefault(trial.confirms, []).append(trial.folder)
    best = ranked[0].number if ranked else 0
    if min(len(runs.get(best, ())), len(runs.get(BASELINE, ()))) < FEWEST_SEEDS:
        return [], None
    from backend.inspect import run_comparison  # loads scipy

    names = [message("your own settings"), message("trial {number}", number=best)]
    found = run_comparison.compare([runs[BASELINE], runs[best]], names, read, metric=plan.metric)
    test = next((one for one in found.tests if one.metric == plan.metric), None)
    return [found.refusal] if found.refusal else found.sentences, test


# What mattered


def find_ineffective(trials: Iterable[Trial]) -> list[Ineffective]:
    """Settings in which two trials differ, although their losses are equal to the bit; the fewest settings first.

    Only those can be equal that begin alike, so few pairs are compared. A trial that is training now is left out.
    """
    alike: dict[bytes, list[tuple[Trial, np.ndarray]]] = {}
    for trial in trials:
        if trial.state != "running" and len(losses := read_losses(trial.folder)) >= FEWEST_STEPS:
            alike.setdefault(losses[:FEWEST_STEPS].tobytes(), []).append((trial, losses))
    found: dict[frozenset[str], Ineffective] = {}
    for curves in alike.values():
        for (one, first), (other, second) in pairs_of(curves, 2):
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
    return _read_losses(folder.events, file_version(folder.events))


@lru_cache(maxsize=KEPT)
def _read_losses(path: Path, version: tuple[int, int]) -> np.ndarray:
    reader, losses = EventSummary(path), dict[int, float]()
    while not reader.is_complete:
        reader.read()
        losses |= {step: loss for step, loss, _ in reader.losses()}
    length = next((step - 1 for step in range(1, len(losses) + 2) if step not in losses), 0)
    return np.array([losses[step] for step in range(1, length + 1)])


def measure_importance(plan: Plan, trials: Iterable[Trial]) -> list[Importance]:
    """How much of the metric's variance each setting explains, most first; empty with too few trials or without Optuna.

    With halving only good trials are trained through, so all are compared at the first rung.
    """
    levels = rungs(plan.section.halving)
    values = [
        (trial, trial.at(levels[0]) if levels else trial.value if trial.state == "finished" else None)
        for trial in trials
    ]
    observations = [Observation(trial.settings, "finished", value) for trial, value in values if value is not None]
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
        interval = (float(drawn.min()), float(drawn.max()))
        found.append(Importance(setting=one.key, share=float(drawn[0]), interval=interval))
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
    if cost := _cost_line(found):
        lines.append(cost)
    for one in (*found.trials, *found.repeats):
        if one.state == "running":
            why = f" ({one.reason})" if one.reason else ""
            lines.append(f"trial {one.trial} is training{why}: {format_settings(one.settings)}")
    if found.seconds_left is not None and found.state == "running":
        lines.append(f"about {_duration(found.seconds_left)} left")
    lines += [_confirmation_line(one, found.metric) for one in found.confirmed]
    if len(found.confirmed) > 1:
        lines.append(_winner_line(found))
    lines += found.verdict
    for one in found.importance:
        low, high = one.interval
        lines.append(f"{one.setting} explains {100 * one.share:.0f} % of the differences ({100 * low:.0f} to {100 * high:.0f} % in {DRAWS} redraws of the trials)")  # fmt: skip
    for one in found.no_effect:
        names = " and ".join(one.settings)
        values = "; ".join(" and ".join(map(format_short, pair)) for pair in one.settings.values())
        lines.append(f"{names} had no effect: trials {one.trials[0]} and {one.trials[1]} ({values}) have identical losses in all {one.steps} steps")  # fmt: skip
    return lines


def _cost_line(found: SearchReport) -> str:
    """What the trials took, beside training them all through and a full grid."""
    if found.full_seconds is None or found.grid_seconds is None:
        return ""
    values = f" ({found.samples} values of each continuous range)" if found.samples else ""
    again = f", and the runs with new seeds {_duration(found.confirmation_seconds)}" if found.confirmation_seconds else ""  # fmt: skip
    return (
        f"the trials took {_duration(found.seconds - found.confirmation_seconds)}{again}; training all of these trials through would take about "
        f"{_duration(found.full_seconds)}, and a full grid of {found.combinations:,} trials{values} about {_duration(found.grid_seconds)}"
    )


def _confirmation_line(one: Confirmation, metric: str) -> str:
    sure = "" if one.interval is None else f" ({one.interval[0]:.4g} to {one.interval[1]:.4g})"
    seeds, searched = len(one.values), f"the search found {one.searched:.4g}"
    return f"trial {one.trial}, confirmed with {seeds} new seeds: mean {metric} {one.mean:.4g}{sure}; {searched}, {_luck_words(one)}"  # fmt: skip


def _luck_words(one: Confirmation) -> str:
    """As much as the interval allows: a few seeds rarely tell how much of a result was luck."""
    if one.luck is None or one.luck_interval is None:
        return "of which one new seed cannot say how much was luck"
    low, high = one.luck_interval
    if low > 0:
        return f"of which {one.luck:.2g} was luck ({low:.2g} to {high:.2g})"
    if high < 0:
        return "which was bad luck, if anything"
    return f"of which at most {high:.2g} was luck; so few seeds cannot say whether any of it was"


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
