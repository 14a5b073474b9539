"""The buttons of the Run page, and what they do to a run in the queue or with the other engine."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QMessageBox, QSizePolicy, QWidget

from app.core import formatting
from app.core.backend_messages import translate_message
from app.core.draft import run_copies
from app.core.draft.run_copies import EngineOffer
from app.core.i18n import tr
from app.core.runs.run_library import waiting_words
from app.core.runs.run_obstacles import result_obstacles
from app.core.runs.run_spec import read_model, read_subject
from app.core.runs.run_status import RunResults, RunStatus
from app.pages.run.progress import RunProgress
from app.services.context import AppContext
from app.services.job import NO_CONSENT, Cancel, Consent, describe_sending
from app.services.run_watcher import RunWatcher
from app.widgets.boxes import hbox
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.pill import Pill
from app.widgets.question import Question, ask_to_run_code
from backend.contract.catalog import Catalog
from backend.contract.errors import InputError
from backend.contract.rpc.machines import MachineConsent, MachineList
from backend.contract.rpc.protocol import ErrorReply, Progress
from backend.contract.run.folder import HERE, RunFolder

RESULTS = {
    "try": (tr("Try"), "text"),
    "predictions": (tr("Predictions"), "target"),
    "export": (tr("Export model"), "download"),
}
"""Key → words, icon."""
GONE = tr("The run's folder is gone.")
CANCELLED, BROUGHT = tr("Cancelled. The run stays where it was."), tr("Cancelled. The run is on this computer now.")
RESUMING, STARTING = tr("Resuming…"), tr("Starting…")
SHORT = ("export", "predictions")
"""What shows its icon alone in a narrow window."""


class RunButtons(QWidget):
    """A run's status, what it has brought, and a menu of what else can be done; no button moves when the state changes."""

    resume_requested = Signal()
    _resume_clicked = Signal()
    move_requested = Signal(str)
    """To continue on the machine with that name, or HERE."""
    cancel_requested = Signal()
    """To stop moving the run."""
    start_requested = Signal()
    """A run that waits in the queue is to begin now."""
    try_requested = Signal()
    predictions_requested = Signal()
    export_requested = Signal()
    duplicate_requested = Signal()
    search_requested = Signal()
    folder_requested = Signal()
    curves_requested = Signal()
    other_engine_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.pill = Pill()
        self.resuming = self.can_cancel = self._is_gone = False
        self._offer: EngineOffer | None = None
        self.places: dict[str, QAction] = {}
        """Machine, or HERE → the action that continues the run there."""
        self.buttons = {
            "start_now": IconButton(
                tr("Start now"),
                "play",
                hint=tr("Start immediately, even if other runs are in progress (burnish start)"),
            ),
            "resume": IconButton(tr("Resume"), "play", "primary"),
            **{key: IconButton(words, icon) for key, (words, icon) in RESULTS.items()},
        }
        self.buttons["resume"].make_room(RESUMING)
        self.more = IconToolButton("more", tr("More actions"), "text")
        self.menu = QMenu(self.more)
        self.menu.setToolTipsVisible(True)
        self.more.clicked.connect(lambda: self.menu.popup(self.more.mapToGlobal(self.more.rect().bottomLeft())))
        choices = {
            "duplicate": (tr("Duplicate"), self.duplicate_requested),
            "search": (tr("Search around this run…"), self.search_requested),
            "other_engine": (tr("Train with another engine"), self.other_engine_requested),
            "curves": (tr("Export curves for TensorBoard…"), self.curves_requested),
            "folder": (tr("Open folder"), self.folder_requested),
        }
        self.actions_by_key = {key: QAction(words, self) for key, (words, _) in choices.items()}
        for key, action in self.actions_by_key.items():
            action.triggered.connect(lambda _=False, key=key: choices[key][1].emit())
            self.menu.addAction(action)
        signals = (
            self.start_requested,
            self._resume_clicked,
            self.try_requested,
            self.predictions_requested,
            self.export_requested,
        )
        for button, signal in zip(self.buttons.values(), signals, strict=True):
            button.clicked.connect(signal)
        for button in self.buttons.values():
            button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)  # however wide the head is
        self._resume_clicked.connect(self._on_resume_clicked)
        hbox(1, self.pill, *self.buttons.values(), self.more, spacing=8, parent=self)
        for key in ("start_now", "resume"):  # left of what stays
            self.buttons[key].hide()
        for key in RESULTS:
            self.buttons[key].setEnabled(False)

    def set_narrow(self, narrow: bool) -> None:
        """Make room for the run's title."""
        for key in SHORT:
            self.buttons[key].setText("" if narrow else RESULTS[key][0])
            self.buttons[key].setAccessibleName(RESULTS[key][0])
        resume = self.buttons["resume"]
        resume.setMinimumWidth(0)
        if not narrow:
            resume.make_room(tr("Resume"), RESUMING)

    def _on_resume_clicked(self) -> None:
        (self.cancel_requested if self.can_cancel else self.resume_requested).emit()

    def offer_places(self, names: Iterable[str], present: str) -> None:
        """Offer to continue on each of these machines, or here, but for the place where the run is."""
        for action in self.places.values():
            self.menu.removeAction(action)
            action.deleteLater()
        self.places = {}
        for name in (HERE, *names):
            if name != present:
                words = tr("Resume on this computer") if name == HERE else tr("Resume on {machine}", machine=name)
                action = self.places[name] = QAction(words, self)
                action.triggered.connect(partial(self.move_requested.emit, name))
                self.menu.insertAction(self.actions_by_key["duplicate"], action)

    def forget(self) -> None:
        """Reset for another run or attempt."""
        self.resuming = self.can_cancel = self._is_gone = False

    def show_offer(self, offer: EngineOffer | None) -> None:
        """Offer another engine for the same run, or show why not; None if there is none."""
        self._offer = offer
        self.show_starting(False)

    def show_starting(self, starting: bool) -> None:
        """Show whether the same run is being started with the other engine."""
        action, offer = self.actions_by_key["other_engine"], self._offer
        if offer is not None:
            action.setText(STARTING if starting else tr("Train with {title}", title=offer.title))
            action.setEnabled(not starting and not self.resuming and not offer.reason)
            anew = tr("Start the same run with {title} and compare the curves", title=offer.title)
            action.setToolTip(
                offer.reason or (tr("{anew}, or continue this run with it", anew=anew) if offer.continues else anew)
            )

    def show_outcome(self, outcome: RunStatus) -> None:
        """Show the state as a word; if there is a fix for a failed run, that button is the primary one."""
        self.buttons["resume"].set_role("primary" if outcome.fix is None else "")
        self.pill.set(outcome.title, outcome.kind, outcome.doubt)

    def show_gone(self) -> None:
        """Disable everything, because the run's folder is gone, until another run is shown."""
        self._is_gone = True
        self.pill.set(tr("Deleted"), "danger")
        for one in (*self.buttons.values(), self.more):
            one.setEnabled(False)
            one.setToolTip(GONE)

    def show_usable(self, outcome: RunStatus, is_caught_up: bool, results: RunResults, *, stopping: bool) -> None:
        """Enable what can be done now."""
        if self._is_gone:
            return
        self.more.setEnabled(True)
        self.more.setToolTip(tr("More actions"))
        for key, obstacle in result_obstacles(results).items():
            self.buttons[key].setEnabled(not obstacle)
            self.buttons[key].setToolTip(obstacle or RESULTS[key][0])
        self.buttons["start_now"].setVisible(outcome.waits and not outcome.job)
        self.buttons["start_now"].setEnabled(not stopping)
        resume = self.buttons["resume"]
        resume.setVisible(outcome.resumable and is_caught_up)
        resume.setEnabled(self.can_cancel or not self.resuming)
        resume.setToolTip(tr("Stop moving the run. It stays where it was.") if self.can_cancel else "")
        resume.setText(tr("Cancel") if self.can_cancel else RESUMING if self.resuming else tr("Resume"))
        for action in self.places.values():
            action.setVisible(outcome.resumable and is_caught_up)
            action.setEnabled(not self.resuming)
        self.actions_by_key["other_engine"].setVisible(not outcome.alive and self._offer is not None)
        if self.resuming:
            self.actions_by_key["other_engine"].setEnabled(False)


