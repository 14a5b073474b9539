"""Owns how a model is put in place: its configuration, its parameters from a file, new ones, and what was done to them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors import safe_open

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.engines.engine import Loaded, Loading
from backend.engines.initial_weights import draw
from backend.engines.jax.model import Model, find_family
from backend.engines.jax.models.family import Config
from backend.models.decoder_start import decoder_start
from backend.models.positions import longest_sequence
from backend.models.weights import read_weights

_DROPOUT = re.compile(r"dropout|pdrop")
_LANGUAGE_HEADS = {Head.CAUSAL_LM, Head.MASKED_LM, Head.SEQ2SEQ_LM}
_OLD_NAMES = {"gamma": "weight", "beta": "bias"}
"""What the first BERT files call the parameters of a norm."""
_OUTPUTS = {Head.QUESTION_ANSWERING: 2, Head.SEQUENCE_REGRESSION: 1, Head.MULTIPLE_CHOICE: 1}
"""Heads whose number of outputs no labels decide."""

Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Opened:
    """A model with its parameters, float32, and the configuration that will be written beside them."""

    model: Model
    parameters: Values
    config: Any
    loaded: Loaded


def open_model(loading: Loading) -> Opened:
    """Raises InputError where the engine does not know the architecture, or a setting does not go with the model."""
    from transformers import AutoConfig  # takes a second, and no torch

    stored, config = (
        AutoConfig.from_pretrained(loading.folder, local_files_only=True, trust_remote_code=False) for _ in range(2)
    )
    find_family(config.to_dict(), loading.head.head)
    _change(config, loading)
    rows = int(getattr(config, "vocab_size", loading.vocabulary))
    config.vocab_size = max(rows, loading.vocabulary)
    if loading.head.head is Head.SEQ2SEQ_LM:
        _settle_output(config, loading)
    config.dtype = "float32"
    if loading.pad_token_id is not None:
        config.pad_token_id = loading.pad_token_id
    outputs = _OUTPUTS.get(loading.head.head, len(loading.head.labels) or 1)
    model = Model(config.to_dict(), loading.head.head, outputs)
    config.architectures = [model.architecture]
    _check_positions(config.to_dict(), loading)
    if loading.model.initialise == "from_config":
        _take_end_tokens(config, loading)
        return _new(model, config, loading, rows)
    return _stored(model, stored, config, loading, rows)


def _change(config: Any, loading: Loading) -> None:
    for key, value in loading.model.config.items():
        if not hasattr(config, key):
            raise InputError(f"model.config.{key}: this model's configuration has no such key", f"model.config.{key}")
        setattr(config, key, value)
    if loading.model.dropout is not None:
        for key, value in config.to_dict().items():
            if _DROPOUT.search(key) and isinstance(value, int | float) and not isinstance(value, bool):
                setattr(config, key, loading.model.dropout)
    head, labels = loading.head.head, loading.head.labels
    if head in _LANGUAGE_HEADS:
        return
    names = labels or tuple(f"LABEL_{index}" for index in range(2 if head is Head.MULTIPLE_CHOICE else _OUTPUTS[head]))
    config.id2label = dict(enumerate(names))
    config.label2id = {name: index for index, name in enumerate(names)}
    if head in (Head.SEQUENCE_CLASSIFICATION, Head.SEQUENCE_REGRESSION):
        config.problem_type = "regression" if head is Head.SEQUENCE_REGRESSION else "single_label_classification"


def _settle_output(config: Any, loading: Loading) -> None:
    """Where the decoder begins, and whether the file holds an output layer of its own, whatever the configuration says."""
    padding = config.pad_token_id if loading.pad_token_id is None else loading.pad_token_id
    config.decoder_start_token_id = decoder_start(
        config.model_type, getattr(config, "decoder_start_token_id", None), padding
    )
    if loading.model.initialise != "from_config":
        config.tie_word_embeddings = "lm_head.weight" not in read_weights(loading.folder).shapes


def _take_end_tokens(config: Any, loading: Loading) -> None:
    if loading.head.head in (Head.CAUSAL_LM, Head.SEQ2SEQ_LM):
        # The configuration's are those of the tokenizer that it was made for.
        config.bos_token_id, config.eos_token_id = loading.bos_token_id, loading.eos_token_id


def _check_positions(config: Config, loading: Loading) -> None:
    longest = longest_sequence(config)
    if longest is not None and loading.max_length > longest:
        raise InputError(
            f"task.max_length: {loading.max_length} tokens are more than the {longest} positions of this model; "
            f"set task.max_length to {longest} or less",
            "task.max_length",
        )


def _new(model: Model, config: Any, loading: Loading, rows: int) -> Opened:
    more = loading.vocabulary > rows
    resized = f"vocabulary of {loading.vocabulary} instead of the configuration's {rows}" if more else ""
    parameters = _drawn(model.shapes, model, config, loading)
    return Opened(model, parameters, config, _loaded(model, sorted(model.shapes), [], resized))


def _stored(model: Model, stored: Any, config: Any, loading: Loading, rows: int) -> Opened:
    found, unused = _read(loading, model)
    resized = ""
    parameters: Values = {}
    for name, values in found.items():
        wanted = model.shapes[name]
        if values.shape != wanted and values.shape[1:] == wanted[1:] and (values.shape[0], wanted[0]) == (
            rows, config.vocab_size,
        ):  # fmt: skip
            longer = draw(name, wanted, config.to_dict(), _seed(loading))
            longer[:rows] = values
            values, resized = longer, f"{wanted[0] - rows} rows added to the vocabulary of {rows}"
        if values.shape == wanted:
            parameters[name] = values
        elif name.startswith(f"{model.body}.") or loading.head.head in _LANGUAGE_HEADS:
            raise InputError(
                f"model.config: with these changes {name} has another shape than in the file; undo them or set "
                "model.initialise to from_config",
                "model.config",
            )
    if loading.head.head not in _LANGUAGE_HEADS:
        _fit_head(parameters, model, stored, loading)
    new = sorted(model.shapes.keys() - parameters.keys())
    parameters |= _drawn(new, model, config, loading)
    return Opened(model, parameters, config, _loaded(model, new, unused, resized))


def _read(loading: Loading, model: Model) -> tuple[Values, list[str]]:
    """The file's tensors under the model's names, float32; and the names of those that the head does not use."""
    found: Values = {}
    unused = []
    for path in read_weights(loading.folder).files:
        with safe_open(path, framework="flax") as file:
            for name in file.keys():  # noqa: SIM118 (no mapping)
                if (own := _own_name(name, model)) is None:
                    unused.append(name)
                else:
                    found[own] = np.asarray(file.get_tensor(name)).astype(np.float32)
    return found, sorted(unused)


def _own_name(name: str, model: Model) -> str | None:
    """The model's name for a file's: a bare body's lack the prefix, and old files call norms otherwise."""
    stem, _, last = name.rpartition(".")
    names = [name, f"{stem}.{_OLD_NAMES.get(last, last)}"]
    candidates = [
        *names,
        *(f"{model.body}.{one}" for one in names),
        *(one.removeprefix(f"{model.body}.") for one in names),
    ]
    return next((one for one in candidates if one in model.shapes), None)


