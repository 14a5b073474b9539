"""A search as it is written: reads and checks its section, and keeps both in the search's folder."""

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from backend import registry
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.rpc.plan import RunPlan
from backend.contract.rpc.search import SearchPlan
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import MAX_SPEC, read_unlinked, write_whole
from backend.contract.spec import RunSpec, validate
from backend.contract.spec.search import SEARCH, SearchSection
from backend.preflight.metrics import MetricDirections
from backend.preflight.resolve import resolve
from backend.search.space import Parameter, budget, check_sampler, read_space
from backend.search.trials import rungs

SMALL = "Predictions, log"
"""The part of a run's disk plan that stays when its weights are removed."""
SAMPLES = 5
"""Values of a range of real numbers in the grid that a search is compared with."""
SAME_COST = frozenset({
    *(f"training.{name}" for name in ("learning_rate", "layer_decay", "schedule", "warmup", "schedule_end", "schedule_power", "weight_decay")),
    *(f"training.{name}" for name in ("adam_beta1", "adam_beta2", "adam_epsilon", "max_gradient_norm", "label_smoothing", "seed")),
    *("model.dropout", "adapter.alpha", "adapter.dropout", "adapter.loraplus_ratio"),
})  # fmt: skip
"""Settings that change neither the steps of a trial nor the time that they take."""
MOST_SAMPLES = 8
"""Trials whose cost is estimated, besides that from the middle of the space; each takes a fraction of a second."""


@dataclass(frozen=True)
class Plan:
    """A search as it is written: its section, the space, the spec that all trials share, and the metric's direction."""

    section: SearchSection
    parameters: tuple[Parameter, ...]
    values: dict[str, Any]
    base: Path
    """Relative paths of the spec are taken from here."""
    metric: str
    greater: bool
    seed: int
    trials: int
    """How many trials may be proposed."""

    def first(self) -> RunSpec:
        """The spec of a trial with the first value of every parameter. Raises InputError."""
        return self.spec({one.key: one.probes()[0] for one in self.parameters})

    def middle(self) -> RunSpec:
        """The spec of a trial with a value from the middle of every parameter. Raises InputError."""
        return self.spec(self._middle())

    def _middle(self) -> dict[str, Any]:
        return {one.key: one.middle() for one in self.parameters}

    def others(self) -> Iterator[RunSpec]:
        """Specs of trials that cost more or less than the one from the middle: together with that, they stand for the whole space.

        They have every listed value of the settings that change what a trial costs, and low, middle and high ones of ranges; if
        these were too many, some by chance. Those whose settings do not go together are left out.
        """
        middle = self._middle()
        costly = [one for one in self.parameters if one.key not in SAME_COST]
        values = [one.choices or tuple(dict.fromkeys(map(one.part, (1 / 6, 1 / 2, 5 / 6)))) for one in costly]
        if math.prod(map(len, values)) <= MOST_SAMPLES + 1:
            settings = [dict(zip((one.key for one in costly), own, strict=True)) for own in itertools.product(*values)]
        else:
            chance = np.random.default_rng(0)
            settings = [{one.key: one.draw(chance) for one in costly} for _ in range(MOST_SAMPLES)]
        for own in settings:
            if {**middle, **own} != middle:
                with suppress(InputError):
                    yield self.spec({**middle, **own})

    def spec(self, settings: dict[str, Any]) -> RunSpec:
        """The spec of a trial. Raises InputError."""
        return resolve(spec_file.set_values(self.values, settings), self.base)


def make_plan(values: dict[str, Any], search: Any, base: Path) -> Plan:
    """The plan of a search from a spec's plain values and its `search` section, checked as far as no data is needed.

    Raises InputError.
    """
    if not isinstance(search, dict):
        raise InputError("search: this is not a section; write its settings below it, such as space and trials", SEARCH)  # fmt: skip
    section = validate(SearchSection, search, SEARCH)
    parameters = read_space(section.space)
    trials = budget(section, parameters)
    check_sampler(section)
    first = {one.key: one.probes()[0] for one in parameters}
    start = resolve(spec_file.set_values(values, first), base)
    if start.training.seeds is not None:
        raise InputError("training.seeds: a search trains its best trials with new seeds (search.confirm); remove training.seeds", "training.seeds")  # fmt: skip
    for one in parameters:
        _check_values(one, values, first, base)
    metric = section.metric or start.evaluation.best_metric
    if metric is None:
        raise InputError("search.metric: say by which metric trials are compared, for example {example}", "search.metric", example=next(iter(MetricDirections.of(start).known), "loss"))  # fmt: skip
    greater = _check_metric(start, metric, section.metric is not None)
    _check_evaluations(section, start)
    return Plan(section, parameters, values, base, metric, greater, start.training.seed, trials)


