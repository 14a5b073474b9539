"""Owns the Try box: a typed row is answered by a model, shown like a row of a file, and kept among the last answers."""

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core.predicted_row import PredictedRow
from app.core.wording import name_of_path, sentence
from app.panels.predictions_cards.row_views.registry import view_of
from app.panels.predictions_cards.row_views.row_view import RowView
from app.panels.predictions_cards.try_form import Question, TryForm
from app.services.backend_client import Ticket
from app.services.context import AppContext
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.empty_state import EmptyState
from app.widgets.remembered import RememberedSplitter
from backend.contract.catalog import Catalog
from backend.contract.queries import Answer, Mistake, Progress

KEPT = 50
"""Answers that stay listed."""
PIECE_MS = 60
"""Text that is being written is drawn at most this often."""
SNIPPET = 90


@dataclass(frozen=True)
class _Kept:
    question: Question
    answer: Answer


class TryBox(QWidget):
    """The form at the left; at the right the answer above the earlier ones."""

    message = Signal(str, str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._ticket: Ticket | None = None
        self._pieces: list[str] = []
        self._asked = 0
        self._has_catalog = False
        self.kept: list[_Kept] = []
        self.view: RowView | None = None
        self._draw = QTimer(self, interval=PIECE_MS, singleShot=True)
        self._draw.timeout.connect(self._show_pieces)
        self.form = TryForm()
        self.form.asked.connect(self.ask)
        self.form.cancelled.connect(self.cancel)
        splitter = RememberedSplitter("try", Qt.Orientation.Horizontal)
        splitter.setHandleWidth(14)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(self.form)
        splitter.addWidget(self._answers())
        splitter.setStretchFactor(0, 2)
        splitter.setStretchFactor(1, 3)
        splitter.setSizes([400, 600])
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(splitter)
        context.library_watcher.changed.connect(self._offer)
        self._offer()

    # Building

    def _answers(self) -> QWidget:
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addWidget(self._answer_card(), 3)
        column.addWidget(self._history_card(), 1)
        return holder

    def _answer_card(self) -> Card:
        card = Card("Answer")
        self.facts = label("", "faint")
        card.corner.addWidget(self.facts)
        self.note = Banner()
        self.empty = EmptyState("target", "Nothing asked yet", "Type something at the left and press Enter.", "Answer")
        self.empty.asked.connect(self.ask)
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.hide()
        for widget, stretch in ((self.note, 0), (self.empty, 1), (self._area, 1)):
            card.add(widget, stretch)
        return card

    def _history_card(self) -> Card:
        self.history_card = Card("Last answers")
        self.history = QListWidget()
        self.history.setAccessibleName("Last answers")
        self.history.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        theme.role(self.history, "lines")
        self.history.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.history.currentRowChanged.connect(self._on_kept_chosen)
        self.history_card.add(self.history, 1)
        self.history_card.hide()
        return self.history_card

    # What can be asked

    def shown(self) -> None:
        """The tasks, asked once."""
        self._offer()
        if not self._has_catalog:
            self._context.client.ask("catalog", {}, self._on_catalog, self._on_mistake)

    def _on_catalog(self, catalog: Catalog) -> None:
        self._has_catalog = True
        self.form.offer_tasks(catalog.tasks)

    def _offer(self) -> None:
        self.form.offer_runs(self._context.library.runs, self._context.preferences.recent_models)

    # Question and answer

    def ask(self) -> None:
        """Put the question, unless one is open."""
        if self._ticket is not None:
            return
        mistake = self.form.mistake_before_asking()
        self.form.show_mistake(mistake)
        if mistake:
            return
        question = self.form.question()
        self._asked += 1
        settings = question.settings | ({"seed": self._asked} if question.settings.get("sample") else {})
        self._pieces = []
        self._open = question
        self._show_busy(True)
        self.facts.setText("Opening the model…")
        arguments = {"target": question.target, "task": question.task, "rows": [question.row], "settings": settings}
        self._ticket = self._context.client.ask(
            "answer", arguments, self._on_answer, self._on_mistake, self._on_progress
        )

    def cancel(self) -> None:
        """Take the open question back."""
        if self._ticket is not None:
            self._ticket.cancel()
            self._ticket = None
            self._show_busy(False)
            self.facts.setText("Cancelled")

    def _show_busy(self, busy: bool) -> None:
        self.form.show_busy(busy)

    def _on_progress(self, progress: Progress) -> None:
        if progress.unit == "pieces":
            self._pieces.append(progress.text)
            self.facts.setText("Writing…")
            if not self._draw.isActive():
                self._draw.start()
        elif progress.total:
            self.form.progress.set_fraction(progress.done / progress.total)
            self.facts.setText(f"Opening the model… {progress.done:,.0f} of {progress.total:,.0f} {progress.unit}")

    def _show_pieces(self) -> None:
        if self._ticket is not None:
            self._show({**self._open.row, "prediction": "".join(self._pieces)}, self._open.task)

    def _on_answer(self, answer: Any) -> None:
        self._ticket = None
        self._show_busy(False)
        if not isinstance(answer, Answer):
            self.form.show_mistake("The answer is too long to be shown; use burnish predict with a file.")
            return
        self.kept.insert(0, _Kept(self._open, answer))
        self._list()

    def _on_mistake(self, mistake: Mistake) -> None:
        self._ticket = None
        self._show_busy(False)
        self.facts.setText("")
        text = mistake.message.removeprefix("input: ")
        self.form.show_mistake(sentence(text, mistake.field), mistake.field)

    def _list(self) -> None:
        latest = self.kept[0]
        self.history.blockSignals(True)
        item = QListWidgetItem(_line(latest.answer))
        item.setToolTip(f"{_line(latest.answer, 1000)}\n{name_of_path(latest.question.target)}")
        self.history.insertItem(0, item)
        while self.history.count() > KEPT:
            self.history.takeItem(KEPT)
        self.kept = self.kept[:KEPT]
        self.history.setCurrentRow(0)
        self.history.blockSignals(False)
        self.history_card.setVisible(self.history.count() > 1)
        self._show_kept(latest)

    def _on_kept_chosen(self, place: int) -> None:
        if 0 <= place < len(self.kept):
            self._show_kept(self.kept[place])
            self.form.fill(self.kept[place].question.row)

    def _show_kept(self, kept: _Kept) -> None:
        answer = kept.answer
        self.note.show_message("warning", answer.note)
        self.facts.setText(f"{name_of_path(kept.question.target)} · {_took(answer.seconds)} · {answer.device}")
        self._show(answer.rows[0], answer.task)

    def _show(self, values: dict[str, Any], task: str) -> None:
        kind = view_of(task, values.keys())
        view = self.view
        if view is None or type(view) is not kind:
            view = self.view = kind()
            self._area.setWidget(view)
        self.empty.hide()
        self._area.show()
        view.show_row(PredictedRow(values))


def _took(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _line(answer: Answer, most: int = SNIPPET) -> str:
    """What was asked and the answer, on one line."""
    row = answer.rows[0]
    first = next((value for name, value in row.items() if name != "prediction"), "")
    parts = [" ".join(str(part).split()) for part in (first, row.get("prediction") or "no answer")]
    return "   →   ".join(part if len(part) <= most else f"{part[:most]}…" for part in parts)
