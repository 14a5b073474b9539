"""Owns the way from a batch on the device to the arguments of a forward pass of transformers, and to the targets' logits."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE, Head
from backend.engines.jax.bridge.environment import as_jax, as_torch
from backend.engines.jax.models.family import Arrays

_BY_ROW = {Head.SEQUENCE_CLASSIFICATION, Head.SEQUENCE_REGRESSION, Head.MULTIPLE_CHOICE}
_TOKENS = ("input_ids", "attention_mask", "token_type_ids")
Select = Callable[[jax.Array], jax.Array]


class Inputs:
    """Of one module with one head."""

    def __init__(self, module: PreTrainedModel, head: Head) -> None:
        self._module, self._head = module, head
        self._accepted = frozenset(inspect.signature(type(module).forward).parameters)

    def given(self, arrays: Arrays) -> dict[str, Any]:
        """Keyword arguments; of an answer that is being written `source` is what the encoder has made. Raises InputError for packed rows, which not every architecture keeps apart."""
        if "segment" in arrays:
            raise InputError(
                "task.packing: hardware.bridge cannot keep texts of one row apart; set task.packing to false",
                "task.packing",
            )
        tokens = {name: arrays[name] for name in _TOKENS if name in arrays and name in self._accepted}
        tokens["attention_mask"] = _seen(arrays["attention_mask"])
        tokens = self._ends_aligned(tokens)
        if self._head is Head.MULTIPLE_CHOICE:  # rows of one choice each
            tokens = {name: array[:, None] for name, array in tokens.items()}
        found: dict[str, Any] = as_torch(tokens)
        if "source" in arrays:
            found["encoder_outputs"] = BaseModelOutput(as_torch(arrays)["source"])
        if "decoder_input_ids" in arrays:
            found["decoder_input_ids"] = as_torch(arrays)["decoder_input_ids"]
        elif self._head is Head.SEQ2SEQ_LM:
            found["decoder_input_ids"] = self._beginning(arrays["labels"])
        return found | ({"use_cache": False} if "use_cache" in self._accepted else {})

    @contextmanager
    def chosen(self, arrays: Arrays) -> Iterator[Select]:
        """Lets a language model's last layer see the targets alone, a vocabulary being wide; gives what chooses them.

        What comes out of it is (targets, vocabulary) whether the layer has seen them alone or an architecture has none
        that can be found.
        """
        if "places" not in arrays:
            yield lambda logits: logits
            return
        places, shape, seen = arrays["places"], self._grid(arrays), []

        def narrowed(layer: Any, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
            if seen or not given or tuple(given[0].shape[:2]) != shape:
                return None
            seen.append(True)
            hidden = as_jax(given[0])
            chosen = hidden.reshape(-1, hidden.shape[-1])[places][None]
            return (as_torch({"hidden": chosen})["hidden"], *given[1:])

        def select(logits: jax.Array) -> jax.Array:
            flat = logits.reshape(-1, logits.shape[-1])
            return flat if seen else flat[places]

        last = self._module.get_output_embeddings()
        handle = last.register_forward_pre_hook(narrowed) if last is not None else None
        try:
            yield select
        finally:
            if handle is not None:
                handle.remove()

    def _grid(self, arrays: Arrays) -> tuple[int, ...]:
        if "decoder_input_ids" in arrays:
            return arrays["decoder_input_ids"].shape
        return arrays["labels" if self._head is Head.SEQ2SEQ_LM else "input_ids"].shape

    def _beginning(self, labels: jax.Array) -> Any:
        """What the decoder sees of an answer, as the architecture has it: most show the start token, mBART the language."""
        shift = getattr(self._module, "prepare_decoder_input_ids_from_labels", None)
        if shift is not None:
            return shift(labels=as_torch({"labels": labels})["labels"])
        config = self._module.config
        known = jnp.where(labels == IGNORE, config.pad_token_id, labels)
        start = jnp.full_like(known[:, :1], config.decoder_start_token_id)
        return as_torch({"ids": jnp.concatenate([start, known[:, :-1]], axis=1)})["ids"]

    def _ends_aligned(self, tokens: Arrays) -> Arrays:
        """Padded on the left where the architecture sums a row up by its last place, as XLNet does."""
        config = self._module.config
        if self._head not in _BY_ROW or getattr(config, "summary_type", "") != "last" or config.model_type != "xlnet":
            return tokens
        mask = tokens["attention_mask"]
        places = (jnp.arange(mask.shape[1]) + mask.sum(axis=1, keepdims=True)) % mask.shape[1]
        return {name: jnp.take_along_axis(array, places, axis=1) for name, array in tokens.items()}


def _seen(attention_mask: jax.Array) -> jax.Array:
    """The mask with one place in rows that are filler: of a row without any, a mean would not be a number."""
    empty = attention_mask.sum(axis=1, keepdims=True) == 0
    return jnp.where(empty & (jnp.arange(attention_mask.shape[1]) == 0), 1, attention_mask)
