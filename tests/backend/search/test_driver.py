"""A search as its folder tells it: what a small trainer writes into the trials' folders is all that it knows."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.machines import Machine, write_machines
from backend.contract.resources import resource
from backend.contract.run import events
from backend.contract.run.event_summary import landmarks
from backend.contract.run.folder import ExitRecord, ProcessRecord, RemoteRun, RunFolder, boot_id, host_id
from backend.contract.run.lock import take_lock
from backend.contract.spec import RunSpec
from backend.launchers import launcher
from backend.preflight import checks
from backend.preflight.task_facts import FittedFacts
from backend.remote.connection import NoConnection
from backend.search import driver, plan, report
from backend.training.event_log import EventLog

STEPS = 36
SPACE = {"training.learning_rate": {"log": [1e-5, 1e-2]}, "training.weight_decay": [0.0, 0.1]}


class Killed(BaseException):
    """What a test does to a search in the midst of its work."""


class Trainer:
    """Trains nothing: it writes the events that a run with these settings would have written."""

    def __init__(self) -> None:
        self.steps = 0
        self.started: list[tuple[str, float | None]] = []
        self.before: Callable[[RunFolder], object] = lambda folder: None
        self.fails: Callable[[dict[str, Any]], bool] = lambda values: False

    def start(self, folder: RunFolder, hardware: object, *, queue: object = None) -> SimpleNamespace:
        self.before(folder)
        self.started.append((folder.name, folder.pause_fraction()))
        folder.write_process_record(ProcessRecord(folder.next_attempt(), host_id(), boot_id(), 1, 1, time.time()))
        self._train(folder)
        folder.write_exit_record(ExitRecord(folder.next_attempt() - 1, 0, time.time()))
        return SimpleNamespace(poll=lambda: 0)

    def _train(self, folder: RunFolder) -> None:
        values = spec_file.read_run(folder.spec)
        log = EventLog(folder.events)
        before = max(folder.checkpoint_steps(), default=0)
        if landmarks(folder.events):
            log.write(events.RunResumed(time=time.time(), attempt=2, from_step=before))
        else:
            log.write(events.RunStarted(time=time.time(), name="trial", task="text_classification", model="m"))
            log.write(events.PlanMade(time=time.time(), total_steps=STEPS, steps_per_epoch=4, batch_size=8, micro_batch_size=8, accumulation=1, epochs=9))  # fmt: skip
        if self.fails(values):
            log.write(events.RunFinished(time=time.time(), state="failed", step=before, message="the loss became NaN"))
            return log.close()
        fraction = folder.pause_fraction()
        until = STEPS if fraction is None else 4 * -(-int(fraction * STEPS) // 4)
        for step in range(before + 1, until + 1):
            self.steps += 1
            log.append(events.StepFinished(time=time.time(), step=step, epoch=step / 4, loss=self._loss(values, step), learning_rate=1e-4, gradient_norm=1.0, rows=8, tokens=80, seconds=0.1))  # fmt: skip
            if step % 4 == 0:
                log.append(events.EvaluationFinished(time=time.time(), step=step, epoch=step / 4, metrics={"accuracy": self._accuracy(values, step)}, rows=9, seconds=0.1))  # fmt: skip
        folder.checkpoint(until).mkdir(parents=True)
        state = "finished" if until == STEPS else "paused"
        metrics: dict[str, float | None] = {"accuracy": self._accuracy(values, STEPS)} if state == "finished" else {}
        log.write(events.RunFinished(time=time.time(), state=state, step=until, metrics=metrics))
        return log.close()

    def _loss(self, values: dict[str, Any], step: int) -> float:
        return values["training"]["learning_rate"] * 100 + values["training"]["seed"] / 1000 + 1 / step

    def _accuracy(self, values: dict[str, Any], step: int) -> float:
        rate, seed = values["training"]["learning_rate"], values["training"]["seed"]
        return (1 - abs(rate - 1e-3) * 50) * step / STEPS - (seed - 42) / 100


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> Trainer:
    found = Trainer()
    monkeypatch.setattr(launcher, "launcher_of", lambda folder: found)
    monkeypatch.setattr(checks, "check", lambda spec: checks.Checked(spec, FittedFacts("", {})))  # it reads the data
    monkeypatch.setattr(driver, "POLL_SECONDS", 0.0)
    return found


def base() -> dict[str, Any]:
    values = spec_file.read(resource("demo", "sentiment.yaml"))
    values["model"]["name_or_path"] = str(resource("demo", "bert-tiny"))
    for split in ("train", "validation"):
        values["data"][split] = str(resource("demo", "sentiment", f"{split}.csv"))
    values["training"]["epochs"] = 9
    return values


def write(path: Path, **search: Any) -> RunFolder:
    own = {"space": SPACE, "metric": "accuracy", "trials": 6, "sampler": "random", **search}
    made = plan.make_plan(base(), own, path)
    path.mkdir()
    plan.write_search(RunFolder(path), made)
    return RunFolder(path)


def search(folder: RunFolder) -> dict[int, tuple[Any, ...]]:
    """What a search has found, trial by trial."""
    assert driver.run(folder) == 0
    return found(folder)


def found(folder: RunFolder) -> dict[int, tuple[Any, ...]]:
    found = report.report(folder)
    return {one.trial: (one.state, one.settings, one.metric, one.steps) for one in found.trials}


def ends(folder: RunFolder) -> list[str]:
    return [event.state for event in landmarks(folder.events) if isinstance(event, events.RunFinished)]


def test_every_trial_becomes_a_run_with_its_settings(trainer: Trainer, tmp_path: Path):
    folder = write(tmp_path / "search")
    trials = search(folder)
    assert [state for state, *_ in trials.values()] == ["finished"] * 6
    for number, (_, settings, *_) in trials.items():
        own = spec_file.read_run(folder.trials / f"trial-{number:03d}" / "spec.yaml")
        assert own["training"]["learning_rate"] == settings["training.learning_rate"]
        assert "search" not in own
    assert ends(folder) == ["finished"]
    (end,) = (event for event in landmarks(folder.events) if isinstance(event, events.RunFinished))
    assert next(iter(end.metrics)) == "accuracy"


@pytest.mark.parametrize(
    ("killed_at", "sampler"),
    [pytest.param(1, "random", marks=pytest.mark.slow), pytest.param(4, "tpe", marks=pytest.mark.slow), (7, "tpe")],
)
def test_killed_search_continues_as_if_it_had_not_been(trainer: Trainer, tmp_path: Path, killed_at: int, sampler: str):
    halving = {"factor": 2, "rungs": 2}
    undisturbed = search(write(tmp_path / "undisturbed", sampler=sampler, halving=halving))
    order = list(trainer.started)
    trainer.started.clear()
    trainer.steps = 0
    folder = write(tmp_path / "search", sampler=sampler, halving=halving)

    def kill(_: RunFolder) -> None:
        if len(trainer.started) == killed_at:
            trainer.before = lambda folder: None
            raise Killed

    trainer.before = kill
    with pytest.raises(Killed):
        driver.run(folder)
    assert search(folder) == undisturbed
    assert trainer.started == order
    assert trainer.steps == sum(steps for *_, steps in undisturbed.values())


def test_search_is_continued_where_it_was_copied_to(trainer: Trainer, tmp_path: Path):
    undisturbed = search(write(tmp_path / "undisturbed", trials=6))
    folder = write(tmp_path / "search", trials=6)

    def stop(_: RunFolder) -> None:
        if len(trainer.started) == 9:
            folder.request("stop")

    trainer.before = stop
    driver.run(folder)
    moved = tmp_path / "another computer"
    shutil.move(folder.path, moved)
    assert search(RunFolder(moved)) == undisturbed


def test_paused_trials_keep_their_place_until_they_are_promoted(trainer: Trainer, tmp_path: Path):
    folder = write(tmp_path / "search", trials=9, halving={"factor": 3, "rungs": 2})
    trials = search(folder)
    assert trainer.steps == sum(steps for *_, steps in trials.values()) < 9 * STEPS / 2
    assert {steps for *_, steps in trials.values()} == {4, 12, 36}
    found = report.report(folder)
    assert (found.steps, found.full_steps) == (trainer.steps, 9 * STEPS)


def test_winner_is_confirmed_with_new_seeds(trainer: Trainer, tmp_path: Path):
    folder = write(tmp_path / "search", confirm={"best": 2, "seeds": 3})
    search(folder)
    found = report.report(folder)
    first = found.confirmed[0]
    assert first.mean is not None
    assert [one.trial for one in found.confirmed] == [one.trial for one in found.trials[:2]]
    assert list(first.values) == ["43", "44", "45"]
    assert first.mean == pytest.approx(first.searched - 0.02)  # each seed above 42 costs a hundredth
    assert first.luck == pytest.approx(0.02)
    assert first.luck_interval == pytest.approx((0.02 - 0.0248414, 0.02 + 0.0248414), abs=1e-5)
    assert "of which at most 0.045 was luck; so few seeds cannot say" in report.format_report(found)
    assert first.interval == pytest.approx(
        (first.mean - 0.0248414, first.mean + 0.0248414), abs=1e-5
    )  # t of 2: 4.302653


def test_winner_is_compared_with_the_settings_of_the_spec(trainer: Trainer, tmp_path: Path):
    folder = write(tmp_path / "search", confirm={"best": 1, "seeds": 2, "baseline": True})
    search(folder)
    found = report.report(folder)
    assert [(one.confirms, one.settings["training.seed"]) for one in found.repeats[2:]] == [(-1, 43), (-1, 44)]
    own = spec_file.read_run(folder.trials / "own-settings-seed-43" / "spec.yaml")
    assert own["training"]["learning_rate"] == base()["training"]["learning_rate"]
    assert own["training"]["seed"] == 43


def test_only_the_best_models_are_kept(trainer: Trainer, tmp_path: Path):
    trainer.before = save_weights
    folder = write(tmp_path / "search", keep=2, halving={"factor": 2, "rungs": 1})
    search(folder)
    kept = {path.parents[1].name for path in folder.trials.glob("*/model/*.safetensors")}
    best = {Path(one.run).name for one in report.report(folder).trials[:2]}
    assert kept == best == {path.parents[1].name for path in folder.trials.glob("*/checkpoints/*")}


@pytest.mark.slow
def test_paused_trials_count_too_when_it_is_said_what_mattered(trainer: Trainer, tmp_path: Path):
    folder = write(tmp_path / "search", trials=12, halving={"factor": 3, "rungs": 1})
    search(folder)
    found = report.report(folder, importance=True)
    assert sum(one.state == "finished" for one in found.trials) < report.FEWEST_TRIALS
    first, second = found.importance
    assert (first.setting, second.setting) == ("training.learning_rate", "training.weight_decay")
    assert first.share > 0.9  # nothing else changes the accuracy
    assert first.interval[0] > second.interval[1]


def test_setting_without_effect_is_called_out(trainer: Trainer, tmp_path: Path):
    space = {"training.learning_rate": [1e-4, 1e-3], "training.weight_decay": [0.0, 0.1]}
    folder = write(tmp_path / "search", space=space, trials=None, sampler="grid")
    search(folder)
    (one,) = report.report(folder).no_effect
    assert one.settings == {"training.weight_decay": [0.0, 0.1]}
    assert one.steps == STEPS
    assert "training.weight_decay had no effect: trials 1 and 2" in report.format_report(report.report(folder))


def test_setting_that_changes_the_losses_is_not(trainer: Trainer, tmp_path: Path):
    folder = write(tmp_path / "search", space={"training.learning_rate": [1e-4, 1e-3]}, sampler="grid")
    search(folder)
    assert report.report(folder).no_effect == []


def test_search_is_extended(trainer: Trainer, tmp_path: Path):
    folder = write(tmp_path / "search", trials=3)
    before = search(folder)
    after = extend(folder, 5)
    assert len(after) == 5
    assert {number: after[number] for number in before} == before


def extend(folder: RunFolder, trials: int) -> dict[int, tuple[Any, ...]]:
    section = plan.read_plan(folder).section.model_copy(update={"trials": trials})
    plan.write_section(folder, section)
    return search(folder)


def save_weights(folder: RunFolder) -> None:
    """As the end of a run does."""
    folder.model.mkdir(exist_ok=True)
    (folder.model / "model.safetensors").write_bytes(b"")


def test_search_is_extended_after_its_winner_was_confirmed(trainer: Trainer, tmp_path: Path):
    """What is there stays as it is; a new winner gets new seeds of its own, and the models that are kept are those of the best."""
    trainer.before = save_weights
    folder = write(tmp_path / "search", trials=3, keep=1, confirm={"best": 1, "seeds": 2, "baseline": True})
    before, (first,) = search(folder), report.report(folder).confirmed
    after = extend(folder, 9)
    assert {number: after[number] for number in before} == before
    found = report.report(folder)
    best = found.trials[0].trial
    assert best != first.trial
    assert [one.trial for one in found.confirmed] == [best, first.trial]
    assert found.confirmed[1] == first
    assert [one.confirms for one in found.repeats] == [first.trial, first.trial, -1, -1, best, best]
    assert [one.state for one in found.repeats] == ["finished"] * 6
    kept = {path.parents[1].name for path in folder.trials.glob("*/model/*.safetensors")}
    assert kept == {Path(one.run).name for one in (found.trials[0], *found.repeats[-2:])}


def test_trial_whose_checkpoint_was_removed_starts_again_if_it_is_promoted_later(trainer: Trainer, tmp_path: Path):
    rates = [1e-3, 9e-4, 8e-4, 7e-4, 6e-3, 7e-3, 8e-3, 9e-3]
    space = {"training.learning_rate": rates}
    halving = {"factor": 2, "rungs": 1}
    folder = write(tmp_path / "search", space=space, sampler="grid", trials=4, keep=1, halving=halving)
    assert [state for state, *_ in search(folder).values()].count("paused") == 2
    trainer.steps = 0
    after = extend(folder, 8)
    assert [number for number, (state, *_) in after.items() if state == "finished"] == [1, 2, 3, 4]
    assert {steps for state, *_, steps in after.values() if state == "finished"} == {STEPS}
    assert trainer.steps == 2 * STEPS + sum(steps for number, (*_, steps) in after.items() if number > 4)


def test_what_could_still_be_tried_is_counted(trainer: Trainer, tmp_path: Path):
    space = {"training.learning_rate": [1e-4, 1e-3], "training.weight_decay": [0.0, 0.1]}
    folder = write(tmp_path / "search", space=space, trials=3)
    search(folder)
    assert report.report(folder).left == 1
    extend(folder, 9)
    assert report.report(folder).left == 0
    assert len(found(folder)) == 4
    assert report.report(write(tmp_path / "endless")).left is None


def reasons(folder: RunFolder, trainer: Trainer) -> list[str]:
    """Why each trial is training, as the report says while it does."""
    said = []

    def look(trial: RunFolder) -> None:
        lock = take_lock(trial.lock)
        found = report.report(folder)
        os.close(lock)
        said.extend(one.reason for one in (*found.trials, *found.repeats) if one.state == "running")

    trainer.before = look
    search(folder)
    return said


def test_reason_is_what_the_sampler_has_really_known(trainer: Trainer, tmp_path: Path):
    """Three of nine trials must have results; one has failed, so the fourth is drawn by chance as well."""
    trainer.fails = lambda values: len(trainer.started) == 2
    said = reasons(write(tmp_path / "search", sampler="tpe", trials=5), trainer)
    assert said == [
        *(f"drawn by chance: TPE did not have enough results yet ({count})" for count in (0, 1, 1, 2)),
        "proposed by TPE from the results of 3 trials",
    ]


def test_promoted_trial_is_compared_with_those_that_have_come_as_far(trainer: Trainer, tmp_path: Path):
    said = reasons(write(tmp_path / "search", trials=4, halving={"factor": 2, "rungs": 1}), trainer)
    assert said[:3] == [
        "drawn by chance",
        "drawn by chance",
        "promoted at rung 1 of 1: it is number 1 of the 2 trials that have come so far",
    ]


def test_combinations_of_a_grid_are_counted_without_the_runs_with_new_seeds(trainer: Trainer, tmp_path: Path):
    space = {"training.learning_rate": [1e-4, 1e-3], "training.weight_decay": [0.0, 0.1]}
    folder = write(tmp_path / "search", space=space, sampler="grid", trials=2, confirm={"best": 1, "seeds": 2})
    assert reasons(folder, trainer)[:2] == ["combination 1 of the grid", "combination 2 of the grid"]
    plan.write_section(folder, plan.read_plan(folder).section.model_copy(update={"trials": 3}))
    assert reasons(folder, trainer)[0] == "combination 3 of the grid"


def test_trial_that_waits_in_the_queue_is_not_called_training(trainer: Trainer, tmp_path: Path):
    folder, seen = write(tmp_path / "search", trials=1), []

    def look(trial: RunFolder) -> None:
        lock = take_lock(trial.lock)
        trial.queued.write_text("{}")
        seen.append(report.report(folder).trials[0])
        trial.queued.unlink()
        os.close(lock)

    trainer.before = look
    search(folder)
    assert [(one.state, one.reason) for one in seen] == [("queued", "drawn by chance")]


def test_cost_is_told_beside_a_full_grid(trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By the seconds that the steps took: 9 trials of 10 seconds each for 12 of 36 steps or more, beside 5 × 2."""
    monkeypatch.setattr("backend.search.trials.active_seconds", lambda found: 10.0)
    folder = write(tmp_path / "search", trials=9, halving={"factor": 3, "rungs": 1}, confirm={"best": 1, "seeds": 2})
    search(folder)
    found = report.report(folder)
    whole = [one.total_steps / one.steps * 10 for one in found.trials]
    assert found.full_seconds == pytest.approx(sum(whole))
    assert (found.combinations, found.samples) == (10, 5)
    assert found.grid_seconds == pytest.approx(10 * sum(whole) / 9)
    assert (found.seconds, found.confirmation_seconds) == (110.0, 20.0)
    words = (
        "the trials took 2 minutes, and the runs with new seeds 20 seconds; training all of these trials through would"
    )
    assert words in report.format_report(found)
    assert "a full grid of 10 trials (5 values of each continuous range) about" in report.format_report(found)


