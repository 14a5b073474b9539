"""Tests that a run starts on another machine from a terminal, ends here with its results, and can be stopped, left and adopted."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.contract import spec_file
from backend.contract.machines import Machine, machines_file, write_machines
from backend.contract.run.folder import RunFolder, run_folders
from tests.backend.remote import clusters
from tests.backend.remote.remote_runs import Burnish, losses

Until = Callable[[Callable[[], object]], None]


# Machines


def test_machine_is_described_changed_and_forgotten(burnish: Burnish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))
    assert "there are no machines yet" in burnish("machines").stdout
    assert burnish("machines", "add", "lab", "--address", "me@lab").returncode == 0
    burnish("machines", "add", "lab", "--folder", "/scratch/me")
    assert json.loads(burnish("machines", "--json").stdout)["machines"]["lab"]["address"] == "me@lab"
    assert spec_file.read(machines_file()) == {"lab": {"address": "me@lab", "folder": "/scratch/me"}}
    burnish("machines", "remove", "lab")
    assert spec_file.parse(machines_file().read_text()) == {}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["machines", "add", "lab"], "lab: give its address, for example --address user@host"),
        (["machines", "add", "lab", "--address=-oProxyCommand=x"], "lab.address: .*write it as user@host"),
        (["machines", "add", "a b", "--address", "x"], "'a b': use letters, digits"),
        (["machines", "remove", "gone"], "there is no machine gone"),
        (["machines", "check", "gone"], "there is no machine gone"),
        (["train", "spec.yaml", "--on", "gone"], "there is no machine gone"),
        (
            [
                "search",
                "spec.yaml",
                "--on",
                "gone",
                "--set",
                "search.space={training.learning_rate: [1e-4, 1e-3]}",
                "--set",
                "search.metric=accuracy",
                "--trials",
                "2",
            ],
            "there is no machine gone",
        ),
        (["adopt", "lab"], "lab: write it as NAME:FOLDER"),
        (["adopt", "gone:run"], "there is no machine gone"),
    ],
)
@pytest.mark.usefixtures("spec")
def test_mistake_is_one_sentence(burnish: Burnish, tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str) -> None:  # fmt: skip
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))
    result = burnish(*arguments)
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert re.search(sentence, result.stderr)
    assert not runs.exists()
    assert not machines_file().exists()


def test_mistake_in_the_file_is_named(burnish: Burnish, machine: Machine) -> None:
    machines_file().write_text("lab: {address: me@lab, foldr: x}\n")
    result = burnish("machines")
    assert result.returncode == 2
    assert "lab.foldr" in result.stderr


def test_check_names_versions_folder_and_devices(burnish: Burnish, machine: Machine, place: Path) -> None:
    result = burnish("machines", "check", "lab")
    assert result.returncode == 0, result.stderr
    assert str(place) in result.stdout
    assert "device    cpu" in result.stdout


def test_machine_that_does_not_answer_leaves_nothing_behind(
    burnish: Burnish, machine: Machine, spec: Path, runs: Path, use_ssh: Callable[[str], None]
) -> None:
    use_ssh('echo "ssh: connect to host lab port 22: Connection refused" >&2; exit 255')
    result = burnish("train", spec, "--on", "lab")
    assert result.returncode == 2
    assert "no connection to lab: nothing answers there" in result.stderr.splitlines()[-1]
    assert not runs.exists()


def test_spec_that_is_refused_there_leaves_nothing_behind(
    burnish: Burnish, machine: Machine, spec: Path, runs: Path, place: Path
) -> None:
    result = burnish("train", spec, "--on", "lab", "--set", "data.columns.label=stars")
    assert result.returncode == 2
    assert "stars" in result.stderr.splitlines()[-1]
    assert list(runs.iterdir()) == []
    assert run_folders(place / "runs") == []


def test_folder_that_exists_is_refused_before_a_run_starts_there(burnish: Burnish, machine: Machine, spec: Path, tmp_path: Path, place: Path) -> None:  # fmt: skip
    result = burnish("train", spec, "--on", "lab", "--run-folder", tmp_path)
    assert result.returncode == 2
    assert "already exists" in result.stderr
    assert run_folders(place / "runs") == []


# Runs


def _check_whole_run(burnish: Burnish, runs: Path, spec: Path, place: Path, until: Until) -> None:
    here = burnish("train", spec, "--run-folder", runs / "here")
    there = burnish("train", spec, "--on", "lab", "--run-folder", runs / "there", "--json")
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    near, far = RunFolder(runs / "there"), run_folders(place / "runs")[0]
    assert losses(near) == losses(RunFolder(runs / "here"))
    assert near.predictions().read_bytes() == (runs / "here" / "predictions.csv").read_bytes()
    assert near.events.read_bytes() == far.events.read_bytes()
    assert json.loads(there.stdout.splitlines()[-1])["model"] == str(near.model)
    assert spec_file.read_run(near.spec)["data"]["train"] == str(spec.with_name("reviews.csv"))
    assert "on lab" in burnish("runs").stdout
    assert "has finished" in burnish("resume", near.path).stderr
    adopted = burnish("adopt", f"lab:{far.name}", "--run-folder", runs / "adopted", "--json")
    assert adopted.returncode == 0, adopted.stderr
    until(lambda: RunFolder(runs / "adopted").life() == "ended")
    assert losses(RunFolder(runs / "adopted")) == losses(near)
    assert (runs / "adopted" / "model" / "model.safetensors").read_bytes() == (near.model / "model.safetensors").read_bytes()  # fmt: skip


def test_run_there_equals_the_run_here(burnish: Burnish, machine: Machine, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    _check_whole_run(burnish, runs, spec, place, until)


def test_run_is_left_followed_again_stopped_continued_and_ended_at_once(burnish: Burnish, machine: Machine, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    endless = ("--set", "training.max_steps=100000", "--set", "evaluation.every=never")
    started = burnish("train", spec, "--on", "lab", "--run-folder", runs / "long", "--detach", *endless)
    assert started.returncode == 0, started.stderr
    near, far = RunFolder(runs / "long"), run_folders(place / "runs")[0]
    until(lambda: losses(near))
    assert "already running" in burnish("resume", near.path).stderr
    record = near.process_record()
    assert record
    os.kill(record.supervisor_pid, 9)  # the laptop goes
    until(lambda: near.life() == "lost")
    assert far.life() == "alive"
    assert "nothing here follows this run; burnish resume long" in burnish("stop", near.path).stderr
    changed = burnish("resume", near.path, "--set", "training.learning_rate=1e-5")
    assert changed.returncode == 2
    assert "pause it before you change it" in changed.stderr
    assert burnish("resume", near.path, "--detach").returncode == 0
    _until_it_goes_on(near, until)
    assert burnish("stop", near.path).returncode == 0
    until(lambda: near.life() == "ended")
    assert json.loads(near.events.read_text().splitlines()[-1])["state"] == "stopped"
    assert losses(near) == losses(far)
    assert (near.model / "model.safetensors").exists()
    assert burnish("resume", near.path, "--detach", "--set", "training.keep_checkpoints=3").returncode == 0
    values = spec_file.read_run(near.spec)
    assert (values["training"]["keep_checkpoints"], values["data"]["train"]) == (3, str(spec.with_name("reviews.csv")))
    _until_it_goes_on(near, until)
    assert burnish("stop", near.path, "--now").returncode == 0
    until(lambda: (far.life(), near.life()) == ("ended", "ended"))


def _until_it_goes_on(near: RunFolder, until: Until) -> None:
    steps = len(losses(near))
    until(lambda: len(losses(near)) > steps)


@pytest.mark.slow
def test_run_that_finished_while_this_computer_was_off_is_brought_here(burnish: Burnish, machine: Machine, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    assert burnish("train", spec, "--on", "lab", "--run-folder", runs / "off", "--detach").returncode == 0
    near, far = RunFolder(runs / "off"), run_folders(place / "runs")[0]
    record = near.process_record()
    assert record
    os.kill(record.supervisor_pid, 9)
    until(lambda: (near.life(), far.life()) == ("lost", "ended"))
    assert not near.model.exists()
    resumed = burnish("resume", near.path, "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert (near.model / "model.safetensors").read_bytes() == (far.model / "model.safetensors").read_bytes()
    assert json.loads(burnish("runs", "--json").stdout)[0]["state"] == "finished"
    assert len(losses(far)) == 2  # it was not continued


def _check_search(burnish: Burnish, runs: Path, spec: Path, place: Path) -> None:
    """The same search here and there: trials pause at a rung there, continue there, and are confirmed there."""
    values = spec_file.read(spec)
    values["training"] |= {"max_steps": 4, "warmup": 0}
    values["evaluation"] = {"every": 1}
    values["search"] = {
        "space": {"training.learning_rate": [1e-4, 1e-3]}, "metric": "accuracy", "trials": 2, "sampler": "random",
        "halving": {"factor": 2, "rungs": 1}, "confirm": {"best": 1, "seeds": 2},
    }  # fmt: skip
    spec.write_text(spec_file.dump(values), encoding="utf-8")
    here = burnish("search", spec, "--run-folder", runs / "here", "--json")
    there = burnish("search", spec, "--on", "lab", "--run-folder", runs / "there", "--json")
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    near, far = (json.loads(done.stdout.splitlines()[-1]) for done in (here, there))
    for entries in ("trials", "repeats"):
        own = [[(one["trial"], one["state"], one["settings"], one["metric"], one["steps"]) for one in found[entries]] for found in (near, far)]  # fmt: skip
        assert own[0] == own[1]
    assert len(run_folders(place / "runs")) == 4
    for one in far["trials"]:
        assert losses(RunFolder(one["run"])) == losses(RunFolder(runs / "here" / "trials" / Path(one["run"]).name))
        assert RunFolder(one["run"]).remote_run() is not None


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_search_there_equals_the_search_here(burnish: Burnish, machine: Machine, runs: Path, spec: Path, place: Path) -> None:  # fmt: skip
    _check_search(burnish, runs, spec, place)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_search_there_is_paused_and_continues(burnish: Burnish, machine: Machine, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    values = spec_file.read(spec)
    values["training"] |= {"max_steps": 400, "warmup": 0}
    values["evaluation"] = {"every": 200}
    values["search"] = {"space": {"training.learning_rate": [1e-4, 1e-3]}, "metric": "accuracy", "trials": 1, "sampler": "random"}  # fmt: skip
    spec.write_text(spec_file.dump(values), encoding="utf-8")
    folder, near = RunFolder(runs / "there"), RunFolder(runs / "there" / "trials" / "trial-001")
    started = burnish("search", spec, "--on", "lab", "--run-folder", folder.path, "--detach")
    assert started.returncode == 0, started.stderr
    until(lambda: losses(near))
    assert burnish("pause", folder.path).returncode == 0
    until(lambda: folder.life() == "ended")
    far = run_folders(place / "runs")[0]
    assert (far.life(), near.life()) == ("ended", "ended")
    before = len(losses(far))
    assert 0 < before < 400
    done = burnish("search", folder.path)
    assert done.returncode == 0, done.stderr
    done = burnish("search", folder.path, "--json")
    (trial,) = json.loads(done.stdout.splitlines()[-1])["trials"]
    assert (trial["state"], trial["steps"]) == ("finished", 400)
    assert len(losses(far)) == len(losses(near)) == 400  # it continued, on the machine
    assert len(run_folders(place / "runs")) == 1


# The real ssh


@pytest.fixture
def sshd(tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A real ssh server with keys of its own at a local port; `lab` is reached through it."""
    monkeypatch.setenv("PATH", os.environ["PATH"].partition(os.pathsep)[2])  # no longer the program of the test
    with clusters.sshd(tmp_path) as configuration:
        setup = f"export OMP_NUM_THREADS=1 BURNISH_CACHE='{tmp_path}/cache'"  # a real server passes no variables on
        own = {"address": "lab", "ssh_config": str(configuration), "setup": setup}
        write_machines({"lab": machine.model_copy(update=own)})
        yield


