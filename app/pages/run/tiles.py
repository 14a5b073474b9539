"""Owns the row of numbers of the Run page."""

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from app.core import formatting
from app.core.i18n import tr, trn
from app.core.runs.run_state import RunState
from app.core.runs.run_status import Outcome
from app.core.runs.series import Series
from app.widgets.kpi import KpiTile

CAPTIONS = {
    "loss": tr("Training loss"),
    "evaluation_loss": tr("Evaluation loss"),
    "metric": tr("Metric"),
    "step": tr("Step"),
    "speed": tr("Rows / s"),
    "learning_rate": tr("Learning rate"),
    "memory": tr("Memory"),
    "eta": tr("Time left"),
}
WIDE = 1240
"""From this width on all tiles stand in one row."""
FEW = 4
"""Tiles of one row where there is no room for two: the losses, the metric and the step."""


class Tiles(QWidget):
    """Eight numbers, in one row or two."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tiles = {key: KpiTile(caption) for key, caption in CAPTIONS.items()}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(12)
        self._columns = 0
        self._is_low = False
        self._arrange(FEW)

    def clear(self) -> None:
        """No run, no numbers."""
        for tile in self.tiles.values():
            tile.set_value("–", " ")

    def show_state(self, state: RunState, outcome: Outcome) -> None:
        """Take over what has changed; equal text costs nothing."""
        self._show_losses(state)
        self._show_metric(state)
        total = (
            tr("of {total_steps}", total_steps=formatting.grouped(state.total_steps)) if state.total_steps else "\u00a0"
        )
        epochs = (
            tr(" · epoch {epoch:.1f} of {epochs}", epoch=state.epoch, epochs=formatting.epochs(state.plan.epochs))
            if state.plan
            else ""
        )
        self.tiles["step"].set_value(formatting.grouped(state.step), total + epochs)
        tokens = tr("{tokens_per_second} tokens / s", tokens_per_second=formatting.rate(state.pace.tokens_per_second))
        self.tiles["speed"].set_value(formatting.rate(state.pace.rows_per_second), tokens)
        self.tiles["speed"].setToolTip(_left_out(state))
        rate = state.series.get("learning_rate")
        norm = state.series.get("gradient_norm")
        steepness = tr("gradient norm {last}", last=formatting.number(norm.last, 2)) if norm else "\u00a0"
        self.tiles["learning_rate"].set_value(formatting.scientific(rate.last if rate else None), steepness)
        self._show_memory(state)
        self._show_time(state, outcome)

    def _show_losses(self, state: RunState) -> None:
        loss = state.series.get("loss")
        mean = tr("{recent_mean} recent mean", recent_mean=formatting.number(_recent_mean(loss))) if loss else "\u00a0"
        self.tiles["loss"].set_value(formatting.number(loss.last if loss else None), mean)
        evaluated = state.metric_series.get("loss")
        where = (
            tr("at step {xs}", xs=formatting.grouped(int(evaluated.xs[-1]))) if evaluated else tr("not evaluated yet")
        )
        self.tiles["evaluation_loss"].set_value(formatting.number(evaluated.last if evaluated else None), where)

    def _show_metric(self, state: RunState) -> None:
        name, tile = state.main_metric, self.tiles["metric"]
        tile.set_caption(formatting.metric_title(name) if name and name != "loss" else tr("Metric"))
        if not name or name == "loss":
            tile.set_value("–", "\u00a0")
            return
        best = state.best_of(name)
        sub = (
            tr("best {best} at step {step}", best=formatting.number(best[1]), step=formatting.grouped(best[0]))
            if best is not None
            else "\u00a0"
        )
        tile.set_value(formatting.number(state.last_metric(name)), sub)

    def _show_memory(self, state: RunState) -> None:
        memory, where = state.memory, " · ".join(filter(None, [state.device, state.precision])) or "\u00a0"
        if memory is None:
            self.tiles["memory"].set_value("–", where)
        elif memory.device_memory_mb is not None:
            self.tiles["memory"].set_value(
                formatting.megabytes(memory.device_memory_mb),
                tr(
                    "{where} · {memory_mb} in main memory",
                    where=where,
                    memory_mb=formatting.megabytes(memory.memory_mb),
                ),
            )
        else:
            self.tiles["memory"].set_value(formatting.megabytes(memory.memory_mb), where)

    def _show_time(self, state: RunState, outcome: Outcome) -> None:
        tile, spent = self.tiles["eta"], state.seconds_spent
        if outcome.alive:
            tile.set_caption(tr("Time left"))
            tile.set_value(
                formatting.duration(state.eta_seconds), tr("{spent} so far", spent=formatting.duration(spent))
            )
        else:
            tile.set_caption(tr("Duration"))
            tile.set_value(
                formatting.duration(spent), tr("started {started}", started=formatting.moment(state.started))
            )

    def resizeEvent(self, event: QResizeEvent) -> None:
        """One row where there is room."""
        super().resizeEvent(event)
        self._arrange(len(self.tiles) if event.size().width() >= WIDE else FEW)

    def set_low(self, is_low: bool) -> None:
        """Whether the page is too low for a second row."""
        if is_low != self._is_low:
            self._is_low = is_low
            self._show_rows()

    def _show_rows(self) -> None:
        for number, tile in enumerate(self.tiles.values()):
            tile.setVisible(number < self._columns or not self._is_low)

    def _arrange(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        for number, tile in enumerate(self.tiles.values()):
            self._grid.addWidget(tile, number // columns, number % columns)
        for column in range(8):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)
        self._show_rows()


def _left_out(state: RunState) -> str:
    """What the speed does not count, of an engine that compiles."""
    if not state.compilations:
        return ""
    programs, seconds = (
        trn("{count} program", "{count} programs", state.compilations),
        formatting.duration(state.compiling_seconds),
    )
    return tr(
        "Without the time in which the engine compiled: {programs}, {seconds}", programs=programs, seconds=seconds
    )


def _recent_mean(series: Series, points: int = 20) -> float:
    """The mean of the last points: single steps jump."""
    last = series.ys[-points:]
    return sum(last) / len(last)
