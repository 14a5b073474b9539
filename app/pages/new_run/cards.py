"""The cards of the New run page: their layout, the draft they show, and what the backend says about it."""

from collections.abc import Collection
from typing import Any

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QLabel, QVBoxLayout, QWidget

from app.core import formatting, json_schema
from app.core.draft import data_source
from app.core.draft.draft_settings import shorten_texts
from app.core.i18n import tr
from app.pages.new_run.cost_card import CostCard
from app.pages.new_run.data.data_card import DataCard
from app.pages.new_run.draft_checks import DraftChecks
from app.pages.new_run.draft_controller import DraftController
from app.pages.new_run.hardware_card import HardwareCard
from app.pages.new_run.model.model_card import ModelCard
from app.pages.new_run.settings_card import SettingsCard
from app.pages.new_run.task_card import TaskCard
from app.widgets.card import Card
from app.widgets.forms.field_row import FieldRow
from app.widgets.page_layout import REACH, PageArea
from backend.contract.catalog import Catalog, TaskEntry
from backend.contract.rpc.data import DataPreview
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.plan import DeviceList
from backend.contract.rpc.protocol import ErrorReply

TITLES = {
    "task": tr("Task"),
    "data": tr("Data"),
    "model": tr("Model"),
    "hardware": tr("Hardware"),
    "settings": tr("Settings"),
}
"""What the cards are called where one jumps to them."""

NARROW = 860
"""Pixels of all cards; with fewer they stand in one column."""


