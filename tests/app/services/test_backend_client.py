"""The conversation with the helper process."""

import json
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QProcess

from app.services.backend_client import ArrowAnswer, BackendClient
from backend.contract.rpc.plan import DeviceList
from backend.contract.rpc.protocol import LONGEST_LINE


class Said:
    """What came back for one question."""

    def __init__(self) -> None:
        self.answers: list = []
        self.mistakes: list = []
        self.progress: list = []

    def __call__(self) -> bool:
        return bool(self.answers or self.mistakes)


@pytest.fixture
def client(qtbot, helper):
    made = BackendClient(make_process=helper)
    yield made
    made.close()


def asked(client: BackendClient, query: str, **arguments) -> Said:
    said = Said()
    client.ask(query, arguments, said.answers.append, said.mistakes.append, said.progress.append)
    return said


def test_nothing_is_started_before_the_first_question(client):
    assert client.process_id == 0


def test_a_question_is_answered_although_something_else_was_printed(qtbot, client):
    said = asked(client, "echo", text="Grüße")
    qtbot.waitUntil(said)
    assert said.answers == [{"text": "Grüße"}]


def test_answers_take_their_shape_from_the_contract(qtbot, client):
    said = asked(client, "devices")
    qtbot.waitUntil(said)
    assert isinstance(said.answers[0], DeviceList)
    assert said.answers[0].devices[0].name == "two cores"


def test_an_answer_of_another_shape_is_a_mistake_in_words(qtbot, client):
    said = asked(client, "plan")
    qtbot.waitUntil(said)
    assert "unexpected format" in said.mistakes[0].message


def test_a_large_answer_is_a_file(qtbot, client):
    said = asked(client, "large")
    qtbot.waitUntil(said)
    assert said.answers == [ArrowAnswer("/somewhere/answer.arrow")]


def test_progress_comes_before_the_answer(qtbot, client):
    said = asked(client, "count", to=3)
    qtbot.waitUntil(said)
    assert [one.done for one in said.progress] == [0, 1, 2]
    assert said.answers == [3]


def test_a_refusal_names_the_field(qtbot, client):
    said = asked(client, "refuse")
    qtbot.waitUntil(said)
    assert (said.mistakes[0].message, said.mistakes[0].field) == ("No. Choose another file.", "data.train")


def test_a_cancelled_question_is_never_answered(qtbot, client):
    cancelled, other = Said(), Said()
    ticket = client.ask("echo", {"n": 1}, cancelled.answers.append, cancelled.mistakes.append)
    ticket.cancel()
    client.ask("echo", {"n": 2}, other.answers.append, other.mistakes.append)
    qtbot.waitUntil(other)
    assert not ticket.open
    assert not cancelled()


def test_the_file_of_an_answer_that_comes_too_late_is_deleted(client, tmp_path: Path):
    late = tmp_path / "answer.arrow"
    late.touch()
    client.ask("echo", {}, print, print).cancel()
    client._take(json.dumps({"id": 1, "answer": {"arrow": str(late)}}).encode())
    assert not late.exists()


def test_a_helper_that_dies_is_started_again_and_asked_once_more(qtbot, client, tmp_path: Path):
    states: list[str] = []
    client.state_changed.connect(states.append)
    said = asked(client, "die_once", mark=str(tmp_path / "died"))
    qtbot.waitUntil(said)
    assert said.answers == ["alive again"]
    qtbot.waitUntil(lambda: states[-1:] == ["ready"])
    assert "restarting" in states


def test_a_question_that_kills_the_helper_twice_gets_one_sentence(qtbot, client):
    said = asked(client, "die")
    qtbot.waitUntil(said)
    assert len(said.mistakes) == 1
    assert "cannot go on" in said.mistakes[0].message
    assert "Try again" in said.mistakes[0].message


def test_after_a_death_other_questions_are_answered(qtbot, client):
    said = asked(client, "die")
    qtbot.waitUntil(said)
    later = asked(client, "echo", n=1)
    qtbot.waitUntil(later)
    assert later.answers == [{"n": 1}]


def test_a_helper_that_is_killed_while_asked_answers_all_the_same(qtbot, client):
    first = asked(client, "pid")
    qtbot.waitUntil(first)
    said = asked(client, "pid")
    os.kill(first.answers[0], signal.SIGKILL)
    qtbot.waitUntil(said)
    assert said.answers
    assert client.process_id != first.answers[0]


