"""Tests that a run on another machine grows here line by line, through lost connections, and ends with everything it made."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from backend.commands.runs import summary
from backend.contract.machines import Machine
from backend.contract.run import events
from backend.contract.run.folder import (
    INTERRUPTED_EXIT_CODE,
    ExitRecord,
    ProcessRecord,
    RemoteRun,
    RunFolder,
    boot_id,
    host_id,
    write_json,
)
from backend.contract.run.lock import take_lock
from backend.remote import mirror, protocol

Until = Callable[[Callable[[], object]], None]
UseSsh = Callable[[str], None]


class FarRun:
    """A run on the machine, carried by this test."""

    def __init__(self, place: Path) -> None:
        self.folder = RunFolder(place / "runs" / "reviews")
        self.folder.path.mkdir(parents=True)
        self.folder.spec.write_text("version: 1\n")
        self.folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 1, time.time()))
        self._lock: int | None = take_lock(self.folder.lock)

    def step(self, number: int) -> None:
        """Append the event of a step."""
        self.append(
            events.StepFinished(
                time=1.0, step=number, epoch=0.1, loss=0.5, learning_rate=1e-3, gradient_norm=1.0, rows=8, tokens=9, seconds=0.1
            )
        )  # fmt: skip

    def append(self, event: events.Event) -> None:
        """Append an event."""
        self.write(events.encode(event))

    def write(self, data: bytes) -> None:
        """Append bytes to the events."""
        with self.folder.events.open("ab") as file:
            file.write(data)

    def finish(self, state: str = "finished") -> None:
        """End as a run does that could say so."""
        self.append(events.RunFinished(time=2.0, state=state, step=3))
        self.end()

    def end(self, message: str = "") -> None:
        """End the process."""
        self.folder.write_exit_record(ExitRecord(1, int(bool(message)), time.time(), message))
        self.die()

    def die(self) -> None:
        """End without a record, as if killed."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class Mirror:
    """The mirror in a thread, as the supervisor runs it in a process."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.code = mirror.run(self.folder)

    def join(self) -> int:
        """Wait for its end; the exit code."""
        self._thread.join(60)
        assert self.code is not None, "the mirror did not end"
        return self.code


@pytest.fixture
def far(machine: Machine, place: Path) -> Iterator[FarRun]:
    run = FarRun(place)
    yield run
    run.die()


@pytest.fixture
def near(tmp_path: Path, far: FarRun) -> RunFolder:
    """The copy, as `burnish train --on` leaves it."""
    folder = RunFolder(tmp_path / "runs" / "reviews")
    folder.path.mkdir(parents=True)
    folder.spec.write_text("version: 1\n")
    write_json(folder.remote, {"machine": "lab", "run": str(far.folder.path)})
    assert folder.remote_run() == RemoteRun("lab", str(far.folder.path))
    return folder


def _play(use_ssh: UseSsh, folder: Path, *pieces: tuple[dict[str, object], bytes]) -> None:
    """Makes `ssh` reach a stranger that sends these pieces of files when it is asked, then hangs up."""
    greeting = {"message": "Greeting", "contract_version": "1.0", "versions": {}, "folder": "/x", "free_bytes": 1}
    (folder / "greeting").write_text(f"burnish agent 1\n{json.dumps(greeting)}\n")
    lines = [(json.dumps({"message": "Piece", **piece, "size": len(data)}).encode(), data) for piece, data in pieces]
    (folder / "pieces").write_bytes(b"".join(line + b"\n" + data for line, data in lines))
    use_ssh(f'cat "{folder}/greeting"; read question; cat "{folder}/pieces"')


def _events(folder: RunFolder) -> list[events.AnyEvent]:
    return [*events.decode_all(folder.events.read_bytes().split(b"\n"))] if folder.events.exists() else []


def _steps(folder: RunFolder) -> list[int]:
    return [event.step for event in _events(folder) if isinstance(event, events.StepFinished)]


def _warnings(folder: RunFolder) -> list[str]:
    return [event.code for event in _events(folder) if isinstance(event, events.Warned)]


def _last(folder: RunFolder) -> events.RunFinished:
    last = _events(folder)[-1]
    assert isinstance(last, events.RunFinished)
    return last


def test_curve_grows_here_while_the_run_goes_on_there(far: FarRun, near: RunFolder, until: Until) -> None:
    copying = Mirror(near)
    far.step(1)
    until(lambda: _steps(near) == [1])
    far.write(events.encode(events.Warned(time=1.0, code="x", message="y"))[:-9])  # half a line waits
    far.folder.log.write_text("a line of the log\n")
    time.sleep(2 * mirror.POLL_SECONDS)
    assert near.events.read_bytes().endswith(b"\n")
    assert not _warnings(near)
    far.write(b'sage":"y"}\n')
    far.finish()
    assert copying.join() == 0
    assert near.events.read_bytes() == far.folder.events.read_bytes()


def test_end_is_said_when_the_model_is_here(far: FarRun, near: RunFolder) -> None:
    for name, content in (
        ("model/model.safetensors", b"w" * 9_000_000),
        ("predictions.csv", b"text\n"),
        ("plan.json", b"{}"),
    ):
        path = far.folder.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    far.finish()
    assert Mirror(near).join() == 0
    assert _last(near).state == "finished"
    for name in ("model/model.safetensors", "predictions.csv", "plan.json"):
        assert (near.path / name).read_bytes() == (far.folder.path / name).read_bytes()


def test_checkpoints_stay_there_unless_wished(far: FarRun, near: RunFolder, machine: Machine) -> None:
    from backend.contract.machines import write_machines

    saved = far.folder.checkpoint(3) / "model.safetensors"
    saved.parent.mkdir(parents=True)
    saved.write_bytes(b"weights")
    far.finish()
    Mirror(near).join()
    assert not near.checkpoints.exists()
    write_machines({"lab": machine.model_copy(update={"checkpoints": True})})
    Mirror(near).join()
    assert (near.checkpoint(3) / "model.safetensors").read_bytes() == b"weights"


def test_what_was_copied_but_not_recorded_is_copied_once(far: FarRun, near: RunFolder) -> None:
    for number in (1, 2, 3):
        far.step(number)
    first = far.folder.events.read_bytes().index(b"\n") + 1
    near.events.write_bytes(far.folder.events.read_bytes())  # the mirror was killed before it recorded steps 2 and 3
    write_json(near.path / "mirror.json", {"events": first, "events_here": first, "log": 0, "files": {}})
    far.finish()
    assert Mirror(near).join() == 0
    assert _steps(near) == [1, 2, 3]


@pytest.mark.parametrize("record", [None, b"", b'{"events": 1}'])
def test_lost_record_only_costs_copying_again(far: FarRun, near: RunFolder, until: Until, record: bytes | None) -> None:
    far.step(1)
    copying = Mirror(near)
    until(lambda: _steps(near) == [1])
    near.request("interrupt")
    assert copying.join() == INTERRUPTED_EXIT_CODE
    near.clear_requests()
    path = near.path / "mirror.json"
    path.write_bytes(record) if record is not None else path.unlink()
    far.step(2)
    far.finish()
    assert Mirror(near).join() == 0
    assert near.events.read_bytes() == far.folder.events.read_bytes()


def test_line_that_found_no_room_is_written_again(far: FarRun, near: RunFolder, until: Until) -> None:
    far.step(1)
    copying = Mirror(near)
    until(lambda: _steps(near) == [1])
    with near.events.open("ab") as file:
        file.write(b'{"event":"StepFin')
    far.step(2)
    far.finish()
    assert copying.join() == 0
    assert near.events.read_bytes() == far.folder.events.read_bytes()


def test_half_a_line_before_the_connection_is_lost_is_not_shown(far: FarRun, near: RunFolder, use_ssh: UseSsh, tmp_path: Path, until: Until) -> None:  # fmt: skip
    far.step(1)
    far.step(2)
    half = far.folder.events.read_bytes()[:-9]
    _play(use_ssh, tmp_path, ({"name": "events.jsonl", "offset": 0}, half))
    copying = Mirror(near)
    until(lambda: "connection_lost" in _warnings(near))
    use_ssh('exec sh -c "$last"')
    far.finish()
    assert copying.join() == 0
    assert _steps(near) == [1, 2]
    assert all(map(json.loads, near.events.read_bytes().splitlines()))


def test_long_history_is_copied_whole(far: FarRun, near: RunFolder) -> None:
    far.write(events.encode(events.Warned(time=1.0, code="x", message="y" * 3_000_000)) * 2)
    far.write(events.encode(events.Warned(time=1.0, code="x", message="z" * 5_000_000)))
    far.finish()
    assert Mirror(near).join() == 0
    assert near.events.read_bytes() == far.folder.events.read_bytes()


def test_lost_connection_is_said_and_made_again(far: FarRun, near: RunFolder, use_ssh: UseSsh, tmp_path: Path, until: Until) -> None:  # fmt: skip
    use_ssh(f'echo $$ > "{tmp_path}/pid"; exec sh -c "$last"')
    far.step(1)
    copying = Mirror(near)
    until(lambda: _steps(near) == [1])
    use_ssh('echo "ssh: connect to host lab port 22: Network is unreachable" >&2; exit 255')
    os.kill(int((tmp_path / "pid").read_text()), 9)
    far.step(2)
    until(lambda: "connection_lost" in _warnings(near))
    use_ssh('exec sh -c "$last"')
    far.step(3)
    far.finish()
    assert copying.join() == 0
    assert _steps(near) == [1, 2, 3]
    assert _warnings(near)[-1] == "connected"


def test_cluster_that_refuses_to_tell_of_the_job_is_said_once_and_ends_nothing(near: RunFolder, use_ssh: UseSsh, tmp_path: Path) -> None:  # fmt: skip
    _play(use_ssh, tmp_path)
    sent = [
        protocol.JobUnknown(reason=reason)
        for reason in ("it does not accept your token", "it does not accept your token", "")
    ]
    ended = events.encode(events.RunFinished(time=2.0, state="finished", step=3))
    sent += [protocol.Piece(name="events.jsonl", offset=0, size=len(ended)), protocol.Ended(life="ended")]
    (tmp_path / "pieces").write_bytes(
        b"".join(msgspec.json.encode(one) + b"\n" + (ended if one.size else b"") for one in sent)
    )
    assert Mirror(near).join() == 0
    assert _warnings(near) == ["job_unknown", "job_known"]
    assert "lab: it does not accept your token. The run goes on" in near.events.read_text()


def test_request_reaches_the_run_and_is_cleared_by_its_answer(far: FarRun, near: RunFolder, until: Until) -> None:
    copying = Mirror(near)
    near.request("stop")
    until(lambda: far.folder.open_request() == "stop")
    assert near.open_request() == "stop"
    far.append(events.RequestAnswered(time=1.0, request="stop", step=3))
    until(lambda: near.open_request() is None)
    far.finish("stopped")
    assert copying.join() == 0
    assert _last(near).state == "stopped"


def test_interruption_here_leaves_the_run_going_there(far: FarRun, near: RunFolder, until: Until) -> None:
    far.step(1)
    copying = Mirror(near)
    until(lambda: _steps(near) == [1])
    near.request("interrupt")
    assert copying.join() == INTERRUPTED_EXIT_CODE
    assert far.folder.requests() == []
    assert (_last(near).state, _last(near).step) == ("interrupted", 1)
    near.clear_requests()  # as the supervisor of the next attempt does
    far.step(2)
    far.finish()
    assert Mirror(near).join() == 0
    assert _steps(near) == [1, 2]
    assert any(isinstance(event, events.RunResumed) and event.from_step == 1 for event in _events(near))
    assert summary(near).seconds == 1.0  # by the clock there: it did not pause


def test_last_step_of_a_run_that_went_back_is_not_its_highest(far: FarRun, near: RunFolder) -> None:
    far.step(8)
    far.append(events.RunResumed(time=1.0, attempt=2, from_step=5))
    far.step(6)
    far.die()
    assert Mirror(near).join() == 1
    assert _last(near).step == 6


def test_death_there_is_told_here(far: FarRun, near: RunFolder) -> None:
    far.end("the engine process was killed (SIGKILL), because the system ran out of memory")
    assert Mirror(near).join() == 1
    assert _last(near).message.startswith("lab: the engine process was killed")


def test_run_that_was_lost_there_and_cannot_restart_says_why(far: FarRun, near: RunFolder) -> None:
    near.spec.write_text("hardware: {max_restarts: 1}\n")
    far.step(1)
    far.die()
    assert Mirror(near).join() == 1  # the machine refuses to resume, because its spec is incomplete
    assert "task" in _last(near).message
    assert "restarted" not in _warnings(near)


@pytest.mark.parametrize("state", ["finished", "paused", "failed"])
def test_run_that_said_how_it_ended_is_not_restarted(far: FarRun, near: RunFolder, state: str) -> None:
    near.spec.write_text("hardware: {max_restarts: 1}\n")
    far.step(3)
    far.append(events.RunFinished(time=2.0, state=state, step=3))
    far.die()
    Mirror(near).join()
    assert _last(near).state == state
    assert near.events.read_bytes() == far.folder.events.read_bytes()


def test_run_that_was_lost_when_it_should_pause_is_not_restarted(far: FarRun, near: RunFolder, until: Until) -> None:
    near.spec.write_text("hardware: {max_restarts: 1}\n")
    far.step(1)
    copying = Mirror(near)
    near.request("pause")
    until(lambda: far.folder.open_request() == "pause")
    far.die()
    assert copying.join() == 1
    assert "ended on lab without saying how" in _last(near).message


def test_run_that_was_lost_on_a_cluster_is_submitted_again(far: FarRun, near: RunFolder, machine: Machine, tmp_path: Path) -> None:  # fmt: skip
    from backend.contract.machines import write_machines

    near.spec.write_text("hardware: {max_restarts: 1}\n")
    for name, lines in (("sbatch", "echo 'sbatch: error: no more jobs today' >&2; exit 1"), ("squeue", "exit 0")):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)
    write_machines({"lab": machine.model_copy(update={"scheduler": "slurm"})})
    far.step(1)
    far.die()
    assert Mirror(near).join() == 1
    assert "Slurm refuses the job: no more jobs today" in _last(near).message


def test_supervisor_killed_there_is_told_here(far: FarRun, near: RunFolder) -> None:
    far.step(1)
    far.die()
    assert Mirror(near).join() == 1
    assert "ended on lab without saying how" in _last(near).message


def test_run_stopped_in_the_queue_there_is_stopped_here(far: FarRun, near: RunFolder) -> None:
    far.folder.write_exit_record(ExitRecord(1, 0, time.time(), state="stopped"))
    far.die()
    assert Mirror(near).join() == 0
    assert (_last(near).state, _last(near).message) == ("stopped", "it was removed from the queue before it started")


def test_weights_of_an_earlier_attempt_do_not_stay(far: FarRun, near: RunFolder) -> None:
    far.folder.model.mkdir()
    (far.folder.model / "model.safetensors").write_bytes(b"whole")
    far.finish("stopped")
    assert Mirror(near).join() == 0
    near.model.joinpath("notes.txt").write_text("my own")
    (far.folder.model / "model.safetensors").rename(far.folder.model / "model-00001.safetensors")
    far.finish()
    assert Mirror(near).join() == 0
    assert {path.name for path in near.model.iterdir()} == {"model-00001.safetensors", "notes.txt"}


def test_record_of_a_stranger_removes_nothing_else(far: FarRun, near: RunFolder, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.touch()
    files = {name: [1, 1] for name in ("model/../../../precious", str(precious), "spec.yaml")}
    write_json(near.path / "mirror.json", {"events": 0, "events_here": 0, "log": 0, "files": files})
    far.folder.plan.write_text("{}")
    far.finish()
    assert Mirror(near).join() == 0
    assert precious.exists()
    assert near.spec.exists()


def test_folder_deleted_here_leaves_the_run_going_there(far: FarRun, near: RunFolder, until: Until) -> None:
    far.step(1)
    copying = Mirror(near)
    until(lambda: _steps(near) == [1])
    near.path.rename(near.path.with_name("elsewhere"))
    far.step(2)
    copying.join()
    assert not near.path.exists()
    assert far.folder.life() == "alive"
    assert far.folder.requests() == []


def test_folder_deleted_there_is_told_here(far: FarRun, near: RunFolder) -> None:
    far.die()
    far.folder.path.rename(far.folder.path.with_name("elsewhere"))
    assert Mirror(near).join() == 1
    assert "may have been deleted" in _last(near).message


@pytest.mark.parametrize(
    "pieces",
    [
        [({"name": "model/a", "offset": -4, "total": 4}, b"evil")],
        [({"name": "model/a", "offset": 9, "total": 13}, b"evil")],
        [({"name": "model/a", "offset": 0, "total": 3}, b"evil")],
        [({"name": "model/a", "offset": 0, "total": 8}, b"evil"), ({"name": "model/a", "offset": 4, "total": 12}, b"evil")],
        [({"name": "model/a", "offset": 0, "total": 8}, b"evil"), ({"name": "model/b", "offset": 4, "total": 8}, b"evil")],
        [({"name": "model/a", "offset": 0, "total": 4}, b"evil"), ({"name": "model/a/b", "offset": 0, "total": 4}, b"evil")],
    ],
)  # fmt: skip
def test_pieces_that_do_not_fit_end_the_copy(near: RunFolder, use_ssh: UseSsh, tmp_path: Path, pieces: list[tuple[dict[str, object], bytes]]) -> None:  # fmt: skip
    _play(use_ssh, tmp_path, *pieces)
    assert Mirror(near).join() == 1
    assert _last(near).state == "failed"
    assert _last(near).message


def test_file_without_room_is_not_taken(near: RunFolder, use_ssh: UseSsh, tmp_path: Path, until: Until) -> None:
    _play(use_ssh, tmp_path, ({"name": "model/a", "offset": 0, "total": 10**18}, b"evil"))
    copying = Mirror(near)
    until(lambda: "connection_lost" in _warnings(near))
    near.request("interrupt")
    assert copying.join() == INTERRUPTED_EXIT_CODE
    assert not near.model.exists()
    assert any("disk of this computer is full" in event.message for event in _events(near) if isinstance(event, events.Warned))  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "message", "words"),
    [
        ("model: {name_or_path: x, tokenizer: y}\ndata: {}\n", {"message": "SpecResolved", "spec": "- 1"}, "unknown (spec.yaml)"),
        ("version: 1\n", {"message": "SpecResolved", "spec": "version: 1"}, "unknown (spec.yaml)"),
        ("hardware: [1]\n", {"message": "Ended", "life": "lost"}, "without saying how"),
        ("hardware: {max_restarts: many}\n", {"message": "Ended", "life": "lost"}, "without saying how"),
    ],
)  # fmt: skip
def test_spec_of_a_stranger_ends_the_copy_in_one_sentence(near: RunFolder, use_ssh: UseSsh, tmp_path: Path, ours: str, message: dict[str, str], words: str) -> None:  # fmt: skip
    near.spec.write_text(ours)
    _play(use_ssh, tmp_path)
    (tmp_path / "pieces").write_text(json.dumps(message) + "\n")
    assert Mirror(near).join() == 1
    assert words in _last(near).message


@pytest.mark.parametrize(
    "name", ["../../evil", "run.lock", "remote.json", "model/../../evil", "spec.yaml", "stop", "/evil"]
)
def test_machine_writes_nothing_but_results(far: FarRun, near: RunFolder, use_ssh: UseSsh, tmp_path: Path, name: str) -> None:  # fmt: skip
    lines = [
        {"message": "Greeting", "contract_version": "1.0", "versions": {}, "folder": "/x", "free_bytes": 1},
        {"message": "Piece", "name": name, "offset": 0, "total": 4, "size": 4},
    ]
    script = tmp_path / "stranger"
    script.write_text("burnish agent 1\n" + "".join(f"{json.dumps(line)}\n" for line in lines) + "evil")
    before = {path: path.read_bytes() for path in near.path.iterdir()}
    use_ssh(f'cat "{script}" -')
    assert Mirror(near).join() == 1
    assert _last(near).state == "failed"
    assert {path: path.read_bytes() for path in before} == before
    assert not [path for path in tmp_path.rglob("evil*") if path != script]
