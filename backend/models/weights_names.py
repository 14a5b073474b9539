"""Owns which files of a repository hold its weights, and which of several formats is taken, told by their names alone."""

import re

from backend.models.weights import BIN, BIN_INDEX, FLAX, FLAX_INDEX, SAFETENSORS, SAFETENSORS_INDEX

_FORMATS = {
    "safetensors": (SAFETENSORS, SAFETENSORS_INDEX, re.compile(r"model-\d+-of-\d+\.safetensors")),
    "bin": (BIN, BIN_INDEX, re.compile(r"pytorch_model-\d+-of-\d+\.bin")),
    "flax": (FLAX, FLAX_INDEX, re.compile(r"flax_model-\d+-of-\d+\.msgpack")),
}
_SMALL = re.compile(r"[^/]+\.(json|txt|model|tiktoken|bpe|md|jinja)|LICENSE|LICENCE|([^/]+/)*[^/]+\.py")
_NOT_SMALL = re.compile(r".*\.(safetensors|bin|msgpack)\.index\.json")


def weight_files(names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The format that is taken, the best first, and its files; `none` where there are none."""
    for kind, (single, index, shard) in _FORMATS.items():
        if single in names:
            return kind, (single,)
        shards = tuple(name for name in names if shard.fullmatch(name))
        if index in names and shards:
            return kind, (index, *shards)
    return "none", ()


def small_files(names: tuple[str, ...]) -> tuple[str, ...]:
    """Configuration, tokenizer, code of its own (which nothing runs unasked), model card and licence."""
    return tuple(each for each in names if _SMALL.fullmatch(each) and not _NOT_SMALL.fullmatch(each))
