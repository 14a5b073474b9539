"""Everything that the backend says about the draft: data, model, devices, cost and time, and why it cannot start."""

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core import formatting
from app.core.backend_messages import translate_message
from app.core.draft import data_source
from app.core.draft.draft import Values
from app.core.draft.draft_settings import fit_to_model
from app.core.i18n import inside, tr
from app.pages.new_run.draft_controller import DraftController
from app.pages.new_run.section_state import ACTIONS, BUSY, DONE, OPEN, SECTIONS, WRONG, SectionState, section_of
from app.services.backend_client import BackendClient, OnAnswer, PendingQuery
from app.services.job import Consent
from app.services.latest_question import LatestQuestion, MakeArguments
from backend.contract.rpc.data import DataPreview
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.plan import RunPlan
from backend.contract.rpc.protocol import ErrorReply, Progress
from backend.contract.run.cost import MeasuredTime

CONVERSION = SectionState(
    WRONG, tr("The model's weights need to be converted once. See the Model section."), tr("Convert the weights")
)
CODE = SectionState(WRONG, tr("This model needs to run custom code that you have not approved."), tr("Review its code"))
STOPPED = tr("Reading the data was stopped. Reload it, choose other data, or set “Max rows” to read only part of it.")
OFFERED = tr("The data can't be read yet. See the Data section.")
TOPICS = ("data", "model", "plan")


def _is_unread(mistake: ErrorReply) -> bool:
    """Whether the data cannot be read as it is, and there is a fix; with the wrong columns it can be read."""
    return mistake.fix is not None and not (mistake.field or "").startswith("data.columns.")


