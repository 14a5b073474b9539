"""Owns the New run page: from a task to a started run, every card asking the backend about what was chosen."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.core import parts, schema, wording
from app.core.draft import Draft, read_draft
from app.core.overlay import Overlay
from app.core.source_choice import change_source, data_name
from app.panels.new_run_cards import missing
from app.panels.new_run_cards.cards import Cards
from app.panels.new_run_cards.data_desk import DataDesk
from app.panels.new_run_cards.findings import Findings
from app.panels.new_run_cards.model_parts.choosing import ModelChoosing
from app.panels.new_run_cards.report_dialog import ReportDialog
from app.panels.new_run_cards.starting import Starting
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.icon_label import IconButton
from app.widgets.page_header import PageHeader, page_layout
from backend.contract.catalog import Catalog, Preset, SourceEntry, TaskEntry
from backend.contract.errors import InputError
from backend.contract.queries import Mistake
from backend.contract.version import same_major

NEW = {"version": 1, "name": "run", "data": {"source": "files", "validation": 0.1}}
FIRST_TASK = "text_classification"
OTHER_ROWS = ("data.columns", "data.validation", "data.test", "data.max_rows")
"""Beginnings of the keys whose change leaves the training data's columns as they are."""


class Panel(QWidget):
    """`draft` is the one truth: cards show it and say what a person changes."""

    message = Signal(str, str)
    run_started = Signal(str)
    data_asked = Signal()
    """Somebody wants to see the data as the training will."""
    tokenizer_asked = Signal(str)
    """Somebody wants to look at the tokenizer in this folder."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.catalog: Catalog | None = None
        self.draft = Draft(NEW)
        self.findings = Findings(context.client, context.preferences, self.draft, self)
        self.starting = Starting(context, self.draft, self.findings, self)
        self._preset = Overlay(self.draft)
        self.report: ReportDialog | None = None
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
        self.cards = Cards(self.draft, self.findings)
        self.desk = DataDesk(self._context.client, self.draft, self.findings, self.cards.data, self)
        page = page_layout(self)
        page.addWidget(self.header)
        page.addWidget(self.banner)
        page.addWidget(self.cards, 1)
        self.models = ModelChoosing(self._context, self.draft, self.cards.model, self.findings, self)

    def _connect(self) -> None:
        self.demo.clicked.connect(self.fill_demo)
        self.retry.clicked.connect(self._ask_catalog)
        self.cards.task.chosen.connect(self._on_task_chosen)
        self.cards.task.renamed.connect(self._on_renamed)
        self.cards.task.preset_chosen.connect(self._on_preset)
        for card in (self.cards.data, self.cards.model, self.cards.hardware, self.cards.settings):
            card.changed.connect(self.change)
        self.cards.data.report_asked.connect(self._on_report_asked)
        self.cards.data.tokens_asked.connect(self.data_asked)
        self.desk.changed.connect(self.apply_settings)
        self.desk.task_asked.connect(self.cards.task.chosen)
        self.cards.mistakes_changed.connect(self._show_reason)
        self.cards.model.conversion_agreed.connect(self.findings.convert)
        self.cards.model.trust_agreed.connect(self._on_trust)
        self.cards.model.tokenizer_asked.connect(self.tokenizer_asked)
        self.cards.cost.start_asked.connect(self.start)
        self.starting.changed.connect(self._on_starting)
        self.starting.started.connect(self.run_started)
        self.starting.refused.connect(self._on_refused)
        self.cards.cost.copy_asked.connect(self.copy_command)
        self.findings.changed.connect(self._show_reason)

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
        self.cards.offer(catalog)
        if self._entry() is None and catalog.tasks:
            self._use_task(next((task for task in catalog.tasks if task.name == FIRST_TASK), catalog.tasks[0]))
        self.models.set_catalog(catalog)
        self._show_other_spec()

    def _on_no_catalog(self, mistake: Mistake) -> None:
        self.banner.show_message("error", mistake.message)
        self._show_reason()

    def unfinished(self) -> str:
        """What closing the window would end, as a sentence; empty where nothing."""
        return self.models.unfinished()

    def _source(self) -> SourceEntry | None:
        return self._source_named(self.draft.get("data.source", "files"))

    def _source_named(self, name: str) -> SourceEntry | None:
        return next((source for source in self.catalog.sources if source.name == name), None) if self.catalog else None

    def _entry(self) -> TaskEntry | None:
        return self._task_named(self.draft.get("task.type"))

    def _task_named(self, name: str | None) -> TaskEntry | None:
        return next((task for task in self.catalog.tasks if task.name == name), None) if self.catalog else None

    # The draft

    def change(self, key: str, value: Any) -> None:
        """Take over what a person changed, and ask again about what depends on it."""
        before = self._source()
        if not self.draft.set(key, value):
            return
        if key == "data.source" and (after := self._source()):
            change_source(self.draft, before, after)
        if key == "training.optimizer":
            self.draft.unset("training.optimizer_options")
        self.cards.clear_marks()
        section = key.split(".")[0]
        if section == "data":
            self._on_data_changed(key, value)
        elif section == "model":
            if key == "model.name_or_path":
                self._forget_model()
            self.cards.model.show_draft(self.draft)
            self.findings.model_changed()
        elif key == "hardware.engine":
            self._forget_engines()
            self.findings.engine_changed()
        elif (entry := self._entry()) and parts.decides_parts(entry, key):
            self._set_parts(entry)
            self.findings.data_changed()
        else:
            self.findings.something_changed()

    def _forget_model(self) -> None:
        # Consent and the commit that was agreed to belong to the model before.
        for key in ("model.revision", "model.trust_remote_code"):
            self.draft.unset(key)
        self.cards.settings.show_draft(self.draft)

    def _forget_engines(self) -> None:
        """What other engines alone know of the hardware would be refused by the one that is chosen now."""
        engines = {
            one.name: one.settings.get("properties", {}) for one in (self.catalog.engines if self.catalog else ())
        }
        known = engines.get(str(self.draft.get("hardware.engine", "torch")), {})
        for name in {name for settings in engines.values() for name in settings} - known.keys():
            self.draft.unset(f"hardware.{name}")
        self.cards.hardware.show_draft(self.draft)

    def _on_data_changed(self, key: str, value: Any) -> None:
        if not key.startswith(OTHER_ROWS):
            self.draft.set("data.columns", {})
        if not self._named and (name := data_name(self.draft, self._source())):
            self.draft.set("name", name)
            self.cards.task.show_name(name)
        self.cards.data.show_draft(self.draft)
        self.findings.data_changed()

    def _set_parts(self, entry: TaskEntry) -> None:
        parts.forget_unused(entry, self.draft)
        self.cards.data.set_parts(parts.used_parts(entry, self.draft))

    def _on_renamed(self, name: str) -> None:
        self._named = bool(name)
        self.draft.set("name", name or "run")

    def _on_task_chosen(self, name: str) -> None:
        entry = self._task_named(name)
        if entry is not None and name != self.draft.get("task.type"):
            self._preset.take_off()
            self.cards.task.show_preset(None)
            if name != self.draft.get("task.type"):
                self._use_task(entry)
            self._show_other_spec()

    def _use_task(self, entry: TaskEntry) -> None:
        self.draft.use_task(entry.name, entry.defaults)

    def _on_preset(self, preset: Preset | None) -> None:
        if preset is None:
            self._preset.take_off()
        else:
            entry = self._task_named(preset.spec.get("task", {}).get("type"))
            sources = {source.name: source for source in self.catalog.sources} if self.catalog else {}
            self._preset.lay(preset.spec, entry.defaults if entry else None, sources)
            if not self._named and (name := data_name(self.draft, self._source())):
                self.draft.set("name", name)
        self._show_other_spec()

    def load_spec(self, values: Mapping[str, Any]) -> None:
        """Fill the page with a whole spec."""
        self.draft.replace(dict(values))
        self._preset.forget()
        self.cards.task.show_preset(None)
        self._named = True
        self._show_other_spec()
        self.cards.scroll_to_top()

    def apply_settings(self, settings: Mapping[str, Any]) -> None:
        """Take over what another page found to be right: spec keys and values."""
        for key, value in settings.items():
            self.change(key, value)
        self.cards.settings.show_draft(self.draft)

    def offered(self) -> tuple[dict[str, Any], str]:
        """The draft as a spec, and what it still lacks before its data can be tokenised, as a sentence."""
        return self.draft.values(), self._missing()

    def load_run(self, path: str) -> None:
        """Fill the page with the spec of a run."""
        try:
            self.load_spec(read_draft(Path(path) / "spec.yaml").values())
        except InputError as error:
            self.message.emit("error", f"{error}. Choose another run.")

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
            self._set_parts(entry)
            self.cards.settings.set_task(entry, self.catalog)
        self.cards.show_draft()
        self._show_reason()
        self.findings.everything_changed()

    def _on_trust(self) -> None:
        model = self.findings.model
        if model is not None:
            self._context.preferences.trust(model.name, model.commit)
            self.draft.set("model.trust_remote_code", True)
            # Agreed is this commit and no later one.
            self.change("model.revision", model.commit or self.draft.get("model.revision", "main"))
            self.findings.model_changed()

    # Start

    def _on_report_asked(self) -> None:
        if self.report is None:
            self.report = ReportDialog(self._context.client, self)
        self.report.ask(self.findings.report_arguments(), str(self.draft.get("name", "")))

    def _missing(self) -> str:
        """What is still to be chosen, as a sentence."""
        entry = self._entry()
        if entry is None:
            return "Choose a task." if self.catalog else "The backend has not answered yet."
        if said := missing.in_data(self.draft, self._source()):
            return said
        if not self.draft.get("model.name_or_path"):
            return "Choose a model."
        return missing.in_columns(self.draft, entry, self.findings.preview)

    def _mistaken(self) -> str:
        return self.findings.blocking() or next(iter(self.cards.mistakes()), "")

    def reason(self) -> str:
        """Why the run cannot be started now; empty where it can."""
        return self._missing() or self._mistaken() or self.findings.waiting()

    def _show_reason(self) -> None:
        lacking = self._missing()
        self.findings.readable = self.catalog is not None and not missing.in_data(self.draft, self._source())
        self.findings.plannable = not lacking and not self.cards.mistakes()
        if not self.starting.busy:
            self.cards.cost.show_reason(self.reason(), is_problem=not lacking and bool(self._mistaken()))

    def start(self) -> None:
        """Start the run; the command line's one sentence is shown where it is refused."""
        if not self.reason():
            self.starting.start()

    def _on_starting(self, busy: bool) -> None:
        self.cards.cost.show_starting(busy)
        self._show_reason()

    def _on_refused(self, sentence: str) -> None:
        key = sentence.partition(":")[0]
        field = key if key.replace(".", "").replace("_", "").isalpha() else ""
        said = wording.sentence(sentence, field)
        self.cards.mark(field, said)
        self.findings.refuse(said)
        self.message.emit("error", said)

    def copy_command(self) -> None:
        """Put the command that starts the same run on the clipboard."""
        QGuiApplication.clipboard().setText(self.draft.command(self.findings.consent().options()))
        name = wording.name_of_path(str(self.draft.get("name")))
        self.message.emit("info", f"Copied: the command that starts {name}.")
