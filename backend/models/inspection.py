"""What is known about a model before it is loaded: its description, and whether it supports a task."""

import re
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.contract.rpc.models import ModelDescription
from backend.models import location
from backend.models.adapter_files import is_alone, weights_folder
from backend.models.architectures import explain_unsupported, module_names, needs_code
from backend.models.config import longest_sequence, read_checked
from backend.models.model_files import read_small, read_table
from backend.models.remote_code import find_remote_code, may_run
from backend.models.saved_model import check_alone
from backend.models.tokenizer_files import TokenizerFiles, read_tokenizer
from backend.models.weights import OLD_FORMATS, Weights, flax_problem, read_weights
from backend.registry import find

FIELD = "model.name_or_path"
_SMALL_TABLES = ("generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "adapter_config.json")
"""What a framework reads beside the configuration when it opens the model."""
_WORDS = ("word_embeddings.weight", "wte.weight", "embed_tokens.weight", "shared.weight")
"""Where architectures keep a row for each token."""
_FURTHER_VOCABULARIES = {"decoder_vocab_size", "src_vocab_size", "tgt_vocab_size"}
_LICENCE = re.compile(r"^license:\s*[\"']?([^\"'\n#]+)", re.MULTILINE)


def describe(
    name_or_path: str, revision: str = "main", task: str = "", *, cache: Path | None = None, offline: bool = False
) -> ModelDescription:
    """What a model folder or hub id contains, or its copy in `cache`; downloads only small files. Raises InputError."""
    found = location.locate_small_files(name_or_path, revision, cache=cache, offline=offline)
    head = find("task", task, "task.type").head if task else None
    return describe_folder(found, head)


def describe_folder(found: "location.ModelLocation", head: Head | None = None) -> ModelDescription:
    """What a folder contains. A hub model without local weights is described by what the hub says about them."""
    folder, config = found.folder, read_config(found.folder)
    weights, tokenizer = read_weights(folder), read_tokenizer(folder)
    remote, code = found.remote, find_remote_code(folder)
    sentence, fits = _tokenizer_sentence(tokenizer, _rows(config))
    kind = remote.weights_format if remote else weights.format
    unreadable = flax_problem(folder) if kind == "flax" else ""
    return ModelDescription(
        name=found.name,
        folder=str(folder),
        found=found.found,
        architecture=str((config.get("architectures") or [""])[0]),
        model_type=str(config.get("model_type", "")),
        parameters=remote.parameters if remote else weights.parameters,
        size_mb=(remote.size if remote else weights.size) / 1e6,
        weights_format=kind,
        dtype=weights.dtype or str(config.get("dtype") or config.get("torch_dtype") or ""),
        licence=licence(folder),
        commit=found.commit,
        max_length=longest_sequence(config),
        vocabulary=_rows(config),
        labels=labels(config),
        tokenizer=sentence,
        tokenizer_fits=fits,
        safe=kind != "bin" and code is None,
        needs_remote_code=code is not None,
        code={code.name: code.version} if code else {},
        code_agreed=code is not None and code.is_agreed,
        code_files=list(code.files) if code else [],
        needs_conversion=kind in OLD_FORMATS and not unreadable,
        notes=_notes(config, weights, tokenizer, head),
        problem=_problem(folder, config, None if remote else weights, tokenizer, head) or unreadable,
    )


def check(
    folder: Path,
    head: Head,
    *,
    max_length: int | None = None,
    from_config: bool = False,
    needs_tokenizer: bool = True,
    runs_code: bool = False,
) -> None:
    """Raises InputError that says what to do if the folder's model cannot be used for the head.

    `runs_code` is whether the spec wants to run code that comes with the model, which requires a consent.
    """
    config = read_config(folder)
    weights = None if from_config else read_weights(folder)
    tokenizer = read_tokenizer(folder) if needs_tokenizer else None
    problem = _problem(folder, config, weights, tokenizer, head)
    if problem:
        raise InputError("{field}: {problem}", FIELD, field=FIELD, problem=problem)
    check_alone(folder)
    for one in {folder, weights_folder(folder)} if is_alone(folder) else {folder}:
        may_run(one, wanted=runs_code, tokenizer=needs_tokenizer and one == folder)
    if weights is not None and weights.format in OLD_FORMATS:
        raise InputError(
            "{field}: {location}", FIELD, field=FIELD, location=location.must_be_converted(str(folder), weights.format)
        )
    longest = longest_sequence(config)
    if longest is not None and max_length is not None and max_length > longest:
        raise InputError(
            "task.max_length: {max_length} tokens exceed the {longest} positions of this model; set "
            "task.max_length to {longest} or less",
            "task.max_length",
            max_length=max_length,
            longest=longest,
        )


def count_parameters(folder: Path) -> int | None:
    """Parameters in the folder's safetensors, from the headers; None if there are none."""
    return read_weights(folder).parameters or None


def labels(config: dict[str, Any]) -> list[str]:
    """The labels of a stored head in id order; none if they have no names."""
    names = config.get("id2label") or {}
    found = [str(names[key]) for key in sorted(names, key=int)]
    return [] if all(label == f"LABEL_{index}" for index, label in enumerate(found)) else found


def nameless_labels(folder: Path) -> list[str]:
    """`LABEL_0`, `LABEL_1` …: as many as in the folder's configuration, at least two."""
    names = read_config(folder).get("id2label") or {}
    return [f"LABEL_{index}" for index in range(max(2, len(names)))]


def licence(folder: Path) -> str:
    """The licence in the model card's front matter, or empty."""
    try:
        text = (read_small(folder / "README.md") or b"").decode("utf-8", errors="replace")
    except InputError:
        return ""
    if not text.startswith("---"):
        return ""
    found = _LICENCE.search(text[3:].partition("\n---")[0])
    return found.group(1).strip() if found else ""


def _problem(
    folder: Path,
    config: dict[str, Any],
    weights: Weights | None,
    tokenizer: TokenizerFiles | None,
    head: Head | None,
) -> str:
    if reason := config_problem(folder):
        return reason
    if head is not None and (reason := explain_unsupported(config, head)):
        return reason
    if weights is not None and weights.problem:
        return weights.problem
    if weights is not None and not is_alone(folder):
        reason = _missing_rows_problem(folder, config, weights) or _foreign(folder, config, weights)
        if reason:
            return reason
    return tokenizer.problem if tokenizer is not None else ""


def _missing_rows_problem(folder: Path, config: dict[str, Any], weights: Weights) -> str:
    """The weights have more tokens than the configuration, which no framework loads; empty if not."""
    rows, tables = _rows(config), {name: shape[0] for name, shape in weights.shapes.items() if name.endswith(_WORDS)}
    if not rows or config.keys() & _FURTHER_VOCABULARIES or not tables or min(tables.values()) <= rows:
        return ""
    name = min(tables, key=lambda one: tables[one])
    return message(
        "{folder}: vocab_size is {rows:,}, but {name} has {tables:,} rows; correct it there, or choose another model",
        folder=folder / "config.json",
        rows=rows,
        name=name,
        tables=tables[name],
    )


def _foreign(folder: Path, config: dict[str, Any], weights: Weights) -> str:
    """No weight name belongs to this architecture, so all would be random; empty if one might."""
    model_type = str(config.get("model_type", ""))
    known = frozenset() if needs_code(config) or weights.format != "safetensors" else module_names(model_type)
    if not known or any(_may_be_of(known, name) for name in weights.shapes):
        return ""
    return foreign_weights(folder, model_type)


def foreign_weights(folder: Path, model_type: str) -> str:
    """Nothing in the folder's weight files is part of the model, and what to do."""
    return message(
        "no weights in {folder} belong to a {model_type} model; download the model again, or set "
        "model.initialise to from_config to train from scratch",
        folder=folder,
        model_type=model_type,
    )


def _may_be_of(known: frozenset[str], name: str) -> bool:
    *modules, parameter = name.split(".")
    return all(one.isdecimal() or one in known for one in modules or [parameter])


def _notes(config: dict[str, Any], weights: Weights, tokenizer: TokenizerFiles, head: Head | None) -> list[str]:
    notes = []
    if head is Head.SEQUENCE_CLASSIFICATION:
        notes.append(_head_note(config))
    if weights.dtype in {"F16", "BF16"}:
        notes.append(message("The weights in the file are 16-bit; they are trained in 32-bit."))
    if tokenizer.tokens > _rows(config) > 0:
        notes.append(
            message(
                "{tokens} embedding rows will be added for tokens that are new to the model.",
                tokens=tokenizer.tokens - _rows(config),
            )
        )
    return notes


def _head_note(config: dict[str, Any]) -> str:
    stored = labels(config)
    if str((config.get("architectures") or [""])[0]).endswith("ForSequenceClassification") and stored:
        return message(
            "It classifies {stored}; for other labels a new, untrained head will be added.",
            stored=", ".join(stored[:10]),
        )
    return message("A new, untrained classification head will be added.")


def _tokenizer_sentence(tokenizer: TokenizerFiles, rows: int) -> tuple[str, bool]:
    if tokenizer.problem:
        return tokenizer.problem, False
    if not tokenizer.tokens:
        return message("{kind}; the number of tokens is known only after it is opened", kind=tokenizer.kind), True
    if not rows:
        return message("{kind} with {tokens:,} tokens", kind=tokenizer.kind, tokens=tokenizer.tokens), True
    values = {"kind": tokenizer.kind, "tokens": tokenizer.tokens, "rows": rows}
    if tokenizer.tokens <= rows:
        return message("{kind} with {tokens:,} tokens fits the model's {rows:,} rows", **values), True
    return message("{kind} with {tokens:,} tokens has more tokens than the model's {rows:,} rows", **values), False


def _rows(config: dict[str, Any]) -> int:
    rows = config.get("vocab_size")
    return rows if isinstance(rows, int) else 0


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's configuration; empty if there is no valid one (`config_problem` says why)."""
    try:
        return read_checked(folder)
    except InputError:
        return {}


def config_problem(folder: Path) -> str:
    """Why there is no valid configuration, as the end of a sentence; empty if there is one."""
    try:
        found = read_checked(folder)
        for name in _SMALL_TABLES:
            read_table(folder / name)
    except InputError as error:
        return str(error).removeprefix(f"{FIELD}: ")
    return (
        ""
        if found
        else message(
            "{folder} has no config.json, so it is not a model folder; choose the folder that contains this file",
            folder=folder,
        )
    )
