"""Reads a model's config.json: rejects impossible values before anything is allocated or passed to a framework.

A configuration may be untrusted: a billion labels would fill the memory while it is read, a size of 0 or a text
instead of a number would fail deep inside a library. The limits are far above the largest models.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.models.architectures import activations, needs_code
from backend.models.model_files import CONFIG_LIMIT, check_links, read_table, read_table_if_sound


def _quote(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return (
            f"{value:,}"
            if abs(value) < 10**15
            else message("a number of {value} digits or more", value=value.bit_length() * 3 // 10)
        )
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


_COUNTED_FROM_PADDING = {
    "roberta", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm", "camembert", "data2vec-text", "ibert",
    "longformer", "mpnet", "esm", "xmod", "luke", "markuplm", "layoutlmv3",
}  # fmt: skip
_RELATIVE_POSITIONS = {
    "t5", "mt5", "umt5", "byt5", "longt5", "switch_transformers", "bloom", "mpt", "xlnet", "transfo-xl",
    "deberta-v2", "mamba", "mamba2", "rwkv", "reformer", "falcon_mamba",
}  # fmt: skip
_POSITION_KEYS = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length")


def longest_sequence(config: dict[str, Any]) -> int | None:
    """Tokens that fit a configuration's positions, or None if unlimited (T5's and Bloom's are relative).

    RoBERTa-like models start counting at the padding id plus one, so two rows of their table are never used.
    """
    model_type = config.get("model_type")
    if model_type in _RELATIVE_POSITIONS:
        return None
    for key in _POSITION_KEYS:
        value = config.get(key)
        if isinstance(value, int) and value > 0:
            return value - 2 if model_type in _COUNTED_FROM_PADDING else value
    return None


_BEGINS_WITH_PADDING = {"t5", "longt5", "switch_transformers"}


def decoder_start_token(model_type: str | None, own: int | None, padding: int | None) -> int | None:
    """The configuration's own `decoder_start_token_id`; without one T5-like models start with the padding token.

    None for every other architecture: transformers' class decides, or raises an error.
    """
    return padding if own is None and model_type in _BEGINS_WITH_PADDING else own


FIELD = "model.name_or_path"
MAX_LABELS, MAX_ROWS = 1_000_000, 10**8
_MAX_PARAMETERS = 10**13
_LARGEST = {
    MAX_ROWS: ("vocab_size", "decoder_vocab_size", "src_vocab_size", "tgt_vocab_size"),
    10**6: ("hidden_size", "d_model", "n_embd", "dim", "embedding_size", "head_dim", "d_kv", "d_head", "type_vocab_size",
        "num_labels"),
    10**7: ("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "hidden_dim", "n_inner", "d_inner"),
    10**4: (
        "num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "num_decoder_layers",
        "num_hidden_groups", "num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads",
        "decoder_attention_heads", "num_key_value_heads", "num_experts", "num_local_experts", "n_routed_experts",
    ),
    10**9: ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length"),
}  # fmt: skip
_LIMITS = {name: limit for limit, names in _LARGEST.items() for name in names}
_MAY_BE_ZERO = {"type_vocab_size", "num_hidden_layers", "n_inner", "d_ff", "intermediate_size", "num_experts",
    "num_local_experts", "n_routed_experts", "max_position_embeddings", "encoder_layers", "decoder_layers"}  # fmt: skip
"""Sizes that some architectures do without: DeBERTa counts no types of token, an encoder has no layers of a decoder."""
_WIDTHS = (("hidden_size", "num_attention_heads"), ("n_embd", "n_head"), ("d_model", "encoder_attention_heads"),
    ("d_model", "decoder_attention_heads"), ("dim", "n_heads"))  # fmt: skip
_OWN_WIDTH = {"head_dim", "d_kv", "d_head", "attention_head_size", "kv_channels", "qk_head_dim", "qk_nope_head_dim",
    "num_attention_heads_per_layer", "attention_hidden_size"}  # fmt: skip
"""Keys with which a head's width does not follow from the model's."""


def read_checked(folder: Path) -> dict[str, Any]:
    """The folder's config.json; empty if missing. Raises InputError if it, or a link in the folder, cannot be used."""
    check_links(folder)
    path = folder / "config.json"
    config = read_table(path, CONFIG_LIMIT, unique=True)
    if problem := problem_of(config):
        raise InputError("{field}: {path}: {problem}", FIELD, field=FIELD, path=path, problem=problem)
    return config


def config_mistake(folder: Path, error: Exception) -> InputError | None:
    """What a library rejects in the folder's config.json, by key and value; None if the error is about something else.

    Only the library knows the type of each key of an architecture, and it reports it when opening a tokenizer too.
    """
    refused = re.match(r"Validation error for field '(\w+)'", str(error))
    path = folder / "config.json"
    key = refused[1] if refused else ""
    part = next((one for one in _nested_configs(read_table_if_sound(path, CONFIG_LIMIT)) if key in one), None)
    if part is None or repr(part[key]) not in str(error):  # the value may come from elsewhere, such as a spec
        return None
    value = "null" if part[key] is None else _quote(part[key])
    return InputError(
        "{field}: {path}: {key} is {value}, which this kind of model cannot have; correct it there, "
        "or choose another model",
        FIELD,
        field=FIELD,
        path=path,
        key=key,
        value=value,
    )


def check_changed(config: dict[str, Any], changes: dict[str, Any]) -> None:
    """The same check for a configuration with a spec's changes. Raises InputError that names the key."""
    if changes and (problem := problem_of({**config, **changes})):
        key = next((name for name in changes if name in problem), next(iter(changes)))
        raise InputError("model.config.{key}: {problem}", f"model.config.{key}", key=key, problem=problem)


