"""Generates text: whole batches through transformers, and one prompt token by token."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from backend.contract.errors import InputError
from backend.contract.rpc.generation import GenerationSettings
from backend.engines import decoding
from backend.engines.engine import Batch
from backend.engines.generation_limits import answer_beginning, check_prompt, end_tokens, max_new_tokens
from backend.engines.logits_processors import build_processors, unknown_demand
from backend.engines.torch.inputs import tensor
from backend.engines.torch.precision import Precision

_COLDEST = 1e-5  # a temperature of nothing would divide by it


def write(model: Any, batch: Batch, settings: GenerationSettings, *, together: bool = False) -> list[np.ndarray]:
    """The new ids of every row of a batch without filler rows, up to the end token.

    With `together` the model is sharded: every process computes until the last of them has ended its texts.
    Raises InputError if the model's generation settings are not valid in transformers.
    """
    ids, mask = (tensor(batch[name], model.device) for name in ("input_ids", "attention_mask"))
    known, start = ids.shape[1], None
    given: dict[str, Any] = {}
    if model.config.is_encoder_decoder:
        beginning = answer_beginning(batch, model.generation_config)
        given["decoder_input_ids"] = tensor(beginning, model.device)
        known, start = beginning.shape[1], int(beginning[0, 0])  # of which transformers would else put another in front
    room = max_new_tokens(settings, model.config, known)
    if room < 1:
        return [np.zeros(0, dtype=np.int64) for _ in ids]
    if together:
        given["synced_gpus"] = True
    torch.manual_seed(settings.seed)  # whatever was written, trained or evaluated before
    wanted = _configuration(model, settings, room, start)
    stop = StoppingCriteriaList([_StopOnRequest(settings)])
    try:
        found = model.generate(ids, attention_mask=mask, generation_config=wanted, stopping_criteria=stop, **given)
    except (TypeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:300].rstrip(". ")
        raise InputError(
            "model.name_or_path: this model cannot generate with the settings in its "
            "generation_config.json ({reason}); correct that file, or choose another model",
            "model.name_or_path",
            reason=reason,
        ) from error
    ends = list(end_tokens(settings, model.generation_config, model.config))
    return [_before_end(row, ends) for row in found[:, known:].cpu().numpy()]


class _StopOnRequest(StoppingCriteria):
    """Stops generation between two tokens, with beams too; the partial text is discarded."""

    def __init__(self, settings: GenerationSettings) -> None:
        self._settings = settings

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:  # type: ignore[override]
        """Which rows (rows,) end here: none. Raises GenerationStopped."""
        self._settings.check_stop()
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


def _configuration(model: Any, settings: GenerationSettings, room: int, start: int | None) -> GenerationConfig:
    """The settings, plus the model's own for anything they omit (suppressed and forced tokens, the decoder's start)."""
    ends = sorted(end_tokens(settings, model.generation_config, model.config))
    padding = next((token for token in (model.config.pad_token_id, *ends) if token is not None), 0)
    return GenerationConfig(
        max_new_tokens=room,
        min_new_tokens=min(settings.min_new_tokens, room),
        min_length=0,
        do_sample=settings.sample,
        temperature=max(settings.temperature, _COLDEST) if settings.sample else 1.0,
        top_k=settings.top_k or 0,
        top_p=1.0 if settings.top_p is None else settings.top_p,
        typical_p=1.0,
        num_beams=settings.num_beams,
        num_return_sequences=1,
        length_penalty=settings.length_penalty,
        early_stopping=settings.early_stopping,
        repetition_penalty=settings.repetition_penalty,
        no_repeat_ngram_size=settings.no_repeat_ngram_size,
        encoder_no_repeat_ngram_size=0,
        decoder_start_token_id=start,
        eos_token_id=ends or None,
        pad_token_id=padding,
        use_cache=True,
        return_dict_in_generate=False,
    )


def _before_end(ids: np.ndarray, ends: list[int]) -> np.ndarray:
    found = np.flatnonzero(np.isin(ids, ends))
    return ids[: found[0]] if len(found) else ids


def continue_prompt(
    model: Any, input_ids: Sequence[int], settings: GenerationSettings, precision: Precision
) -> Iterator[int]:
    """Yield the new ids; stops before an end token, after `max_new_tokens`, or when the positions run out.

    Beams show no token before the whole text is done: their ids come at once, as does what only transformers generates.
    Raises InputError if the prompt fills all positions.
    """
    row = np.array([input_ids], dtype=np.int64)
    batch = {"input_ids": row, "attention_mask": np.ones_like(row)}
    answers = model.config.is_encoder_decoder
    if not answers:
        check_prompt(len(input_ids), model.config)
    if settings.num_beams > 1 or unknown_demand(model.generation_config, samples=settings.sample):
        with torch.inference_mode(), precision.autocast():
            written = write(model, batch, settings)
        yield from written[0].tolist()
        return
    prompt = answer_beginning(batch, model.generation_config) if answers else row
    ends = end_tokens(settings, model.generation_config, model.config)
    processors = build_processors(model.generation_config, ends, samples=settings.sample)
    rules = decoding.DecodingRules(settings, ends, max_new_tokens(settings, model.config, prompt.shape[1]), processors)
    if rules.room > 0:
        text = _Text(model, precision, row if answers else None)
        yield from decoding.stream(text.read(prompt), text.advance, prompt, rules)


class _Text:
    """One text being generated, with its key-value cache; `source` (1, length) is the text to answer."""

    def __init__(self, model: Any, precision: Precision, source: np.ndarray | None) -> None:
        self._model, self._precision = model, precision
        # transformers 5.24 renamed it; the code that comes with a model may keep the old name.
        accepted = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in accepted else "past_key_values"
        self._cache: Any = None
        self._given: dict[str, Any] = {}
        if source is not None:
            with torch.inference_mode(), precision.autocast():
                self._given["encoder_outputs"] = model.get_encoder()(input_ids=tensor(source, model.device))

    def read(self, ids: np.ndarray) -> np.ndarray:
        """Scores of the token after `ids` (1, length), which follow the tokens read so far: (1, vocabulary) float32."""
        name = "decoder_input_ids" if self._given else "input_ids"
        with torch.inference_mode(), self._precision.autocast():
            given = {name: tensor(ids, self._model.device), self._cache_name: self._cache}
            output = self._model(**given, **self._given, use_cache=True)
        self._cache = getattr(output, self._cache_name)
        return output.logits[:, -1].float().cpu().numpy()

    def advance(self, tokens: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The same after the one chosen token."""
        return self.read(tokens[:, None])
