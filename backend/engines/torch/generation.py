"""Owns what a model writes: whole batches as transformers generates them, and one prompt token by token."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from backend.contract.generation import GenerationSettings
from backend.engines.engine import Batch
from backend.engines.torch.inputs import tensor
from backend.engines.torch.precision import Precision
from backend.engines.writing import answer_beginning, check_prompt, end_tokens, room_for

_COLDEST = 1e-5  # a temperature of nothing would divide by it


def write(model: Any, batch: Batch, settings: GenerationSettings) -> list[np.ndarray]:
    """The new ids of every row of a batch without filler rows, without the end token and what follows it."""
    ids, mask = (tensor(batch[name], model.device) for name in ("input_ids", "attention_mask"))
    given, known, start = {}, ids.shape[1], None
    if model.config.is_encoder_decoder:
        beginning = answer_beginning(batch, model.generation_config)
        given["decoder_input_ids"] = tensor(beginning, model.device)
        known, start = beginning.shape[1], int(beginning[0, 0])  # of which transformers would else put another in front
    room = room_for(settings, model.config, known)
    if room < 1:
        return [np.zeros(0, dtype=np.int64) for _ in ids]
    torch.manual_seed(settings.seed)  # whatever was written, trained or evaluated before
    wanted = _configuration(model, settings, room, start)
    found = model.generate(ids, attention_mask=mask, generation_config=wanted, **given)
    ends = list(end_tokens(settings, model.generation_config, model.config))
    return [_before_end(row, ends) for row in found[:, known:].cpu().numpy()]


def _configuration(model: Any, settings: GenerationSettings, room: int, start: int | None) -> GenerationConfig:
    """The settings; what they do not name (suppressed and forced tokens, the decoder's start) is the model's own."""
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
    """The new ids as they are made; ends before an end-of-text token, after `max_new_tokens`, or where positions end.

    Beams and encoder-decoders cannot show a token before the whole is there: theirs come at once.
    """
    if settings.num_beams > 1 or model.config.is_encoder_decoder:
        row = np.array([input_ids], dtype=np.int64)
        with torch.inference_mode(), precision.computing():
            written = write(model, {"input_ids": row, "attention_mask": np.ones_like(row)}, settings)
        yield from written[0].tolist()
        return
    yield from _streamed(model, list(input_ids), settings, precision)


def _streamed(model: Any, seen: list[int], settings: GenerationSettings, precision: Precision) -> Iterator[int]:
    check_prompt(len(seen), model.config)
    ends = end_tokens(settings, model.generation_config, model.config)
    rules = logits_rules(settings, len(seen), ends)
    source = torch.Generator(device="cpu").manual_seed(settings.seed)
    cache, pending = None, seen
    for _ in range(room_for(settings, model.config, len(seen))):
        with torch.inference_mode(), precision.computing():
            ids = torch.tensor([pending], device=model.device)
            output = model(input_ids=ids, past_key_values=cache, use_cache=True)
        scores = rules(torch.tensor([seen]), output.logits[:, -1].float().cpu())  # type: ignore[arg-type]
        token = chosen(scores[0], source if settings.sample else None)
        if token in ends:
            return
        yield token
        cache, pending = output.past_key_values, [token]
        seen.append(token)


def logits_rules(settings: GenerationSettings, prompt_length: int, ends: frozenset[int]) -> LogitsProcessorList:
    """What changes the scores of the next token, in transformers' order."""
    rules: list[Any] = []
    if settings.repetition_penalty != 1.0:
        rules.append(RepetitionPenaltyLogitsProcessor(settings.repetition_penalty))
    if settings.no_repeat_ngram_size:
        rules.append(NoRepeatNGramLogitsProcessor(settings.no_repeat_ngram_size))
    if settings.min_new_tokens and ends:
        rules.append(MinNewTokensLengthLogitsProcessor(prompt_length, settings.min_new_tokens, sorted(ends)))
    if settings.sample:
        rules.append(TemperatureLogitsWarper(max(settings.temperature, _COLDEST)))
    if settings.sample and settings.top_k:
        rules.append(TopKLogitsWarper(settings.top_k))
    if settings.sample and settings.top_p is not None and settings.top_p < 1.0:
        rules.append(TopPLogitsWarper(settings.top_p))
    return LogitsProcessorList(rules)


def chosen(scores: torch.Tensor, source: torch.Generator | None) -> int:
    """The best id of the scores (vocabulary,), or one drawn from `source`."""
    if source is None:
        return int(scores.argmax())
    return int(torch.multinomial(scores.softmax(dim=0), 1, generator=source))
