"""Predicts a data file with a run: progress, a stop button, and a form that maps differently named columns."""

import time
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core.backend_words import translate_word
from app.core.formatting import metric_title, sentence, sure_number, with_full_stop
from app.core.i18n import inside, tr, trn
from app.core.progress import RowPace
from app.services.backend_client import BackendClient, PendingQuery
from app.widgets.banner import Banner
from app.widgets.card import label
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconToolButton
from app.widgets.progress import ActivityLine
from backend.contract.rpc.predictions import FileFit, PredictedFile
from backend.contract.rpc.protocol import ErrorReply, Progress

NONE = tr("No column")
PATTERNS = tr(
    "Data (*.csv *.tsv *.json *.jsonl *.parquet *.arrow *.xlsx *.xls *.ods *.txt *.conll *.gz *.zip);;All files (*)"
)


class FilePrediction(QWidget):
    """Hidden unless columns must be chosen or a file cannot be read; `line`, placed elsewhere, shows the progress."""

    message = Signal(str, str)
    predicted = Signal(str, str)
    """Run folder and the name of the predictions that were written."""
    busy = Signal(bool)

    def __init__(self, client: BackendClient, line: ActivityLine, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._client, self._pace = client, RowPace()
        self._ticket: PendingQuery | None = None
        self._run, self._data = Path(), Path()
        self._columns: dict[str, str] = {}
        self._settings: dict[str, Any] = {}
        self._stage = ""
        self.banner = Banner()
        """Why the file cannot be read, and a way out."""
        self.banner.fix_taken.connect(lambda changes: self.predict(self._run, self._data, self._columns, changes))
        self.line = line
        self.line.stopped.connect(self.stop)
        self.mapping = QFrame()
        theme.role(self.mapping, "banner-warning")
        self.sentence = label("", wrap=True, selectable=True)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(2, 1)
        self.choices: dict[str, QuietComboBox] = {}
        self.go = QPushButton(tr("Predict"))
        theme.role(self.go, "primary")
        self.go.clicked.connect(self._on_mapped)
        self._lay_out()
        self.setVisible(False)

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self.sentence, 1)
        for row in (top, self.banner.buttons):
            close = IconToolButton("close", tr("Cancel predicting this file"))
            close.clicked.connect(self._hide)
            row.addWidget(close)
        bottom = QHBoxLayout()
        bottom.addLayout(self._grid, 1)
        bottom.addWidget(self.go)
        inner = QVBoxLayout(self.mapping)
        inner.setContentsMargins(14, 10, 10, 10)
        inner.addLayout(top)
        inner.addLayout(bottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        for part in (self.banner, self.mapping):
            column.addWidget(part)

    @property
    def is_busy(self) -> bool:
        """Whether a file is being predicted."""
        return self._ticket is not None

    def predict(
        self,
        run: Path,
        data: Path,
        columns: dict[str, str] | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        """Let a run predict a file; `columns` maps roles to columns if their names differ.

        `settings`, dotted keys of a spec, say how the file is read.
        """
        if self.is_busy:
            self.message.emit(
                "info", tr("Still predicting {name}. Stop it or wait until it finishes.", name=self._data.name)
            )
            return
        self._run, self._data, self._stage = run, data, tr("Starting")
        self._columns, self._settings = columns or {}, settings or {}
        question = self._question()
        self.mapping.hide()
        self.banner.clear()
        self.line.begin(tr("Predicting {name}", name=data.name))
        self.setVisible(False)
        self.busy.emit(True)
        self._ticket = self._client.ask(
            "predict_file", question, self._on_predicted, self._on_mistake, self._on_progress
        )

    def _question(self) -> dict[str, Any]:
        return {
            "run": str(self._run),
            "data": str(self._data),
            "columns": self._columns,
            "settings": self._settings,
        }

    def stop(self) -> None:
        """Stop it; nothing is written."""
        if self._ticket is not None:
            self._ticket.cancel()
            self._hide()
            self.message.emit("info", tr("Stopped. No predictions were written for {name}.", name=self._data.name))

    def _on_progress(self, progress: Progress) -> None:
        if progress.text:
            self._stage = translate_word(progress.text)
            self._pace.begin()
            self.line.show_progress(self._stage, None)
            return
        words = self._pace.words(progress.done, progress.total, translate_word(progress.unit), time.monotonic())
        fraction = progress.done / progress.total if progress.total else None
        self.line.show_progress(f"{self._stage}: {words}" if self._stage != tr("Predicting") else words, fraction)

    def _on_predicted(self, answer: PredictedFile) -> None:
        self._hide()
        sentence = tr(
            "Predicted {count} of {name} and saved them to {name_2}.",
            count=trn("{count} row", "{count} rows", answer.rows),
            name=self._data.name,
            name_2=Path(answer.csv).name,
        )
        measured = [
            f"{metric_title(name)} {sure_number(value, answer.intervals.get(name))}"
            for name, value in answer.metrics.items()
            if name != "loss"
        ]
        if measured:
            sentence = f"{sentence} {measured[0]}."
        if answer.skipped_count:
            left_out = trn("{count} row", "{count} rows", answer.skipped_count)
            sentence = tr(
                "{said} {left_out} couldn't be used; the first one: {skipped}.",
                said=sentence,
                left_out=left_out,
                skipped=answer.skipped[0],
            )
        sentence = " ".join([sentence, *map(with_full_stop, answer.notes)])
        self.message.emit("warning" if answer.skipped_count or answer.notes else "success", sentence)
        self.predicted.emit(str(self._run), answer.name)

    def _on_mistake(self, mistake: ErrorReply) -> None:
        if mistake.fix is None and mistake.field and mistake.field.startswith("data.columns."):
            # Still busy: the columns that come are those of this file.
            self.line.show_progress(tr("Reading the columns"), None)
            self._ticket = self._client.ask("file_parts", self._question(), self._offer_mapping, self._refuse)
            return
        self._refuse(mistake)

    def _refuse(self, mistake: ErrorReply) -> None:
        self._hide()
        if mistake.fix is not None:
            self.banner.offer_fix(mistake.fix)
            self.setVisible(True)
            return
        self.message.emit("error", f"{self._data.name}: {sentence(mistake.message, mistake.field)}")

    # Columns of other names

    def _offer_mapping(self, fit: FileFit) -> None:
        self._hide()
        needed = ", ".join(inside(part.title) for part in fit.parts if part.needed)
        self.sentence.setText(
            tr(
                "{name} has the columns {columns}, but this run needs {needed}. Choose a column for each.",
                name=self._data.name,
                columns=", ".join(fit.columns),
                needed=needed,
            )
        )
        while item := self._grid.takeAt(0):
            item.widget().hide()  # type: ignore[union-attr]
            item.widget().deleteLater()  # type: ignore[union-attr]
        self.choices.clear()
        for place, part in enumerate(fit.parts):
            box = QuietComboBox()
            box.setAccessibleName(part.title)
            box.setMinimumContentsLength(34)
            box.addItem(NONE, "")
            for column in fit.columns:
                first = fit.first.get(column, "")
                box.addItem(f"{column}   ({first[:40]})" if first else column, column)
            box.setCurrentIndex(max(0, box.findData(part.column)))
            box.currentIndexChanged.connect(self._on_choice)
            box.setProperty("needed", part.needed)
            self.choices[part.name] = box
            self._grid.addWidget(
                label(part.title if part.needed else tr("{title} (optional)", title=part.title)), place, 0
            )
            self._grid.addWidget(box, place, 1)
        self._on_choice()
        self.mapping.show()
        self.setVisible(True)
        self.go.setFocus()

    def _on_choice(self) -> None:
        missing = [
            box.accessibleName() for box in self.choices.values() if box.property("needed") and not box.currentData()
        ]
        self.go.setEnabled(not missing)
        self.go.setToolTip(
            tr("Choose a column for {missing} first", missing=inside(", ".join(missing))) if missing else ""
        )

    def _on_mapped(self) -> None:
        columns = {name: box.currentData() for name, box in self.choices.items()}
        self.predict(self._run, self._data, columns, self._settings)

    def _hide(self) -> None:
        self._ticket = None
        self.line.end()
        self.banner.clear()
        self.mapping.hide()
        self.setVisible(False)
        self.busy.emit(False)
