"""The presets of the New run page, built-in ones and the user's own: applied, browsed, saved and deleted."""

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core.draft import presets
from app.core.draft.draft import Draft, flat
from app.core.draft.draft_settings import Difference, Setting, differences, title_of, value_words
from app.core.draft.presets import PRESET_SECTIONS, file_name, fragment, name_problem
from app.core.i18n import tr
from app.pages.new_run.draft_controller import DraftController
from app.pages.new_run.task_section import TaskSection
from app.widgets.card import FormGrid, label
from app.widgets.icon_label import IconButton
from app.widgets.tables.text_table import TextTable
from backend.contract.catalog import Preset

Compare = Callable[[Preset], list[Difference]]
OWN, ANY_TASK = tr("Your presets"), tr("Any task")
PRESET = Qt.ItemDataRole.UserRole

AT_FIRST = ("task", "training", "evaluation", "adapter")


class PresetController(QObject):
    """`section` shows the presets, `controller` lays them over the draft."""

    message = Signal(str, str)

    def __init__(self, controller: DraftController, section: TaskSection, page: QWidget) -> None:
        super().__init__(page)
        self._controller, self._section, self._page = controller, section, page
        self.own: list[Preset] = []
        self.dialog: PresetsDialog | None = None
        self.saving: SavePresetDialog | None = None
        section.preset_chosen.connect(controller.apply_preset)
        section.presets_requested.connect(self.open_dialog)
        section.save_requested.connect(self.ask_save)

    def offer(self) -> None:
        """Offer the catalog's presets and the user's own."""
        catalog = self._controller.catalog
        self.own, problems = presets.read_presets()
        self._section.set_presets(catalog.presets if catalog else [], self.own)
        for sentence in problems:
            self.message.emit("warning", sentence)

    def show(self) -> None:
        """Show which preset is applied, and what it has changed."""
        overlay = self._controller.overlay
        changes: list[Difference] = []
        if overlay.preset is not None and overlay.laid is not None:
            before, after = Draft(overlay.laid.before), Draft(overlay.laid.after)
            changes = differences(self._controller.settings(), before, after)
        self._section.show_preset(overlay.preset, [change.words for change in changes])

    # Looking through

    def open_dialog(self) -> None:
        """Show all presets with what each would change."""
        if self.dialog is None:
            self.dialog = PresetsDialog(self._controller.differences_with, self._page)
            self.dialog.used.connect(self._on_used)
            self.dialog.deleted.connect(self.delete)
            self.dialog.save_requested.connect(self.ask_save)
        self._fill_dialog()
        self.dialog.open()

    def _fill_dialog(self) -> None:
        catalog = self._controller.catalog
        if self.dialog is not None and catalog is not None:
            titles = {task.name: task.title for task in catalog.tasks}
            self.dialog.offer(self.own, catalog.presets, titles, self._controller.overlay.preset)

    def _on_used(self, preset: Preset) -> None:
        self._controller.apply_preset(preset)

    def delete(self, preset: Preset) -> None:
        """Delete a user's preset; the values that it set are kept."""
        try:
            presets.delete_preset(preset)
        except OSError as error:
            self.message.emit(
                "error",
                tr(
                    "Couldn't delete the preset “{title}”: {strerror}.",
                    title=preset.title,
                    strerror=error.strerror,
                ),
            )
            return
        if self._controller.overlay.preset == preset:
            self._controller.overlay.forget()
        self.offer()
        self.show()
        self._fill_dialog()

    # Saving

    def ask_save(self) -> None:
        """Let the user save the current settings under a name."""
        catalog = self._controller.catalog
        if catalog is None:
            return
        if self.saving is None:
            self.saving = SavePresetDialog(self._page)
            self.saving.agreed.connect(self.save)
        self.saving.offer(self._controller.draft, self._controller.settings(), catalog.presets, self.own)
        self.saving.open()

    def save(self, title: str, description: str, sections: list[str]) -> None:
        """Save these sections of the draft."""
        try:
            kept = presets.fragment(self._controller.draft, sections, self._controller.settings())
            saved = presets.save_preset(title, description, kept)
        except OSError as error:
            self.message.emit(
                "error",
                tr("Couldn't save the preset “{title}”: {strerror}.", title=title, strerror=error.strerror),
            )
            return
        self.offer()
        self.show()
        self._fill_dialog()
        self.message.emit(
            "success",
            tr(
                "Saved the preset “{title}”. To use it in a spec: include: preset:{name}",
                title=saved.title,
                name=saved.name,
            ),
        )


