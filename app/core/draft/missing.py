"""Owns what a person has still to choose before a run can be started, as a sentence."""

from app.core.draft.column_roles import used_parts
from app.core.draft.data_source import split_kind
from app.core.draft.draft import Draft
from app.core.i18n import inside, tr
from backend.contract.catalog import SourceEntry, TaskEntry
from backend.contract.rpc.data import DataPreview


def in_data(draft: Draft, source: SourceEntry | None) -> str:
    """What the choice of the data lacks; empty where it can be read."""
    kind = split_kind(source)
    if kind == "files":
        return "" if draft.get("data.train") else tr("Choose the training data, or try the demo.")
    settings = source.settings if source else {}
    fields = settings.get("properties", {})
    open_ones = [name for name in settings.get("required", []) if not draft.get(f"data.{name}")]
    if open_ones:
        return tr("Fill in “{get}” under Data.", get=fields[open_ones[0]].get("title", open_ones[0]))
    return tr("Name the split to train on under Data.") if kind == "names" and not draft.get("data.train") else ""


def in_columns(draft: Draft, task: TaskEntry, preview: DataPreview | None) -> str:
    """Which part of the task has no column; empty also while the columns are not known."""
    if preview is None:
        return ""
    without = [part for part in used_parts(task, draft) if part.required and not draft.get(f"data.columns.{part.name}")]
    return tr("Choose the column for: {title}.", title=inside(without[0].title)) if without else ""
