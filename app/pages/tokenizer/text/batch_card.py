"""What is shown of several texts in place of tokens: a model's padded batch."""

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.core.formatting import group_digits
from app.core.i18n import thin, tr, trn
from app.widgets.boxes import hbox
from app.widgets.card import Card, label
from app.widgets.forms.chips import chips
from app.widgets.icon_label import IconToolButton
from app.widgets.tables.id_grid import VIEWS, IdGrid
from backend.contract.tokens.batches import TokenGrid


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
