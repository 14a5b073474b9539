"""The main value of each section of a draft, on one line: `train.csv · 2 400 rows · text → label`."""

from collections.abc import Iterable, Mapping, Sequence
from glob import has_magic
from pathlib import PurePath
from typing import Any

from app.core import formatting
from app.core.backend_words import translate_word
from app.core.draft import search_space
from app.core.draft.data_source import data_name, split_kind, used_parts
from app.core.draft.device_choice import selected_devices
from app.core.draft.draft import Draft
from app.core.draft.draft_settings import value_words
from app.core.i18n import tr, trn
from backend.contract.catalog import Device, EngineEntry, SourceEntry, TaskEntry
from backend.contract.rpc.data import DataPreview
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.plan import RunPlan

LONGEST = 8
"""Characters of a number on the line."""


def data_words(draft: Draft, source: SourceEntry | None, task: TaskEntry | None, preview: DataPreview | None) -> str:
    """`train.csv · 2 400 rows · text → label`."""
    return _joined(
        source_words(draft, source, preview.files if preview is not None else ()),
        trn("{count} row", "{count} rows", preview.row_count) if preview is not None else "",
        _columns(draft, task) if task is not None and preview is not None else "",
    )


def source_words(draft: Draft, source: SourceEntry | None, files: Sequence[str] = ()) -> str:
    """What the data is called: its file, its folder with the number of files read from it, or a dataset's name."""
    if split_kind(source) != "files":
        return _joined(source.title if source is not None else "", data_name(draft, source))
    train = draft.get("data.train")
    if isinstance(train, list) and len(train) > 1:
        return trn("{count} file", "{count} files", len(train))
    path = train[0] if isinstance(train, list) and train else train
    path = path if isinstance(path, str) else ""
    return folder_words(path, len(files)) if len(files) > 1 else formatting.name_of_path(path)


def folder_words(path: str, count: int) -> str:
    """`corpus · folder with 3 files`, of a pattern `*.txt · 3 files`; without a path `3 files`."""
    if not path or has_magic(path):
        return _joined(formatting.name_of_path(path), trn("{count} file", "{count} files", count))
    return _joined(formatting.name_of_path(path), trn("folder with {count} file", "folder with {count} files", count))


def _columns(draft: Draft, task: TaskEntry) -> str:
    """The columns that the model reads, and those that it learns."""
    parts = [(part, draft.get(f"data.columns.{part.name}")) for part in used_parts(task, draft)]
    chosen = [(part, ", ".join(column) if isinstance(column, list) else column) for part, column in parts]
    read = ", ".join(column for part, column in chosen if column and part.needed_to_predict)
    learnt = ", ".join(column for part, column in chosen if column and not part.needed_to_predict)
    return " → ".join(filter(None, (read, learnt)))


def model_words(draft: Draft, model: ModelDescription | None) -> str:
    """`bert-tiny · 4.39 M`."""
    name = str(draft.get("model.name_or_path") or "")
    known = model is not None and model.parameters
    return _joined(
        PurePath(name.rstrip("/\\")).name if PurePath(name).is_absolute() else name,
        formatting.short_count(model.parameters) if known and model is not None else "",
    )


def hardware_words(
    draft: Draft, engines: Iterable[EngineEntry], devices: Sequence[Device], plan: RunPlan | None
) -> str:
    """`PyTorch · Processor · float32`."""
    name = str(draft.get("hardware.engine", "torch"))
    engine = next((one.title for one in engines if one.name == name), name)
    used = selected_devices(draft, devices)
    device = f"{len(used)} × {used[0].name}" if len(used) > 1 else translate_word(used[0].name) if used else ""
    wanted = str(draft.get("hardware.precision", "auto"))
    precision = plan.precision if wanted == "auto" and plan is not None else wanted if wanted != "auto" else ""
    return _joined(engine, device, precision)


def settings_words(draft: Draft, adapter: str, auto: Mapping[str, float]) -> str:
    """`3 epochs · learning rate 3e-4 · batch 16`; `auto` has the numbers of what is left to Burnish."""

    def value(name: str) -> Any:
        chosen = draft.get(f"training.{name}")
        return auto.get(f"training.{name}", chosen) if chosen == "auto" else chosen

    epochs = value("epochs")
    is_whole = isinstance(epochs, int | float) and float(epochs).is_integer()
    return _joined(
        trn("{count} epoch", "{count} epochs", int(epochs))
        if is_whole
        else tr("epochs {value}", value=value_words(epochs)),
        tr("learning rate {value}", value=_short(value("learning_rate"))),
        tr("batch {value}", value=value_words(value("batch_size"))),
        adapter,
    )


def _short(value: Any) -> str:
    """A number that a search has drawn has 16 digits."""
    words = value_words(value)
    return formatting.scientific(value) if isinstance(value, float) and len(words) > LONGEST else words


def search_words(draft: Draft) -> str:
    """`12 trials · Learning rate, Batch size`, or that it is a single run."""
    return search_space.search_words(draft) or tr("Off: a single run")


def _joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))