class SavePresetDialog(QDialog):
    """Emits `agreed` with title, description and sections."""

    agreed = Signal(str, str, list)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._draft, self._settings = Draft(), dict[str, Setting]()
        self._shipped: Sequence[Preset] = ()
        self._own: Sequence[Preset] = ()
        self.setWindowTitle(tr("Save as preset"))
        self.resize(600, 560)
        self.name = QLineEdit(placeholderText=tr("For example: short texts, careful"))
        self.name.setMaxLength(80)
        self.description = QLineEdit(placeholderText=tr("What it is good for"))
        self.boxes = {section: QCheckBox(title) for section, title in PRESET_SECTIONS.items()}
        self.table = TextTable(tr("Settings in the preset"))
        self.mistake = label("", "mistake", wrap=True)
        self.save = IconButton(tr("Save preset"), "save", "primary")
        self.cancel = IconButton(tr("Cancel"), "close")
        self.name.textChanged.connect(self._show)
        for box in self.boxes.values():
            box.clicked.connect(self._show)
        self.save.clicked.connect(self._on_save)
        self.cancel.clicked.connect(self.reject)
        self._place()

    def _place(self) -> None:
        rows = FormGrid()
        rows.add(tr("Name"), self.name)
        rows.addWidget(self.mistake, rows.rowCount(), 1)
        rows.add(tr("Description"), self.description)
        choices = QGridLayout()
        for number, box in enumerate(self.boxes.values()):
            choices.addWidget(box, number // 3, number % 3)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(self.cancel)
        foot.addWidget(self.save)
        self.cancel.setAutoDefault(False)
        self.save.setDefault(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(12)
        column.addLayout(rows)
        column.addWidget(label(tr("The preset sets:"), "muted"))
        column.addLayout(choices)
        column.addWidget(self.table, 1)
        column.addLayout(foot)

    def offer(
        self, draft: Draft, settings: Mapping[str, Setting], shipped: Sequence[Preset], own: Sequence[Preset]
    ) -> None:
        """Start with the sections that are usually saved."""
        self._draft, self._settings, self._shipped, self._own = draft.copy(), dict(settings), shipped, own
        self.name.clear()
        self.description.clear()
        for section, box in self.boxes.items():
            holds = bool(fragment(self._draft, [section], self._settings))
            box.setEnabled(holds)
            box.setChecked(holds and section in AT_FIRST)
            box.setToolTip("" if holds else tr("Nothing selected"))
        self._show()
        self.name.setFocus()

    def sections(self) -> list[str]:
        """The checked sections."""
        return [section for section, box in self.boxes.items() if box.isChecked()]

    def _show(self) -> None:
        held = list(flat(fragment(self._draft, self.sections(), self._settings)))
        self.table.show_rows(
            (tr("Setting"), tr("Value"), tr("In a spec")),
            [[title_of(self._settings, key), value_words(value), key] for key, value in held],
        )
        title = self.name.text()
        wrong = name_problem(title, self._shipped) or (
            "" if held else tr("Select the settings to include in the preset.")
        )
        replaces = next((one.title for one in self._own if title.strip() and one.name == file_name(title)), "")
        notice = tr("It replaces your preset “{replaces}”.", replaces=replaces) if replaces else ""
        self.mistake.setText((wrong or notice) if title.strip() else "")
        self.mistake.setVisible(bool(self.mistake.text()))
        self.save.setEnabled(not wrong)

    def _on_save(self) -> None:
        self.accept()
        self.agreed.emit(self.name.text(), self.description.text(), self.sections())


class PresetsDialog(QDialog):
    """`compare` returns what a preset would change in the current draft."""

    used = Signal(object)
    deleted = Signal(object)
    save_requested = Signal()

    def __init__(self, compare: Compare, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._compare = compare
        self._own: Sequence[Preset] = ()
        self.setWindowTitle(tr("Presets"))
        self.resize(880, 560)
        self.list = QListWidget()
        theme.role(self.list, "lines")
        self.list.setAccessibleName(tr("Presets"))
        self.list.setFixedWidth(270)
        self.list.currentItemChanged.connect(self._show)
        self.list.itemDoubleClicked.connect(self._on_use)
        self.title, self.description = label("", "section"), label("", "muted", wrap=True)
        self.said = label("", "faint")
        self.table = TextTable(tr("What the preset changes"))
        self.use = IconButton(tr("Use preset"), "check", "primary")
        self.delete = IconButton(tr("Delete"), "trash", "danger")
        self.save = IconButton(tr("Save the current settings as a preset"), "save")
        self.close_button = IconButton(tr("Close"), "close")
        self.use.clicked.connect(self._on_use)
        self.delete.clicked.connect(lambda: self.deleted.emit(self.preset()))
        self.save.clicked.connect(self.save_requested)
        self.close_button.clicked.connect(self.reject)
        self._place()

    def _place(self) -> None:
        right = QVBoxLayout()
        right.setSpacing(8)
        for widget in (self.title, self.description, self.said):
            right.addWidget(widget)
        right.addWidget(self.table, 1)
        middle = QHBoxLayout()
        middle.setSpacing(18)
        middle.addWidget(self.list)
        middle.addLayout(right, 1)
        foot = QHBoxLayout()
        foot.addWidget(self.save)
        foot.addStretch(1)
        for button in (self.delete, self.close_button, self.use):
            foot.addWidget(button)
        for button in (self.save, self.delete, self.close_button):
            button.setAutoDefault(False)
        self.use.setDefault(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(14)
        column.addLayout(middle, 1)
        column.addLayout(foot)

    def offer(
        self, own: Sequence[Preset], shipped: Sequence[Preset], titles: Mapping[str, str], chosen: Preset | None
    ) -> None:
        """List them by task, the user's own first."""
        self._own = own
        self.list.clear()
        groups: dict[str, list[Preset]] = {OWN: list(own)} if own else {}
        for preset in shipped:
            kind = str(preset.spec.get("task", {}).get("type") or "")
            groups.setdefault(titles.get(kind, ANY_TASK), []).append(preset)
        for heading, members in groups.items():
            self._add_heading(heading)
            for preset in members:
                item = QListWidgetItem(preset.title)
                item.setData(PRESET, preset)
                self.list.addItem(item)
                if preset == chosen:
                    self.list.setCurrentItem(item)
        if self.list.currentItem() is None and self.list.count() > 1:
            self.list.setCurrentRow(1)
        self._show()

    def _add_heading(self, words: str) -> None:
        item = QListWidgetItem(words.upper())
        item.setFlags(Qt.ItemFlag.NoItemFlags)
        item.setFont(theme.font(11))
        self.list.addItem(item)

    def preset(self) -> Preset | None:
        """The selected preset."""
        item = self.list.currentItem()
        return item.data(PRESET) if item is not None else None

    def _show(self) -> None:
        preset = self.preset()
        self.use.setEnabled(preset is not None)
        self.delete.setVisible(preset is not None and preset in self._own)
        if preset is None:
            return
        changes = self._compare(preset)
        self.title.setText(preset.title)
        self.description.setText(preset.description)
        self.description.setVisible(bool(preset.description))
        number = tr("1 setting") if len(changes) == 1 else tr("{number} settings", number=len(changes))
        self.said.setText(
            tr("Changes {number}:", number=number)
            if changes
            else tr("No changes: the page already has these settings.")
        )
        rows = [
            [one.setting.title, value_words(one.before), value_words(one.after), one.setting.key] for one in changes
        ]
        self.table.show_rows((tr("Setting"), tr("Now"), tr("With the preset"), tr("In a spec")), rows)

    def _on_use(self) -> None:
        preset = self.preset()
        if preset is not None:
            self.accept()
            self.used.emit(preset)
