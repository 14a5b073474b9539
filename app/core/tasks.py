"""What the window knows about tasks: the title and row view that each declares, once the catalog is loaded."""

from collections.abc import Iterable

from app.core.backend_words import capitalize
from backend.contract.catalog import TaskEntry

_entries: dict[str, TaskEntry] = {}


def learn_tasks(entries: Iterable[TaskEntry]) -> None:
    """Learn titles and row views from the catalog's entries."""
    _entries.update((entry.name, entry) for entry in entries)


def task_title(name: str) -> str:
    """`Text classification` for `text_classification`; derived from the name until the catalog is loaded."""
    return _entries[name].title if name in _entries else capitalize(name.replace("_", " "))


def row_view(name: str) -> str:
    """The row view that a task declares; empty if the task is unknown or declares none."""
    return _entries[name].row_view if name in _entries else ""
