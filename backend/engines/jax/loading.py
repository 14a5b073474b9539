"""Loads a model: parameters from a file, new ones, and the changes made to them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from safetensors import safe_open

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.engines.configuration import open_configuration, order_of_outputs
from backend.engines.engine import LoadedModel, LoadRequest
from backend.engines.initial_weights import draw, resize_embedding
from backend.engines.jax.model import Model, find_family
from backend.engines.jax.peft_files import StoredAdapter
from backend.models.adapter_files import is_alone, weights_folder
from backend.models.inspection import FIELD, foreign_weights
from backend.models.remote_code import running
from backend.models.weights import read_weights

GENERATION = "generation_config.json"
_OLD_NAMES = {"gamma": "weight", "beta": "bias"}
"""What the first BERT files call the parameters of a norm."""
_OUTPUT = "lm_head.weight"
_OUTPUTS = {Head.QUESTION_ANSWERING: 2, Head.SEQUENCE_REGRESSION: 1, Head.MULTIPLE_CHOICE: 1}
"""Heads whose number of outputs no labels decide."""

Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class LoadedParameters:
    """A model with its float32 parameters, and the configuration to save beside them."""

    model: Model
    parameters: Values
    config: Any
    generation: Any
    """transformers' GenerationConfig: the file's, or what the configuration says of it."""
    loaded: LoadedModel


def open_model(loading: LoadRequest) -> LoadedParameters:
    """Raises InputError if the engine does not support the architecture, or a setting does not fit the model."""
    stored, config = open_configuration(loading)
    family = find_family(config.to_dict(), loading.head.head)
    rows = int(getattr(config, "vocab_size", loading.vocabulary))
    config.vocab_size = max(rows, loading.vocabulary)
    may_differ = _OUTPUT not in family.aliases
    if loading.head.head is Head.SEQ2SEQ_LM and loading.model.initialise != "from_config" and may_differ:
        config.tie_word_embeddings = not _has_output_layer(loading)
    config.dtype = "float32"
    if loading.pad_token_id is not None:
        config.pad_token_id = loading.pad_token_id
    outputs = _OUTPUTS.get(loading.head.head, len(loading.head.labels) or 1)
    model = Model(config.to_dict(), loading.head.head, outputs)
    config.architectures = [model.architecture]
    if loading.model.initialise == "from_config":
        return _new(model, config, loading, rows)
    return _load_stored(model, stored, config, loading, rows)


def _generation(loading: LoadRequest, config: Any) -> Any:
    from transformers import GenerationConfig  # takes a second, and no torch

    if loading.model.initialise != "from_config":
        folder = weights_folder(loading.folder)
        if (folder / GENERATION).is_file():
            with running(folder, trusted=False):
                return GenerationConfig.from_pretrained(folder, local_files_only=True)
    return GenerationConfig.from_model_config(config)


def _has_output_layer(loading: LoadRequest) -> bool:
    """Whether the file holds an output layer: the configurations of T5 1.1 and mT5 wrongly say that it is tied."""
    return _OUTPUT in read_weights(loading.folder).shapes


def _new(model: Model, config: Any, loading: LoadRequest, rows: int) -> LoadedParameters:
    more = loading.vocabulary > rows
    resized = (
        message(
            "vocabulary of {vocabulary} instead of the configuration's {rows}", vocabulary=loading.vocabulary, rows=rows
        )
        if more
        else ""
    )
    parameters = _initialize(model.shapes, model, config, loading)
    return LoadedParameters(
        model,
        parameters,
        config,
        _generation(loading, config),
        _describe_loaded(model, sorted(model.shapes), [], resized),
    )


def _load_stored(model: Model, stored: Any, config: Any, loading: LoadRequest, rows: int) -> LoadedParameters:
    found, unused = _read(loading, model)
    if not found:
        raise InputError(
            "{field}: {folder}", FIELD, field=FIELD, folder=foreign_weights(loading.folder, config.model_type)
        )
    resized = loading.new_tokens.describe(rows, config.vocab_size)
    spare = (
        model.token_names
        if config.vocab_size == rows and loading.new_tokens.tokens_in_spare_rows(rows)
        else frozenset()
    )
    parameters: Values = {}
    for name, values in found.items():
        wanted = model.shapes[name]
        if name in model.fixed:
            values = _pad_rows(values, wanted)
        if values.shape != wanted and values.shape[1:] == wanted[1:] and (values.shape[0], wanted[0]) == (
            rows, config.vocab_size,
        ):  # fmt: skip
            values = resize_embedding(name, values, wanted[0], config.to_dict(), _seed(loading), loading.new_tokens)
        elif name in spare:
            values = resize_embedding(name, values, rows, config.to_dict(), _seed(loading), loading.new_tokens)
        if values.shape == wanted:
            parameters[name] = values
        elif name.partition(".")[0] not in model.tops or loading.head.head.declared.over_vocabulary:
            raise InputError(
                "model.config: with these changes {name} has a different shape than in the file; undo "
                "them or set model.initialise to from_config",
                "model.config",
                name=name,
            )
    if not loading.head.head.declared.over_vocabulary:
        _fit_head(parameters, model, stored, loading)
    new = sorted(model.shapes.keys() - parameters.keys())
    parameters |= _initialize(new, model, config, loading)
    return LoadedParameters(
        model, parameters, config, _generation(loading, config), _describe_loaded(model, new, unused, resized)
    )


def _read(loading: LoadRequest, model: Model) -> tuple[Values, list[str]]:
    """The file's tensors under the model's names, float32; and the names of those that the head does not use."""
    found: Values = {}
    unused = []
    for path in read_weights(loading.folder).files:
        with safe_open(path, framework="flax") as file:
            for name in file.keys():  # noqa: SIM118 (no mapping)
                if (own := _to_model_name(name, model)) is None:
                    unused.append(name)
                else:
                    values = np.asarray(file.get_tensor(name)).astype(np.float32)
                    _refuse_two(found.get(own), values, name, own)
                    found[own] = values
    if is_alone(loading.folder):
        unused += StoredAdapter(loading.folder).merge(found, partial(_to_model_name, model=model), model.linear)
    return found, sorted(unused)


def _refuse_two(known: np.ndarray | None, values: np.ndarray, name: str, own: str) -> None:
    if known is not None and not np.array_equal(known, values):
        raise InputError(
            "hardware.engine: the file contains {name} and {own} with different values, but in the "
            "JAX engine both share one table; choose PyTorch",
            "hardware.engine",
            name=name,
            own=own,
        )


def _pad_rows(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Pad with zero rows for a larger vocabulary."""
    if values.ndim != len(shape) or any(has > wanted for has, wanted in zip(values.shape, shape, strict=True)):
        return values
    return np.pad(values, [(0, wanted - has) for has, wanted in zip(values.shape, shape, strict=True)])


