"""Owns the window in which presets are looked through: what each is for, and which settings it would change to what."""

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app import theme
from app.core.draft.setting_index import Difference, value_words
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.icon_label import IconButton
from app.widgets.tables.text_table import TextTable
from backend.contract.catalog import Preset

Compare = Callable[[Preset], list[Difference]]
OWN, ANY_TASK = tr("Your own"), tr("Any task")
PRESET = Qt.ItemDataRole.UserRole


class PresetsDialog(QDialog):
    """`compare` says what a preset would change in the present draft."""

    used = Signal(object)
    deleted = Signal(object)
    save_asked = Signal()

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
        self.use = IconButton(tr("Use this preset"), "check", "primary")
        self.delete = IconButton(tr("Delete"), "trash", "danger")
        self.save = IconButton(tr("Save the present settings as a preset"), "save")
        self.close_button = IconButton(tr("Close"), "close")
        self.use.clicked.connect(self._on_use)
        self.delete.clicked.connect(lambda: self.deleted.emit(self.preset()))
        self.save.clicked.connect(self.save_asked)
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
        """List them under their tasks, a person's own first."""
        self._own = own
        self.list.clear()
        groups: dict[str, list[Preset]] = {OWN: list(own)} if own else {}
        for preset in shipped:
            kind = str(preset.spec.get("task", {}).get("type") or "")
            groups.setdefault(titles.get(kind, ANY_TASK), []).append(preset)
        for heading, presets in groups.items():
            self._add_heading(heading)
            for preset in presets:
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
        """What is looked at."""
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
            tr("Changes {number} of the page:", number=number)
            if changes
            else tr("Changes nothing: the page is set like this already.")
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
