"""Owns a row's own cells as people read them: the columns that the task reads."""

from backend.data.column_summary import cell_text
from backend.inspect.batch_preview import Look
from backend.tasks.task import used_columns

MAX_CHARACTERS = 4000


def row_cells(look: Look, row: int) -> list[tuple[str, str]]:
    """Column and text of each cell that the task reads, in the task's order."""
    named = [look.session.columns.get(column.name) for column in used_columns(look.session.task)]
    there = [name for name in dict.fromkeys(named) if name in look.rows.table.column_names]
    return [(name, cell_text(look.rows.table[name][row].as_py(), MAX_CHARACTERS)) for name in there if name]


def row_text(look: Look, row: int, characters: int = 200) -> str:
    """The beginning of a row in one line."""
    text = " ".join(" · ".join(text for _, text in row_cells(look, row) if text).split())
    return text if len(text) <= characters else f"{text[: characters - 1]}…"
