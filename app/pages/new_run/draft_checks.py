"""Owns what the helper process says about a draft: its data, its model, its cost, and why it cannot be started."""

from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core import formatting
from app.core.draft.draft import Draft
from app.core.i18n import tr
from app.core.preferences import Preferences
from app.pages.new_run.debounced_query import DebouncedQuery, MakeArguments
from app.services.backend_client import BackendClient, OnAnswer
from app.services.job import Consent
from backend.contract.rpc.queries import DataPreview, Mistake, ModelDescription, Progress, RunPlan

CONVERSION = tr("The model's weights must be converted once; the card of the model says how.")
CODE = tr("The model wants to run code of its own, to which you have not agreed.")
STOPPED = tr("Reading the data was stopped. Read it again, choose other data, or set “Most rows” to read a part of it.")
OFFERED = tr("The data cannot be read yet; its card offers a way.")
TOPICS = ("data", "model", "plan")


class DraftChecks(QObject):
    """Asks again when it is told what has changed; `problems` maps a topic to the sentence that stands in the way."""

    asking = Signal(str, object)
    """A topic is being looked into; a Progress or None."""
    emptied = Signal(str)
    """There is nothing to look into."""
    previewed = Signal(object)
    described = Signal(object)
    planned = Signal(object)
    trusted = Signal(object)
    """The person's consent to the code of that model is kept."""
    devices_found = Signal(object)
    refused = Signal(str, object)
    """Topic and Mistake."""
    changed = Signal()
    """`problems` may be others."""

    def __init__(self, client: BackendClient, preferences: Preferences, draft: Draft, parent: QObject) -> None:
        super().__init__(parent)
        self._client, self._preferences, self._draft = client, preferences, draft
        self.preview: DataPreview | None = None
        self.model: ModelDescription | None = None
        self.plan: RunPlan | None = None
        self.problems: dict[str, str] = {}
        self.ready = False
        """Whether the draft can be asked about: the catalog is here."""
        self.readable = False
        """Whether nothing is missing to read the data."""
        self._conversions: set[str] = set()
        """Models whose weights this user has agreed to convert."""
        self._plannable = True
        self._preview = self._inquiry("preview_data", "data", self._data_arguments, self._on_preview)
        self._description = self._inquiry("describe_model", "model", self._model_arguments, self._on_model)
        self._conversion = self._inquiry("convert_model", "model", self._conversion_arguments, self._on_model)
        self._plan = self._inquiry("plan", "plan", self._plan_arguments, self._on_plan)
        self._devices = self._inquiry("devices", "devices", self._device_arguments, self.devices_found.emit)

    def _inquiry(self, query: str, topic: str, arguments: MakeArguments, on_answer: OnAnswer) -> DebouncedQuery:
        def on_error(mistake: Mistake) -> None:
            self._on_mistake(topic, mistake)

        def on_progress(progress: Progress) -> None:
            self.asking.emit(topic, progress)

        return DebouncedQuery(self._client, query, arguments, on_answer, on_error, on_progress, parent=self)

    # What has changed

    def everything_changed(self) -> None:
        """Another spec: ask about all of it, at once."""
        self._conversion.cancel()
        for inquiry in (self._preview, self._description, self._plan):
            inquiry.ask_now()
        self.changed.emit()

    def data_changed(self) -> None:
        """Other files or columns: what was found in the old ones holds no more."""
        self.preview = None
        self.problems.pop("data", None)
        self._preview.ask_soon()
        self.something_changed()

    def stop_reading(self) -> None:
        """The person does not want to wait for the data."""
        self._preview.cancel()
        self._on_mistake("data", Mistake(STOPPED))

    def model_changed(self) -> None:
        """Another model."""
        self.model = None
        self.problems.pop("model", None)
        self._conversion.cancel()
        self._description.ask_soon()
        self.something_changed()

    def engine_changed(self) -> None:
        """Another engine sees other devices."""
        self._devices.ask_soon()
        self.something_changed()

    def look_again(self) -> None:
        """Other programs may have taken or left memory."""
        self._devices.ask_now()
        self.something_changed()

    def something_changed(self) -> None:
        """Every change may change the cost."""
        self.plan = None
        self.problems.pop("plan", None)
        self._plan.ask_soon()
        self.changed.emit()

    def set_plannable(self, plannable: bool) -> None:
        """Whether nothing is missing or mistaken for a plan; one that was given up for that is asked for again."""
        given_up = plannable and not self._plannable and self.plan is None
        self._plannable = plannable
        if given_up and not self._plan.waits:
            self._plan.ask_soon()

    def trust(self) -> None:
        """The person has read the model's own code as it was described, and agreed to it."""
        model = self.model
        if model is None or not model.code:
            return
        about = {"target": model.name, "revision": model.commit or "main", "code": model.code}
        self._client.ask("agree_to_code", about, lambda found: self._on_trusted(model), self._on_not_trusted)

    def _on_trusted(self, model: ModelDescription) -> None:
        if self.model is model:
            self.trusted.emit(model)

    def _on_not_trusted(self, mistake: Mistake) -> None:
        self._on_mistake("model", mistake)

    def convert(self) -> None:
        """The person has agreed to convert the model's weights once."""
        self._conversions.add(str(self._draft.get("model.name_or_path")))
        self._description.cancel()
        self._conversion.ask_now()

    def trusts_model(self) -> bool:
        """Whether this user has agreed to the model's own code."""
        return self.model is not None and self.model.code_agreed

    def consent(self) -> Consent:
        """What this user has agreed to for the model of the draft."""
        return Consent(str(self._draft.get("model.name_or_path")) in self._conversions)

    def waiting(self) -> str:
        """What is still being looked into before the run can be started; empty where nothing is."""
        if self.preview is None and "data" not in self.problems:
            return tr("Reading the data…")
        return tr("Looking at the model…") if self.model is None and "model" not in self.problems else ""

    def blocking(self) -> str:
        """The first problem, or nothing."""
        return next((self.problems[topic] for topic in TOPICS if topic in self.problems), "")

    def refuse(self, sentence: str) -> None:
        """The run was not started, for this reason."""
        self.problems["plan"] = sentence
        self.changed.emit()

    # What is asked

    def report_arguments(self) -> dict[str, Any]:
        """What a data report is asked about: the spec where it is whole, else the data and the task alone."""
        if self.plan is not None:
            return {"spec": self._draft.values()}
        return {"task": self._draft.get("task"), "data": self._draft.get("data")}

    def _device_arguments(self) -> dict[str, Any]:
        return {"engine": self._draft.get("hardware.engine", "torch")}

    def _data_arguments(self) -> dict[str, Any] | None:
        self.preview = None
        self.problems.pop("data", None)
        if not self.ready or not self.readable:
            self.emptied.emit("data")
            return None
        self.asking.emit("data", None)
        return {"task": self._draft.get("task"), "data": self._draft.get("data")}

    def _model_arguments(self) -> dict[str, Any] | None:
        self.model = None
        self.problems.pop("model", None)
        if not self.ready or not self._draft.get("model.name_or_path"):
            self.emptied.emit("model")
            return None
        self.asking.emit("model", None)
        return {
            "name_or_path": self._draft.get("model.name_or_path"),
            "revision": self._draft.get("model.revision", "main"),
            "task": self._draft.get("task.type"),
        }

    def _conversion_arguments(self) -> dict[str, Any] | None:
        arguments = self._model_arguments()
        return {**arguments, "consent": True} if arguments else None

    def _plan_arguments(self) -> dict[str, Any] | None:
        self.plan = None
        self.problems.pop("plan", None)
        if not self.ready or not self._plannable or self._needs_weights():
            self.emptied.emit("plan")
            return None
        self.asking.emit("plan", None)
        return {"spec": self._draft.values()}

    def _needs_weights(self) -> bool:
        """Whether a plan would first download a model, which nobody has asked for: an adapter's size follows from weights."""
        trains_a_part = bool(self._draft.get("adapter") or self._draft.get("model.frozen"))
        return trains_a_part and (self.model is None or self.model.found == "hub")

    # What is answered

    def _on_preview(self, preview: DataPreview) -> None:
        self.preview = preview
        for part, column in preview.guessed_columns.items():
            if not self._draft.get(f"data.columns.{part}"):
                self._draft.set(f"data.columns.{part}", column)
        self.previewed.emit(preview)
        self.something_changed()

    def _on_model(self, model: ModelDescription) -> None:
        self.model = model
        if model.problem:
            self.problems["model"] = formatting.sentence(model.problem)
        elif model.needs_conversion:
            self.problems["model"] = CONVERSION
        elif model.needs_remote_code and not self.trusts_model():
            self.problems["model"] = CODE
        elif model.needs_remote_code:
            self._draft.set("model.trust_remote_code", True)
        self.described.emit(model)
        self.something_changed()

    def _on_plan(self, plan: RunPlan) -> None:
        self.plan = plan
        if plan.problems:
            self.problems["plan"] = formatting.sentence(plan.problems[0])
        self.planned.emit(plan)
        self.changed.emit()

    def _on_mistake(self, topic: str, mistake: Mistake) -> None:
        if topic in TOPICS:
            self.problems[topic] = (
                formatting.sentence(mistake.message, mistake.field) if mistake.fix is None else OFFERED
            )
        self.refused.emit(topic, mistake)
        self.changed.emit()
