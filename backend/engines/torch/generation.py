"""Owns what a model writes: whole batches as transformers generates them, and one prompt token by token."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import GenerationConfig

from backend.contract.errors import InputError
from backend.contract.generation import GenerationSettings
from backend.engines.engine import Batch
from backend.engines.torch.inputs import tensor
from backend.engines.torch.precision import Precision
from backend.models.positions import longest_sequence


def write(model: Any, batch: Batch, settings: GenerationSettings) -> list[np.ndarray]:
    """The new ids of every row of a batch without filler rows, without the end token and what follows it."""
    ids, mask = (tensor(batch[name], model.device) for name in ("input_ids", "attention_mask"))
    given, known = {}, ids.shape[1]
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = beginning = _beginning(model, batch)
        known = beginning.shape[1]
    limit = longest_sequence(model.config.to_dict())
    room = settings.max_new_tokens if limit is None else min(settings.max_new_tokens, limit - known)
    if room < 1:
        return [np.zeros(0, dtype=np.int64) for _ in ids]
    torch.manual_seed(settings.seed)  # whatever was written, trained or evaluated before
    found = model.generate(ids, attention_mask=mask, generation_config=_configuration(model, settings, room), **given)
    ends = list(end_tokens(model, settings))
    return [_before_end(row, ends) for row in found[:, known:].cpu().numpy()]


def _beginning(model: Any, batch: Batch) -> torch.Tensor:
    """What the decoder sees before it writes: the start token and the batch's prompt. (rows, 1 + prompt)

    A prompt that has the start token already, or whose model has none (mBART starts with a language), stands alone.
    """
    start, rows = model.generation_config.decoder_start_token_id, len(batch["input_ids"])
    prompt = batch.get("decoder_prompt", np.zeros((rows, 0), dtype=np.int64))
    if prompt.shape[1] and (start is None or (prompt[:, 0] == start).all()):
        return tensor(prompt, model.device)
    start = model.generation_config.bos_token_id if start is None else start
    if start is None:
        raise InputError(
            "model.name_or_path: this model does not say with which token its answers start; "
            "set model.config.decoder_start_token_id",
            "model.config.decoder_start_token_id",
        )
    return tensor(np.concatenate([np.full((rows, 1), start), prompt], axis=1), model.device)


def _configuration(model: Any, settings: GenerationSettings, room: int) -> GenerationConfig:
    """The settings; what they do not name (suppressed and forced tokens, the decoder's start) is the model's own."""
    ends = sorted(end_tokens(model, settings))
    padding = next((token for token in (model.config.pad_token_id, *ends) if token is not None), 0)
    return GenerationConfig(
        max_new_tokens=room,
        min_new_tokens=min(settings.min_new_tokens, room),
        min_length=0,
        do_sample=settings.sample,
        temperature=max(settings.temperature, 1e-5) if settings.sample else 1.0,
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
        eos_token_id=ends or None,
        pad_token_id=padding,
        use_cache=True,
        return_dict_in_generate=False,
    )


def _before_end(ids: np.ndarray, ends: list[int]) -> np.ndarray:
    found = np.flatnonzero(np.isin(ids, ends))
    return ids[: found[0]] if len(found) else ids


def continue_prompt(
    model: nn.Module, input_ids: Sequence[int], settings: GenerationSettings, precision: Precision, limit: int | None
) -> Iterator[int]:
    """The new ids as they are made; ends before an end-of-text token, after `max_new_tokens`, or at the position `limit`."""
    device = next(model.parameters()).device
    ends = end_tokens(model, settings)
    seen = list(input_ids)
    room = settings.max_new_tokens if limit is None else min(settings.max_new_tokens, limit - len(seen))
    source = torch.Generator(device="cpu").manual_seed(settings.seed)
    cache, pending = None, seen
    for _ in range(room):
        with torch.inference_mode(), precision.computing():
            ids = torch.tensor([pending], device=device)
            output = model(input_ids=ids, past_key_values=cache, use_cache=True)
        token = choose(output.logits[0, -1].float().cpu(), seen, settings, source)
        if token in ends:
            return
        yield token
        cache, pending = output.past_key_values, [token]
        seen.append(token)


def choose(logits: torch.Tensor, seen: Sequence[int], settings: GenerationSettings, source: torch.Generator) -> int:
    """The next id from the logits (vocabulary,), after the settings' penalties and cuts."""
    if settings.repetition_penalty != 1.0:
        logits = _penalised(logits, seen, settings.repetition_penalty)
    if not settings.sample:
        return int(logits.argmax())
    logits = logits / max(settings.temperature, 1e-5)
    if settings.top_k is not None:
        least = logits.topk(min(settings.top_k, len(logits))).values[-1]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if settings.top_p is not None:
        logits = _nucleus(logits, settings.top_p)
    return int(torch.multinomial(logits.softmax(dim=0), 1, generator=source))


def end_tokens(model: nn.Module, settings: GenerationSettings) -> set[int]:
    """The ids that end a text: the settings', else those of the model's generation settings or configuration."""
    if settings.eos_token_id is not None:
        return {settings.eos_token_id}
    for owner in (getattr(model, "generation_config", None), getattr(model, "config", None)):
        found = getattr(owner, "eos_token_id", None)
        if found is not None:
            return set(found) if isinstance(found, list) else {found}
    return set()


def _penalised(logits: torch.Tensor, seen: Sequence[int], penalty: float) -> torch.Tensor:
    # Keskar et al. 2019 (CTRL), as transformers has it: positive scores are divided, negative ones multiplied.
    ids = torch.tensor(sorted(set(seen)))
    scores = logits[ids]
    return logits.index_copy(0, ids, torch.where(scores < 0, scores * penalty, scores / penalty))


def _nucleus(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    # Holtzman et al. 2020: the fewest ids whose probability reaches top_p; the most likely one always stays.
    values, order = logits.sort(descending=True)
    probabilities = values.softmax(dim=0)
    outside = probabilities.cumsum(dim=0) - probabilities >= top_p
    outside[0] = False
    return logits.index_fill(0, order[outside], -torch.inf)
