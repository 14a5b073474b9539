"""Owns the way of an answered row into a person's own file: which file, what is right, and what came of it."""

from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.formatting import name_of_path, sentence
from app.core.i18n import tr, trn
from app.core.predictions.interactive_answers import Asked
from app.pages.predictions.interactive.feedback_bar import CollectBar
from app.services.context import AppContext
from backend.contract.rpc.feedback import AddedRow
from backend.contract.rpc.queries import Mistake


class Collecting(QObject):
    """Serves a bar; the answer it is about is given with `show_asked`."""

    message = Signal(str, str)
    changed = Signal(object, object)
    """An Asked, and what has become of it: the right answer was said, or it was added."""

    def __init__(self, context: AppContext, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._asked: Asked | None = None
        self.bar = CollectBar()
        self.bar.show_file(context.preferences.rows_file)
        self.bar.hide()
        self.bar.add_requested.connect(self.add_row)
        self.bar.file_chosen.connect(self.choose_file)
        self.bar.right_changed.connect(self._on_right_changed)

    def show_asked(self, asked: Asked | None, has_right: bool = False) -> None:
        """Another answer, or none; `has_right` where the task has a column for what is right."""
        self._asked = asked
        self.bar.setVisible(asked is not None)
        if asked is not None:
            names = [name for name in asked.row if name.startswith("probability_")]
            labels = [name.removeprefix("probability_") for name in names]
            self.bar.show_asked(asked, labels, has_right)

    def choose_file(self, path: str) -> None:
        """Rows are added to this file from now on, also in the next session."""
        self._context.preferences.set("rows_file", path)
        self.bar.show_file(path)

    def add_row(self) -> None:
        """Add the answer that is shown, with the right answer where it was said."""
        asked, preferences = self._asked, self._context.preferences
        if asked is None:
            return
        question = asked.question
        arguments: dict[str, Any] = {
            "path": preferences.rows_file,
            "task": {**question.chosen.settings, "type": question.task},
            "columns": dict(question.chosen.columns),
            "row": {**asked.row, **question.row},
            "right": asked.right or None,
            "defuse": preferences.csv_defuse,
            "bom": preferences.csv_bom,
        }
        self.bar.show_busy(True)
        self._context.client.ask("add_row", arguments, partial(self._on_added, asked), self._on_not_added)

    def _on_right_changed(self, right: str) -> None:
        if self._asked is not None and right != self._asked.right:
            self._become(self._asked, self._asked.with_right(right))

    def _on_added(self, asked: Asked, answer: AddedRow) -> None:
        self.bar.show_busy(False)
        file = name_of_path(answer.path)
        rows = (
            ""
            if answer.rows is None
            else tr(", which has {count} now", count=trn("{count} row", "{count} rows", answer.rows))
        )
        self.message.emit(
            "success",
            tr("Made {file} with this row.", file=file)
            if answer.created
            else tr("Added to {file}{rows}.", file=file, rows=rows),
        )
        self._become(asked, replace(asked, added=answer.path))

    def _become(self, asked: Asked, now: Asked) -> None:
        if self._asked is asked:
            self._asked = now
            self.bar.show_added(now.added)
        self.changed.emit(asked, now)

    def _on_not_added(self, mistake: Mistake) -> None:
        self.bar.show_busy(False)
        self.message.emit("error", sentence(mistake.message, mistake.field))
