"""The names that a tokenizer can be given by: a folder, file, hub id, or a run, which has its model's tokenizer."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.places import runs_folder
from backend.contract.run.folder import RunFolder, find_run
from backend.contract.spec import ModelSection, validate
from backend.contract.tokens import options as tokenizer_name

FIELD = "model.tokenizer"


@dataclass(frozen=True)
class ResolvedTokenizer:
    """Where a tokenizer is, and with which options to open it."""

    name_or_path: str
    revision: str = "main"
    options: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    """A sentence where something else is opened than was named."""


def resolve_name(name: str, revision: str = "main", options: dict[str, Any] | None = None) -> ResolvedTokenizer:
    """Resolve `name`, which may include a revision and options (`contract.tokens.options`). A run has its model's
    tokenizer or, before it has one, that of the model it started from."""
    given = tokenizer_name.parse_name(name)
    name, options = given.tokenizer, {**given.options, **(options or {})}
    revision = revision if given.revision == tokenizer_name.MAIN else given.revision
    if not name.strip():
        raise InputError("no tokenizer was specified; enter a folder, a file, a Hub ID or a run", FIELD)
    if "\0" in name:
        raise InputError("a name cannot contain the NUL character; enter a folder, a file, a Hub ID or a run", FIELD)
    run = _run(name)
    if run is None:
        return ResolvedTokenizer(name, revision, options)
    if run.model.is_dir() and any(run.model.glob("*token*")):
        return ResolvedTokenizer(str(run.model), "main", options)
    return _of_spec(run, options)


def _run(name: str) -> RunFolder | None:
    try:
        return find_run(name, runs_folder())
    except OSError:  # too long for a path: no run, nor a folder
        return None


def _of_spec(run: RunFolder, options: dict[str, Any]) -> ResolvedTokenizer:
    model = validate(ModelSection, spec_file.read_run(run.spec).get("model") or {}, "model")
    return ResolvedTokenizer(
        _absolute(model.tokenizer or model.name_or_path, run.path),
        model.revision,
        {**model.tokenizer_options, **options},
        message(
            "The run {name} does not have a model yet, so this is the tokenizer that it starts from.", name=run.name
        ),
    )


def _absolute(name: str, folder: Path) -> str:
    beside = folder / name
    return str(beside) if not Path(name).is_absolute() and beside.is_dir() else name
