"""Owns the layout of a folder with an adapter alone, which is PEFT's, and what it says of the model that it belongs to."""

from dataclasses import dataclass
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.models.adapter_check import CONFIG, read_adapter_config
from backend.models.model_files import check_links, read_table_if_sound

WEIGHTS = "adapter_model.safetensors"
PREFIX = "base_model.model."
"""What PEFT puts before the names of a model's parameters."""
TASK_TYPES = {
    Head.SEQUENCE_CLASSIFICATION: "SEQ_CLS",
    Head.SEQUENCE_REGRESSION: "SEQ_CLS",
    Head.TOKEN_CLASSIFICATION: "TOKEN_CLS",
    Head.QUESTION_ANSWERING: "QUESTION_ANS",
    Head.CAUSAL_LM: "CAUSAL_LM",
    Head.SEQ2SEQ_LM: "SEQ_2_SEQ_LM",
}
"""How PEFT calls the heads that it has a class for."""
_WHOLE = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_FIELD = "model.name_or_path"


@dataclass(frozen=True)
class Base:
    """The model that an adapter needs: a folder or hub id, and of a hub model the revision."""

    name: str
    revision: str


def base_of(folder: Path) -> Base | None:
    """What the adapter in the folder needs; None where the folder is no adapter's."""
    found = read_table_if_sound(folder / CONFIG)
    name, revision = found.get("base_model_name_or_path"), found.get("revision") or "main"
    return Base(name, revision) if isinstance(name, str) and name and isinstance(revision, str) else None


def is_alone(folder: Path) -> bool:
    """Whether the folder holds an adapter and no whole model."""
    return (folder / CONFIG).is_file() and not any((folder / name).is_file() for name in _WHOLE)


def _way_out(base: Base) -> str:
    is_folder = Path(base.name).is_absolute() or base.name.startswith((".", "~"))
    return "put it back" if is_folder else f"fetch it with: burnish hub download {base.name} --revision {base.revision}"


def weights_folder(folder: Path) -> Path:
    """Where a model's own weights are: the folder itself, or that of the model whose adapter lies there.

    Nothing is fetched. Raises InputError where that model is not here, or the adapter is none that can be opened.
    """
    if not is_alone(folder):
        return _without_adapter(folder)
    check_links(folder)
    read_adapter_config(folder)
    base = base_of(folder)
    if base is None:
        raise InputError(f"{_FIELD}: {folder / CONFIG} does not name the model that it belongs to", _FIELD)
    # Only an absolute name is a folder: a hub id must not be answered by what happens to lie where Burnish was started.
    if Path(base.name).is_absolute() and Path(base.name).is_dir():
        return _without_adapter(Path(base.name))
    from huggingface_hub import try_to_load_from_cache  # slow to import, and seldom needed
    from huggingface_hub.utils import HFValidationError

    try:
        found = try_to_load_from_cache(base.name, "config.json", revision=base.revision)
    except HFValidationError:
        found = None
    if not isinstance(found, str):
        raise InputError(
            f"{_FIELD}: {folder} holds an adapter alone, and its model {base.name} is not here; {_way_out(base)}",
            _FIELD,
        )
    return _without_adapter(Path(found).parent)


def _without_adapter(folder: Path) -> Path:
    """The folder, for transformers would put an adapter that lies beside a model into it unasked."""
    check_links(folder)
    if (folder / CONFIG).exists():
        raise InputError(
            f"{_FIELD}: {folder} holds a model and an adapter for it ({CONFIG}), so what is meant cannot be told; move the "
            "adapter's files into a folder of their own",
            _FIELD,
        )
    return folder
