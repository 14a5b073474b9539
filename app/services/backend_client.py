"""Queries the helper process: sends queries, receives answers, and restarts it when it crashes."""

import json
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer, Signal

from app.core import formatting
from app.core.backend_messages import translate_messages
from app.core.i18n import tr, translate_catalog
from app.core.tasks import learn_tasks
from backend.contract.catalog import Catalog
from backend.contract.messages import learn
from backend.contract.processes import python_command
from backend.contract.rpc import protocol
from backend.contract.rpc.answers import ANSWERS


def backend_process(arguments: list[str], environment: Mapping[str, str], parent: QObject) -> QProcess:
    """A backend command with `environment` added to ours, not started yet."""
    program, *words = python_command("backend", *arguments)
    process = QProcess(parent)
    process.setProgram(program)
    process.setArguments(words)
    variables = QProcessEnvironment.systemEnvironment()
    for name, value in environment.items():
        variables.insert(name, value)
    process.setProcessEnvironment(variables)
    return process


def last_line(text: str) -> str:
    """The last non-empty line: by convention the sentence for people."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


OnAnswer = Callable[[Any], None]
OnError = Callable[[protocol.ErrorReply], None]
OnProgress = Callable[[protocol.Progress], None]
MakeProcess = Callable[[QObject], QProcess]
DEATHS_WITHOUT_ANSWER = 3
"""After so many starts in a row that answered nothing the helper is given up until the next question."""
QUIT_MS = 1500
STALL_MS = 30_000
"""A reply is written in one go, so half a line that is not continued for so long never will be."""


@dataclass(frozen=True)
class ArrowAnswer:
    """An answer of many tokens: an Arrow file, which the reader deletes."""

    path: str

    def discard(self) -> None:
        """Delete the file without reading it."""
        with suppress(OSError):  # it is in a temporary folder, which is emptied later
            Path(self.path).unlink()


@dataclass
class _Question:
    request: protocol.Request
    on_answer: OnAnswer
    on_error: OnError
    on_progress: OnProgress | None
    deaths: int = 0


class PendingQuery:
    """One pending query; `cancel` drops it on both sides."""

    def __init__(self, client: "BackendClient", number: int) -> None:
        self._client = client
        self._number = number

    @property
    def open(self) -> bool:
        """Whether the answer is pending."""
        return self._client.is_open(self._number)

    def cancel(self) -> None:
        """From now on no callback of this query is called."""
        self._client.forget(self._number)


class BackendClient(QObject):
    """Queries the helper process, which is started by the first query and restarted when it dies."""

    state_changed = Signal(str)
    """starting, ready, busy, restarting or stopped."""

    def __init__(
        self,
        environment: Callable[[], Mapping[str, str]] = dict,
        parent: QObject | None = None,
        make_process: MakeProcess | None = None,
        stall_ms: int = STALL_MS,
    ) -> None:
        super().__init__(parent)
        self._make_process = make_process or (lambda owner: backend_process(["serve"], environment(), owner))
        self._process: QProcess | None = None
        self._questions: dict[int, _Question] = {}
        self._number = 0
        self._half_line = bytearray()
        self._has_replied = False
        self._stall = QTimer(self, interval=stall_ms, singleShot=True)
        self._stall.timeout.connect(lambda: self._on_unreadable(bytes(self._half_line)))
        self._deaths = 0
        self._state = "stopped"
        self._closing = self._leaving = False
        self.last_words: deque[str] = deque(maxlen=200)
        """The helper's stderr, for reports."""

    @property
    def state(self) -> str:
        """The state, as in `state_changed`."""
        return self._state

    @property
    def process_id(self) -> int:
        """The helper's process id, 0 while there is none."""
        return self._process.processId() if self._process else 0

    def ask(
        self,
        query: str,
        arguments: Mapping[str, Any],
        on_answer: OnAnswer,
        on_error: OnError,
        on_progress: OnProgress | None = None,
    ) -> PendingQuery:
        """Send a query; exactly one of `on_answer` and `on_error` is called later, never from inside this call."""
        self._number += 1
        request = protocol.Request(self._number, query, dict(arguments))
        question = _Question(request, on_answer, on_error, on_progress)
        self._questions[request.id] = question
        if self._process is not None:
            self._send(request)
        elif not self._closing:
            self._start("starting")
        self._update_state()
        return PendingQuery(self, request.id)

    def is_open(self, number: int) -> bool:
        """Whether that query is pending."""
        return number in self._questions

    def forget(self, number: int) -> None:
        """Drop a query and tell the helper to stop working on it."""
        if self._questions.pop(number, None) and self._process is not None:
            self._send(protocol.Request(number, protocol.CANCEL))
        self._update_state()

    def close(self) -> None:
        """End the helper by closing its stdin."""
        self._closing = True
        self._stall.stop()
        self._questions.clear()
        process, self._process = self._process, None
        if process is None:
            return
        process.closeWriteChannel()
        if not process.waitForFinished(QUIT_MS):
            process.terminate()
            if not process.waitForFinished(QUIT_MS):
                process.kill()
                process.waitForFinished(QUIT_MS)
        self._set_state("stopped")

    def restart(self) -> None:
        """Restart the helper, for example because the cache folder changed. Pending queries are sent again."""
        if self._process is not None:
            self._leaving = True
            self._process.closeWriteChannel()

    # The process

    def _start(self, state: str) -> None:
        self._half_line = bytearray()
        self._has_replied = False
        process = self._process = self._make_process(self)
        process.readyReadStandardOutput.connect(self._on_output)
        process.readyReadStandardError.connect(self._on_stderr)
        process.finished.connect(self._on_finished)
        process.errorOccurred.connect(self._on_process_error)
        self._set_state(state)
        process.start()
        for question in self._questions.values():
            self._send(question.request)

    def _send(self, request: protocol.Request) -> None:
        if self._process is not None:
            self._process.write(_line(request))

    def _on_output(self) -> None:
        process = self._process
        if process is None:
            return
        *lines, rest = bytes(process.readAllStandardOutput().data()).split(b"\n")
        for end in lines:
            line, self._half_line = bytes(self._half_line + end), bytearray()
            if line.strip():
                self._take(line)
            if self._process is not process:
                return
        self._half_line += rest
        self._stall.start() if self._half_line else self._stall.stop()
        if len(self._half_line) > protocol.LONGEST_LINE:
            self._on_unreadable(bytes(self._half_line))

    def _on_stderr(self) -> None:
        if self._process is not None:
            text = bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace")
            self.last_words.extend(line for line in text.splitlines() if line.strip())

    def _on_process_error(self, error: QProcess.ProcessError) -> None:
        # Every other error is followed by `finished`.
        if error == QProcess.ProcessError.FailedToStart:
            self._after_death()

    def _on_finished(self) -> None:
        if self._process is not None:
            self._on_output()
            self._on_stderr()
        self._after_death()

    def _after_death(self) -> None:
        self._stall.stop()
        process, self._process = self._process, None
        if process is not None:
            process.deleteLater()
        if self._closing:
            return
        given_up = [] if self._leaving else self._take_hopeless()
        self._leaving = False
        if self._questions:
            self._start("restarting")
        else:
            self._deaths = 0
            self._set_state("stopped")
        for question in given_up:
            question.on_error(protocol.ErrorReply(self._epitaph(question.request.query)))

    def _take_hopeless(self) -> list[_Question]:
        """Remove the queries during which the helper died before, or all if it keeps dying; others are sent again."""
        self._deaths += 1
        given_up = [
            self._questions.pop(number)
            for number, question in list(self._questions.items())
            if question.deaths >= 1 or self._deaths >= DEATHS_WITHOUT_ANSWER
        ]
        for question in self._questions.values():
            question.deaths += 1
        return given_up

    def _epitaph(self, query: str) -> str:
        words = last_line("\n".join(self.last_words))
        reason = tr(" Last output: {words}", words=words) if words else ""
        return tr(
            "The helper process crashed twice while answering “{query}”. Try again, or run `burnish doctor`.{reason}",
            query=query,
            reason=reason,
        )

    # Replies

    def _take(self, line: bytes) -> None:
        try:
            reply = _decoder.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            if self._has_replied or not _is_noise(line):
                self._on_unreadable(line, is_whole=isinstance(error, msgspec.ValidationError))
            return
        if not 0 < reply.id <= self._number:
            self._on_unreadable(line)
            return
        self._has_replied = True
        self._deaths = 0
        learn(reply.messages)
        question = self._questions.get(reply.id)
        if question is None:
            if _is_arrow(reply.answer):
                ArrowAnswer(reply.answer["arrow"]).discard()
            return
        if reply.progress is not None and reply.error is None and reply.answer is None:
            if question.on_progress is not None:
                question.on_progress(reply.progress)
            return
        del self._questions[reply.id]
        self._update_state()
        _deliver(question, reply)

    def _on_unreadable(self, line: bytes, *, is_whole: bool = False) -> None:
        """Answer the query that a line belongs to with an error, if the line says so, else all pending ones.

        Unless the line `is_whole`, it may have swallowed others: the helper is replaced and gets pending queries again.
        """
        self.last_words.append(tr("unreadable answer: {line}", line=repr(line[:80])))
        number = protocol.id_in(line) or 0
        question = self._questions.pop(number, None)
        answered = [question] if question else []
        if is_whole and 0 < number <= self._number:
            self._send(protocol.Request(number, protocol.CANCEL))
        else:
            if question is None:
                answered = list(self._questions.values())
                self._questions.clear()
            self._replace()
        self._update_state()
        for question in answered:
            words = tr(
                "Couldn't read the helper's answer to “{query}”. Try again, or run `burnish doctor`.",
                query=question.request.query,
            )
            question.on_error(protocol.ErrorReply(words))

    def _replace(self) -> None:
        """End the helper, ignoring its output, and start another if queries are pending."""
        process, self._process = self._process, None
        self._stall.stop()
        if process is not None:
            process.blockSignals(True)
            process.kill()
            process.waitForFinished(QUIT_MS)
            process.deleteLater()
        if self._questions:
            self._start("restarting")
        else:
            self._set_state("stopped")

    def _update_state(self) -> None:
        if self._process is not None and not (self._state in ("starting", "restarting") and self._questions):
            self._set_state("busy" if self._questions else "ready")

    def _set_state(self, state: str) -> None:
        if state != self._state:
            self._state = state
            # Not from inside `ask`: the caller is not ready for the answer yet.
            QTimer.singleShot(0, self, self._emit_state)

    def _emit_state(self) -> None:
        self.state_changed.emit(self._state)


