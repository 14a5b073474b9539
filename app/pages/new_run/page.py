"""Owns the New run page: from a task to a started run, every card asking the backend about what was chosen."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget

from app.core import formatting
from app.core.actions import Action
from app.core.backend_sentences import told
from app.core.draft import missing
from app.core.draft.draft import Draft
from app.core.draft.draft_file import is_spec
from app.core.draft.run_names import copy_of
from app.core.i18n import tr
from app.pages.new_run.card_states import card_states
from app.pages.new_run.cards import TITLES, Cards
from app.pages.new_run.changes import Changes
from app.pages.new_run.data.data_desk import DataDesk
from app.pages.new_run.data.report_dialog import ReportDialog
from app.pages.new_run.draft_checks import DraftChecks
from app.pages.new_run.draft_controller import DraftController
from app.pages.new_run.filing import Filing
from app.pages.new_run.following import Following
from app.pages.new_run.header import Header, JumpBar
from app.pages.new_run.measuring import Measuring
from app.pages.new_run.model.model_controller import ModelController
from app.pages.new_run.presets import PresetController
from app.pages.new_run.settings_search import SettingsSearch
from app.pages.new_run.start_blockers import Reasons
from app.pages.new_run.start_controller import StartController
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.commands import button_action
from app.widgets.forms.path_field import dropped_paths
from app.widgets.forms.schema_form import SchemaForm
from app.widgets.icon_label import IconButton
from app.widgets.page_header import scrolling_layout
from backend.contract.catalog import Catalog
from backend.contract.errors import InputError
from backend.contract.rpc.queries import Mistake, ModelDescription
from backend.contract.version import same_major


class Page(QWidget):
    """The draft is the one truth: cards show it and say what a person changes."""

    message = Signal(str, str)
    run_started = Signal(str)
    data_asked = Signal()
    """Somebody wants to see the data as the training will."""
    tokenizer_asked = Signal(str)
    """Somebody wants to look at the tokenizer in this folder."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.editing = DraftController(self)
        self.draft, self.undoing = self.editing.draft, self.editing.undoing
        self.findings = DraftChecks(context.client, context.preferences, self.draft, self)
        self.starting = StartController(context, self.draft, self.findings, self)
        self.filing = Filing(self.draft, self)
        self.report: ReportDialog | None = None
        self._build()
        self._connect()
        self._ask_catalog()
        self._show_reason()

    @property
    def catalog(self) -> Catalog | None:
        """What there is to choose from, once the backend has said."""
        return self.editing.catalog

    # Widgets

    def _build(self) -> None:
        self.header = Header(self.undoing, self)
        self.demo = self.header.demo
        self.banner = Banner(self)
        self.retry = IconButton(tr("Try again"), "refresh")
        self.banner.buttons.addWidget(self.retry)
        self.cards = Cards(self.draft, self.findings, self)
        self.reasons = Reasons(self.editing, self.findings, self.cards)
        self.measuring = Measuring(self._context.client, self.draft, self.findings, self.cards.cost, self)
        self.desk = DataDesk(self._context.client, self.draft, self.findings, self.cards.data, self)
        self.bar = JumpBar(TITLES, self)
        self.seeking = SettingsSearch(self.bar, self.cards, self.editing.settings, self)
        self.presets = PresetController(self.editing, self.cards.task, self)
        self.changes = Changes(self.editing, self.seeking, self.cards.settings, self)
        self.following = Following(self.editing, self.findings, self.cards, self.presets, self.changes, self)
        page = scrolling_layout(self, self.header, self.bar, self.banner)
        page.addWidget(self.cards, 1)
        self.models = ModelController(self._context, self.draft, self.cards.model, self.findings, self)
        self.setAcceptDrops(True)

    def _connect(self) -> None:
        self.demo.clicked.connect(self.fill_demo)
        self.header.open.clicked.connect(self.open_spec)
        self.header.save.clicked.connect(self.save_spec)
        self.retry.clicked.connect(self._ask_catalog)
        self.bar.jumped.connect(self.cards.jump)
        self.cards.task.chosen.connect(self.editing.choose_task)
        self.cards.task.renamed.connect(self.editing.rename)
        for card in (self.cards.data, self.cards.model, self.cards.hardware, self.cards.settings):
            card.changed.connect(self.change)
        self.cards.hardware.look_again.connect(self.findings.look_again)
        self.cards.data.report_asked.connect(self._on_report_asked)
        self.cards.data.tokens_asked.connect(self.data_asked)
        self.desk.changed.connect(lambda values: self.editing.apply(values, tr("The choice of data")))
        self.desk.task_asked.connect(self.editing.choose_task)
        self.cards.mistakes_changed.connect(self._show_reason)
        self.cards.model.conversion_agreed.connect(self.findings.convert)
        self.cards.model.trust_agreed.connect(self.findings.trust)
        self.findings.trusted.connect(self._on_trusted)
        self.cards.model.tokenizer_asked.connect(self.tokenizer_asked)
        self.cards.cost.start_asked.connect(self.start)
        self.cards.cost.queue_asked.connect(lambda: self.start(queue=True))
        self.starting.others_changed.connect(self.cards.cost.show_others)
        self.cards.cost.copy_asked.connect(self.copy_command)
        self.cards.cost.remedy_chosen.connect(lambda remedy: self.editing.apply(remedy.changes, remedy.title))
        self.cards.cost.measure.start_asked.connect(self.measure)
        self.measuring.lacking.connect(self._show_reason)
        self.measuring.failed.connect(lambda said: self.message.emit("error", said))
        self.starting.changed.connect(self._on_starting)
        self.starting.started.connect(self.run_started)
        self.starting.refused.connect(self._on_refused)
        self.findings.changed.connect(self.undoing.amend)
        self.findings.changed.connect(self._show_reason)
        self.following.shown.connect(self._show_reason)
        self.filing.opened.connect(
            lambda draft: self._load(draft, tr("Opening {get}", get=draft.get("name", tr("a spec"))), named=True)
        )
        for part in (self.filing, self.presets, self.starting):
            part.message.connect(self.message)
        self.starting.look_at_others()

    def offered_actions(self) -> list[Action]:
        """For the palette and the keyboard."""
        history = self.undoing
        return [
            Action(tr("Undo"), history.undo, "Ctrl+Z", "undo", words="back"),
            Action(tr("Redo"), history.redo, "Ctrl+Shift+Z; Ctrl+Y", "redo", words=tr("again")),
            Action(tr("Find a setting"), self.bar.ask, "Ctrl+F", "search"),
            Action(tr("Open a spec"), self.open_spec, "Ctrl+O", "folder", words=tr("yaml load file")),
            Action(tr("Save as a spec"), self.save_spec, "Ctrl+S", "save", words=tr("yaml file")),
            Action(tr("Show the changed settings"), self.changes.look, "", "settings", words=tr("defaults reset")),
            Action(tr("Look through the presets"), self.presets.look, "", "table"),
            Action(tr("Save the settings as a preset"), self.presets.ask_save, "", "save"),
            Action(
                tr("Measure the time"),
                self.measure,
                "",
                "gauge",
                possible=lambda: not self.reason() and not self.measuring.busy,
            ),
            Action(tr("Copy the command"), self.copy_command, "", "copy", words="terminal"),
            Action(tr("Try the demo"), self.fill_demo, "", "bolt"),
            Action(
                tr("Copy the command to queue it"), lambda: self.copy_command(queue=True), "", "copy", words="terminal"
            ),
            Action(tr("Start training"), self.start, "Ctrl+Return", "play", possible=lambda: not self.reason()),
            button_action(self.cards.cost.queue, tr("Add the run to the queue"), "Ctrl+Shift+Return", "plus"),
            *(
                Action(
                    one.title, lambda key=key: self.seeking.show(key), icon="settings", kind=tr("Setting"), words=key
                )
                for key, one in self.editing.settings().items()
            ),
        ]

    # The catalog

    def _ask_catalog(self) -> None:
        self.banner.clear()
        self._context.client.ask("catalog", {}, self._on_catalog, self._on_no_catalog)
        self.findings.engine_changed()

    def _on_catalog(self, catalog: Catalog) -> None:
        if not same_major(catalog.contract_version):
            said = tr(
                "The backend speaks version {contract_version} and this window another one; update Burnish.",
                contract_version=catalog.contract_version,
            )
            self._on_no_catalog(Mistake(said))
            return
        self.findings.ready = True
        self.editing.take_catalog(catalog)
        self.cards.offer(catalog)
        self.models.set_catalog(catalog)
        self.presets.offer()
        self.following.show_all()

    def _on_no_catalog(self, mistake: Mistake) -> None:
        self.banner.show_message("error", mistake.message)
        self._show_reason()

    def unfinished(self) -> str:
        """What closing the window would end, as a sentence; empty where nothing."""
        return self.models.unfinished()

    def unkept(self) -> str:
        """What is gone when the window is opened again, as a sentence; empty where nothing was changed, or all is a run."""
        if not self.undoing.history.undo_words or self.starting.is_all_started:
            return ""
        return tr("What you have chosen on New run is not kept. Save it as a spec first (Ctrl+S) if you need it.")

    # The draft

    def change(self, key: str, value: Any) -> None:
        """Take over what a person changed, and ask again about what depends on it."""
        self.editing.change(key, value)

    def load_spec(self, values: Mapping[str, Any], words: str = tr("Another spec")) -> None:
        """Fill the page with a whole spec."""
        self._load(Draft(dict(values)), words)

    def _load(self, draft: Draft, words: str, *, named: bool = False) -> None:
        self.editing.load(draft, words, named=named)
        self.cards.scroll_to_top()

    def apply_settings(self, settings: Mapping[str, Any]) -> None:
        """Take over what another page found to be right: spec keys and values."""
        self.editing.apply(settings, tr("What another page advised"))

    def offered(self) -> tuple[dict[str, Any], str]:
        """The draft as a spec, and what it still lacks before its data can be tokenised, as a sentence."""
        return self.draft.values(), self.reasons.missing()

    def load_run(self, path: str) -> None:
        """Fill the page with the spec of a run."""
        try:
            copied = copy_of(Path(path), self._context.library.runs)
            self.load_spec(copied, tr("Copy of {path}", path=formatting.name_of_path(path)))
        except InputError as error:
            self.message.emit("error", tr("{error}. Choose another run.", error=told(str(error))))

    def fill_demo(self) -> None:
        """Fill the page with the embedded demo."""
        self.demo.setEnabled(False)
        self._context.client.ask("demo_spec", {}, self._on_demo, self._on_no_demo)

    def _on_demo(self, answer: dict[str, Any]) -> None:
        self.demo.setEnabled(True)
        self.load_spec(answer["spec"], tr("The demo"))

    def _on_no_demo(self, mistake: Mistake) -> None:
        self.demo.setEnabled(True)
        self.message.emit("error", mistake.message)

    def _on_trusted(self, model: ModelDescription) -> None:
        self.draft.set("model.trust_remote_code", True)
        # Agreed is this commit and no later one.
        self.change("model.revision", model.commit or self.draft.get("model.revision", "main"))
        self.findings.model_changed()

    # Files

    def open_spec(self) -> None:
        """Let a person choose a spec to go on with."""
        if self.catalog is not None:
            self.filing.ask_open(self.catalog)

    def save_spec(self) -> None:
        """Let a person choose where to keep the draft."""
        self.flush()
        self.filing.ask_save()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """A spec may be dropped anywhere on the page; data and models have their cards."""
        if self._dropped_spec(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Go on with the spec."""
        path = self._dropped_spec(event)
        if path and self.catalog is not None:
            event.acceptProposedAction()
            self.filing.open(Path(path), self.catalog)

    def _dropped_spec(self, event: QDropEvent) -> str:
        return next((path for path in dropped_paths(event, specs=True) if is_spec(path)), "")

    def flush(self) -> None:
        """Take over what was typed this moment."""
        for form in self.findChildren(SchemaForm):
            form.flush()

    # Start

    def _on_report_asked(self) -> None:
        if self.report is None:
            self.report = ReportDialog(self._context.client, self)
        self.report.ask(self.findings.report_arguments(), str(self.draft.get("name", "")))

    def reason(self) -> str:
        """Why the run cannot be started now; empty where it can."""
        return self.reasons.first()

    def _show_reason(self) -> None:
        self.findings.readable = self.catalog is not None and not missing.in_data(self.draft, self.editing.source())
        self.findings.set_plannable(not self.reasons.missing() and not self.cards.mistakes())
        self.bar.show_states(card_states(self.editing, self.findings, self.cards))
        if not self.starting.busy:
            self.cards.cost.show_reason(self.reason(), is_problem=self.reasons.is_problem())

    def start(self, *, queue: bool = False) -> None:
        """Start the run, or queue it; the command line's one sentence is shown where it is refused."""
        self.flush()
        if not self.reason():
            self.starting.start(queue=queue)

    def measure(self) -> None:
        """Find out how long the run will take."""
        self.flush()
        if not self.reason() and self.findings.plan is not None:
            self.measuring.start()

    def _on_starting(self, busy: bool) -> None:
        if busy:
            self.measuring.stop()  # it would take from the run what the run is to have
        self.cards.cost.show_starting(busy)
        self._show_reason()

    def _on_refused(self, sentence: str) -> None:
        key = sentence.partition(":")[0]
        field = key if key.replace(".", "").replace("_", "").isalpha() else ""
        said = formatting.sentence(sentence, field)
        self.cards.mark(field, said)
        self.findings.refuse(said)
        self.message.emit("error", said)

    def copy_command(self, *, queue: bool = False) -> None:
        """Put the command that starts the same run, or queues it, on the clipboard."""
        self.flush()
        self.starting.copy_command(queue=queue)
