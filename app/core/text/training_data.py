"""A training run's tokens on screen: whose data it is, the kinds of tokens, sentences about steps and shares."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.core.i18n import figure, group_digits, tr
from backend.contract.rpc.training_data import Kind, TrainingFeature, TrainingStep

DRAFT = "draft"


@dataclass(frozen=True)
class TrainingSubject:
    """A draft by its spec, or a run by its folder; neither means nothing is chosen yet."""

    run: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    lacks: str = ""
    """What a draft still needs before its data can be looked at, as a sentence."""

    @property
    def is_draft(self) -> bool:
        """Whether it is a draft, which can take over settings found here."""
        return not self.run

    @property
    def ready(self) -> bool:
        """Whether there is anything to query."""
        return bool(self.run) or (bool(self.spec) and not self.lacks)

    def arguments(self, split: str, count: int) -> dict[str, Any]:
        """The query's arguments; `asked` is incremented to read files again."""
        own = {"run": self.run} if self.run else {"spec": dict(self.spec)}
        return {"subject": self.run or DRAFT, "split": split, "asked": count, **own}


KINDS: dict[Kind, str] = {
    "token": "text",
    "second": tr("second text"),
    "special": "special",
    "target": tr("trained on"),
    "label": "labelled",
    "hidden": tr("masked"),
    "answer": "answer",
    "ignored": tr("−100: ignored by the loss"),
    "unknown": "unknown",
    "padding": "padding",
}
"""In the order of a legend."""


def percent(share: float) -> str:
    """`12 %`, `0.4 %`, `< 0.1 %`."""
    if 0 < share < 0.001:
        return f"< {figure(0.1)} %"
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{figure(100 * share, '.1f')} %"


def step_words(step: TrainingStep) -> str:
    """`Epoch 1 · loss 0.6931 · 290 tokens in 16 × 19 · 4.6 % padding`."""
    parts = [tr("Epoch {epoch}", epoch=step.epoch)]
    if step.loss is not None:
        parts.append(tr("loss {loss:.4f}", loss=step.loss))
    shown = " + ".join(" × ".join(group_digits(size) for size in shape) for shape in step.shapes[:4])
    more = tr(" + {number} more", number=len(step.shapes) - 4) if len(step.shapes) > 4 else ""
    parts.append(tr("{tokens:,} tokens in {shown}{more}", tokens=step.tokens, shown=shown, more=more))
    parts.append(tr("{percent} padding", percent=percent(step.padding)))
    return " · ".join(parts)


def short_place(place: str, most: int) -> str:
    """The end of a row's location, with its number: `…beginning.txt:330`."""
    return place if len(place) <= most else f"…{place[1 - most :]}"


def feature_words(feature: TrainingFeature) -> str:
    """Where a feature comes from: `train.csv:23 · part 2 of 3`."""
    parts = [feature.place]
    if feature.parts > 1:
        parts.append(tr("part {part} of {parts}", part=feature.part + 1, parts=feature.parts))
    return " · ".join(parts)


def numbers_at(feature: TrainingFeature, sequence: int, place: int) -> list[tuple[str, int | float | None]]:
    """Name and value of every array of the batch at a token of a sequence, except `input_ids`."""
    shape = feature.shapes["input_ids"]
    if len(shape) == 1 and sequence > 0:  # the decoder's
        return [("labels", feature.arrays["labels"][place])]
    at = place + (sequence * shape[1] if len(shape) == 2 else 0)
    return [
        (name, values[at])
        for name, values in feature.arrays.items()
        if name != "input_ids" and feature.shapes[name] == shape
    ]


def kinds_there(feature: TrainingFeature) -> list[Kind]:
    """A feature's kinds of tokens, in the order of the legend."""
    kinds = {kind for sequence in feature.sequences for kind in sequence.kinds}
    return [kind for kind in KINDS if kind in kinds]
