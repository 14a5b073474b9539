"""The popup that breaks a run's cost down: memory, time and tokens by their parts."""

import time

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QVBoxLayout, QWidget

from app import theme
from app.core import formatting
from app.core.backend_words import translate_word
from app.core.draft import run_duration
from app.core.i18n import tr, trn
from app.widgets.card import label
from app.widgets.progress import ThinProgressBar
from backend.contract.rpc.plan import Placement, RunPlan

WIDTH = 470


class CostDetails(QFrame):
    """Closes at the next click elsewhere, or on Escape."""

    def __init__(self, plan: RunPlan, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        theme.role(self, "sheet")
        self.setAccessibleName(tr("Cost details"))
        self.setFixedWidth(WIDTH)
        self.rows: list[tuple[str, str]] = []
        """What is shown, name and value."""
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(18, 14, 18, 16)
        self._column.setSpacing(6)
        self._memory(plan)
        self._time(plan)
        self._tokens(plan)
        for one in plan.placement:
            self._column.addWidget(label(placed_words(one), "faint", wrap=True))

    def _memory(self, plan: RunPlan) -> None:
        grid = self._section(
            tr(
                "Memory · about {memory_mb} of {available_mb}",
                memory_mb=formatting.megabytes(plan.memory_mb),
                available_mb=formatting.megabytes(plan.available_mb),
            )
        )
        for part in plan.memory:
            bar = ThinProgressBar()
            bar.set_fraction(part.megabytes / plan.memory_mb if plan.memory_mb else 0.0)
            self._row(grid, translate_word(part.name), formatting.megabytes(part.megabytes), bar)

    def _time(self, plan: RunPlan) -> None:
        known = run_duration.whole(plan) if plan.seconds is not None else tr("unknown until measured")
        grid = self._section(tr("Time · {known}", known=known))
        for part in plan.time:
            self._row(
                grid,
                translate_word(part.name),
                run_duration.of_part(part),
                label(run_duration.basis_words(part), "faint", wrap=True),
            )
        if plan.measured is not None:
            words = " ".join(run_duration.details(plan.measured, plan.memory_mb, time.time()))
            note = label(words, "faint", wrap=True)
            note.setContentsMargins(0, 0, 0, 8)
            self._column.addWidget(note)

    def _tokens(self, plan: RunPlan) -> None:
        grid = self._section(tr("Tokens and batches"))
        self._row(
            grid,
            tr("Per epoch"),
            formatting.group_digits(plan.tokens_per_epoch),
            label(tr("excluding padding"), "faint"),
        )
        if plan.padding is not None:
            self._row(
                grid,
                tr("Padding"),
                tr("about {padding:.0%}", padding=plan.padding),
                label(tr("of all tokens computed"), "faint"),
            )
        if plan.longest:
            self._row(grid, tr("Longest row"), trn("{count} token", "{count} tokens", plan.longest), label("", "faint"))
        passes = (
            f"{plan.accumulation} × {plan.micro_batch_size}" if plan.accumulation > 1 else str(plan.micro_batch_size)
        )
        self._row(
            grid,
            tr("Batch size"),
            formatting.group_digits(plan.batch_size),
            label(tr("micro-batches of {passes}", passes=passes), "faint"),
        )

    def _section(self, title: str) -> QGridLayout:
        self._column.addWidget(label(title, "strong"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(2)
        grid.setContentsMargins(0, 0, 0, 8)
        grid.setColumnMinimumWidth(0, 110)
        grid.setColumnMinimumWidth(1, 90)
        grid.setColumnStretch(2, 1)
        self._column.addLayout(grid)
        return grid

    def _row(self, grid: QGridLayout, name: str, value: str, beside: QWidget) -> None:
        self.rows.append((name, value))
        row = grid.rowCount()
        value_label = label(value)
        value_label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        grid.addWidget(label(name, "muted"), row, 0)
        grid.addWidget(value_label, row, 1)
        grid.addWidget(beside, row, 2)

    def popup_above(self, widget: QWidget) -> None:
        """A popup above a widget at the bottom of the window, within its screen."""
        self.adjustSize()
        corner = widget.mapToGlobal(QPoint(widget.width() - WIDTH, -self.height() - 6))
        area = widget.screen().availableGeometry()
        self.move(max(area.left() + 8, corner.x()), max(area.top() + 8, corner.y()))
        self.show()
        self.setFocus()


def placed_words(one: Placement) -> str:
    """What is placed on one of several devices."""
    weights, optimizer = formatting.megabytes(one.weights_mb), formatting.megabytes(one.optimizer_mb)
    return tr(
        "{device}: micro-batches of {count}, weights {weights}, optimizer {optimizer}",
        device=one.device,
        count=trn("{count} row", "{count} rows", one.rows),
        weights=weights,
        optimizer=optimizer,
    )
