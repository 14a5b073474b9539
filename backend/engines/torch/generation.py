"""Owns the continuation of a prompt, token by token, greedy or sampled, with the model's own key-value cache."""

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from backend.contract.generation import GenerationSettings
from backend.engines.torch.precision import Precision


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
