"""Small real things that services are tested with: a helper process of a few lines, and a run on disk."""

import sys
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QProcess

from backend.contract.run import events
from backend.contract.run.folder import ProcessRecord, RunFolder, boot_id, host_id

HELPER = """
import json, os, sys
asked = {}
print("noise that is no reply\\n42", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    query, arguments, number = request["query"], request.get("arguments", {}), request["id"]
    say = lambda **reply: print(json.dumps({"id": number, **reply}), flush=True)
    if query == "echo":
        say(answer=arguments)
    elif query == "count":
        for done in range(arguments["to"]):
            say(progress={"done": done, "total": arguments["to"]})
        say(answer=arguments["to"])
    elif query == "refuse":
        say(error={"message": "No. Choose another file.", "field": "data.train"})
    elif query == "large":
        say(answer={"arrow": "/somewhere/answer.arrow"})
    elif query == "devices":
        say(answer={"devices": [{"kind": "cpu", "index": 0, "name": "two cores", "memory_mb": 8000, "free_mb": 4000}]})
    elif query == "plan":
        say(answer={"rows": "many"})
    elif query == "die_once":
        if not os.path.exists(arguments["mark"]):
            open(arguments["mark"], "w").close()
            sys.exit("out of sorts")
        say(answer="alive again")
    elif query == "die":
        sys.exit("cannot go on")
    elif query == "pid":
        say(answer=os.getpid())
    elif query == "third_life":
        with open(arguments["lives"], "a") as lives:
            lives.write("x")
        if len(open(arguments["lives"]).read()) == 3:
            say(answer="at last")
"""


@pytest.fixture
def helper(tmp_path: Path):
    """Makes the process of a tiny real helper that speaks the protocol."""
    script = tmp_path / "helper.py"
    script.write_text(HELPER)

    def make(parent: QObject) -> QProcess:
        process = QProcess(parent)
        process.setProgram(sys.executable)
        process.setArguments([str(script)])
        return process

    return make


class WrittenRun:
    """A run on disk to which a test appends as the backend would."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self.folder.path.mkdir(parents=True)
        self.folder.spec.write_text("version: 1\n")
        self.folder.write_process_record(ProcessRecord(1, host_id(), boot_id(), 1, 2, time.time()))
        self.folder.lock.touch()
        self.append(events.RunStarted(time=1.0, name="written", task="text_classification", model="bert-tiny"))

    def append(self, *many: events.Event) -> None:
        self.append_bytes(b"".join(map(events.encode, many)))

    def append_bytes(self, data: bytes) -> None:
        with self.folder.events.open("ab") as file:
            file.write(data)

    def steps(self, first: int, last: int) -> None:
        self.append(*(step(number) for number in range(first, last + 1)))


def step(number: int) -> events.StepFinished:
    return events.StepFinished(
        time=2.0 + number,
        step=number,
        epoch=number / 10,
        loss=1.0 / number,
        learning_rate=1e-4,
        gradient_norm=1.0,
        rows=8,
        tokens=64,
        seconds=0.1,
    )


@pytest.fixture
def written_run(tmp_path: Path) -> WrittenRun:
    return WrittenRun(tmp_path / "2026-11-21-1530-written")
