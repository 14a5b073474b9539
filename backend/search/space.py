"""The space of a search: which settings vary, over which values, and what its next trial would be."""

import itertools
import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from backend.contract.errors import InputError
from backend.contract.spec.search import SearchSection

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.study import Study

FORMS = ("uniform", "log", "int", "log_int")
FIXED = ("version", "name", "task.type", "data.validation", "data.test", "training.seeds")
"""Settings without which trials could not be compared, or that say nothing of training."""
PROPOSALS = 50
"""Tries to propose something that was not tried before; a space of few combinations is then listed instead."""
LARGEST_GRID = 10_000
_INSIDE = 0.381966
"""Where between its ends a range is tried too: a setting for whole numbers accepts the ends, but not what is between."""


@dataclass(frozen=True)
class Parameter:
    """One setting of the space: its choices, or the ends of its range."""

    key: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    form: str = ""
    """One of FORMS; empty for choices."""

    @property
    def is_whole(self) -> bool:
        """Whether it is a range of whole numbers."""
        return self.form in ("int", "log_int")

    def count(self) -> float:
        """How many values it has."""
        if not self.form:
            return len(self.choices)
        return self.high - self.low + 1 if self.is_whole else math.inf

    def values(self) -> tuple[Any, ...]:
        """All of its values, of which there must be few."""
        return self.choices if not self.form else tuple(range(int(self.low), int(self.high) + 1))

    def probes(self) -> tuple[Any, ...]:
        """Values that are valid if all of them are."""
        if not self.form:
            return self.choices
        if self.is_whole:
            return int(self.low), int(self.high)
        return self.low, self.high, self.low + _INSIDE * (self.high - self.low)

    def middle(self) -> Any:
        """A value from its middle, for an estimate."""
        return self.part(1 / 2) if self.form else self.choices[len(self.choices) // 2]

    def part(self, fraction: float) -> Any:
        """The value of a range below which this fraction of what is drawn lies."""
        is_log = self.form in ("log", "log_int")
        found = self.low * (self.high / self.low) ** fraction if is_log else self.low + fraction * (self.high - self.low)  # fmt: skip
        return round(found) if self.is_whole else found

    def draw(self, chance: np.random.Generator) -> Any:
        """A value by chance."""
        if not self.form:
            return self.choices[int(chance.integers(len(self.choices)))]
        if self.form == "int":
            return int(chance.integers(int(self.low), int(self.high), endpoint=True))
        if self.form == "uniform":
            return float(chance.uniform(self.low, self.high))
        # Rounded whole numbers have the share of their rounding interval, as in Optuna.
        half = 0.5 if self.is_whole else 0.0
        found = math.exp(chance.uniform(math.log(self.low - half), math.log(self.high + half)))
        found = min(max(found, self.low), self.high)
        return min(max(round(found), int(self.low)), int(self.high)) if self.is_whole else found


def read_space(space: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The parameters of a space as it is written. Raises InputError for one that makes no sense."""
    return tuple(_read_parameter(key, values) for key, values in space.items())


def _read_parameter(key: str, values: Any) -> Parameter:
    where = f"search.space.{key}"
    if key in FIXED or key.split(".")[0] == "search":
        raise InputError("{where}: all trials must have the same {key}; remove it from the space", where, where=where, key=key)  # fmt: skip
    if isinstance(values, list):
        return Parameter(key, _read_choices(where, values))
    if not isinstance(values, dict) or len(values) != 1 or next(iter(values)) not in FORMS:
        raise InputError(
            "{where}: {values} cannot be searched; write a list of choices, or a range such as {{log: [1e-5, 1e-3]}} "
            "(or uniform, int, log_int)",
            where,
            where=where,
            values=_plain(values),
        )
    ((form, ends),) = values.items()
    return _read_range(key, where, form, ends)


def _read_choices(where: str, values: list[Any]) -> tuple[Any, ...]:
    if not values:
        raise InputError("{where}: the list is empty; give it the values to try", where, where=where)
    plain = [_plain(value) for value in values]
    twice = next((one for number, one in enumerate(plain) if one in plain[:number]), None)
    if twice is not None:
        raise InputError("{where}: {twice} is listed twice; remove one of them", where, where=where, twice=twice)
    return tuple(values)


def _read_range(key: str, where: str, form: str, ends: Any) -> Parameter:
    if not isinstance(ends, list) or len(ends) != 2 or not all(map(_is_number, ends)):
        raise InputError("{where}: a range needs two numbers, for example {{{form}: [{low}, {high}]}}", where, where=where, form=form, low=1, high=8)  # fmt: skip
    low, high = map(float, ends)
    if not low < high:
        raise InputError("{where}: the range from {low:g} to {high:g} is empty; the first number must be the smaller one", where, where=where, low=low, high=high)  # fmt: skip
    if form in ("log", "log_int") and low <= 0:
        raise InputError("{where}: a logarithmic range must start above 0, not at {low:g}", where, where=where, low=low)
    if form in ("int", "log_int") and not (low.is_integer() and high.is_integer()):
        raise InputError("{where}: {form} takes whole numbers, not {low:g} and {high:g}", where, where=where, form=form, low=low, high=high)  # fmt: skip
    return Parameter(key, (), low, high, form)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str, sort_keys=True)


def count_combinations(parameters: Iterable[Parameter]) -> float:
    """How many different trials the space has; infinite with a range of real numbers."""
    return math.prod(parameter.count() for parameter in parameters)


def budget(section: SearchSection, parameters: Sequence[Parameter]) -> int:
    """How many trials the search has. Raises InputError if it has no end."""
    combinations = count_combinations(parameters)
    if section.sampler == "grid":
        _check_grid(parameters, combinations)
    elif section.trials is None:
        raise InputError("search.trials: a search needs a budget; set how many trials it may take", "search.trials")
    return int(min(combinations, section.trials or combinations))


def _check_grid(parameters: Sequence[Parameter], combinations: float) -> None:
    endless = next((parameter for parameter in parameters if parameter.count() == math.inf), None)
    if endless is not None:
        raise InputError(
            "search.space.{key}: a grid needs a list of values here, not a range; or choose another search.sampler",
            f"search.space.{endless.key}",
            key=endless.key,
        )
    if combinations > LARGEST_GRID:
        raise InputError("search.space: a grid of {count:,.0f} combinations is too large; choose another search.sampler", "search.space", count=combinations)  # fmt: skip


def check_sampler(section: SearchSection) -> None:
    """Raises InputError if what proposes trials is not installed, or cannot do what is asked."""
    if section.sampler in ("tpe", "gp") and find_spec("optuna") is None:
        raise InputError(
            "search.sampler: {sampler} needs Optuna, which is not installed; install it with: "
            "pip install 'burnish[search]', or choose random",
            "search.sampler",
            sampler=section.sampler,
        )
    if section.sampler == "gp" and section.halving is not None:
        raise InputError("search.sampler: gp does not learn from paused trials; with search.halving choose tpe", "search.sampler")  # fmt: skip


# Proposals


@dataclass(frozen=True)
class Observation:
    """What is known of an earlier trial: its settings and, as far as it was measured, its value."""

    settings: Mapping[str, Any]
    state: str = "running"
    """finished, paused, running or failed."""
    value: float | None = None
    rungs: Mapping[int, float] = field(default_factory=dict)
    """Thousandths of its steps → the value there, of a paused trial."""


@dataclass(frozen=True)
class Proposal:
    """The settings of a trial, and what they come from."""

    settings: dict[str, Any]
    source: str
    """See `TrialProposed.source`."""
    results: int = 0
    """See `TrialProposed.results`."""


def propose(
    section: SearchSection,
    parameters: Sequence[Parameter],
    number: int,
    observations: Sequence[Observation],
    *,
    greater: bool,
) -> Proposal | None:
    """The settings of trial `number`, as a function of the earlier ones alone; None if all were tried."""
    if section.sampler == "grid":
        combination = next(itertools.islice(_combinations(parameters), number - 1, None), None)
        return None if combination is None else Proposal(_named(parameters, combination), "grid")
    tried = {_plain(one.settings) for one in observations}
    results = 0 if section.sampler == "random" else _count_results(section, observations)
    is_drawn = section.sampler == "random" or results < first_trials(section)
    for attempt in range(PROPOSALS):
        found = _propose(section, parameters, (number, attempt), observations, greater=greater)
        if _plain(found) not in tried:
            return Proposal(found, "chance" if is_drawn else "results", results)
    if count_combinations(parameters) > LARGEST_GRID:
        return None
    left = (_named(parameters, one) for one in _combinations(parameters))
    untried = next((one for one in left if _plain(one) not in tried), None)
    return None if untried is None else Proposal(untried, "untried")


def _count_results(section: SearchSection, observations: Iterable[Observation]) -> int:
    """How many trials Optuna's sampler counts, which first needs some results: the Gaussian process leaves paused ones out."""
    states = [_optuna_state(one) for one in observations]
    return states.count("COMPLETE") + (states.count("PRUNED") if section.sampler == "tpe" else 0)


def _optuna_state(one: Observation) -> str:
    """The name of the state in which Optuna knows a trial."""
    if one.state == "running":
        return "RUNNING"
    if one.state == "paused" and one.rungs:
        return "PRUNED"
    return "COMPLETE" if one.state == "finished" and one.value is not None else "FAIL"


def _combinations(parameters: Sequence[Parameter]) -> Iterable[tuple[Any, ...]]:
    return itertools.product(*(parameter.values() for parameter in parameters))


def _named(parameters: Sequence[Parameter], values: Iterable[Any]) -> dict[str, Any]:
    return {parameter.key: value for parameter, value in zip(parameters, values, strict=True)}


def _propose(
    section: SearchSection, parameters: Sequence[Parameter], number: tuple[int, int], observations: Sequence[Observation], *, greater: bool
) -> dict[str, Any]:  # fmt: skip
    seeds = np.random.SeedSequence([section.seed, *number])
    if section.sampler == "random":
        chance = np.random.default_rng(seeds)
        return {parameter.key: parameter.draw(chance) for parameter in parameters}
    seed, learning_from = int(seeds.generate_state(1)[0]), first_trials(section)
    with quiet_optuna() as optuna:
        samplers = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}
        sampler = samplers[section.sampler](seed=seed, n_startup_trials=learning_from)
        study = make_study(parameters, observations, greater=greater, sampler=sampler)
        asked = study.ask(distributions(parameters))
        return {parameter.key: _value(parameter, asked.params[parameter.key]) for parameter in parameters}


def first_trials(section: SearchSection) -> int:
    """How many trials must have a result before a sampler learns from them; until then, it draws."""
    return max(3, min(10, (section.trials or 30) // 3))


@contextmanager
def quiet_optuna() -> Iterator[Any]:
    """Optuna, without its log lines and its warnings of what may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import optuna  # takes half a second, and is an extra

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        yield optuna


def make_study(
    parameters: Sequence[Parameter],
    observations: Iterable[Observation],
    *,
    greater: bool,
    sampler: "BaseSampler | None" = None,
) -> "Study":
    """Optuna's study of the trials so far, in memory; nothing of it is kept."""
    import optuna

    study = optuna.create_study(direction="maximize" if greater else "minimize", sampler=sampler)
    kinds, states = distributions(parameters), optuna.trial.TrialState
    for one in observations:
        state = states[_optuna_state(one)]
        study.add_trial(
            optuna.trial.create_trial(
                state=state,
                value=one.value if state == states.COMPLETE else None,
                params={parameter.key: _code(parameter, one.settings[parameter.key]) for parameter in parameters},
                distributions=kinds,
                intermediate_values=dict(one.rungs) if state == states.PRUNED else {},
            )
        )
    return study


def distributions(parameters: Iterable[Parameter]) -> "dict[str, BaseDistribution]":
    """The parameters as Optuna knows them; a choice is its place in the list, since it may be of any kind."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    found: dict[str, BaseDistribution] = {}
    for one in parameters:
        if not one.form:
            found[one.key] = CategoricalDistribution([str(place) for place in range(len(one.choices))])
        elif one.is_whole:
            found[one.key] = IntDistribution(int(one.low), int(one.high), log=one.form == "log_int")
        else:
            found[one.key] = FloatDistribution(one.low, one.high, log=one.form == "log")
    return found


def _code(parameter: Parameter, value: Any) -> Any:
    return value if parameter.form else str([_plain(one) for one in parameter.choices].index(_plain(value)))


def _value(parameter: Parameter, code: Any) -> Any:
    return code if parameter.form else parameter.choices[int(code)]


def refuse_no_search(name: str) -> InputError:
    """The refusal of a spec without a `search` section."""
    return InputError(
        "{name} has no search section; add one, for example "
        "search: {{space: {{training.learning_rate: {{log: [1e-5, 1e-3]}}}}, metric: accuracy, trials: 12}}",
        "search",
        name=name,
    )
