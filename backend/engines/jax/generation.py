"""Generates text with a JAX model: compiled passes with a key-value cache, and token choices in numpy."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from backend.contract.rpc.generation import GenerationSettings
from backend.engines import decoding
from backend.engines.engine import Batch
from backend.engines.generation_limits import answer_beginning, check_prompt, end_tokens, max_new_tokens
from backend.engines.jax.compilation import CompiledPrograms
from backend.engines.jax.layers import KeyValueCache, trace, use_cache
from backend.engines.jax.model import Model, Parameters
from backend.engines.logits_processors import build_processors

_ROUND = 32
"""Lengths and rooms are rounded up to this, for another one is another compilation."""
Kept = tuple[tuple[jax.Array, jax.Array], ...]


class Generator:
    """Generates text with one model. Its passes are compiled once per number of rows, length and cache size."""

    def __init__(
        self, model: Model, config: Any, defaults: Any, numbers: Any, programs: CompiledPrograms, jit: Callable[..., Any]
    ) -> None:  # fmt: skip
        self._model, self._config, self._numbers = model, config, numbers
        self.defaults, self.answers = defaults, bool(config.is_encoder_decoder)
        self._programs = programs
        self._first = jit(self._read_prompt, static_argnames="room")
        self._next = jit(self._read_token, donate_argnames="kept")
        self._source = jit(self._read_source)

    def write(self, parameters: Parameters, batch: Batch, settings: GenerationSettings) -> list[np.ndarray]:
        """New ids of every row, without the end token; prompts are padded on the left, sources on the right."""
        passes, rules = self._start(parameters, batch, settings)
        if rules.room < 1:
            return [np.zeros(0, np.int64) for _ in passes.prompt]
        return decoding.write(passes.prefill(rules.room), passes.advance, passes.prompt, rules)

    def stream(self, parameters: Parameters, input_ids: Sequence[int], settings: GenerationSettings) -> Iterator[int]:
        """The new ids of one prompt, each as it is generated. Raises InputError if the prompt fills all positions."""
        if not self.answers:
            check_prompt(len(input_ids), self._config)
        row = np.array([input_ids], dtype=np.int64)
        passes, rules = self._start(parameters, {"input_ids": row, "attention_mask": np.ones_like(row)}, settings)
        if rules.room > 0:
            yield from decoding.stream(passes.prefill(rules.room), passes.advance, passes.prompt, rules)

    def _start(
        self, parameters: Parameters, batch: Batch, settings: GenerationSettings
    ) -> tuple["_GenerationState", decoding.DecodingRules]:
        passes = _GenerationState(self, parameters, batch, settings.num_beams)
        room = max_new_tokens(settings, self._config, passes.prompt.shape[1])
        ends = end_tokens(settings, self.defaults, self._config)
        processors = build_processors(self.defaults, ends, samples=settings.sample)
        padding = None if self.answers else (batch["attention_mask"] != 0).argmax(axis=1)
        return passes, decoding.DecodingRules(settings, ends, room, processors, padding)

    def read_source(self, parameters: Parameters, ids: np.ndarray, mask: np.ndarray) -> jax.Array:
        """The encoded sources that the decoder sees, (rows, length, width)."""
        return self._programs.call(self._source, ("source", ids.shape), parameters, ids, mask)

    def read_prompt(
        self, parameters: Parameters, ids: np.ndarray, shown: np.ndarray, source: Any, room: int
    ) -> tuple[jax.Array, Kept]:
        """Scores after the prompt, (rows, vocabulary), and the cache."""
        key = ("prompt", ids.shape, room, _program_key(source))
        return self._programs.call(self._first, key, parameters, ids, shown, source, room=room)

    def read_token(
        self, parameters: Parameters, ids: np.ndarray, shown: np.ndarray, at: np.int32, source: Any, kept: Kept
    ) -> tuple[jax.Array, Kept]:
        """Scores after one more token, and the new cache."""
        key = ("token", shown.shape, _program_key(source), _program_key(kept))
        return self._programs.call(self._next, key, parameters, ids, shown, at, source, kept)

    # Compiled

    def _read_source(self, parameters: Parameters, ids: jax.Array, mask: jax.Array) -> jax.Array:
        with trace(self._numbers):
            return self._model.bind(parameters).read({"input_ids": ids, "attention_mask": mask}, None)  # type: ignore[attr-defined]

    def _read_prompt(
        self, parameters: Parameters, ids: jax.Array, shown: jax.Array, source: Any, room: int
    ) -> tuple[jax.Array, Kept]:
        return self._next_scores(
            parameters, ids, shown, source, KeyValueCache(room, jnp.int32(0), _grow_mask(shown, room), ())
        )

    def _read_token(
        self, parameters: Parameters, ids: jax.Array, shown: jax.Array, at: jax.Array, source: Any, kept: Kept
    ) -> tuple[jax.Array, Kept]:
        memory = KeyValueCache(shown.shape[1], at, shown, kept)
        return self._next_scores(parameters, ids, jnp.ones_like(ids), source, memory)

    def _next_scores(
        self, parameters: Parameters, ids: jax.Array, mask: jax.Array, source: Any, memory: KeyValueCache
    ) -> tuple[jax.Array, Kept]:
        """Scores of the token after the last one, (rows, vocabulary) float32."""
        with trace(self._numbers), use_cache(memory):
            model: Any = self._model.bind(parameters)
            if self.answers:
                hidden = model.decode(ids, *source, None)
            else:
                before = jnp.cumsum(memory.shown, axis=1) - 1
                position = jax.lax.dynamic_slice_in_dim(before, memory.at, ids.shape[1], axis=1)
                arrays = {"input_ids": ids, "attention_mask": mask, "position": jnp.maximum(position, 0)}
                hidden = model.hidden(arrays, None)
            return model.vocabulary(hidden[:, -1]).astype(jnp.float32), tuple(memory.kept)


class _GenerationState:
    """The state of one batch: its prompt, its cache, and the position of the next token."""

    def __init__(self, writer: Generator, parameters: Parameters, batch: Batch, beams: int) -> None:
        self._writer, self._parameters, self._beams = writer, parameters, beams
        ids, mask = (batch[name].astype(np.int32) for name in ("input_ids", "attention_mask"))
        self._source: Any = ()
        if writer.answers:
            length = _round_up(ids.shape[1])
            ids, mask = (np.pad(array, ((0, 0), (0, length - array.shape[1]))) for array in (ids, mask))
            self._source = writer.read_source(parameters, ids, mask), jnp.asarray(mask)
            self.prompt = answer_beginning(batch, writer.defaults)
            self._shown = np.ones_like(self.prompt, np.int32)
        else:
            self.prompt, self._shown = ids.astype(np.int64), mask

    def prefill(self, room: int) -> np.ndarray:
        """Read the prompt, right-aligned so that few lengths are compiled; returns the scores after it."""
        length = self.prompt.shape[1] if self._writer.answers else _round_up(self.prompt.shape[1])
        before = ((0, 0), (length - self.prompt.shape[1], 0))
        ids, shown = np.pad(self.prompt, before).astype(np.int32), np.pad(self._shown, before)
        self._at, whole = length, _round_up(length + room)
        scores, self._kept = self._writer.read_prompt(self._parameters, ids, shown, self._source, whole)
        self._shown = np.pad(shown, ((0, 0), (0, whole - length)))
        if self._beams > 1:
            self._reorder(np.repeat(np.arange(len(ids)), self._beams))
        return np.asarray(scores)

    def advance(self, tokens: np.ndarray, origins: np.ndarray) -> np.ndarray:
        """Read one token per row, after the text of its parent row."""
        if self._beams > 1:
            self._reorder(origins)
        self._shown[:, self._at] = 1
        scores, self._kept = self._writer.read_token(
            self._parameters,
            tokens[:, None].astype(np.int32),
            self._shown,
            np.int32(self._at),
            self._source,
            self._kept,
        )
        self._at += 1
        return np.asarray(scores)

    def _reorder(self, origins: np.ndarray) -> None:
        if len(origins) == len(self._shown) and (origins == np.arange(len(origins))).all():
            return
        self._shown = self._shown[origins]
        self._kept, self._source = jax.tree.map(partial(jnp.take, indices=origins, axis=0), (self._kept, self._source))


def _program_key(tree: Any) -> tuple[Any, ...]:
    """Shapes and shardings: a program is compiled for both."""
    return tuple((array.shape, array.sharding) for array in jax.tree.leaves(tree))


def _round_up(length: int) -> int:
    return -(-length // _ROUND) * _ROUND


def _grow_mask(shown: jax.Array, room: int) -> jax.Array:
    return jnp.pad(shown, ((0, 0), (0, room - shown.shape[1])))
