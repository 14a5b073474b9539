"""Lets the tests of a module ask one helper process, each through a client of its own."""

from collections.abc import Mapping
from typing import Any

from app.services.backend_client import BackendClient, OnAnswer, OnError, OnProgress, PendingQuery


class SharedHelperClient(BackendClient):
    """A test's client, which asks the helper of another one; once it is closed nothing is answered any more."""

    def __init__(self, owner: BackendClient) -> None:
        super().__init__()
        self._owner = owner
        self._tickets: list[PendingQuery] = []
        self._is_closed = False

    @property
    def state(self) -> str:
        """That of the helper."""
        return self._owner.state

    def ask(
        self,
        query: str,
        arguments: Mapping[str, Any],
        on_answer: OnAnswer,
        on_error: OnError,
        on_progress: OnProgress | None = None,
    ) -> PendingQuery:
        """Ask the helper, unless the test is over."""
        if not self._is_closed:
            self._number += 1
            self._tickets.append(self._owner.ask(query, arguments, on_answer, on_error, on_progress))
        return PendingQuery(self, self._number)

    def is_open(self, number: int) -> bool:
        """Whether that question waits for its answer."""
        return self._tickets[number - 1].open

    def forget(self, number: int) -> None:
        """Drop a question, here and in the helper."""
        self._tickets[number - 1].cancel()

    def close(self) -> None:
        """Take back what is open; the helper goes on."""
        self._is_closed = True
        for ticket in self._tickets:
            ticket.cancel()

    def restart(self) -> None:
        """Start the helper anew."""
        self._owner.restart()