needs_sshd = pytest.mark.skipif(bool(clusters.missing("sshd")), reason=clusters.missing("sshd"))


@pytest.mark.slow
@needs_sshd
def test_real_ssh_server_runs_and_returns_a_run(burnish: Burnish, sshd: None, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    until(lambda: burnish("machines", "check", "lab").returncode == 0)
    _check_whole_run(burnish, runs, spec, place, until)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@needs_sshd
def test_real_ssh_server_trains_the_trials_of_a_search(burnish: Burnish, sshd: None, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    until(lambda: burnish("machines", "check", "lab").returncode == 0)
    _check_search(burnish, runs, spec, place)


@pytest.mark.slow
@needs_sshd
@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("known_hosts", "", "its host key is unknown"),
        ("known_hosts", "CHANGED", "its host key has changed"),
        ("authorized_keys", "", "it does not accept your key"),
    ],
)
def test_real_ssh_server_is_checked(burnish: Burnish, sshd: None, tmp_path: Path, until: Until, file: str, content: str, reason: str) -> None:  # fmt: skip
    until(lambda: burnish("machines", "check", "lab").returncode == 0)
    before = (tmp_path / file).read_text()
    changed = f"{before.split()[0]} {(tmp_path / 'client_key.pub').read_text()}" if content else ""
    (tmp_path / file).write_text(changed)
    result = burnish("machines", "check", "lab")
    assert result.returncode == 2
    assert f"no connection to lab: {reason}" in result.stderr


