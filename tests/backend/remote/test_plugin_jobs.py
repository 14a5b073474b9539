"""Another package's launcher: the guide's example submits runs to a cluster, and a broken one is a sentence."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend import registry
from backend.contract.errors import InputError
from backend.contract.machines import Machine, write_machines
from backend.contract.run.folder import RunFolder
from backend.contract.run.job import SUBMITTING, JobRecord
from backend.remote import plugin_jobs, schedulers
from tests.backend.remote.remote_runs import Burnish, losses

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "other-schedulers.md"
BROKEN = """\
import os, pathlib, sys

class Lacking:
    title, description = "Lacking", ""

class Failing:
    title, description = "Failing", ""
    def check(self, script): raise RuntimeError("no \\x1b[31mquota\\nand more")
    def script(self, machine, spec): return "{}"
    def submit(self, script, folder, command, name): return "--all"
    def look_up(self, job): return "asleep", ""
    def stop(self, job): sys.exit("gone")

class Dying(Failing):
    title, known = "Dying", pathlib.Path(__file__).with_name("jobs")
    def submit(self, script, folder, command, name):
        with self.known.open("a") as file: file.write(name + "\\n")
        if os.environ.get("DIES"): os.kill(os.getpid(), 9)
        raise TimeoutError("no answer")
    def look_up(self, job):
        if os.environ.get("MUTE"): raise OSError("no connection")
        return ("running" if self.known.exists() and job in self.known.read_text() else "unknown"), ""

FAILING, DYING = Failing(), Dying()
"""
ENTRIES = """
lacking = broken:Lacking
failing = broken:FAILING
dying = broken:DYING
missing = nowhere:Launcher
leaving = leaving:Launcher
ray = broken:Failing
"""
KUBECTL = """\
#!{python}
import json, os, signal, subprocess, sys
from pathlib import Path
place, words = Path({place!r}), sys.argv[1:]
if words[:2] == ["get", "nodes"]:
    print("node/one\\nnode/two")
elif words[0] == "create":
    job = json.loads(sys.stdin.read())
    command = job["spec"]["template"]["spec"]["containers"][0]["command"]
    log = (place / "log").open("ab")
    started = subprocess.Popen(
        ["sh", "-c", 'setsid "$@"; echo $? > "$0"', str(place / (job["metadata"]["name"] + ".code")), *command],
        stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    (place / job["metadata"]["name"]).write_text(str(started.pid))
elif words[0] == "get":
    job, code, status = place / words[2], place / (words[2] + ".code"), {{"ready": 1}}
    if (place / (words[2] + ".stopped")).exists():
        status = {{"conditions": [{{"type": "Suspended", "status": "True"}}]}}
    elif code.exists() and code.read_text():
        kind = "Failed" if int(code.read_text()) else "Complete"
        status = {{"conditions": [{{"type": kind, "status": "True", "message": "it has ended"}}]}}
    print(json.dumps({{"status": status}}) if job.exists() else "", end="")
elif words[0] == "patch":
    (place / (words[2] + ".stopped")).touch()
    subprocess.run(["pkill", "-TERM", "--parent", (place / words[2]).read_text()])
else:
    sys.exit("unknown command\\nsee kubectl --help")
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The guide's package and broken ones are there, as pip would have installed them, and a cluster behind `kubectl`."""
    site, programs, cluster = (tmp_path / name for name in ("site", "programs", "cluster"))
    for folder in (site, programs, cluster):
        folder.mkdir()
    code, entries = (re.search(f"```{kind}\n(.*?)```", GUIDE.read_text(), re.DOTALL)[1] for kind in ("python", "toml"))  # type: ignore[index]
    (site / "burnish_kubernetes.py").write_text(code)
    (site / "broken.py").write_text(BROKEN)
    (site / "leaving.py").write_text("import sys\nsys.exit('bye')\n")
    for name, listed in (("kubernetes", entries.partition("launchers")[2].partition("\n")[2].replace('"', "")), ("broken", ENTRIES)):  # fmt: skip
        about = site / f"burnish_{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: burnish-{name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[burnish.launchers]\n{listed}")
    kubectl = programs / "kubectl"
    kubectl.write_text(KUBECTL.format(python=sys.executable, place=str(cluster)))
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("BURNISH_CONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(plugin_jobs, "POLL_SECONDS", 0.0)
    monkeypatch.syspath_prepend(str(site))
    _forget()
    yield
    for name in ("burnish_kubernetes", "broken", "leaving"):
        sys.modules.pop(name, None)
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    for found in (registry.names, registry._own_names, registry._find_entry_points, registry._plugins, registry._load):
        found.cache_clear()


def _script(name: str, **settings: str) -> str:
    return schedulers.script_of(Machine(scheduler=name, script_lines="image=me/burnish", **settings), {})


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    found = RunFolder(tmp_path / "a run")
    found.path.mkdir()
    found.spec.touch()
    return found


def test_only_launchers_that_can_be_used_are_known(burnish: Burnish):
    assert plugin_jobs.names() == ["dying", "failing", "kubernetes"]
    refused = burnish("machines", "add", "one", "--scheduler", "nope")
    sentence = (
        "there is no scheduler nope; choose slurm, ray, or one of an installed package: dying, failing, kubernetes"
    )
    assert (refused.returncode, refused.stderr.strip()) == (2, sentence)
    assert burnish("machines", "add", "one", "--scheduler", "kubernetes").returncode == 0


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("lacking", "the launcher lacking from the package burnish-broken cannot be used: it has no check, script,"),
        ("missing", "the launcher missing from the package burnish-broken cannot be loaded (ModuleNotFoundError: "),
        ("leaving", "the launcher leaving from the package burnish-broken cannot be loaded (SystemExit: bye)"),
    ],
)
def test_a_broken_launcher_is_a_sentence(name: str, sentence: str):
    with pytest.raises(InputError) as refusal:
        _script(name)
    assert sentence in str(refusal.value)
    assert any(sentence in problem for problem in registry.problems())