def _to_model_name(name: str, model: Model) -> str | None:
    """A file's name → the model's: bare bodies lack the prefix, other heads have another, old files rename norms."""
    stem, _, last = name.rpartition(".")
    names = [name, f"{stem}.{_OLD_NAMES.get(last, last)}"]
    bare = [*names, *(one.removeprefix(f"{body}.") for body in sorted(model.bodies) for one in names)]
    bare = [model.aliases.get(one, one) for one in bare]
    candidates = (*names, *(f"{model.body}.{one}" for one in bare), *bare)
    return next((one for one in candidates if one in model.shapes), None)


def _fit_head(parameters: Values, model: Model, stored: Any, loading: LoadRequest) -> None:
    """Reorder a stored head's rows to match the labels; drop its last layer if it has different ones."""
    order = order_of_outputs(stored, model.architecture, loading.head.labels)
    for name in model.output_names & parameters.keys():
        if order is None:
            del parameters[name]
        else:
            parameters[name] = parameters[name][order]


def _initialize(names: Iterable[str], model: Model, config: Any, loading: LoadRequest) -> Values:
    facts = config.to_dict()
    return {
        name: np.zeros(model.shapes[name], np.float32)
        if name in model.fixed
        else draw(name, model.shapes[name], facts, _seed(loading))
        for name in names
    }


def _seed(loading: LoadRequest) -> int:
    return loading.training.seed if loading.training is not None else 0


def _describe_loaded(model: Model, new: list[str], unused: list[str], resized: str) -> LoadedModel:
    count = sum(int(np.prod(shape)) for name, shape in model.shapes.items() if name not in model.fixed)
    new = [name for name in new if name not in model.fixed]
    return LoadedModel(model.architecture, count, count, new, unused, resized)
