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
from app.panels.new_run_cards.findings import Findings
from app.panels.new_run_cards.hardware_card import HardwareCard
from app.panels.new_run_cards.model_card import ModelCard
from app.panels.new_run_cards.settings_card import SettingsCard
from app.panels.new_run_cards.task_card import TaskCard
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.icon_label import IconButton
from app.widgets.page_header import PageHeader, page_layout
from backend.contract.catalog import Catalog, Preset, TaskEntry
from backend.contract.errors import InputError
from backend.contract.queries import DataPreview, DeviceList, Mistake, ModelDescription
from backend.contract.version import same_major

NEW = {"version": 1, "name": "run", "data": {"source": "files", "validation": 0.1}}
FIRST_TASK = "text_classification"


class Panel(QWidget):
    """`draft` is the one truth: cards show it and say what a person changes."""

    message = Signal(str, str)
    run_started = Signal(str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.catalog: Catalog | None = None
        self.draft = Draft(NEW)
        self.findings = Findings(context.client, context.preferences, self.draft, self)
        self._starting = False
        self._named = False
        self._build()
        self._connect()
        self._ask_catalog()
        self._show_reason()

    # Widgets

    def _build(self) -> None:
        self.header = PageHeader("New run", "Choose a task, your data and a model; see what it costs; start.")
        self.demo = IconButton("Try the demo", "bolt")
        self.header.buttons.addWidget(self.demo)
        self.banner = Banner()
        self.retry = IconButton("Try again", "refresh")
        self.banner.buttons.addWidget(self.retry)
        self.task, self.data, self.model_card = TaskCard(), DataCard(), ModelCard()
        self.hardware, self.settings, self.cost = HardwareCard(), SettingsCard(), CostCard()
        self._cards = (self.task, self.data, self.model_card, self.hardware, self.settings)
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
        for stretch, cards in ((5, self._cards[:2]), (4, self._cards[2:])):
            column = QVBoxLayout()
            column.setSpacing(14)
            for card in cards:
                column.addWidget(card)
            column.addStretch(1)
            columns.addLayout(column, stretch)
        self.scroll_area = QScrollArea(widgetResizable=True)
        self.scroll_area.setWidget(inside)
        return self.scroll_area

    def _connect(self) -> None:
        self.demo.clicked.connect(self.fill_demo)
        self.retry.clicked.connect(self._ask_catalog)
        self.task.chosen.connect(self._on_task_chosen)
        self.task.renamed.connect(self._on_renamed)
        self.task.preset_chosen.connect(self._on_preset)
        for card in (self.data, self.model_card, self.hardware, self.settings):
            card.changed.connect(self.change)
        self.settings.mistakes_changed.connect(self._show_reason)
        self.model_card.conversion_agreed.connect(self.findings.convert)
        self.model_card.trust_agreed.connect(self._on_trust)
        self.cost.start_asked.connect(self.start)
        self.cost.copy_asked.connect(self.copy_command)
        found = self.findings
        found.asking.connect(self._on_asking)
        found.emptied.connect(self._on_emptied)
        found.previewed.connect(self._on_preview)
        found.described.connect(self._on_model)
        found.planned.connect(self.cost.show_plan)
        found.devices_found.connect(self._on_devices)
        found.refused.connect(self._on_refusal)
        found.changed.connect(self._show_reason)

    # The catalog

    def _ask_catalog(self) -> None:
        self.banner.clear()
        self._context.client.ask("catalog", {}, self._on_catalog, self._on_no_catalog)
        self.findings.engine_changed()

    def _on_catalog(self, catalog: Catalog) -> None:
        if not same_major(catalog.contract_version):
            said = f"The backend speaks version {catalog.contract_version} and this window another one; update Burnish."
            self._on_no_catalog(Mistake(said))
            return
        self.catalog = catalog
        self.findings.ready = True
        self.draft.defaults = {
            name: schema.defaults(schema.section(catalog.spec, name)) for name in catalog.spec.get("properties", {})
        }
        self.task.set_tasks(catalog.tasks)
        self.task.set_presets(catalog.presets)
        self.data.set_sources(catalog.sources)
        self.hardware.set_engines(catalog.engines)
        if self._entry() is None and catalog.tasks:
            self._use_task(next((task for task in catalog.tasks if task.name == FIRST_TASK), catalog.tasks[0]))
        self._show_other_spec()

    def _on_no_catalog(self, mistake: Mistake) -> None:
        self.banner.show_message("error", mistake.message)
        self._show_reason()

    def _entry(self) -> TaskEntry | None:
        return self._task_named(self.draft.get("task.type"))

    def _task_named(self, name: str | None) -> TaskEntry | None:
        return next((task for task in self.catalog.tasks if task.name == name), None) if self.catalog else None

    # The draft

    def change(self, key: str, value: Any) -> None:
        """Take over what a person changed, and ask again about what depends on it."""
        if not self.draft.set(key, value):
            return
        self.settings.clear_marks()
        section = key.split(".")[0]
        if section == "data":
            self._on_data_changed(key, value)
        elif section == "model":
            self.model_card.show_draft(self.draft)
            self.findings.model_changed()
        elif key == "hardware.engine":
            self.findings.engine_changed()
        else:
            self.findings.something_changed()

    def _on_data_changed(self, key: str, value: Any) -> None:
        if key in ("data.train", "data.source"):
            self.draft.set("data.columns", {})
        if key == "data.train" and isinstance(value, str) and not self._named:
            self.draft.set("name", Path(value).stem or "run")
            self.task.show_name(str(self.draft.get("name")))
        self.data.show_draft(self.draft)
        self.findings.data_changed()

    def _on_renamed(self, name: str) -> None:
        self._named = bool(name)
        self.draft.set("name", name or "run")

    def _on_task_chosen(self, name: str) -> None:
        entry = self._task_named(name)
        if entry is not None and name != self.draft.get("task.type"):
            self._use_task(entry)
            self._show_other_spec()

    def _use_task(self, entry: TaskEntry) -> None:
        self.draft.set("task", {"type": entry.name})
        self.draft.set("data.columns", {})
        self.draft.merge(entry.defaults)

    def _on_preset(self, preset: Preset) -> None:
        self.draft.merge(preset.spec)
        self._show_other_spec()

    def load_spec(self, values: Mapping[str, Any]) -> None:
        """Fill the page with a whole spec."""
        self.draft.replace(dict(values))
        self._named = True
        self._show_other_spec()
        self.scroll_area.verticalScrollBar().setValue(0)

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

    def _show_other_spec(self) -> None:
        entry = self._entry()
        if entry is not None and self.catalog is not None:
            self.data.set_task(entry)
            self.settings.set_task(entry, self.catalog)
        for card in self._cards:
            card.show_draft(self.draft)
        self._show_reason()
        self.findings.everything_changed()

    # What was found out

    def _on_asking(self, topic: str, progress: Any) -> None:
        if topic == "data":
            self.data.show_reading()
        elif topic == "model":
            self.model_card.show_reading(progress)
        elif topic == "plan":
            self.cost.clear("Working out what this will cost…")

    def _on_emptied(self, topic: str) -> None:
        if topic == "data":
            self.data.show_nothing()
        elif topic == "model":
            self.model_card.show_nothing()
        elif topic == "plan":
            self.cost.clear("")

    def _on_preview(self, preview: DataPreview) -> None:
        self.data.show_preview(preview, self.draft.get("data.columns") or {})

    def _on_model(self, model: ModelDescription) -> None:
        self.model_card.show_description(model, self.findings.trusts_model())

    def _on_devices(self, found: DeviceList) -> None:
        self.hardware.set_devices(found)
        self.hardware.show_draft(self.draft)

    def _on_refusal(self, topic: str, mistake: Mistake) -> None:
        if topic == "data":
            self.data.show_problem(mistake.message)
        elif topic == "model":
            self.model_card.show_problem(mistake.message)
        elif topic == "devices":
            self.hardware.set_devices(DeviceList([], mistake.message))
        elif topic == "plan":
            self.cost.clear("")
            self._mark(mistake.field or "", mistake.message)

    def _mark(self, field: str, sentence: str) -> None:
        if field:
            any(card.mark(field, sentence) for card in (self.data, self.model_card, self.settings))

    def _on_trust(self) -> None:
        model = self.findings.model
        if model is not None:
            self._context.preferences.trust(model.name, model.commit)
            self.draft.set("model.trust_remote_code", True)
            # Agreed is this commit and no later one.
            self.change("model.revision", model.commit or self.draft.get("model.revision", "main"))
            self.findings.model_changed()

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
        if self.findings.preview is None:
            return ""
        without = [part for part in entry.columns if part.required and not self.draft.get(f"data.columns.{part.name}")]
        return f"Choose the column for: {without[0].title.lower()}." if without else ""

    def reason(self) -> str:
        """Why the run cannot be started now; empty where it can."""
        return self._missing() or self.findings.blocking() or next(iter(self.settings.mistakes()), "")

    def _show_reason(self) -> None:
        missing = self._missing()
        self.findings.plannable = not missing and not self.settings.mistakes()
        if not self._starting:
            self.cost.show_reason(self.reason(), is_problem=not missing)

    def start(self) -> None:
        """Start the run; the command line's one sentence is shown where it is refused."""
        if self.reason() or self._starting:
            return
        self._starting = True
        self.cost.show_starting(True)
        trusts = bool(self.draft.get("model.trust_remote_code")) and self.findings.trusts_model()
        self._context.jobs.start(self.draft.values(), self._on_started, self._on_refused, trusts)

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
        field = sentence.partition(":")[0]
        self._mark(field if field.replace(".", "").replace("_", "").isalpha() else "", sentence)
        self.findings.refuse(sentence)
        self.message.emit("error", sentence)

    def copy_command(self) -> None:
        """Put the command that starts the same run on the clipboard."""
        QGuiApplication.clipboard().setText(self.draft.command())
        self.message.emit(
            "info", f"Copied: the command that starts {wording.name_of_path(str(self.draft.get('name')))}."
        )