class Cards(QWidget):
    """Two scrolling columns, with the cost of the run at the bottom."""

    mistakes_changed = Signal()

    def __init__(self, controller: DraftController, checks: DraftChecks, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller, self._draft, self._checks = controller, controller.draft, checks
        self._inside = QWidget()
        self._area = PageArea(self._inside, self)
        inside = self._inside
        self.task, self.data, self.model = TaskCard(inside), DataCard(inside), ModelCard(inside)
        self.hardware, self.settings, self.cost = HardwareCard(inside), SettingsCard(inside), CostCard(self)
        self._shown = (self.task, self.data, self.model, self.hardware, self.settings)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addWidget(self._area, 1)
        foot = QVBoxLayout()
        foot.setContentsMargins(0, 0, REACH, 0)
        foot.addWidget(self.cost)
        column.addLayout(foot)
        self._lay_out_columns()
        self._listen(checks)
        for card in (self.data, self.settings, self.hardware):
            card.mistakes_changed.connect(self.mistakes_changed)

    def _lay_out_columns(self) -> None:
        columns = self._columns = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._inside)
        columns.setContentsMargins(0, 0, 0, 0)
        columns.setSpacing(14)
        for stretch, cards in ((5, self._shown[:2]), (4, self._shown[2:])):
            column = QVBoxLayout()
            column.setSpacing(14)
            for card in cards:
                column.addWidget(card)
            column.addStretch(1)
            columns.addLayout(column, stretch)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use one column if there is too little room for two."""
        narrow = event.size().width() - REACH < NARROW
        direction = QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight
        if self._columns.direction() != direction:
            self._columns.setDirection(direction)
        super().resizeEvent(event)

    def _listen(self, checks: DraftChecks) -> None:
        checks.asking.connect(self._on_asking)
        checks.emptied.connect(self._on_emptied)
        checks.previewed.connect(self._on_preview)
        checks.described.connect(self._on_model)
        checks.planned.connect(self.cost.show_plan)
        checks.planned.connect(self.hardware.show_plan)
        checks.planned.connect(self.settings.show_plan)
        checks.devices_found.connect(self._on_devices)
        checks.refused.connect(self._on_refusal)
        checks.measuring.connect(self.cost.measure.show_progress)
        checks.short_of_memory.connect(self.cost.show_shortage)

    def offer(self, catalog: Catalog) -> None:
        """Offer the catalog's choices."""
        self.task.set_tasks(catalog.tasks)
        self.task.set_presets(catalog.presets)
        self.data.set_sources(catalog.sources)
        self.hardware.set_engines(catalog.engines, json_schema.section(catalog.spec, "hardware"))

    # The draft

    def set_task(self, task: TaskEntry, catalog: Catalog) -> None:
        """Switch to another task: its columns, settings and metrics."""
        self.data.set_parts(data_source.used_parts(task, self._draft))
        self.settings.set_task(task, catalog)

    def show_draft(self) -> None:
        """Show the whole draft."""
        for card in self._shown:
            card.show_draft(self._draft)

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
        elif task is not None and data_source.decides_parts(task, key):
            self.data.set_parts(data_source.used_parts(task, self._draft))

    def clear_marks(self) -> None:
        """Clear the errors reported from outside."""
        for card in (self.data, self.settings, self.hardware):
            card.clear_marks()

    def mistakes(self) -> dict[str, list[str]]:
        """The error messages of all marked fields, by card."""
        cards = {"data": self.data, "hardware": self.hardware, "settings": self.settings}
        return {name: card.mistakes() for name, card in cards.items()}

    # Places

    def named(self, name: str) -> Card:
        """The card with a name in TITLES."""
        return {"task": self.task, "data": self.data, "model": self.model, "hardware": self.hardware}.get(
            name, self.settings
        )

    def scroll_to_top(self) -> None:
        """Scroll to the top, for another spec."""
        self._area.verticalScrollBar().setValue(0)

    def jump(self, name: str) -> None:
        """Scroll to a card and focus its first field, or its first invalid one."""
        card = self.named(name)
        if (wrong := self._first_mistaken(card)) is not None:
            self.settings.open(wrong.key)
            self.lay_out()
            self.scroll_to(wrong.title)
            wrong.editor.target.setFocus(Qt.FocusReason.ShortcutFocusReason)
            return
        self._area.verticalScrollBar().setValue(card.mapTo(self._inside, QPoint(0, 0)).y())
        fields = (one for one in card.findChildren(QWidget) if one.focusPolicy() & Qt.FocusPolicy.TabFocus)
        first = next((one for one in fields if one.isVisibleTo(card) and one.isEnabled()), None)
        if first is not None:
            first.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _first_mistaken(self, card: Card) -> FieldRow | None:
        forms = card.forms_shown() if isinstance(card, DataCard | HardwareCard | SettingsCard) else []
        form, row = next(((form, row) for form in forms if (row := form.first_mistaken()) is not None), (None, None))
        if form is not None and row is not None:
            form.show_matches([row.key], alone=False)
        return row

    def scroll_to(self, widget: QWidget) -> None:
        """Scroll a widget into view, with some margin."""
        self._area.ensureWidgetVisible(widget, 20, 120)

    def lay_out(self) -> None:
        """Lay everything out now, as after opening a group."""
        layout = self._inside.layout()
        if layout is not None:
            layout.activate()

    def place_of(self, widget: QWidget) -> tuple[bool, int]:
        """The column, and the position in it."""
        place = widget.mapTo(self._inside, QPoint(0, 0))
        return place.x() > self._inside.width() // 2, place.y()

    def caption_of(self, key: str) -> QLabel | None:
        """The caption of a setting outside of any form, else its card's heading."""
        for card in (self.hardware, self.settings):
            if key in card.captions:
                return card.captions[key]
        section = key.partition(".")[0]
        card = {"name": "task"}.get(section, section)
        return self.named(card).heading if card in ("task", "data", "model") else None

    def show_matches(self, keys: Collection[str] | None) -> None:
        """Open the search matches; None restores the normal view."""
        for card in (self.data, self.hardware, self.settings):
            card.show_matches(keys)

    def open(self, key: str) -> None:
        """Expand the group of one setting."""
        self.settings.open(key)
        for card in (self.data, self.hardware):
            card.show_matches([key])

    def mark(self, field: str, sentence: str) -> None:
        """Show an error at its card and, if possible, at its field."""
        if field:
            any(card.mark(field, sentence) for card in (self.data, self.model, self.hardware, self.settings))

    # What the backend says

    def _on_asking(self, topic: str, progress: Any) -> None:
        if topic == "data":
            self.data.show_reading(progress)
        elif topic == "model":
            self.model.show_reading(progress)
        elif topic == "plan":
            self.cost.clear(tr("Estimating the cost…"))
            self.hardware.show_plan(None)

    def _on_emptied(self, topic: str) -> None:
        if topic == "data":
            self.data.show_nothing()
        elif topic == "model":
            self.model.show_nothing()
            self.hardware.show_model(None)
        elif topic == "plan":
            self.cost.clear("")

    def _on_preview(self, preview: DataPreview) -> None:
        self.data.show_preview(preview, self._draft.get("data.columns") or {})

    def _on_model(self, model: ModelDescription) -> None:
        self.model.show_description(model, self._checks.trusts_model())
        self.hardware.show_model(model)

    def _on_devices(self, found: DeviceList) -> None:
        self.hardware.set_devices(found)
        self.hardware.show_draft(self._draft)

    def _on_refusal(self, topic: str, mistake: ErrorReply) -> None:
        sentence = formatting.sentence(mistake.message, mistake.field)
        if topic == "data":
            self.data.show_unread()
            self.data.mark(mistake.field or "data", sentence)
            self.data.again.show()
            if mistake.fix is not None:
                self.data.offer_fix(mistake.fix)
        elif topic == "model":
            self.model.show_problem(sentence)
        elif topic == "devices":
            self.hardware.set_devices(DeviceList([], sentence))
        elif topic == "plan":
            self.cost.clear("")
            self.mark(mistake.field or "", sentence)
            self.cost.remedies.show_remedies(shorten_texts(self._draft, self._checks.model, mistake))
