"""Loads a model for the torch engine: weights from a file or new ones, the device, and what trains."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import init_empty_weights
from safetensors import safe_open
from transformers import AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.dynamic_module_utils import get_class_from_dynamic_module
from transformers.models.auto.auto_factory import add_generation_mixin_to_remote_model
from transformers.utils import logging

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.contract.spec.training import STOCHASTIC
from backend.engines.configuration import open_configuration, order_of_outputs
from backend.engines.engine import LoadedModel, LoadRequest
from backend.engines.initial_weights import draw, is_known, resize_embedding
from backend.engines.torch import frozen_weights
from backend.engines.torch.heads import HEADS, head_modules
from backend.engines.torch.lean_imports import import_bitsandbytes
from backend.engines.torch.optimizer import freeze
from backend.engines.weight_formats import Format, frozen_format
from backend.models.adapter_files import PREFIX, WEIGHTS, is_alone, weights_folder
from backend.models.inspection import FIELD, foreign_weights
from backend.models.remote_code import code_folder, running
from backend.models.weights import read_weights

_DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16}
_GENERATE = "custom_generate/generate.py"
"""Where a model brings a way of its own to write text."""


@dataclass
class LoadReport:
    """What happened to the weights while loading."""

    new: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    resized: str = ""

    def describe(self, model: PreTrainedModel) -> LoadedModel:
        """The report on a model after it is decided what trains."""
        return LoadedModel(
            architecture=type(model).__name__,
            parameters=frozen_weights.parameter_count(model),
            trainable=frozen_weights.parameter_count(model, trained=True),
            new_weights=self.new,
            unused_weights=self.unused,
            resized=self.resized,
        )


def load_model(loading: LoadRequest, *, to_shard: bool = False) -> tuple[PreTrainedModel, LoadedModel]:
    """The model on its device, and a report on the weights; those that train are float32.

    A model `to_shard` may have weights in the format of its file, which are pages of that file and take no memory
    until they become float32, block by block. Raises InputError if spec and model do not match.
    """
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    account, seed = LoadReport(), loading.training.seed if loading.training else 0
    stored, config = open_configuration(loading)
    if loading.model.initialise == "from_config":
        model = _from_config(loading, config, seed, account)
    else:
        dtype = _file_dtype(loading) if to_shard else torch.float32
        model = _from_file(loading, stored, config, seed, account, dtype)
        _enlarge(model, loading, seed, account)
        if dtype is torch.float32:
            frozen_weights.adapt_layers(model, loading.precision)
        vars(model)["becomes_float32"] = dtype is not torch.float32
        if _is_rounded(loading) or any(frozen_weights.is_quantized(layer) for layer in model.modules()):
            frozen_weights.leave_file(model)  # else its pages are the weights
    if loading.pad_token_id is not None:
        model.config.pad_token_id = loading.pad_token_id  # GPT-like classifiers find the last token by it
    model.config.architectures = [type(model).__name__]  # an adapter is saved with the configuration alone
    _train_end_token(model)
    if any(parameter.device != torch.device(loading.devices[0]) for parameter in model.parameters()):
        model.to(torch.device(loading.devices[0]))  # type: ignore[arg-type]
    _make_trainable(model, loading)
    return model, account.describe(model)


def _make_trainable(model: PreTrainedModel, loading: LoadRequest) -> None:
    training = loading.training
    if training is None:
        model.requires_grad_(False)
        return
    freeze(model, loading.model.frozen)
    if training.gradient_checkpointing is True:  # `auto` was resolved before, or there is nobody to ask
        # Newer releases of transformers give the same switch another name.
        newer = getattr(model, "activation_checkpointing_enable", None)
        (newer or model.gradient_checkpointing_enable)({"use_reentrant": False})


def _from_config(loading: LoadRequest, config: PreTrainedConfig, seed: int, account: LoadReport) -> PreTrainedModel:
    config.dtype = torch.float32
    rows = getattr(config, "vocab_size", loading.vocabulary)
    if loading.vocabulary > rows:
        account.resized = message(
            "vocabulary of {vocabulary} instead of the configuration's {rows}", vocabulary=loading.vocabulary, rows=rows
        )
        if getattr(config, "decoder_vocab_size", None) == rows:
            config.decoder_vocab_size = loading.vocabulary  # type: ignore[attr-defined]
        config.vocab_size = loading.vocabulary
    made = _model_class(loading, config)
    build = (
        getattr(made, "from_config", None) or made._from_config
    )  # the one of Auto classes, the other of concrete ones
    with running(loading.folder, trusted=_take_own_class(loading, made, config) is not None):
        model = _build(lambda attention: build(config, attn_implementation=attention))
    # Fixed tables such as sinusoidal positions are parameters without gradients, not weights.
    names = [name for name, each in model.named_parameters() if each.requires_grad]
    if strange := [name for name in names if not is_known(name)]:
        raise InputError(
            "model.initialise: Burnish does not know how to initialize {strange} of a {model_type} "
            "model; set it to pretrained, or choose another architecture",
            "model.initialise",
            strange=strange[0],
            model_type=config.model_type,
        )
    _draw(names, model, seed, account)
    return model


def _from_file(
    loading: LoadRequest, stored: PreTrainedConfig, config: PreTrainedConfig, seed: int, account: LoadReport,
    dtype: torch.dtype,
) -> PreTrainedModel:  # fmt: skip
    weights = weights_folder(loading.folder)
    made = _model_class(loading, config)
    code = _take_own_class(loading, made, config)
    renamed = _names_of_body(made, config)
    with running(weights, trusted=code is not None), _storage(loading, made, config, dtype) as storage:
        model, report = _build(
            lambda attention: made.from_pretrained(
                weights,
                config=config,
                **storage,
                attn_implementation=attention,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,  # its own class is known by now, and nothing else of the folder may run
                ignore_mismatched_sizes=True,  # a head with other labels; anything else is refused below
                key_mapping=renamed,
                output_loading_info=True,
            ),
        )
        if code is not None and (code / _GENERATE).is_file():
            model.generate = partial(model.load_custom_generate(code, trust_remote_code=True), model=model)
    if renamed:  # else what is exported would have the old names, under which transformers finds no body
        model._weight_conversions = [
            each for each in model._weight_conversions if not renamed.keys() & set(each.source_patterns)
        ]
    parameters = dict(model.named_parameters())
    missing = {name for name in report["missing_keys"] if name in parameters}
    mismatched = {key[0] if isinstance(key, tuple) else key for key in report["mismatched_keys"]}
    if not frozen_weights.is_float32(model):
        head = set(_head_parameters(model, loading.head.head))
        frozen_weights.make_float32(model, missing | mismatched | head | _absent_names(loading, model))
    if dtype is not torch.float32:
        _compute_buffers(model, made, config)
    if is_alone(loading.folder):
        import_bitsandbytes()  # before PEFT does
        from backend.engines.torch.adapters import take_stored  # PEFT takes a second to import

        held = take_stored(model, loading.folder)
        missing, mismatched = missing - held, mismatched - held
    if not parameters.keys() - missing:
        raise InputError(
            "{field}: {folder}", FIELD, field=FIELD, folder=foreign_weights(loading.folder, config.model_type)
        )
    _refuse_other_shapes(model, mismatched, loading.head.head)
    other_labels = _fit_head(model, stored, loading, missing | mismatched)
    account.unused = sorted(report["unexpected_keys"])
    _draw(sorted(missing | mismatched | other_labels), model, seed, account)
    return model


def _file_dtype(loading: LoadRequest) -> torch.dtype:
    """The number format of the model's file if all of its weights are in it, and will be float32; else float32."""
    if _format(loading) != "float32" or loading.adapter is not None or is_alone(loading.folder):
        return torch.float32
    found = set[str]()
    for path in read_weights(loading.folder).files:
        with safe_open(path, framework="pt") as file:
            found |= {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
    [kind, *others] = found & {"F64", "F32", *_DTYPES} or {"F32"}
    return torch.float32 if others else _DTYPES.get(kind, torch.float32)


@contextmanager
def _storage(loading: LoadRequest, made: Any, config: PreTrainedConfig, dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    """The arguments of `from_pretrained` that decide in which formats it holds the weights."""
    kind = _format(loading)
    if kind == "float32":
        yield {"dtype": dtype}
        return
    build = getattr(made, "from_config", None) or made._from_config
    with torch.device("meta"):
        skeleton = _build(lambda attention: build(config, attn_implementation=attention))
    in_full = _trained_names(loading, skeleton)
    device = torch.device(loading.devices[0])
    with frozen_weights.loading_options(kind, skeleton, in_full, device, loading.precision) as options:
        yield options


def _compute_buffers(model: PreTrainedModel, made: Any, config: PreTrainedConfig) -> None:
    """Compute in float32 what no file stores, such as the scale of Gemma's embedding: it was rounded."""
    build = getattr(made, "from_config", None) or made._from_config
    config.dtype = model.config.dtype = torch.float32
    with init_empty_weights(include_buffers=False):
        exact = dict(_build(lambda attention: build(config, attn_implementation=attention)).named_buffers())
    stored = model.state_dict()
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point() and buffer.dtype is not torch.float32:
            buffer.data = buffer.float() if name in stored else exact[name]


def _format(loading: LoadRequest) -> Format:
    """The format of the weights that are not trained, or of all if they are rounded."""
    if _is_rounded(loading):
        return "bfloat16"
    stored = read_weights(weights_folder(loading.folder))
    trains_all = loading.training is not None and loading.adapter is None and not loading.model.frozen
    return frozen_format(loading.model, stored, loading.precision, trains_all=trains_all)


def _is_rounded(loading: LoadRequest) -> bool:
    """Whether the weights that are trained are held in bfloat16."""
    return loading.training is not None and loading.training.master_weights == STOCHASTIC


def _trained_names(loading: LoadRequest, skeleton: PreTrainedModel) -> set[str]:
    """The model's own parameters that train or whose values are not all in its file; an adapter's are not there yet."""
    found = _absent_names(loading, skeleton)
    found |= _head_parameters(skeleton, loading.head.head).keys()
    if is_alone(loading.folder):  # what an adapter stores in full
        with safe_open(loading.folder / WEIGHTS, framework="pt") as file:
            found |= {name.removeprefix(PREFIX) for name in file.keys()}  # noqa: SIM118
    rows = len(skeleton.get_input_embeddings().weight)  # type: ignore[arg-type]
    if loading.vocabulary > rows or loading.new_tokens.tokens_in_spare_rows(rows):
        found |= _of_vocabulary(skeleton)
    if loading.model.frozen:
        freeze(skeleton, loading.model.frozen)
        found |= {name for name, each in skeleton.named_parameters() if each.requires_grad}
    return found


def _absent_names(loading: LoadRequest, model: PreTrainedModel) -> set[str]:
    """The parameters that the model's file does not hold."""
    stored = read_weights(weights_folder(loading.folder)).shapes
    known = {*stored, *(name.partition(".")[2] for name in stored)}  # heads call the body by other names
    names = [name for name, _ in model.named_parameters()]
    return {name for name in names if name not in known and name.partition(".")[2] not in known}


def _take_own_class(loading: LoadRequest, made: Any, config: PreTrainedConfig) -> Path | None:
    """Register the class that comes with the model with the Auto class `made`, from the private copy of its code.

    transformers would import it from the weights' folder, which may have changed since the code was approved.
    Returns the copy; None if the model needs no code of its own. Raises InputError.
    """
    code = code_folder(loading.folder, wanted=loading.model.trust_remote_code)
    if code is None:
        return None
    with running(loading.folder, trusted=True):
        own = get_class_from_dynamic_module(config.auto_map[made.__name__], code, local_files_only=True)  # type: ignore[attr-defined]
        made.register(type(config), add_generation_mixin_to_remote_model(own), exist_ok=True)
    return code


def _model_class(loading: LoadRequest, config: PreTrainedConfig) -> Any:
    """The class with `from_pretrained` and `from_config`."""
    return HEADS[loading.head.head].model_class(config)


def _build(build: Callable[[str], Any]) -> Any:
    try:
        return build("sdpa")
    except ValueError as error:
        if "scaled_dot_product_attention" not in str(error):
            raise
        return build("eager")  # an architecture that has no other


def _names_of_body(made: Any, config: PreTrainedConfig) -> dict[str, str] | None:
    """How to rename a file's weights if this head names the body differently from other heads.

    The question-answering heads of Llama, Qwen2 and Qwen3 do, and transformers would reinitialise the whole body.
    """
    tables = [getattr(each, "_model_mapping", {type(config): each}) for each in (made, AutoModel)]
    if any(type(config) not in table for table in tables):
        return None  # such as an encoder and a decoder put together, which have no body of their own
    own, usual = (getattr(table[type(config)], "base_model_prefix", "") for table in tables)
    return {rf"^{usual}\.": f"{own}."} if own and usual and own != usual else None


def _refuse_other_shapes(model: PreTrainedModel, mismatched: set[str], head: Head) -> None:
    if body := sorted(mismatched - _head_parameters(model, head).keys()):
        raise InputError(
            "model.config: with these changes {body} has a different shape than in the file; undo "
            "them or set model.initialise to from_config",
            "model.config",
            body=body[0],
        )


def _head_parameters(model: PreTrainedModel, head: Head) -> dict[str, torch.nn.Parameter]:
    tops = head_modules(model, head)
    return {name: each for name, each in model.named_parameters() if name.partition(".")[0] in tops}


def _fit_head(model: PreTrainedModel, stored: PreTrainedConfig, loading: LoadRequest, new: set[str]) -> set[str]:
    """Reorder a stored head's rows to match the labels; returns the parameters to draw if it has different ones."""
    if loading.head.head.declared.over_vocabulary:
        return set()
    output = _output_layer(model, loading.head.head, new)
    order = order_of_outputs(stored, type(model).__name__, loading.head.labels)
    if order is None:
        return set(output)
    with torch.no_grad():
        for parameter in output.values():
            parameter.copy_(parameter[order])
    return set()


def _output_layer(model: PreTrainedModel, kind: Head, new: set[str]) -> dict[str, torch.nn.Parameter]:
    """The parameters of the head's last layer, with a row for each output; none if they are new."""
    head = _head_parameters(model, kind)
    last = list(head)[-1].rpartition(".")[0] if head else ""
    return {name: each for name, each in head.items() if name.rpartition(".")[0] == last and name not in new}


@torch.no_grad()
def _enlarge(model: PreTrainedModel, loading: LoadRequest, seed: int, account: LoadReport) -> None:
    words: Any = model.get_input_embeddings()
    rows, new = len(words.weight), loading.new_tokens
    after = max(rows, loading.vocabulary)  # a table may be padded beyond the tokenizer's ids; it is never made smaller
    before = {name: len(parameter) for name, parameter in model.named_parameters() if parameter.ndim}
    if after > rows:
        _resize(model, after)
    elif not new.tokens_in_spare_rows(rows):
        return
    config, parameters = model.config.to_dict(), dict(model.named_parameters())
    tables = _of_vocabulary(model) | {name for name in before if len(parameters[name]) != before[name]}
    for name in tables:
        stored = parameters[name][: before[name]].float().cpu().numpy()
        values = resize_embedding(name, stored, len(parameters[name]), config, seed, new)
        parameters[name].data = parameters[name].data.float()
        parameters[name].copy_(torch.from_numpy(values))
    account.resized = new.describe(rows, after)


def _of_vocabulary(model: PreTrainedModel) -> set[str]:
    """The parameters with a row for each token."""
    words, last = model.get_input_embeddings(), model.get_output_embeddings()
    weights = [words.weight, getattr(last, "weight", None), getattr(last, "bias", None)]  # type: ignore[union-attr]
    return {name for name, each in model.named_parameters() if any(each is one for one in weights)}


def _resize(model: PreTrainedModel, vocabulary: int) -> None:
    words, last = model.get_input_embeddings(), model.get_output_embeddings()
    ties_embeddings = model.config.tie_word_embeddings
    if last is not None and last.weight is not words.weight:
        # The configuration of T5 1.1 and mT5 says tied whatever the file holds, and resizing would lose their own head.
        model.config.tie_word_embeddings = False
    model.resize_token_embeddings(vocabulary, mean_resizing=False)
    model.config.tie_word_embeddings = ties_embeddings


@torch.no_grad()
def _draw(names: list[str], model: PreTrainedModel, seed: int, account: LoadReport) -> None:
    parameters, config = dict(model.named_parameters()), model.config.to_dict()
    for name in names:
        parameters[name].copy_(torch.from_numpy(draw(name, tuple(parameters[name].shape), config, seed)))
    account.new = names


def _train_end_token(model: PreTrainedModel) -> None:
    """If the padding token is the end token, let its embedding train: a padding row gets no gradient."""
    words: Any = model.get_input_embeddings()
    ends = getattr(model.config, "eos_token_id", None)
    if getattr(words, "padding_idx", None) in (ends if isinstance(ends, list) else [ends]):
        words.padding_idx = None
