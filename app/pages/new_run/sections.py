"""The sections of the New run page, of which one is open: the draft they show, and what the backend says about it."""

from collections.abc import Collection
from typing import Any

from msgspec import structs
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QStackedWidget, QVBoxLayout, QWidget

from app import theme
from app.core import formatting, json_schema
from app.core.draft import data_source, search_space, section_words
from app.core.draft.draft_settings import shorten_texts
from app.core.i18n import tr
from app.pages.new_run.data.data_section import DataSection
from app.pages.new_run.draft_checks import DraftChecks
from app.pages.new_run.draft_controller import DraftController
from app.pages.new_run.hardware_section import HardwareSection
from app.pages.new_run.model.model_section import ModelSection
from app.pages.new_run.plan_panel import PlanView
from app.pages.new_run.search_section import SearchSection
from app.pages.new_run.section import Panel, Section
from app.pages.new_run.section_state import WRONG, SectionState, section_of
from app.pages.new_run.settings_section import SettingsSection
from app.pages.new_run.task_section import TaskSection
from app.widgets.boxes import hbox
from app.widgets.forms.field_row import FieldRow
from app.widgets.forms.schema_form import SchemaForm
from backend.contract.catalog import Catalog, TaskEntry
from backend.contract.errors import Fix
from backend.contract.rpc.data import DataPreview
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.plan import DeviceList, RunPlan
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.run.cost import MeasuredTime

NARROW = 720
"""Pixels of both; with fewer the panel is below the fields of the open section."""
SHARE, LEAST, MOST = 0.46, 400, 620
"""Of the width for the sections, and its bounds."""
PANEL_HEIGHT = 320
"""Pixels of the panel below the fields, at least."""


