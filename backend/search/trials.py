"""The trials of a search as their run folders tell them, and which of them trains next."""

import math
import shutil
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from backend.contract.rpc.search import BASELINE
from backend.contract.run import events
from backend.contract.run.event_summary import active_seconds, landmarks, last_end, last_step
from backend.contract.run.folder import RunFolder
from backend.contract.spec.search import HalvingSection, SearchSection

UNFINISHED = ("proposed", "interrupted", "lost")
"""States of a trial that its search continues by itself."""
SEED = "training.seed"
KEPT = 1000
"""Trials whose events stay in memory: a report of a search is made every few seconds, and most trials do not change."""


@dataclass(frozen=True)
class Trial:
    """One trial at one moment."""

    number: int
    folder: RunFolder
    settings: dict[str, Any]
    confirms: int = 0
    """See `TrialProposed.confirms`."""
    source: str = ""
    """See `TrialProposed.source`."""
    results: int = 0
    """See `TrialProposed.results`."""
    state: str = "proposed"
    """proposed, running, paused, finished, stopped, failed, interrupted or lost."""
    step: int = 0
    total: int = 0
    """Its optimizer steps if it is trained through; 0 as long as that is unknown."""
    evaluations: tuple[tuple[int, float], ...] = ()
    """The metric that is searched by, by step."""
    value: float | None = None
    """That of its saved model, else the last one measured."""
    pause: float | None = None
    """The fraction of its steps after which it pauses."""
    seconds: float = 0.0
    message: str = ""
    metrics: dict[str, float | None] = field(default_factory=dict)

    def at(self, fraction: float) -> float | None:
        """Its value at the first evaluation after this fraction of its steps; None if it has not come so far."""
        after = math.ceil(fraction * self.total)
        found = next((value for step, value in self.evaluations if step >= after), None) if self.total else None
        return self.value if found is None and self.state in ("finished", "stopped") else found

    @property
    def is_at_rung(self) -> bool:
        """Whether it waits where it is compared with others."""
        return self.state == "paused" and self.pause is not None and self.at(self.pause) is not None


# Reading


def read_trials(search: RunFolder, metric: str) -> list[Trial]:
    """The trials of a search, in the order in which they were proposed."""
    found = landmarks(search.events)
    refused = {
        event.trial: event for event in found if isinstance(event, events.TrialEnded) and event.state == "failed"
    }
    return [
        read_trial(search, event, metric, refused.get(event.trial))
        for event in found
        if isinstance(event, events.TrialProposed) and is_name(event.run)
    ]


def is_name(run: str) -> bool:
    """Whether a trial's folder, as a possibly untrusted event names it, is one in the search's folder."""
    parent, _, name = run.partition("/")
    return parent == "trials" and name not in ("", ".", "..") and not set(name) & set("/\\:\0")


def read_trial(
    search: RunFolder, proposed: events.TrialProposed, metric: str, refused: events.TrialEnded | None = None
) -> Trial:
    """One trial. `refused` is the event that ended it, if there is one: a trial without a run never trained."""
    folder = RunFolder(search.path / proposed.run)
    values: dict[str, Any] = {
        "number": proposed.trial, "folder": folder, "settings": proposed.settings, "confirms": proposed.confirms,
        "source": proposed.source, "results": proposed.results,
    }  # fmt: skip
    if not folder.exists():
        if refused is not None:
            values |= {"state": "failed", "message": refused.message}
        return Trial(**values)
    found = _read_landmarks(folder.events, file_version(folder.events))
    evaluations = tuple(_evaluations(found, metric))
    end = last_end(found)
    step, total = (
        last_step(found),
        next((event.total_steps for event in found if isinstance(event, events.PlanMade)), 0),
    )
    value = end.metrics.get(metric) if end is not None and end.state == "finished" else None
    if value is None or not math.isfinite(value):
        value = evaluations[-1][1] if evaluations else None
    state, message = _state(folder, end)
    return Trial(
        **values, state=state, message=message, step=step, total=total, evaluations=evaluations, value=value,
        pause=folder.pause_fraction(), seconds=active_seconds(found), metrics=dict(end.metrics) if end else {},
    )  # fmt: skip


@lru_cache(maxsize=KEPT)
def _read_landmarks(path: Path, version: tuple[int, int]) -> list[events.AnyEvent]:
    return landmarks(path)


def file_version(path: Path) -> tuple[int, int]:
    """A value that changes when something is appended to a file."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_size, status.st_mtime_ns)


def _state(folder: RunFolder, end: events.RunFinished | None) -> tuple[str, str]:
    if folder.is_carried():
        return "running", ""
    if folder.process_record() is None:
        return "proposed", ""
    if end is not None:
        return end.state, end.message
    record = folder.exit_record()
    if record is None:
        return "lost", ""
    if record.state:  # it had no engine yet
        return ("proposed" if record.state == "paused" else record.state), record.message
    return ("failed", record.message) if record.has_failed else ("lost", record.message)


def _evaluations(found: Iterable[events.AnyEvent], metric: str) -> list[tuple[int, float]]:
    kept: dict[int, float] = {}
    for event in found:
        if isinstance(event, events.RunResumed):
            kept = {step: value for step, value in kept.items() if step <= event.from_step}
        elif isinstance(event, events.EvaluationFinished) and event.split == "validation":
            value = event.metrics.get(metric)
            if value is not None and math.isfinite(value):
                kept[event.step] = value
    return sorted(kept.items())


def remove_weights(folder: RunFolder) -> None:
    """Remove a run's checkpoints and the weights of its model; what is small, such as its predictions, stays."""
    for path in (folder.checkpoints, folder.model):
        if path.is_symlink() or not path.is_dir():
            continue
        if path == folder.checkpoints:
            shutil.rmtree(path, ignore_errors=True)
            continue
        for file in path.iterdir():
            if file.suffix == ".safetensors":
                file.unlink(missing_ok=True)


