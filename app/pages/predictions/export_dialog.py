"""Exports predictions: which rows and columns, in which format, and whether to protect spreadsheets."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QHBoxLayout, QLabel, QPushButton, QRadioButton, QVBoxLayout, QWidget

from app import theme
from app.core.backend_words import translate_word
from app.core.formatting import name_of_path
from app.core.i18n import tr, trn
from app.core.preferences import Preferences
from app.core.progress import RowPace
from app.services.backend_client import BackendClient, PendingQuery
from app.services.prediction_rows import PredictionRows, write_indices
from app.widgets.card import label
from app.widgets.progress import ActivityLine
from backend.contract.rpc.predictions import AT_THRESHOLD
from backend.contract.rpc.protocol import ErrorReply, ExportedFile, Progress

INDENT = 26
"""Pixels before words that belong to the choice above them."""
NAMED = 6
"""Columns that are named before the rest is only counted."""
BOM_HINT = tr("Adds a byte order mark, so that Excel and older spreadsheet programs detect UTF-8")
DEFUSE_HINT = tr(
    "Adds an apostrophe before cells starting with = + - @, so that a spreadsheet program does not run them as formulas"
)


@dataclass(frozen=True)
class ExportOffer:
    """What could be exported now."""

    shown_rows: int
    shown_columns: int
    rows: int
    columns: int
    left_out: tuple[str, ...] = ()
    """Titles of the columns that the table does not show."""
    derived: tuple[str, ...] = ()
    """Titles of the columns that are computed for the table, and not in the file."""
    threshold: str = ""
    """What the further column would say; empty where no threshold is tried."""


@dataclass(frozen=True)
class ExportChoice:
    """The user's choice; `suffix` is `csv` or `parquet`. The whole file means all rows with all columns."""

    shown_rows: bool
    shown_columns: bool
    suffix: str
    bom: bool
    defuse: bool
    threshold: bool


class ExportDialog(QDialog):
    """Emits `chosen`; the path is asked for afterwards. The spreadsheet options are remembered."""

    chosen = Signal(ExportChoice)

    def __init__(self, offer: ExportOffer, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self.setWindowTitle(tr("Export predictions"))
        self.setMinimumWidth(440)
        self._offer_rows(offer)
        self.csv, self.parquet = QRadioButton(tr("CSV (UTF-8)")), QRadioButton(tr("Parquet"))
        self.csv.setChecked(True)
        self.bom = QCheckBox(tr("Add UTF-8 BOM (for Excel)"))
        self.bom.setToolTip(BOM_HINT)
        self.bom.setChecked(preferences.csv_bom)
        self.defuse = QCheckBox(tr("Escape formulas (cells starting with = + - @)"))
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

    def _offer_rows(self, offer: ExportOffer) -> None:
        shown_rows = trn("{count} row", "{count} rows", offer.shown_rows)
        columns = trn("{count} column", "{count} columns", offer.shown_columns)
        left = len(offer.left_out)
        every = trn("{count} column", "{count} columns", offer.shown_columns + left)
        words = tr("As shown: {count}, {count_2}, in this order", count=shown_rows, count_2=columns)
        self.as_shown = QRadioButton(words)
        self.left_out = _explanation(tr("Without {names}", names=_names(offer.left_out)) if left else "")
        self.derived = _explanation(
            tr("Without {names}, which the table adds", names=_names(offer.derived)) if offer.derived else ""
        )
        self.all_columns = QRadioButton(
            tr("These rows with all columns: {count}, {count_2}, in this order", count=shown_rows, count_2=every)
        )
        self.all_columns.setVisible(left > 0)
        self.whole = QRadioButton(
            tr(
                "Whole file: {count}, {count_2}, in the original order",
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
            (tr("Rows"), (self.all_columns, self.as_shown, self.left_out, self.whole, self.derived, self.threshold)),
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
        """The current choice."""
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


def _explanation(words: str) -> QLabel:
    """A line below a choice; hidden if it says nothing."""
    made = label(words, "faint", wrap=True)
    made.setContentsMargins(INDENT, 0, 0, 0)
    made.setVisible(bool(words))
    return made


def _names(titles: tuple[str, ...]) -> str:
    names = ", ".join(titles[:NAMED])
    rest = len(titles) - NAMED
    if rest > 0:
        return trn("{names} and {count} more column", "{names} and {count} more columns", rest, names=names)
    return names


class PredictionsExport(QObject):
    """One export at a time."""

    message = Signal(str, str)
    wrote = Signal(str, str)
    """What was written, in words, and the file."""
    busy = Signal(bool)

    def __init__(self, client: BackendClient, line: ActivityLine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._line, self._pace = client, line, RowPace()
        self._ticket: PendingQuery | None = None
        line.stopped.connect(self._on_stopped)

    def export(
        self,
        rows: PredictionRows,
        output: str,
        choice: ExportChoice,
        indices: Sequence[int] | None,
        columns: Sequence[str],
    ) -> None:
        """Write the choice; `indices` and `columns` are those shown."""
        wanted = columns if choice.shown_columns else rows.columns if choice.shown_rows else None
        question: dict[str, Any] = {
            "parquet": str(rows.path),
            "indices": write_indices(indices) if choice.shown_rows and indices is not None else None,
            "columns": None if wanted is None else [name for name in wanted if name != AT_THRESHOLD],
            "output": output,
            "format": choice.suffix,
            "defuse": choice.defuse,
            "bom": choice.bom,
        }
        if choice.threshold and rows.threshold is not None:
            label, value = rows.threshold
            question["threshold"] = {"label": label, "value": value}
        self._pace.begin()
        self._line.begin(tr("Writing {output}", output=name_of_path(output)))
        self.busy.emit(True)
        self._ticket = self._client.ask(
            "export_predictions", question, self._on_exported, self._on_mistake, self._on_progress
        )

    def _on_progress(self, progress: Progress) -> None:
        words = self._pace.words(progress.done, progress.total, translate_word(progress.unit), time.monotonic())
        self._line.show_progress(words, progress.done / progress.total if progress.total else None)

    def _on_exported(self, answer: ExportedFile) -> None:
        self._end()
        words = tr(
            "Exported {count} to {path}.", count=trn("{count} row", "{count} rows", answer.rows), path=answer.path
        )
        self.wrote.emit(words, answer.path)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self._end()
        self.message.emit("error", mistake.message)

    def _on_stopped(self) -> None:
        if self._ticket is not None:
            self._ticket.cancel()
            self._end()
            self.message.emit("info", tr("Export stopped. No file was written."))

    def _end(self) -> None:
        self._ticket = None
        self._line.end()
        self.busy.emit(False)