class Sections(QWidget):
    """Sections on the left, the panel of the open one on the right."""

    mistakes_changed = Signal()
    opened_other = Signal()
    """Another section is open."""

    def __init__(self, controller: DraftController, checks: DraftChecks, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller, self._draft, self._checks = controller, controller.draft, checks
        self._frame, self.side = QFrame(self), QStackedWidget(self)
        theme.role(self._frame, "card")
        panels = [Panel(title, self.side) for title in (tr("Task"), tr("Data"), tr("Model"), tr("Plan"))]
        for panel in panels:
            self.side.addWidget(panel)
        self.task = TaskSection(panels[0], self._frame)
        self.data = DataSection(panels[1], self._frame)
        self.model = ModelSection(panels[2], self._frame)
        self.hardware = HardwareSection(panels[3], self._frame)
        self.settings = SettingsSection(panels[3], self._frame)
        self.search = SearchSection(controller, panels[3], self._frame)
        self.plan = PlanView(panels[3])
        panels[3].body.addWidget(self.plan, 1)
        self.named: dict[str, Section] = {
            "task": self.task,
            "data": self.data,
            "model": self.model,
            "hardware": self.hardware,
            "settings": self.settings,
            "search": self.search,
        }
        self.opened = "data"
        self._auto: dict[str, float] = {}
        """What `auto` stood for in the last plan, by key."""
        self._column = QVBoxLayout(self._frame)
        self._column.setContentsMargins(1, 2, 1, 2)
        self._column.setSpacing(0)
        for name, section in self.named.items():
            self._column.addWidget(section)
            section.open_requested.connect(lambda name=name: self.open(name))
        self.search.line.hide()
        self._row = hbox(self._frame, (self.side, 1), spacing=14, parent=self)
        self.open(self.opened)
        self._listen(checks)
        for section in (self.data, self.settings, self.hardware, self.search):
            section.mistakes_changed.connect(self.mistakes_changed)
        self.settings.form_made.connect(self._on_form_made)

    # Which section is open, and where its panel is

    def open(self, name: str) -> None:
        """Show the fields of one section, and its panel."""
        self.opened = name
        for place, (other, section) in enumerate(self.named.items()):
            section.set_open(other == name)
            self._column.setStretch(place, int(other == name))
        self.side.setCurrentWidget(self.named[name].panel)
        if self._is_narrow():
            self.named[name].below.addWidget(self.side, 1)
        self.opened_other.emit()

    @property
    def shows_plan(self) -> bool:
        """Whether the plan is beside the open section."""
        return self.side.currentWidget() is self.settings.panel

    def _is_narrow(self) -> bool:
        return self.width() < theme.pixels(NARROW)

    def minimumSizeHint(self) -> QSize:
        """What the sections need alone: with less room the panel goes below."""
        return QSize(theme.pixels(LEAST), self._frame.minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Divide the width; the panel goes below the fields if there is too little of it."""
        super().resizeEvent(event)
        narrow = self._is_narrow()
        if narrow == (self.side.parentWidget() is self):
            self._row.removeWidget(self.side)
            (self.named[self.opened].below if narrow else self._row).addWidget(self.side, 1)
        self.side.setMinimumHeight(theme.pixels(PANEL_HEIGHT) if narrow else 0)
        width = self.width()
        self._frame.setFixedWidth(width if narrow else round(max(theme.pixels(LEAST), min(MOST, width * SHARE))))

    def jump(self, name: str) -> None:
        """Open a section and focus its first field, or its first invalid one."""
        self.open(name)
        section = self.named[name]
        wrong, column = self._first_mistaken(section), self.data.mistaken_column() if section is self.data else None
        if wrong is not None:
            self.settings.open_group(wrong.key)
            section.lay_out()
            section.scroll_to(wrong.title)
            wrong.editor.target.setFocus(Qt.FocusReason.ShortcutFocusReason)
        elif column is not None:
            section.scroll_to(self.data.column_banner)
            section.scroll_to(column)
            column.setFocus(Qt.FocusReason.ShortcutFocusReason)
        else:
            section.focus_first()

    def _first_mistaken(self, section: Section) -> FieldRow | None:
        has_forms = isinstance(section, DataSection | HardwareSection | SettingsSection | SearchSection)
        forms = section.forms_shown() if has_forms else []
        form, row = next(((form, row) for form in forms if (row := form.first_mistaken()) is not None), (None, None))
        if form is not None and row is not None:
            form.show_matches([row.key], alone=False)
        return row

    def holder_of(self, widget: QWidget) -> str:
        """The name of the section that a widget belongs to."""
        return next((name for name, section in self.named.items() if section.isAncestorOf(widget)), self.opened)

    def scroll_to(self, widget: QWidget) -> None:
        """Scroll a field into view."""
        self.named[self.holder_of(widget)].scroll_to(widget)

    def place_of(self, widget: QWidget) -> tuple[int, int]:
        """The number of the section, and the position in it."""
        name = self.holder_of(widget)
        return list(self.named).index(name), self.named[name].place_of(widget)

    def lay_out(self) -> None:
        """Lay everything out now, as after opening a group."""
        for section in self.named.values():
            section.lay_out()

    def _listen(self, checks: DraftChecks) -> None:
        checks.asking.connect(self._on_asking)
        checks.emptied.connect(self._on_emptied)
        checks.previewed.connect(self._on_preview)
        checks.described.connect(self._on_model)
        checks.fitted.connect(lambda: self.settings.show_draft(self._draft))
        checks.planned.connect(self._on_plan)
        checks.devices_found.connect(self._on_devices)
        checks.refused.connect(self._on_refusal)
        checks.short_of_memory.connect(self._on_shortage)

    def offer(self, catalog: Catalog) -> None:
        """Offer the catalog's choices."""
        self.task.set_tasks(catalog.tasks)
        self.task.set_presets(catalog.presets)
        self.data.set_sources(catalog.sources)
        self.hardware.set_engines(catalog.engines, json_schema.section(catalog.spec, "hardware"))

    def show_states(self) -> None:
        """Show the main value and the state of each section."""
        catalog, draft, checks = self._controller.catalog, self._draft, self._checks
        words = {
            "task": " · ".join(filter(None, (self.task.tasks.currentText(), self.task.preset_name()))),
            "data": section_words.data_words(draft, self._controller.source(), self._controller.task(), checks.preview),
            "model": section_words.model_words(draft, checks.model),
            "hardware": section_words.hardware_words(
                draft, catalog.engines if catalog else [], self.hardware.present, checks.plan
            ),
            "settings": section_words.settings_words(draft, self.settings.adapter_name(), self._auto),
            "search": section_words.search_words(draft),
        }
        for name, state in checks.section_states().items():
            self.named[name].header.show_state(state, words[name])
        self.plan.show_words(tr("Estimating the cost…") if checks.is_planning else "")

    def is_told(self, place: str, state: SectionState) -> bool:
        """Whether what is wrong is said in the open section, or above the plan beside it, so that the bar need not."""
        is_in_plan = self.shows_plan and not self.plan.problem.isHidden()
        return state.kind == WRONG and (is_in_plan or place == self.opened != "task")

    # The draft

    def set_task(self, task: TaskEntry, catalog: Catalog) -> None:
        """Switch to another task: its columns, settings and metrics."""
        self.data.set_parts(data_source.used_parts(task, self._draft))
        self.settings.set_task(task, catalog)
        self.search.set_task(task, catalog)

    def show_draft(self) -> None:
        """Show the whole draft."""
        for section in (self.task, self.data, self.model, self.hardware, self.settings, self.search):
            section.show_draft(self._draft)
        for form in self.settings.forms_shown():
            self._show_searched(form)

    def _on_form_made(self, form: SchemaForm) -> None:
        form.search_requested.connect(self.search.search)
        self._show_searched(form)

    def _show_searched(self, form: SchemaForm) -> None:
        """Offer to search the settings of a form, and show which of them are searched."""
        keys = [key for key, one in self._controller.settings().items() if search_space.can_be_searched(one)]
        searched = search_space.space_of(self._draft)
        form.offer_search(keys, {key: search_space.values_in_words(values) for key, values in searched.items()})

    def show_setting(self, key: str) -> None:
        """Show what else a changed value affects; its own field already shows it."""
        section, task = key.split(".")[0], self._controller.task()
        if section == "data":
            self.task.show_name(str(self._draft.get("name", "")))
            self.data.show_draft(self._draft)
        elif section == "model":
            self.settings.show_draft(self._draft)
            self.model.show_draft(self._draft)
        elif section == "hardware":
            self.hardware.show_draft(self._draft)
        elif section == "search":
            self.search.show_draft(self._draft)
        elif task is not None and data_source.decides_parts(task, key):
            self.data.set_parts(data_source.used_parts(task, self._draft))

    def clear_marks(self) -> None:
        """Clear the errors reported from outside."""
        for section in (self.data, self.settings, self.hardware, self.search):
            section.clear_marks()

    def mistakes(self) -> dict[str, dict[str, str]]:
        """Title → error message of all marked fields, by section."""
        sections = {"data": self.data, "hardware": self.hardware, "settings": self.settings, "search": self.search}
        return {name: section.mistakes() for name, section in sections.items()}

    def caption_of(self, key: str) -> QLabel | None:
        """The caption of a setting outside of any form, else its section's title."""
        for section in (self.hardware, self.settings):
            if key in section.captions:
                return section.captions[key]
        name = section_of(key)
        return self.named[name].header.title if name in ("task", "data", "model") else None

    def show_matches(self, keys: Collection[str] | None) -> None:
        """Open the search matches; None restores the normal view."""
        for section in (self.data, self.hardware, self.settings):
            section.show_matches(keys)

    def open_group(self, key: str) -> None:
        """Expand the group of one setting."""
        self.settings.open_group(key)
        for section in (self.data, self.hardware):
            section.show_matches([key])

    def mark(self, field: str, sentence: str, fix: Fix | None = None) -> None:
        """Show an error at its field, or where the section has room for it; else beside the settings."""
        others = (self.model, self.hardware, self.settings, self.search)
        if not self.data.mark(field, sentence, fix) and not any(one.mark(field, sentence) for one in others):
            self.plan.show_problem(sentence)

    # What the backend says

    def _on_asking(self, topic: str, progress: Any) -> None:
        if topic == "data":
            self.data.show_reading(progress)
        elif topic == "model":
            self.model.show_reading(progress)
        elif topic == "plan":
            self.plan.show_asking()

    def _on_emptied(self, topic: str) -> None:
        if topic == "data":
            self.data.show_nothing()
        elif topic == "model":
            self.model.show_nothing()
            self.hardware.show_model(None)
        elif topic == "plan":
            self.clear_plan()

    def clear_plan(self) -> None:
        """Show that there is no plan: neither its cost nor the numbers that `auto` means in it are known."""
        self.plan.clear()
        self.hardware.show_plan(None)
        self.settings.show_chosen(())
        self._auto = {}

    def _on_preview(self, preview: DataPreview) -> None:
        self.data.show_preview(preview, self._draft.get("data.columns") or {})
        if preview.wrong_column is not None:
            self._mark_mistake(preview.wrong_column)

    def _on_model(self, model: ModelDescription) -> None:
        self.model.show_description(model, self._checks.trusts_model())
        self.hardware.show_model(model)

    def _on_plan(self, plan: RunPlan) -> None:
        plan = structs.replace(plan, auto=[*self._controller.fitted, *plan.auto])
        self.plan.show_plan(plan)
        self.hardware.show_plan(plan)
        self.settings.show_chosen(plan.auto)
        self._auto = {one.key: one.value for one in plan.auto if not isinstance(one.value, str)}
        self.search.show_chosen(self._auto)

    def _on_shortage(self, found: MeasuredTime) -> None:
        self.plan.show_shortage(formatting.sentence(found.shortage), found.remedies)

    def _on_devices(self, found: DeviceList) -> None:
        self.hardware.set_devices(found)
        self.hardware.show_draft(self._draft)

    def _on_refusal(self, topic: str, mistake: ErrorReply) -> None:
        sentence = formatting.sentence(mistake.message, mistake.field)
        if topic == "data":
            self.data.show_unread()
            self.data.mark(mistake.field or "data", sentence, mistake.fix)
            self.data.again.setVisible(mistake.fix is None)
        elif topic == "model":
            self.model.show_problem(sentence)
        elif topic == "devices":
            self.hardware.set_devices(DeviceList([], sentence))
        elif topic == "plan":
            self.hardware.show_plan(None)
            self.plan.show_refusal(shorten_texts(self._draft, self._checks.model, mistake))
            self._mark_mistake(mistake)

    def _mark_mistake(self, mistake: ErrorReply) -> None:
        """Show a mistake at its section, with its fix if there is one for the data."""
        self.mark(mistake.field or "", formatting.sentence(mistake.message, mistake.field), mistake.fix)