def test_what_a_launcher_does_wrong_is_a_sentence(folder: RunFolder):
    script = _script("failing")
    for act, reason in (
        (lambda: schedulers.check(script, folder.path), "no .*quota"),
        (lambda: schedulers.submit(folder, script, []), "it gave no number for its job"),
        (plugin_jobs.LauncherJob(JobRecord("1", scheduler="failing")).stop, "gone"),
    ):
        with pytest.raises(InputError, match=f"^Failing: {reason}") as refusal:
            act()
        assert "\n" not in str(refusal.value)
        assert "\x1b" not in str(refusal.value)


def test_a_job_whose_launcher_was_killed_before_it_returned_is_found_by_its_name(folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # fmt: skip
    script = _script("dying")
    act = "import sys; from backend.contract.run.folder import RunFolder as F; from backend.remote import schedulers; schedulers.submit(F(sys.argv[1]), sys.argv[2], [])"
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(Path.cwd())])
    killed = subprocess.run([sys.executable, "-c", act, folder.path, script], env={**os.environ, "DIES": "1", "PYTHONPATH": path}, check=False)  # fmt: skip
    assert killed.returncode == -9
    [name] = (tmp_path / "site" / "jobs").read_text().splitlines()
    assert folder.job_record() == JobRecord(name, SUBMITTING, scheduler="dying")
    monkeypatch.setenv("MUTE", "1")
    with pytest.raises(InputError, match=rf"it is not known whether job {name} of .* look for it there, and if there is none, delete .*job\.json"):  # fmt: skip
        schedulers.submit(folder, script, [])
    monkeypatch.delenv("MUTE")
    schedulers.submit(folder, script, [])
    assert folder.job_record() == JobRecord(name, scheduler="dying")
    assert (tmp_path / "site" / "jobs").read_text().splitlines() == [name]


def test_a_job_whose_submission_failed_after_it_was_taken_is_followed(folder: RunFolder):
    schedulers.submit(folder, _script("dying"), [])  # it says that it had no answer
    job = schedulers.job_of(folder, _script("dying"))
    assert job is not None
    assert (job.life(folder), job.state) == ("alive", "running")


def test_a_state_that_is_unknown_is_as_if_the_cluster_did_not_answer(folder: RunFolder):
    job = plugin_jobs.LauncherJob(JobRecord("1", scheduler="failing"))
    assert (job.life(folder), job.state, job.trouble) == ("alive", "", "Failing: it knows no state 'asleep'")
    assert not job.cancel("stopped")


@pytest.mark.parametrize("record", [JobRecord("--all", scheduler="kubernetes"), JobRecord("1", scheduler="failing")])
def test_a_strangers_record_is_not_followed(folder: RunFolder, record: JobRecord):
    folder.write_job_record(record)
    assert schedulers.job_of(folder, _script("kubernetes")) is None


def test_the_example_starts_a_command_in_the_folder_and_ends_it(folder: RunFolder, until):
    script = _script("kubernetes", setup="touch setup", command="sleep 60; true")
    assert schedulers.check(script, folder.path).devices == ["node/one", "node/two"]
    program = folder.path / "program"
    program.write_text('#!/bin/sh\necho "$@" > ran\nexec sleep 60\n')
    program.chmod(0o755)
    script = _script("kubernetes", setup="touch setup", command=str(program))
    schedulers.submit(folder, script, ["--set", "a=b c"])
    until(lambda: (folder.path / "ran").exists() and (folder.path / "ran").read_text())
    assert (folder.path / "ran").read_text() == f"resume {folder.path} --set a=b c\n"
    assert (folder.path / "setup").exists()
    job = schedulers.job_of(folder, script)
    assert job is not None
    assert (job.life(folder), job.state, job.record.state) == ("alive", "running", "running")
    assert job.record.describe_running() == f"kubernetes job {job.record.job}"
    job.stop()
    assert job.life(folder) == "ended"
    assert job.end(folder) == ("interrupted", "its job was stopped in Kubernetes")
    (gone := JobRecord("burnish-gone", scheduler="kubernetes"))
    lost = plugin_jobs.LauncherJob(gone)
    assert (lost.life(folder), lost.end(folder)[0]) == ("ended", "interrupted")


@pytest.mark.slow
def test_the_example_trains_a_run(burnish: Burnish, place: Path, runs: Path, spec: Path, machine: Machine, until):
    write_machines(
        {"cluster": machine.model_copy(update={"address": "", "scheduler": "kubernetes", "script_lines": "image=x"})}
    )
    there = burnish("train", spec, "--on", "cluster", "--run-folder", runs / "there", "--json")
    assert there.returncode == 0, there.stderr
    assert burnish("train", spec, "--run-folder", runs / "here").returncode == 0
    assert losses(RunFolder(runs / "there")) == losses(RunFolder(runs / "here"))
    assert json.loads(there.stdout.splitlines()[-1])["state"] == "finished"
    endless = ("--set", "training.max_steps=1000000", "--set", "evaluation.every=never", "--detach")
    assert burnish("train", spec, "--on", "cluster", "--run-folder", runs / "endless", *endless).returncode == 0
    near = RunFolder(runs / "endless")
    until(lambda: losses(near))
    assert burnish("stop", near.path).returncode == 0
    until(lambda: near.life() == "ended")
    assert '"state":"stopped"' in near.events.read_text()
