"""Owns what follows from a change of the draft: which cards show it anew, and what the backend is asked again."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.core.draft import column_roles
from app.core.draft.draft import Values
from app.pages.new_run.cards import Cards
from app.pages.new_run.changes import Changes
from app.pages.new_run.draft_checks import DraftChecks
from app.pages.new_run.draft_controller import DraftController
from app.pages.new_run.presets import PresetController


class Following(QObject):
    """Follows every step of `editing`."""

    shown = Signal()
    """Another draft stands in the cards; what can be done with it may be another."""

    def __init__(
        self,
        editing: DraftController,
        findings: DraftChecks,
        cards: Cards,
        presets: PresetController,
        changes: Changes,
        page: QWidget,
    ) -> None:
        super().__init__(page)
        self._editing, self._draft = editing, editing.draft
        self._findings, self._cards, self._presets, self._changes = findings, cards, presets, changes
        editing.changed.connect(self._on_changed)
        editing.replaced.connect(self.show_all)
        editing.undoing.went.connect(self._on_went)

    def _on_changed(self, key: str) -> None:
        self._cards.clear_marks()
        section = key.split(".")[0]
        if section == "data":
            self._cards.task.show_name(str(self._draft.get("name", "")))
            self._cards.data.show_draft(self._draft)
            self._findings.data_changed()
        elif section == "model":
            self._cards.settings.show_draft(self._draft)
            self._cards.model.show_draft(self._draft)
            self._findings.model_changed()
        elif key == "hardware.engine":
            self._cards.hardware.show_draft(self._draft)
            self._findings.engine_changed()
        else:
            self._show_parts(key)
            if section == "hardware":
                self._cards.hardware.show_draft(self._draft)
            self._findings.something_changed()

    def _show_parts(self, key: str) -> None:
        entry = self._editing.task()
        if entry and column_roles.decides_parts(entry, key):
            self._cards.data.set_parts(column_roles.used_parts(entry, self._draft))
            self._findings.data_changed()

    def _on_went(self, before: Values) -> None:
        """The draft was put back or forth: show it, and ask again about what is another than `before`."""
        if before.get("task") != self._draft.get("task") or before.get("data") != self._draft.get("data"):
            self.show_all()
            return
        self._cards.clear_marks()
        self._cards.show_draft()
        self._presets.show()
        if before.get("model") != self._draft.get("model"):
            self._findings.model_changed()
        if before.get("hardware") != self._draft.get("hardware"):
            self._findings.engine_changed()
        self._findings.something_changed()

    def show_all(self) -> None:
        """The draft is another as a whole."""
        entry, catalog = self._editing.task(), self._editing.catalog
        if entry is not None and catalog is not None:
            column_roles.forget_unused(entry, self._draft)
            self._editing.undoing.amend()
            self._cards.data.set_parts(column_roles.used_parts(entry, self._draft))
            self._cards.settings.set_task(entry, catalog)
        self._cards.clear_marks()
        self._cards.show_draft()
        self._presets.show()
        self._changes.show()
        self.shown.emit()
        self._findings.everything_changed()