class Lab:
    """Another machine: what is asked of it, and whether it can be reached."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, list[str]]] = []
        self.failures = 0

    def start(
        self, spec: RunSpec, name: str, options: list[str], make_copy: Callable[[str, RemoteRun], RunFolder]
    ) -> RunFolder:
        if self.failures:
            self.failures -= 1
            raise NoConnection("no connection to {name}: it is off", name=name)
        self.asked.append(("start", spec.name, options))
        return make_copy(spec_file.dump(spec.model_dump(mode="json")), RemoteRun(name, f"/there/{spec.name}"))

    def resume(self, folder: RunFolder, remote: RemoteRun, options: list[str]) -> str:
        self.asked.append(("resume", Path(remote.run).name, options))
        return ""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))
    write_machines({"lab": Machine(address="me@lab")})
    found = Lab()
    monkeypatch.setattr(driver.remote_runs, "start", found.start)
    monkeypatch.setattr(driver.remote_runs, "resume", found.resume)
    monkeypatch.setattr(driver, "RECONNECT_SECONDS", 0.0)
    return found


def test_trials_start_and_continue_on_the_machine(trainer: Trainer, lab: Lab, tmp_path: Path):
    here = search(write(tmp_path / "here", trials=4, halving={"factor": 2, "rungs": 1}))
    folder = write(tmp_path / "search", trials=4, halving={"factor": 2, "rungs": 1}, machine="lab")
    assert search(folder) == here
    assert lab.asked[:3] == [
        ("start", "sentiment-trial-001", ["--pause-after", "0.5"]),
        ("start", "sentiment-trial-002", ["--pause-after", "0.5"]),
        ("resume", "sentiment-trial-002", []),
    ]
    assert {one.remote_run().machine for path in folder.trials.iterdir() if (one := RunFolder(path)).remote_run()} == {
        "lab"
    }
    assert folder.claimed_devices() in (None, frozenset())


def test_machine_that_is_off_for_a_while_costs_no_trial(trainer: Trainer, lab: Lab, tmp_path: Path):
    lab.failures = 3
    folder = write(tmp_path / "search", trials=2, machine="lab")
    assert [state for state, *_ in search(folder).values()] == ["finished"] * 2
    said = [event.message for event in landmarks(folder.events) if isinstance(event, events.Warned)]
    assert said == ["no connection to lab: it is off"]


def test_machine_that_was_forgotten_ends_the_search_before_its_first_trial(trainer: Trainer, lab: Lab, tmp_path: Path):
    folder = write(tmp_path / "search", trials=2, machine="gone")
    assert driver.run(folder) == 1
    (end,) = (event for event in landmarks(folder.events) if isinstance(event, events.RunFinished))
    assert "there is no machine gone" in end.message
    assert not lab.asked


def test_failed_trial_does_not_end_the_search(trainer: Trainer, tmp_path: Path):
    trainer.fails = lambda values: values["training"]["learning_rate"] > 1e-3
    trials = search(write(tmp_path / "search", trials=12))
    states = {state for state, *_ in trials.values()}
    assert states == {"finished", "failed"}


def test_search_whose_first_trials_all_fail_says_why(trainer: Trainer, tmp_path: Path):
    trainer.fails = lambda values: True
    folder = write(tmp_path / "search", trials=12)
    assert driver.run(folder) == 1
    (end,) = (event for event in landmarks(folder.events) if isinstance(event, events.RunFinished))
    assert end.message == "the first 3 trials failed: the loss became NaN"
    assert len(trainer.started) == 3
    trainer.fails = lambda values: False
    assert driver.run(folder) == 0
    assert sum(state == "finished" for state, *_ in found(folder).values()) == 9


def test_trial_whose_settings_do_not_go_together_fails_alone(trainer: Trainer, tmp_path: Path):
    space = {"training.schedule": ["linear", "polynomial"], "training.schedule_end": [0.0, 1.0]}
    folder = write(tmp_path / "search", space=space, sampler="grid", trials=None)
    trials = search(folder)
    assert [state for state, *_ in trials.values()].count("failed") == 1
    assert any("must be below" in one.message for one in report.report(folder).trials)
    assert search(folder) == trials


def test_search_is_no_spec_of_a_run():
    from backend.contract.spec import run_spec

    with pytest.raises(InputError, match="start it with burnish search"):
        run_spec({**base(), "search": {"space": SPACE}})


def test_report_is_plain_json(trainer: Trainer, tmp_path: Path):
    import msgspec

    folder = write(tmp_path / "search", trials=2)
    search(folder)
    found = json.loads(msgspec.json.encode(report.report(folder)))
    assert found["trials"][0].keys() >= {"settings", "metric", "state", "steps"}
    assert os.path.isabs(found["trials"][0]["run"])  # noqa: PTH117
