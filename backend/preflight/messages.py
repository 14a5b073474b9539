"""Owns the sentence on a learning rate far outside of what an optimizer usually gets."""

from dataclasses import dataclass

from backend.contract.spec import RunSpec, TrainingSection


@dataclass(frozen=True)
class Usual:
    """What an optimizer usually gets; beyond `least` and `most` a run is likely to learn nothing."""

    least: float
    most: float
    words: str


ALL_WEIGHTS = {
    "adamw": Usual(1e-7, 1e-2, "1e-5 to 5e-4 with AdamW"),
    "adam": Usual(1e-7, 1e-2, "1e-5 to 5e-4 with Adam"),
    "lion": Usual(1e-8, 3e-3, "2e-6 to 1e-4 with Lion"),
    "sgd": Usual(1e-6, 1.0, "1e-3 to 1e-1 with SGD"),
}
ADAPTER = Usual(1e-6, 5e-2, "1e-4 to 1e-3 for an adapter")


def rate_note(spec: RunSpec) -> list[str]:
    """The sentence, where there is something to say; optimizers that others add, and Adafactor's own scales, are not judged."""
    rate, usual = spec.training.learning_rate, _usual(spec.training, adapted=spec.adapter is not None)
    if usual is None or usual.least <= rate <= usual.most:
        return []
    if rate > usual.most:
        return [f"The learning rate {rate:g} is far above the usual {usual.words}: training is likely to diverge."]
    return [f"The learning rate {rate:g} is far below the usual {usual.words}: the model will hardly learn."]


def _usual(training: TrainingSection, *, adapted: bool) -> Usual | None:
    usual = ALL_WEIGHTS.get(training.optimizer)
    return ADAPTER if usual is not None and adapted and training.optimizer in ("adamw", "adam") else usual
