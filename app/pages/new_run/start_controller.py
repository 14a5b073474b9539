"""Starts the draft as a run or adds it to the queue, by the same command as on a terminal; asks if the disk is too small.

What was in the draft when the user pressed the button is what is started, whatever becomes of the draft meanwhile.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

from app.core import formatting
from app.core.draft.draft import Draft, Values
from app.core.i18n import tr
from app.core.runs.run_library import waiting_words
from app.core.runs.run_spec import read_subject
from app.pages.new_run.draft_checks import DraftChecks
from app.pages.new_run.start_bar import disk_warning
from app.services.context import AppContext
from app.services.job import NO_CONSENT, QUEUE, Cancel, Consent, describe_sending
from app.widgets.question import Question, ask_to_run_code
from backend.contract.rpc.machines import MachineConsent
from backend.contract.rpc.plan import RunPlan
from backend.contract.rpc.protocol import ErrorReply, Progress


@dataclass(frozen=True)
class StartRequest:
    """To start or to queue these values of the draft; `agreed` is the warning despite which the user wants it."""

    queue: bool
    values: Values
    consent: Consent = NO_CONSENT
    needs_weights: bool = False
    """It cannot be planned before the model is downloaded."""
    machine: str = ""
    """The computer on which it is to run, unless it is this one."""
    agreed: str = ""
    plan: RunPlan | None = None
    """Its own one, if the draft was changed before it was planned."""


class StartController(QObject):
    """One run at a time."""

    changed = Signal(bool, bool)
    """Whether a run is being started, and whether in the queue."""
    started = Signal(str, bool)
    """A run, and whether the draft has been left as it was since the button was pressed."""
    refused = Signal(str)
    sending = Signal(str, bool)
    """How far the copy to another machine is, and whether it can be cancelled."""
    message = Signal(str, str)
    others_changed = Signal(str)
    """What a queued run would wait for, as a sentence; empty if nothing is running."""
    plan_requested = Signal()
    """The user would rather see what needs less."""

    def __init__(
        self, context: AppContext, draft: Draft, checks: DraftChecks, page: QWidget, shortage: Callable[[], str]
    ) -> None:
        """`shortage` gives the sentence about a measurement that ran out of memory, empty if none did."""
        super().__init__(page)
        self._page = page
        self._context, self._draft, self._checks, self._shortage = context, draft, checks, shortage
        self.busy = False
        self._submitted: Values = {}
        """The run that is being started."""
        self.question: Question | None = None
        """Whether to start despite a warning, while it is open."""
        self._cancel: Cancel | None = None
        """Ends the copy to another machine."""
        self._is_apart = False
        """Whether the question is about other settings than the draft's."""
        self._request: StartRequest | None = None
        """The one that waits for the draft's plan."""
        checks.planned.connect(lambda plan: self._on_plan_over("plan"))
        checks.emptied.connect(self._on_plan_over)
        checks.refused.connect(lambda topic, mistake: self._on_plan_over(topic))
        context.library_watcher.changed.connect(self.look_at_others)

    def look_at_others(self) -> None:
        """Show which runs are running or queued."""
        alive = [run.title for run in self._context.library.runs if run.alive]
        words = (
            tr("Starts automatically after “{title}” finishes (burnish train … --queue)", title=alive[0])
            if alive
            else ""
        )
        if len(alive) > 1:
            words = tr(
                "Starts automatically after {count} other runs finish (burnish train … --queue)", count=len(alive)
            )
        self.others_changed.emit(words)

    def start(self, *, queue: bool = False, machine: str = "") -> None:
        """Start or queue the run once its plan is known; if that warns, the user is asked first.

        The plan is about this computer, so it says nothing of another `machine`.
        """
        if self.busy:
            return
        request = StartRequest(
            queue, self._draft.values(), self._checks.consent(), self._checks.needs_weights(), machine
        )
        if machine:
            self._ask_consent_there(request)
        else:
            self._follow(request)

    def cancel(self) -> None:
        """Send no more to the other computer, and start nothing there."""
        if self._cancel is not None:
            self._cancel()
            self.sending.emit(tr("Cancelling…"), False)

    def _ask_consent_there(self, request: StartRequest) -> None:
        """Submit what runs no code of the model's own, or code that the user has approved on that machine."""
        model = self._checks.model
        if model is None or not model.needs_remote_code:
            self._submit(request)
            return
        self._set_busy(True)
        self._context.client.ask(
            "machine_consent",
            {"name": request.machine, "target": model.name, "revision": model.commit or "main"},
            lambda found: self._on_consent_there(request, found),
            lambda mistake: self._on_refused(request, formatting.sentence(mistake.message, mistake.field)),
        )

    def _on_consent_there(self, request: StartRequest, found: MachineConsent) -> None:
        self._set_busy(False)
        allowed = replace(request, consent=replace(request.consent, code_there=True))
        if found.agreed:
            self._submit(allowed)
            return
        self.question = ask_to_run_code(self._page, request.machine, found.files)
        self._is_apart = True
        self.question.allowed.connect(lambda: self._submit(allowed))
        self.question.finished.connect(self._on_question_closed)
        self.question.open()

    def follow_change(self) -> None:
        """The draft has changed: its plan is no longer about what waits to be started, or what the question is about."""
        if self.question is not None and not self._is_apart:
            self.question.reject()
        request, self._request = self._request, None
        if request is None:
            return
        if request.needs_weights:
            self._submit(request)
        else:
            self._context.client.ask(
                "plan",
                {"spec": request.values},
                lambda plan: self._on_own_plan(replace(request, plan=plan)),
                lambda mistake: self._on_no_plan(request, mistake),
            )

    def _on_own_plan(self, request: StartRequest) -> None:
        self._set_busy(False)
        self._follow(request)

    def _on_no_plan(self, request: StartRequest, mistake: ErrorReply) -> None:
        self._set_busy(False)
        self._say_not_started(request, formatting.sentence(mistake.message, mistake.field))

    def _say_not_started(self, request: StartRequest, problem: str) -> None:
        name, problem = str(request.values.get("name", "")), formatting.with_full_stop(problem)
        self.message.emit(
            "error",
            tr("“{name}” was not added to the queue. {problem} Undo restores its settings.", name=name, problem=problem)
            if request.queue
            else tr("“{name}” was not started. {problem} Undo restores its settings.", name=name, problem=problem),
        )

    def _follow(self, request: StartRequest) -> None:
        if request.plan is not None:
            if request.plan.problems:
                self._say_not_started(request, formatting.sentence(request.plan.problems[0]))
            else:
                self._ask_or_submit(request, disk_warning(request.plan))
        elif self._checks.is_planning:
            self._request = request
            self._set_busy(True, queue=request.queue)
        elif blocker := self._checks.blocker():
            self.message.emit("warning", blocker)
        else:
            self._ask_or_submit(request, self._shortage() or disk_warning(self._checks.plan))

    def _on_plan_over(self, topic: str) -> None:
        request = self._request
        if topic == "plan" and request is not None:
            self._request = None
            self._set_busy(False)
            self._follow(request)

    def _ask_or_submit(self, request: StartRequest, warning: str) -> None:
        if warning not in ("", request.agreed):
            self._ask(warning, request)
        else:
            self._submit(request)

    def _ask(self, warning: str, request: StartRequest) -> None:
        words = (
            (tr("Add to queue"), tr("Add anyway?"), tr("Add anyway"))
            if request.queue
            else (tr("Start training"), tr("Start anyway?"), tr("Start anyway"))
        )
        question = Question(self._page, *words[:2], warning)
        question.setIcon(QMessageBox.Icon.Warning)
        self.question, self._is_apart = question, request.plan is not None
        start = question.addButton(words[2], QMessageBox.ButtonRole.AcceptRole)
        if not self._is_apart:  # else the plan in view is about another run
            plan = question.addButton(tr("Show the plan"), QMessageBox.ButtonRole.ActionRole)
            plan.clicked.connect(self.plan_requested)
        question.setDefaultButton(question.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole))
        start.clicked.connect(lambda: self._follow(replace(request, agreed=warning)))
        question.finished.connect(self._on_question_closed)
        question.finished.connect(question.deleteLater)
        question.open()

    def _on_question_closed(self) -> None:
        self.question = None

    def _submit(self, request: StartRequest) -> None:
        """Submit the spec with this user's consents; in the queue it starts when the others are over."""
        self._checks.stop_measuring()  # it would take from the run what the run is to have
        self._set_busy(True, queue=request.queue)
        self._submitted = request.values

        def refuse(sentence: str) -> None:
            self._on_refused(request, sentence)

        cancel = self._context.jobs.start(
            request.values,
            self._on_started,
            refuse,
            request.consent,
            queue=request.queue,
            machine=request.machine,
            on_progress=lambda progress: self._on_sending(request, progress),
        )
        self._cancel = cancel if request.machine else None

    def _on_sending(self, request: StartRequest, progress: Progress) -> None:
        if progress.part == "start":  # from here on the run may exist there
            self._cancel = None
        self.sending.emit(describe_sending(progress, request.machine), self._cancel is not None)

    def copy_command(self, *, queue: bool = False) -> None:
        """Put the command that starts the same run, or queues it, on the clipboard."""
        options = [*self._checks.consent().options(), *([QUEUE] if queue else [])]
        environment = self._context.preferences.chosen_environment()
        QGuiApplication.clipboard().setText(self._draft.command(options, environment))
        name = formatting.name_of_path(str(self._draft.get("name")))
        self.message.emit("info", tr("Copied the command that starts {name}.", name=name))

    def _set_busy(self, busy: bool, *, queue: bool = False) -> None:
        self.busy = busy
        if not busy:
            self._cancel = None
        self.changed.emit(busy, queue)

    def _on_started(self, path: str) -> None:
        self._set_busy(False)
        self._context.library_watcher.refresh_now()
        if self._context.jobs.waits(path):
            # Who fills a queue sets up the next run.
            words = waiting_words([read_subject(other).title for other in self._context.jobs.find_awaited_runs(path)])
            self.message.emit(
                "success", tr("Added {name} to the queue. {words}.", name=self._submitted.get("name", ""), words=words)
            )
        else:
            self.started.emit(path, self._draft.values() == self._submitted)
        # Last, as a full disk must not keep the run from being shown.
        self._context.preferences.remember_model(str(self._submitted["model"]["name_or_path"]))

    def _on_refused(self, request: StartRequest, sentence: str) -> None:
        self._set_busy(False)
        if not sentence:
            self.message.emit("info", tr("Cancelled. Nothing was started on {machine}.", machine=request.machine))
            return
        if self._draft.values() == request.values:
            self.refused.emit(sentence)
        else:  # the field that is wrong may no longer be in view
            self._say_not_started(request, formatting.sentence(sentence))