@pytest.mark.slow
@needs_sshd
def test_unknown_host_key_is_shown_and_accepted_by_its_fingerprint_alone(burnish: Burnish, sshd: None, tmp_path: Path, until: Until) -> None:  # fmt: skip
    until(lambda: burnish("machines", "check", "lab").returncode == 0)
    known = tmp_path / "known_hosts"
    known.write_text("")
    listed = subprocess.run(
        ["ssh-keygen", "-lf", tmp_path / "host_key.pub"], capture_output=True, text=True, check=True
    )
    fingerprint = listed.stdout.split()[1]
    shown = burnish("machines", "check", "lab")
    assert (shown.returncode, f"burnish machines trust lab --fingerprint {fingerprint}" in shown.stderr) == (2, True)
    other = burnish("machines", "trust", "lab", "--fingerprint", f"SHA256:{'A' * 43}")
    assert (other.returncode, "shows another host key" in other.stderr, known.read_text()) == (2, True, "")
    accepted = burnish("machines", "trust", "lab", "--fingerprint", fingerprint)
    assert accepted.returncode == 0, accepted.stderr
    assert "lab answers" in accepted.stdout
    assert known.read_text().split()[-1] == (tmp_path / "host_key.pub").read_text().split()[1]


@pytest.mark.slow
@needs_sshd
def test_run_continues_there_with_two_processes_and_here_with_another_engine(burnish: Burnish, sshd: None, runs: Path, spec: Path, until: Until) -> None:  # fmt: skip
    endless = ("--set", "training.max_steps=100000", "--set", "evaluation.every=never")
    assert burnish("train", spec, "--run-folder", runs / "moved", "--detach", *endless).returncode == 0
    run = RunFolder(runs / "moved")
    for place, changes in (
        ("lab", ("--set", "hardware.processes=2")),
        ("local", ("--set", "hardware.processes=1", "--engine", "jax", "--new-optimizer")),
        ("lab", ()),
    ):
        until(lambda: len(losses(run)) > 3)
        assert burnish("pause", run.path).returncode == 0
        until(lambda: run.life() != "alive")
        at = len(losses(run))
        moved = burnish("resume", run.path, "--on", place, "--detach", *changes)
        assert moved.returncode == 0, moved.stderr
        until(lambda: len(losses(run)) > at)  # noqa: B023
    assert burnish("stop", run.path).returncode == 0
    until(lambda: run.life() == "ended")
    found = [json.loads(line) for line in run.events.read_text().splitlines()]
    steps = [event["step"] for event in found if event["event"] == "StepFinished"]
    assert steps == [*range(1, len(steps) + 1)]
    engines = [
        event["engine"] for event in found if event["event"] in ("RunStarted", "RunResumed") and event.get("engine")
    ]
    assert (found[-1]["state"], [*dict.fromkeys(engines)]) == ("stopped", ["torch", "jax"])