_decoder = msgspec.json.Decoder(protocol.Reply)


def _is_noise(line: bytes) -> bool:
    """Whether a line was printed by something else while the helper started, before it redirected its stdout."""
    try:
        return not line.decode().lstrip().startswith(("{", "["))
    except UnicodeDecodeError:
        return False


def _line(request: protocol.Request) -> bytes:
    try:
        return msgspec.json.encode(request) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which a text box may hold but no JSON
        whole = json.dumps(msgspec.to_builtins(request), ensure_ascii=False)
        return whole.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n"


def _deliver(question: _Question, reply: protocol.Reply) -> None:
    if reply.error is not None:
        question.on_error(translate_messages(reply.error))
        return
    try:
        answer = _convert(question.request.query, reply.answer)
    except msgspec.ValidationError as error:
        question.on_error(
            protocol.ErrorReply(
                tr(
                    "The helper's answer to “{query}” has an unexpected format: {error}",
                    query=question.request.query,
                    error=error,
                )
            )
        )
        return
    question.on_answer(answer)


def _is_arrow(answer: Any) -> bool:
    return isinstance(answer, dict) and set(answer) == {"arrow"}


def _convert(query: str, answer: Any) -> Any:
    if _is_arrow(answer):
        return ArrowAnswer(answer["arrow"])
    if query == "catalog":
        answer = translate_catalog(answer)
    kind = ANSWERS.get(query)
    found = answer if kind is None else translate_messages(msgspec.convert(answer, kind))
    if isinstance(found, Catalog):
        formatting.learn_metrics(found.metrics)
        learn_tasks(found.tasks)
    return found
