"""Owns what the other engine can do with a run that is over: train it once more, or go on where it stopped."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMessageBox

from app.core import formatting
from app.core.backend_sentences import told
from app.core.draft import other_engine
from app.core.draft.other_engine import Offer
from app.core.i18n import tr
from app.pages.run.run_buttons import RunButtons
from app.services.context import AppContext
from app.widgets.question import Question
from backend.contract.catalog import Catalog
from backend.contract.errors import InputError
from backend.contract.rpc.queries import Mistake
from backend.contract.run.folder import RunFolder


class EngineSwitch(QObject):
    """Asks for the catalog once, shows the offer on its button, and starts the run."""

    message = Signal(str, str)
    run_started = Signal(str, str)
    """The folders of the new run, and of the one that it repeats."""
    resume_asked = Signal(str)
    """The engine with which the run itself is to go on."""
    offered = Signal()
    """What its button says may be another thing."""

    def __init__(self, context: AppContext, controls: RunButtons, parent: QObject) -> None:
        super().__init__(parent)
        self._context, self._controls = context, controls
        self.catalog: Catalog | None = None
        self._asked = False
        self._run: RunFolder | None = None
        self._resumable = False
        self.question: Question | None = None
        self._offer: Offer | None = None
        controls.other_engine_asked.connect(self.choose)

    def ask(self) -> None:
        """Ask which engines there are; once."""
        if not self._asked:
            self._asked = True
            self._context.client.ask("catalog", {}, self._on_catalog, self._on_mistake)

    def _on_catalog(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._show_offer()

    def _on_mistake(self, mistake: Mistake) -> None:
        self._asked = False  # the page asks again when it comes to the front
        self.message.emit("error", formatting.sentence(mistake.message, mistake.field))

    def show_run(self, run: RunFolder, *, resumable: bool) -> None:
        """Another run is shown, or the same one has ended; `resumable` before its last step."""
        self._run, self._resumable = run, resumable
        self._show_offer()

    def _show_offer(self) -> None:
        if self.catalog is None or self._run is None:
            return
        self._offer = other_engine.offer(self.catalog, self._run)
        self._controls.show_offer(self._offer)
        self.offered.emit()

    def choose(self) -> None:
        """Start the same run with the other engine; where it can also go on from where this one stopped, ask which."""
        offer = self._offer
        if offer is None or not offer.continues or not self._resumable:
            self.start()
            return
        question = self.question = Question(
            self._controls,
            tr("Train with {title}", title=offer.title),
            tr("Go on with {title}, or start the run anew?", title=offer.title),
            tr(
                "Going on keeps this run and its model as the last checkpoint has it. Its optimizer "
                "starts new, because the two engines keep its state differently, so the loss may rise "
                "for some steps.\nStarting anew makes a second run from the first step, with both curves "
                "in one plot."
            ),
        )
        go_on = question.addButton(tr("Go on"), QMessageBox.ButtonRole.AcceptRole)
        anew = question.addButton(tr("Start anew"), QMessageBox.ButtonRole.AcceptRole)
        question.setDefaultButton(question.addButton(QMessageBox.StandardButton.Cancel))
        go_on.clicked.connect(lambda: self.resume_asked.emit(offer.engine))
        anew.clicked.connect(self.start)
        question.finished.connect(question.deleteLater)
        question.open()

    def start(self) -> None:
        """Start the same run with the other engine."""
        if self.catalog is None or self._run is None or self._offer is None or self._offer.reason:
            return
        run, offer = self._run, self._offer
        try:
            made = other_engine.duplicate(self.catalog, run, offer.engine)
        except InputError as error:
            self.message.emit("error", told(str(error)))
            return
        self._controls.show_starting(True)
        self._context.jobs.start(
            made.values,
            lambda path: self._on_started(path, run, offer, made.left_out),
            self._on_refused,
        )

    def _on_started(self, path: str, run: RunFolder, offer: Offer, left_out: tuple[str, ...]) -> None:
        self._controls.show_starting(False)
        self._context.library_watcher.look_now()
        said = tr("The same run with {title}; dashed are the curves of {name}.", title=offer.title, name=run.name)
        if left_out:
            said += tr(
                " {title} does not know {left_out}: left out.", title=offer.title, left_out=tr(" and ").join(left_out)
            )
        self.message.emit("warning" if left_out else "success", said)
        self.run_started.emit(path, str(run.path))

    def _on_refused(self, sentence: str) -> None:
        self._controls.show_starting(False)
        self.message.emit("error", formatting.sentence(sentence))
