"""What may be searched, what is refused, and that a proposal depends on nothing but what is known."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.contract.errors import InputError
from backend.contract.spec import validate
from backend.contract.spec.search import SearchSection
from backend.search import space
from backend.search.space import Observation, budget, propose, read_space

SPACE = {"training.learning_rate": {"log": [1e-5, 1e-3]}, "adapter.rank": [4, 8, 16]}


def section(sampler: str = "random", trials: int | None = 8, **values: Any) -> SearchSection:
    return validate(SearchSection, {"space": SPACE, "sampler": sampler, "trials": trials, **values}, "search")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "the list is empty"),
        ([8, 4, 8], "8 is listed twice"),
        (["a", "b", "a"], '"a" is listed twice'),
        ({"log": [0, 1]}, "must start above 0"),
        ({"log": [1e-3, 1e-5]}, "is empty"),
        ({"uniform": [1, 1]}, "is empty"),
        ({"uniform": [1]}, "needs two numbers"),
        ({"uniform": ["a", "b"]}, "needs two numbers"),
        ({"uniform": [0, float("nan")]}, "needs two numbers"),
        ({"int": [1, 2.5]}, "whole numbers"),
        ({"int": [True, 3]}, "needs two numbers"),
        ({"normal": [0, 1]}, "cannot be searched"),
        ({"log": [1, 2], "uniform": [1, 2]}, "cannot be searched"),
        (0.5, "cannot be searched"),
        (None, "cannot be searched"),
    ],
)
def test_range_that_makes_no_sense_is_refused(values: Any, words: str):
    with pytest.raises(InputError, match=r"^search\.space\.training\.warmup: ") as refused:
        read_space({"training.warmup": values})
    assert words in str(refused.value)
    assert refused.value.field == "search.space.training.warmup"


@pytest.mark.parametrize("key", ["name", "version", "task.type", "data.validation", "search.trials"])
def test_settings_that_all_trials_share_are_not_searched(key: str):
    with pytest.raises(InputError, match="all trials must have the same"):
        read_space({key: [1, 2]})


def test_true_and_one_are_different_choices():
    (found,) = read_space({"training.drop_last": [True, 1]})
    assert found.choices == (True, 1)


def test_search_without_a_budget_is_refused():
    with pytest.raises(InputError, match="needs a budget"):
        budget(section(trials=None), read_space(SPACE))


def test_grid_needs_no_budget():
    choices = {"adapter.rank": [4, 8, 16], "training.batch_size": {"int": [1, 4]}}
    assert budget(section("grid", None), read_space(choices)) == 12


def test_grid_of_a_range_is_refused():
    with pytest.raises(InputError, match=r"search\.space\.training\.learning_rate: a grid needs a list"):
        budget(section("grid"), read_space(SPACE))


def test_there_are_no_more_trials_than_combinations():
    assert budget(section(trials=50), read_space({"adapter.rank": [4, 8, 16]})) == 3


@pytest.mark.parametrize("sampler", ["random", "tpe", "gp"])
def test_optuna_that_is_missing_is_said_before_anything_starts(sampler: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(space, "find_spec", lambda name: None)
    if sampler == "random":
        space.check_sampler(section(sampler))
    else:
        with pytest.raises(InputError, match=r"pip install 'burnish\[search\]'"):
            space.check_sampler(section(sampler))


def test_grid_proposes_every_combination_once():
    choices = read_space({"adapter.rank": [4, 8], "training.schedule": ["linear", "cosine", "constant"]})
    found = [propose(section("grid"), choices, number, [], greater=True) for number in range(1, 8)]
    assert found[-1] is None
    assert len({str(one) for one in found[:-1]}) == 6


@given(
    low=st.floats(1e-6, 1e3), width=st.floats(1.5, 1e3), form=st.sampled_from(["log", "uniform", "int", "log_int"]),
    number=st.integers(1, 50),
)  # fmt: skip
def test_what_is_drawn_lies_in_its_range(low: float, width: float, form: str, number: int):
    ends = [low, low * width]
    if form.endswith("int"):
        ends = [int(low) + 1, int(low) + 1 + int(width)]
    parameters = read_space({"training.warmup": {form: ends}})
    found = propose(section(), parameters, number, [], greater=True)
    assert found is not None
    value = found.settings["training.warmup"]
    assert ends[0] <= value <= ends[1]
    assert isinstance(value, int if form.endswith("int") else float)


def run_search(sampler: str, count: int) -> list[Observation]:
    """A search for the learning rate 1e-4 and rank 8, without any training."""
    observations: list[Observation] = []
    for number in range(1, count + 1):
        found = propose(section(sampler), read_space(SPACE), number, observations, greater=False)
        assert found is not None
        settings = found.settings
        value = abs(settings["training.learning_rate"] - 1e-4) + (settings["adapter.rank"] != 8)
        observations.append(Observation(settings, "finished", value))
    return observations


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_proposal_depends_on_nothing_but_the_earlier_trials(sampler: str):
    observations = run_search(sampler, 8)
    assert observations == run_search(sampler, 8)
    again = propose(section(sampler), read_space(SPACE), 6, observations[:5], greater=False)
    assert again is not None
    assert again.settings == observations[5].settings


@pytest.mark.slow
def test_gaussian_process_proposes_the_same_again():
    observations = run_search("tpe", 6)
    one, other = (propose(section("gp"), read_space(SPACE), 7, observations, greater=False) for _ in range(2))
    assert one == other


def test_direction_decides_what_is_proposed():
    observations = run_search("tpe", 8)
    smaller, greater = (
        propose(section("tpe"), read_space(SPACE), 9, observations, greater=greater) for greater in (False, True)
    )
    assert smaller != greater


def test_parzen_estimator_learns_from_results():
    late = run_search("tpe", 20)[10:]
    assert sum(one.settings["adapter.rank"] == 8 for one in late) >= 7


def test_nothing_is_proposed_twice():
    few = read_space({"adapter.rank": [4, 8, 16], "training.drop_last": [True, False]})
    observations: list[Observation] = []
    for number in range(1, 7):
        found = propose(section("tpe"), few, number, observations, greater=True)
        assert found is not None
        observations.append(Observation(found.settings, "finished", 0.5))
    assert len({str(one.settings) for one in observations}) == 6
    assert propose(section("tpe"), few, 7, observations, greater=True) is None


def test_paused_and_failed_trials_are_told_as_well():
    parameters = read_space(SPACE)
    settings = {"training.learning_rate": 1e-4, "adapter.rank": 8}
    observations = [
        Observation(settings, "paused", 0.5, {111: 0.5}),
        Observation(settings, "failed"),
        Observation(settings, "running"),
    ]
    with space.quiet_optuna():
        study = space.make_study(parameters, observations, greater=True)
        states = [trial.state.name for trial in study.get_trials(deepcopy=False)]
    assert states == ["PRUNED", "FAIL", "RUNNING"]


SETTINGS = {"training.learning_rate": 1e-4, "adapter.rank": 8}


@pytest.mark.parametrize(
    ("sampler", "states", "source"),
    [
        ("random", ["finished"] * 9, ("chance", 0)),
        ("tpe", ["finished"] * 2, ("chance", 2)),
        ("tpe", ["finished"] * 3, ("results", 3)),
        ("tpe", ["finished"] * 2 + ["paused"], ("results", 3)),
        ("tpe", ["finished"] * 2 + ["failed", "running"], ("chance", 2)),
        ("tpe", [], ("chance", 0)),
    ],
    ids=str,
)
def test_proposal_says_what_it_comes_from(sampler: str, states: list[str], source: tuple[str, int]):
    """A sampler learns once three of eight trials have results; those that failed or still train are none."""
    values = [{**SETTINGS, "training.learning_rate": 1e-4 * (number + 1)} for number in range(len(states))]
    observations = [
        Observation(
            one, state, 0.5 if state in ("finished", "paused") else None, {111: 0.5} if state == "paused" else {}
        )
        for one, state in zip(values, states, strict=True)
    ]
    found = propose(section(sampler), read_space(SPACE), len(states) + 1, observations, greater=True)
    assert found is not None
    assert (found.source, found.results) == source


def test_combination_that_was_left_is_called_that():
    few = read_space({"adapter.rank": [4, 8, 16]})
    observations = [Observation({"adapter.rank": rank}, "finished", 0.5) for rank in (4, 16)]
    found = propose(section("random"), few, 3, observations, greater=True)
    assert found is not None
    assert found.settings == {"adapter.rank": 8}