def problem_of(config: dict[str, Any]) -> str:
    """What is impossible in a model, and what to do; empty if nothing is wrong."""
    for part in _nested_configs(config):
        if problem := _kinds(part) or _sizes(part) or _labels(part) or _heads(part) or _code(part):
            return message("{problem}; correct it there, or choose another model", problem=problem)
        if any(part.get(name) is not None for name in _QUANTISED):
            return message(
                "its weights are quantized, which Burnish cannot open; choose the model in full or half precision"
            )
    problem = _activation(config)
    return message("{problem}; correct it there, or choose another model", problem=problem) if problem else ""


def _activation(config: dict[str, Any]) -> str:
    """An unknown activation, which a framework would only find when it builds the model."""
    for name in () if needs_code(config) else ("hidden_act", "activation_function"):
        value = config.get(name)
        if isinstance(value, str) and value not in activations():
            return message(
                "{name} is {value}, which is not an activation function that transformers supports",
                name=name,
                value=_quote(value),
            )
    return ""


_QUANTISED = ("quantization_config", "compression_config")
"""Keys with which transformers opens weights by another package, which may fetch code of the hub."""
_TABLES = {"id2label", "label2id", "auto_map", "task_specific_params"}


def _nested_configs(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The configuration and those nested in it, of an encoder or a text model."""
    rest = [config]
    while rest:
        part = rest.pop()
        yield part
        rest += [value for name, value in part.items() if isinstance(value, dict) and name not in _TABLES]


def _kinds(part: dict[str, Any]) -> str:
    if not isinstance(part.get("model_type", ""), str | None):
        return message("model_type is {part}, which is not a name", part=_quote(part["model_type"]))
    classes = part.get("architectures")
    if classes is not None and not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        return message("architectures is {classes}, which is not a list of names", classes=_quote(classes))
    return ""


def _sizes(part: dict[str, Any]) -> str:
    for name in part.keys() & _LIMITS.keys():
        value, limit = part[name], _LIMITS[name]
        least = 0 if name in _MAY_BE_ZERO else 1
        for one in value if isinstance(value, list) and value else [value]:
            if one is None:
                continue
            if not isinstance(one, int) or isinstance(one, bool):
                return message("{name} is {one}, which is not a whole number", name=name, one=_quote(one))
            if one < least:
                return message(
                    "{name} is {one}, but it must be at least {least}", name=name, one=_quote(one), least=least
                )
            if one > limit:
                return message(
                    "{name} is {one}, but no model has more than {limit:,}", name=name, one=_quote(one), limit=limit
                )
    if estimate(part) > _MAX_PARAMETERS:
        return message("its dimensions result in more than ten trillion parameters")
    return ""


def estimate(part: dict[str, Any]) -> int:
    """A lower bound on a configuration's parameters: the word embedding, and a matrix in each layer."""
    width = _first(part, "hidden_size", "d_model", "n_embd", "dim")
    rows = _first(part, "vocab_size")
    layers = _first(part, "num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers")
    return rows * (_first(part, "embedding_size") or width) + layers * width * width


def _first(part: dict[str, Any], *names: str) -> int:
    found = next((part[name] for name in names if name in part), 0)
    return found if isinstance(found, int) else 0


def _labels(part: dict[str, Any]) -> str:
    names, numbers = part.get("id2label"), part.get("label2id")
    for key, table in (("id2label", names), ("label2id", numbers)):
        if table is not None and not isinstance(table, dict):
            return message("{key} is {table}, which is not a table", key=key, table=_quote(table))
        if table is not None and len(table) > MAX_LABELS:
            return message(
                "{key} has {table:,} labels, but no model has more than {max_labels:,}",
                key=key,
                table=len(table),
                max_labels=MAX_LABELS,
            )
    for number in names or ():
        if not (str(number).isascii() and str(number).isdigit() and len(str(number)) <= 10):
            return message("id2label has the key {number}, which is not a whole number", number=_quote(number))
    return ""


def _heads(part: dict[str, Any]) -> str:
    for width, heads in _WIDTHS:
        size, count = part.get(width), part.get(heads)
        fixed = any(part.get(name) is not None for name in _OWN_WIDTH)
        if not fixed and isinstance(size, int) and isinstance(count, int) and count and size % count:
            return message(
                "{width} is {size:,}, which cannot be divided evenly among {count:,} attention heads ({heads})",
                width=width,
                size=size,
                count=count,
                heads=heads,
            )
    count, groups = part.get("num_attention_heads"), part.get("num_key_value_heads")
    if isinstance(count, int) and isinstance(groups, int) and groups and count % groups:
        return message(
            "num_attention_heads is {count:,}, which is not divisible by num_key_value_heads ({groups:,})",
            count=count,
            groups=groups,
        )
    return ""


_IMPLEMENTATIONS = tuple(
    f"{before}{what}_implementation{after}"
    for what in ("attn", "experts")
    for before, after in (("", ""), ("_", ""), ("_", "_internal"))
)


def _code(part: dict[str, Any]) -> str:
    """Settings that would download code from a hub without the user's approval."""
    for name in _IMPLEMENTATIONS:
        value = part.get(name)
        for one in value.values() if isinstance(value, dict) else [value]:
            if isinstance(one, str) and "/" in one:
                return message(
                    "{name} requires code from the Hub ({one}), which is never run", name=name, one=_quote(one)
                )
    return ""
