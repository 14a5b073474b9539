"""A model's padded batch in place of tokens: a grid of ids, pieces or the attention mask, and the share of padding."""

from collections.abc import Mapping

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QItemSelectionModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app import theme
from app.core.formatting import group_digits
from app.core.i18n import thin, tr, trn
from app.core.text.invisible_characters import visible
from app.widgets.boxes import hbox
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.icon_label import IconToolButton
from backend.contract.tokens.batches import TokenGrid

CELL_WIDTH, CELL_HEIGHT = 64, 26
VIEWS = (tr("IDs"), tr("Pieces"), tr("Attention mask"))
_ROOT = QModelIndex()
_AnyIndex = QModelIndex | QPersistentModelIndex


class BatchCard(Card):
    """A grid of ids, pieces or the attention mask, and the share of padding."""

    message = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent, spacing=8)
        self.grid = IdGrid()
        self.views, row = chips(VIEWS, self.grid.set_view)
        copy = IconToolButton("copy", tr("Copy the selected cells, or all"), clicked=self._copy)
        self.counts = label("", "muted", wrap=True)
        self.add_all(hbox(row, 1, copy), (self.grid, 1), self.counts)

    def show_grid(self, answer: TokenGrid) -> None:
        """Show a batch."""
        shape = (answer.rows, answer.width)
        ids, mask = (np.array(values, np.int64).reshape(shape) for values in (answer.ids, answer.mask))
        pieces = dict(zip(answer.piece_ids, answer.pieces, strict=True))
        self.grid.set_batch(ids, mask, pieces, frozenset(answer.special_ids))
        self.counts.setText(" · ".join(batch_summary(answer)))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.grid.selected_text())
        self.message.emit("success", tr("Copied the batch."))


def batch_summary(answer: TokenGrid) -> list[str]:
    """`3 rows × 17 · 12 of 51 are padding (24%)`."""
    cells, real = answer.rows * answer.width, sum(answer.lengths)
    words = [f"{trn('{count} row', '{count} rows', answer.rows)} × {group_digits(answer.width)}"]
    if cells > real:
        words.append(
            tr(
                "{cells} of {cells_2} are padding ({cells_3:.0%})",
                cells=group_digits(cells - real),
                cells_2=group_digits(cells),
                cells_3=(cells - real) / cells,
            )
        )
    elif cells:
        words.append(tr("no padding"))
    cut = sum(one > 0 for one in answer.left_out)
    if cut:
        words.append(
            tr(
                "{count} truncated, {count_2} lost",
                count=trn("{count} row", "{count} rows", cut),
                count_2=trn("{count} token", "{count} tokens", sum(answer.left_out)),
            )
        )
    if answer.pad_id is not None and cells > real:
        words.append(tr("filled with ID {pad_id}", pad_id=answer.pad_id))
    return [*words, *map(thin, answer.notes)]


class _Cells(QAbstractTableModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.ids = np.zeros((0, 0), np.int64)
        self.mask = self.ids
        self.lengths: list[int] = []
        self.pieces: Mapping[int, str] = {}
        self.specials: frozenset[int] = frozenset()
        self.view = 0

    def rowCount(self, parent: _AnyIndex = _ROOT) -> int:
        return 0 if parent.isValid() else self.ids.shape[0]

    def columnCount(self, parent: _AnyIndex = _ROOT) -> int:
        return 0 if parent.isValid() else self.ids.shape[1]

    def data(self, index: _AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = index.row(), index.column()
        token, is_there = int(self.ids[row, column]), bool(self.mask[row, column])
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(token, is_there)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignCenter)
        if role == Qt.ItemDataRole.ForegroundRole:
            return theme.color(_ink(is_there, token in self.specials))
        if role == Qt.ItemDataRole.BackgroundRole:
            return theme.color("card_alternate") if not is_there else None
        if role == Qt.ItemDataRole.ToolTipRole:
            words = "padding" if not is_there else tr("token {column} of row {row}", column=column, row=row + 1)
            return f"{visible(self.pieces.get(token, ''))}   {token}\n{words}" if token >= 0 else "nothing"
        return None

    def _text(self, token: int, is_there: bool) -> str:
        if self.view == 2:
            return "1" if is_there else "0"
        if token < 0:
            return ""
        return str(token) if self.view == 0 else visible(self.pieces.get(token, ""))

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignCenter)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return str(section) if orientation == Qt.Orientation.Horizontal else f"{section + 1} · {self.lengths[section]}"


def _ink(is_there: bool, is_special: bool) -> str:
    return "disabled" if not is_there else "accent_text" if is_special else "text"


class IdGrid(QTableView):
    """Shows a batch; Ctrl+C copies the selected cells as rows of numbers."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cells = _Cells(self)
        self.setModel(self._cells)
        self.setAccessibleName(tr("Batch"))
        theme.give_font(self, 12, mono=True)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)  # Tab leaves the table
        self.setSelectionMode(QAbstractItemView.SelectionMode.ContiguousSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        for header, size in ((self.horizontalHeader(), CELL_WIDTH), (self.verticalHeader(), CELL_HEIGHT)):
            # Their own selection: with the table's, selecting everything asks every header section for every cell.
            header.setSelectionModel(QItemSelectionModel(self._cells, self))
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
            header.setMinimumSectionSize(20)
            header.setDefaultSectionSize(size)
            header.setHighlightSections(False)

    def set_batch(
        self, ids: np.ndarray, mask: np.ndarray, pieces: Mapping[int, str], specials: frozenset[int] = frozenset()
    ) -> None:
        """Show (rows, width) ids and mask; an id of −1 is an empty cell; `pieces` are by id."""
        cells = self._cells
        cells.beginResetModel()
        cells.ids, cells.mask, cells.pieces, cells.specials = ids, mask, pieces, specials
        cells.lengths = mask.sum(1).tolist()
        cells.endResetModel()
        self._fit()

    def set_view(self, view: int) -> None:
        """Show another of VIEWS, by index."""
        self._cells.view = view
        self._fit()
        self.viewport().update()

    def _fit(self) -> None:
        longest = max((len(visible(piece)) for piece in self._cells.pieces.values()), default=0)
        width = {0: CELL_WIDTH, 1: min(160, 24 + 8 * longest), 2: 34}[self._cells.view]
        self.horizontalHeader().setDefaultSectionSize(width)

    def cell(self, row: int, column: int) -> str:
        """A cell's text."""
        return str(self._cells.data(self._cells.index(row, column)))

    def selected_text(self) -> str:
        """The selected cells, one row per line; all if nothing is selected."""
        chosen = self.selectionModel().selection()
        cells, rows, columns = self._cells, self._cells.rowCount(), self._cells.columnCount()
        area = chosen.first() if not chosen.isEmpty() else None
        across = range(area.left(), area.right() + 1) if area else range(columns)
        down = range(area.top(), area.bottom() + 1) if area else range(rows)
        lines = ([cells._text(int(cells.ids[row, one]), bool(cells.mask[row, one])) for one in across] for row in down)
        return "\n".join(", ".join(filter(None, line)) for line in lines)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl+C copies."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.selected_text())
        else:
            super().keyPressEvent(event)
