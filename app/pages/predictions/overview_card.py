"""The overview beside the rows: how many are correct, and statistics over all of them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
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
from app.core.formatting import group_digits, number
from app.core.i18n import tr, trn
from app.pages.predictions.reliability_view import ReliabilityView
from app.pages.predictions.slices_view import SlicesView
from app.pages.predictions.threshold_view import ThresholdView
from app.services.backend_client import BackendClient, PendingQuery
from app.services.prediction_rows import PredictionRows
from app.widgets.boxes import WrapLayout
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.icon_label import IconButton
from app.widgets.plots.confusion_matrix import ConfusionMatrix
from app.widgets.plots.scatter_plot import ScatterPlot
from app.widgets.row_views.entity_view import EntityView
from app.widgets.row_views.label_views import NumberView
from app.widgets.row_views.row_view import RowView
from app.widgets.tables.text_table import TextTable
from backend.contract.rpc.predictions import (
    CalibrationReport,
    Confusion,
    EntityScores,
    LabelScore,
    NumberStatistics,
    PredictionStatistics,
)
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.run.folder import RunFolder

HINT = tr("Select a row to see it in full. Use the arrow keys to move between rows.")
LABEL_HINT = tr("Click to see only rows with this actual label")
PREDICTED_HINT = tr("Click to see only rows that are predicted as this label")
NOTHING_TO_COMPARE = tr("These rows have no actual values to compare with.")
MATRIX, LABELS, RELIABILITY, THRESHOLD, NUMBERS, SLICES = range(6)
TITLES = (tr("Matrix"), tr("Labels"), tr("Reliability"), tr("Threshold"), tr("Numbers"), tr("Slices"))


class OverviewCard(Card):
    """Counts above a view that suits the task: a matrix, scores, a diagram, a scatter plot."""

    pair_chosen = Signal(str, str)
    """Actual and predicted label, of which one may be empty; both where all rows are wanted again."""
    bin_chosen = Signal(float, float)
    row_chosen = Signal(int)
    mistakes_wanted = Signal()
    """The surest mistakes first."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Overview"), parent)
        theme.follow(self)
        self._place_tiles()
        self.parts, _ = chips(TITLES)
        self.parts.idClicked.connect(self._on_part_clicked)
        self._chips = QWidget(self)
        row = WrapLayout(self._chips)
        for button in self.parts.buttons():
            row.addWidget(button)
        self.matrix = ConfusionMatrix()
        self.matrix.pair_chosen.connect(self.pair_chosen)
        self.labels = TextTable(tr("Scores per label"))
        self.labels.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        theme.role(self.labels, "tight")
        self.labels.row_chosen.connect(self._on_label_chosen)
        self._pair = ("", "")
        self._has_actual = True
        """Whether the labels of the table are actual ones, else predicted ones."""
        self.reliability = ReliabilityView()
        self.reliability.bin_chosen.connect(self.bin_chosen)
        self.threshold = ThresholdView()
        self.slices = SlicesView()
        self._words: dict[int, str] = {}
        """What is said below a part."""
        self.scatter = ScatterPlot()
        self.scatter.row_chosen.connect(self.row_chosen)
        self.stack = QStackedWidget(self)
        for page in (
            self._matrix_page(),
            self._labels_page(),
            _make_scrollable(self.reliability),
            _make_scrollable(self.threshold),
            self._numbers_page(),
            self.slices,
        ):
            self.stack.addWidget(page)
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
        self.mistakes = IconButton(tr("Worst mistakes"), "target", "quiet")
        self.mistakes.setToolTip(tr("Show only wrong predictions, most confident first"))
        self.mistakes.clicked.connect(self.mistakes_wanted)
        self._tiles = QWidget(self)
        row = QHBoxLayout(self._tiles)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(16)
        for value, words, role in ((self.right, tr("Correct"), "success"), (self.wrong, tr("Wrong"), "danger")):
            column = QVBoxLayout()
            column.setSpacing(0)
            column.addWidget(value)
            column.addWidget(label(words, role))
            row.addLayout(column)
        row.addStretch(1)
        row.addWidget(self.mistakes)

    def _matrix_page(self) -> QWidget:
        self.shares = QCheckBox(tr("Normalize by true label"))
        self.shares.toggled.connect(self.matrix.show_shares)
        return _make_scrollable(_stack(self.matrix, self.shares))

    def _labels_page(self) -> QWidget:
        self.totals = label("", "caption", wrap=True)
        page = _stack(self.totals)
        page.layout().insertWidget(1, self.labels, 1)  # type: ignore[union-attr]
        page.layout().setStretch(2, 0)  # type: ignore[union-attr]
        return page

    def _numbers_page(self) -> QWidget:
        self.numbers = label("", "caption", wrap=True)
        page = _stack(self.numbers)
        page.layout().insertWidget(1, self.scatter, 1)  # type: ignore[union-attr]
        page.layout().setStretch(2, 0)  # type: ignore[union-attr]
        return page

    def clear(self) -> None:
        """Show that nothing is known yet, or there is nothing to compare with."""
        self._tiles.hide()
        self._chips.hide()
        self.stack.hide()
        self.matrix.show_counts([], [])
        self.slices.clear()
        self._say("")

    def show_waiting(self, words: str) -> None:
        """Show what has to finish before the rows are counted; empty if it failed."""
        self._say(words)

    def _say(self, words: str) -> None:
        self.note.setText(words)
        self.note.setVisible(bool(words))

    def show_counts(self, right: int, wrong: int, has_confidence: bool = False) -> None:
        """Show how many rows are correct and wrong."""
        self._say("")
        self.right.setText(group_digits(right))
        self.wrong.setText(group_digits(wrong))
        self._tiles.setVisible(right + wrong > 0)
        self.mistakes.setVisible(has_confidence and wrong > 0)

    def show_statistics(self, found: PredictionStatistics, *, confuses: bool, can_calibrate: bool = False) -> None:
        """Show counts, scores per label, and calibration; the matrix contains only labels that are confused."""
        self.show_counts(found.right, found.rows - found.right, bool(found.probabilities))
        self._show_confusion(found.confusion, found.labels if found.separator else None)
        self._show_scores(found.labels, tr("Macro F1 {macro_f1}", macro_f1=number(found.macro_f1)), tr("Label"))
        self.reliability.show_bins(found.bins, found.calibration_error, can_calibrate=can_calibrate)
        self.threshold.offer(found.probabilities)
        there = (confuses, confuses, bool(found.bins), confuses and len(found.probabilities) > 1, False, True)
        self._offer([place for place, is_there in enumerate(there) if is_there and found.rows])

    def _show_confusion(self, confusion: Confusion, several: Sequence[LabelScore] | None) -> None:
        """How often labels are predicted as each other, or `several` of them together."""
        totals = None
        if several is not None:
            scores = {one.label: one for one in several}
            known = [scores.get(label) for label in confusion.labels]
            totals = [one.actual if one else 0 for one in known], [one.predicted if one else 0 for one in known]
        self.matrix.show_counts(confusion.labels, confusion.counts, totals)
        words = tr("Click a cell or a label to see its rows.")
        if several is not None:
            words = tr(
                "A cell counts the rows that have one label and are predicted to have another. Click it to see them."
            )
        elif confusion.left_out:
            words = tr(
                "Click a cell or a label to see its rows. {count} with rarer labels are not shown.",
                count=trn("{count} row", "{count} rows", confusion.left_out),
            )
        self._words[MATRIX] = words

    def show_chosen_pair(self, actual: str, predicted: str) -> None:
        """Mark the current filter; emits nothing."""
        self._pair = (actual, predicted)
        self.matrix.show_chosen(actual, predicted)

    def _on_label_chosen(self, row: int) -> None:
        label = self.labels.texts()[row][0]
        pair = (label, "") if self._has_actual else ("", label)
        self.pair_chosen.emit(*(("", "") if pair == self._pair else pair))

    def show_predicted(self, labels: Sequence[LabelScore], rows: int) -> None:
        """Show how often each label is predicted, of rows that have no actual ones."""
        self._has_actual = False
        self.totals.setText(tr("How often each label is predicted"))
        self.labels.set_choosable(PREDICTED_HINT)
        shown = [
            (one.label, group_digits(one.predicted), tr("{share:.0%}", share=one.predicted / rows)) for one in labels
        ]
        self.labels.show_rows((tr("Label"), tr("Rows"), tr("Share")), shown)
        self._stretch_first_column(3)
        self._offer([LABELS] if labels else [])
        self._say(NOTHING_TO_COMPARE)

    def show_entities(self, found: EntityScores) -> None:
        """Show the scores of each entity type."""
        self.show_counts(found.right, found.rows - found.right)
        words = tr(
            "All entities: precision {precision}, recall {recall}, F1 {f1}",
            precision=number(found.precision),
            recall=number(found.recall),
            f1=number(found.f1),
        )
        self._show_scores(found.types, words, tr("Type"))
        self._offer([LABELS, SLICES])

    def offer_slices(self) -> None:
        """Offer to look for slices, of answers of which nothing else is said."""
        self._offer([SLICES])

    def _show_scores(self, scores: Sequence[LabelScore], words: str, title: str) -> None:
        self.totals.setText(words)
        rows = [
            (one.label, number(one.precision, 2), number(one.recall, 2), number(one.f1, 2), group_digits(one.actual))
            for one in scores
        ]  # fmt: skip
        self._has_actual, are_labels = True, title == tr("Label")
        self.labels.set_choosable(LABEL_HINT if are_labels else "")
        self.labels.show_rows(
            (title, tr("Precision"), tr("Recall"), "F1", tr("Rows") if are_labels else tr("Count")), rows
        )
        self._stretch_first_column(5)

    def _stretch_first_column(self, columns: int) -> None:
        header = self.labels.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for place in range(1, columns):
            header.setSectionResizeMode(place, QHeaderView.ResizeMode.ResizeToContents)

    def show_numbers(self, found: NumberStatistics) -> None:
        """Show a scatter plot of predicted against actual numbers."""
        self.numbers.setText(
            tr(
                "Pearson {pearson} · Spearman {spearman}\nMAE {mean_absolute_error} · RMSE {root_mean_squared_error}",
                pearson=number(found.pearson),
                spearman=number(found.spearman),
                mean_absolute_error=number(found.mean_absolute_error),
                root_mean_squared_error=number(found.root_mean_squared_error),
            )
        )
        self.scatter.show_points(found.points, found.low, found.high)
        drawn = (
            tr(
                "Showing {count} of {rows}. ",
                count=trn("{count} row", "{count} rows", len(found.points)),
                rows=group_digits(found.rows),
            )
            if len(found.points) < found.rows
            else ""
        )
        self._words[NUMBERS] = tr("{drawn}Click a dot to see its row.", drawn=drawn)
        self._offer([NUMBERS, SLICES])

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
        self._say(self._words.get(place, ""))
        if place == THRESHOLD:
            self.threshold.on_shown()
        elif place == RELIABILITY:
            self.reliability.on_shown()
        elif place == SLICES and self._chips.isVisibleTo(self):  # else a button asks: it may take long
            self.slices.on_shown()

    def apply_theme(self) -> None:
        """Nothing to update: plots read their colours at every paint."""
        for widget in (self.matrix, self.scatter):
            widget.update()
        theme.role(self, "card")


