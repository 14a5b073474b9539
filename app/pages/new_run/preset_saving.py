"""Owns the window in which the present settings are kept as a preset: its name, what it is for, and which sections."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QGridLayout, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.core.draft.draft import Draft, flat
from app.core.draft.setting_index import Setting, title_of, value_words
from app.core.draft.user_presets import CHOICES, file_name, fragment, problem
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.forms.form_grid import Rows
from app.widgets.icon_label import IconButton
from app.widgets.tables.text_table import TextTable
from backend.contract.catalog import Preset

AT_FIRST = ("task", "training", "evaluation", "adapter")


class PresetSaving(QDialog):
    """Emits `agreed` with title, description and sections."""

    agreed = Signal(str, str, list)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._draft, self._settings = Draft(), dict[str, Setting]()
        self._shipped: Sequence[Preset] = ()
        self._own: Sequence[Preset] = ()
        self.setWindowTitle(tr("Save as a preset"))
        self.resize(600, 560)
        self.name = QLineEdit(placeholderText=tr("For example: short texts, careful"))
        self.name.setMaxLength(80)
        self.description = QLineEdit(placeholderText=tr("What it is good for"))
        self.boxes = {section: QCheckBox(title) for section, title in CHOICES.items()}
        self.table = TextTable(tr("What the preset will hold"))
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
        rows = Rows()
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
        column.addWidget(label(tr("What the preset sets when it is used:"), "muted"))
        column.addLayout(choices)
        column.addWidget(self.table, 1)
        column.addLayout(foot)

    def offer(
        self, draft: Draft, settings: Mapping[str, Setting], shipped: Sequence[Preset], own: Sequence[Preset]
    ) -> None:
        """Begin with what of a draft is usually kept."""
        self._draft, self._settings, self._shipped, self._own = draft.copied(), dict(settings), shipped, own
        self.name.clear()
        self.description.clear()
        for section, box in self.boxes.items():
            holds = bool(fragment(self._draft, [section], self._settings))
            box.setEnabled(holds)
            box.setChecked(holds and section in AT_FIRST)
            box.setToolTip("" if holds else tr("Nothing of this is set"))
        self._show()
        self.name.setFocus()

    def sections(self) -> list[str]:
        """What is ticked."""
        return [section for section, box in self.boxes.items() if box.isChecked()]

    def _show(self) -> None:
        held = list(flat(fragment(self._draft, self.sections(), self._settings)))
        self.table.show_rows(
            (tr("Setting"), tr("Value"), tr("In a spec")),
            [[title_of(self._settings, key), value_words(value), key] for key, value in held],
        )
        title = self.name.text()
        wrong = problem(title, self._shipped) or ("" if held else tr("Tick what the preset shall set."))
        replaces = next((one.title for one in self._own if title.strip() and one.name == file_name(title)), "")
        said = tr("It takes the place of your preset “{replaces}”.", replaces=replaces) if replaces else ""
        self.mistake.setText((wrong or said) if title.strip() else "")
        self.mistake.setVisible(bool(self.mistake.text()))
        self.save.setEnabled(not wrong)

    def _on_save(self) -> None:
        self.accept()
        self.agreed.emit(self.name.text(), self.description.text(), self.sections())
