"""How well a classifier's probabilities are calibrated, before and after a temperature, which can be saved in the model."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app import theme
from app.core.backend_words import capitalize
from app.core.formatting import number, sure_number, with_full_stop
from app.core.i18n import figure, tr, trn
from app.widgets.boxes import hbox, holder
from app.widgets.card import label
from app.widgets.forms.chips import chips
from app.widgets.icon_label import IconButton
from app.widgets.plots.reliability_diagram import ReliabilityDiagram
from backend.contract.rpc.predictions import CalibrationReport, ReliabilityBin

BEFORE, AFTER = range(2)
_ERROR = tr(
    "Expected calibration error (ECE): the average gap between confidence and accuracy, "
    "weighted by the number of rows in each bar."
)
_HINT = tr("Bars on the dashed line are well calibrated; bars below it are overconfident. Click a bar to see its rows.")
_HINT_AFTER = tr(
    "Each part of the rows is shown with the temperature that was fitted on the other parts, so this is what to expect of new rows."
)


class ReliabilityView(QWidget):
    """`show_bins` shows those of the file, `show_report` what a temperature does to them."""

    bin_chosen = Signal(float, float)
    """Bounds of the confidence; both 0 when the choice is taken back."""
    action_wanted = Signal(str)
    """Empty to measure what a temperature does, `fit` to save it in the model, `remove` to take it out."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("scrolled")
        self._bins: Sequence[ReliabilityBin] = ()
        self._error: float | None = None
        self._report: CalibrationReport | None = None
        self._can_calibrate = self._is_asked = False
        self.error = label("", "section", wrap=True)
        self.sides, row = chips([tr("As trained"), tr("With a temperature")])
        self.sides.idClicked.connect(lambda _: self._show())
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        self._chips = holder(row)
        self.diagram = ReliabilityDiagram()
        self.diagram.bin_chosen.connect(self._on_bin_chosen)
        self.hint = label(_HINT, "faint", wrap=True)
        self.said = label("", wrap=True)
        self.button = IconButton(tr("Calibrate the model"), "target")
        self.button.setToolTip(tr("Save the temperature in the model, for Predict, Try and every export"))
        self.button.clicked.connect(lambda: self._ask("remove" if self._is_applied else "fit"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self.error)
        column.addWidget(self.said)
        column.addLayout(hbox(self.button, 1))
        for part in (self._chips, self.diagram, self.hint, label(_ERROR, "faint", wrap=True)):
            column.addWidget(part)
        column.addStretch(1)
        theme.follow(self)

    def show_bins(self, bins: Sequence[ReliabilityBin], error: float | None, *, can_calibrate: bool) -> None:
        """Show those of the probabilities in a file; a run's own validation rows can calibrate its model."""
        self._bins, self._error, self._report = bins, error, None
        self._can_calibrate, self._is_asked = can_calibrate, False
        self.sides.button(BEFORE).setChecked(True)
        self.said.setText("")
        self._show()

    def on_shown(self) -> None:
        """Measure once what a temperature would do."""
        if self._can_calibrate and not self._is_asked:
            self._ask("")

    def _ask(self, action: str) -> None:
        self._is_asked = True
        self.button.setEnabled(False)
        if not action:
            self.said.setText(tr("Fitting a temperature…"))
            self._show()
        self.action_wanted.emit(action)

    @property
    def _is_applied(self) -> bool:
        return self._report is not None and self._report.applied is not None

    def show_report(self, report: CalibrationReport) -> None:
        """Show what a temperature does, and whether the model has one."""
        self._report = report
        self.said.setText("\n".join(filter(None, [with_full_stop(capitalize(report.sentence)), self._state_words()])))
        self.button.setText(tr("Remove the calibration") if self._is_applied else tr("Calibrate the model"))
        self.button.setEnabled(True)
        self._show()

    def show_mistake(self, sentence: str) -> None:
        """Show why the model cannot be calibrated."""
        self.said.setText(with_full_stop(capitalize(sentence)))
        self.button.setEnabled(True)
        self._show()

    def _state_words(self) -> str:
        report = self._report
        assert report is not None
        rows = trn("{count} row", "{count} rows", report.rows)
        if report.applied is None:
            return tr(
                "Temperature {temperature}, fitted on {rows}. It changes no prediction, only how sure the model is.",
                temperature=figure(report.temperature, ".3g"),
                rows=rows,
            )
        return tr(
            "The model now predicts with the temperature {temperature}. These predictions stay as they were written.",
            temperature=figure(report.applied, ".3g"),
        )

    def _show(self) -> None:
        report, is_after = self._report, self.sides.checkedId() == AFTER
        self._chips.setVisible(report is not None)
        if report is None:
            self.error.setText(tr("ECE {calibration_error}", calibration_error=number(self._error)))
            self.diagram.show_bins(self._bins)
        else:
            side = report.after if is_after else report.before
            self.error.setText(
                tr("ECE {calibration_error}", calibration_error=sure_number(side.error, side.error_interval))
            )
            self.diagram.show_bins(side.bins)
        self.hint.setText(_HINT_AFTER if is_after else _HINT)
        self.said.setVisible(bool(self.said.text()))
        self.button.setVisible(report is not None)

    def show_chosen(self, bounds: tuple[float, float] | None) -> None:
        """Mark the bar whose rows are shown, or none; emits nothing."""
        self.diagram.show_chosen(bounds if self.sides.checkedId() == BEFORE else None)

    def _on_bin_chosen(self, low: float, high: float) -> None:
        if self.sides.checkedId() == BEFORE:
            self.bin_chosen.emit(low, high)
        else:  # the rows are listed by the confidence with which they were predicted
            self.diagram.show_chosen(None)

    def apply_theme(self) -> None:
        """Nothing to update: the diagram reads its colours at every paint."""
        self.diagram.update()