def _stack(*widgets: QWidget) -> QWidget:
    holder = QWidget()
    holder.setObjectName("scrolled")
    column = QVBoxLayout(holder)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(10)
    for widget in widgets:
        column.addWidget(widget)
    column.addStretch(1)
    return holder


def _make_scrollable(content: QWidget) -> QScrollArea:
    area = QScrollArea(widgetResizable=True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    content.setObjectName("scrolled")
    area.setWidget(content)
    return area


def _cancel(tickets: list[PendingQuery], *_: object) -> None:
    for ticket in tickets:
        ticket.cancel()
    tickets.clear()


class Statistics(QObject):
    """Queries once per file, and once per label whose threshold is viewed."""

    message = Signal(str, str)

    def __init__(self, client: BackendClient, card: OverviewCard, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._card = client, card
        self._rows: PredictionRows | None = None
        self._form: type[RowView] = RowView
        self._tickets: list[PendingQuery] = []
        self.destroyed.connect(partial(_cancel, self._tickets))  # no answer finds a card that is gone
        card.threshold.counts_wanted.connect(self._on_counts_wanted)
        card.slices.report_wanted.connect(self._on_slices_wanted)
        card.reliability.action_wanted.connect(self._on_calibration_wanted)

    def open(self, rows: PredictionRows, form: type[RowView]) -> None:
        """Query what suits the rows."""
        self.close()
        self._rows, self._form = rows, form
        if not rows.has_actual:
            self._card.show_waiting(NOTHING_TO_COMPARE if form.compares else "")
            if form.confuses:
                self._ask("prediction_statistics", lambda found: self._card.show_predicted(found.labels, found.rows))
            return
        if form is NumberView:
            self._ask("number_statistics", self._card.show_numbers)
        elif form is EntityView:
            self._ask("entity_scores", self._card.show_entities)
        elif form.confuses or (form.compares and rows.probabilities):
            self._ask("prediction_statistics", self._on_statistics)
        elif form.compares and rows.small:
            right, wrong = (len(rows.filter(wanted, "", "", False)) for wanted in (True, False))
            self._card.show_counts(right, wrong)
            self._card.offer_slices()
        else:
            self._card.offer_slices()

    def close(self) -> None:
        """Drop pending queries."""
        _cancel(self._tickets)
        self._rows = None

    def _ask(self, query: str, show: Any, **more: Any) -> None:
        assert self._rows is not None
        question = {"parquet": str(self._rows.path), **more}
        if not more:
            self._card.show_waiting(tr("Searching…"))
        self._tickets.append(self._client.ask(query, question, show, self._on_mistake))

    def _on_statistics(self, found: PredictionStatistics) -> None:
        run = self._calibrated_run()
        can_calibrate = run is not None and not found.separator  # a temperature is that of one label per row
        self._card.show_statistics(found, confuses=self._form.confuses, can_calibrate=can_calibrate)

    def _calibrated_run(self) -> RunFolder | None:
        """The run whose own validation rows are shown."""
        if self._rows is None:
            return None
        run = RunFolder(self._rows.path.parent)
        is_own = run.predictions("validation", "parquet") == self._rows.path
        return run if is_own and run.model.is_dir() else None

    def _on_counts_wanted(self, label: str) -> None:
        if self._rows is not None:
            self._ask("threshold_counts", self._card.threshold.show_counts, label=label)

    def _on_slices_wanted(self, metric: str) -> None:
        if self._rows is None:
            return
        view = self._card.slices
        question = {"parquet": str(self._rows.path), "metric": metric or None}
        self._tickets.append(
            self._client.ask(
                "slices", question, view.show_report, lambda no: view.show_mistake(no.message), view.show_progress
            )
        )

    def _on_calibration_wanted(self, action: str) -> None:
        run, view = self._calibrated_run(), self._card.reliability
        if run is None:
            return

        def show(report: CalibrationReport) -> None:
            view.show_report(report)
            if action:
                words = (
                    tr("The model now predicts with calibrated probabilities.")
                    if action == "fit"
                    else tr("The model predicts as it was trained again.")
                )
                self.message.emit("success", words)

        question = {"run": str(run.path), "action": action}
        self._tickets.append(self._client.ask("calibration", question, show, lambda no: view.show_mistake(no.message)))

    def _on_mistake(self, mistake: ErrorReply) -> None:
        self._card.show_waiting("")
        self.message.emit("error", mistake.message)
