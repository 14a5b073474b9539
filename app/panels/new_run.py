"""Owns the New run page: from a task to a started run, every card asking the backend about what was chosen."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.core import schema, wording
from app.core.draft import Draft, read_draft
from app.panels.new_run_cards.cost_card import CostCard
from app.panels.new_run_cards.data_card import DataCard
from app.panels.new_run_cards.hardware_card import HardwareCard
from app.panels.new_run_cards.inquiry import Inquiry
from app.panels.new_run_cards.model_card import ModelCard
from app.panels.new_run_cards.settings_card import SettingsCard
from app.panels.new_run_cards.task_card import TaskCard
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.icon_label import IconButton
from app.widgets.page_header import PageHeader, page_layout
from backend.contract.catalog import Catalog, Preset, TaskEntry
from backend.contract.errors import InputError
from backend.contract.queries import DataPreview, DeviceList, Mistake, ModelDescription, RunPlan
from backend.contract.version import same_major

NEW = {"version": 1, "name": "run", "data": {"source": "files", "validation": 0.1}}


class Panel(QWidget):
    """`draft` is the one truth: cards show it and say what a person changes."""

    message = Signal(str, str)
    run_started = Signal(str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.catalog: Catalog | None = None
        self.draft = Draft(NEW)
        self.preview: DataPreview | None = None
        self.model: ModelDescription | None = None
        self.plan: RunPlan | None = None
        self._problems: dict[str, str] = {}
        self._starting = False
        self._named = False
        self._build()
        self._make_inquiries()
        self._connect()
        self._inquiries["catalog"].ask_now()
        self._inquiries["devices"].ask_soon()
        self._show_reason()

    # Widgets

    def _build(self) -> None:
        self.header = PageHeader("New run", "Choose a task, your data and a model; see what it costs; start.")
        self.demo = IconButton("Try the demo", "bolt")
        self.header.actions.addWidget(self.demo)
        self.banner = Banner()
        self.retry = IconButton("Try again", "refresh")
        self.banner.actions.addWidget(self.retry)
        self.task, self.data, self.model_card = TaskCard(), DataCard(), ModelCard()
        self.hardware, self.settings, self.cost = HardwareCard(), SettingsCard(), CostCard()
        self.model_card.set_recent(self._context.preferences.recent_models)
        page = page_layout(self)
        page.addWidget(self.header)
        page.addWidget(self.banner)
        page.addWidget(self._scrolled(), 1)
        page.addWidget(self.cost)

    def _scrolled(self) -> QScrollArea:
        inside = QWidget()
        inside.setObjectName("scrolled")
        columns = QHBoxLayout(inside)
        columns.setContentsMargins(0, 0, 0, 0)
        columns.setSpacing(14)
        for stretch, cards in ((3, (self.task, self.data, self.model_card)), (2, (self.hardware, self.settings))):
            column = QVBoxLayout()
            column.setSpacing(14)
            for card in cards:
                column.addWidget(card)
            column.addStretch(1)
            columns.addLayout(column, stretch)
        area = QScrollArea(widgetResizable=True)
        area.setWidget(inside)
        self.scroll = area
        return area

    def _make_inquiries(self) -> None:
        def made(query: str, arguments: Any, on_answer: Any, on_error: Any, on_progress: Any = None) -> Inquiry:
            return Inquiry(self._context.client, query, arguments, on_answer, on_error, on_progress, parent=self)

        self._inquiries = {
            "catalog": made("catalog", dict, self._on_catalog, self._on_no_catalog),
            "devices": made("devices", self._device_arguments, self._on_devices, self._on_no_devices),
            "preview_data": made("preview_data", self._data_arguments, self._on_preview, self._on_no_preview),
            "describe_model": made(
                "describe_model", self._model_arguments, self._on_model, self._on_no_model, self.model_card.show_reading
            ),
            "convert_model": made(
                "convert_model",
                self._convert_arguments,
                self._on_model,
                self._on_no_model,
                self.model_card.show_reading,
            ),
            "plan": made("plan", self._plan_arguments, self._on_plan, self._on_no_plan),
        }

    def _connect(self) -> None:
        self.demo.clicked.connect(self.fill_demo)
        self.retry.clicked.connect(self._on_retry)
        self.task.chosen.connect(self._on_task_chosen)
        self.task.renamed.connect(self._on_renamed)
        self.task.preset_chosen.connect(self._on_preset)
        for card in (self.data, self.model_card, self.hardware, self.settings):
            card.changed.connect(self.change)
        self.settings.mistakes_changed.connect(self._show_reason)
        self.model_card.conversion_agreed.connect(self._inquiries["convert_model"].ask_now)
        self.model_card.trust_agreed.connect(self._on_trust)
        self.cost.start_asked.connect(self.start)
        self.cost.copy_asked.connect(self.copy_command)

    # The catalog

    def _on_catalog(self, catalog: Catalog) -> None:
        if not same_major(catalog.contract_version):
            self._on_no_catalog(
                Mistake(f"The backend speaks version {catalog.contract_version}, this window another; update Burnish")
            )
            return
        self.catalog = catalog
        self.banner.clear()
        self.draft.defaults = {
            name: schema.defaults(schema.section(catalog.spec, name)) for name in catalog.spec.get("properties", {})
        }
        self.task.set_tasks(catalog.tasks)
        self.task.set_presets(catalog.presets)
        self.data.set_sources(catalog.sources)
        self.hardware.set_engines(catalog.engines)
        if self._entry() is None and catalog.tasks:
            preferred = next((task for task in catalog.tasks if task.name == "text_classification"), catalog.tasks[0])
            self._use_task(preferred)
        self._show_draft(new_task=True)
        self._ask_everything()

    def _on_no_catalog(self, mistake: Mistake) -> None:
        self.banner.show_message("error", mistake.message)
        self._show_reason()

    def _on_retry(self) -> None:
        self.banner.clear()
        self._inquiries["catalog"].ask_now()

    def _entry(self) -> TaskEntry | None:
        chosen = self.draft.get("task.type")
        return next((task for task in self.catalog.tasks if task.name == chosen), None) if self.catalog else None

    # The draft

    def change(self, key: str, value: Any) -> None:
        """Take over what a person changed, and ask again about what depends on it."""
        if not self.draft.set(key, value):
            return
        self.settings.clear_marks()
        section = key.split(".")[0]
        if section == "data":
            self._on_data_changed(key, value)
        if section == "model":
            self.model_card.show_draft(self.draft)
            self._inquiries["describe_model"].ask_soon()
        if key == "hardware.engine":
            self._inquiries["devices"].ask_soon()
        self._plan_soon()

    def _on_data_changed(self, key: str, value: Any) -> None:
        if key in ("data.train", "data.source"):
            self.draft.set("data.columns", {})
        if key == "data.train" and isinstance(value, str) and not self._named:
            self.draft.set("name", Path(value).stem or "run")
            self.task.show_name(str(self.draft.get("name")))
        self.data.show_draft(self.draft)
        self._inquiries["preview_data"].ask_soon()

    def _on_renamed(self, name: str) -> None:
        self._named = bool(name)
        self.draft.set("name", name or "run")

    def _on_task_chosen(self, name: str) -> None:
        entry = next((task for task in self.catalog.tasks if task.name == name), None) if self.catalog else None
        if entry is not None and entry.name != self.draft.get("task.type"):
            self._use_task(entry)
            self._show_draft(new_task=True)
            self._ask_everything()

    def _use_task(self, entry: TaskEntry) -> None:
        self.draft.set("task", {"type": entry.name})
        self.draft.set("data.columns", {})
        self.draft.merge(entry.defaults)

    def _on_preset(self, preset: Preset) -> None:
        self.draft.merge(preset.spec)
        self._show_draft(new_task=True)
        self._ask_everything()

    def load_spec(self, values: Mapping[str, Any]) -> None:
        """Fill the page with a whole spec."""
        self.draft.replace(dict(values))
        self._named = True
        self._show_draft(new_task=True)
        self._ask_everything()
        self.scroll.verticalScrollBar().setValue(0)

    def load_run(self, path: str) -> None:
        """Fill the page with the spec of a run."""
        try:
            self.load_spec(read_draft(Path(path) / "spec.yaml").values())
        except InputError as error:
            self.message.emit("error", str(error))

    def fill_demo(self) -> None:
        """Fill the page with the embedded demo."""
        self.demo.setEnabled(False)
        self._context.client.ask("demo_spec", {}, self._on_demo, self._on_no_demo)

    def _on_demo(self, answer: dict[str, Any]) -> None:
        self.demo.setEnabled(True)
        self.load_spec(answer["spec"])

    def _on_no_demo(self, mistake: Mistake) -> None:
        self.demo.setEnabled(True)
        self.message.emit("error", mistake.message)

    def _show_draft(self, new_task: bool = False) -> None:
        entry = self._entry()
        if new_task and entry is not None and self.catalog is not None:
            self.data.set_task(entry)
            self.settings.set_task(entry, self.catalog)
        for card in (self.task, self.data, self.model_card, self.hardware, self.settings):
            card.show_draft(self.draft)

    # Questions about what was chosen

    def _ask_everything(self) -> None:
        for query in ("preview_data", "describe_model", "plan"):
            self._inquiries[query].ask_now()
        self._show_reason()

    def _plan_soon(self) -> None:
        self.plan = None
        self._problems.pop("plan", None)
        self._inquiries["plan"].ask_soon()
        self._show_reason()

    def _device_arguments(self) -> dict[str, Any]:
        return {"engine": self.draft.get("hardware.engine", "torch")}

    def _data_arguments(self) -> dict[str, Any] | None:
        self._problems.pop("data", None)
        self.preview = None
        if self.catalog is None or not (self.draft.get("data.train") or self.draft.get("data.source") != "files"):
            self.data.show_nothing()
            return None
        self.data.show_reading()
        return {"task": self.draft.get("task"), "data": self.draft.get("data")}

    def _model_arguments(self) -> dict[str, Any] | None:
        self._problems.pop("model", None)
        self.model = None
        if self.catalog is None or not self.draft.get("model.name_or_path"):
            self.model_card.show_nothing()
            return None
        self.model_card.show_reading()
        return {
            "name_or_path": self.draft.get("model.name_or_path"),
            "revision": self.draft.get("model.revision", "main"),
            "task": self.draft.get("task.type"),
        }

    def _convert_arguments(self) -> dict[str, Any] | None:
        arguments = self._model_arguments()
        return {**arguments, "consent": True} if arguments else None

    def _plan_arguments(self) -> dict[str, Any] | None:
        if self._missing() or self.settings.mistakes():
            self.cost.clear("")
            return None
        self.cost.clear("Working out what this will cost…")
        return {"spec": self.draft.values()}

    def _on_devices(self, found: DeviceList) -> None:
        self.hardware.set_devices(found)
        self.hardware.show_draft(self.draft)

    def _on_no_devices(self, mistake: Mistake) -> None:
        self.hardware.set_devices(DeviceList([], mistake.message))

    def _on_preview(self, preview: DataPreview) -> None:
        self.preview = preview
        guessed = {
            part: column
            for part, column in preview.guessed_columns.items()
            if not self.draft.get(f"data.columns.{part}")
        }
        for part, column in guessed.items():
            self.draft.set(f"data.columns.{part}", column)
        self.data.show_preview(preview, self.draft.get("data.columns") or {})
        self._plan_soon()

    def _on_no_preview(self, mistake: Mistake) -> None:
        self._problems["data"] = mistake.message
        self.data.show_problem(mistake.message)
        self._show_reason()

    def _on_model(self, model: ModelDescription) -> None:
        self.model = model
        trusted = self._context.preferences.trusts(model.name, model.commit)
        self.model_card.show_description(model, trusted)
        if model.problem:
            self._problems["model"] = model.problem
        elif model.needs_conversion:
            self._problems["model"] = "The model's weights must be converted once; the card of the model says how."
        elif model.needs_remote_code and not trusted:
            self._problems["model"] = "The model wants to run code of its own, to which you have not agreed."
        self._plan_soon()

    def _on_no_model(self, mistake: Mistake) -> None:
        self._problems["model"] = mistake.message
        self.model_card.show_problem(mistake.message)
        self._show_reason()

    def _on_trust(self) -> None:
        if self.model is not None:
            self._context.preferences.trust(self.model.name, self.model.commit)
            self.draft.set("model.trust_remote_code", True)
            self.draft.set("model.revision", self.model.commit or self.draft.get("model.revision", "main"))
            self._inquiries["describe_model"].ask_now()

    def _on_plan(self, plan: RunPlan) -> None:
        self.plan = plan
        self.cost.show_plan(plan)
        if plan.problems:
            self._problems["plan"] = plan.problems[0]
        self._show_reason()

    def _on_no_plan(self, mistake: Mistake) -> None:
        self._problems["plan"] = mistake.message
        self.cost.clear("")
        if mistake.field:
            self._mark(mistake.field, mistake.message)
        self._show_reason()

    def _mark(self, field: str, sentence: str) -> None:
        any(card.mark(field, sentence) for card in (self.data, self.model_card, self.settings))

    # Start

    def _missing(self) -> str:
        """What is still to be chosen, as a sentence."""
        entry = self._entry()
        if entry is None:
            return "Choose a task." if self.catalog else "The backend has not answered yet."
        if not self.draft.get("data.train") and self.draft.get("data.source", "files") == "files":
            return "Choose the training data, or try the demo."
        if not self.draft.get("model.name_or_path"):
            return "Choose a model."
        return next(
            (
                f"Choose the column for: {part.title.lower()}."
                for part in entry.columns
                if part.required and self.preview is not None and not self.draft.get(f"data.columns.{part.name}")
            ),
            "",
        )

    def reason(self) -> str:
        """Why the run cannot be started now; empty where it can."""
        mistakes = self.settings.mistakes()
        known = [self._problems[topic] for topic in ("data", "model", "plan") if topic in self._problems]
        return self._missing() or next(iter([*known, *mistakes]), "")

    def _show_reason(self) -> None:
        if not self._starting:
            self.cost.show_reason(self.reason())

    def start(self) -> None:
        """Start the run; the command line's one sentence is shown where it is refused."""
        if self.reason() or self._starting:
            return
        self._starting = True
        self.cost.show_starting(True)
        trusts = bool(self.draft.get("model.trust_remote_code")) and self._trusts()
        self._context.jobs.start(self.draft.values(), self._on_started, self._on_refused, trusts)

    def _trusts(self) -> bool:
        return self.model is not None and self._context.preferences.trusts(self.model.name, self.model.commit)

    def _on_started(self, path: str) -> None:
        self._starting = False
        self.cost.show_starting(False)
        self._show_reason()
        self._context.preferences.remember_model(str(self.draft.get("model.name_or_path")))
        if isinstance(self.draft.get("data.train"), str):
            self._context.preferences.remember_data(self.draft.get("data.train"))
        self.model_card.set_recent(self._context.preferences.recent_models)
        self._context.library_watcher.look_now()
        self.run_started.emit(path)

    def _on_refused(self, sentence: str) -> None:
        self._starting = False
        self.cost.show_starting(False)
        self._problems["plan"] = sentence
        field = sentence.partition(":")[0]
        if field.replace(".", "").replace("_", "").isalpha():
            self._mark(field, sentence)
        self._show_reason()
        self.message.emit("error", sentence)

    def copy_command(self) -> None:
        """Put the command that starts the same run on the clipboard."""
        QGuiApplication.clipboard().setText(self.draft.command())
        self.message.emit(
            "info", f"Copied: the command that starts {wording.name_of_path(str(self.draft.get('name')))}."
        )
