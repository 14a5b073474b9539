"""Owns the card beside the rows while none is chosen: how many are right, and what is known of all of them together."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core.wording import count, grouped, number
from app.panels.predictions_cards.threshold_view import ThresholdView
from app.widgets.card import Card, label
from app.widgets.chips import chips
from app.widgets.confusion_matrix import ConfusionMatrix
from app.widgets.icon_label import IconButton
from app.widgets.reliability_diagram import ReliabilityDiagram
from app.widgets.scatter_plot import ScatterPlot
from app.widgets.text_table import TextTable
from backend.contract.predictions import EntityScores, LabelScore, NumberStatistics, PredictionStatistics
from backend.contract.queries import Confusion

HINT = "Choose a row to see it whole. The arrow keys walk through the rows."
MATRIX, LABELS, RELIABILITY, THRESHOLD = range(4)
TITLES = ("Matrix", "Labels", "Reliability", "Threshold")


class OverviewCard(Card):
    """Counts above what suits the task: a matrix, scores, a diagram, dots."""

    pair_chosen = Signal(str, str)
    bin_chosen = Signal(float, float)
    row_chosen = Signal(int)
    mistakes_wanted = Signal()
    """The surest mistakes first."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Overview", parent)
        self._place_tiles()
        self.parts, row = chips(TITLES)
        self.parts.idClicked.connect(self._on_part_clicked)
        self._chips = QWidget()
        self._chips.setLayout(row)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addStretch(1)
        self.matrix = ConfusionMatrix()
        self.matrix.pair_chosen.connect(self.pair_chosen)
        self.labels = TextTable("Scores of each label")
        self.labels.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.diagram = ReliabilityDiagram()
        self.diagram.bin_chosen.connect(self.bin_chosen)
        self.threshold = ThresholdView()
        self._matrix_words = ""
        self.scatter = ScatterPlot()
        self.scatter.row_chosen.connect(self.row_chosen)
        self.stack = QStackedWidget()
        for page in (self._matrix_page(), self._labels_page(), self._reliability_page(), _scrolled(self.threshold)):
            self.stack.addWidget(page)
        self._numbers = self._numbers_page()
        self.stack.addWidget(self._numbers)
        self.note = label("", "caption", wrap=True)
        self.hint = label(HINT, "faint", wrap=True)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self.add(self._tiles)
        self.add(self._chips)
        self.add(self.stack, 1)
        self.body.addStretch(0)
        self.add(self.note)
        self.add(self.hint)
        self.setMinimumWidth(372)
        self.clear()

    def _place_tiles(self) -> None:
        self.right, self.wrong = label("", "value"), label("", "value")
        self.mistakes = IconButton("Surest mistakes first", "target", "quiet")
        self.mistakes.setToolTip("Only wrong rows, those that the model was surest of first")
        self.mistakes.clicked.connect(self.mistakes_wanted)
        self._tiles = QWidget()
        row = QHBoxLayout(self._tiles)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(24)
        for value, words, role in ((self.right, "Right", "success"), (self.wrong, "Wrong", "danger")):
            column = QVBoxLayout()
            column.setSpacing(0)
            column.addWidget(value)
            column.addWidget(label(words, role))
            row.addLayout(column)
        row.addStretch(1)
        row.addWidget(self.mistakes)

    def _matrix_page(self) -> QWidget:
        self.shares = QCheckBox("Shares of each actual label")
        self.shares.toggled.connect(self.matrix.show_shares)
        return _scrolled(_stacked(self.matrix, self.shares))

    def _labels_page(self) -> QWidget:
        self.totals = label("", "caption", wrap=True)
        page = _stacked(self.totals)
        page.layout().insertWidget(1, self.labels, 1)  # type: ignore[union-attr]
        page.layout().setStretch(2, 0)  # type: ignore[union-attr]
        return page

    def _reliability_page(self) -> QWidget:
        self.calibration = label("", "section")
        words = (
            "Expected calibration error: how far confidence and accuracy are apart, weighted by the rows of each bar."
        )
        hint = "Bars on the dashed line are honest; below it the model is too sure. Click a bar to see its rows."
        return _scrolled(_stacked(self.calibration, label(words, "faint", wrap=True), self.diagram, label(hint, "faint", wrap=True)))  # fmt: skip

    def _numbers_page(self) -> QWidget:
        self.numbers = label("", "caption", wrap=True)
        page = _stacked(self.numbers)
        page.layout().insertWidget(1, self.scatter, 1)  # type: ignore[union-attr]
        page.layout().setStretch(2, 0)  # type: ignore[union-attr]
        return page

    def clear(self) -> None:
        """Nothing is known yet, or there is nothing to compare with."""
        self._tiles.hide()
        self._chips.hide()
        self.stack.hide()
        self.matrix.show_counts([], [])
        self._say("")

    def _say(self, words: str) -> None:
        self.note.setText(words)
        self.note.setVisible(bool(words))

    def show_counts(self, right: int, wrong: int, has_confidence: bool = False) -> None:
        """How many rows are right and wrong."""
        self.right.setText(grouped(right))
        self.wrong.setText(grouped(wrong))
        self._tiles.setVisible(right + wrong > 0)
        self.mistakes.setVisible(has_confidence and wrong > 0)

    def show_statistics(self, found: PredictionStatistics, *, confuses: bool) -> None:
        """Counts, scores of each label, and how honest the confidence is; the matrix only of labels that are confused."""
        self.show_counts(found.right, found.rows - found.right, bool(found.probabilities))
        self._show_confusion(found.confusion)
        self._show_scores(found.labels, f"Macro F1 {number(found.macro_f1)}", "Label")
        self.diagram.show_bins(found.bins)
        self.calibration.setText(f"ECE {number(found.calibration_error)}")
        self.threshold.offer(found.probabilities)
        there = (confuses, confuses, bool(found.bins), confuses and len(found.probabilities) > 1)
        self._offer([place for place, is_there in enumerate(there) if is_there and found.rows])

    def _show_confusion(self, confusion: Confusion) -> None:
        self.matrix.show_counts(confusion.labels, confusion.counts)
        words = "Click a cell to see its rows."
        if confusion.left_out:
            words = f"Click a cell to see its rows. {count(confusion.left_out, 'row')} of rarer labels are left out."
        self._matrix_words = words

    def show_entities(self, found: EntityScores) -> None:
        """Scores of each type of entity."""
        self.show_counts(found.right, found.rows - found.right)
        words = (
            f"All entities: precision {number(found.precision)}, recall {number(found.recall)}, F1 {number(found.f1)}"
        )
        self._show_scores(found.types, words, "Type")
        self._offer([LABELS])

    def _show_scores(self, scores: Sequence[LabelScore], words: str, title: str) -> None:
        self.totals.setText(words)
        rows = [
            (one.label, number(one.precision, 2), number(one.recall, 2), number(one.f1, 2), grouped(one.actual))
            for one in scores
        ]  # fmt: skip
        self.labels.show_rows((title, "Precision", "Recall", "F1", "Rows" if title == "Label" else "Actual"), rows)
        header = self.labels.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for place, width in enumerate((88, 68, 60, 66), start=1):
            self.labels.setColumnWidth(place, width)

    def show_numbers(self, found: NumberStatistics) -> None:
        """Dots of predicted against actual numbers."""
        self.numbers.setText(
            f"Pearson {number(found.pearson)} · Spearman {number(found.spearman)}\n"
            f"Mean absolute error {number(found.mean_absolute_error)} · root mean squared {number(found.root_mean_squared_error)}"
        )
        self.scatter.show_points(found.points, found.low, found.high)
        self._chips.hide()
        self.stack.setCurrentWidget(self._numbers)
        self.stack.show()
        drawn = (
            f"{count(len(found.points), 'row')} of {grouped(found.rows)} are drawn. "
            if len(found.points) < found.rows
            else ""
        )
        self._say(f"{drawn}Click a dot to see its row.")

    def _offer(self, places: Sequence[int]) -> None:
        for place, button in enumerate(self.parts.buttons()):
            button.setVisible(place in places)
        self._chips.setVisible(len(places) > 1)
        self.stack.setVisible(bool(places))
        if places:
            self._show_part(self.parts.checkedId() if self.parts.checkedId() in places else places[0])

    def _on_part_clicked(self, place: int) -> None:
        self._show_part(place)

    def _show_part(self, place: int) -> None:
        self.parts.button(place).setChecked(True)
        self.stack.setCurrentIndex(place)
        self._say(self._matrix_words if place == MATRIX else "")
        if place == THRESHOLD:
            self.threshold.shown()

    def apply_theme(self) -> None:
        """Plots read their colours at every paint."""
        for widget in (self.matrix, self.diagram, self.scatter):
            widget.update()
        theme.role(self, "card")


def _stacked(*widgets: QWidget) -> QWidget:
    holder = QWidget()
    holder.setObjectName("scrolled")
    column = QVBoxLayout(holder)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(10)
    for widget in widgets:
        column.addWidget(widget)
    column.addStretch(1)
    return holder


def _scrolled(content: QWidget) -> QScrollArea:
    area = QScrollArea(widgetResizable=True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    content.setObjectName("scrolled")
    area.setWidget(content)
    return area
