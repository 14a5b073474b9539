"""Owns the question of what to take home: which rows with which columns, in which format, safe for which program."""

from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QHBoxLayout, QPushButton, QRadioButton, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr, trn
from app.core.preferences import Preferences
from app.widgets.card import label

INDENT = 26
"""Pixels before words that belong to the choice above them."""
NAMED = 6
"""Columns that are named before the rest is only counted."""
BOM_HINT = tr("A mark at the file's beginning, without which older spreadsheets take UTF-8 for something else")
DEFUSE_HINT = tr("An apostrophe before cells that begin with = + - @, which a spreadsheet would run as a formula")


@dataclass(frozen=True)
class Offer:
    """What could be written now."""

    shown_rows: int
    shown_columns: int
    rows: int
    columns: int
    left_out: tuple[str, ...] = ()
    """Titles of the columns that the table does not show."""
    threshold: str = ""
    """What the further column would say; empty where no threshold is tried."""


@dataclass(frozen=True)
class ExportChoice:
    """What a person has chosen; `suffix` is `csv` or `parquet`. The whole file is all rows with all columns."""

    shown_rows: bool
    shown_columns: bool
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
        self.setWindowTitle(tr("Export predictions"))
        self.setMinimumWidth(440)
        self._offer_rows(offer)
        self.csv, self.parquet = QRadioButton(tr("CSV (UTF-8)")), QRadioButton(tr("Parquet"))
        self.csv.setChecked(True)
        self.bom = QCheckBox(tr("Begin with a byte order mark"))
        self.bom.setToolTip(BOM_HINT)
        self.bom.setChecked(preferences.csv_bom)
        self.defuse = QCheckBox(tr("Defuse cells that begin with = + - @"))
        self.defuse.setToolTip(DEFUSE_HINT)
        self.defuse.setChecked(preferences.csv_defuse)
        self.threshold = QCheckBox(offer.threshold)
        self.threshold.setChecked(bool(offer.threshold))
        self.threshold.setVisible(bool(offer.threshold))
        self.csv.toggled.connect(self._on_format)
        self.save = QPushButton(tr("Save as…"))
        theme.role(self.save, "primary")
        self.save.setDefault(True)
        self.save.clicked.connect(self._on_save)
        self.cancel = QPushButton(tr("Cancel"))
        self.cancel.clicked.connect(self.reject)
        self._lay_out()

    def _offer_rows(self, offer: Offer) -> None:
        shown = trn("{count} row", "{count} rows", offer.shown_rows)
        columns = trn("{count} column", "{count} columns", offer.shown_columns)
        left = len(offer.left_out)
        every = trn("{count} column", "{count} columns", offer.shown_columns + left)
        words = tr("As shown: {count}, {count_2}, in this order", count=shown, count_2=columns)
        self.as_shown = QRadioButton(words)
        self.left_out = label(_left_out_words(offer.left_out), "faint", wrap=True)
        self.left_out.setContentsMargins(INDENT, 0, 0, 0)
        self.left_out.setVisible(left > 0)
        self.all_columns = QRadioButton(
            tr("These rows, all columns: {count}, {count_2}, in this order", count=shown, count_2=every)
        )
        self.all_columns.setVisible(left > 0)
        self.whole = QRadioButton(
            tr(
                "The whole file: {count}, {count_2}, as the run wrote it",
                count=trn("{count} row", "{count} rows", offer.rows),
                count_2=trn("{count} column", "{count} columns", offer.columns),
            )
        )
        is_part = offer.shown_rows < offer.rows
        (self.all_columns if left and is_part else self.as_shown).setChecked(True)

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.save)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(8)
        for title, widgets in (
            (tr("Rows"), (self.all_columns, self.as_shown, self.left_out, self.whole, self.threshold)),
            (tr("Format"), (self.csv, self.parquet)),
            (tr("For spreadsheets"), (self.bom, self.defuse)),
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
            shown_rows=not self.whole.isChecked(),
            shown_columns=self.as_shown.isChecked(),
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


def _left_out_words(titles: tuple[str, ...]) -> str:
    names = ", ".join(titles[:NAMED])
    rest = len(titles) - NAMED
    if rest > 0:
        return trn(
            "Without {names} and {count} more column", "Without {names} and {count} more columns", rest, names=names
        )
    return tr("Without {names}", names=names)