class QueueStatus(QObject):
    """What the run is waiting for, which the list of runs knows."""

    message = Signal(str, str)

    def __init__(self, context: AppContext, controls: RunButtons, progress: RunProgress, parent: QObject) -> None:
        super().__init__(parent)
        self._context, self._progress = context, progress
        self._watcher: RunWatcher | None = None
        controls.start_requested.connect(self._on_start_requested)
        context.library_watcher.changed.connect(self._on_runs_changed)

    def show_place(self, watcher: RunWatcher) -> None:
        """Show what the watched run is waiting for, if anything."""
        self._watcher = watcher
        if watcher.outcome.waits:
            self._progress.show_waiting(watcher.outcome.job or self._place(watcher.folder.path))

    def _place(self, run: Path) -> str:
        """The list and the page may briefly disagree about whether the run has started."""
        listed = self._context.library.find(run)
        if listed is None:
            return waiting_words([read_subject(other).title for other in self._context.jobs.find_awaited_runs(run)])
        return listed.message if listed.waits else tr("Starting soon")

    def _on_runs_changed(self) -> None:
        if self._watcher is not None:
            self.show_place(self._watcher)

    def _on_start_requested(self) -> None:
        assert self._watcher is not None
        if problem := self._context.jobs.start_now(self._watcher.folder.path):
            self.message.emit("error", problem)
        self._watcher.refresh_now()
        self._context.library_watcher.refresh_now()


