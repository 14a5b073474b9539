"""Starts the draft as a run or adds it to the queue, by the same command as on a terminal; asks if the disk is too small."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

from app.core import formatting
from app.core.draft.draft import Draft
from app.core.i18n import tr
from app.core.runs.run_library import waiting_words
from app.core.runs.run_spec import read_subject
from app.pages.new_run.draft_checks import DraftChecks
from app.services.context import AppContext
from app.services.job import QUEUE
from app.widgets.question import Question


class StartController(QObject):
    """One run at a time."""

    changed = Signal(bool)
    """Whether a run is being started."""
    started = Signal(str)
    refused = Signal(str)
    message = Signal(str, str)
    others_changed = Signal(str)
    """What a queued run would wait for, as a sentence; empty if nothing is running."""
    plan_requested = Signal()
    """The user would rather see what needs less."""

    def __init__(self, context: AppContext, draft: Draft, checks: DraftChecks, page: QWidget) -> None:
        super().__init__(page)
        self._page = page
        self._context, self._draft, self._checks = context, draft, checks
        self.busy = False
        self._name = ""
        """Of the run that is being started."""
        self.warning: Callable[[], str] = str
        """Gives the sentence that speaks against starting, though it is allowed; the page sets it."""
        self.question: Question | None = None
        self._waiting: bool | None = None
        """Whether a run that waits for its plan is for the queue; None if none waits."""
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

    def start(self, *, queue: bool = False) -> None:
        """Start or queue the run once its plan is known; if that warns, the user is asked first."""
        if self.busy:
            return
        if self._checks.is_planning:
            self._waiting = queue
            self._set_busy(True)
        else:
            self._start_planned(queue=queue)

    def forget_waiting(self) -> None:
        """The draft is another than the one that was to be started."""
        if self._waiting is not None:
            self._waiting = None
            self._set_busy(False)

    def _on_plan_over(self, topic: str) -> None:
        queue = self._waiting
        if topic == "plan" and queue is not None:
            self.forget_waiting()
            if not self._checks.blocker():
                self._start_planned(queue=queue)

    def _start_planned(self, *, queue: bool) -> None:
        if warning := self.warning():
            self._ask(warning, queue=queue)
        else:
            self._submit(queue=queue)

    def _ask(self, warning: str, *, queue: bool) -> None:
        question = Question(self._page, tr("Start training"), tr("Start anyway?"), warning)
        question.setIcon(QMessageBox.Icon.Warning)
        self.question = question
        start = question.addButton(tr("Start anyway"), QMessageBox.ButtonRole.AcceptRole)
        plan = question.addButton(tr("Show the plan"), QMessageBox.ButtonRole.ActionRole)
        question.setDefaultButton(question.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole))
        start.clicked.connect(lambda: self._submit(queue=queue))
        plan.clicked.connect(self.plan_requested)
        question.finished.connect(question.deleteLater)
        question.open()

    def _submit(self, *, queue: bool) -> None:
        """Submit the spec with this user's consents; in the queue it starts when the others are over."""
        self._set_busy(True)
        values, consent = self._draft.values(), self._checks.consent()
        self._name = str(values.get("name", ""))
        self._context.jobs.start(values, self._on_started, self._on_refused, consent, queue=queue)

    def copy_command(self, *, queue: bool = False) -> None:
        """Put the command that starts the same run, or queues it, on the clipboard."""
        options = [*self._checks.consent().options(), *([QUEUE] if queue else [])]
        environment = self._context.preferences.chosen_environment()
        QGuiApplication.clipboard().setText(self._draft.command(options, environment))
        name = formatting.name_of_path(str(self._draft.get("name")))
        self.message.emit("info", tr("Copied the command that starts {name}.", name=name))

    def _set_busy(self, busy: bool) -> None:
        self.busy = busy
        self.changed.emit(busy)

    def _on_started(self, path: str) -> None:
        self._set_busy(False)
        self._context.library_watcher.refresh_now()
        if self._context.jobs.waits(path):
            # Who fills a queue sets up the next run.
            words = waiting_words([read_subject(other).title for other in self._context.jobs.ahead(path)])
            self.message.emit("success", tr("Added {name} to the queue. {words}.", name=self._name, words=words))
        else:
            self.started.emit(path)
        # Last, as a full disk must not keep the run from being shown.
        self._context.preferences.remember_model(str(self._draft.get("model.name_or_path")))

    def _on_refused(self, sentence: str) -> None:
        self._set_busy(False)
        self.refused.emit(sentence)
