"""Which cells of a row are its choices."""

import numpy as np
import pyarrow as pa

from backend.data.rows import Rows
from backend.tasks._choices import MAX_COLUMNS, read_choices


def choices_of(*cells: str) -> list[str]:
    """The choices of one row with a column for each."""
    table = pa.table({f"choice_{number}": [cell] for number, cell in enumerate(cells)})
    rows = Rows(table, ("new.csv",), np.zeros(1, np.int32), np.array([2]), "f")
    columns = {f"choice_{number}": f"choice_{number}" for number in range(min(len(cells), MAX_COLUMNS))}
    return read_choices(rows, columns, range(1)).texts[0]


def test_empty_cells_behind_the_last_choice_are_none() -> None:
    assert choices_of("red", "blue", "", " ") == ["red", "blue"]


def test_an_empty_choice_between_others_keeps_its_number() -> None:
    assert choices_of("", "red", "blue") == ["", "red", "blue"]
