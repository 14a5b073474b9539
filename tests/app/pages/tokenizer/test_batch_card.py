"""The grid of a batch: ids, pieces or the attention mask."""

import numpy as np
import pytest
from PySide6.QtCore import QItemSelection, QItemSelectionModel

from app.pages.tokenizer.text.batch_card import IdGrid


@pytest.fixture
def grid(qtbot, styled) -> IdGrid:
    made = IdGrid()
    qtbot.addWidget(made)
    ids = np.array([[101, 5, 102], [101, 102, 0]])
    mask = np.array([[1, 1, 1], [1, 1, 0]])
    made.set_batch(ids, mask, {101: "[CLS]", 102: "[SEP]", 5: "Ġa", 0: "[PAD]"}, frozenset((101, 102, 0)))
    return made


def test_a_batch_shows_ids_pieces_or_the_mask(grid: IdGrid):
    shown = []
    for view in range(3):
        grid.set_view(view)
        shown.append(grid.cell(0, 1))
    assert shown == ["5", "Ġa", "1"]
    assert grid.cell(1, 2) == "0"


def test_a_batch_is_copied_row_by_row(grid: IdGrid):
    assert grid.selected_text() == "101, 5, 102\n101, 102, 0"
    cells, choose = grid.model(), QItemSelectionModel.SelectionFlag.ClearAndSelect
    grid.selectionModel().select(QItemSelection(cells.index(1, 0), cells.index(1, 2)), choose)
    assert grid.selected_text() == "101, 102, 0"


def test_a_shorter_row_without_padding_ends_early(grid: IdGrid):
    grid.set_batch(np.array([[7, -1]]), np.array([[1, 0]]), {7: "x"})
    assert [grid.cell(0, 0), grid.cell(0, 1)] == ["7", ""]
