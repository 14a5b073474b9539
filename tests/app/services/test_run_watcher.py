"""Watching a run folder that grows, stops, is cut, or disappears."""

import os
import shutil
import time
from itertools import pairwise

import pytest
from PySide6.QtCore import QTimer

from app.services import run_watcher
from app.services.run_watcher import RunWatcher
from backend.contract.run import events
from backend.contract.run.folder import ExitRecord, ProcessRecord, RunFolder, boot_id, host_id
from backend.contract.run.lock import take_lock


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are looked at often, also those that are over."""
    for name in ("IDLE_MS", "OVER_MS"):
        monkeypatch.setattr(run_watcher, name, 10)
    monkeypatch.setattr(run_watcher, "LIFE_SECONDS", 0.01)


@pytest.fixture
def watcher(qtbot, written_run):
    made = RunWatcher(written_run.folder.path)
    yield made
    made.stop()


def test_an_old_run_is_read_to_its_end(qtbot, watcher, written_run):
    written_run.steps(1, 500)
    qtbot.waitUntil(lambda: watcher.is_caught_up)
    assert watcher.state.step == 500
    assert len(watcher.state.series["loss"]) == 500


def test_new_lines_arrive(qtbot, watcher, written_run):
    qtbot.waitUntil(lambda: watcher.is_caught_up)
    with qtbot.waitSignal(watcher.advanced):
        written_run.steps(1, 3)
    assert watcher.state.step == 3


def test_a_half_written_line_waits(qtbot, watcher, written_run):
    line = events.encode(events.Warned(time=5.0, code="x", message="whole"))
    written_run.append_bytes(line[:15])
    qtbot.waitUntil(lambda: watcher.is_caught_up)
    assert watcher.state.warnings == []
    written_run.append_bytes(line[15:])
    qtbot.waitUntil(lambda: [warning.message for warning in watcher.state.warnings] == ["whole"])


def test_a_torn_line_that_is_cut_off_leaves_nothing_stale(qtbot, watcher, written_run):
    whole = written_run.folder.events.stat().st_size
    written_run.append_bytes(b'{"event":"Warned","time":5.0,"code":"torn","mess')
    qtbot.waitUntil(lambda: watcher.is_caught_up)
    os.truncate(written_run.folder.events, whole)
    written_run.append(
        events.RunResumed(time=6.0, attempt=2, from_step=0), events.Warned(time=7, code="y", message="new")
    )
    qtbot.waitUntil(lambda: watcher.state.attempt == 2)
    assert [warning.message for warning in watcher.state.warnings] == ["new"]


def test_a_file_that_was_replaced_by_a_shorter_one_is_read_anew(qtbot, watcher, written_run):
    written_run.steps(1, 50)
    qtbot.waitUntil(lambda: watcher.state.step == 50)
    with qtbot.waitSignal(watcher.restarted):
        written_run.folder.events.write_bytes(
            events.encode(events.RunStarted(time=9.0, name="other", task="causal_lm", model="m"))
        )
    qtbot.waitUntil(lambda: watcher.state.name == "other")
    assert watcher.state.step == 0


def test_an_unknown_event_and_a_damaged_line_are_stepped_over(qtbot, watcher, written_run):
    written_run.append_bytes(b'{"event":"FromTheFuture","time":1,"what":[1,2]}\nthis is no json\n')
    written_run.steps(1, 2)
    qtbot.waitUntil(lambda: watcher.state.step == 2)


def test_a_line_longer_than_a_chunk_is_read(qtbot, watcher, written_run):
    written_run.append(events.Warned(time=5.0, code="long", message="x" * 300_000))
    qtbot.waitUntil(lambda: len(watcher.state.warnings) == 1)
    assert len(watcher.state.warnings[0].message) == 300_000


def test_a_deleted_folder_is_said_once(qtbot, watcher, written_run):
    qtbot.waitUntil(lambda: watcher.is_caught_up)
    with qtbot.waitSignal(watcher.vanished) as gone:
        shutil.rmtree(written_run.folder.path)
    assert str(written_run.folder.path) in gone.args[0]


def test_a_free_lock_without_an_exit_is_lost(qtbot, watcher):
    qtbot.waitUntil(lambda: watcher.outcome.state == "lost")


def test_a_held_lock_is_running_until_its_holder_dies(qtbot, written_run):
    descriptor = take_lock(written_run.folder.lock)
    watcher = RunWatcher(written_run.folder.path)
    written_run.steps(1, 2)
    qtbot.waitUntil(lambda: watcher.outcome.state == "running")
    os.close(descriptor)
    qtbot.waitUntil(lambda: watcher.outcome.state == "lost")
    watcher.stop()


@pytest.fixture
def ended_run(written_run, monkeypatch):
    """A run that ended an hour ago; whoever watches it looks at each millisecond."""
    monkeypatch.setattr(run_watcher, "OVER_MS", 1)
    monkeypatch.setattr(run_watcher, "LIFE_SECONDS", 0.0)
    written_run.steps(1, 5)
    written_run.append(events.RunFinished(time=9.0, state="stopped", step=5))
    written_run.folder.write_exit_record(ExitRecord(1, 0, 9.0))
    leave_for_an_hour(written_run.folder)
    return written_run


def leave_for_an_hour(folder: RunFolder) -> None:
    an_hour_ago = time.time() - 3600
    os.utime(folder.path, (an_hour_ago, an_hour_ago))


def test_nothing_of_an_ended_run_is_read_again_until_something_changes(qtbot, ended_run, monkeypatch):
    looked, ticked = [], []
    look_at = run_watcher.look_at
    monkeypatch.setattr(run_watcher, "look_at", lambda *given: looked.append(1) or look_at(*given))
    watcher = RunWatcher(ended_run.folder.path)
    qtbot.waitUntil(lambda: watcher.outcome.state == "stopped")
    clock = QTimer(interval=1)
    clock.timeout.connect(lambda: ticked.append(1))
    clock.start()
    qtbot.waitUntil(lambda: len(ticked) >= 50)
    assert len(looked) < 10
    watcher.stop()


def test_an_ended_run_that_is_resumed_is_seen_alive(qtbot, ended_run):
    watcher = RunWatcher(ended_run.folder.path)
    qtbot.waitUntil(lambda: watcher.outcome.state == "stopped")
    descriptor = take_lock(ended_run.folder.lock)
    ended_run.folder.write_process_record(ProcessRecord(2, host_id(), boot_id(), 1, 2, time.time()))
    qtbot.waitUntil(lambda: watcher.outcome.state == "starting")
    os.close(descriptor)
    watcher.stop()


def test_a_long_log_of_an_ended_run_is_read_to_its_end(qtbot, ended_run, monkeypatch):
    monkeypatch.setattr(run_watcher, "LOG_BYTES", 12)
    lines: list[str] = []
    watcher = RunWatcher(ended_run.folder.path)
    watcher.logged.connect(lines.extend)
    qtbot.waitUntil(lambda: watcher.outcome.state == "stopped")
    ended_run.folder.log.write_text("first\n")
    leave_for_an_hour(ended_run.folder)
    qtbot.waitUntil(lambda: lines == ["first"])
    with ended_run.folder.log.open("a") as log:
        log.write("".join(f"line {number}\n" for number in range(9)))
    qtbot.waitUntil(lambda: lines[-1] == "line 8")
    watcher.stop()


def test_the_log_arrives_in_whole_lines_and_a_bar_as_its_last_form(qtbot, watcher, written_run):
    lines: list[str] = []
    watcher.logged.connect(lines.extend)
    written_run.folder.log.write_bytes("first\n10%\r50%\r100%\nGrüße\nhalf".encode())
    qtbot.waitUntil(lambda: lines == ["first", "100%", "Grüße"])


def test_two_windows_see_the_same_run(qtbot, written_run):
    one, other = RunWatcher(written_run.folder.path), RunWatcher(written_run.folder.path)
    written_run.steps(1, 20)
    qtbot.waitUntil(lambda: one.state.step == other.state.step == 20)
    assert one.state.series["loss"].ys == other.state.series["loss"].ys
    one.stop()
    written_run.steps(21, 25)
    qtbot.waitUntil(lambda: other.state.step == 25)
    assert one.state.step == 20
    other.stop()


def test_a_long_run_is_read_over_several_ticks(qtbot, written_run, monkeypatch):
    monkeypatch.setattr(run_watcher, "DRAIN_SECONDS", 0.0)
    written_run.steps(1, 1_000)
    watcher = RunWatcher(written_run.folder.path)
    watcher.stop()
    seen = [0]
    while not watcher.is_caught_up:
        watcher._on_tick()
        seen.append(watcher.state.step)
    assert watcher.state.step == 1_000
    assert max(after - before for before, after in pairwise(seen)) < 200


@pytest.mark.parametrize("name", ["events.jsonl", "process.log", "model"])
def test_a_folder_with_links_is_not_watched(qtbot, watcher, written_run, tmp_path, name: str):
    (tmp_path / "outside").write_bytes(b"somebody's words")
    (written_run.folder.path / name).unlink(missing_ok=True)
    (written_run.folder.path / name).symlink_to(tmp_path / "outside")
    with qtbot.waitSignal(watcher.vanished) as said:
        pass
    assert f"{written_run.folder.path / name}: it is a link" in said.args[0]


def test_a_link_that_comes_later_is_not_followed(qtbot, watcher, written_run, tmp_path):
    qtbot.waitUntil(lambda: watcher.is_caught_up)
    logged: list[list[str]] = []
    watcher.logged.connect(logged.append)
    (tmp_path / "outside").write_bytes(b"somebody's words\n")
    written_run.folder.log.symlink_to(tmp_path / "outside")
    with qtbot.waitSignal(watcher.advanced):
        written_run.steps(1, 3)
    assert logged == []


def test_a_line_nested_without_end_is_passed_over(qtbot, watcher, written_run):
    with written_run.folder.events.open("ab") as file:
        file.write(b'{"event":"Warned","unknown":' + b"[" * 100_000 + b"\n")
    written_run.steps(1, 3)
    qtbot.waitUntil(lambda: watcher.state.step == 3)
