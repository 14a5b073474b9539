"""Tests that a run becomes a job of Ray through its Jobs API, trains in Ray's workers, and says what is wrong with a cluster."""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.machines import Machine, machines_file, write_machines
from backend.contract.processes import python_command
from backend.contract.run.folder import (
    ExitRecord,
    ProcessRecord,
    RemoteRun,
    RunFolder,
    boot_id,
    host_id,
    run_folders,
    write_json,
)
from backend.contract.run.job import SUBMITTING, JobRecord
from backend.contract.spec.section import validate
from backend.engines.hosts import OPEN
from backend.launchers import ray as ray_launcher
from backend.launchers.launcher import launcher_of
from backend.process_tree import processes
from backend.remote import ray_jobs, ray_worker, schedulers
from backend.remote.job import entrypoint
from backend.remote.ray_worker import WORKERS
from tests.backend.remote.fake_ray import FakeRay
from tests.backend.remote.remote_runs import Burnish, losses

Until = Callable[[Callable[[], object]], None]
SECRET = "0123456789abcdef"


@pytest.fixture
def ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRay]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in (ray_jobs.TOKEN, ray_jobs.TOKEN_PATH):
        monkeypatch.delenv(name, raising=False)
    fake = FakeRay(tmp_path / "cluster")
    yield fake
    fake.close()


@pytest.fixture
def cluster(
    ray: FakeRay, tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, until: Until
) -> Iterator[FakeRay]:
    """A cluster that is the machine `cluster`, and whose storage this computer sees."""
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))
    burnish = tmp_path / "burn ish"
    burnish.write_text(f'#!/bin/sh\nexec {shlex.join(python_command("backend"))} "$@"\n')
    burnish.chmod(0o755)
    write_machines({"cluster": _machine(ray, folder=str(place), command=str(burnish))})
    yield ray
    for job in ray.jobs:
        ray.stop(job)
    until(lambda: all(folder.life() != "alive" for folder in run_folders(place / "runs")))


@pytest.mark.slow
def test_run_ends_with_the_numbers_of_one_here(burnish: Burnish, cluster: FakeRay, runs: Path, spec: Path, place: Path) -> None:  # fmt: skip
    cluster.token = SECRET
    os.environ[ray_jobs.TOKEN] = SECRET
    try:
        result = burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there")
    finally:
        del os.environ[ray_jobs.TOKEN]
    assert result.returncode == 0, result.stderr
    assert burnish("train", spec, "--run-folder", runs / "here").returncode == 0
    there, here = RunFolder(runs / "there"), RunFolder(runs / "here")
    assert losses(there) == losses(here)
    assert len(losses(here)) == 2
    assert there.predictions().read_bytes() == here.predictions().read_bytes()
    assert (there.model / "model.safetensors").read_bytes() == (here.model / "model.safetensors").read_bytes()
    written = [*runs.rglob("*"), *place.rglob("*"), machines_file()]
    assert [path for path in written if path.is_file() and SECRET.encode() in path.read_bytes()] == []


