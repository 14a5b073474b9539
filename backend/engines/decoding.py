"""Chooses tokens from scores: greedy, sampling or beam search, by transformers' rules; in numpy, for any engine."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from backend.contract.rpc.generation import GenerationSettings
from backend.engines.logits_processors import NONE, LogitsProcessors

Advance = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""The tokens that were chosen (rows,) and the row that each continues (rows,) → scores of the next (rows, vocabulary)."""
_WORST = -1e9
_COLDEST = 1e-5  # a temperature of nothing would divide by it


@dataclass(frozen=True)
class DecodingRules:
    """Applies the decoding settings to scores."""

    settings: GenerationSettings
    ends: frozenset[int]
    room: int
    """How many tokens there may be."""
    processors: LogitsProcessors = NONE
    """What the model asks of its texts."""
    padding: np.ndarray | None = None
    """How many ids before each row's own are padding, (rows,), which the penalty for repeating leaves out."""

    def apply(self, scores: np.ndarray, seen: np.ndarray, written: int) -> np.ndarray:
        """Adjusted scores (rows, vocabulary) float32 after prompts and `written` tokens, in `seen` (rows, length)."""
        settings, scores = self.settings, scores.copy()
        if settings.repetition_penalty != 1.0:
            own = self._pad_with_own(seen)
            known = np.take_along_axis(scores, own, axis=1)
            penalty = np.float32(settings.repetition_penalty)
            np.put_along_axis(scores, own, np.where(known < 0, known * penalty, known / penalty), axis=1)
        if settings.no_repeat_ngram_size:
            for row, ids in enumerate(seen):
                scores[row, _repeating_tokens(ids, settings.no_repeat_ngram_size)] = -np.inf
        self.processors.forbid(scores, seen)
        if written < settings.min_new_tokens:
            scores[:, sorted(self.ends)] = -np.inf
        self.processors.force(scores, seen, written, self.room)
        return self._warp(scores) if settings.sample else scores

    def _pad_with_own(self, seen: np.ndarray) -> np.ndarray:
        """`seen` with padding replaced by the row's first real id; a row may occur once per beam."""
        if self.padding is None:
            return seen
        before = np.repeat(self.padding, len(seen) // len(self.padding))
        first = seen[np.arange(len(seen)), before]
        return np.where(np.arange(seen.shape[1]) < before[:, None], first[:, None], seen)

    def _warp(self, scores: np.ndarray) -> np.ndarray:
        settings = self.settings
        scores = scores / np.float32(max(settings.temperature, _COLDEST))
        kept = 2 if settings.num_beams > 1 else 1  # beams need another token to continue with
        if settings.top_k:
            count = min(max(settings.top_k, kept), scores.shape[1])
            least = np.partition(scores, -count, axis=1)[:, -count, None]
            scores = np.where(scores < least, -np.inf, scores)
        if settings.top_p is not None and settings.top_p < 1.0:
            order = np.argsort(scores, axis=1)
            chances = _softmax(np.take_along_axis(scores, order, axis=1))
            left_out = np.cumsum(chances, axis=1) <= 1 - settings.top_p
            left_out[:, -kept:] = False
            unordered = np.zeros_like(left_out)
            np.put_along_axis(unordered, order, left_out, axis=1)
            scores = np.where(unordered, -np.inf, scores)
        return scores


def write(scores: np.ndarray, advance: Advance, prompts: np.ndarray, rules: DecodingRules) -> list[np.ndarray]:
    """New ids of every prompt (rows, length), without the end token; `scores` (rows, vocabulary) are the first."""
    if rules.settings.num_beams > 1:
        return _BeamSearch(rules, len(prompts)).write(scores, advance, prompts)
    written: list[list[int]] = [[] for _ in prompts]
    for tokens, going in _steps(scores, advance, prompts, rules):
        for row in np.flatnonzero(going):
            written[row].append(int(tokens[row]))
    return [np.array(one, dtype=np.int64) for one in written]


def stream(scores: np.ndarray, advance: Advance, prompt: np.ndarray, rules: DecodingRules) -> Iterator[int]:
    """The same ids of one prompt (1, length), each once it is chosen; with beams, only when the text is done."""
    if rules.settings.num_beams > 1:
        yield from write(scores, advance, prompt, rules)[0].tolist()
        return
    for tokens, _ in _steps(scores, advance, prompt, rules):
        yield int(tokens[0])


def _steps(
    scores: np.ndarray, advance: Advance, prompts: np.ndarray, rules: DecodingRules
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield one token per row and which rows have not ended, both (rows,), until all have."""
    random = np.random.default_rng(rules.settings.seed) if rules.settings.sample else None
    rows, seen = np.arange(len(prompts)), prompts
    going = np.ones(len(prompts), dtype=bool)
    for number in range(rules.room):
        rules.settings.check_stop()
        tokens = _choose_tokens(rules.apply(scores, seen, number), random)
        going = going & ~np.isin(tokens, sorted(rules.ends))
        if not going.any():
            return
        yield tokens, going
        if number + 1 < rules.room:
            seen = np.concatenate([seen, tokens[:, None]], axis=1)
            scores = advance(tokens, rows)


class _BeamSearch:
    """transformers' beam search: a row ends when no running beam can beat the finished ones."""

    def __init__(self, rules: DecodingRules, rows: int) -> None:
        self._rules, self._rows, self._count = rules, rows, rules.settings.num_beams
        self._random = np.random.default_rng(rules.settings.seed) if rules.settings.sample else None
        self._running = np.full((rows, self._count), _WORST, np.float32)
        self._running[:, 0] = 0.0  # else all beams of a row would begin alike
        self._best = np.full((rows, self._count), _WORST, np.float32)
        self._finished = np.zeros((rows, self._count), dtype=bool)
        self._may_improve = np.ones(rows, dtype=bool)
        self._texts = np.zeros((rows, self._count, 0), np.int64)
        self._kept: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] * self._count for _ in range(rows)]

    def write(self, scores: np.ndarray, advance: Advance, prompts: np.ndarray) -> list[np.ndarray]:
        """The best text of every row."""
        prompts = np.repeat(prompts, self._count, axis=0)
        scores = np.repeat(scores, self._count, axis=0)
        for number in range(self._rules.room):
            self._rules.settings.check_stop()
            seen = np.concatenate([prompts, self._texts.reshape(len(prompts), -1)], axis=1)
            ruled = self._rules.apply(_log_softmax(scores), seen, number)
            origins = self._extend(ruled.reshape(self._rows, self._count, -1), is_last=number + 1 == self._rules.room)
            if self._is_over(number + 1):
                break
            flat = (np.arange(self._rows)[:, None] * self._count + origins).reshape(-1)
            scores = advance(self._texts[:, :, -1].reshape(-1), flat)
        return [self._strip_end(one[0]) for one in self._kept]

    def _extend(self, scores: np.ndarray, *, is_last: bool) -> np.ndarray:
        """Keep the best continuations; returns the parent beam of each running one, (rows, beams)."""
        vocabulary = scores.shape[-1]
        total = (scores + self._running[:, :, None]).reshape(self._rows, -1)
        candidates = max(2, 1 + len(self._rules.ends)) * self._count
        best = _top_k(total if self._random is None else total + self._random.gumbel(size=total.shape), candidates)
        values, origins, tokens = np.take_along_axis(total, best, axis=1), best // vocabulary, best % vocabulary
        texts = np.concatenate([np.take_along_axis(self._texts, origins[..., None], axis=1), tokens[..., None]], axis=2)
        ended = np.isin(tokens, sorted(self._rules.ends)) | is_last
        self._finish(values, texts, ended)
        going = _top_k(np.where(ended, values + np.float32(_WORST), values), self._count)
        self._running = np.take_along_axis(np.where(ended, values + np.float32(_WORST), values), going, axis=1)
        self._texts = np.take_along_axis(texts, going[..., None], axis=1)
        self._all_ended = bool(ended.all())
        return np.take_along_axis(origins, going, axis=1)

    def _finish(self, values: np.ndarray, texts: np.ndarray, ended: np.ndarray) -> None:
        settings, length = self._rules.settings, texts.shape[2]
        scores = values / np.float32(length**settings.length_penalty)
        full = np.logical_and(self._finished.all(axis=1), settings.early_stopping)
        ended = ended & (np.arange(ended.shape[1]) < self._count) & ~full[:, None] & self._may_improve[:, None]
        merged = np.concatenate([self._best, np.where(ended, scores, scores + np.float32(_WORST))], axis=1)
        best = _top_k(merged, self._count)
        is_finished = np.concatenate([self._finished, ended], axis=1)
        for row, places in enumerate(best.tolist()):
            every = [*self._kept[row], *texts[row]]
            self._kept[row] = [every[place] for place in places]
        self._best = np.take_along_axis(merged, best, axis=1)
        self._finished = np.take_along_axis(is_finished, best, axis=1)

    def _is_over(self, length: int) -> bool:
        settings = self._rules.settings
        possible = self._running[:, 0] / np.float32(length**settings.length_penalty)
        worst = np.where(self._finished, self._best.min(axis=1, keepdims=True), np.float32(_WORST))
        self._may_improve &= (possible[:, None] > worst).any(axis=1)
        stops_early = settings.early_stopping and bool(self._finished.all())
        return not self._may_improve.any() or stops_early or self._all_ended

    def _strip_end(self, ids: np.ndarray) -> np.ndarray:
        ends = np.flatnonzero(np.isin(ids, sorted(self._rules.ends)))
        return ids[: ends[0]] if len(ends) else ids


def _choose_tokens(scores: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
    return (scores if random is None else scores + random.gumbel(size=scores.shape)).argmax(axis=1)


def _top_k(values: np.ndarray, count: int) -> np.ndarray:
    """Indices of the largest values of every row, largest first."""
    return np.argsort(-values, axis=1, kind="stable")[:, :count]


def _repeating_tokens(ids: np.ndarray, size: int) -> np.ndarray:
    """The tokens that would repeat an existing n-gram of `size` tokens."""
    if len(ids) + 1 < size:
        return np.zeros(0, np.int64)
    groups = np.lib.stride_tricks.sliding_window_view(ids, size) if len(ids) >= size else np.zeros((0, size), np.int64)
    last = ids[len(ids) - size + 1 :]
    return groups[(groups[:, :-1] == last).all(axis=1), -1]


def _softmax(scores: np.ndarray) -> np.ndarray:
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    return chances / chances.sum(axis=1, keepdims=True)


def _log_softmax(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