class DraftChecks(QObject):
    """Queries again after a change; `problems` maps a topic to what blocks starting."""

    asking = Signal(str, object)
    """A topic is being looked into; a Progress or None."""
    emptied = Signal(str)
    """There is nothing to look into."""
    previewed = Signal(object)
    described = Signal(object)
    fitted = Signal()
    """Settings were fitted to the model."""
    planned = Signal(object)
    trusted = Signal(object)
    """The person's consent to the code of that model is kept."""
    devices_found = Signal(object)
    refused = Signal(str, object)
    """Topic and ErrorReply."""
    changed = Signal()
    """`problems` may be others."""
    measuring = Signal(object)
    """How far the measurement is: a Progress, or None where nothing is measured (any more)."""
    short_of_memory = Signal(object)
    """The MeasuredTime of a measurement that had not enough memory."""
    not_measured = Signal(str)
    """Why, as a sentence."""

    def __init__(self, client: BackendClient, controller: DraftController, parent: QObject) -> None:
        super().__init__(parent)
        self._client, self._controller, self._draft = client, controller, controller.draft
        self.preview: DataPreview | None = None
        self.model: ModelDescription | None = None
        self.plan: RunPlan | None = None
        self.problems: dict[str, SectionState] = {}
        self.field_mistakes: Callable[[], Mapping[str, Mapping[str, str]]] = dict
        """Gives title → sentence of all fields that are marked as wrong, by section; the page sets it."""
        self._conversions: set[str] = set()
        """Models whose weights this user has agreed to convert."""
        self._inspects_files = False
        self._plannable = True
        self._plan_section = "settings"
        """Where the reason lies why there is no plan, or none that can be started."""
        self._measurement: PendingQuery | None = None
        self._preview = self._question("preview_data", "data", self._data_arguments, self._on_preview)
        self._description = self._question("describe_model", "model", self._model_arguments, self._on_model)
        self._conversion = self._question("convert_model", "model", self._conversion_arguments, self._on_model)
        self._plan = self._question("plan", "plan", self._plan_arguments, self._on_plan)
        self._devices = self._question("devices", "devices", self._device_arguments, self.devices_found.emit)

    def _question(self, query: str, topic: str, arguments: MakeArguments, on_answer: OnAnswer) -> LatestQuestion:
        def on_error(mistake: ErrorReply) -> None:
            self._on_mistake(topic, mistake)

        def on_progress(progress: Progress) -> None:
            self.asking.emit(topic, progress)

        return LatestQuestion(
            self._client, query, on_answer, on_error, on_progress, opened="", arguments=arguments, parent=self
        )

    # What has changed, and what is asked again for that

    def setting_changed(self, key: str) -> None:
        """One value of the draft has changed."""
        section = key.split(".")[0]
        if section == "data":
            self.data_changed()
        elif section == "model":
            self.model_changed()
        elif key == "hardware.engine":
            self.engine_changed()
        else:
            if data_source.decides_parts(self._controller.task(), key) or (
                section == "task" and self._has_wrong_column()
            ):
                self.data_changed()
            self.something_changed()

    def settings_changed(self, before: Values) -> None:
        """Several values differ from `before`, but not the task or the data."""
        if before.get("model") != self._draft.get("model"):
            self.model_changed()
        if before.get("hardware") != self._draft.get("hardware"):
            self.engine_changed()
        self.something_changed()

    def everything_changed(self) -> None:
        """The spec was replaced: query everything, at once."""
        self._conversion.stop()
        for question in (self._preview, self._description, self._plan):
            question.ask_now()
        self.changed.emit()

    def data_changed(self) -> None:
        """Files or columns have changed: earlier findings no longer apply."""
        self.preview = None
        self.problems.pop("data", None)
        self._preview.ask_soon()
        self.something_changed()

    def model_changed(self) -> None:
        """The model has changed."""
        self.model = None
        self.problems.pop("model", None)
        self._conversion.stop()
        self._description.ask_soon()
        self.something_changed()

    def engine_changed(self) -> None:
        """The engine has changed: it sees other devices."""
        self._devices.ask_soon()
        self.something_changed()

    def look_again(self) -> None:
        """Query devices again: other programs may have taken or freed memory."""
        self._devices.stop()  # what it would say is older than the wish
        self._devices.ask_now()
        self.something_changed()

    def something_changed(self) -> None:
        """Any change may change the cost."""
        self.plan = None
        self.problems.pop("plan", None)
        self._plan.ask_soon()
        self.changed.emit()

    def retry_plan(self) -> None:
        """Retry a plan that was skipped because something was missing or invalid, once nothing is."""
        plannable = not self.missing() and not any(self.field_mistakes().values())
        given_up = plannable and not self._plannable and self.plan is None
        self._plannable = plannable
        if given_up and not self._plan.waits:
            self._plan.ask_soon()

    # Data

    def show_inspecting(self, inspects_files: bool) -> None:
        """Say whether files that were dropped are being inspected: until then, the draft is not what is wanted."""
        self._inspects_files = inspects_files
        self.changed.emit()

    def stop_reading(self) -> None:
        """Stop reading the data."""
        self._preview.stop()
        self._on_mistake("data", ErrorReply(STOPPED))

    def report_arguments(self) -> dict[str, Any]:
        """The arguments of a data report: the spec if it is complete, else only the data and the task."""
        if self.plan is not None:
            return {"spec": self._draft.run_values()}
        return {"task": self._draft.get("task"), "data": self._draft.get("data")}

    def _data_arguments(self) -> dict[str, Any] | None:
        self.preview = None
        self.problems.pop("data", None)
        if self._controller.catalog is None or data_source.missing_data(self._draft, self._controller.source()):
            self.emptied.emit("data")
            return None
        self.asking.emit("data", None)
        return {"task": self._draft.get("task"), "data": self._draft.get("data")}

    def _on_preview(self, preview: DataPreview) -> None:
        self.preview = preview
        for part, column in preview.guessed_columns.items():
            if not self._draft.get(f"data.columns.{part}"):
                self._draft.set(f"data.columns.{part}", column)
        if preview.wrong_column is not None:
            self.problems["data"] = self._wrong(preview.wrong_column, "data")
        self.previewed.emit(preview)
        self.something_changed()

    # Model

    def trust(self) -> None:
        """The user has read the model's own code as shown, and approved it."""
        model = self.model
        if model is None or not model.code:
            return
        about = {"target": model.name, "revision": model.commit or "main", "code": model.code}
        self._client.ask("agree_to_code", about, lambda found: self._on_trusted(model), self._on_not_trusted)

    def _on_trusted(self, model: ModelDescription) -> None:
        if self.model is model:
            self.trusted.emit(model)

    def _on_not_trusted(self, mistake: ErrorReply) -> None:
        self._on_mistake("model", mistake)

    def convert(self) -> None:
        """The user has agreed to convert the model's weights once."""
        self._conversions.add(str(self._draft.get("model.name_or_path")))
        self._description.stop()
        self._conversion.ask_now()

    def trusts_model(self) -> bool:
        """Whether this user has approved the model's own code."""
        return self.model is not None and self.model.code_agreed

    def consent(self) -> Consent:
        """This user's consents for the draft's model."""
        return Consent(str(self._draft.get("model.name_or_path")) in self._conversions)

    def _model_arguments(self) -> dict[str, Any] | None:
        self.model = None
        self.problems.pop("model", None)
        if self._controller.catalog is None or not self._draft.get("model.name_or_path"):
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

    def _on_model(self, model: ModelDescription) -> None:
        self.model = model
        if model.problem:
            self.problems["model"] = SectionState(WRONG, formatting.sentence(model.problem), ACTIONS["model"])
        elif model.needs_conversion:
            self.problems["model"] = CONVERSION
        elif model.needs_remote_code and not self.trusts_model():
            self.problems["model"] = CODE
        elif model.needs_remote_code:
            self._draft.set("model.trust_remote_code", True)
        self.described.emit(model)
        self._fit(model)
        self.something_changed()

    def _fit(self, model: ModelDescription) -> None:
        """Fit lengths to the model that nobody has set; what was fitted to another one returns to its default."""
        before = self._controller.fitted
        for one in before:
            if self._draft.get(one.key) == one.value:
                self._draft.unset(one.key)
        self._controller.fitted = fit_to_model(self._draft, self._controller.settings(), model)
        if self._controller.fitted != before:
            self.fitted.emit()

    # Devices, and what the run will cost

    @property
    def is_planning(self) -> bool:
        """Whether a plan is being made, or will be soon."""
        return self._plan.waits

    def _device_arguments(self) -> dict[str, Any]:
        return {"engine": self._draft.get("hardware.engine", "torch")}

    def _plan_arguments(self) -> dict[str, Any] | None:
        self.plan = None
        self.problems.pop("plan", None)
        if self._controller.catalog is None or not self._plannable or self.needs_weights():
            self.emptied.emit("plan")
            return None
        self.asking.emit("plan", None)
        return {"spec": self._draft.values()}

    def needs_weights(self) -> bool:
        """Whether a plan would need an unrequested model download: an adapter's size is computed from the weights."""
        trains_a_part = bool(self._draft.get("adapter") or self._draft.get("model.frozen"))
        return trains_a_part and (self.model is None or self.model.found == "hub")

    def _on_plan(self, plan: RunPlan) -> None:
        self.plan = plan
        if plan.problems:
            self._plan_section = "settings"
            self.problems["plan"] = SectionState(WRONG, formatting.sentence(plan.problems[0]), tr("Use less memory"))
        self.planned.emit(plan)
        self.changed.emit()

    def _on_mistake(self, topic: str, mistake: ErrorReply) -> None:
        if topic == "plan":
            self._plan_section = section_of(mistake.field or "")
        if topic in TOPICS:
            self.problems[topic] = self._wrong(mistake, topic if topic != "plan" else self._plan_section)
        self.refused.emit(topic, mistake)
        self.changed.emit()

    # How long it will take, measured; one measurement at a time, whatever becomes of the draft meanwhile

    @property
    def is_measuring(self) -> bool:
        """Whether a measurement is running."""
        return self._measurement is not None

    def measure(self) -> None:
        """Train the current draft for a few seconds; the backend stores the measured time."""
        if self.is_measuring:
            return
        self._measurement = self._client.ask(
            "measure_time",
            {"spec": self._draft.run_values()},
            self._on_measured,
            self._on_not_measured,
            self.measuring.emit,
        )
        self.measuring.emit(Progress())

    def stop_measuring(self) -> None:
        """Stop: the helper ends the process, which leaves nothing behind."""
        if self._measurement is not None:
            self._measurement.cancel()
            self._end_measurement()

    def _end_measurement(self) -> None:
        self._measurement = None
        self.measuring.emit(None)

    def _on_measured(self, found: MeasuredTime) -> None:
        self._end_measurement()
        if found.shortage:
            self.short_of_memory.emit(found)
        else:
            self.something_changed()

    def _on_not_measured(self, mistake: ErrorReply) -> None:
        self._end_measurement()
        self.not_measured.emit(formatting.sentence(mistake.message, mistake.field))

    # Why the run cannot be started: one sentence each, empty if there is no reason

    def refuse(self, sentence: str, field: str = "") -> None:
        """The run was not started, for this reason."""
        self._plan_section = section_of(field)
        self.problems["plan"] = self._wrong(ErrorReply(sentence, field), self._plan_section)
        self.changed.emit()

    def _wrong(self, mistake: ErrorReply, section: str) -> SectionState:
        """What a section says of a mistake, and what to do there."""
        said = translate_message(mistake.fix.sentence) if mistake.fix is not None else ""
        note = OFFERED if _is_unread(mistake) else formatting.sentence(said or mistake.message, mistake.field)
        return SectionState(WRONG, note, self._action(mistake.field or "", section))

    def _action(self, field: str, section: str) -> str:
        """What to do about a field in which something is wrong."""
        task, setting = self._controller.task(), self._controller.settings().get(field)
        for part in task.columns if task is not None else ():
            if field == f"data.columns.{part.name}":
                return tr("Fix the {title} column", title=inside(part.title))
        if setting is None or section in ("task", "model"):
            return ACTIONS[section]
        return tr("Fix “{title}”", title=setting.title)

    def blocker(self, *, elsewhere: bool = False) -> str:
        """What the user has to fix first, to start here or `elsewhere`: the plan says nothing of other computers."""
        return self.obstacle(elsewhere=elsewhere)[1].note

    def obstacle(self, *, elsewhere: bool = False) -> tuple[str, SectionState]:
        """The section that blocks the start, and its state; none and DONE if nothing does."""
        states = self.section_states(elsewhere=elsewhere)
        first = (name for kind in (OPEN, WRONG, BUSY) for name in SECTIONS if states[name].kind == kind)
        name = "data" if states["data"].kind == WRONG else next(first, "")
        return name, states[name] if name else SectionState(DONE)

    def missing(self) -> str:
        """What still has to be chosen."""
        return self._missing_task() or self._missing_data() or self._missing_model()

    def _missing_task(self) -> str:
        if self._controller.task() is not None:
            return ""
        return tr("Choose a task.") if self._controller.catalog else tr("Waiting for the backend…")

    def _missing_data(self) -> str:
        task = self._controller.task()
        lacks = data_source.missing_data(self._draft, self._controller.source())
        if lacks or task is None:
            return lacks
        others = [self._controller.task_named(one.task) for one in (self.preview.other_tasks if self.preview else ())]
        first = next((other.title for other in others if other is not None), "")  # the bar has no room for two
        return data_source.missing_column(self._draft, task, self.preview, first)

    def _has_wrong_column(self) -> bool:
        """Whether the preview found one, which a setting of the task, such as its labels, may put right."""
        return self.preview is not None and self.preview.wrong_column is not None

    def lacks_column(self) -> bool:
        """Whether a role of the task has no column of the data, or one that cannot play it."""
        preview, task = self.preview, self._controller.task()
        if preview is None or task is None:
            return False
        return preview.wrong_column is not None or bool(data_source.missing_column(self._draft, task, preview))

    def _missing_model(self) -> str:
        return "" if self._draft.get("model.name_or_path") else tr("Choose a model.")

    def section_states(self, *, elsewhere: bool = False) -> dict[str, SectionState]:
        """The state of each section: wrong takes precedence over missing, and missing over being read."""
        wrong = {topic: problem for topic, problem in self.problems.items() if topic in ("data", "model")}
        if elsewhere and wrong.get("model") is CODE:  # asked for that machine
            del wrong["model"]
        if "plan" in self.problems and not elsewhere:
            wrong.setdefault(self._plan_section, self.problems["plan"])
        for name, sentences in self.field_mistakes().items():
            for title, sentence in sentences.items():
                wrong.setdefault(name, SectionState(WRONG, sentence, tr("Fix “{title}”", title=title)))
        return {name: self._state(name, wrong.get(name)) for name in SECTIONS}

    def _state(self, name: str, wrong: SectionState | None) -> SectionState:
        if name == "data" and self._inspects_files:
            return SectionState(BUSY, tr("Inspecting the dropped files…"))
        if wrong is not None:
            return wrong
        missing = {"task": self._missing_task, "data": self._missing_data, "model": self._missing_model}
        if name in missing and (sentence := missing[name]()):
            is_empty = name == "data" and self.preview is None
            return SectionState(OPEN, sentence, tr("No data yet") if is_empty else "")
        if name == "data" and self.preview is None:
            return SectionState(BUSY, tr("Reading the data…"))
        if name == "model" and self.model is None:
            return SectionState(BUSY, tr("Inspecting the model…"))
        return SectionState(DONE)
