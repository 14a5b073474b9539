"""What the tabs of the Tokenizer page share: the chosen tokenizer, the run being set up, and long queries."""

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.core.formatting import sentence
from app.core.i18n import tr
from app.pages.tokenizer.data_choice import DataChoice
from app.services.backend_client import BackendClient
from app.services.context import AppContext
from app.services.latest_question import LatestQuestion
from app.widgets.banner import Banner
from app.widgets.progress import WaitingStack
from backend.contract.rpc.protocol import ErrorReply, Progress

READING = tr("Reading the data")
NO_DATA_YET = tr("The new run has no data yet; choose some there or here.")


class TokenizerTab(QWidget):
    """Shows one thing about the chosen tokenizer."""

    message = Signal(str, str)
    """Kind and text of a toast."""
    settings_chosen = Signal(dict)
    """Spec keys and values for the run that is being set up."""
    draft_wanted = Signal()
    """Whoever knows the run that is being set up should call `show_draft`."""
    new_run_requested = Signal()
    tokenizer_made = Signal(str)
    """A folder that the page should open."""
    made_changed = Signal()
    """Another list of tokenizers that were made here is remembered."""

    has_own_tokenizer = False
    """Whether it shows another tokenizer than the page's."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.tokenizer = ""
        """The one that is shown; empty before `use`."""
        self._draft: Mapping[str, Any] = {}

    def use(self, tokenizer: str) -> None:
        """Switch to another tokenizer: a folder, file or hub id."""
        if tokenizer != self.tokenizer:
            self.tokenizer = tokenizer
            self._on_tokenizer()

    def _on_tokenizer(self) -> None:
        """Show `tokenizer`."""

    def on_shown(self) -> None:
        """The tab was shown, for the first time or again."""

    def show_draft(self, spec: Mapping[str, Any], lacks: str) -> None:
        """Set the run being set up, and what is missing from it as a sentence."""
        self._draft = spec

    def _connect_data(self, data: DataChoice, banner: Banner) -> None:
        """Offer what makes the data readable, and the data of the new run."""
        data.fix_offered.connect(banner.offer_fix)
        banner.fix_taken.connect(data.take_fix)
        data.run_requested.connect(lambda: self._take_draft_data(data.take))

    def _take_draft_data(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Use the data of the run being set up; if there is none yet, say so."""
        self.draft_wanted.emit()
        data = self._draft.get("data") or {}
        if data.get("source", "files") == "files" and not data.get("train"):
            self.message.emit("info", NO_DATA_YET)
        else:
            take(dict(data))


def waiting_question(
    stack: WaitingStack,
    client: BackendClient,
    query: str,
    on_answer: Callable[[Any], None],
    *,
    opened: str,
    failed: str,
    stopped: tuple[str, str, str],
    ask_again: Callable[[], None] | None = None,
) -> LatestQuestion:
    """A query whose progress and answer `stack` shows; call `show_waiting` if an answer may take long.

    `failed` is the title if there is no answer, `stopped` the title, sentence and button after a stop, `opened` what a
    LatestQuestion keeps open.
    """

    def show_answer(answer: Any) -> None:
        on_answer(answer)
        stack.show_content()

    def show_progress(progress: Progress) -> None:
        if stack.waits:
            stack.show_progress(progress.done, progress.total, progress.unit, progress.text)

    def show_mistake(mistake: ErrorReply) -> None:
        stack.show_sentence(failed, sentence(mistake.message, mistake.field), tr("Try again"))

    def stop() -> None:
        question.stop()
        stack.show_sentence(*stopped)

    def ask_the_same() -> None:
        stack.show_waiting(READING)
        question.ask(question.arguments)

    question = LatestQuestion(client, query, show_answer, show_mistake, show_progress, opened, parent=stack)
    stack.stopped.connect(stop)
    stack.again.connect(ask_again or ask_the_same)
    return question
