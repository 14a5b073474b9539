"""The list of models: one entry with two lines of text each, under group headings."""

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QRect, Qt, Signal
from PySide6.QtGui import QFont, QPainter, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app import theme
from app.core.draft import model_rows
from app.core.draft.model_rows import Line
from app.core.i18n import tr
from app.widgets.tables.grouped_list import GroupedList, GroupedListModel, Index
from backend.contract.rpc.models import ModelChoice

_ICONS = {"success": "check", "warning": "info", "danger": "error", "neutral": "info"}
_INK = {"success": "success", "warning": "warning", "danger": "danger", "neutral": "muted"}

ROW_HEIGHT, HEADING_HEIGHT = 46, 30
WIDTHS = {
    "family": 96,
    "parameters": 100,
    "size": 84,
    "licence": 104,
    "used": 116,
    "suitability": 132,
}
LEAVING = ("licence", "used", "family", "parameters")
"""What is left out first where there is little room."""
LEAST_FOR_NAME = 230
MARGIN = 12


class ModelListModel(GroupedListModel):
    """Models, and group headings; a model that does not fit can be selected, to read why."""

    def __init__(self) -> None:
        super().__init__(model_rows.COLUMNS)

    def show(self, lines: Sequence[Line]) -> None:
        """Show these models."""
        models = [line for line in lines if isinstance(line, ModelChoice)]
        are_of_hub = bool(models) and all(one.group == "hub" for one in models)
        self.titles = model_rows.ON_HUB if are_of_hub else model_rows.COLUMNS
        super().show(lines)

    def of_item(self, item: ModelChoice, column: str, role: int) -> object:
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return model_rows.cell(item, column)
            case Qt.ItemDataRole.ToolTipRole:
                tooltip = "\n".join(model_rows.sentences(item))
                return tooltip if tooltip and column in ("model", "suitability") else f"{model_rows.cell(item, column)}"
            case Qt.ItemDataRole.AccessibleTextRole if column == "model":
                return model_rows.spoken_line(item)
            case Qt.ItemDataRole.ForegroundRole:
                return theme.color(_ink(item, column))
            case Qt.ItemDataRole.DecorationRole if column == "suitability":
                kind = model_rows.kind(item)
                return theme.icon(_ICONS[kind], _INK[kind], 15)
            case _:
                return None


def _ink(line: ModelChoice, column: str) -> str:
    if column == "suitability":
        return _INK[model_rows.kind(line)]
    if line.problem:
        return "faint"
    return "text" if column == "model" else "muted"


class _KeepsColor(QStyledItemDelegate):
    """A selected cell keeps its own colour."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        super().initStyleOption(option, index)
        color = index.data(Qt.ItemDataRole.ForegroundRole)
        if color is not None:
            option.palette.setColor(QPalette.ColorRole.HighlightedText, color)  # type: ignore[attr-defined]


class _TwoLines(QStyledItemDelegate):
    """The model's name, and below it in small text what it is for."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        lines = index.model()
        assert isinstance(lines, ModelListModel)
        model = lines.item(index.row())
        if model is None:
            super().paint(painter, option, index)
            return
        blank = QStyleOptionViewItem(option)
        self.initStyleOption(blank, index)
        blank.text = ""
        blank.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, blank, painter, blank.widget)
        area = option.rect.adjusted(MARGIN, 5, -6, -5)
        half = area.height() // 2
        below = model_rows.under_title(model)
        painter.save()
        top = QRect(area.left(), area.top(), area.width(), half if below else area.height())
        _draw(painter, top, model_rows.title(model), 13, "faint" if model.problem else "text", bold=True)
        bottom = QRect(area.left(), area.top() + half, area.width(), half)
        _draw(painter, bottom, below, 12, "faint" if model.problem else "muted")
        painter.restore()


def _draw(painter: QPainter, area: QRect, text: str, pixels: int, token: str, bold: bool = False) -> None:
    painter.setFont(theme.font(pixels, QFont.Weight.DemiBold if bold else QFont.Weight.Normal))
    painter.setPen(theme.color(token))
    elided = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, area.width())
    painter.drawText(area, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), elided)


class ModelList(GroupedList):
    """Keeps the selection while the list changes."""

    marked = Signal(object)
    """A ModelChoice, or None."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self._models = ModelListModel()
        super().__init__(self._models, WIDTHS, LEAVING, LEAST_FOR_NAME, parent)
        self._names, self._cells = _TwoLines(self), _KeepsColor(self)
        self._changing = False
        self.setItemDelegate(self._cells)
        self.setItemDelegateForColumn(0, self._names)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Models"))
        self.verticalHeader().setMinimumSectionSize(HEADING_HEIGHT)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.horizontalHeader().setFixedHeight(32)
        self.horizontalHeader().setSectionsClickable(False)
        self.selectionModel().currentRowChanged.connect(self._on_current)

    @property
    def models(self) -> list[ModelChoice]:
        """The listed models."""
        return self._models.items

    def set_lines(self, lines: Sequence[Line], wanted: str = "") -> None:
        """List these, and select the previous selection, or `wanted`, or the first that fits."""
        before = self.current()
        self._changing = True
        self._models.show(lines)
        self.span_headings()
        for row in range(len(lines)):
            self.setRowHeight(row, HEADING_HEIGHT if self._models.item(row) is None else ROW_HEIGHT)
        self._changing = False
        self._mark(before.name if before else wanted)

    def current(self) -> ModelChoice | None:
        """The selected model."""
        return self.item_at_hand()

    def mark(self, name: str) -> None:
        """Select a model by name."""
        self._mark(name)

    def _mark(self, name: str) -> None:
        rows = [(row, one) for row in range(len(self._models.lines)) if (one := self._models.item(row))]
        row = next((row for row, one in rows if one.name == name), None)
        if row is None:
            row = next((row for row, one in rows if not one.problem), rows[0][0] if rows else None)
        if row is None:
            self.marked.emit(None)
            return
        self.setCurrentIndex(self._models.index(row, 0))
        if row == 1:
            self.scrollToTop()  # with its heading
        self.marked.emit(self.current())

    def _on_current(self, current: QModelIndex) -> None:
        if not self._changing:
            self.marked.emit(self._models.item(current.row()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the selected model in view."""
        super().resizeEvent(event)
        if event.size().height() < event.oldSize().height() and self.currentIndex().isValid():
            self.scrollTo(self.currentIndex())
