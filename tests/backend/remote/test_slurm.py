"""Tests that a run becomes a job of Slurm, shows why it waits, survives its time limit, and says why it was ended."""

import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.machines import Machine, write_machines
from backend.contract.processes import python_command
from backend.contract.run.folder import ProcessRecord, RunFolder, run_folders, write_json
from backend.contract.run.job import JobRecord
from backend.contract.spec.section import validate
from backend.remote import agent, mirror, protocol, slurm
from tests.backend.remote.fake_slurm import FakeSlurm
from tests.backend.remote.remote_runs import Burnish, losses, make_machine

Until = Callable[[Callable[[], object]], None]
pytestmark = pytest.mark.skipif(shutil.which("setsid") is None, reason="needs the program setsid")
ENDLESS = ("--set", "training.max_steps=100000", "--set", "evaluation.every=never")
_PROGRAM = """
import runpy, sys
from backend.remote import slurm
slurm.POLL_SECONDS = 0.2
runpy.run_module("backend", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def cluster(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, until: Until) -> Iterator[FakeSlurm]:
    """A cluster with this computer as its login node, which is the machine `cluster`."""
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))
    fake = FakeSlurm(tmp_path / "slurm")
    monkeypatch.setenv("PATH", f"{tmp_path / 'slurm'}{os.pathsep}{os.environ['PATH']}")
    python = python_command("")[0]
    burnish = tmp_path / "burn ish"
    burnish.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(Path.cwd()))} exec {python} -c {shlex.quote(_PROGRAM)} "$@"\n'
    )
    burnish.chmod(0o755)
    write_machines(
        {"cluster": make_machine(scheduler="slurm", folder=str(place), command=str(burnish), time="1:00:00")}
    )
    yield fake
    subprocess.run(["scancel", "1"], check=True)
    until(lambda: all(folder.life() != "alive" for folder in run_folders(place / "runs")))


def _start(burnish: Burnish, spec: Path, runs: Path, *options: str) -> RunFolder:
    started = burnish("train", spec, "--on", "cluster", "--run-folder", runs / "job", "--detach", *options)
    assert started.returncode == 0, started.stderr
    return RunFolder(runs / "job")


def _line(burnish: Burnish) -> dict[str, object]:
    return json.loads(burnish("runs", "--json").stdout)[0]


# Runs


def test_pending_job_says_why_and_leaves_the_queue(burnish: Burnish, cluster: FakeSlurm, runs: Path, spec: Path, until: Until) -> None:  # fmt: skip
    cluster.hold()
    near = _start(burnish, spec, runs)
    until(near.waits)
    line = _line(burnish)
    assert line["state"] == "queued"
    assert line["message"] == "waits in Slurm (job 1): no free resources yet; expected to start at 2026-11-27 15:30"
    assert "there is nothing to save yet" in burnish("checkpoint", near.path).stderr
    assert "it leaves the queue" in burnish("stop", near.path).stdout
    until(lambda: near.life() == "ended")
    assert (_line(burnish)["state"], cluster.state) == ("stopped", "CANCELLED")


def test_job_whose_submission_timed_out_is_found_and_not_submitted_twice(burnish: Burnish, cluster: FakeSlurm, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    cluster.hold()
    cluster.lose_answers()
    near = _start(burnish, spec, runs)
    until(near.waits)
    [far] = run_folders(place / "runs")
    assert (far.job_record(), near.job_record()) != (None, None)
    far.write_job_record(JobRecord(""))  # the login node went down between the submission and its record
    slurm.submit(far, "#!/bin/sh\n", ())
    assert far.job_record() == JobRecord("1")
    burnish("stop", near.path)
    until(lambda: near.life() == "ended")


@pytest.mark.slow
def test_request_before_the_engine_lives_is_not_lost_and_another_job_continues_until_it_is_cancelled(burnish: Burnish, cluster: FakeSlurm, runs: Path, spec: Path, until: Until) -> None:  # fmt: skip
    near = _start(burnish, spec, runs, *ENDLESS)
    until(lambda: (record := near.job_record()) and record.state == "running")
    assert not losses(near)
    assert burnish("pause", near.path).returncode == 0
    until(lambda: near.life() == "ended")
    assert _line(burnish)["state"] == "paused"
    steps = len(losses(near))
    assert burnish("resume", near.path, "--detach", "--set", "hardware.micro_batch_size=4").returncode == 0
    until(lambda: len(losses(near)) > steps)
    until(lambda: spec_file.read_run(near.spec)["hardware"]["micro_batch_size"] == 4)  # the job has changed it
    assert burnish("stop", near.path, "--now").returncode == 0
    until(lambda: near.life() == "ended")
    assert (_line(burnish)["state"], cluster.state) == ("interrupted", "CANCELLED")


@pytest.mark.slow
def test_job_that_is_queued_again_while_its_mirror_is_killed_ends_with_the_numbers_of_one_that_is_not(burnish: Burnish, cluster: FakeSlurm, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    longer = ("--set", "training.max_steps=100", "--set", "training.epochs=100", "--set", "evaluation.every=never")
    near = _start(burnish, spec, runs, *longer)
    until(lambda: len(losses(near)) > 3)
    cluster.hold()
    cluster.warn()
    until(near.waits)
    assert near.life() == "alive"
    assert len(losses(near)) < 100
    record = near.process_record()
    assert record
    os.kill(record.supervisor_pid, 9)  # the mirror goes too, and follows the same job again
    until(lambda: near.life() == "lost")
    cluster.release()
    until(lambda: cluster.state == "COMPLETED")
    assert burnish("resume", near.path).returncode == 0
    assert (_line(burnish)["state"], run_folders(place / "runs")[0].job_record()) == ("finished", JobRecord("1"))
    assert burnish("train", spec, "--run-folder", runs / "here", *longer).returncode == 0
    here = RunFolder(runs / "here")
    assert losses(near) == losses(here)
    assert near.predictions().read_bytes() == here.predictions().read_bytes()
    assert (near.model / "model.safetensors").read_bytes() == (here.model / "model.safetensors").read_bytes()
    assert '"event":"RunResumed"' in near.events.read_text()
    ours, theirs = spec_file.read_run(here.spec), spec_file.read_run(near.spec)
    assert {key: ours[key] == theirs[key] for key in ours if key != "name"} == dict.fromkeys(
        ours.keys() - {"name"}, True
    )


def test_limit_before_the_first_checkpoint_is_not_tried_again(burnish: Burnish, cluster: FakeSlurm, runs: Path, spec: Path, place: Path, until: Until) -> None:  # fmt: skip
    near = _start(burnish, spec, runs, *ENDLESS)
    log = run_folders(place / "runs")[0].path / "job-1.log"
    until(lambda: log.exists() and "Ctrl-C stops it" in log.read_text())  # from then on it handles the signal
    cluster.warn()
    until(lambda: near.life() == "ended")
    line = _line(burnish)
    assert (line["state"], line["step"], cluster.state) == ("interrupted", 0, "FAILED")
    assert "the time limit came before a new checkpoint" in str(line["message"])


def test_request_to_stop_outlives_a_job_that_is_queued_again(cluster: FakeSlurm, tmp_path: Path, place: Path, until: Until) -> None:  # fmt: skip
    far, near = RunFolder(place / "runs" / "reviews"), RunFolder(tmp_path / "runs" / "reviews")
    for folder in (far, near):
        folder.path.mkdir(parents=True)
        folder.spec.write_text("model: {name_or_path: bert, tokenizer: null}\ndata: {}\n")
    far.write_process_record(ProcessRecord(1, "node", "boot", 1, 1, 1.0))
    far.write_job_record(JobRecord("1"))
    write_json(near.remote, {"machine": "cluster", "run": str(far.path)})
    cluster.state = "RUNNING"
    copying = threading.Thread(target=mirror.run, args=(near,), daemon=True)
    copying.start()
    near.request("stop")
    until(lambda: far.open_request() == "stop")
    far.clear_requests()  # the node failed, and the next attempt knows nothing of it
    cluster.state = "PENDING"
    until(lambda: not copying.is_alive())
    assert cluster.state == "CANCELLED"
    assert '"state":"stopped"' in near.events.read_text()


def test_mistake_in_the_spec_is_the_reason_of_the_end(burnish: Burnish, cluster: FakeSlurm, runs: Path, spec: Path) -> None:  # fmt: skip
    ended = burnish("train", spec, "--on", "cluster", "--set", "data.columns.label=stars")
    assert ended.returncode == 1
    assert "stars" in ended.stderr.splitlines()[-1]


def test_job_that_slurm_refuses_leaves_nothing_behind(burnish: Burnish, cluster: FakeSlurm, runs: Path, spec: Path, place: Path) -> None:  # fmt: skip
    assert burnish("machines", "add", "cluster", "--partition", "nope").returncode == 0
    for arguments in (("machines", "check", "cluster"), ("train", spec, "--on", "cluster")):
        result = burnish(*arguments)
        assert result.returncode == 2
        assert "cluster: Slurm has no partition nope; it has debug, gpu" in result.stderr.splitlines()[-1]
    assert list(runs.iterdir()) == []
    assert list((place / "runs").iterdir()) == []


def test_check_names_the_partitions(burnish: Burnish, cluster: FakeSlurm) -> None:
    result = burnish("machines", "check", "cluster")
    assert result.returncode == 0, result.stderr
    assert "partition debug, 1 node, up to infinite" in result.stdout
    assert "partition gpu, 4 nodes, gpu:a100:2, up to 1-00:00:00" in result.stdout
    assert "Job 1 to start at 2026-11-27T15:00:00" in result.stdout


def test_login_node_is_reached_over_ssh(burnish: Burnish, cluster: FakeSlurm, use_ssh: Callable[[str], None]) -> None:
    use_ssh('exec sh -c "$last"')
    burnish("machines", "add", "cluster", "--address", "me@login", "--setup", "export SETUP=done")
    assert "partition debug" in burnish("machines", "check", "cluster").stdout
    use_ssh('echo "ssh: connect to host login port 22: Connection refused" >&2; exit 255')
    assert "no connection to cluster: nothing answers there" in burnish("machines", "check", "cluster").stderr


def test_machine_without_slurm_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="there is no sbatch there; choose a login node"):
        slurm.check("")


# Ends


@pytest.mark.parametrize(
    ("state", "end", "words"),
    [
        ("TIMEOUT", "interrupted", "at the time limit"),
        ("OUT_OF_MEMORY", "", "more memory than Slurm gave it"),
        ("NODE_FAIL", "interrupted", "node of its job failed"),
        ("PREEMPTED", "interrupted", "another job took its place"),
        ("CANCELLED", "interrupted", "was cancelled in Slurm"),
        ("FAILED", "", "bash: line 9: modul: command not found"),
    ],
)
def test_reason_of_an_end(cluster: FakeSlurm, tmp_path: Path, state: str, end: str, words: str) -> None:
    folder = RunFolder(tmp_path)
    (tmp_path / "job-7.log").write_text("hello\nbash: line 9: modul: command not found\n\n")
    cluster.state = state
    job = slurm.SlurmJob(JobRecord("7"))
    job.poll()
    assert job.has_ended
    assert job.end(folder)[0] == end
    assert words in job.end(folder)[1]
    cluster.state = "COMPLETED"


def test_job_that_slurm_has_forgotten_has_ended(cluster: FakeSlurm, tmp_path: Path) -> None:
    job = slurm.SlurmJob(JobRecord("7"))
    job.poll()
    assert job.has_ended
    assert "does not know its job" in job.end(RunFolder(tmp_path))[1]


def test_slurm_that_does_not_answer_ends_nothing(cluster: FakeSlurm, tmp_path: Path) -> None:
    (tmp_path / "slurm" / "squeue").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n")
    job = slurm.SlurmJob(JobRecord("7"))
    job.poll()
    assert not job.has_ended


@pytest.mark.parametrize("time", [1e300, -1e300, float("nan"), float("inf")])
def test_record_of_a_stranger_is_still_described(time: float) -> None:
    record = JobRecord("7" * 1000, "pending", "x" * 10_000, time, time)
    assert len(record.describe_waiting()) < 300
    assert record.describe_running() == f"Slurm job {'7' * 100}"


def test_job_has_ended_without_the_program_sacct(cluster: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    (tmp_path / "slurm" / "sacct").unlink()
    monkeypatch.setenv("PATH", f"{tmp_path / 'slurm'}{os.pathsep}/nowhere")
    (tmp_path / "slurm" / "squeue").write_text("#!/bin/sh\necho 'Invalid job id specified' >&2; exit 1\n")
    job = slurm.SlurmJob(JobRecord("7"))
    job.poll()
    assert job.has_ended


@pytest.mark.parametrize("words", ["Welcome to the cluster", "RUNNING|None", "a|b|c|d|e"])
def test_nonsense_from_squeue_ends_nothing(cluster: FakeSlurm, tmp_path: Path, words: str) -> None:
    (tmp_path / "slurm" / "squeue").write_text(f"#!/bin/sh\necho '{words}'\n")
    job = slurm.SlurmJob(JobRecord("7"))
    job.poll()
    assert not job.has_ended


@pytest.mark.parametrize("number", ["", "--user=me", "7 8", "Submitted"])
def test_what_is_not_a_number_is_not_a_job(cluster: FakeSlurm, tmp_path: Path, number: str) -> None:
    folder = RunFolder(tmp_path)
    folder.write_job_record(JobRecord(number))
    assert slurm.job_of(folder) is None
    (tmp_path / "slurm" / "sbatch").write_text(f"#!/bin/sh\necho '{number}'\n")
    with pytest.raises(InputError, match="Slurm refuses the job"):
        slurm.submit(folder, "", ())


def test_refused_job_leaves_the_earlier_one_on_record(cluster: FakeSlurm, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_job_record(JobRecord("7"))
    with pytest.raises(InputError, match="no partition"):
        slurm.submit(folder, "#SBATCH --partition=nope", ())
    assert folder.job_record() == JobRecord("7")


def test_job_is_not_submitted_again_while_slurm_does_not_say_whether_it_is_there(cluster: FakeSlurm, tmp_path: Path) -> None:  # fmt: skip
    cluster.hold()
    folder = RunFolder(tmp_path)
    folder.spec.touch()
    folder.write_job_record(JobRecord(""))  # whoever submitted a job was killed
    subprocess.run(["sbatch", "--parsable", "/dev/null"], cwd=tmp_path, check=True)
    cluster.be_mute(True)
    with pytest.raises(
        InputError, match=r"does not say whether a job of .* \(.*Socket timed out.*\); look with squeue --me"
    ):
        slurm.submit(folder, "", ())
    cluster.be_mute(False)
    slurm.submit(folder, "", ())
    assert (cluster.jobs, folder.job_record()) == (1, JobRecord("1"))


class _LostAfter(io.BytesIO):
    """A connection that is lost after so many lines."""

    def __init__(self, lines: int) -> None:
        super().__init__()
        self._lines = lines

    def flush(self) -> None:
        if self.getvalue().count(b"\n") > self._lines:
            raise BrokenPipeError


def _ask(place: Path, *asked: protocol.Message, lost_after: int = 99) -> list[dict[str, object]]:
    """What an agent of the folder answers until its connection ends."""
    said, written = io.BytesIO(), _LostAfter(lost_after)
    for one in asked:
        protocol.send(said, one)
    with pytest.raises(protocol.ConnectionLost):
        agent._Agent(place, io.BytesIO(said.getvalue()), written).serve()
    return [json.loads(line) for line in written.getvalue().splitlines()[2:]]


def test_job_whose_answer_was_lost_is_answered_again_and_not_submitted_twice(cluster: FakeSlurm, place: Path) -> None:
    cluster.hold()
    start = protocol.Start(spec="name: x\n", trees={}, run="one", script="#!/bin/bash\nexit 0\n")
    _ask(place, start, lost_after=2)
    [answer] = _ask(place, start)
    assert (answer["message"], answer["run"], cluster.jobs) == ("Started", str(place / "runs" / "one"), 1)


def test_agent_is_not_silent_while_slurm_takes_long(cluster: FakeSlurm, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    cluster.hold()
    monkeypatch.setattr(agent, "BEAT_SECONDS", 0.05)
    sbatch = tmp_path / "slurm" / "sbatch"
    sbatch.write_text(sbatch.read_text().replace("script=$2", "sleep 0.5; script=$2"))
    answers = _ask(place, protocol.Start(spec="name: x\n", trees={}, run="one", script="#!/bin/bash\nexit 0\n"))
    assert [answer["message"] for answer in answers].count("Alive") >= 3
    assert answers[-1]["message"] == "Started"


def test_job_that_the_user_no_longer_wants_is_cancelled_and_its_folder_removed(cluster: FakeSlurm, place: Path) -> None:
    cluster.hold()
    start = protocol.Start(spec="name: x\n", trees={}, run="one", script="#!/bin/bash\nexit 0\n")
    answers = _ask(place, start, protocol.Discard(files=[], run="one", script=start.script))
    assert [answer["message"] for answer in answers] == ["Started", "Done"]
    assert (cluster.state, list((place / "runs").iterdir())) == ("CANCELLED", [])
    assert _ask(place, protocol.Discard(files=[], run="one", script=start.script))[0]["message"] == "Done"


def test_job_is_cancelled_as_soon_as_slurm_answers(burnish: Burnish, cluster: FakeSlurm, runs: Path, spec: Path, tmp_path: Path, until: Until) -> None:  # fmt: skip
    cluster.hold()
    near = _start(burnish, spec, runs)
    until(near.waits)
    program, tried = tmp_path / "slurm" / "scancel", tmp_path / "tried"
    program.rename(tmp_path / "slurm" / "answers")
    program.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(tried))}; exit 1\n")
    program.chmod(0o755)
    assert burnish("stop", near.path).returncode == 0
    until(tried.exists)
    (tmp_path / "slurm" / "answers").replace(program)
    until(lambda: near.life() == "ended")
    assert (_line(burnish)["state"], cluster.state) == ("stopped", "CANCELLED")


# The batch script


def test_script_has_what_the_machine_says(burnish: Burnish, cluster: FakeSlurm, spec: Path) -> None:
    lines = "module load cuda\n#SBATCH --mem=32G"
    options = ("--partition", "gpu", "--account", "p7", "--gpus", "a100:2", "--script-lines", lines)
    assert burnish("machines", "add", "cluster", *options).returncode == 0
    script = burnish("machines", "script", "cluster", spec).stdout.splitlines()
    headers = [line.removeprefix("#SBATCH ") for line in script if line.startswith("#SBATCH")]
    asked = {
        "--job-name=reviews",
        "--partition=gpu",
        "--account=p7",
        "--gpus-per-node=a100:2",
        "--time=1:00:00",
        "--requeue",
    }
    assert asked < set(headers)
    assert headers[-1] == "--mem=32G"  # the last one counts
    assert script.index("module load cuda") < next(number for number, line in enumerate(script) if " resume " in line)


def test_run_of_several_hosts_is_a_task_on_each_node() -> None:
    script = slurm.batch_script(make_machine(scheduler="slurm"), {"hardware": {"engine": "jax", "hosts": 4}})
    assert "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=1\n" in script
    assert '\nsrun burnish resume "$run" "$@" &' in script


@pytest.mark.parametrize("hosts", ["2\ntouch hurt", [4], None])
def test_number_of_hosts_of_a_stranger_is_no_line_of_the_script(hosts: object) -> None:
    script = slurm.batch_script(make_machine(scheduler="slurm"), {"hardware": {"hosts": hosts}})
    assert "#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=1\n" in script
    assert "hurt" not in script


_SAVES_WHEN_WARNED = """#!/bin/bash
trap 'mkdir -p checkpoints/5; touch "$STOP"; exit 75' USR1
printf "%s\\n" "$@" > options; mv options got
while :; do sleep 0.05; done
"""


@pytest.mark.parametrize(("request_name", "is_queued_again"), [("checkpoint", True), ("stop", False), ("pause", False)])
def test_job_whose_run_is_to_end_is_not_queued_again(cluster: FakeSlurm, tmp_path: Path, until: Until, request_name: str, is_queued_again: bool) -> None:  # fmt: skip
    program = tmp_path / "saves"
    program.write_text(_SAVES_WHEN_WARNED)
    program.chmod(0o755)
    script = slurm.batch_script(make_machine(scheduler="slurm", command=str(program)), {})
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "job.sh").write_text(script)
    job = subprocess.Popen(["bash", "job.sh"], cwd=tmp_path / "run", env={**os.environ, "STOP": request_name})
    until((tmp_path / "run" / "got").exists)
    job.send_signal(signal.SIGUSR1)
    assert job.wait() == 75
    assert (tmp_path / "slurm" / "requeued").exists() == is_queued_again


@pytest.mark.parametrize(("restarts", "started", "options"), [("0", 3, ["--set", "x=1"]), ("1", 3, []), ("1", 1, ["--set", "x=1"])])  # fmt: skip
def test_options_change_the_run_once(tmp_path: Path, restarts: str, started: int, options: list[str]) -> None:
    program = tmp_path / "burnish"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > got\n')
    program.chmod(0o755)
    (tmp_path / "job.sh").write_text(slurm.batch_script(make_machine(scheduler="slurm", command=str(program)), {}))
    (tmp_path / "process.json").touch()
    os.utime(tmp_path / "job.sh", (2, 2))
    os.utime(tmp_path / "process.json", (started, started))
    subprocess.run(
        ["bash", "job.sh", "--set", "x=1"],
        cwd=tmp_path,
        env={**os.environ, "SLURM_RESTART_COUNT": restarts},
        check=True,
    )
    assert (tmp_path / "got").read_text().splitlines() == ["resume", str(tmp_path), *options]


HOSTILE = ["it's here", "$(touch hurt)", "a;touch hurt", "`touch hurt`", "-rf", "#", "ä ö\\", 'a"b']


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_do_nothing_in_the_script(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    program = tmp_path / f"burnish {name}"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > got\n')
    program.chmod(0o755)
    machine = make_machine(scheduler="slurm", command=str(program))
    done = subprocess.run(
        ["bash", "-s", "--", name], input=slurm.batch_script(machine, {"name": name}), text=True, cwd=tmp_path / name
    )
    assert done.returncode == 0
    assert (tmp_path / name / "got").read_text().splitlines() == ["resume", str(tmp_path / name), name]
    assert not [*tmp_path.rglob("hurt")]


@pytest.mark.parametrize("name", [*HOSTILE, "a\n#SBATCH --account=other"])
def test_job_name_stays_on_its_line(name: str) -> None:
    lines = slurm.batch_script(make_machine(scheduler="slurm"), {"name": name}).splitlines()
    header = lines[1].removeprefix("#SBATCH --job-name=")
    assert not {" ", "'", '"', "$", "`", ";", "\\"} & set(header)
    assert lines[2] == "#SBATCH --output=job-%j.log"


@pytest.mark.parametrize("field", ["partition", "account", "gpus", "time"])
@pytest.mark.parametrize("value", ["a b", "a\n#SBATCH --account=other", "-x", "$(touch hurt)", "'"])
def test_value_that_would_be_two_options_is_refused(field: str, value: str) -> None:
    with pytest.raises(InputError, match=field):
        validate(Machine, {"scheduler": "slurm", field: value}, "")


def test_machine_needs_an_address_or_a_scheduler() -> None:
    with pytest.raises(InputError, match="address"):
        validate(Machine, {"folder": "x"}, "")
