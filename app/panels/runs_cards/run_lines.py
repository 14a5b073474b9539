"""Owns the lines of the table of runs: what stands in each cell, and the headings of groups."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from app import theme
from app.core import wording
from app.core.language import inside, tr
from app.core.run_library import RunSummary
from app.core.run_names import one_before, what_differs
from app.core.run_order import COLUMNS, Heading, Line, model_words, state_words, task_words

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


def cell(run: RunSummary, column: str) -> str:
    """The text of one cell; `column` is one of COLUMNS."""
    return _CELLS[column](run)


def _best(run: RunSummary) -> str:
    return f"{wording.metric_title(run.metric)} {wording.number(run.best)}" if run.best is not None else "–"


def _steps(run: RunSummary) -> str:
    total = f" / {wording.grouped(run.total_steps)}" if run.total_steps else ""
    return f"{wording.grouped(run.step)}{total}"


_CELLS: dict[str, Callable[[RunSummary], str]] = {
    "run": lambda run: run.title,
    "state": state_words,
    "task": task_words,
    "model": model_words,
    "data": lambda run: run.data,
    "best": _best,
    "steps": _steps,
    "duration": lambda run: wording.duration(run.seconds),
    "started": lambda run: wording.moment(run.started),
    "tags": lambda run: " ".join(f"#{tag}" for tag in run.tags),
}
NAMES = tuple(COLUMNS)


class RunLines(QAbstractTableModel):
    """Runs, and headings where they are gathered in groups."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.lines: list[Line] = []

    def set(self, lines: Sequence[Line]) -> bool:
        """Show these; where the same runs stand in the same lines only their cells are painted anew. Says whether not."""
        same = list(map(_identity, lines)) == list(map(_identity, self.lines))
        if same:
            self.lines = list(lines)
            if lines:
                self.dataChanged.emit(self.index(0, 0), self.index(len(lines) - 1, len(COLUMNS) - 1))
            return False
        self.beginResetModel()
        self.lines = list(lines)
        self.endResetModel()
        return True

    def run(self, row: int) -> RunSummary | None:
        """The run in a line, None for a heading."""
        line = self.lines[row] if 0 <= row < len(self.lines) else None
        return line if isinstance(line, RunSummary) else None

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.lines)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return len(COLUMNS)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """A heading can be neither chosen nor reached by the arrow keys."""
        return super().flags(index) if self.run(index.row()) else Qt.ItemFlag.NoItemFlags

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return COLUMNS[NAMES[section]]
        if role == Qt.ItemDataRole.ToolTipRole:
            return tr("Sort by {COLUMNS}", COLUMNS=inside(COLUMNS[NAMES[section]]))
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        line, column = self.lines[index.row()], NAMES[index.column()]
        if isinstance(line, Heading):
            return _of_heading(line, column, role)
        if role == Qt.ItemDataRole.DisplayRole:
            return cell(line, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._told(line) if column in ("run", "state") else cell(line, column)
        if role == Qt.ItemDataRole.ForegroundRole and column != "run":
            return theme.color("muted")
        if role == Qt.ItemDataRole.FontRole and column == "run":
            return theme.font(13, QFont.Weight.DemiBold)
        return None

    def _told(self, run: RunSummary) -> str:
        """What no column shows: how it ended, a person's note, and what sets it apart from the one of its name before."""
        before = one_before(run, [line for line in self.lines if isinstance(line, RunSummary)])
        differs = what_differs(run, before) if before else []
        if before and differs:
            differs = [
                tr("Unlike {title} of {started}:", title=before.title, started=wording.moment(before.started)),
                *differs,
            ]
        return "\n".join(filter(None, [run.message, run.note, *differs])) or str(run.path)


def _of_heading(heading: Heading, column: str, role: int) -> object:
    if role == Qt.ItemDataRole.DisplayRole and column == "run":
        return f"{heading.title}  ·  {heading.count}"
    if role == Qt.ItemDataRole.ForegroundRole:
        return theme.color("muted")
    if role == Qt.ItemDataRole.BackgroundRole:
        return theme.color("window")
    return theme.font(12, QFont.Weight.DemiBold) if role == Qt.ItemDataRole.FontRole else None


def _identity(line: Line) -> object:
    return line.path if isinstance(line, RunSummary) else line
