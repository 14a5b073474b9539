"""Controls the data section: recognizes what was dropped or typed, checks all rows, and opens the dialogs with rows."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.core import formatting
from app.core.draft.data_source import data_changes, is_read_otherwise, rows_of, whole_choice
from app.core.i18n import tr
from app.pages.new_run.data.data_section import DataSection
from app.pages.new_run.data.page_drops import PageDrops
from app.pages.new_run.data.recognised_note import NO_OFFER, TaskOffer, offer_return, offer_switch
from app.pages.new_run.data.row_dialogs import RowDialog, UnusableDialog
from app.pages.new_run.draft_checks import DraftChecks
from app.pages.new_run.draft_controller import DraftController, Moment
from app.services.backend_client import BackendClient, PendingQuery
from app.services.latest_question import LatestQuestion
from backend.contract.catalog import TaskEntry
from backend.contract.rpc.data import DataPreview, DataSummary, RecognisedData
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.protocol import ErrorReply, Progress

GLANCE_DELAY_MS = 150
_OTHERS = {
    "validation": tr("use validation data in the same format, or drop this on the page to train on it."),
    "test": tr("use test data in the same format, or drop this on the page to train on it."),
}


@dataclass(frozen=True)
class TaskDecision:
    """The task that the data of these rows is made for, and the one before."""

    rows: object
    task: TaskEntry
    before: TaskEntry
    reason: str = ""
    others: Sequence[TaskEntry] = ()
    """Which it suits as well."""


class DataController(QObject):
    """The newest drop wins, and so does the newest scan of all rows; the same rows are not scanned twice."""

    changed = Signal(dict)
    """Values of the spec to set, in order."""
    task_requested = Signal(str)
    task_found = Signal(str)
    """The data is made for this task, and nobody has chosen another."""

    def __init__(
        self,
        client: BackendClient,
        controller: DraftController,
        checks: DraftChecks,
        section: DataSection,
        page: QWidget,
    ) -> None:
        super().__init__(page)
        self._client, self._checks, self._section, self._page = client, checks, section, page
        self._controller, self._draft = controller, controller.draft
        self._recognising: PendingQuery | None = None
        self._before: Moment = controller.moment()
        """The draft before something was recognised, to undo that."""
        self._new_rows: object = None
        """The rows that were dropped or named and have not been read since: only they may decide the task."""
        self._decision: TaskDecision | None = None
        """What the newest data has decided."""
        self._unsuited = ""
        """The last model that does not suit the task that the data had decided."""
        self._recognition: tuple[object, TaskEntry | None] = (None, None)
        """The task that these rows were recognised as data for."""
        self.glance: DataSummary | None = None
        """What all rows hold, once they were looked at."""
        self._glanced_at: dict[str, Any] = {}
        self._glance = LatestQuestion(
            client, "data_glance", self._on_glance, self._on_no_glance, self._on_glance_progress, opened="",
            arguments=self._glance_arguments, delay_ms=GLANCE_DELAY_MS, parent=self,
        )  # fmt: skip
        self.drops = PageDrops(page, section)
        self.unusable: UnusableDialog | None = None
        self.row: RowDialog | None = None
        self._connect()

    def _connect(self) -> None:
        section, checks = self._section, self._checks
        section.train_named.connect(self.check)
        section.dropped.connect(self.take)
        section.undo_requested.connect(self._on_undo)
        section.task_requested.connect(self._on_task_requested)
        self.drops.dropped.connect(self.take)
        checks.previewed.connect(self._on_preview)
        checks.described.connect(self._on_model)
        checks.emptied.connect(self._on_gone)
        checks.refused.connect(lambda topic, mistake: self._on_gone(topic))
        self._controller.loaded.connect(self._on_loaded)
        section.view.stop_requested.connect(self._on_stop)
        section.view.unusable_requested.connect(self.show_unusable)
        section.view.row_requested.connect(self.show_row)
        section.stop_requested.connect(checks.stop_reading)
        section.read_requested.connect(checks.data_changed)

    # What was dropped or named: it is recognised, put in place, said, and can be undone

    def take(self, paths: Sequence[str], split: str = "") -> None:
        """Use what was dropped, or show why it is not usable."""
        own = self._section.own_folder() if len(paths) == 1 and not PurePath(paths[0]).suffix else ""

        def use(found: RecognisedData) -> None:
            self._checks.show_inspecting(False)
            # A folder that nothing speaks for is the one for which the chosen source asks.
            is_plain = found.data["source"] == "files" and (found.folder_files or found.data.get("train") != paths[0])
            self.changed.emit({own: paths[0]}) if own and is_plain else self._use(found, split)

        def refuse(mistake: ErrorReply) -> None:
            self._checks.show_inspecting(False)
            self.changed.emit({own: paths[0]}) if own else self._refuse(mistake)

        self._recognise(paths, split, use, refuse)
        self._section.show_recognising()
        self._checks.show_inspecting(True)

    def check(self, value: str | list[str]) -> None:
        """Check what was typed or chosen: it is kept, but may need another source or format."""
        self._new_rows = rows_of(self._draft)

        def use(found: RecognisedData) -> None:
            if is_read_otherwise(self._data(), found.data):
                self._use(found, "")

        self._recognise([value] if isinstance(value, str) else value, "", use, lambda mistake: None)

    def _recognise(self, paths: Sequence[str], split: str, on_answer: Any, on_error: Any) -> None:
        self._stop_recognising()
        question = {"paths": list(paths), "split": split}
        self._recognising = self._client.ask("recognise_data", question, on_answer, on_error)

    def _stop_recognising(self) -> None:
        if self._recognising is not None and self._recognising.open:
            self._recognising.cancel()
            self._checks.show_inspecting(False)

    def _on_loaded(self) -> None:
        """Another draft: what is still being recognised was meant for the one before."""
        self._stop_recognising()
        self._forget_task()

    def _forget_task(self) -> None:
        self._new_rows, self._decision, self._recognition = None, None, (None, None)

    def _data(self) -> dict[str, Any]:
        return deepcopy(dict(self._draft.get("data") or {}))

    def _use(self, found: RecognisedData, split: str) -> None:
        if (
            split in _OTHERS
            and self._draft.get("data.train")
            and found.data["source"] != self._draft.get("data.source")
        ):
            self._refuse(
                ErrorReply(
                    tr(
                        "{words} The training data has a different format; {OTHERS}",
                        words=found.words,
                        OTHERS=_OTHERS[split],
                    )
                )
            )
            return
        before, wanted = self._controller.moment(), whole_choice(self._data(), found.data, split or None)
        with self._controller.step(tr("Choose data")):
            self.changed.emit(data_changes(wanted))
            self._before, rows, task = before, rows_of(self._draft), self._controller.task_named(found.task)
            self._new_rows, self._recognition = rows if split in ("", "train") else None, (rows, task)
            if self._may_decide() and task is not None:
                self._decide(task)
        self._section.show_recognised(found, self._offer())

    def _may_decide(self) -> bool:
        return self._new_rows == rows_of(self._draft) and not self._draft.task_chosen

    def _decide(self, task: TaskEntry, reason: str = "", others: Sequence[TaskEntry] = ()) -> None:
        """Switch to the task that the data is made for."""
        before = self._controller.task()
        if before is None or task is before:
            return
        self._new_rows, self._decision = None, TaskDecision(rows_of(self._draft), task, before, reason, others)
        self.task_found.emit(task.name)

    def _others(self) -> list[tuple[TaskEntry, str]]:
        """The tasks that the rows seem made for instead, with the reasons."""
        preview = self._checks.preview
        others = preview.other_tasks if preview is not None else ()
        return [(task, one.reason) for one in others if (task := self._controller.task_named(one.task))]

    def _offer(self) -> TaskOffer:
        """What to say of the task: by the rows, else by what the data has decided, else by what it was recognised as."""
        task, rows, preview = self._controller.task(), rows_of(self._draft), self._checks.preview
        others, decision, (recognised_rows, suited) = self._others(), self._decision_now(), self._recognition
        if others and preview is not None and preview.wrong_column is None:  # else the button is beside what is wrong
            return offer_switch([one for one, _ in others], others[0][1])
        if decision is not None:
            return offer_return(decision.task, decision.before, decision.reason, decision.others)
        if suited is not None and suited is not task and recognised_rows == rows:
            return offer_switch([suited])
        return NO_OFFER

    def _on_preview(self, preview: DataPreview) -> None:
        others, may_decide = self._others(), self._may_decide()
        self._new_rows = None
        if may_decide and others and self._checks.lacks_column():
            best, reason = others[0]
            self._decide(best, reason, [task for task, _ in others[1:]])  # the rows are read again, for that task
            self._section.show_offer(self._offer())
            return
        self._section.show_offer(self._offer())
        self._look(anew=True)

    def _decision_now(self) -> TaskDecision | None:
        """The decision of the data, as long as it holds."""
        decision = self._decision
        holds = decision is not None and (decision.rows, decision.task) == (
            rows_of(self._draft),
            self._controller.task(),
        )
        return decision if holds else None

    def _on_model(self, model: ModelDescription) -> None:
        """If the data suits several tasks, the model may be made for another than the first."""
        decision = self._decision_now()
        if decision is None or not model.problem or not decision.others or model.name == self._unsuited:
            self._look()
            return
        self._unsuited = model.name  # a model that suits neither is not passed on and on
        self._decision = replace(decision, task=decision.others[0], others=[decision.task])
        self.task_found.emit(self._decision.task.name)  # the model is described again, for that task
        self._section.show_offer(self._offer())

    def _refuse(self, mistake: ErrorReply) -> None:
        self._section.show_refused(formatting.sentence(mistake.message, mistake.field))

    def _on_undo(self) -> None:
        self._forget_task()
        self._section.forget_recognised()
        self._controller.put_data_back(self._before)

    def _on_task_requested(self, name: str) -> None:
        self._section.forget_recognised()  # what it offered is done
        self._forget_task()
        self.task_requested.emit(name)

    # The look at all rows, once the first ones are known

    def arguments(self) -> dict[str, Any]:
        """What to examine: the task, the data, and the model whose tokens are counted if it is on this computer."""
        model = self._checks.model
        named = self._draft.get("model.tokenizer") or (model.folder if model is not None else "")
        return {"task": self._draft.get("task"), "data": self._draft.get("data"), "model": named or None}

    def _look(self, anew: bool = False) -> None:
        if anew:
            self.glance, self._glanced_at = None, {}
        if self._checks.preview is not None and self.arguments() != self._glanced_at:
            self._glance.ask_soon()

    def _glance_arguments(self) -> dict[str, Any] | None:
        if self._checks.preview is None:
            return None
        self._glanced_at = self.arguments()
        self._section.view.show_counting(None)
        return self._glanced_at

    def _on_glance(self, glance: DataSummary) -> None:
        self.glance = glance
        self._section.view.show_glance(glance)

    def _on_no_glance(self, mistake: ErrorReply) -> None:
        self.glance = None
        self._section.view.show_glance(None)
        # Other obstacles are reported by the plan, or by what still has to be chosen.
        if mistake.field in ("data.validation", "data.test"):
            self._section.mark(mistake.field, formatting.sentence(mistake.message, mistake.field))

    def _on_glance_progress(self, progress: Progress) -> None:
        self._section.view.show_counting(progress.done / progress.total if progress.total else None)

    def _on_stop(self) -> None:
        """Stop scanning all rows."""
        self._glance.stop()
        self._section.view.show_stopped()

    def _on_gone(self, topic: str) -> None:
        if topic == "data":
            self.glance, self._glanced_at = None, {}
            self._glance.stop()
            self._section.show_offer(self._offer())

    # Rows in dialogs

    def show_unusable(self) -> None:
        """List the rows that cannot be used."""
        if self.glance is None:
            return
        self.unusable = self.unusable or UnusableDialog(self._client, self._page)
        self.unusable.show_rows(self.glance, self.arguments())

    def show_row(self, row: int) -> None:
        """Show one row of the preview in full."""
        if self._checks.preview is not None:
            self.row = self.row or RowDialog(self._client, self._page)
            self.row.show_row(self._checks.preview, row, self.arguments())
