"""Owns the page on lengths, unknown tokens and padding of one split."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.pages.tokenizer.data.data_question import READING, asked_on
from app.pages.tokenizer.data.lengths_card import LengthsCard
from app.pages.tokenizer.data.limits_card import LimitsCard
from app.pages.tokenizer.data.waste_cards import PaddingCard, UnknownCard
from app.services.backend_client import BackendClient
from app.widgets.waiting_stack import WaitingStack
from backend.contract.rpc.training_data import TrainingLengths

SIDE_WIDTH = 320


class LengthsPage(WaitingStack):
    """`ask` measures; nothing is asked twice."""

    settings_chosen = Signal(dict)
    row_chosen = Signal(int)
    measured = Signal(object)
    """TrainingLengths."""

    def __init__(self, client: BackendClient, parent: QWidget | None = None) -> None:
        self.lengths, self.limits = LengthsCard(), LimitsCard()
        self.unknown, self.padding = UnknownCard(), PaddingCard()
        super().__init__(self._placed(), parent)
        self.answer: TrainingLengths | None = None
        self._question = asked_on(self, client, "training_lengths", self._on_lengths)
        self._asked: Mapping[str, Any] = {}
        self._can_set = False
        self.lengths.settings_chosen.connect(self.settings_chosen)
        for card in (self.limits, self.padding):
            card.settings_chosen.connect(self.settings_chosen)
        self.lengths.measure_shown.connect(lambda measure: self.limits.show_measure(measure, can_set=self._can_set))
        self.unknown.row_chosen.connect(self.row_chosen)

    def _placed(self) -> QWidget:
        page = QWidget()
        row = QHBoxLayout(page)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(14)
        row.addWidget(self.lengths, 1)
        row.addWidget(self._side())
        return page

    def _side(self) -> QWidget:
        """Three cards, which scroll where the window is low."""
        inner = QWidget()
        inner.setObjectName("scrolled")
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        for card, stretch in ((self.limits, 1), (self.unknown, 0), (self.padding, 0)):
            column.addWidget(card, stretch)
        area = QScrollArea()
        area.setWidget(inner)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setFixedWidth(SIDE_WIDTH)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        return area

    def ask(self, arguments: Mapping[str, Any], *, can_set: bool) -> None:
        """Measure this data, unless it is what was measured last."""
        if arguments != self._asked or (self.answer is None and not self._question.open):
            self._asked, self._can_set, self.answer = dict(arguments), can_set, None
            self._question.stop()
            self.show_waiting(READING)
            self._question.ask(arguments)

    def forget(self) -> None:
        """There is nothing to measure."""
        self._question.stop()
        self._asked, self.answer = {}, None

    def _on_lengths(self, answer: TrainingLengths) -> None:
        self.answer = answer
        self.lengths.show_lengths(answer, can_set=self._can_set)
        self.unknown.show_lengths(answer)
        self.padding.show_lengths(answer, can_set=self._can_set)
        self.measured.emit(answer)
