"""The configuration of a loaded model: what the spec, the head and the data change in it, for any engine."""

import re
from copy import deepcopy
from typing import Any

from backend.contract.errors import InputError
from backend.contract.heads import Head, HeadFacts
from backend.contract.messages import message
from backend.engines.engine import LoadRequest
from backend.models.config import check_changed, decoder_start_token, longest_sequence, read_checked
from backend.models.remote_code import decides_code, open_config

_DROPOUT = re.compile(r"dropout|pdrop")


def open_configuration(loading: LoadRequest) -> tuple[Any, Any]:
    """The folder's `PreTrainedConfig` as it is stored, and as the model is built from it.

    Raises InputError for a key that the model does not have, and for texts longer than its positions.
    """
    check_changed(read_checked(loading.folder), loading.model.config)
    stored = open_config(loading.folder, wanted=loading.model.trust_remote_code)
    stored._name_or_path = str(loading.folder)
    config = deepcopy(stored)
    padding = config.pad_token_id if loading.pad_token_id is None else loading.pad_token_id
    start = decoder_start_token(config.model_type, getattr(config, "decoder_start_token_id", None), padding)
    if start is not None:
        config.decoder_start_token_id = start
    _apply_changes(config, loading)
    _name_outputs(config, loading.head)
    if loading.model.initialise == "from_config" and loading.head.head in (Head.CAUSAL_LM, Head.SEQ2SEQ_LM):
        # The configuration's are those of the tokenizer that it was made for.
        config.bos_token_id, config.eos_token_id = loading.bos_token_id, loading.eos_token_id
    _check_positions(config.to_dict(), loading)
    return stored, config


def order_of_outputs(stored: Any, architecture: str, labels: tuple[str, ...]) -> list[int] | slice | None:
    """Which stored head output belongs to each label, as an index of its rows; None if it has other labels.

    `architecture` is the one being built: heads of two kinds may have the same name, so a checkpoint of another kind
    never matches.
    """
    kinds = {_kind(name) for name in stored.architectures or []} - {""}
    if kinds and _kind(architecture) not in kinds:
        return None
    if not labels:
        return slice(None)
    named: dict[int, str] = stored.id2label or {}
    names = [str(named.get(index, "")).casefold().removeprefix("label_") for index in range(len(labels))]
    wanted = [label.casefold() for label in labels]
    if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
        return None
    return [names.index(label) for label in wanted]


def _apply_changes(config: Any, loading: LoadRequest) -> None:
    for key, value in loading.model.config.items():
        if not hasattr(config, key) or decides_code(key):  # other code could run than was agreed to
            raise InputError(
                "model.config.{key}: this model's configuration has no such key", f"model.config.{key}", key=key
            )
        setattr(config, key, value)
    if loading.model.dropout is not None:
        set_dropout(config, loading.model.dropout)


def set_dropout(config: Any, probability: float) -> None:
    """Set every dropout in the configuration to this value."""
    for key, value in config.to_dict().items():
        if _DROPOUT.search(key) and isinstance(value, int | float) and not isinstance(value, bool):
            setattr(config, key, probability)


def _name_outputs(config: Any, facts: HeadFacts) -> None:
    """The labels in id order, or transformers' default names for outputs without labels."""
    if problem_type := facts.head.declared.problem_type:
        config.problem_type = problem_type
    names = tuple(f"LABEL_{index}" for index in range(facts.head.declared.outputs)) or facts.labels
    if names:
        config.id2label = dict(enumerate(names))
        config.label2id = {name: index for index, name in enumerate(names)}


def _check_positions(config: dict[str, Any], loading: LoadRequest) -> None:
    longest = longest_sequence(config)
    if longest is not None and loading.max_length > longest:
        of_targets = message(" and task.max_target_length") if loading.head.head is Head.SEQ2SEQ_LM else ""
        raise InputError(
            "task.max_length: {max_length} tokens exceed the {longest} positions of this model; set "
            "task.max_length{of_targets} to {longest} or less",
            "task.max_length",
            max_length=loading.max_length,
            longest=longest,
            of_targets=of_targets,
        )


def _kind(architecture: str) -> str:
    """What a checkpoint's model was built for, such as ForMultipleChoice."""
    return architecture[architecture.find("For") :] if "For" in architecture else ""