def _check_values(one: Parameter, values: dict[str, Any], first: dict[str, Any], base: Path) -> None:
    """Raise InputError unless the spec takes every value that a parameter may have."""
    for place, value in enumerate(one.probes()):
        try:
            resolve(spec_file.set_values(values, {**first, one.key: value}), base)
        except InputError as error:
            if one.form in ("uniform", "log") and place == 2 and one.low.is_integer():  # its ends are fine
                raise InputError(
                    "search.space.{key}: this setting takes whole numbers; write {{{form}: [{low:g}, {high:g}]}}",
                    f"search.space.{one.key}",
                    key=one.key,
                    form="int" if one.form == "uniform" else "log_int",
                    low=one.low,
                    high=one.high,
                ) from None
            raise InputError("search.space: {error}", f"search.space.{one.key}", error=error) from None


def _check_metric(start: RunSpec, metric: str, is_own: bool) -> bool:
    """Whether a greater value of the metric is better. Raises InputError for one that the task does not have."""
    key, directions = "search.metric" if is_own else "evaluation.best_metric", MetricDirections.of(start)
    greater = directions.greater_is_better(metric)
    if greater is None:
        known = ", ".join(name for name, direction in directions.known.items() if direction is not None)
        raise InputError(
            "{key}: trials of {task} cannot be compared by {metric}; choose one of {known}",
            key,
            key=key,
            task=start.task["type"],
            metric=repr(metric),
            known=known or "none",
        )
    try:  # which needs validation data
        resolve({**start.model_dump(mode="json"), "evaluation": {**start.evaluation.model_dump(mode="json"), "best_metric": metric, "every": "epoch"}}, Path.cwd())  # fmt: skip
    except InputError as error:
        if error.field == "evaluation.best_metric":
            raise InputError("search.metric: trials are compared on validation data; set data.validation (to a file, or a fraction such as 0.1)", "data.validation") from None  # fmt: skip
        raise
    return greater


def _check_evaluations(section: SearchSection, start: RunSpec) -> None:
    if section.halving is None:
        return
    every = start.evaluation.every
    epochs = start.training.epochs
    is_once = every == "epoch" and start.training.max_steps is None and isinstance(epochs, float | int) and epochs <= 1
    if every == "never" or is_once or (isinstance(every, int) and start.training.max_steps is not None and every >= start.training.max_steps):  # fmt: skip
        raise InputError(
            "search.halving: trials are only evaluated at their end, so nothing could be compared before; set "
            "evaluation.every to a number of steps",
            "evaluation.every",
        )


def count_grid(parameters: Iterable[Parameter]) -> tuple[int, int]:
    """The trials of a full grid, and how many values a range of real numbers has in it; 0 if there is none."""
    counts = [SAMPLES if one.count() == math.inf else int(one.count()) for one in parameters]
    return math.prod(counts), SAMPLES if any(one.count() == math.inf for one in parameters) else 0


