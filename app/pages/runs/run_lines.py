"""Owns the lines of the table of runs: what stands in each cell, and the headings of groups."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont

from app import theme
from app.core import formatting
from app.core.draft.run_names import one_before, what_differs
from app.core.i18n import inside, tr
from app.core.runs.run_library import RunSummary
from app.core.runs.run_order import COLUMNS, Line, model_words, state_words, task_words
from app.widgets.tables.grouped_list import GroupedLines


def cell(run: RunSummary, column: str) -> str:
    """The text of one cell; `column` is one of COLUMNS."""
    return _CELLS[column](run)


def _best(run: RunSummary) -> str:
    return f"{formatting.metric_title(run.metric)} {formatting.number(run.best)}" if run.best is not None else "–"


def _steps(run: RunSummary) -> str:
    total = f" / {formatting.grouped(run.total_steps)}" if run.total_steps else ""
    return f"{formatting.grouped(run.step)}{total}"


_CELLS: dict[str, Callable[[RunSummary], str]] = {
    "run": lambda run: run.title,
    "state": state_words,
    "task": task_words,
    "model": model_words,
    "data": lambda run: run.data,
    "best": _best,
    "steps": _steps,
    "duration": lambda run: formatting.duration(run.seconds),
    "started": lambda run: formatting.moment(run.started),
    "tags": lambda run: " ".join(f"#{tag}" for tag in run.tags),
}


class RunLines(GroupedLines):
    """Runs, and headings where they are gathered in groups."""

    def __init__(self) -> None:
        super().__init__(COLUMNS)

    def set(self, lines: Sequence[Line]) -> bool:
        """Show these; where the same runs stand in the same lines only their cells are painted anew. Says whether not."""
        same = list(map(_identity, lines)) == list(map(_identity, self.lines))
        if not same:
            self.show(lines)
            return True
        self.lines = list(lines)
        if lines:
            self.dataChanged.emit(self.index(0, 0), self.index(len(lines) - 1, len(COLUMNS) - 1))
        return False

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.ToolTipRole:
            return tr("Sort by {COLUMNS}", COLUMNS=inside(COLUMNS[self.names[section]]))
        return super().headerData(section, orientation, role)

    def of_item(self, item: RunSummary, column: str, role: int) -> object:
        if role == Qt.ItemDataRole.DisplayRole:
            return cell(item, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._told(item) if column in ("run", "state") else cell(item, column)
        if role == Qt.ItemDataRole.AccessibleDescriptionRole and column == "state":
            return item.doubt
        if role == Qt.ItemDataRole.ForegroundRole and column != "run":
            return theme.color("muted")
        if role == Qt.ItemDataRole.FontRole and column == "run":
            return theme.font(13, QFont.Weight.DemiBold)
        return None

    def _told(self, run: RunSummary) -> str:
        """What no column shows: how it ended, a person's note, and what sets it apart from the one of its name before."""
        before = one_before(run, self.items)
        differs = what_differs(run, before) if before else []
        if before and differs:
            differs = [
                tr("Unlike {title} of {started}:", title=before.title, started=formatting.moment(before.started)),
                *differs,
            ]
        return "\n".join(filter(None, [run.message, run.doubt, run.note, *differs])) or str(run.path)


def _identity(line: Line) -> object:
    return line.path if isinstance(line, RunSummary) else line