def _fit_head(parameters: Values, model: Model, stored: Any, loading: Loading) -> None:
    """Puts a stored head's rows in the order of the labels; leaves its last layer out where it has others."""
    top = [name for name in parameters if not name.startswith(f"{model.body}.")]
    outputs = _OUTPUTS.get(loading.head.head, len(loading.head.labels) or 1)
    last = [name for name in top if parameters[name].shape[0] == outputs]
    kinds = {_kind(one) for one in stored.architectures or [model.architecture]}
    labels = [label.casefold() for label in loading.head.labels]
    if _kind(model.architecture) in kinds and not labels:
        return
    given = stored.id2label or {}
    names = [str(given.get(index, "")).casefold().removeprefix("label_") for index in range(len(labels))]
    fits = _kind(model.architecture) in kinds and sorted(names) == sorted(labels) and len(set(names)) == len(names)
    for name in last:
        if fits:
            parameters[name] = parameters[name][[names.index(label) for label in labels]]
        else:
            del parameters[name]


def _kind(architecture: str) -> str:
    return architecture[architecture.find("For") :] if "For" in architecture else ""


def _drawn(names: Iterable[str], model: Model, config: Any, loading: Loading) -> Values:
    facts = config.to_dict()
    return {
        name: np.zeros(model.shapes[name], np.float32)
        if name in model.fixed
        else draw(name, model.shapes[name], facts, _seed(loading))
        for name in names
    }


def _seed(loading: Loading) -> int:
    return loading.training.seed if loading.training is not None else 0


def _loaded(model: Model, new: list[str], unused: list[str], resized: str) -> Loaded:
    count = sum(int(np.prod(shape)) for name, shape in model.shapes.items() if name not in model.fixed)
    new = [name for name in new if name not in model.fixed]
    return Loaded(model.architecture, count, count, new, unused, resized)
