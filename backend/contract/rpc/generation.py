"""How a model generates text: the settings that a task passes to an engine."""

from collections.abc import Callable
from dataclasses import dataclass, field


class GenerationStopped(Exception):
    """The text is no longer needed; the model is unchanged."""


def never() -> bool:
    """Never stop."""
    return False


@dataclass(frozen=True)
class GenerationSettings:
    """Greedy unless `sample`; beam search if `num_beams` is above 1; `seed` makes sampling repeatable.

    Every setting means the same as transformers' generation setting of that name. Lengths count new
    tokens: neither the prompt nor the decoder's start token.
    """

    max_new_tokens: int = 64
    min_new_tokens: int = 0
    sample: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    num_beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool = False
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    seed: int = 0
    eos_token_id: int | None = None
    """None ends a text as the model's own configuration says."""
    stop_requested: Callable[[], bool] = field(default=never, compare=False, repr=False)
    """Asked before each token."""

    def check_stop(self) -> None:
        """Raises GenerationStopped if a stop was requested."""
        if self.stop_requested():
            raise GenerationStopped
