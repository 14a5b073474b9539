"""What the window knows of tasks: the title and the row view that each declares, once the catalog has come."""

from collections.abc import Iterable

from app.core.backend_words import capitalize
from backend.contract.catalog import TaskEntry

_entries: dict[str, TaskEntry] = {}


def learn_tasks(entries: Iterable[TaskEntry]) -> None:
    """Take titles and row views from the catalog's entries."""
    _entries.update((entry.name, entry) for entry in entries)


def task_title(name: str) -> str:
    """`Text classification` for `text_classification`; made of the name until the catalog has come."""
    return _entries[name].title if name in _entries else capitalize(name.replace("_", " "))


def row_view(name: str) -> str:
    """The form that a task declares for its rows; empty for a task that is unknown or declares none."""
    return _entries[name].row_view if name in _entries else ""
