"""Sends the same query to one or two models, one after the other, so that neither slows the other down."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from app.core.i18n import tr
from app.core.predictions.interactive import AnsweredQuestion, Question
from app.services.backend_client import BackendClient, PendingQuery
from backend.contract.rpc.interactive import Answer
from backend.contract.rpc.protocol import ErrorReply, Progress

TOO_LONG = tr("The answer is too long to show. Use burnish predict with a file instead.")


class InteractiveSession(QObject):
    """At most one round of queries is open. `place` counts the models from 0."""

    loading_progressed = Signal(int, float, float, str)
    """A model is being opened or fetched: place, done, total, unit."""
    written = Signal(int, str)
    """All text that this model has written so far."""
    one_answered = Signal(int, object)
    """An AnsweredQuestion while the round is in progress."""
    finished = Signal(object)
    """The round as one AnsweredQuestion, the second model's beside the first's."""
    failed = Signal(int, object)
    """An ErrorReply of one model; the round is over, with what was answered before in `answered`."""

    def __init__(self, client: BackendClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._ticket: PendingQuery | None = None
        self._questions: Sequence[Question] = ()
        self._text = ""
        self.answered: list[AnsweredQuestion] = []

    @property
    def open(self) -> bool:
        """Whether an answer is pending."""
        return self._ticket is not None

    @property
    def place(self) -> int:
        """The index of the model being queried."""
        return len(self.answered)

    @property
    def text(self) -> str:
        """What the current model has generated so far."""
        return self._text

    def ask(self, questions: Sequence[Question]) -> None:
        """Send a query to each model, unless a round is open."""
        if self._ticket is None:
            self._questions, self.answered = questions, []
            self._next()

    def stop(self) -> None:
        """Cancel the query; the model stops generating and stays loaded."""
        if self._ticket is not None:
            self._ticket.cancel()
            self._ticket = None

    def _next(self) -> None:
        question = self._questions[self.place]
        self._text = ""
        arguments = {
            "target": question.target,
            "task": question.task,
            "rows": [dict(question.row)],
            "settings": dict(question.settings),
        }
        self._ticket = self._client.ask("answer", arguments, self._on_answer, self._on_mistake, self._on_progress)

    def _on_progress(self, progress: Progress) -> None:
        if progress.unit == "pieces":
            # A query is sent again from the start if the helper died during it.
            self._text = progress.text if progress.done <= 1 else self._text + progress.text
            self.written.emit(self.place, self._text)
        elif progress.total:
            self.loading_progressed.emit(self.place, progress.done, progress.total, progress.unit)

    def _on_answer(self, answer: object) -> None:
        if not isinstance(answer, Answer):
            self._on_mistake(ErrorReply(TOO_LONG))
            return
        place = self.place
        self.answered.append(AnsweredQuestion(self._questions[place], answer))
        if self.place < len(self._questions):
            self.one_answered.emit(place, self.answered[-1])
            self._next()
            return
        self._ticket = None
        first, *rest = self.answered
        self.finished.emit(AnsweredQuestion(first.question, first.answer, beside=rest[0]) if rest else first)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self._ticket = None
        self.failed.emit(self.place, mistake)
