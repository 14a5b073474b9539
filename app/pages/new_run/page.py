"""The New run page: from a task to a started run. The sections show the draft and what the backend says about it."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QHideEvent
from PySide6.QtWidgets import QWidget

from app.core import formatting
from app.core.actions import Action
from app.core.draft.draft import Draft, Values
from app.core.draft.draft_file import is_spec
from app.core.draft.kept_draft import NAME
from app.core.draft.search_space import search_around
from app.core.i18n import tr
from app.core.page_actions import NEW_RUN, NEW_RUN_SECTIONS
from app.core.preferences import default_path
from app.pages.new_run.changes_dialog import ChangesDialog
from app.pages.new_run.data.data_controller import DataController
from app.pages.new_run.data.report_dialog import ReportDialog
from app.pages.new_run.draft_checks import DraftChecks
from app.pages.new_run.draft_controller import DraftController
from app.pages.new_run.header import Header, UndoKeys
from app.pages.new_run.model.model_controller import ModelController
from app.pages.new_run.presets import PresetController
from app.pages.new_run.sections import Sections
from app.pages.new_run.settings_search import SettingsSearch
from app.pages.new_run.start_bar import StartBar
from app.pages.new_run.start_controller import StartController
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.commands import button_action
from app.widgets.forms.path_field import dropped_paths
from app.widgets.forms.schema_form import SchemaForm
from app.widgets.icon_label import IconButton
from app.widgets.page_layout import page_layout
from backend.contract.catalog import Catalog
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.versions import same_major


class Page(QWidget):
    """A section's change goes to `controller`; the result goes to the sections, and to `checks`, which query the backend."""

    message = Signal(str, str)
    run_started = Signal(str, bool)
    """A run, and whether the draft has been left as it was since the button was pressed."""
    data_requested = Signal()
    """Somebody wants to see the data as the training will."""
    tokenizer_requested = Signal(str)
    """Somebody wants to look at the tokenizer in this folder."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        preferences = context.preferences.path or default_path()
        self.controller = DraftController(self, preferences.with_name(NAME))
        self.draft = self.controller.draft
        self.checks = DraftChecks(context.client, self.controller, self)
        self.report: ReportDialog | None = None
        self.changes: ChangesDialog | None = None
        self._build()
        self.starter = StartController(context, self.draft, self.checks, self, lambda: self.start_bar.shortage)
        self._connect()
        self._ask_catalog()
        self._show_blocker()

    @property
    def catalog(self) -> Catalog | None:
        """The choices, once the backend has sent them."""
        return self.controller.catalog

    # Widgets

    def _build(self) -> None:
        self.header = Header(self.controller, self)
        self.demo = self.header.demo
        self.banner = Banner(self)
        self.retry = IconButton(tr("Retry"), "refresh")
        self.banner.buttons.addWidget(self.retry)
        self.sections = Sections(self.controller, self.checks, self)
        self.start_bar = StartBar(self)
        self.bars = (self.start_bar,)
        self.checks.field_mistakes = self.sections.mistakes
        self.data_controller = DataController(
            self._context.client, self.controller, self.checks, self.sections.data, self
        )
        self.search_bar = self.header.search
        self.search = SettingsSearch(self.search_bar, self.sections, self.controller.settings, self)
        self.presets = PresetController(self.controller, self.sections.task, self)
        page = page_layout(self)
        for part, stretch in ((self.header, 0), (self.banner, 0), (self.sections, 1), (self.start_bar, 0)):
            page.addWidget(part, stretch)
        self.model_controller = ModelController(self._context, self.draft, self.sections.model, self.checks, self)
        self.undo_keys = UndoKeys(self)
        self.setAcceptDrops(True)

    def _connect(self) -> None:
        controller, checks, sections, start_bar = self.controller, self.checks, self.sections, self.start_bar
        self.demo.clicked.connect(self.fill_demo)
        self.header.open.clicked.connect(self.open_spec)
        self.header.save.clicked.connect(self.save_spec)
        self.retry.clicked.connect(self._ask_catalog)
        start_bar.place_requested.connect(self.jump)
        # What people change
        sections.task.chosen.connect(controller.choose_task)
        sections.task.renamed.connect(controller.rename)
        for section in (sections.data, sections.model, sections.hardware, sections.settings, sections.search):
            section.changed.connect(self.change)
        sections.settings.reset_requested.connect(controller.reset)
        sections.settings.changes_requested.connect(self.show_changes)
        sections.plan.remedy_chosen.connect(lambda remedy: controller.apply(remedy.changes, remedy.title))
        self.data_controller.drops.dropped.connect(lambda *_: sections.open("data"))
        controller.started_over.connect(lambda: sections.open("data"))
        self.data_controller.changed.connect(lambda values: controller.apply(values, tr("Choose data")))
        self.data_controller.task_requested.connect(controller.choose_task)
        self.data_controller.task_found.connect(lambda name: controller.choose_task(name, by_data=True))
        # What follows from it
        controller.history_changed.connect(self._on_history_changed)
        controller.changed.connect(self._on_setting_changed)
        controller.changed_from.connect(self._on_settings_changed)
        controller.replaced.connect(self._show_all)
        controller.loaded.connect(self._on_loaded)
        for signal in (sections.mistakes_changed, sections.opened_other):
            signal.connect(self._show_blocker)
        checks.changed.connect(controller.amend)
        checks.changed.connect(self._show_blocker)
        checks.asking.connect(self._on_asking)
        checks.emptied.connect(self._on_emptied)
        checks.refused.connect(lambda topic, mistake: self._on_emptied(topic))
        checks.planned.connect(start_bar.show_plan)
        checks.measuring.connect(start_bar.show_progress)
        checks.short_of_memory.connect(start_bar.show_shortage)
        checks.short_of_memory.connect(self._show_blocker)
        checks.not_measured.connect(lambda said: self.message.emit("error", said))
        checks.trusted.connect(self._on_trusted)
        # What people ask for
        sections.hardware.look_again.connect(checks.look_again)
        sections.model.conversion_agreed.connect(checks.convert)
        sections.model.trust_agreed.connect(checks.trust)
        sections.model.tokenizer_requested.connect(self.tokenizer_requested)
        sections.data.report_requested.connect(self._on_report_requested)
        sections.data.tokens_requested.connect(self.data_requested)
        start_bar.measure_requested.connect(self.measure)
        start_bar.stop_requested.connect(checks.stop_measuring)
        start_bar.start_requested.connect(self.start)
        start_bar.queue_requested.connect(lambda: self.start(queue=True))
        start_bar.machine_requested.connect(lambda name: self.start(machine=name))
        start_bar.cancel_requested.connect(self.starter.cancel)
        start_bar.copy_requested.connect(self.copy_command)
        self.starter.others_changed.connect(start_bar.show_others)
        self.starter.changed.connect(self._on_starting)
        self.starter.sending.connect(start_bar.show_sending)
        self.starter.started.connect(self.run_started)
        self.starter.refused.connect(self._on_refused)
        self.starter.plan_requested.connect(lambda: self.jump("settings"))
        controller.history_changed.connect(self.starter.follow_change)
        for part in (controller, self.presets, self.starter):
            part.message.connect(self.message)
        self.starter.look_at_others()

    def offered_actions(self) -> list[Action]:
        """For the palette and the keyboard."""
        redo_obstacle = lambda: "" if self.controller.history.redo_words else tr("Nothing to redo")  # noqa: E731
        queue_obstacle = lambda: self.reason() or tr("No other run is in progress.")  # noqa: E731
        return [
            # Undo is always offered: it also takes back text that was only typed.
            NEW_RUN["undo"].bind(self.controller.undo),
            NEW_RUN["redo"].bind(self.controller.redo, redo_obstacle),
            NEW_RUN["find"].bind(self.search_bar.ask),
            *(NEW_RUN[name].bind(lambda name=name: self.jump(name)) for name in NEW_RUN_SECTIONS),
            NEW_RUN["new"].bind(self.controller.start_over),
            NEW_RUN["open"].bind(self.open_spec),
            NEW_RUN["save"].bind(self.save_spec),
            NEW_RUN["changes"].bind(self.show_changes),
            NEW_RUN["presets"].bind(self.presets.open_dialog),
            NEW_RUN["save_preset"].bind(self.presets.ask_save),
            NEW_RUN["measure"].bind(self.measure, self.start_bar.measure_obstacle),
            NEW_RUN["copy"].bind(self.copy_command),
            NEW_RUN["demo"].bind(self.fill_demo),
            NEW_RUN["copy_queue"].bind(lambda: self.copy_command(queue=True)),
            NEW_RUN["start"].bind(self.start, self.reason),
            button_action(self.start_bar.queue, NEW_RUN["queue"], queue_obstacle),
            *(
                Action(one.title, lambda key=key: self.search.show(key), icon="settings", kind=tr("Setting"), words=key)
                for key, one in self.controller.settings().items()
            ),
        ]

    def unfinished(self) -> str:
        """What closing the window would stop, as a sentence; empty if nothing."""
        return self.model_controller.unfinished()

    def hideEvent(self, event: QHideEvent) -> None:
        """Another page is shown, or the window is closed: keep what was typed last."""
        super().hideEvent(event)
        if not event.spontaneous():
            self.controller.keep()

    # The catalog

    def _ask_catalog(self) -> None:
        self.banner.clear()
        self._context.client.ask("catalog", {}, self._on_catalog, self._on_no_catalog)
        self.checks.engine_changed()

    def _on_catalog(self, catalog: Catalog) -> None:
        if not same_major(catalog.contract_version):
            sentence = tr(
                "The backend uses version {contract_version}, but the window uses a different version. Update Burnish.",
                contract_version=catalog.contract_version,
            )
            self._on_no_catalog(ErrorReply(sentence))
            return
        self.controller.set_catalog(catalog)
        self.sections.offer(catalog)
        self.model_controller.set_catalog(catalog)
        self.presets.offer()
        self._show_all()

    def _on_no_catalog(self, mistake: ErrorReply) -> None:
        self.banner.show_message("error", mistake.message)
        self._show_blocker()

    # A change of the draft, from the card to the sections and the checks

    def change(self, key: str, value: Any) -> None:
        """Apply the user's change, and check again what depends on it."""
        self.controller.change(key, value)

    def _on_setting_changed(self, key: str) -> None:
        self.sections.clear_marks()
        self.sections.show_setting(key)
        self.checks.setting_changed(key)

    def _on_settings_changed(self, before: Values) -> None:
        if before.get("task") != self.draft.get("task") or before.get("data") != self.draft.get("data"):
            self._show_all()
            return
        self.sections.clear_marks()
        self.sections.show_draft()
        self.presets.show()
        self.checks.settings_changed(before)

    def _show_all(self) -> None:
        """Show a draft that has changed completely."""
        task = self.controller.task()
        if task is not None and self.catalog is not None:
            self.controller.forget_unused_columns()
            self.sections.set_task(task, self.catalog)
        self.sections.clear_marks()
        self.sections.show_draft()
        self.presets.show()
        self._on_history_changed()
        self._show_blocker()
        self.checks.everything_changed()

    def _on_history_changed(self) -> None:
        self.sections.settings.show_changes(self.controller.differences())
        if self.changes is not None:
            self.changes.follow()

    def show_changes(self) -> None:
        """List all settings with non-default values."""
        if self.changes is None:
            self.changes = ChangesDialog(self.controller, self)
            self.changes.setting_chosen.connect(self.search.show)
        self.changes.show_changes()

    def _on_trusted(self, model: ModelDescription) -> None:
        self.draft.set("model.trust_remote_code", True)
        # Agreed is this commit and no later one.
        self.change("model.revision", model.commit or self.draft.get("model.revision", "main"))
        self.checks.model_changed()

    # Another draft

    def load_spec(self, values: Mapping[str, Any], words: str = tr("Open spec")) -> None:
        """Fill the page with a whole spec."""
        self.controller.load(Draft(dict(values)), words)

    def load_run(self, path: str) -> None:
        """Fill the page with the spec of a run."""
        self.controller.copy_run(path, self._context.library.runs)

    def search_around(self, path: str, learning_rate: float | None, metric: str) -> None:
        """Fill the page with a search around the settings of a run."""
        change = partial(search_around, learning_rate=learning_rate, metric=metric)
        self.controller.copy_run(path, self._context.library.runs, change)
        self.sections.open("search")

    def apply_settings(self, settings: Mapping[str, Any]) -> None:
        """Apply settings found on another page: spec keys and values."""
        self.controller.apply(settings, tr("Settings from another page"))

    def offered(self) -> tuple[dict[str, Any], str]:
        """The draft as a spec, and what is missing before its data can be tokenised, as a sentence."""
        return self.draft.run_values(), self.checks.missing()

    def fill_demo(self) -> None:
        """Fill the page with the embedded demo."""
        self.demo.setEnabled(False)
        self._context.client.ask("demo_spec", {}, self._on_demo, self._on_no_demo)

    def _on_demo(self, answer: dict[str, Any]) -> None:
        self.demo.setEnabled(True)
        self.load_spec(answer["spec"], tr("Demo"))

    def _on_no_demo(self, mistake: ErrorReply) -> None:
        self.demo.setEnabled(True)
        self.message.emit("error", mistake.message)

    def open_spec(self) -> None:
        """Let the user choose a spec to continue with."""
        self.controller.ask_open()

    def save_spec(self) -> None:
        """Let the user choose where to save the draft."""
        self.flush()
        self.controller.ask_save()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a spec dropped anywhere on the page; data and models have their sections."""
        if self._dropped_spec(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open the dropped spec."""
        path = self._dropped_spec(event)
        if path and self.catalog is not None:
            event.acceptProposedAction()
            self.controller.open(Path(path))

    def _dropped_spec(self, event: QDropEvent) -> str:
        return next((path for path in dropped_paths(event, specs=True) if is_spec(path)), "")

    def flush(self) -> None:
        """Commit text that is being typed."""
        for form in self.findChildren(SchemaForm):
            form.flush()

    # Start

    def _on_report_requested(self) -> None:
        if self.report is None:
            self.report = ReportDialog(self._context.client, self)
        self.report.ask(self.checks.report_arguments(), str(self.draft.get("name", "")))

    def reason(self) -> str:
        """Why the run cannot be started now; empty if it can."""
        return self.checks.blocker()

    def _show_blocker(self) -> None:
        self.checks.retry_plan()
        self.sections.show_states()
        if not self.starter.busy:
            place, state = self.checks.obstacle()
            is_told = self.sections.is_told(place, state)
            self.start_bar.show_obstacle(place, state, is_told=is_told, shows_plan=self.sections.shows_plan)
            self.start_bar.show_kind(is_search=self.draft.is_search)
            self.start_bar.enable_machines(self.checks.blocker(elsewhere=True))

    def jump(self, name: str) -> None:
        """Go to a section, where nothing is left out by a search."""
        self.search_bar.search.clear()
        self.sections.jump(name)

    def _on_loaded(self) -> None:
        """Another spec: what the old one would have cost says nothing about it."""
        self.start_bar.clear()
        self.sections.clear_plan()

    def _on_asking(self, topic: str) -> None:
        if topic == "plan":
            self.start_bar.show_asking()

    def _on_emptied(self, topic: str) -> None:
        if topic == "plan":
            self.start_bar.clear()

    def start(self, *, queue: bool = False, machine: str = "") -> None:
        """Start or queue the run here or on another machine; if it is refused, show the command line's message."""
        self.flush()
        if not self.checks.blocker(elsewhere=bool(machine)):
            self.controller.history.end_typing()  # else undo would not lead back to what is started
            self.starter.start(queue=queue, machine=machine)

    def on_shown(self) -> None:
        """Look which other machines the user has described."""
        self._context.client.ask(
            "machines", {}, lambda answer: self.start_bar.show_machines(answer.machines), lambda mistake: None
        )

    def measure(self) -> None:
        """Measure how long the run will take."""
        self.flush()
        if not self.reason() and self.checks.plan is not None:
            self.checks.measure()

    def _on_starting(self, busy: bool, queue: bool) -> None:
        self.start_bar.show_starting(busy, queue=queue)
        self._show_blocker()

    def _on_refused(self, sentence: str) -> None:
        key = sentence.partition(":")[0]
        field = key if key.replace(".", "").replace("_", "").isalpha() else ""
        refusal = formatting.sentence(sentence, field)
        self.sections.mark(field, refusal)
        self.checks.refuse(refusal, field)
        self.message.emit("error", refusal)

    def copy_command(self, *, queue: bool = False) -> None:
        """Put the command that starts the same run, or queues it, on the clipboard."""
        self.flush()
        self.starter.copy_command(queue=queue)
