"""Owns what a bridged model writes: for every token the whole text is read again, as transformers' memories cannot be traced."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from backend.contract.generation import GenerationSettings
from backend.engines import decoding
from backend.engines.demands import demands_of
from backend.engines.engine import Batch
from backend.engines.jax.bridge.module import BridgedModel
from backend.engines.jax.layers import computing
from backend.engines.jax.model import Parameters
from backend.engines.jax.programs import Programs
from backend.engines.writing import answer_beginning, check_prompt, end_tokens, room_for
from backend.models.positions import longest_sequence

_ROUND = 64
"""Lengths are rounded up to this, for another one is another compilation."""


class BridgedWriter:
    """One model that writes; as `backend.engines.jax.generation.Writer`, without a memory of what was read."""

    def __init__(
        self, model: BridgedModel, config: Any, defaults: Any, numbers: Any, programs: Programs, jit: Callable[..., Any]
    ) -> None:  # fmt: skip
        self._model, self._config, self._numbers, self._programs = model, config, numbers, programs
        self._defaults, self._answers = defaults, bool(config.is_encoder_decoder)
        self._next, self._source = jit(self._compute_next), jit(self._compute_source)

    def write(self, parameters: Parameters, batch: Batch, settings: GenerationSettings) -> list[np.ndarray]:
        """New ids of every row, without the end token; prompts are padded on the left, sources on the right."""
        prompt, shown, rules = self._begun(batch, settings)
        if rules.room < 1:
            return [np.zeros(0, np.int64) for _ in prompt]
        text = _Text(self, parameters, prompt, shown, self._read(parameters, batch), settings.num_beams)
        return decoding.write(text.begin(), text.advance, prompt, rules)

    def stream(self, parameters: Parameters, input_ids: Sequence[int], settings: GenerationSettings) -> Iterator[int]:
        """The new ids of one prompt, each when it is made. Raises InputError where the prompt fills all positions."""
        if not self._answers:
            check_prompt(len(input_ids), self._config)
        row = np.array([input_ids], dtype=np.int64)
        batch = {"input_ids": row, "attention_mask": np.ones_like(row)}
        prompt, shown, rules = self._begun(batch, settings)
        if rules.room > 0:
            text = _Text(self, parameters, prompt, shown, self._read(parameters, batch), settings.num_beams)
            yield from decoding.stream(text.begin(), text.advance, prompt, rules)

    def _begun(self, batch: Batch, settings: GenerationSettings) -> tuple[np.ndarray, np.ndarray, decoding.Rules]:
        """What is there before anything is written, which of it is no padding, and what may follow."""
        prompt = answer_beginning(batch, self._defaults) if self._answers else batch["input_ids"].astype(np.int64)
        shown = np.ones_like(prompt) if self._answers else batch["attention_mask"]
        room, ends = (
            room_for(settings, self._config, prompt.shape[1]),
            end_tokens(settings, self._defaults, self._config),
        )
        demands = demands_of(self._defaults, ends, samples=settings.sample)
        return prompt, shown, decoding.Rules(settings, ends, room, demands, (shown != 0).argmax(axis=1))

    def scores(
        self, parameters: Parameters, ids: np.ndarray, lengths: np.ndarray, source: dict[str, Any]
    ) -> np.ndarray:
        """Of the token after each text, (rows, vocabulary); `ids` (rows, room) hold texts of these lengths."""
        length = self._rounded(int(lengths.max()))
        ids = np.pad(ids, ((0, 0), (0, max(0, length - ids.shape[1]))))[:, :length].astype(np.int32)
        key = ("text", ids.shape, *(array.shape for array in source.values()))
        found = self._programs.call(self._next, key, parameters, ids, lengths.astype(np.int32), source)
        return np.asarray(found)

    def _read(self, parameters: Parameters, batch: Batch) -> dict[str, Any]:
        """What an answer's decoder sees of the sources; nothing where texts are continued."""
        if not self._answers:
            return {}
        ids, mask = (batch[name].astype(np.int32) for name in ("input_ids", "attention_mask"))
        wide = ((0, 0), (0, self._rounded(ids.shape[1]) - ids.shape[1]))
        ids, mask = np.pad(ids, wide), np.pad(mask, wide)
        read = self._programs.call(self._source, ("source", ids.shape), parameters, ids, mask)
        return {"source": np.asarray(read), "attention_mask": mask}

    def _rounded(self, length: int) -> int:
        limit = longest_sequence(self._config.to_dict())
        rounded = -(-length // _ROUND) * _ROUND
        return (
            rounded if limit is None else max(length, min(rounded, limit))
        )  # beyond its positions nothing is a number

    # Compiled

    def _compute_source(self, parameters: Parameters, ids: jax.Array, mask: jax.Array) -> jax.Array:
        with computing(self._numbers):
            return self._model.read(parameters, {"input_ids": ids, "attention_mask": mask})

    def _compute_next(
        self, parameters: Parameters, ids: jax.Array, lengths: jax.Array, source: dict[str, jax.Array]
    ) -> jax.Array:
        rows, room = ids.shape
        arrays = {"places": jnp.arange(rows) * room + lengths - 1, **source}
        if self._answers:
            arrays["decoder_input_ids"] = ids
        else:
            arrays |= {"input_ids": ids, "attention_mask": (jnp.arange(room) < lengths[:, None]).astype(jnp.int32)}
        with computing(self._numbers):
            return self._model.answer(parameters, arrays, None)["logits"].astype(jnp.float32)


class _Text:
    """What is written of one batch: every row's tokens from its first place on, so that padding stands behind them."""

    def __init__(
        self, writer: BridgedWriter, parameters: Parameters, prompt: np.ndarray, shown: np.ndarray,
        source: dict[str, np.ndarray], beams: int,
    ) -> None:  # fmt: skip
        self._writer, self._parameters, self._source, self._beams = writer, parameters, source, beams
        self._lengths = shown.sum(axis=1)
        places = (np.arange(prompt.shape[1]) - self._lengths[:, None]) % prompt.shape[1]
        self._ids = np.take_along_axis(prompt, places, axis=1)

    def begin(self) -> np.ndarray:
        """Scores of the first token of every prompt."""
        scores = self._scores()
        if self._beams > 1:
            self._go_on_from(np.repeat(np.arange(len(self._ids)), self._beams))
        return scores

    def advance(self, tokens: np.ndarray, origins: np.ndarray) -> np.ndarray:
        """Scores after one more token of every row, each after the text of the row that it goes on from."""
        self._go_on_from(origins)
        self._ids = np.pad(self._ids, ((0, 0), (0, 1)))
        self._ids[np.arange(len(tokens)), self._lengths] = tokens
        self._lengths = self._lengths + 1
        return self._scores()

    def _scores(self) -> np.ndarray:
        return self._writer.scores(self._parameters, self._ids, self._lengths, self._source)

    def _go_on_from(self, origins: np.ndarray) -> None:
        self._ids, self._lengths = self._ids[origins], self._lengths[origins]
        self._source = {name: array[origins] for name, array in self._source.items()}
