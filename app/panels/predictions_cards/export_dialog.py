"""Owns the question of what to take home: the rows as shown or all, in which format, safe for which program."""

from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QHBoxLayout, QPushButton, QRadioButton, QVBoxLayout, QWidget

from app import theme
from app.core.preferences import Preferences
from app.core.wording import count
from app.widgets.card import label

BOM_HINT = "A mark at the file's beginning, without which older spreadsheets take UTF-8 for something else"
DEFUSE_HINT = "An apostrophe before cells that begin with = + - @, which a spreadsheet would run as a formula"


@dataclass(frozen=True)
class Offer:
    """What could be written now."""

    shown_rows: int
    shown_columns: int
    rows: int
    columns: int
    threshold: str = ""
    """What the further column would say; empty where no threshold is tried."""


@dataclass(frozen=True)
class ExportChoice:
    """What a person has chosen; `suffix` is `csv` or `parquet`."""

    as_shown: bool
    suffix: str
    bom: bool
    defuse: bool
    threshold: bool


class ExportDialog(QDialog):
    """Emits `chosen`; where to is asked afterwards. The spreadsheet options are remembered."""

    chosen = Signal(ExportChoice)

    def __init__(self, offer: Offer, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self.setWindowTitle("Export predictions")
        self.setMinimumWidth(440)
        self.as_shown = QRadioButton(
            f"As shown: {count(offer.shown_rows, 'row')}, {count(offer.shown_columns, 'column')}, in this order"
        )
        self.whole = QRadioButton(
            f"The whole file: {count(offer.rows, 'row')}, {count(offer.columns, 'column')}, as the run wrote it"
        )
        self.as_shown.setChecked(True)
        self.csv, self.parquet = QRadioButton("CSV (UTF-8)"), QRadioButton("Parquet")
        self.csv.setChecked(True)
        self.bom = QCheckBox("Begin with a byte order mark")
        self.bom.setToolTip(BOM_HINT)
        self.bom.setChecked(preferences.csv_bom)
        self.defuse = QCheckBox("Defuse cells that begin with = + - @")
        self.defuse.setToolTip(DEFUSE_HINT)
        self.defuse.setChecked(preferences.csv_defuse)
        self.threshold = QCheckBox(offer.threshold)
        self.threshold.setChecked(bool(offer.threshold))
        self.threshold.setVisible(bool(offer.threshold))
        self.csv.toggled.connect(self._on_format)
        self.save = QPushButton("Save as…")
        theme.role(self.save, "primary")
        self.save.setDefault(True)
        self.save.clicked.connect(self._on_save)
        self.cancel = QPushButton("Cancel")
        self.cancel.clicked.connect(self.reject)
        self._lay_out()

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.save)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(8)
        for title, widgets in (
            ("Rows", (self.as_shown, self.whole, self.threshold)),
            ("Format", (self.csv, self.parquet)),
            ("For spreadsheets", (self.bom, self.defuse)),
        ):
            group = QWidget(self)
            inner = QVBoxLayout(group)  # radio buttons exclude each other within one parent
            inner.setContentsMargins(0, 0, 0, 6)
            inner.setSpacing(6)
            inner.addWidget(label(title, "section"))
            for widget in widgets:
                inner.addWidget(widget)
            column.addWidget(group)
        column.addLayout(buttons)

    def _on_format(self, is_csv: bool) -> None:
        for box in (self.bom, self.defuse):
            box.setEnabled(is_csv)

    def choice(self) -> ExportChoice:
        """What is chosen now."""
        is_csv = self.csv.isChecked()
        return ExportChoice(
            as_shown=self.as_shown.isChecked(),
            suffix="csv" if is_csv else "parquet",
            bom=is_csv and self.bom.isChecked(),
            defuse=is_csv and self.defuse.isChecked(),
            threshold=self.threshold.isChecked() and not self.threshold.isHidden(),
        )

    def _on_save(self) -> None:
        for name, box in (("csv_bom", self.bom), ("csv_defuse", self.defuse)):
            if getattr(self._preferences, name) != box.isChecked():
                self._preferences.set(name, box.isChecked())
        self.accept()
        self.chosen.emit(self.choice())
