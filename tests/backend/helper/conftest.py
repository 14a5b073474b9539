"""A helper process, one within the tests' own process, and the questions that tests put to them."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from backend import process_tree
from backend.contract.processes import python_command
from backend.contract.resources import resource
from backend.contract.rpc.protocol import Reply, Request
from backend.helper.worker import answer_request


class InProcessHelper:
    """Answers as a worker does, at once and within this process, where the frameworks are loaded already."""

    def __init__(self) -> None:
        self.progress: list[dict[str, Any]] = []

    def send(self, reply: Reply) -> None:
        """What a worker says on the way, which is progress."""
        self.progress.append(_as_the_window_gets_it(reply))

    def answer(self, query: str, **arguments: Any) -> Any:
        """Ask."""
        reply = self.reply(query, **arguments)
        assert "answer" in reply, reply
        return reply["answer"]

    def mistake(self, query: str, **arguments: Any) -> str:
        """Ask for the sentence why there is no answer."""
        return self.reply(query, **arguments)["error"]["message"]

    def reply(self, query: str, **arguments: Any) -> dict[str, Any]:
        """Ask; the last reply."""
        asked = msgspec.json.decode(msgspec.json.encode(Request(1, query, arguments)), type=Request)
        return _as_the_window_gets_it(answer_request(asked, self))


def _as_the_window_gets_it(reply: Reply) -> dict[str, Any]:
    return json.loads(msgspec.json.encode(reply))


class Helper:
    """One `burnish serve`; replies are kept until they are asked for."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            python_command("backend", "serve"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.progress: list[dict[str, Any]] = []
        self._replies: dict[int, dict[str, Any]] = {}
        self._number = 0

    def ask(self, query: str, **arguments: Any) -> int:
        """Send a question; its number."""
        self._number += 1
        self.send({"id": self._number, "query": query, "arguments": arguments})
        return self._number

    def cancel(self, number: int) -> None:
        """Take a question back."""
        self.send({"id": number, "query": "cancel"})

    def send(self, request: dict[str, Any]) -> None:
        """One line."""
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def reply(self, number: int) -> dict[str, Any]:
        """The last reply to a question; progress on the way is kept in `progress`."""
        while number not in self._replies:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read().decode()
            reply = json.loads(line)
            if "progress" in reply:
                self.progress.append(reply)
            else:
                self._replies[reply["id"]] = reply
        return self._replies.pop(number)

    def answer(self, query: str, **arguments: Any) -> Any:
        """Ask and wait."""
        reply = self.reply(self.ask(query, **arguments))
        assert "answer" in reply, reply
        return reply["answer"]

    def mistake(self, query: str, **arguments: Any) -> str:
        """Ask and wait for the sentence why there is no answer."""
        return self.reply(self.ask(query, **arguments))["error"]["message"]

    def workers(self) -> set[int]:
        """The processes that answer."""
        return process_tree.descendants(self.process.pid)

    def close(self) -> int:
        """Close its stdin and wait for its end."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.wait()


@contextmanager
def helper_process() -> Iterator[Helper]:
    """A helper that is ended afterwards, however it went, and takes its workers along."""
    started = Helper()
    try:
        yield started
    finally:
        workers = started.workers()
        started.close()
    assert not workers & {process.pid for process in process_tree.processes()}


@pytest.fixture
def helper() -> Iterator[Helper]:
    """A helper of the test's own, for what it does to it."""
    with helper_process() as started:
        yield started


@pytest.fixture(scope="session")
def session_helper() -> Iterator[Helper]:
    """The helper behind `shared_helper`."""
    with helper_process() as started:
        yield started


@pytest.fixture
def shared_helper(session_helper: Helper) -> Helper:
    """A helper that has answered other tests and will answer more; its workers load their libraries once."""
    session_helper.progress.clear()
    return session_helper


@pytest.fixture
def in_process_helper() -> InProcessHelper:
    """For what is answered, and not how questions and answers go between processes."""
    return InProcessHelper()


@pytest.fixture
def tokenizer() -> str:
    """The demo model's folder."""
    return os.fspath(resource("demo", "bert-tiny"))
