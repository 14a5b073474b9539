"""Owns asking the same question again and again while a person types: one is open at a time, and the latest follows it.

A question that is answered in a few milliseconds is asked at once; one that takes longer is never ended for a newer one,
since that would end the worker that has the tokenizer open. Only another tokenizer, or `stop`, does.
"""

from collections.abc import Mapping
from typing import Any

from app.services.backend_client import BackendClient, OnAnswer, OnError, OnProgress, Ticket
from backend.contract.queries import Mistake


class LatestQuestion:
    """One query; answers come in the order of the questions, and those between two may be left out."""

    def __init__(
        self,
        client: BackendClient,
        query: str,
        on_answer: OnAnswer,
        on_error: OnError,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._client, self._query = client, query
        self._on_answer, self._on_error, self._on_progress = on_answer, on_error, on_progress
        self._ticket: Ticket | None = None
        self._asked: dict[str, Any] = {}
        self._waiting: dict[str, Any] | None = None

    @property
    def open(self) -> bool:
        """Whether an answer is still to come."""
        return self._ticket is not None

    @property
    def asked(self) -> Mapping[str, Any]:
        """The arguments of the question that is open, or was last."""
        return self._asked

    def ask(self, arguments: Mapping[str, Any]) -> None:
        """Ask now, or after the open question; equal questions are asked once."""
        question = dict(arguments)
        if self._ticket is not None and question.get("tokenizer") != self._asked.get("tokenizer"):
            self.stop()
        if self._ticket is None:
            self._send(question)
        else:
            self._waiting = None if question == self._asked else question

    def stop(self) -> None:
        """End the open question, and forget what waits."""
        if self._ticket is not None:
            self._ticket.cancel()
        self._ticket, self._waiting = None, None

    def _send(self, question: dict[str, Any]) -> None:
        self._asked, self._waiting = question, None
        self._ticket = self._client.ask(self._query, question, self._answered, self._refused, self._told)

    def _answered(self, answer: Any) -> None:
        self._go_on()
        self._on_answer(answer)

    def _refused(self, mistake: Mistake) -> None:
        self._go_on()
        if self._ticket is None:
            self._on_error(mistake)

    def _told(self, progress: Any) -> None:
        if self._on_progress is not None:
            self._on_progress(progress)

    def _go_on(self) -> None:
        self._ticket = None
        if self._waiting is not None:
            self._send(self._waiting)
