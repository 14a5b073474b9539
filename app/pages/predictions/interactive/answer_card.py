"""Owns the card with the answer: of one model like a row of a file, of two side by side; and which models are open."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QWidget

from app.core.i18n import thin, tr
from app.core.predictions.interactive_answers import Asked, name_of
from app.core.predictions.predicted_row import PredictedRow
from app.pages.predictions.interactive.compared_view import ComparedView
from app.widgets.banner import Banner
from app.widgets.card import Card, label
from app.widgets.empty_state import EmptyState
from app.widgets.icon_label import IconButton
from app.widgets.row_views.registry import view_of
from app.widgets.row_views.row_view import RowView
from app.widgets.text.elided_label import ElidedLabel

KEPT_OPEN = tr("An open model answers at once. It is closed after five idle minutes, or when a run needs its device.")


class AnswerCard(Card):
    """Shows; what is to be done it only says."""

    let_go = Signal()
    continued = Signal()
    """A chat is to go on from this answer."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Answer"), parent)
        self.facts = label("", "faint")
        self.corner.addWidget(self.facts)
        self.note = Banner()
        self.cuts = Banner()
        self.empty = EmptyState("target", "")
        self.show_busy(False)
        self.view: RowView | None = None
        self.compared: ComparedView | None = None
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.hide()
        for widget, stretch in ((self.note, 0), (self.cuts, 0), (self.empty, 1), (self._area, 1)):
            self.add(widget, stretch)
        self.add(self._foot())
        self.foot = QHBoxLayout()
        self.body.addLayout(self.foot)

    def _foot(self) -> QWidget:
        self.open = ElidedLabel("", "faint")
        self.release = IconButton(tr("Let go"), "close", "quiet")
        self.release.setToolTip(tr("Close the open models and give their memory back"))
        self.release.clicked.connect(self.let_go)
        self.go_on = IconButton(tr("Continue this chat"), "plus", "quiet")
        self.go_on.clicked.connect(self.continued)
        self.go_on.hide()
        self._open_row = QWidget()
        row = QHBoxLayout(self._open_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.open, 1)
        row.addWidget(self.go_on)
        row.addWidget(self.release)
        self.show_open([], {})
        return self._open_row

    # The answer

    def show_asked(self, asked: Asked) -> None:
        """Show an answer whole; of two models both."""
        both = [one for one in (asked, asked.beside) if one is not None]
        notes = [
            f"{one.name}: {one.answer.note}" if asked.beside else one.answer.note for one in both if one.answer.note
        ]
        self.note.show_message("warning", thin("\n".join(notes)))
        cuts = [f"{one.name}: {cut}" if asked.beside else cut for one in both for cut in one.answer.cuts]
        self.cuts.show_message("info", thin("\n".join(cuts)))
        self.go_on.setVisible("messages" in asked.question.row)
        if asked.beside is None:
            self.facts.setText(f"{asked.name} · {asked.facts()}")
            self.show_row(asked.row, asked.answer.task)
        else:
            self.facts.setText(tr("two models"))
            self._compared_view().show_asked(asked)

    def show_row(self, values: Mapping[str, Any], task: str) -> None:
        """Show a row, which may still be written."""
        kind = view_of(task, values.keys())
        view = self.view
        if view is None or type(view) is not kind:
            view = self.view = kind()
            self.compared = None
            self._place(view)
        view.show_row(PredictedRow(values))

    def show_partial(self, names: Sequence[str], facts: Sequence[str], texts: Sequence[str]) -> None:
        """What two models have written so far."""
        view = self._compared_view()
        view.show_partial((names[0], names[1]), (facts[0], facts[1]), (texts[0], texts[1]))

    def show_busy(self, busy: bool) -> None:
        """Say whether the first answer is awaited."""
        if busy:
            self.empty.set_words(tr("Answering…"), "")
        else:
            self.empty.set_words(tr("Nothing asked yet"), tr("Type something at the left and press Enter."))

    def show_nothing(self) -> None:
        """The last answer was taken off the list."""
        self._area.hide()
        self.empty.show()
        self.facts.setText("")
        for banner in (self.note, self.cuts):
            banner.clear()

    def _compared_view(self) -> ComparedView:
        if self.compared is None:
            self.compared = ComparedView()
            self.view = None
            self._place(self.compared)
        return self.compared

    def _place(self, view: QWidget) -> None:
        self._area.setWidget(view)
        self.empty.hide()
        self._area.show()

    # Open models

    def show_open(self, targets: Sequence[str], facts: Mapping[str, str]) -> None:
        """Which models are open, with device and memory where these are known."""
        told = [f"{name_of(one)} ({facts[one]})" if one in facts else name_of(one) for one in targets]
        self.open.setText(tr("Open: {told}", told=", ".join(told)) if told else "")
        self.open.setToolTip("\n".join([*targets, KEPT_OPEN]) if told else "")
        self.release.setVisible(bool(told))
