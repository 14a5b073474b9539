"""Owns the presets of the New run page, the shipped ones and a person's own: chosen, looked through, saved, deleted."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.core.draft import user_presets
from app.core.draft.draft import Draft
from app.core.draft.setting_index import Difference, differences
from app.core.i18n import tr
from app.pages.new_run.draft_controller import Editing
from app.pages.new_run.preset_saving import PresetSaving
from app.pages.new_run.presets_dialog import PresetsDialog
from app.pages.new_run.task_card import TaskCard
from backend.contract.catalog import Preset


class PresetChoice(QObject):
    """`card` shows the presets, `editing` lays them over the draft."""

    message = Signal(str, str)

    def __init__(self, editing: Editing, card: TaskCard, page: QWidget) -> None:
        super().__init__(page)
        self._editing, self._card, self._page = editing, card, page
        self.own: list[Preset] = []
        self.dialog: PresetsDialog | None = None
        self.saving: PresetSaving | None = None
        card.preset_chosen.connect(editing.lay)
        card.look_asked.connect(self.look)
        card.save_asked.connect(self.ask_save)

    def offer(self) -> None:
        """Offer what the catalog has and what a person has kept."""
        catalog = self._editing.catalog
        self.own, problems = user_presets.listed()
        self._card.set_presets(catalog.presets if catalog else [], self.own)
        for problem in problems:
            self.message.emit("warning", problem)

    def show(self) -> None:
        """Show which preset lies over the draft, and what it has changed."""
        overlay = self._editing.overlay
        changes: list[Difference] = []
        if overlay.preset is not None and overlay.laid is not None:
            before, after = Draft(overlay.laid.before), Draft(overlay.laid.after)
            changes = differences(self._editing.settings(), before, after)
        self._card.show_preset(overlay.preset, [change.words for change in changes])

    # Looking through

    def look(self) -> None:
        """All presets with what each would change."""
        if self.dialog is None:
            self.dialog = PresetsDialog(self._editing.differences_with, self._page)
            self.dialog.used.connect(self._on_used)
            self.dialog.deleted.connect(self.delete)
            self.dialog.save_asked.connect(self.ask_save)
        self._fill_dialog()
        self.dialog.open()

    def _fill_dialog(self) -> None:
        catalog = self._editing.catalog
        if self.dialog is not None and catalog is not None:
            titles = {task.name: task.title for task in catalog.tasks}
            self.dialog.offer(self.own, catalog.presets, titles, self._editing.overlay.preset)

    def _on_used(self, preset: Preset) -> None:
        self._editing.lay(preset)

    def delete(self, preset: Preset) -> None:
        """Take an own preset away; what it has set stays."""
        try:
            user_presets.delete(preset)
        except OSError as error:
            self.message.emit(
                "error",
                tr(
                    "The preset “{title}” could not be deleted: {strerror}.",
                    title=preset.title,
                    strerror=error.strerror,
                ),
            )
            return
        if self._editing.overlay.preset == preset:
            self._editing.overlay.forget()
        self.offer()
        self.show()
        self._fill_dialog()

    # Saving

    def ask_save(self) -> None:
        """Let a person keep the present settings under a name."""
        catalog = self._editing.catalog
        if catalog is None:
            return
        if self.saving is None:
            self.saving = PresetSaving(self._page)
            self.saving.agreed.connect(self.save)
        self.saving.offer(self._editing.draft, self._editing.settings(), catalog.presets, self.own)
        self.saving.open()

    def save(self, title: str, description: str, sections: list[str]) -> None:
        """Keep these sections of the draft."""
        try:
            kept = user_presets.fragment(self._editing.draft, sections, self._editing.settings())
            saved = user_presets.save(title, description, kept)
        except OSError as error:
            self.message.emit(
                "error",
                tr("The preset “{title}” could not be saved: {strerror}.", title=title, strerror=error.strerror),
            )
            return
        self.offer()
        self.show()
        self._fill_dialog()
        self.message.emit(
            "success",
            tr(
                "Saved the preset “{title}”. A spec uses it with: include: preset:{name}",
                title=saved.title,
                name=saved.name,
            ),
        )
