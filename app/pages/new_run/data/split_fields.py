"""Chooses the training, validation and test data: files, or splits of a source."""

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app import theme
from app.core.draft.data_source import SplitKind
from app.core.draft.draft import Draft
from app.core.i18n import figure, plain, tr
from app.widgets.card import FormGrid
from app.widgets.forms.inputs import NumberLine, QuietComboBox
from app.widgets.forms.path_field import PathField

FRACTION, FILE, SPLIT, OWN, NONE = (
    tr("A fraction"),
    tr("A file"),
    tr("A split"),
    tr("The dataset's own split"),
    tr("None"),
)
KINDS: dict[SplitKind, tuple[str, ...]] = {
    "files": (FRACTION, FILE, NONE), "names": (FRACTION, SPLIT, NONE),
    "own": (OWN, FRACTION, SPLIT), "fixed": (OWN, FRACTION),
}  # fmt: skip
HINTS: dict[SplitKind, tuple[str, str, str]] = {
    "files": (
        tr("A file or folder, or drop one here"),
        tr("A file in the same format"),
        tr("Optional. Scored once, at the end"),
    ),
    "names": (
        tr("Split name, for example train"),
        tr("For example, validation"),
        tr("Optional. Scored once, at the end"),
    ),
    "own": (tr("The dataset's own split"), tr("Split name"), tr("Optional, for example test. Scored once")),
    "fixed": ("", "", ""),
}

KIND_WIDTH = 112
"""Pixels of the drop-down, whatever is beside it."""


class SplitFields(QWidget):
    """Emits `changed` with the dotted key of the spec, and `refused` with a sentence for an invalid fraction."""

    changed = Signal(str, object)
    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind: SplitKind = "files"
        self._shown: Any = None
        self.train = PathField(tr("Training data"), "")
        self.validation_kind = QuietComboBox()
        self.validation_kind.textActivated.connect(self._on_kind)
        self.fraction = NumberLine(whole=False)
        self.fraction.setAccessibleName(tr("Fraction of training rows for validation"))
        self.fraction.setFixedWidth(72)
        self.fraction.editingFinished.connect(self._on_fraction)
        self.validation = PathField(tr("Validation data"), "")
        self.test = PathField(tr("Test data"), "")
        for key, field in (("train", self.train), ("validation", self.validation), ("test", self.test)):
            field.changed.connect(lambda value, key=key: self.changed.emit(f"data.{key}", value))
        rows = FormGrid()
        rows.setContentsMargins(0, 0, 0, 0)
        self._captions: list[tuple[QLabel, QWidget]] = [
            (rows.add(tr("Training"), self.train), self.train),
            (rows.add(tr("Validation"), self._both(), self.validation_kind), self.validation_kind),
            (rows.add(tr("Test"), self.test), self.test),
        ]
        self.setLayout(rows)
        self._take_kind("files")

    def fields(self) -> dict[str, PathField]:
        """Split → its field for files."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def _both(self) -> QWidget:
        both = QWidget()
        row = QHBoxLayout(both)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        self.validation_kind.setFixedWidth(theme.pixels(KIND_WIDTH))
        row.addWidget(self.validation_kind)
        row.addWidget(self.fraction)
        row.addWidget(self.validation, 1)
        row.addStretch(0)
        return both

    def show_draft(self, draft: Draft, kind: SplitKind) -> None:
        """Show the draft's splits for such a source."""
        if kind != self._kind:
            self._take_kind(kind)
        self.train.set_value(draft.get("data.train"))
        self.test.set_value(draft.get("data.test"))
        self._show_validation(draft.get("data.validation"))

    def _take_kind(self, kind: SplitKind) -> None:
        self._kind = kind
        self.validation_kind.clear()
        self.validation_kind.addItems(KINDS[kind])
        for field, hint in zip((self.train, self.validation, self.test), HINTS[kind], strict=True):
            field.set_browsing(kind == "files", hint)
        for caption, field in self._captions:
            for widget in (caption, field):
                widget.setVisible(kind != "fixed" or field is self.validation_kind)

    def _show_validation(self, value: Any) -> None:
        self._shown = value
        is_fraction = isinstance(value, int | float)
        first, _, last = (*KINDS[self._kind], NONE)[:3]
        named = next((name for name in (FILE, SPLIT) if name in KINDS[self._kind]), OWN)
        absent = first if OWN in KINDS[self._kind] else last
        self.validation_kind.setCurrentText(FRACTION if is_fraction else named if value else absent)
        self.fraction.setVisible(is_fraction)
        self.validation.setVisible(bool(value) and not is_fraction)
        if is_fraction:
            self.fraction.setText(figure(value, "g"))
        self.validation.set_value(value if isinstance(value, str | list) else None)

    def _on_kind(self, kind: str) -> None:
        if kind == FRACTION:
            self.changed.emit("data.validation", 0.1)
        elif kind in (NONE, OWN):
            self.changed.emit("data.validation", None)
        else:
            self.fraction.hide()
            self.validation.show()
            self.validation.line.setFocus()

    def _on_fraction(self) -> None:
        try:
            value = float(plain(self.fraction.text().strip()))
        except ValueError:
            value = 0.0
        if 0 < value < 1:
            self.changed.emit("data.validation", value)
        else:
            self._show_validation(self._shown)
            self.refused.emit(
                tr("The validation fraction must be between 0 and 1, for example 0.1. Nothing was changed.")
            )