# Ranking


def rank(trials: Iterable[Trial], *, greater: bool) -> list[Trial]:
    """The trials that were trained through, best first; equal ones in the order of their numbers."""
    through = [trial for trial in trials if trial.state in ("finished", "stopped") and trial.value is not None]
    return sorted(through, key=lambda trial: _key(trial.value, greater))


def rank_all(trials: Iterable[Trial], *, greater: bool) -> list[Trial]:
    """All trials: those that were trained through, then the others, the further and the better first."""
    trials = list(trials)
    first = rank(trials, greater=greater)
    ended = {trial.number for trial in first}
    others = [trial for trial in trials if trial.number not in ended]
    return first + sorted(others, key=lambda one: (-one.step / max(1, one.total), _key(one.value, greater)))


def _key(value: float | None, greater: bool) -> float:
    return math.inf if value is None else -value if greater else value


# What trains next


@dataclass(frozen=True)
class Action:
    """What a search does next: propose a trial, or train one until it has done a fraction of its steps."""

    trial: int
    """0 to propose one."""
    pause: float | None = None
    confirms: int = 0
    seed: int = 0


def rungs(halving: HalvingSection | None) -> tuple[float, ...]:
    """The fractions of a trial's steps at which trials are compared, ascending."""
    if halving is None:
        return ()
    return tuple(float(halving.factor) ** -number for number in range(halving.rungs, 0, -1))


def next_action(
    section: SearchSection, trials: Sequence[Trial], left: int, *, greater: bool, seed: int,
    busy: Collection[int] = (), held: Collection[int] = (),
) -> Action | None:  # fmt: skip
    """The most useful action that can start now, as a function of the trials; `left` is how many may still be proposed.

    Rungs work as in asynchronous successive halving: a trial is promoted as soon as it is among the best of those that
    have come as far, or else a new one begins. Source: L. Li et al., A System for Massively Parallel Hyperparameter
    Tuning, MLSys 2020, algorithm 2. There a trial that waits is not resumed on the same worker; here it is.

    `busy` trials train, and `held` ones are left alone. `seed` is that of trials whose settings have none.
    """
    levels = rungs(section.halving)
    idle = [trial for trial in trials if trial.number not in busy and trial.number not in held]
    for trial in idle:
        if trial.state in UNFINISHED or (trial.state == "paused" and not trial.is_at_rung):
            return Action(
                trial.number, trial.pause if trial.state != "proposed" or trial.pause else _first(trial, levels)
            )
    own = [trial for trial in trials if not trial.confirms]
    if (promoted := _find_promotable(own, levels, section.halving, held, greater=greater)) is not None:
        return promoted
    if left > 0:
        return Action(0, levels[0] if levels else None)
    if any(trial.number in busy for trial in own):
        return None
    if not rank(own, greater=greater) and (waiting := [trial for trial in idle if trial.is_at_rung]):
        best = rank_all(waiting, greater=greater)[0]  # fewer trials than a rung compares: somebody must win
        return Action(best.number, _above(best, levels))
    return _next_confirmation(section, own, trials, seed, greater=greater)


def _first(trial: Trial, levels: tuple[float, ...]) -> float | None:
    return levels[0] if levels and not trial.confirms else None


def _above(trial: Trial, levels: tuple[float, ...]) -> float | None:
    return next((level for level in levels if trial.pause is not None and level > trial.pause), None)


def _find_promotable(
    trials: Sequence[Trial], levels: tuple[float, ...], halving: HalvingSection | None, held: Collection[int], *, greater: bool
) -> Action | None:  # fmt: skip
    for level in reversed(levels):
        assert halving is not None
        come = [(_key(value, greater), trial) for trial in trials if (value := trial.at(level)) is not None]
        come.sort(key=lambda pair: (pair[0], pair[1].number))
        for _, trial in come[: len(come) // halving.factor]:
            if trial.is_at_rung and trial.pause == level and trial.number not in held:
                return Action(trial.number, _above(trial, levels))
    return None


def _next_confirmation(
    section: SearchSection, own: Sequence[Trial], trials: Sequence[Trial], seed: int, *, greater: bool
) -> Action | None:
    if section.confirm is None:
        return None
    there = {(trial.confirms, trial.settings.get(SEED)) for trial in trials if trial.confirms}
    best = rank(own, greater=greater)[: section.confirm.best]
    wanted = [(trial.number, int(trial.settings.get(SEED, seed))) for trial in best]
    if best and section.confirm.baseline:
        wanted.append((BASELINE, wanted[0][1]))  # with the winner's seeds
    for number, before in wanted:
        for new in range(before + 1, before + 1 + section.confirm.seeds):
            if (number, new) not in there:
                return Action(0, None, number, new)
    return None
