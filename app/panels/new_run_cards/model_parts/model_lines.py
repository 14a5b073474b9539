"""Owns the lines of the list of models for Qt: texts, icons, colours, and what a screen reader says."""

from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from app import theme
from app.core import model_rows
from app.core.model_rows import Heading, Line
from backend.contract.model_choices import ModelChoice

Index = QModelIndex | QPersistentModelIndex
NAMES = tuple(model_rows.COLUMNS)
_ROOT = QModelIndex()
_ICONS = {"success": "check", "warning": "info", "danger": "error", "neutral": "info"}
_INK = {"success": "success", "warning": "warning", "danger": "danger", "neutral": "muted"}


class ModelLines(QAbstractTableModel):
    """Models, and the headings of their groups."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.lines: list[Line] = []
        self._is_hub = False

    def set(self, lines: Sequence[Line]) -> None:
        """Show these."""
        self.beginResetModel()
        self.lines = list(lines)
        models = [line for line in lines if isinstance(line, ModelChoice)]
        self._is_hub = bool(models) and all(one.group == "hub" for one in models)
        self.endResetModel()

    def model(self, row: int) -> ModelChoice | None:
        """The model in a line, None for a heading."""
        line = self.lines[row] if 0 <= row < len(self.lines) else None
        return line if isinstance(line, ModelChoice) else None

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.lines)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return len(NAMES)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """A heading cannot be reached; a model that does not fit can, so that one may read why."""
        return super().flags(index) if self.model(index.row()) else Qt.ItemFlag.NoItemFlags

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        titles = model_rows.ON_HUB if self._is_hub else model_rows.COLUMNS
        return titles[NAMES[section]] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        line, column = self.lines[index.row()], NAMES[index.column()]
        if isinstance(line, Heading):
            return _of_heading(line, column, role)
        return _of_model(line, column, role)


def _of_model(line: ModelChoice, column: str, role: int) -> object:
    match role:
        case Qt.ItemDataRole.DisplayRole:
            return model_rows.cell(line, column)
        case Qt.ItemDataRole.ToolTipRole:
            said = "\n".join(model_rows.sentences(line))
            return said if said and column in ("model", "verdict") else f"{model_rows.cell(line, column)}"
        case Qt.ItemDataRole.AccessibleTextRole if column == "model":
            return model_rows.spoken(line)
        case Qt.ItemDataRole.ForegroundRole:
            return theme.color(_ink(line, column))
        case Qt.ItemDataRole.DecorationRole if column == "verdict":
            kind = model_rows.kind(line)
            return theme.icon(_ICONS[kind], _INK[kind], 15)
        case _:
            return None


def _ink(line: ModelChoice, column: str) -> str:
    if column == "verdict":
        return _INK[model_rows.kind(line)]
    if line.problem:
        return "faint"
    return "text" if column == "model" else "muted"


def _of_heading(heading: Heading, column: str, role: int) -> object:
    if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole) and column == "model":
        return f"{heading.title}  ·  {heading.count}"
    if role == Qt.ItemDataRole.ForegroundRole:
        return theme.color("muted")
    if role == Qt.ItemDataRole.BackgroundRole:
        return theme.color("window")
    return theme.font(12, QFont.Weight.DemiBold) if role == Qt.ItemDataRole.FontRole else None
