"""One question that is asked again whenever its subject changes: typing is waited for, and the newest wins."""

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, QTimer

from app.services.backend_client import BackendClient, OnAnswer, OnError, OnProgress, Ticket

MakeArguments = Callable[[], Mapping[str, Any] | None]
"""The question's arguments at the moment of asking, or None where there is nothing to ask."""


class DebouncedQuery(QObject):
    """`ask_soon` waits until nothing has changed for `delay_ms`; an older open question is cancelled."""

    def __init__(
        self,
        client: BackendClient,
        query: str,
        arguments: MakeArguments,
        on_answer: OnAnswer,
        on_error: OnError,
        on_progress: OnProgress | None = None,
        delay_ms: int = 400,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._client, self._query, self._arguments = client, query, arguments
        self._on_answer, self._on_error, self._on_progress = on_answer, on_error, on_progress
        self._ticket: Ticket | None = None
        self._timer = QTimer(self, singleShot=True, interval=delay_ms)
        self._timer.timeout.connect(self.ask_now)

    @property
    def waits(self) -> bool:
        """Whether an answer is still to come."""
        return self._timer.isActive() or (self._ticket is not None and self._ticket.open)

    def ask_soon(self) -> None:
        """Something has changed, so an answer that is still to come would be about something else."""
        self.cancel()
        self._timer.start()

    def ask_now(self) -> None:
        """Ask at once."""
        self.cancel()
        arguments = self._arguments()
        if arguments is not None:
            self._ticket = self._client.ask(self._query, arguments, self._on_answer, self._on_error, self._on_progress)

    def cancel(self) -> None:
        """The answer is not wanted any more."""
        self._timer.stop()
        if self._ticket is not None and self._ticket.open:
            self._ticket.cancel()
        self._ticket = None