class RunMove(QObject):
    """Offers the other machines to continue a run on, and asks whether a model's own code may run there."""

    message = Signal(str, str)
    changed = Signal()
    """What can be done is another thing."""
    sending = Signal(str)
    """How far the move is, in words."""
    answered = Signal(object, str, str)
    """The RunFolder whose move is over; the kind of message and a sentence if it was not moved."""

    def __init__(self, context: AppContext, controls: RunButtons, parent: QObject) -> None:
        super().__init__(parent)
        self._context, self._controls = context, controls
        self._machines: list[str] = []
        self._run: RunFolder | None = None
        self._cancel: Cancel | None = None
        self.question: Question | None = None
        controls.move_requested.connect(self.choose)
        controls.cancel_requested.connect(self.cancel)

    def ask(self) -> None:
        """Look which machines are described."""
        self._context.client.ask("machines", {}, self._on_machines, lambda mistake: None)

    def _on_machines(self, found: MachineList) -> None:
        self._machines = list(found.machines)
        if self._run is not None:
            self.show_run(self._run)

    def show_run(self, run: RunFolder) -> None:
        """Offer the places where this run is not."""
        self._run, remote = run, run.remote_run()
        self._controls.offer_places(self._machines, remote.machine if remote else HERE)

    def choose(self, place: str) -> None:
        """Continue the run there, once the user has approved what code of the model's own runs there."""
        assert self._run is not None
        model = read_model(self._run)
        if place == HERE or not model.runs_code:
            self._start(self._run, place, NO_CONSENT)
            return
        run = self._run
        self._context.client.ask(
            "machine_consent",
            {"name": place, "target": model.name, "revision": model.revision},
            lambda found: self._on_consent(run, place, found),
            lambda mistake: self.message.emit("error", formatting.sentence(mistake.message, mistake.field)),
        )

    def _on_consent(self, run: RunFolder, place: str, found: MachineConsent) -> None:
        consent = Consent(code_there=True)
        if found.agreed:
            self._start(run, place, consent)
            return
        self.question = ask_to_run_code(self._controls, place, found.files)
        self.question.allowed.connect(lambda: self._start(run, place, consent))
        self.question.open()

    def _start(self, run: RunFolder, place: str, consent: Consent) -> None:
        self._controls.resuming = self._controls.can_cancel = True
        before = run.remote_run()
        origin = before.machine if before is not None else HERE

        def on_progress(progress: Progress) -> None:
            if progress.part == "start":  # from here on the run may continue there
                self._cancel = None
                self._controls.can_cancel = False
                self.changed.emit()
            if run is self._run:
                self.sending.emit(describe_sending(progress, origin if progress.part == "fetch" else place))

        def on_error(sentence: str) -> None:
            cancelled = BROUGHT if before is not None and run.remote_run() is None else CANCELLED
            self._on_over(run, "error" if sentence else "info", sentence or cancelled)

        self._cancel = self._context.jobs.resume(
            run.path, lambda _: self._on_over(run), on_error, machine=place, consent=consent, on_progress=on_progress
        )
        self.changed.emit()

    def _on_over(self, run: RunFolder, kind: str = "", sentence: str = "") -> None:
        self._cancel = None
        self._controls.can_cancel = False
        self.answered.emit(run, kind, sentence)

    def cancel(self) -> None:
        """End the move; what it leaves is said when that is over."""
        if self._cancel is not None:
            self._cancel()
            self._controls.can_cancel = False
            self.changed.emit()