def estimate(plan: Plan, trials: Sequence[RunPlan]) -> SearchPlan:
    """What a search will cost, if its trials cost as much as these do on average; the first is from the middle of the space.

    Halving promotes one trial in `factor` at each rung; a grid takes SAMPLES values of a range of real numbers.
    """
    stages, reached, before, wholes = (*rungs(plan.section.halving), 1.0), plan.trials, 0.0, 0.0
    for stage in stages:
        wholes += reached * (stage - before)
        before = stage
        if plan.section.halving is not None and stage < 1:
            reached = max(1, reached // plan.section.halving.factor)
    confirm = plan.section.confirm
    confirmations = (min(confirm.best, reached) + confirm.baseline) * confirm.seeds if confirm is not None else 0
    steps = statistics.mean(trial.total_steps for trial in trials)
    times = [trial.seconds for trial in trials if trial.seconds is not None]
    seconds = statistics.mean(times) if len(times) == len(trials) else None
    combinations, samples = count_grid(plan.parameters)
    return SearchPlan(
        trials=plan.trials,
        confirmations=confirmations,
        steps=round((wholes + confirmations) * steps),
        confirmation_steps=round(confirmations * steps),
        seconds=None if seconds is None else (wholes + confirmations) * seconds,
        combinations=combinations,
        samples=samples,
        grid_steps=round(combinations * steps),
        grid_seconds=None if seconds is None else combinations * seconds,
        planned_trials=len(trials),
        disk_mb=_disk_of(plan, trials, confirmations),
    )


def _disk_of(plan: Plan, trials: Sequence[RunPlan], confirmations: int) -> float | None:
    """The megabytes of all runs; of those that lost only what stays, if only so many models are kept."""
    disks = [trial.disk for trial in trials if trial.disk is not None]
    if len(disks) < len(trials):
        return None
    needed = statistics.mean(disk.needed_mb for disk in disks)
    small = statistics.mean(sum(part.megabytes for part in disk.parts if part.name == SMALL) for disk in disks)
    runs, keep, confirm = plan.trials + confirmations, plan.section.keep, plan.section.confirm
    if keep is None:
        return runs * needed
    kept = min(runs, keep + (min(keep, confirm.best) * confirm.seeds if confirm is not None else 0))
    return kept * needed + (runs - kept) * small


# The folder


def write_search(folder: RunFolder, plan: Plan) -> None:
    """Write the two files of a new search; it is one as soon as both are there. Raises OSError."""
    write_section(folder, plan.section)
    folder.trials.mkdir(exist_ok=True)
    write_whole(folder.spec, spec_file.dump(plan.values).encode())


def write_section(folder: RunFolder, section: SearchSection) -> None:
    """Write the search's section, new or changed. Raises OSError."""
    write_whole(folder.search, spec_file.dump(section.model_dump(mode="json")).encode())


def with_absolute_paths(plan: Plan, checked: RunSpec) -> Plan:
    """The plan as it is written: its paths hold wherever its folder is, and a model or columns that all trials share are pinned.

    `checked` is the spec of a first trial after its check.
    """
    first = {one.key: one.probes()[0] for one in plan.parameters}
    start, keys = plan.spec(first), set(plan.section.space)
    values = deepcopy(plan.values)
    for section, names in values.items():
        for name in names if section in ("model", "data") and isinstance(names, dict) else ():
            if (path := _path_of(start, f"{section}.{name}")) is not None:
                names[name] = path
    if not any(key.startswith("model.") for key in keys) and checked.model.revision != start.model.revision:
        values["model"]["revision"] = checked.model.revision
    if not any(key.startswith(("data.", "task.")) for key in keys) and checked.data.columns:
        values["data"]["columns"] = dict(checked.data.columns)
    space = dict(plan.section.space)
    for one in plan.parameters:
        if _path_of(start, one.key) is not None:
            space[one.key] = [_path_of(plan.spec({**first, one.key: value}), one.key) for value in one.choices]
    section = plan.section.model_copy(update={"space": space})
    return replace(plan, values=values, section=section, parameters=read_space(space))


def _path_of(spec: RunSpec, key: str) -> Any:
    """The resolved value of a setting that is a path or a list of paths; None of any other."""
    section, _, name = key.partition(".")
    source = registry.find("source", spec.data.source, "data.source")
    if (section == "model" and name in ("name_or_path", "tokenizer")) or (
        section == "data" and name in source.path_fields
    ):
        return spec.model_dump(mode="json")[section].get(name)
    return None


def is_search(folder: RunFolder) -> bool:
    """Whether a run's folder is that of a search."""
    return folder.search.exists()


def read_plan(folder: RunFolder) -> Plan:
    """The plan of the search in a folder, possibly untrusted. Raises InputError."""
    folder.check(to_write=True)
    section = spec_file.parse(read_unlinked(folder.search, MAX_SPEC).decode("utf-8-sig"), folder.search.name)
    return make_plan(spec_file.read_run(folder.spec), section, folder.path)
