"""Prepares generation for every engine: how an answer starts, what ends it, and how long it can be."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from backend.contract.errors import InputError
from backend.contract.rpc.generation import GenerationSettings
from backend.engines.engine import Batch
from backend.models.config import longest_sequence


def answer_beginning(batch: Batch, defaults: Any) -> np.ndarray:
    """The decoder's first input: the start token and the batch's prompt, (rows, 1 + prompt).

    The prompt alone if it already has the start token, or if the model has none (mBART starts with a language).
    `defaults` is transformers' GenerationConfig of the model. Raises InputError if it names no start token.
    """
    start, rows = defaults.decoder_start_token_id, len(batch["input_ids"])
    prompt = batch.get("decoder_prompt", np.zeros((rows, 0), dtype=np.int64))
    if prompt.shape[1] and (start is None or (prompt[:, 0] == start).all()):
        return prompt
    start = defaults.bos_token_id if start is None else start
    if start is None:
        raise InputError(
            "model.name_or_path: this model does not specify which token its answers start with; set "
            "model.config.decoder_start_token_id",
            "model.config.decoder_start_token_id",
        )
    return np.concatenate([np.full((rows, 1), start, dtype=np.int64), prompt], axis=1)


def end_tokens(settings: GenerationSettings, *owners: Any) -> frozenset[int]:
    """The ids that end a text: from the settings, else the first of GenerationConfig and configuration with any."""
    if settings.eos_token_id is not None:
        return frozenset({settings.eos_token_id})
    for owner in owners:
        found = getattr(owner, "eos_token_id", None)
        if found is not None:
            return frozenset(found if isinstance(found, Sequence) else [found])
    return frozenset()


def max_new_tokens(settings: GenerationSettings, config: Any, known: int) -> int:
    """How many tokens can follow `known` ones: the setting, or fewer if the positions run out."""
    limit = longest_sequence(config.to_dict())
    return settings.max_new_tokens if limit is None else max(0, min(settings.max_new_tokens, limit - known))


def check_prompt(length: int, config: Any) -> None:
    """Raises InputError for a decoder prompt that fills all positions."""
    limit = longest_sequence(config.to_dict())
    if limit is not None and length >= limit:
        raise InputError(
            "prompt: it has {length} tokens, but this model is limited to {limit}, including the tokens that it "
            "generates; shorten it",
            "prompt",
            length=length,
            limit=limit,
        )