def test_a_wanted_restart_is_no_death(qtbot, client, tmp_path: Path):
    lives = tmp_path / "lives"
    said = asked(client, "third_life", lives=str(lives))
    for count in (1, 2):
        qtbot.waitUntil(lambda count=count: lives.exists() and len(lives.read_text()) == count)
        client.restart()
    qtbot.waitUntil(said)
    assert (said.answers, said.mistakes) == (["at last"], [])


def test_a_helper_that_cannot_start_is_reported(qtbot, tmp_path: Path):
    from PySide6.QtCore import QProcess

    def missing(parent):
        process = QProcess(parent)
        process.setProgram(str(tmp_path / "no-such-program"))
        return process

    client = BackendClient(make_process=missing)
    said = asked(client, "echo")
    qtbot.waitUntil(said)
    assert "burnish doctor" in said.mistakes[0].message
    client.close()


def test_closing_ends_the_helper(qtbot, client):
    said = asked(client, "pid")
    qtbot.waitUntil(said)
    client.close()
    with pytest.raises(ProcessLookupError):
        os.kill(said.answers[0], 0)


# Helpers that misbehave

BROKEN = {
    "half a reply": b'{"id": NUMBER, "answ\n',
    "binary": b"\x00\xff\xfe\x80\n",
    "another id": b'{"id": 99, "answer": 1}\n',
    "no id": b'{"answer": 1}\n',
    "an id that is no number": b'{"id": "NUMBER", "answer": 1}\n',
    "another type": b"[1, 2]\n",
    "a reply nested without end": b'{"id": NUMBER, "answer": ' + b"[" * 100_000 + b"\n",
    "a mistake that is none": b'{"id": NUMBER, "error": 5}\n',
    "progress that is none": b'{"id": NUMBER, "progress": "much"}\n',
    "the start of a reply, then silence": b'{"id": NUMBER, "answer": ',
    "two replies in one line": b'{"id": NUMBER, "ans{"id": 2, "answer": 1}\n',
}
MISBEHAVING = """
import json, sys
say = lambda data: (sys.stdout.buffer.write(data), sys.stdout.buffer.flush())
for line in sys.stdin:
    request = json.loads(line)
    if request["query"] == "say":
        say(bytes.fromhex(request["arguments"]["hex"]).replace(b"NUMBER", str(request["id"]).encode()))
        if "ends" in request["arguments"]:
            break
    elif request["query"] == "endless":
        say(b'{"id": 1, "answer": "')
        for _ in range(1000):
            say(b"x" * 1_000_000)
    elif request["query"] == "echo":
        say(json.dumps({"id": request["id"], "answer": request["arguments"]}).encode() + b"\\n")
"""


@pytest.fixture
def misbehaving(qtbot, tmp_path: Path):
    """A client of a helper that says whatever it is asked to say, and is silent about any other question."""
    script = tmp_path / "misbehaving.py"
    script.write_text(MISBEHAVING)

    def make(parent):
        process = QProcess(parent)
        process.setProgram(sys.executable)
        process.setArguments([str(script)])
        return process

    made = BackendClient(make_process=make, stall_ms=200)
    yield made
    made.close()


@pytest.mark.parametrize("what", BROKEN)
def test_whatever_the_helper_says_no_question_waits_for_ever(qtbot, misbehaving, what: str):
    broken, later = asked(misbehaving, "say", hex=BROKEN[what].hex()), asked(misbehaving, "echo", n=2)
    qtbot.waitUntil(broken)
    qtbot.waitUntil(later)
    assert "Couldn't read" in broken.mistakes[0].message
    again = asked(misbehaving, "echo", n=3)
    qtbot.waitUntil(again)
    assert again.answers == [{"n": 3}]


def test_half_a_line_of_a_helper_that_died_is_forgotten(qtbot, misbehaving):
    broken = asked(misbehaving, "say", hex=b'{"id": NUMBER, "answer": '.hex(), ends=True)
    qtbot.waitUntil(broken)
    assert "crashed twice" in broken.mistakes[0].message
    again = asked(misbehaving, "echo", n=3)
    qtbot.waitUntil(again)
    assert again.answers == [{"n": 3}]


def test_a_line_of_a_gigabyte_is_not_gathered(qtbot, misbehaving):
    before = psutil.Process().memory_info().rss
    most: list[int] = []
    endless = asked(misbehaving, "endless")

    def is_over() -> bool:
        most.append(psutil.Process().memory_info().rss - before)
        return endless()

    qtbot.waitUntil(is_over, timeout=30_000)
    assert "Couldn't read" in endless.mistakes[0].message
    assert max(most) < 6 * LONGEST_LINE
