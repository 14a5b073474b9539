"""Adds an answered row to the user's own CSV file, with the correct answer if it is given."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QWidget

from app import theme
from app.core.formatting import name_of_path, sentence
from app.core.i18n import tr, trn
from app.core.predictions.interactive import AnsweredQuestion
from app.services.context import AppContext
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconButton, IconToolButton
from backend.contract.rpc.interactive import AddedRow
from backend.contract.rpc.protocol import ErrorReply

MAX_LABELS = 500
SHORT = 16
"""Letters of a file's name on the button."""
WITH_WORDS = 380
"""Pixels from which on the button shows its words."""
NOT_SAID = tr("Correct answer")


class FeedbackController(QObject):
    """Controls a bar; `show_question` sets its answer."""

    message = Signal(str, str)
    changed = Signal(object, object)
    """An AnsweredQuestion, and what has become of it: the right answer was said, or it was added."""

    def __init__(self, context: AppContext, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._question: AnsweredQuestion | None = None
        self.bar = FeedbackBar()
        self.bar.show_file(context.preferences.rows_file)
        self.bar.hide()
        self.bar.add_requested.connect(self.add_row)
        self.bar.file_chosen.connect(self.choose_file)
        self.bar.right_changed.connect(self._on_right_changed)

    def show_question(self, question: AnsweredQuestion | None, has_right: bool = False) -> None:
        """Show another answer, or none; `has_right` if the task has a column for the right answer."""
        self._question = question
        self.bar.setVisible(question is not None)
        if question is not None:
            names = [name for name in question.row if name.startswith("probability_")]
            labels = [name.removeprefix("probability_") for name in names]
            self.bar.show_question(question, labels, has_right)

    def choose_file(self, path: str) -> None:
        """From now on add rows to this file, also in later sessions."""
        self._context.preferences.set("rows_file", path)
        self.bar.show_file(path)

    def add_row(self) -> None:
        """Add the answer shown, with the right answer if given."""
        snapshot, preferences = self._question, self._context.preferences
        if snapshot is None:
            return
        question = snapshot.question
        arguments: dict[str, Any] = {
            "path": preferences.rows_file,
            "task": {**question.chosen.settings, "type": question.task},
            "columns": dict(question.chosen.columns),
            "row": {**snapshot.row, **question.row},
            "right": snapshot.right or None,
            "defuse": preferences.csv_defuse,
            "bom": preferences.csv_bom,
        }
        self.bar.show_busy(True)
        self._context.client.ask("add_row", arguments, partial(self._on_added, snapshot), self._on_not_added)

    def _on_right_changed(self, right: str) -> None:
        if self._question is not None and right != self._question.right:
            self._become(self._question, self._question.with_right(right))

    def _on_added(self, question: AnsweredQuestion, answer: AddedRow) -> None:
        self.bar.show_busy(False)
        file = name_of_path(answer.path)
        rows = (
            ""
            if answer.rows is None
            else tr(", which now has {count}", count=trn("{count} row", "{count} rows", answer.rows))
        )
        self.message.emit(
            "success",
            tr("Created {file} with this row.", file=file)
            if answer.created
            else tr("Added to {file}{rows}.", file=file, rows=rows),
        )
        self._become(question, replace(question, added=answer.path))

    def _become(self, question: AnsweredQuestion, now: AnsweredQuestion) -> None:
        if self._question is question:
            self._question = now
            self.bar.show_added(now.added)
        self.changed.emit(question, now)

    def _on_not_added(self, mistake: ErrorReply) -> None:
        self.bar.show_busy(False)
        self.message.emit("error", sentence(mistake.message, mistake.field))


class FeedbackBar(QWidget):
    """Emits requests; it writes nothing itself."""

    add_requested = Signal()
    file_chosen = Signal(str)
    right_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._file = ""
        self.right = QuietComboBox()
        self.right.setEditable(True)
        self.right.setAccessibleName(NOT_SAID)
        self.right.setToolTip(
            tr(
                "If the prediction is wrong, enter the correct answer. It is added to the file, so that "
                "you can train on it."
            )
        )
        self.right.setMinimumWidth(110)
        line = self.right.lineEdit()
        assert line is not None
        line.setPlaceholderText(NOT_SAID)
        self.right.currentTextChanged.connect(lambda text: self.right_changed.emit(text.strip()))
        self.agree = IconToolButton("check", tr("The prediction is correct"), "success")
        self.agree.clicked.connect(lambda: self.right.setEditText(self._predicted))
        self.add_button = IconButton(tr("Add to CSV…"), "plus")
        self.add_button.clicked.connect(self._on_add)
        self.choose = IconToolButton("folder", tr("Choose the CSV file to add rows to"))
        self.choose.clicked.connect(self._choose)
        self._predicted = ""
        self._words = self.add_button.text()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self.right, 1)
        row.addStretch(0)  # the buttons stay at the end without the field
        row.addWidget(self.agree)
        row.addSpacing(8)
        row.addWidget(self.add_button)
        row.addWidget(self.choose)

    def show_file(self, path: str) -> None:
        """The file that rows are added to."""
        self._file = path
        self.show_added("")

    def show_question(self, question: AnsweredQuestion, labels: Sequence[str], has_right: bool) -> None:
        """Show another answer; `has_right` if the task has a column for the right answer."""
        self._predicted = str(question.row.get("prediction") or "")
        self.right.blockSignals(True)
        self.right.clear()
        self.right.addItems(list(labels[:MAX_LABELS]))
        self.right.setCurrentIndex(-1)
        self.right.setEditText(question.right)
        self.right.blockSignals(False)
        for widget in (self.right, self.agree):
            widget.setVisible(has_right)
        self.show_added(question.added)

    def show_added(self, path: str) -> None:
        """Show whether the row has been added to a file; it may be added again."""
        name = name_of_path(path or self._file)
        short = name if len(name) <= SHORT else f"{name[:SHORT]}…"
        self.add_button.set_icon("check" if path else "plus")
        self._words = (
            tr("Added to {short}", short=short)
            if path
            else tr("Add to {short}", short=short)
            if name
            else tr("Add to CSV…")
        )
        self._fit()
        added = tr("Added to {path}. Click again to add the row another time", path=path)
        first = (
            tr("Add this row to {file}", file=self._file) if name else tr("Choose a CSV file and add this row to it")
        )
        self.add_button.setToolTip(added if path else first)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Without room for the button's words it shows its icon alone."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self.add_button.setText(self._words if self.width() >= theme.pixels(WITH_WORDS) else "")
        self.add_button.setAccessibleName(self._words)

    def show_busy(self, busy: bool) -> None:
        """Show that a row is being written."""
        self.add_button.setEnabled(not busy)

    def _on_add(self) -> None:
        if self._file or self._choose():
            self.add_requested.emit()

    def _choose(self) -> bool:
        """Ask for a file; an existing one is extended, not replaced."""
        suggested = self._file or str(Path.home() / "rows.csv")
        path, _ = QFileDialog.getSaveFileName(
            self,
            tr("Add rows to a CSV file"),
            suggested,
            tr("Tables (*.csv *.tsv)"),
            options=QFileDialog.Option.DontConfirmOverwrite,
        )
        if path:
            self.file_chosen.emit(path)
        return bool(path)
