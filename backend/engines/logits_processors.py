"""Applies a model's own generation configuration to the scores, besides the settings; in numpy."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.contract.errors import InputError

_UNKNOWN = {
    "sequence_bias": None,
    "exponential_decay_length_penalty": None,
    "watermarking_config": None,
    "guidance_scale": 1.0,
    "encoder_repetition_penalty": 1.0,
    "renormalize_logits": False,
    "stop_strings": None,
    "max_time": None,
    "num_beam_groups": 1,
    "dola_layers": None,
}
"""Keys that change what is written in ways that are not built here, with the value that changes nothing."""
_UNKNOWN_IN_SAMPLES = {"min_p": None, "top_h": None, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0}
"""Those that change samples alone."""


@dataclass(frozen=True)
class LogitsProcessors:
    """Tokens that must or must not be generated, as in transformers' GenerationConfig."""

    first: int | None = None
    """The first token of a text after nothing but a start token."""
    last: tuple[int, ...] = ()
    """What it ends with, where it fills all the room there is."""
    never: tuple[tuple[int, ...], ...] = ()
    """Runs of tokens that are not written."""
    suppressed: tuple[int, ...] = ()
    """Tokens that are not written even where they must be."""
    suppressed_first: tuple[int, ...] = ()
    """Tokens that are not the first that is free."""

    def forbid(self, scores: np.ndarray, seen: np.ndarray) -> None:
        """Remove forbidden sequences from the scores (rows, vocabulary) of the token after `seen` (rows, length)."""
        for *before, token in self.never:
            if len(before) <= seen.shape[1]:
                completed = (seen[:, seen.shape[1] - len(before) :] == before).all(axis=1)
                scores[completed, token] = -np.inf

    def force(self, scores: np.ndarray, seen: np.ndarray, written: int, room: int) -> None:
        """Keep only the scores of forced tokens; `written` of `room` tokens have been generated."""
        if self.first is not None and seen.shape[1] == 1:
            _allow_only(scores, (self.first,))
        if self.last and written + 1 == room:
            _allow_only(scores, self.last)
        scores[:, list(self.suppressed)] = -np.inf
        begins = self.first is not None and seen.shape[1] - written == 1
        if written == (1 if begins else 0):
            scores[:, list(self.suppressed_first)] = -np.inf


NONE = LogitsProcessors()


def build_processors(defaults: Any, ends: frozenset[int], *, samples: bool) -> LogitsProcessors:
    """Build them from a GenerationConfig; `ends` end a text. Raises InputError for an unsupported option."""
    if key := unknown_demand(defaults, samples=samples):
        raise InputError(
            "model.name_or_path: this model's generation_config.json asks for {key}, which the JAX "
            "engine does not support; remove it from that file, or choose PyTorch",
            "model.name_or_path",
            key=key,
        )
    runs = (tuple(run) for run in defaults.bad_words_ids or ())
    last = defaults.forced_eos_token_id
    return LogitsProcessors(
        first=defaults.forced_bos_token_id,
        last=() if last is None else (last,) if isinstance(last, int) else tuple(last),
        never=tuple(run for run in runs if not (len(run) == 1 and run[0] in ends)),
        suppressed=tuple(token for token in defaults.suppress_tokens or () if token >= 0),
        suppressed_first=tuple(token for token in defaults.begin_suppress_tokens or () if token >= 0),
    )


def unknown_demand(defaults: Any, *, samples: bool) -> str:
    """The first GenerationConfig key that is not supported here; empty if there is none."""
    unknown = _UNKNOWN | _UNKNOWN_IN_SAMPLES if samples else _UNKNOWN
    requested = (key for key, neutral in unknown.items() if getattr(defaults, key, None) not in (None, neutral))
    return next(requested, "")


def _allow_only(scores: np.ndarray, tokens: tuple[int, ...]) -> None:
    scores[:] = -np.inf
    scores[:, list(tokens)] = 0.0
