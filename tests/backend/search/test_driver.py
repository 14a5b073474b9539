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
from backend.contract.resources import resource
from backend.contract.run import events
from backend.contract.run.event_summary import landmarks
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder, boot_id, host_id
from backend.launchers import launcher
from backend.preflight import checks
from backend.preflight.task_facts import FittedFacts
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
        before = max(
            (event.step for event in landmarks(folder.events) if isinstance(event, events.RunFinished)), default=0
        )
        if before:
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
    def save(folder: RunFolder) -> None:
        for path in (folder.model / "model.safetensors", folder.checkpoints / "step-000004" / "weights"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")

    trainer.before = save
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
    section = plan.read_plan(folder).section.model_copy(update={"trials": 5})
    plan.write_section(folder, section)
    after = search(folder)
    assert len(after) == 5
    assert {number: after[number] for number in before} == before


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
