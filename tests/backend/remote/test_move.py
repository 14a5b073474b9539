"""Tests that a run moves to another machine and back: whole on one side at every moment, and with the numbers of one that stayed."""

import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import jax
import pytest

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.machines import Machine
from backend.contract.run.folder import RunFolder, run_folders
from backend.contract.run.lock import hold_lock, take_lock
from backend.engines.jax import checkpoints
from backend.preflight.datasets import ignore_progress
from backend.remote import agent, connection, move, protocol, store
from tests import in_process
from tests.backend.remote.remote_runs import Burnish, losses, write_spec

Until = Callable[[Callable[[], object]], None]
STEPS = ("--set", "training.max_steps=40", "--set", "evaluation.every=20", "--set", "training.keep_checkpoints=2")


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that was paused after a few of its steps, one that nothing disturbed, and their data."""
    home = tmp_path_factory.mktemp("origin")
    spec = str(write_spec(home))
    for name in ("paused", "undisturbed"):
        environment = {**os.environ, "BURNISH_RUNS": str(home / name)}

        def train(environment: dict[str, str] = environment) -> None:
            done = in_process.call(["train", spec, *STEPS], home, environment)
            assert done.returncode == 0, done.stderr

        if name == "paused":
            with in_process.at_the_first_step(home / name, lambda folder: folder.request("pause")):
                train()
        else:
            train()
    return home


@pytest.fixture
def paused(origin: Path, machine: Machine, runs: Path) -> RunFolder:
    """A run here that was paused."""
    [folder] = run_folders(origin / "paused")
    assert 0 < len(losses(folder)) < 40
    shutil.copytree(folder.path, runs / folder.name)
    return RunFolder(runs / folder.name)


def _move(folder: RunFolder, place: str) -> None:
    move.move(folder, place, move.Reports(*[ignore_progress] * 3))


def _names(place: Path, room: str) -> list[str]:
    return [path.name for path in (place / room).iterdir()]


def _check_same(origin: Path, moved: RunFolder) -> None:
    """It ended with the numbers of the run that nothing disturbed."""
    [undisturbed] = run_folders(origin / "undisturbed")
    assert losses(moved) == losses(undisturbed)
    assert moved.predictions().read_bytes() == undisturbed.predictions().read_bytes()
    weights = Path("model", "model.safetensors")
    assert (moved.path / weights).read_bytes() == (undisturbed.path / weights).read_bytes()


def test_run_that_went_there_and_back_ends_with_the_same_numbers(
    burnish: Burnish, paused: RunFolder, origin: Path, place: Path
) -> None:
    before = paused.events.read_bytes()
    _move(paused, "lab")
    remote = paused.remote_run()
    assert remote
    assert (remote.machine, Path(remote.run).name) == ("lab", paused.name)
    shutil.rmtree(paused.checkpoints)  # what counts is what is there
    _move(paused, "local")
    assert paused.remote_run() is None
    assert paused.events.read_bytes() == before
    assert (_names(place, "runs"), _names(place, "moving")) == ([], [])
    assert json.loads(burnish("runs", "--json").stdout)[0]["state"] == "paused"
    resumed = burnish("resume", paused.path)
    assert resumed.returncode == 0, resumed.stderr
    _check_same(origin, paused)


@pytest.mark.slow
def test_run_continues_there_and_finishes_here(
    burnish: Burnish, paused: RunFolder, origin: Path, place: Path, until: Until
) -> None:
    at = len(losses(paused))
    there = burnish("resume", paused.path, "--on", "lab", "--detach")
    assert there.returncode == 0, there.stderr
    until(lambda: len(losses(paused)) > at)
    assert "on lab" in burnish("runs").stdout
    burnish("pause", paused.path)
    until(lambda: paused.life() != "alive")
    [far] = run_folders(place / "runs")
    assert losses(far) == losses(paused)
    done = burnish("resume", paused.path, "--on", "local")
    assert (done.returncode == 0) or "has finished" in done.stderr, done.stderr
    _check_same(origin, paused)


@pytest.mark.parametrize("boundary", ["prepare_upload", "write_state"])
def test_move_that_was_killed_before_it_was_recorded_leaves_the_run_here(
    paused: RunFolder, place: Path, monkeypatch: pytest.MonkeyPatch, burnish: Burnish, boundary: str
) -> None:
    _kill_at(monkeypatch, boundary, lambda: _move(paused, "lab"))
    assert paused.remote_run() is None
    assert run_folders(place / "runs") == []
    assert "is not a run folder there" in burnish("adopt", f"lab:{paused.name}").stderr
    _move(paused, "lab")
    assert _names(place, "moving") == [paused.name]  # what the first had left is replaced
    _connect()
    assert _names(place, "moving") == [paused.name]  # it is needed


@pytest.mark.parametrize("boundary", ["fetch", "keep_started"])
def test_return_that_was_killed_before_it_was_recorded_leaves_the_run_there(
    paused: RunFolder, place: Path, monkeypatch: pytest.MonkeyPatch, boundary: str
) -> None:
    _move(paused, "lab")
    _kill_at(monkeypatch, boundary, lambda: _move(paused, "local"))
    assert paused.remote_run()
    assert _names(place, "runs") + _names(place, "moving") == [paused.name]
    _move(paused, "local")
    assert paused.remote_run() is None
    assert _names(place, "runs") + _names(place, "moving") == []


def test_return_that_was_killed_after_it_was_recorded_leaves_nothing_that_could_run_there(
    paused: RunFolder, place: Path, monkeypatch: pytest.MonkeyPatch, burnish: Burnish
) -> None:
    _move(paused, "lab")
    _kill_at(monkeypatch, "forget_state", lambda: _move(paused, "local"))
    assert paused.remote_run() is None
    assert _names(place, "moving") == [paused.name]
    _connect()
    assert _names(place, "moving") == []
    assert run_folders(place / "runs") == []
    assert "is not a run folder there" in burnish("adopt", f"lab:{paused.name}").stderr


def test_what_a_move_that_failed_has_left_there_is_removed_by_the_next_connection(
    paused: RunFolder, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kill_at(monkeypatch, "write_state", lambda: _move(paused, "lab"))
    (place / "moving" / "of another").mkdir()
    (place / "moving" / "of another" / "spec.yaml").touch()
    old, new = place / "moving" / f"{store.SCRATCH}old", place / "data" / f"{store.SCRATCH}new"
    for folder, age in ((old, store.KEPT_SECONDS + 60), (new, 60.0)):
        folder.mkdir()
        os.utime(folder, (time.time() - age, time.time() - age))
    with hold_lock(paused.lock):  # somebody here is moving it
        _connect()
    assert sorted(_names(place, "moving")) == [paused.name, "of another"]
    _connect()
    assert (_names(place, "moving"), new.exists()) == (["of another"], True)


def _connect() -> None:
    with connection.connect_by_name("lab"):
        pass


def _kill_at(monkeypatch: pytest.MonkeyPatch, boundary: str, act: Callable[[], None]) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(move.upload if boundary == "prepare_upload" else move, boundary, die)
        with pytest.raises(KeyboardInterrupt):
            act()


def test_agent_is_not_silent_while_it_copies_a_large_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PIECE", 10)
    monkeypatch.setattr(agent, "BEAT_SECONDS", 0.0)
    for room in ("files", "moving", "runs"):
        (tmp_path / room).mkdir()
    content = spec_file.dump({"name": "x" * 400}).encode()
    digest = hashlib.sha256(content).hexdigest()
    (tmp_path / "files" / digest).write_bytes(content)
    said = io.BytesIO()
    asked = protocol.Receive(name="run", origin="here", files={"spec.yaml": digest}, trees={})
    agent._Agent(tmp_path, io.BytesIO(), said)._receive(asked)
    kinds = [json.loads(line)["message"] for line in said.getvalue().splitlines()]
    assert kinds.count("Alive") >= len(content) // 10
    assert kinds[-1] == "Started"
    assert (tmp_path / "moving" / "run" / "spec.yaml").read_bytes() == content


def test_agent_is_not_silent_while_a_large_file_is_written_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(os, "fsync", lambda descriptor: time.sleep(0.2))
    asked, said = io.BytesIO(), io.BytesIO()
    digest = hashlib.sha256(b"content").hexdigest()
    protocol.send(asked, protocol.PutPiece(digest=digest, offset=0, total=7), b"content")
    with pytest.raises(protocol.ConnectionLost):
        agent._Agent(tmp_path, io.BytesIO(asked.getvalue()), said).serve()
    kinds = [json.loads(line)["message"] for line in said.getvalue().splitlines()[1:]]
    assert kinds.count("Alive") >= 3
    assert (tmp_path / "files" / digest).read_bytes() == b"content"


def test_adopted_run_moves_here_only_with_files_that_the_user_names(burnish: Burnish, paused: RunFolder, place: Path, runs: Path, until: Until) -> None:  # fmt: skip
    own = spec_file.read_run(paused.spec)
    _move(paused, "lab")
    (place / "moving" / paused.name).rename(place / "runs" / paused.name)
    adopted = runs / "adopted"
    assert burnish("adopt", f"lab:{paused.name}", "--run-folder", adopted).returncode == 0
    until(lambda: RunFolder(adopted).life() == "ended")
    refused = burnish("resume", adopted, "--on", "local")
    assert refused.returncode == 2
    assert "its spec comes from lab and names files as they are called there; name yours: burnish resume adopted --on local --set model.name_or_path=FILE" in refused.stderr  # fmt: skip
    assert _names(place, "runs") == [paused.name]
    files = [f"--set={key}={value}" for key, value in (("model.name_or_path", own["model"]["name_or_path"]), ("data.train", own["data"]["train"]))]  # fmt: skip
    moved = burnish("resume", adopted, "--on", "local", "--detach", *files)
    assert moved.returncode == 0, moved.stderr
    assert spec_file.read_run(RunFolder(adopted).spec)["data"]["train"] == own["data"]["train"]
    burnish("stop", adopted, "--now")


def test_files_of_a_checkpoint_of_jax_cross_the_connection(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    checkpoints.save(folder.checkpoint(5), checkpoints.SavedState({"w": jax.numpy.ones(3)}, []))()
    files = [path.relative_to(tmp_path).as_posix() for path in folder.checkpoints.rglob("*") if path.is_file()]
    assert files
    assert [name for name in files if not (protocol.is_copied(name) and protocol.is_moved(name))] == []


def test_two_runs_of_one_name_stay_apart(paused: RunFolder, place: Path, tmp_path: Path) -> None:
    other = RunFolder(tmp_path / "elsewhere" / paused.name)
    shutil.copytree(paused.path, other.path)
    for folder in (paused, other):
        _move(folder, "lab")
    places = [Path(remote.run).name for folder in (paused, other) if (remote := folder.remote_run())]
    assert places == [paused.name, f"{paused.name}-2"]


def test_running_run_is_not_moved(paused: RunFolder, place: Path) -> None:
    lock = take_lock(paused.lock)
    with pytest.raises(InputError, match="pause it before you move it"):
        _move(paused, "lab")
    os.close(lock)
    _move(paused, "lab")
    there = place / "moving" / paused.name
    there.rename(place / "runs" / paused.name)
    lock = take_lock(RunFolder(place / "runs" / paused.name).lock)
    with pytest.raises(InputError, match="pause it before you move it"):
        _move(paused, "local")
    os.close(lock)
    assert paused.remote_run()


def test_run_whose_data_are_not_here_stays_there(paused: RunFolder) -> None:
    _move(paused, "lab")
    paused.spec.write_text(paused.spec.read_text().replace("reviews.csv", "gone.csv"))
    with pytest.raises(InputError, match=r"data\.train: .*does not exist"):
        _move(paused, "local")
    assert paused.remote_run()


def test_specs_name_the_files_of_the_side_that_has_the_run(paused: RunFolder, place: Path) -> None:
    here = spec_file.read_run(paused.spec)["data"]["train"]
    _move(paused, "lab")
    there = RunFolder(place / "moving" / paused.name)
    for path in (there.spec, there.started_spec):
        values = spec_file.read_run(path)
        assert Path(values["data"]["train"]).is_relative_to(place)
        assert Path(values["model"]["name_or_path"], "config.json").is_file()
    _move(paused, "local")
    assert spec_file.read_run(paused.spec)["data"]["train"] == here


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--on", "gone"], "there is no machine gone; you have lab"),
        (["--on", "local", "--set", "training.learning_rate=1"], "a resumed run can only change"),
    ],
)
def test_mistake_is_one_sentence(burnish: Burnish, paused: RunFolder, arguments: list[str], sentence: str) -> None:
    result = burnish("resume", paused.path, *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr.splitlines()[-1]
    assert paused.remote_run() is None
