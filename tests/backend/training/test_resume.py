"""What an attempt takes over from those before it: the rows of a pass, and what is left of their events."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.contract.heads import Head
from backend.contract.resources import resource
from backend.contract.run.events import RunResumed, RunStarted, Warned, encode
from backend.contract.run.folder import ProcessRecord, RunFolder
from backend.contract.spec import RunSpec
from backend.hardware import planner
from backend.hardware.devices import Device, DeviceChoice
from backend.preflight.resolve import resolve
from backend.training import resume
from backend.training.event_log import EventLog, read_events
from backend.training.requests import Requests
from backend.training.stages import StageReporter
from tests.backend.training.example_events import STARTED, step

PLENTY, SCARCE = 100_000.0, 1_000.0
MODEL = resource("demo", "bert-tiny")


def spec(**hardware: object) -> RunSpec:
    return resolve(
        {
            "task": {"type": "text_classification"},
            "model": {"name_or_path": str(MODEL)},
            "data": {"train": "train.csv"},
            "training": {"batch_size": 512},
            "hardware": hardware,
        },
        MODEL,
    )


def work(**hardware: object) -> planner.TrainingLoad:
    return planner.TrainingLoad(spec(**hardware), MODEL, Head.SEQUENCE_CLASSIFICATION, 512, 4_400_000, "float32")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_the_rows_of_a_pass_stay_when_more_memory_is_free(folder: RunFolder):
    first, _ = resume.rows_of_a_pass(folder, work(), "cpu", SCARCE)
    assert 1 < first < work().micro_batch_size(PLENTY)
    assert resume.rows_of_a_pass(folder, work(), "cpu", PLENTY) == (first, "")


def test_they_stay_when_a_little_less_memory_is_free_than_the_plan_wanted_to_spare(folder: RunFolder):
    first, _ = resume.rows_of_a_pass(folder, work(), "cpu", SCARCE)
    assert resume.rows_of_a_pass(folder, work(), "cpu", planner.total(work().memory(first))) == (first, "")


def test_where_they_no_longer_fit_the_attempt_says_so_and_the_next_comes_back_to_them(folder: RunFolder):
    first, _ = resume.rows_of_a_pass(folder, work(), "cpu", PLENTY)
    fewer, note = resume.rows_of_a_pass(folder, work(), "cpu", SCARCE)
    assert fewer == work().micro_batch_size(SCARCE) < first
    assert f"{fewer} rows at a time, while earlier ones read {first}" in note
    assert "memory" in note
    assert resume.rows_of_a_pass(folder, work(), "cpu", PLENTY) == (first, "")


@pytest.mark.parametrize(
    ("hardware", "device"), [({"micro_batch_size": 3}, "cpu"), ({"memory_limit": 0.8}, "cpu"), ({}, "cuda:0")]
)
def test_what_a_person_changes_replaces_the_plan(folder: RunFolder, hardware: dict[str, object], device: str):
    resume.rows_of_a_pass(folder, work(), "cpu", PLENTY)
    rows, note = resume.rows_of_a_pass(folder, work(**hardware), device, SCARCE)
    assert rows == work(**hardware).micro_batch_size(SCARCE)
    assert "changed" in note
    assert resume.rows_of_a_pass(folder, work(**hardware), device, PLENTY) == (rows, "")


@pytest.mark.parametrize("content", ["", "[]", '{"micro_batch_size": 0}', '{"micro_batch_size": 1e9}', "null"])
def test_a_damaged_plan_is_made_anew(folder: RunFolder, content: str):
    folder.plan.write_text(content)
    rows = resume.rows_of_a_pass(folder, work(), "cpu", SCARCE)
    assert rows == (work().micro_batch_size(SCARCE), "")
    assert json.loads(folder.plan.read_text())["micro_batch_size"] == rows[0]


# Events


@pytest.fixture
def log(folder: RunFolder) -> Iterator[EventLog]:
    made = EventLog(folder.events)
    yield made
    made.close()


def begun(folder: RunFolder, log: EventLog, from_step: int) -> list[object]:
    """The events with which an attempt begins after what is in the folder."""
    earlier = read_events(folder.events)
    choice = DeviceChoice(("cpu",), Device("cpu", "CPU", "cpu", 8000.0, 8000.0), "float32", "")
    resume.write_first_events(folder, spec(), log, StageReporter(log, lambda: None), earlier, from_step, choice)
    return read_events(folder.events)[len(earlier) :]


def warned(found: list[object]) -> list[str]:
    return [event.message for event in found if isinstance(event, Warned) and event.code == "missing_events"]


def test_a_run_whose_events_are_gone_goes_on_from_its_checkpoint_and_says_what_is_missing(
    folder: RunFolder, log: EventLog
):
    found = begun(folder, log, from_step=40)
    assert [type(event) for event in found[:2]] == [RunStarted, RunResumed]
    assert found[1].from_step == 40
    assert "steps 1–40" in warned(found)[0]


def test_steps_that_were_cut_out_are_named_and_only_once(folder: RunFolder):
    kept = [STARTED, *map(step, range(1, 11)), *map(step, range(21, 30)), step(31), step(32)]
    folder.events.write_bytes(b"".join(map(encode, kept)))
    log = EventLog(folder.events)
    assert "steps 11–20, 30, 33–35" in warned(begun(folder, log, from_step=35))[0]
    assert warned(begun(folder, log, from_step=35)) == []
    log.close()


def test_a_whole_file_lacks_nothing(folder: RunFolder):
    again = RunResumed(time=2.0, attempt=2, from_step=3)
    kept = [STARTED, *map(step, range(1, 6)), again, *map(step, range(4, 8))]
    folder.events.write_bytes(b"".join(map(encode, kept)))
    log = EventLog(folder.events)
    assert warned(begun(folder, log, from_step=6)) == []
    log.close()


@pytest.mark.parametrize(("from_step", "where"), [(40, "from step 40 (2 of 3)"), (0, "from the beginning (2 of 3)")])
def test_a_restart_is_told_with_its_reason(folder: RunFolder, log: EventLog, from_step: int, where: str):
    record = ProcessRecord(3, "", "", 1, 1, 0.0, max_restarts=3, restarts=2, died_of=9, killed_by="memory")
    folder.write_process_record(record)
    found = begun(folder, log, from_step)
    assert [event.message for event in found if isinstance(event, Warned) and event.code == "restarted"] == [
        f"the engine process was killed (SIGKILL), because the system ran out of memory. Restarted {where}"
    ]


def test_a_run_whose_supervisor_is_gone_is_interrupted(folder: RunFolder, monkeypatch: pytest.MonkeyPatch):
    folder.spec.touch()
    requests = Requests(folder, interval=0.0)
    assert requests.pending() is None
    monkeypatch.setattr("os.getppid", lambda: 1)
    assert requests.pending() == "interrupt"
