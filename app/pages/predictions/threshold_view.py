"""The decision threshold of one label: a slider, its scores, and what is predicted at that threshold."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core.formatting import number
from app.core.i18n import tr, trn
from app.core.predictions.threshold_scores import ThresholdScores
from app.widgets.card import label
from app.widgets.forms.inputs import QuietComboBox, QuietDoubleSpinBox, QuietSlider
from app.widgets.plots.threshold_plot import ThresholdPlot
from backend.contract.rpc.predictions import THRESHOLD_STEPS, ThresholdCounts

CALM_MS = 120
"""The table follows the slider when it has rested so long; the scores follow at once."""
SCORES = ((tr("Precision"), "precision"), (tr("Recall"), "recall"), ("F1", "f1"), (tr("Accuracy"), "accuracy"))
HINT = tr(
    "Predict this label when its probability is at least the threshold; otherwise predict the most "
    "probable other label."
)


class ThresholdView(QWidget):
    """Queries the counts of a label once; everything else is computed here."""

    counts_wanted = Signal(str)
    """Of which label."""
    threshold_changed = Signal(str, object)
    """Label and threshold; None where the most probable label is predicted again."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._known: dict[str, ThresholdScores] = {}
        self._is_on = False
        self.choice = QuietComboBox()
        self.choice.setAccessibleName(tr("Threshold label"))
        self.choice.activated.connect(lambda _: self._on_label())
        self.slider = QuietSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, THRESHOLD_STEPS)
        self.slider.setAccessibleName(tr("Threshold"))
        self.slider.setPageStep(50)
        self.slider.valueChanged.connect(self._on_moved)
        self.box = QuietDoubleSpinBox(minimum=0, maximum=1, step=0.01, decimals=3)
        self.box.setAccessibleName(tr("Threshold value"))
        self.box.valueChanged.connect(lambda value: self.slider.setValue(round(value * THRESHOLD_STEPS)))
        self.plot = ThresholdPlot()
        self.plot.moved.connect(lambda value: self.slider.setValue(round(value * THRESHOLD_STEPS)))
        self.said = label("", "caption", wrap=True)
        self.best = QPushButton(tr("Best F1"))
        self.best.setToolTip(tr("Use the threshold with the highest F1 for this label"))
        self.best.clicked.connect(self._on_best)
        self.reset = QPushButton(tr("Reset"))
        self.reset.setToolTip(tr("Remove the threshold"))
        self.reset.clicked.connect(self.switch_off)
        self._calm = QTimer(self, interval=CALM_MS, singleShot=True)
        self._calm.timeout.connect(self._emit_threshold)
        self._lay_out()
        self._set_step(THRESHOLD_STEPS // 2)

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self.choice, 1)
        top.addWidget(self.best)
        top.addWidget(self.reset)
        slider = QHBoxLayout()
        slider.setSpacing(10)
        slider.addWidget(self.slider, 1)
        slider.addWidget(self.box)
        grid = QGridLayout()
        grid.setVerticalSpacing(0)
        self.scores = {}
        for place, (title, name) in enumerate(SCORES):
            self.scores[name] = label("–", "section")
            grid.addWidget(label(title, "faint"), 0, place)
            grid.addWidget(self.scores[name], 1, place)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(10)
        column.addLayout(top)
        column.addWidget(label(HINT, "faint", wrap=True))
        column.addLayout(slider)
        column.addLayout(grid)
        column.addWidget(self.plot)
        column.addWidget(self.said)
        column.addStretch(1)

    def offer(self, labels: list[str]) -> None:
        """Offer labels with a probability; with two the second is chosen, as it is usually the positive one."""
        self._known.clear()
        self._is_on = False
        self.choice.clear()
        self.choice.addItems(labels)
        self.choice.setCurrentIndex(1 if len(labels) == 2 else 0)
        self._set_step(THRESHOLD_STEPS // 2)
        self.plot.show_curves({})
        self._show()

    def on_shown(self) -> None:
        """Query the counts of the chosen label."""
        if self.choice.currentText() and self.choice.currentText() not in self._known:
            self.counts_wanted.emit(self.choice.currentText())

    def show_counts(self, counts: ThresholdCounts) -> None:
        """Show the counts of a label."""
        self._known[counts.label] = ThresholdScores(counts)
        self._show_curves()
        self._show()

    @property
    def threshold(self) -> float:
        """The slider's threshold."""
        return self.slider.value() / THRESHOLD_STEPS

    @property
    def is_on(self) -> bool:
        """Whether the threshold determines the predictions in the table."""
        return self._is_on

    def switch_off(self) -> None:
        """Predict the most probable label again."""
        self._set_step(THRESHOLD_STEPS // 2)
        self._is_on = False
        self._calm.stop()
        self._show()
        self._emit_threshold()

    def _on_label(self) -> None:
        self.switch_off()
        self._show_curves()
        self.on_shown()

    def _on_best(self) -> None:
        scores = self._known.get(self.choice.currentText())
        if scores is not None:
            self._set_step(scores.best_step)
            self._on_moved()

    def _set_step(self, step: int) -> None:
        self.slider.blockSignals(True)
        self.slider.setValue(step)
        self.slider.blockSignals(False)
        self._show()

    def _on_moved(self) -> None:
        self._is_on = True
        self._show()
        self._calm.start()

    def _emit_threshold(self) -> None:
        self.threshold_changed.emit(self.choice.currentText(), self.threshold if self._is_on else None)

    def _show_curves(self) -> None:
        scores = self._known.get(self.choice.currentText())
        curves = {title: scores.curve(name) for title, name in SCORES[:3]} if scores else {}
        self.plot.show_curves(curves)

    def _show(self) -> None:
        self.box.blockSignals(True)
        self.box.setValue(self.threshold)
        self.box.blockSignals(False)
        self.plot.show_threshold(self.threshold)
        self.reset.setEnabled(self._is_on)
        scores = self._known.get(self.choice.currentText())
        self.best.setEnabled(scores is not None)
        at = scores.at(self.slider.value()) if scores else None
        for name, value in self.scores.items():
            value.setText(number(getattr(at, name)) if at else "–")
        self.said.setText(
            tr(
                "{count} predicted as {currentText}.",
                count=trn("{count} row", "{count} rows", at.predicted),
                currentText=self.choice.currentText(),
            )
            if at
            else ""
        )

    def apply_theme(self) -> None:
        """Nothing to update: the plot reads its colours at every paint."""
        theme.role(self.said, "caption")
        self.plot.update()
