"""Repeats a query whenever its subject changes: one query runs at a time, and the newest wins.

A query that is answered in a few milliseconds is sent at once; a longer one is never cancelled for a newer one on the
same thing, because that would end the worker that has the tokenizer open. Only another tokenizer (or what `opened`
names), or `stop`, cancels it. If nothing stays open (`opened` is empty), a newer query cancels the older one.
"""

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, QTimer

from app.services.backend_client import ArrowAnswer, BackendClient, OnAnswer, OnError, OnProgress, PendingQuery
from backend.contract.rpc.protocol import ErrorReply

DELAY_MS = 400
"""Milliseconds without a change before a question asked `soon` is sent."""
MakeArguments = Callable[[], Mapping[str, Any] | None]
"""The question's arguments at the moment of asking, or None where there is nothing to ask."""


class LatestQuestion(QObject):
    """One query; answers come in the order of the queries, and those in between may be skipped.

    `ask` takes the arguments; `ask_now` and `ask_soon` get them from `arguments`, the latter if nothing has changed for
    `delay_ms`, by default DELAY_MS.
    """

    def __init__(
        self,
        client: BackendClient,
        query: str,
        on_answer: OnAnswer,
        on_error: OnError,
        on_progress: OnProgress | None = None,
        opened: str = "tokenizer",
        *,
        arguments: MakeArguments = lambda: None,
        delay_ms: int | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._client, self._query = client, query
        self._opened, self._make_arguments = opened, arguments
        self._on_answer, self._on_error, self._on_progress = on_answer, on_error, on_progress
        self._ticket: PendingQuery | None = None
        self._latest_question: dict[str, Any] = {}
        self._answered_question: dict[str, Any] = {}
        self._waiting: dict[str, Any] | None = None
        self._is_wanted = True
        self._calm = QTimer(self, singleShot=True, interval=DELAY_MS if delay_ms is None else delay_ms)
        self._calm.timeout.connect(self.ask_now)

    @property
    def open(self) -> bool:
        """Whether a wanted answer is pending."""
        return self._ticket is not None and (self._is_wanted or self._waiting is not None)

    @property
    def waits(self) -> bool:
        """Whether an answer is pending, or a query is scheduled."""
        return self.open or self._calm.isActive()

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of the running or last query."""
        return self._latest_question

    @property
    def answered(self) -> Mapping[str, Any]:
        """The arguments of the query answered last."""
        return self._answered_question

    def ask(self, arguments: Mapping[str, Any]) -> None:
        """Send the query now, or after the running one; equal queries are sent once."""
        question = dict(arguments)
        self._calm.stop()
        if self._ticket is not None and not self._is_about_the_same(question):
            self.stop()
        if self._ticket is None:
            self._send(question)
        elif question == self._latest_question:
            self._waiting, self._is_wanted = None, True
        else:
            self._waiting = question

    def ask_now(self) -> None:
        """Send a query with the result of `arguments`."""
        arguments = self._make_arguments()
        if arguments is None:
            self.forget()
        else:
            self.ask(arguments)

    def ask_soon(self) -> None:
        """Schedule a query after a change; the pending answer is outdated."""
        self.forget()
        self._calm.start()

    def ignore(self) -> None:
        """Ignore the running query's answer, and drop scheduled ones; unlike `stop`, its worker is kept."""
        self._calm.stop()
        self._waiting, self._is_wanted = None, False

    def forget(self) -> None:
        """Drop all answers; a worker that keeps something open is kept."""
        if self._opened:
            self.ignore()
        else:
            self.stop()

    def stop(self) -> None:
        """Cancel the running query, and drop scheduled ones."""
        self._calm.stop()
        if self._ticket is not None:
            self._ticket.cancel()
        self._ticket, self._waiting = None, None

    def _is_about_the_same(self, question: Mapping[str, Any]) -> bool:
        if not self._opened:
            return question == self._latest_question
        return question.get(self._opened) == self._latest_question.get(self._opened)

    def _send(self, question: dict[str, Any]) -> None:
        self._latest_question, self._waiting, self._is_wanted = question, None, True
        self._ticket = self._client.ask(
            self._query, question, self._on_answered, self._on_refused, self._forward_progress
        )

    def _on_answered(self, answer: Any) -> None:
        is_wanted = self._is_wanted
        self._go_on()
        if is_wanted:
            self._on_answer(answer)
        elif isinstance(answer, ArrowAnswer):
            answer.discard()

    def _on_refused(self, mistake: ErrorReply) -> None:
        is_wanted = self._is_wanted
        self._go_on()
        if is_wanted and self._ticket is None:
            self._on_error(mistake)

    def _forward_progress(self, progress: Any) -> None:
        if self._on_progress is not None and self._is_wanted:
            self._on_progress(progress)

    def _go_on(self) -> None:
        self._ticket, self._answered_question = None, self._latest_question
        if self._waiting is not None:
            self._send(self._waiting)
