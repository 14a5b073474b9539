"""Owns the `training` section: steps, batch, optimizer, schedule, checkpoints."""

from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, ValidationInfo, field_validator
from pydantic.config import JsonDict

from backend.contract.spec.section import Section

Often = Literal["epoch", "never"] | PositiveInt
ADVANCED: JsonDict = {"advanced": True}
HIDDEN: JsonDict = {"hidden": True}
_ADAM: JsonDict = {**ADVANCED, "when": {"optimizer": ["adamw", "adam"]}}
_RESTARTS: JsonDict = {**ADVANCED, "when": {"schedule": ["cosine_with_restarts"]}}
_POLYNOMIAL: JsonDict = {**ADVANCED, "when": {"schedule": ["polynomial"]}}
_INVERSE: JsonDict = {**ADVANCED, "when": {"schedule": ["inverse_sqrt"]}}
_ONE_CYCLE: JsonDict = {**ADVANCED, "when": {"schedule": ["one_cycle"]}}
DECODING: JsonDict = {"advanced": True, "decoding": True}
Schedule = Literal[
    "linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup", "one_cycle",
    "inverse_sqrt",
]  # fmt: skip


class TrainingSection(Section):
    """How the weights are changed."""

    epochs: Annotated[float, Field(title="Epochs", gt=0, le=10_000)] = 3
    """How often the whole training data is seen. Usual: 2 to 5, up to 20 with few rows; more soon overfits."""
    max_steps: Annotated[int | None, Field(title="Most steps", ge=1, le=10**12, json_schema_extra=ADVANCED)] = None
    """Ends training after this many optimizer steps, whatever `epochs` says."""
    batch_size: Annotated[int, Field(title="Batch size", ge=1, le=1_000_000)] = 32
    """Rows per optimizer step, over all devices; they go through in as many passes as the memory needs. Usual: 8 to 64."""
    learning_rate: Annotated[float, Field(title="Learning rate", gt=0, le=10)] = 2e-5
    """The highest learning rate of the schedule. Usual with AdamW: 1e-5 to 5e-5 for models of 100 million parameters and
    more, up to 5e-4 for smaller ones and from scratch, 1e-4 to 1e-3 for an adapter. Lion wants 3 to 10 times less, SGD
    1e-3 to 1e-1."""
    max_records: Annotated[int | None, Field(title="Most records", ge=1, le=10**12, json_schema_extra=ADVANCED)] = None
    """Ends training after as many whole batches as fit into this many records, whatever `epochs` says."""
    drop_last: Annotated[bool, Field(title="Drop the last batch", json_schema_extra=ADVANCED)] = False
    """Leaves the rows that fill no whole batch out of an epoch, other ones each time; else they are a smaller batch."""
    optimizer: Annotated[str, Field(title="Optimizer", json_schema_extra={"kind": "optimizer"})] = "adamw"
    """How gradients change the weights."""
    optimizer_options: Annotated[dict[str, Any], Field(title="Optimizer options", json_schema_extra=ADVANCED)] = {}
    """Settings that only this optimizer has, for example `{momentum: 0.9}` of `sgd`."""
    layer_decay: Annotated[float | None, Field(title="Layer-wise decay", gt=0, le=1, json_schema_extra=ADVANCED)] = None
    """Each layer learns at the rate of the one above it times this, the head at the full rate; empty treats all alike."""
    schedule: Annotated[Schedule, Field(title="Schedule")] = "linear"
    """How the learning rate goes on after the warm-up: `linear` and `cosine` fall to zero, `constant` (or
    `constant_with_warmup`) stays; `one_cycle` rises and falls in two lines."""
    warmup: Annotated[float, Field(title="Warm-up", ge=0)] = 0.0
    """Below 1 the fraction of all steps, from 1 on the number of steps, in which the learning rate rises from zero.
    Usual: 0.03 to 0.1; it keeps the first steps from breaking the model."""
    schedule_steps: Annotated[int | None, Field(title="Steps of the schedule", ge=1, json_schema_extra=ADVANCED)] = None
    """The schedule reckons with this many steps; empty takes those of the training."""
    schedule_cycles: Annotated[int, Field(title="Cosine cycles", ge=1, le=1000, json_schema_extra=_RESTARTS)] = 1
    """How often `cosine_with_restarts` falls to zero."""
    schedule_power: Annotated[float, Field(title="Polynomial power", gt=0, le=10, json_schema_extra=_POLYNOMIAL)] = 1.0
    """The exponent of `polynomial`; 1 is a line."""
    schedule_end: Annotated[float, Field(title="Last learning rate", ge=0, json_schema_extra=_POLYNOMIAL)] = 1e-7
    """Where `polynomial` ends."""
    schedule_timescale: Annotated[int | None, Field(title="Time scale", ge=1, json_schema_extra=_INVERSE)] = None
    """Steps after which `inverse_sqrt` begins to fall; empty takes the warm-up's, or 10,000 without one."""
    schedule_divisor: Annotated[float, Field(title="One-cycle divisor", ge=1, json_schema_extra=_ONE_CYCLE)] = 1e7
    """`one_cycle` begins at the highest learning rate divided by this."""
    schedule_final_divisor: Annotated[
        float, Field(title="One-cycle final divisor", ge=1, json_schema_extra=_ONE_CYCLE)
    ] = 1e10
    """`one_cycle` ends at its first learning rate divided by this."""
    weight_decay: Annotated[float, Field(title="Weight decay", ge=0, le=1)] = 0.01
    """How strongly weights are drawn to zero (decoupled from the gradient, except with `adam` and `sgd`); biases and
    normalisation layers are left out. Usual: 0 to 0.1."""
    adam_beta1: Annotated[float, Field(title="Adam beta 1", ge=0, lt=1, json_schema_extra=_ADAM)] = 0.9
    """Decay of the first moment (`adamw`, `adam`)."""
    adam_beta2: Annotated[float, Field(title="Adam beta 2", ge=0, lt=1, json_schema_extra=_ADAM)] = 0.999
    """Decay of the second moment (`adamw`, `adam`)."""
    adam_epsilon: Annotated[float, Field(title="Adam epsilon", gt=0, le=1e-2, json_schema_extra=_ADAM)] = 1e-8
    """Added to the root of the second moment (`adamw`, `adam`)."""
    max_gradient_norm: Annotated[float | None, Field(title="Gradient clipping", gt=0, json_schema_extra=ADVANCED)] = 1.0
    """Gradients whose global norm is larger are scaled down to it; empty switches this off."""
    label_smoothing: Annotated[float, Field(title="Label smoothing", ge=0, lt=1, json_schema_extra=ADVANCED)] = 0.0
    """Share of probability that the loss spreads over all labels."""
    gradient_checkpointing: Annotated[bool, Field(title="Gradient checkpointing", json_schema_extra=ADVANCED)] = False
    """Computes activations twice to need less memory; slower."""
    length_buckets: Annotated[bool, Field(title="Group by length", json_schema_extra=ADVANCED)] = False
    """Rows of similar length share a batch: less padding and quicker steps, but batches of similar length are often
    batches of one kind, which can cost accuracy. `false` takes rows in random order."""
    early_stopping: Annotated[int | None, Field(title="Early stopping", ge=1, json_schema_extra=ADVANCED)] = None
    """Ends training after this many evaluations without a better `best_metric` (or evaluation loss). Usual: 2 to 5."""
    early_stopping_threshold: Annotated[
        float, Field(title="Early stopping threshold", ge=0, json_schema_extra=ADVANCED)
    ] = 0.0
    """An evaluation counts as better only if it is better by more than this."""
    checkpoint_every: Annotated[Often, Field(title="Checkpoint every")] = "epoch"
    """`epoch`, `never`, or a number of steps."""
    keep_checkpoints: Annotated[int, Field(title="Checkpoints kept", ge=1, json_schema_extra=ADVANCED)] = 2
    """Older ones are deleted; the best one is kept beside them."""
    seed: Annotated[int, Field(title="Seed", ge=0, lt=2**32)] = 42
    """Decides new weights, data order and dropout. Same spec and seed, same run."""

    @field_validator("schedule_end")
    @classmethod
    def _ends_below_its_peak(cls, end: float, info: ValidationInfo) -> float:
        if info.data.get("schedule") == "polynomial" and end >= info.data.get("learning_rate", float("inf")):
            raise ValueError("the last learning rate must be below training.learning_rate")
        return end
