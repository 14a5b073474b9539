"""Owns one open question at a time about a training's data: its progress, its end, and why there is no answer."""

from collections.abc import Callable, Mapping
from typing import Any

from app.core import wording
from app.services.backend_client import BackendClient
from app.services.latest_question import LatestQuestion
from app.widgets.waiting_stack import WaitingStack
from backend.contract.queries import Mistake, Progress


class Asking:
    """A new question about the same subject follows the open one, about another ends it; `stack` shows how it goes."""

    def __init__(
        self, client: BackendClient, query: str, stack: WaitingStack, on_answer: Callable[[Any], None]
    ) -> None:
        self._stack, self._on_answer = stack, on_answer
        self._question = LatestQuestion(
            client, query, self._answered, self._on_mistake, self._on_progress, opened="subject"
        )
        self._arguments: Mapping[str, Any] = {}
        stack.stopped.connect(self._on_stopped)
        stack.again.connect(lambda: self.ask(self._arguments))

    @property
    def open(self) -> bool:
        """Whether an answer is still to come."""
        return self._question.open

    def ask(self, arguments: Mapping[str, Any], *, quiet: bool = False) -> None:
        """Ask; `quiet` leaves on the screen what is there until the answer comes."""
        self._arguments = arguments
        if not quiet:
            self._stack.show_waiting("Reading the data")
        self._question.ask(arguments)

    def ignore(self) -> None:
        """The answer that is under way comes too late."""
        self._question.ignore()

    def cancel(self) -> None:
        """Nothing is wanted any more."""
        self._question.stop()

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