class EngineSwitch(QObject):
    """Queries the catalog once, shows the offer on its button, and starts the run."""

    message = Signal(str, str)
    run_started = Signal(str, str)
    """The folders of the new run, and of the one that it repeats."""
    resume_requested = Signal(str)
    """The engine with which the run should continue."""
    offered = Signal()
    """What its button says may be another thing."""

    def __init__(self, context: AppContext, controls: RunButtons, parent: QObject) -> None:
        super().__init__(parent)
        self._context, self._controls = context, controls
        self.catalog: Catalog | None = None
        self._catalog_requested = False
        self._run: RunFolder | None = None
        self._resumable = False
        self.question: Question | None = None
        self._offer: EngineOffer | None = None
        controls.other_engine_requested.connect(self.choose)

    def ask(self) -> None:
        """Query the available engines, once."""
        if not self._catalog_requested:
            self._catalog_requested = True
            self._context.client.ask("catalog", {}, self._on_catalog, self._on_mistake)

    def _on_catalog(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._show_offer()

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self._catalog_requested = False  # the page asks again when it comes to the front
        self.message.emit("error", formatting.sentence(mistake.message, mistake.field))

    def show_run(self, run: RunFolder, *, resumable: bool) -> None:
        """Show another run, or the same one after it ended; `resumable` before its last step."""
        self._run, self._resumable = run, resumable
        self._show_offer()

    def _show_offer(self) -> None:
        if self.catalog is None or self._run is None:
            return
        self._offer = run_copies.offer_engine(self.catalog, self._run)
        self._controls.show_offer(self._offer)
        self.offered.emit()

    def choose(self) -> None:
        """Start the same run with the other engine; if it can also continue this one, ask which."""
        offer = self._offer
        if offer is None or not offer.continues or not self._resumable:
            self.start()
            return
        question = self.question = Question(
            self._controls,
            tr("Train with {title}", title=offer.title),
            tr("Continue this run with {title}, or restart from scratch?", title=offer.title),
            tr(
                "Continue resumes this run from its last checkpoint. The optimizer state is reset, "
                "because the two engines store it differently, so the loss may rise for a few steps.\n"
                "Restart from scratch creates a second run from step 0, with both curves in one plot."
            ),
        )
        go_on = question.addButton(tr("Continue"), QMessageBox.ButtonRole.AcceptRole)
        anew = question.addButton(tr("Restart from scratch"), QMessageBox.ButtonRole.AcceptRole)
        question.setDefaultButton(question.addButton(QMessageBox.StandardButton.Cancel))
        go_on.clicked.connect(lambda: self.resume_requested.emit(offer.engine))
        anew.clicked.connect(self.start)
        question.finished.connect(question.deleteLater)
        question.open()

    def start(self) -> None:
        """Start the same run with the other engine."""
        if self.catalog is None or self._run is None or self._offer is None or self._offer.reason:
            return
        run, offer = self._run, self._offer
        try:
            made = run_copies.duplicate_for_engine(self.catalog, run, offer.engine)
        except InputError as error:
            self.message.emit("error", translate_message(str(error)))
            return
        self._controls.show_starting(True)
        self._context.jobs.start(
            made.values,
            lambda path: self._on_started(path, run, offer, made.left_out),
            self._on_refused,
        )

    def _on_started(self, path: str, run: RunFolder, offer: EngineOffer, left_out: tuple[str, ...]) -> None:
        self._controls.show_starting(False)
        self._context.library_watcher.refresh_now()
        sentence = tr(
            "Started the same run with {title}. Dashed lines show the curves of {name}.",
            title=offer.title,
            name=run.name,
        )
        if left_out:
            sentence += tr(
                " {title} does not support {left_out}, so it was ignored.",
                title=offer.title,
                left_out=tr(" and ").join(left_out),
            )
        self.message.emit("warning" if left_out else "success", sentence)
        self.run_started.emit(path, str(run.path))

    def _on_refused(self, sentence: str) -> None:
        self._controls.show_starting(False)
        self.message.emit("error", formatting.sentence(sentence))
