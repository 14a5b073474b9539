"""A question about a training's data, shown on a stack: its progress, its end, and why there is no answer."""

from collections.abc import Callable
from typing import Any

from app.core import formatting
from app.core.i18n import tr
from app.services.backend_client import BackendClient
from app.services.latest_question import LatestQuestion
from app.widgets.progress import WaitingStack
from backend.contract.rpc.protocol import ErrorReply, Progress

READING = tr("Reading the data")


def data_question(
    stack: WaitingStack, client: BackendClient, query: str, on_answer: Callable[[Any], None]
) -> LatestQuestion:
    """A question whose way `stack` shows; whoever asks calls `show_waiting` where an answer may take its time.

    A new question about the same subject follows the open one, about another ends it.
    """

    def answered(answer: Any) -> None:
        on_answer(answer)
        stack.show_content()

    def told(progress: Progress) -> None:
        if stack.waits:
            stack.show_progress(progress.done, progress.total, progress.unit, progress.text)

    def refused(mistake: ErrorReply) -> None:
        stack.show_sentence(
            tr("This cannot be shown"), formatting.sentence(mistake.message, mistake.field), tr("Try again")
        )

    def stop() -> None:
        question.stop()
        stack.show_sentence(tr("Stopped"), tr("What was tokenised completely so far is kept."), tr("Go on"))

    def again() -> None:
        stack.show_waiting(READING)
        question.ask(question.asked)

    question = LatestQuestion(client, query, answered, refused, told, opened="subject", parent=stack)
    stack.stopped.connect(stop)
    stack.again.connect(again)
    return question
