"""A run folder from a stranger makes no command run its code, write outside of it or follow its links."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.__main__ import main
from backend.contract import spec_file
from backend.contract.run.folder import RunFolder, write_json
from backend.contract.run.lock import RunLocked, is_locked, take_lock
from backend.supervisor import supervise
from backend.training.event_log import EventLog, read_events

RECORDED = Path(__file__).parents[2] / "data" / "recorded"
SECRET = b"somebody's file\n"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of the user that has nothing to do with the run."""
    path = tmp_path / "outside"
    path.write_bytes(SECRET)
    return path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run that was lost, which `resume` would continue."""
    monkeypatch.setenv("BURNISH_RUNS", str(tmp_path / "runs"))
    shutil.copytree(RECORDED / "sentiment-lost", tmp_path / "strange")
    return RunFolder(tmp_path / "strange")


def commands(run: Path) -> dict[str, list[str]]:
    return {
        "resume": ["resume", str(run), "--detach"],
        "start": ["start", str(run)],
        "stop": ["stop", str(run)],
        "queue": ["queue", str(run), "next"],
        "evaluate": ["evaluate", str(run), "--data", "rows.csv"],
        "predict": ["predict", str(run), "--data", "rows.csv"],
        "answer": ["predict", str(run), "--input", '{"text": "x"}'],
        "generate": ["generate", str(run), "--prompt", "x"],
        "checkpoint": ["evaluate", str(run / "checkpoints" / "step-000001"), "--data", "rows.csv"],
        "report": ["report", str(run)],
        "csv": ["export", str(run), "--csv", "-"],
        "model": ["export", str(run), "--model", str(run.parent / "copy")],
        "note": ["note", str(run), "words"],
        "compare": ["compare", str(run), str(RECORDED / "sentiment-finished")],
        "tokenize": ["tokenize", str(run), "--text", "x"],
        "consents": ["consents", "--agree", str(run)],
    }


def replaced(path: Path, by: Callable[[Path], None]) -> None:
    path.unlink(missing_ok=True)
    by(path)


@pytest.mark.parametrize("command", ["resume", "report"])
@pytest.mark.parametrize(
    "name", ["events.jsonl", "process.log", "exit.json", "devices.json", "run.lock", "queued", "model", "notes.json"]
)
def test_link_is_refused_in_one_sentence(run: RunFolder, outside: Path, capsys, name: str, command: str) -> None:
    replaced(run.path / name, lambda path: path.symlink_to(outside))
    assert main(commands(run.path)[command]) == 2
    *_, said = capsys.readouterr().err.splitlines()  # some say before that they load the model
    assert said.startswith(f"{run.path / name}: it is a link")
    assert outside.read_bytes() == SECRET


@pytest.mark.parametrize("command", commands(Path()))
def test_every_command_looks_at_the_folder_first(run: RunFolder, capsys, command: str) -> None:
    (run.path / "checkpoints" / "step-000001").mkdir(parents=True)
    os.mkfifo(run.path / "checkpoints" / "step-000001" / "pipe")
    assert main(commands(run.path)[command]) == 2
    assert "is not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "environment", [{"LD_PRELOAD": "evil.so"}, {"LD_LIBRARY_PATH": "lib"}, {"": "x"}, {"A=B": "x"}, 5, [1]]
)
@pytest.mark.parametrize("command", ["resume", "start", "predict", "answer"])
def test_environment_of_a_stranger_is_refused(run: RunFolder, capsys, command: str, environment: object) -> None:
    (run.path / "model").mkdir()
    (run.path / "model" / "config.json").write_text("{}")
    values = spec_file.read(run.spec)
    run.spec.write_text(spec_file.dump({**values, "hardware": {"environment": environment}}))
    assert main(commands(run.path)[command]) == 2
    assert "hardware.environment" in capsys.readouterr().err


@pytest.mark.parametrize(
    "spec", ["[]", "5", "", "model: 5", "model: [a]\ntask: 3", "hardware: 3", "data: {train: 5}", "{"]
)
@pytest.mark.parametrize("command", ["resume", "start", "evaluate", "tokenize", "consents"])
def test_spec_that_is_none_is_one_sentence(run: RunFolder, capsys, command: str, spec: str) -> None:
    run.spec.write_text(spec)
    (run.path / "model").mkdir()
    (run.path / "model" / "config.json").write_text("{}" if command == "evaluate" else "")
    if command in ("tokenize", "consents"):
        shutil.rmtree(run.path / "model")
    assert main(commands(run.path)[command]) == 2
    *before, said = capsys.readouterr().err.splitlines()
    assert before == []
    assert "unexpectedly" not in said


WITHOUT_SPEC = ("queue", "stop", "report", "csv", "model", "note")
"""Commands that need nothing of the spec; `report` says in its place that it cannot be read."""


@pytest.mark.parametrize("command", sorted(commands(Path()).keys() - {*WITHOUT_SPEC}))
def test_include_in_the_spec_of_a_run_is_refused(run: RunFolder, outside: Path, capsys, command: str) -> None:
    outside.write_text("data: {train: stolen.csv}\n")
    run.spec.write_text(f"include: {outside}\n{run.spec.read_text()}")
    (run.path / "checkpoints" / "step-000001").mkdir(parents=True)
    if command not in ("tokenize", "consents"):
        (run.path / "model").mkdir()
        (run.path / "model" / "config.json").write_text("{}")
    assert main(commands(run.path)[command]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"{run.spec} includes another file")


def test_report_shows_nothing_that_a_spec_includes(run: RunFolder, outside: Path, capsys) -> None:
    outside.write_text("training: {seed: 424242}\n")
    run.spec.write_text(f"include: {outside}\n")
    assert main(commands(run.path)["report"]) == 0
    said = capsys.readouterr().out
    assert "spec.yaml cannot be read" in said
    assert "424242" not in said


@pytest.mark.parametrize("name", ["spec.started.yaml", "spec.jax.yaml"])
def test_include_in_a_spec_that_was_kept_is_refused(run: RunFolder, outside: Path, capsys, name: str) -> None:
    outside.write_text(run.spec.read_text())
    (run.path / name).write_text(f"include: {outside}\n")
    assert main(["resume", str(run.path), "--detach", "--engine", "jax"]) == 2
    assert f"{run.path / name} includes another file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["events.jsonl", "process.log", "run.lock"])
def test_file_with_another_name_elsewhere_is_not_written(run: RunFolder, outside: Path, capsys, name: str) -> None:
    replaced(run.path / name, lambda path: path.hardlink_to(outside))
    assert supervise(run, ["unused"]) == 2
    assert "another name" in capsys.readouterr().err
    assert main(["report", str(run.path)]) == 0, "a backup of hard links is read all the same"
    assert outside.read_bytes() == SECRET


def test_supervisor_begins_nothing_in_a_folder_with_links(run: RunFolder, outside: Path, capsys) -> None:
    replaced(run.log, lambda path: path.symlink_to(outside))
    before = run.process.read_bytes()
    assert supervise(run, ["unused"]) == 2
    assert "it is a link" in capsys.readouterr().err
    assert (run.process.read_bytes(), outside.read_bytes()) == (before, SECRET)


def test_writers_do_not_follow_a_link_that_comes_later(run: RunFolder, outside: Path) -> None:
    for path in (run.events, run.lock, run.path / "stop", run.path / f".queued.{os.getpid()}"):
        replaced(path, lambda path: path.symlink_to(outside))
    with pytest.raises(OSError, match="is a link"):
        EventLog(run.events)
    with pytest.raises(OSError, match="is a link"):
        read_events(run.events)
    with pytest.raises(OSError, match="is a link"):
        run.request("stop")
    with pytest.raises((OSError, RunLocked)):
        take_lock(run.lock)
    assert not is_locked(run.lock)
    run.join_queue()
    assert run.queued.is_file()
    assert not run.queued.is_symlink()
    assert outside.read_bytes() == SECRET


def test_a_record_behind_a_link_counts_as_none(run: RunFolder, tmp_path: Path) -> None:
    write_json(tmp_path / "elsewhere.json", {"joined": 5.0})
    replaced(run.queued, lambda path: path.symlink_to(tmp_path / "elsewhere.json"))
    assert run.queued_since() is None


def test_list_of_runs_goes_on_beside_a_folder_with_links(run: RunFolder, outside: Path, capsys) -> None:
    replaced(run.events, lambda path: path.symlink_to("/dev/zero"))
    run.path.rename(run.path.parent / "runs")
    (run.path.parent / "runs" / "strange").mkdir()
    for path in list((run.path.parent / "runs").iterdir()):
        if path.name != "strange":
            path.rename(run.path.parent / "runs" / "strange" / path.name)
    assert main(["runs"]) == 0
    assert "strange" in capsys.readouterr().out


SPECS: dict[str, tuple[Callable[[Path], None], str]] = {
    "FIFO": (os.mkfifo, "spec.yaml: it is not a regular file; remove it"),
    "folder": (Path.mkdir, "spec.yaml: it is not a regular file; remove it"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "spec.yaml: it is a link"),
    "link to nothing": (lambda path: path.symlink_to("gone"), "spec.yaml: it is a link"),
    "nothing": (lambda path: None, "spec.yaml is missing; copy spec.started.yaml from the same folder to spec.yaml"),
}  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("command", commands(Path("x")))
def test_run_whose_spec_is_no_file_is_said_to_be_one(run: RunFolder, capsys, command: str, kind: str) -> None:
    run.checkpoint(1).mkdir(parents=True, exist_ok=True)
    shutil.copy(run.spec, run.started_spec)
    replaced(run.spec, SPECS[kind][0])
    assert main(commands(run.path)[command]) == 2
    assert SPECS[kind][1] in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
@pytest.mark.parametrize("kind", SPECS)
def test_list_of_runs_names_a_run_whose_spec_is_no_file(run: RunFolder, capsys, kind: str) -> None:
    broken = RunFolder(shutil.copytree(run.path, run.path.parent / "runs" / "broken"))
    shutil.copy(broken.spec, broken.started_spec)
    replaced(broken.spec, SPECS[kind][0])
    assert main(["runs"]) == 0
    said = capsys.readouterr()
    assert [line for line in said.err.splitlines() if str(broken.path) in line and SPECS[kind][1] in line]
    assert "there are no runs" not in said.out


def test_supervisor_says_which_spec_is_missing(run: RunFolder, capsys) -> None:
    run.spec.rename(run.started_spec)
    assert supervise(run, ["true"]) == 2
    assert "spec.yaml is missing; copy spec.started.yaml" in capsys.readouterr().err


def test_resume_refuses_a_spec_that_was_edited(run: RunFolder, capsys) -> None:
    values = spec_file.read(run.spec)
    (run.path / "spec.started.yaml").write_text(spec_file.dump(values))
    run.spec.write_text(spec_file.dump(spec_file.apply_changes(values, ["training.learning_rate=0.5"])))
    assert main(["resume", str(run.path), "--detach"]) == 2
    assert "training.learning_rate (it was" in capsys.readouterr().err
