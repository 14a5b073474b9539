"""Owns the lines of the list of models for Qt: texts, icons, colours, and what a screen reader says."""

from collections.abc import Sequence

from PySide6.QtCore import Qt

from app import theme
from app.core.draft import model_rows
from app.core.draft.model_rows import Line
from app.widgets.tables.grouped_list import GroupedLines
from backend.contract.rpc.model_choices import ModelChoice

_ICONS = {"success": "check", "warning": "info", "danger": "error", "neutral": "info"}
_INK = {"success": "success", "warning": "warning", "danger": "danger", "neutral": "muted"}


class ModelLines(GroupedLines):
    """Models, and the headings of their groups; a model that does not fit can be marked, so that one may read why."""

    def __init__(self) -> None:
        super().__init__(model_rows.COLUMNS)

    def show(self, lines: Sequence[Line]) -> None:
        """Show these."""
        models = [line for line in lines if isinstance(line, ModelChoice)]
        are_of_hub = bool(models) and all(one.group == "hub" for one in models)
        self.titles = model_rows.ON_HUB if are_of_hub else model_rows.COLUMNS
        super().show(lines)

    def of_item(self, item: ModelChoice, column: str, role: int) -> object:
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return model_rows.cell(item, column)
            case Qt.ItemDataRole.ToolTipRole:
                said = "\n".join(model_rows.sentences(item))
                return said if said and column in ("model", "verdict") else f"{model_rows.cell(item, column)}"
            case Qt.ItemDataRole.AccessibleTextRole if column == "model":
                return model_rows.spoken(item)
            case Qt.ItemDataRole.ForegroundRole:
                return theme.color(_ink(item, column))
            case Qt.ItemDataRole.DecorationRole if column == "verdict":
                kind = model_rows.kind(item)
                return theme.icon(_ICONS[kind], _INK[kind], 15)
            case _:
                return None


def _ink(line: ModelChoice, column: str) -> str:
    if column == "verdict":
        return _INK[model_rows.kind(line)]
    if line.problem:
        return "faint"
    return "text" if column == "model" else "muted"
