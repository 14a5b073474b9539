"""Which trial trains next: a pure function, tried with trials whose results are known beforehand."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from backend.contract.rpc.search import BASELINE
from backend.contract.run.folder import RunFolder
from backend.contract.spec import validate
from backend.contract.spec.search import SearchSection
from backend.search.trials import SEED, Action, Trial, is_name, next_action, rank, rank_all, remove_weights, rungs

STEPS = 90


def section(**values: object) -> SearchSection:
    own = {"space": {"training.learning_rate": [1, 2]}, "trials": 9, "halving": {"factor": 3, "rungs": 2}}
    return validate(SearchSection, {**own, **values}, "search")


def train(trial: Trial, pause: float | None, quality: float) -> Trial:
    """A trial whose accuracy rises to `quality`, until it pauses or is finished."""
    until = STEPS if pause is None else round(pause * STEPS)
    evaluations = tuple((step, quality * step / STEPS) for step in range(10, until + 1, 10))
    state = "finished" if pause is None else "paused"
    return replace(trial, state=state, step=until, total=STEPS, evaluations=evaluations, pause=pause, value=evaluations[-1][1])  # fmt: skip


def search(
    qualities: list[float], plan: SearchSection, *, greater: bool = True
) -> tuple[dict[int, Trial], list[Action]]:
    """The whole search, with one trial at a time."""
    trials: dict[int, Trial] = {}
    actions: list[Action] = []
    while True:
        own = [trial for trial in trials.values() if not trial.confirms]
        action = next_action(plan, list(trials.values()), len(qualities) - len(own), greater=greater, seed=42)
        if action is None:
            return trials, actions
        assert len(actions) < 200
        actions.append(action)
        number = action.trial or len(trials) + 1
        if not action.trial:
            of_trial = trials[action.confirms].settings if action.confirms > 0 else {}
            settings = {**of_trial, SEED: action.seed} if action.confirms else {"place": number - 1}
            trials[number] = Trial(number, RunFolder(f"/nowhere/{number}"), settings, action.confirms)
        quality = qualities[trials[number].settings["place"]] if not action.confirms else 0.5
        trials[number] = train(trials[number], action.pause, quality)


QUALITIES = [0.5, 0.6, 0.7, 0.8, 0.9, 0.55, 0.65, 0.75, 0.95]


def test_rungs_are_fractions_of_a_whole_trial():
    assert rungs(section().halving) == (1 / 9, 1 / 3)
    assert rungs(None) == ()


def test_every_trial_is_trained_through_without_halving():
    trials, actions = search(QUALITIES, section(halving=None))
    assert [trial.step for trial in trials.values()] == [STEPS] * 9
    assert len(actions) == 9


def test_halving_finds_the_best_with_a_third_of_the_steps():
    trials, _ = search(QUALITIES, section())
    assert rank(trials.values(), greater=True)[0].number == 9
    assert sum(trial.step for trial in trials.values()) < STEPS * 9 / 2


def test_no_rung_promotes_more_than_its_share():
    trials, _ = search(QUALITIES, section())
    come = [sum(trial.at(level) is not None for trial in trials.values()) for level in (1 / 9, 1 / 3, 1.0)]
    # Asynchronous: a promotion is never taken back, so one that was among the best of the first six may be too many.
    assert come[0] == 9
    assert 3 <= come[1] <= 4
    assert 1 <= come[2] <= 2


def test_promoted_trial_continues_instead_of_beginning_again():
    _, actions = search(QUALITIES, section())
    proposals = [action for action in actions if not action.trial]
    assert len(proposals) == 9
    assert {action.pause for action in actions if action.trial} == {1 / 3, None}


def test_smaller_is_better_where_the_metric_says_so():
    trials, _ = search(QUALITIES, section(), greater=False)
    assert rank(trials.values(), greater=False)[0].number == 1


def test_one_trial_is_trained_through_even_if_no_rung_is_full():
    trials, _ = search([0.3, 0.4], section())
    assert Counter(trial.state for trial in trials.values()) == {"paused": 1, "finished": 1}
    assert rank(trials.values(), greater=True)[0].number == 2


def test_best_trials_are_confirmed_with_new_seeds():
    trials, actions = search(QUALITIES, section(halving=None, confirm={"best": 2, "seeds": 3}))
    assert [(action.confirms, action.seed) for action in actions[9:]] == [
        (9, 43),
        (9, 44),
        (9, 45),
        (5, 43),
        (5, 44),
        (5, 45),
    ]
    assert all(trial.settings[SEED] != 42 for trial in trials.values() if trial.confirms)


def test_own_settings_are_trained_with_the_seeds_of_the_winner():
    _, actions = search(QUALITIES, section(halving=None, confirm={"best": 1, "seeds": 2, "baseline": True}))
    assert [(action.confirms, action.seed) for action in actions[9:]] == [
        (9, 43),
        (9, 44),
        (BASELINE, 43),
        (BASELINE, 44),
    ]


def test_only_trials_that_were_trained_through_are_confirmed():
    trials, actions = search(QUALITIES, section(confirm={"best": 3, "seeds": 2}))
    through = [trial.number for trial in rank([one for one in trials.values() if not one.confirms], greater=True)]
    confirmed = list(dict.fromkeys(action.confirms for action in actions if action.confirms))
    assert confirmed == through[:3]
    assert all(action.pause is None for action in actions if action.confirms)


def test_weights_of_a_loser_go_and_what_is_small_stays(tmp_path: Path):
    folder, elsewhere = RunFolder(tmp_path / "run"), tmp_path / "elsewhere"
    for name in ("model/model.safetensors", "model/burnish.json", "checkpoints/step-4/weights", "predictions.csv"):
        path = folder.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    remove_weights(folder)
    left = {str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file()}
    assert left == {"model/burnish.json", "predictions.csv"}
    folder.model.rename(elsewhere)
    (elsewhere / "model.safetensors").write_text("x")
    folder.model.symlink_to(elsewhere)
    remove_weights(folder)
    assert (elsewhere / "model.safetensors").exists()


def test_confirmation_waits_for_the_last_trial():
    plan = section(halving=None, confirm={"best": 1, "seeds": 2})
    trials, _ = search(QUALITIES, section(halving=None))
    trials[4] = replace(trials[4], state="running")
    assert next_action(plan, list(trials.values()), 0, greater=True, seed=42, busy={4}) is None


@pytest.mark.parametrize("state", ["proposed", "interrupted", "lost"])
def test_unfinished_trial_comes_first_and_goes_where_it_was_going(state: str):
    trials, _ = search(QUALITIES[:3], section())
    trials[2] = replace(trials[2], state=state, step=3, evaluations=(), pause=1 / 3)
    action = next_action(section(), list(trials.values()), 6, greater=True, seed=42)
    assert action == Action(2, 1 / 3)


def test_trial_that_a_person_paused_is_continued_unless_held():
    trials, _ = search(QUALITIES[:3], section(halving=None))
    trials[1] = replace(trials[1], state="paused", step=40, pause=None)
    assert next_action(section(halving=None), list(trials.values()), 0, greater=True, seed=42) == Action(1, None)
    assert next_action(section(halving=None), list(trials.values()), 0, greater=True, seed=42, held={1}) is None


def test_order_of_the_jobs_does_not_depend_on_when_they_are_asked_for():
    """Whatever is on record, the same action follows: a search that was killed continues as if it had not been."""
    trials, actions = search(QUALITIES, section())
    again, same = search(QUALITIES, section())
    assert actions == same
    assert [trial.step for trial in trials.values()] == [trial.step for trial in again.values()]


def test_ranking_puts_trials_that_came_far_before_others():
    trials, _ = search(QUALITIES, section())
    steps = [trial.step for trial in rank_all(trials.values(), greater=True)]
    assert steps == sorted(steps, reverse=True)


def test_trial_without_a_value_is_not_the_best():
    trial = Trial(1, RunFolder(Path("/nowhere")), {}, state="finished", value=None)
    assert rank([trial], greater=False) == []


@pytest.mark.parametrize(
    "name", ["trials/../../x", "/etc", "trials/", "trials/a/b", "trials/..", "elsewhere/a", "trials/a\\b"]
)
def test_event_of_a_stranger_leads_to_no_other_folder(name: str):
    assert not is_name(name)