@pytest.mark.slow
def test_one_of_two_workers_that_dies_costs_no_numbers(burnish: Burnish, cluster: FakeRay, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    slow = ("--set", "training.max_steps=60", "--set", "training.epochs=100", "--set", "training.checkpoint_every=5", "--set", "hardware.processes=2")  # fmt: skip
    assert burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there", "--detach", *slow).returncode == 0
    there, here = RunFolder(runs / "there"), RunFolder(runs / "here")
    until(lambda: len(losses(there)) > 10)
    far = str(run_folders(place / "runs")[0].path)
    victim = next(one for one in processes() if f"{far} --rank 1 " in " ".join(one.command))
    os.kill(victim.pid, 9)
    until(lambda: there.life() == "ended")
    assert '"code":"process_lost"' in there.events.read_text()
    assert burnish("train", spec, "--run-folder", runs / "here", *slow).returncode == 0
    assert there.predictions().read_bytes() == here.predictions().read_bytes()
    assert (there.model / "model.safetensors").read_bytes() == (here.model / "model.safetensors").read_bytes()


def test_pending_job_leaves_the_queue(burnish: Burnish, cluster: FakeRay, runs: Path, spec: Path, until: Until) -> None:
    cluster.is_held = True
    assert burnish("train", spec, "--on", "cluster", "--run-folder", runs / "job", "--detach").returncode == 0
    near = RunFolder(runs / "job")
    until(near.waits)
    record = near.job_record()
    assert record
    assert record.describe_waiting() == f"waits in Ray (job {record.job}): the cluster has not started it yet"
    assert burnish("stop", near.path).returncode == 0
    until(lambda: near.life() == "ended")
    assert cluster.jobs[record.job]["status"] == "STOPPED"


def test_check_runs_a_small_job(burnish: Burnish, cluster: FakeRay, place: Path, use_ssh: Callable[[str], None]) -> None:  # fmt: skip
    use_ssh('exec sh -c "$last"')
    assert burnish("machines", "add", "cluster", "--address", "someone@head", "--setup", "cd /").returncode == 0
    result = burnish("machines", "check", "cluster")
    assert result.returncode == 0, result.stderr
    assert "Ray 2.60.0" in result.stdout
    assert "1 node, 2 CPU" in result.stdout
    assert "its jobs run python" in result.stdout
    assert list(place.glob(".check*")) == []


@pytest.mark.parametrize(
    ("folder", "settings", "words"),
    [
        ("", {"command": "nothing-of-that-name"}, "burnish is not installed there"),
        ("/proc", {}, "may not write to"),
        ("", {"command": "./removes-the-mark"}, "has another folder"),
    ],
)
def test_what_a_job_would_meet_is_said_by_check(cluster: FakeRay, tmp_path: Path, folder: str, settings: dict[str, str], words: str) -> None:  # fmt: skip
    program = tmp_path / "removes-the-mark"
    program.write_text("#!/bin/sh\nrm -f .check-*\n")
    program.chmod(0o755)
    with pytest.raises(InputError, match=words):
        ray_jobs.check(_describe(cluster, **settings), tmp_path / folder)


def test_folder_that_the_cluster_does_not_see_is_named(cluster: FakeRay, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"does not see .*nowhere; choose a folder on storage that all of its nodes share"
    ):
        ray_jobs.check(_describe(cluster), tmp_path / "nowhere")


def _machine(ray: FakeRay, **settings: str) -> Machine:
    return validate(Machine, {"scheduler": "ray", "dashboard": ray.address, **settings}, "cluster")


def _describe(ray: FakeRay, **settings: str) -> str:
    return ray_jobs.describe_job(_machine(ray, **{"command": "true", **settings}))


def test_node_that_leaves_before_there_are_workers_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    folder = RunFolder(tmp_path)
    folder.spec.write_text(spec_file.dump({}))
    requests: list[str | None] = []

    def look() -> dict[str, int]:
        requests.append(folder.open_request())
        match len(requests):
            case 1:
                raise ConnectionError("the head restarts")
            case 3:
                write_json(tmp_path / WORKERS, {"attempt": 0})
            case 4:
                folder.clear_request("checkpoint")
            case 5:
                raise KeyboardInterrupt  # ends the thread
        return {"node": 0}

    for name, values in (("ray", {}), ("ray._private", {}), ("ray.exceptions", {"RayError": RuntimeError}), ("ray._private.state", {"state": SimpleNamespace(get_draining_nodes=look)})):  # fmt: skip
        module = ModuleType(name)
        module.__dict__.update({"__path__": [], **values})
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(ray_launcher, "NOTICE_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        ray_launcher._save_before_nodes_leave(folder, set())
    assert requests == [None, None, None, "checkpoint", None]
    assert capsys.readouterr().err == "nodes that are about to leave: the head restarts\n"


def test_launcher_of_a_job_is_the_driver_unless_the_folder_is_a_copy(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_job_record(JobRecord("burnish-0123456789ab", scheduler="ray"))
    assert launcher_of(folder).title == "Ray"
    write_json(folder.remote, asdict(RemoteRun("cluster", "/runs/x")))
    assert launcher_of(folder).title == "Another machine"


def test_job_of_ray_is_not_asked_of_another_cluster(ray: FakeRay, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_job_record(JobRecord("burnish-0123456789ab", scheduler="ray"))
    with pytest.raises(InputError, match="give the address of its dashboard"):
        schedulers.job_of(folder, "#!/bin/bash")


# The connection


def _connect(ray: FakeRay, *, address: str = "", open_cluster: bool = False) -> str:
    return ray_jobs.Cluster(ray_jobs.Description(address or ray.address, open_cluster)).connect()


def test_token_of_the_environment_or_of_ray_s_file_is_sent(ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    ray.token = SECRET
    with pytest.raises(
        InputError, match=r"asks for a token; put it into RAY_AUTH_TOKEN, or into .*auth_token with mode 600"
    ):
        _connect(ray)
    file = tmp_path / "home" / ".ray" / "auth_token"
    file.parent.mkdir(parents=True)
    file.write_text(f"{SECRET}\n")
    file.chmod(0o640)
    with pytest.raises(InputError, match="others can read this token; run: chmod 600"):
        _connect(ray)
    file.chmod(0o600)
    assert _connect(ray) == "2.60.0"
    monkeypatch.setenv(ray_jobs.TOKEN, "another")
    with pytest.raises(InputError, match="does not accept your token"):
        _connect(ray)


def test_token_is_not_sent_to_a_cluster_that_asks_for_none(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ray_jobs.TOKEN, SECRET)
    _connect(ray)
    assert ray.seen == [("GET", "/api/version", "")]


def test_redirect_is_not_followed(ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ray_jobs.TOKEN, SECRET)
    other = FakeRay(tmp_path / "other")
    ray.token, ray.answer = SECRET, (302, f"{other.address}/api/version")
    with pytest.raises(InputError, match="refuses this"):
        _connect(ray)
    assert other.seen == []
    other.close()


@pytest.mark.parametrize("version", ["2.59.1", "1.13.0", "", "x", "2"])
def test_other_version_is_refused_before_anything_is_sent(ray: FakeRay, version: str) -> None:
    ray.version = version
    with pytest.raises(InputError, match=r"but Burnish needs 2\.60 or newer"):
        _connect(ray)


@pytest.mark.parametrize("answer", [(200, "<html>"), (200, "[]"), (200, "[" * 100_000)])
def test_address_of_something_else_is_refused(ray: FakeRay, answer: tuple[int, str]) -> None:
    ray.answer = answer
    with pytest.raises(InputError, match="not one of a Ray dashboard"):
        _connect(ray)


def test_unreachable_cluster_is_said(ray: FakeRay) -> None:
    with pytest.raises(InputError, match=r"no Ray cluster answers at http://127\.0\.0\.1:1 \(Connection refused\)"):
        _connect(ray, address="http://127.0.0.1:1")


def test_open_cluster_at_a_public_address_needs_consent(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    address = _make_public(ray, monkeypatch)
    with pytest.raises(InputError, match="asks for no token, so anyone can run programs"):
        _connect(ray, address=address)
    assert _connect(ray, address=address, open_cluster=True) == "2.60.0"


def test_token_goes_to_a_public_address_only_by_https(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    address, ray.token = _make_public(ray, monkeypatch), SECRET
    monkeypatch.setenv(ray_jobs.TOKEN, SECRET)
    with pytest.raises(InputError, match="without https, where others could read the token"):
        _connect(ray, address=address)
    assert [token for *_, token in ray.seen] == [""]


@pytest.fixture
def authority(ray: FakeRay, tmp_path: Path) -> Path:
    """The cluster speaks https, with a certificate that nobody but itself has signed: this file."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    openssl = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=ray",
               "-addext", "subjectAltName=DNS:ray.example,IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]  # fmt: skip
    try:
        subprocess.run(openssl, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs the program openssl")
    ray.use_https(certificate, key)
    return certificate


def test_token_goes_by_https_to_a_cluster_whose_certificate_is_trusted(ray: FakeRay, authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    address, ray.token = _make_public(ray, monkeypatch).replace("http:", "https:"), SECRET
    monkeypatch.setenv(ray_jobs.TOKEN, SECRET)
    with pytest.raises(
        InputError, match=r"certificate .* is not trusted here \(self-signed certificate\); name the file"
    ):
        _connect(ray, address=address)
    assert ray.seen == []
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    assert _connect(ray, address=address) == "2.60.0"
    assert ray.seen[-1] == ("GET", "/api/version", f"Bearer {SECRET}")
    with pytest.raises(
        InputError, match=r"certificate .* is for another name \(Hostname mismatch.*; use the address that"
    ):
        _connect(ray, address=address.replace("ray.example", "localhost"))


def test_cluster_without_https_says_so(ray: FakeRay) -> None:
    with pytest.raises(InputError, match="does not speak https; write the address with http"):
        _connect(ray, address=ray.address.replace("http:", "https:"))


def _make_public(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> str:
    look_up = socket.getaddrinfo

    def answer(host: str, port: int | None, *more: int, **named: int):
        if host == "ray.example" and port is None:
            return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("8.8.8.8", 0))]
        return look_up("127.0.0.1" if host == "ray.example" else host, port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return ray.address.replace("127.0.0.1", "ray.example")


# What is described


@pytest.mark.parametrize(
    "dashboard",
    [
        "head:8265",
        "ray://head:10001",
        "http://",
        "http://me:secret@head:8265",
        "http://head:8265?token=1",
        "http://a b",
        "http://h:x",
    ],
)
def test_address_of_a_dashboard_is_whole_and_holds_no_secret(dashboard: str) -> None:
    with pytest.raises(InputError, match="write it as http://host:8265 or https://host, without a name or a token"):
        validate(Machine, {"scheduler": "ray", "dashboard": dashboard}, "cluster")


def test_ray_needs_a_dashboard() -> None:
    with pytest.raises(InputError, match="give the address of the Ray cluster's dashboard"):
        validate(Machine, {"scheduler": "ray"}, "cluster")


@pytest.mark.parametrize("name", ["a b", "'; touch hacked; '", '$(touch hacked) "x"', "-n"])
def test_hostile_names_stay_names_in_the_command_of_a_job(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    command = entrypoint("", "printf", folder, ["--set", name])
    printed = subprocess.run(command.replace("printf resume", r'printf "%s\\n"'), shell=True, capture_output=True, text=True, check=True)  # fmt: skip
    assert printed.stdout.splitlines() == [str(folder), "--set", name]
    assert list(tmp_path.rglob("hacked")) == []


@pytest.mark.parametrize("job", ["", "12", "../../secret", "burnish-0123456789ab/stop", "burnish-XYZ"])
def test_what_is_not_a_job_of_ours_is_not_asked_about(ray: FakeRay, job: str) -> None:
    assert ray_jobs.job_of(JobRecord(job, scheduler="ray"), _describe(ray)) is None


@pytest.mark.parametrize(
    ("state", "life", "end", "words"),
    [
        ("RUNNING", "alive", "", ""),
        ("SUCCEEDED", "ended", "", ""),
        ("STOPPED", "ended", "interrupted", "its job was stopped in Ray"),
        ("FAILED", "ended", "", "burnish: no such file"),
        ("", "ended", "interrupted", "Ray does not know its job any longer"),
    ],
)
def test_reason_of_an_end(ray: FakeRay, tmp_path: Path, state: str, life: str, end: str, words: str) -> None:
    folder, record = RunFolder(tmp_path), JobRecord("burnish-0123456789ab", scheduler="ray")
    folder.spec.write_text(spec_file.dump({}))
    if state:
        ray.jobs[record.job] = {"status": state}
        (tmp_path / "cluster" / f"{record.job}.log").write_text("started\nburnish: no such file\n\n")
    job = ray_jobs.job_of(record, _describe(ray))
    assert job
    assert job.life(folder) == life
    assert (job.end(folder)[0], words in job.end(folder)[1]) == (end, True)


def test_cluster_that_does_not_answer_ends_nothing(ray: FakeRay, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.spec.write_text(spec_file.dump({}))
    description = _describe(ray, dashboard="http://127.0.0.1:1")
    job = ray_jobs.job_of(JobRecord("burnish-0123456789ab", scheduler="ray"), description)
    assert job
    assert job.life(folder) == "alive"


@pytest.mark.parametrize("answer", [(500, "Traceback"), (503, ""), (429, ""), (200, "<html>")])
def test_answer_that_says_nothing_of_the_job_ends_nothing(ray: FakeRay, tmp_path: Path, answer: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(ray_jobs, "POLL_SECONDS", 0.0)
    folder, record = RunFolder(tmp_path), JobRecord("burnish-0123456789ab", scheduler="ray")
    folder.spec.write_text(spec_file.dump({}))
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 1, 0.0))
    ray.jobs[record.job] = {"status": "RUNNING"}
    job = ray_jobs.job_of(record, _describe(ray))
    assert job
    for answered in (None, *[answer] * (ray_jobs.MAX_UNANSWERED - 1), None, answer):
        ray.answer = answered
        assert job.life(folder) == "alive"


def test_job_of_which_nothing_was_heard_is_found_and_not_submitted_twice(ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(ray_jobs, "POLL_SECONDS", 0.0)
    ray.is_held = ray.falls_silent = True
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    with pytest.raises(InputError, match="the dashboard restarts"):
        ray_jobs.submit(folder, _describe(ray), [])
    record = folder.job_record()
    assert record
    assert (record.state, [*ray.jobs]) == (SUBMITTING, [record.job])
    ray.answer = None
    ray_jobs.submit(folder, _describe(ray), [])
    assert (folder.job_record(), [*ray.jobs]) == (JobRecord(record.job, scheduler="ray"), [record.job])


def test_job_that_was_taken_before_its_answer_was_lost_is_not_refused(ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """The cluster refuses the second request, because it has a job of that number."""
    monkeypatch.setattr(ray_jobs, "POLL_SECONDS", 0.0)
    ray.is_held = True
    cluster = ray_jobs.Cluster(ray_jobs.Description(ray.address))
    for _ in range(2):
        cluster.submit("burnish-0123456789ab", "true", "x")
    assert len(ray.jobs) == 1


def test_token_that_is_refused_in_the_middle_of_a_run_is_said_and_read_again(ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(ray_jobs, "POLL_SECONDS", 0.0)
    monkeypatch.setenv(ray_jobs.TOKEN, SECRET)
    ray.token, record = SECRET, JobRecord("burnish-0123456789ab", scheduler="ray")
    folder = RunFolder(tmp_path)
    folder.spec.write_text(spec_file.dump({}))
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 1, 0.0))
    ray.jobs[record.job] = {"status": "RUNNING"}
    job = ray_jobs.job_of(record, _describe(ray))
    assert job
    assert (job.life(folder), job.trouble) == ("alive", "")
    ray.token = "renewed-0123"
    assert [job.life(folder) for _ in range(ray_jobs.MAX_UNANSWERED + 1)] == ["alive"] * (ray_jobs.MAX_UNANSWERED + 1)
    assert "does not accept your token; put the right one into" in job.trouble
    monkeypatch.setenv(ray_jobs.TOKEN, ray.token)
    assert (job.life(folder), job.trouble) == ("alive", "")
    ray.token = "renewed-again"
    assert (job.life(folder), bool(job.trouble)) == ("alive", True)
    folder.write_exit_record(ExitRecord(1, 0, 0.0))
    assert job.life(folder) == "ended"


def _error_of_ray(name: str, **values: object) -> Exception:
    kind = type(name, (Exception,), {"__module__": "ray.exceptions"})
    error = kind()
    error.__dict__.update(values)
    return error


@pytest.mark.parametrize(
    ("failures", "rank", "killed_by"),
    [
        ({0: ChildProcessError(1, ""), 1: _error_of_ray("OutOfMemoryError")}, 1, "memory"),
        ({0: ChildProcessError(1, ""), 1: _error_of_ray("Wrapped", health_check_failure=_error_of_ray("OutOfMemoryError"))}, 1, "memory"),
        ({0: ChildProcessError(1, ""), 1: _error_of_ray("ActorDiedError", preempted=True)}, 1, "preemption"),
        ({0: ChildProcessError(1, ""), 1: _error_of_ray("ActorDiedError", preempted=False)}, 1, "node"),
        ({0: _error_of_ray("ActorDiedError", preempted=False), 1: ChildProcessError(-9, "memory")}, 1, "memory"),
    ],
)  # fmt: skip
def test_first_death_is_told_and_not_the_one_that_it_caused(failures: dict[int, Exception], rank: int, killed_by: str) -> None:  # fmt: skip
    found, death = ray_launcher._find_death(failures)
    assert (found, death.returncode, death.killed_by, death.is_elsewhere) == (rank, -9, killed_by, True)


@pytest.mark.parametrize("kind", [FileNotFoundError, PermissionError])
def test_what_a_node_lacks_is_told_as_the_node_says_it(kind: type[OSError]) -> None:
    rank, death = ray_launcher._find_death({1: kind(ray_worker.MISSING, "the node two does not see /nfs/run")})
    assert (rank, death.returncode, death.sentence) == (1, 1, "the node two does not see /nfs/run")


def test_node_that_is_gone_after_a_notice_was_taken_back() -> None:
    gone = {0: _error_of_ray("ActorDiedError", preempted=False)}
    assert ray_launcher._find_death(gone, had_notice=True)[1].killed_by == "preemption"


@pytest.mark.parametrize(("host", "is_open", "is_refused"), [("8.8.8.8", False, True), ("8.8.8.8", True, False), ("127.0.0.1", False, False)])  # fmt: skip
def test_nodes_meet_at_a_public_address_only_with_consent(monkeypatch: pytest.MonkeyPatch, host: str, is_open: bool, is_refused: bool) -> None:  # fmt: skip
    package = ModuleType("ray")
    package.__dict__["util"] = SimpleNamespace(get_node_ip_address=lambda: host)
    monkeypatch.setitem(sys.modules, "ray", package)
    if is_refused:
        with pytest.raises(PermissionError, match=r"8\.8\.8\.8, which can be reached from everywhere"):
            ray_worker._free_port(is_one_node=False, is_open=is_open)
    else:
        with suppress(OSError):  # it is not an address of this computer
            assert ray_worker._free_port(is_one_node=False, is_open=is_open).startswith(host)


def test_consent_to_an_open_cluster_reaches_its_jobs(ray: FakeRay, tmp_path: Path) -> None:
    ray.is_held = True
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    described = ray_jobs.describe_job(validate(Machine, {"scheduler": "ray", "dashboard": ray.address, "open_cluster": True}, "x"))  # fmt: skip
    ray_jobs.submit(folder, described, [])
    assert f"export {OPEN}=1" in next(iter(ray.jobs.values()))["entrypoint"]


def test_run_is_lost_if_its_cluster_and_its_driver_are_gone(ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(ray_jobs, "POLL_SECONDS", 0.0)
    folder = RunFolder(tmp_path)
    folder.spec.write_text(spec_file.dump({}))
    folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 1, 0.0))
    record = JobRecord("burnish-0123456789ab", scheduler="ray")
    job = ray_jobs.job_of(record, _describe(ray, dashboard="http://127.0.0.1:1"))
    assert job
    lives = [job.life(folder) for _ in range(ray_jobs.MAX_UNANSWERED)]
    assert lives == ["alive"] * (ray_jobs.MAX_UNANSWERED - 1) + ["lost"]
    ray.jobs[record.job] = {"status": "FAILED"}
    job = ray_jobs.job_of(record, _describe(ray))
    assert job
    assert job.life(folder) == "lost"
    folder.write_exit_record(ExitRecord(1, 1, 0.0))
    assert job.life(folder) == "ended"
