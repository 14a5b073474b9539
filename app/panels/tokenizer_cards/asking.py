"""Owns one open question at a time about a training's data: its progress, its end, and why there is no answer."""

from collections.abc import Callable, Mapping
from typing import Any

from app.core import wording
from app.services.backend_client import BackendClient, Ticket
from app.widgets.waiting_stack import WaitingStack
from backend.contract.queries import Mistake, Progress


class Asking:
    """A new question ends the one before; `stack` shows how it goes."""

    def __init__(
        self, client: BackendClient, query: str, stack: WaitingStack, on_answer: Callable[[Any], None]
    ) -> None:
        self._client, self._query, self._stack, self._on_answer = client, query, stack, on_answer
        self._ticket: Ticket | None = None
        self._arguments: Mapping[str, Any] = {}
        stack.stopped.connect(self._on_stopped)
        stack.again.connect(lambda: self.ask(self._arguments))

    @property
    def open(self) -> bool:
        """Whether an answer is still to come."""
        return self._ticket is not None and self._ticket.open

    def ask(self, arguments: Mapping[str, Any], *, quiet: bool = False) -> None:
        """Ask; `quiet` leaves on the screen what is there until the answer comes."""
        self.cancel()
        self._arguments = arguments
        if not quiet:
            self._stack.show_waiting("Reading the data")
        self._ticket = self._client.ask(self._query, arguments, self._answered, self._on_mistake, self._on_progress)

    def cancel(self) -> None:
        """Nothing is wanted any more."""
        if self.open and self._ticket is not None:
            self._ticket.cancel()
        self._ticket = None

    def _answered(self, answer: Any) -> None:
        self._on_answer(answer)
        self._stack.show_content()

    def _on_progress(self, progress: Progress) -> None:
        if self._stack.waits:
            self._stack.show_progress(progress.done, progress.total, progress.unit, progress.text)

    def _on_mistake(self, mistake: Mistake) -> None:
        self._stack.show_sentence("This cannot be shown", wording.sentence(mistake.message, mistake.field), "Try again")

    def _on_stopped(self) -> None:
        self.cancel()
        self._stack.show_sentence("Stopped", "What was tokenised completely so far is kept.", "Go on")
