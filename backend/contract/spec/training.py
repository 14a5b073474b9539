"""Owns the `training` section: steps, batch, optimizer, schedule, checkpoints."""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt
from pydantic.config import JsonDict

from backend.contract.spec.section import Section

Often = Literal["epoch", "never"] | PositiveInt
ADVANCED: JsonDict = {"advanced": True}


class TrainingSection(Section):
    """How the weights are changed."""

    epochs: Annotated[float, Field(title="Epochs", gt=0, le=10_000)] = 3
    """How often the whole training data is seen."""
    max_steps: Annotated[int | None, Field(title="Most steps", ge=1, json_schema_extra=ADVANCED)] = None
    """Ends training after this many optimizer steps, whatever `epochs` says."""
    batch_size: Annotated[int, Field(title="Batch size", ge=1, le=1_000_000)] = 32
    """Rows per optimizer step, over all devices."""
    learning_rate: Annotated[float, Field(title="Learning rate", gt=0, le=10)] = 2e-5
    """The highest learning rate of the schedule."""
    schedule: Annotated[Literal["linear", "cosine", "constant"], Field(title="Schedule")] = "linear"
    """How the learning rate falls after the warm-up: to zero in a line, along half a cosine, or not at all."""
    warmup: Annotated[float, Field(title="Warm-up", ge=0)] = 0.0
    """Below 1 the fraction of all steps, from 1 on the number of steps, in which the learning rate rises from zero."""
    weight_decay: Annotated[float, Field(title="Weight decay", ge=0, le=1)] = 0.01
    """Decoupled weight decay of AdamW; biases and normalisation layers are left out."""
    adam_beta1: Annotated[float, Field(title="Adam beta 1", ge=0, lt=1, json_schema_extra=ADVANCED)] = 0.9
    """Decay of the first moment."""
    adam_beta2: Annotated[float, Field(title="Adam beta 2", ge=0, lt=1, json_schema_extra=ADVANCED)] = 0.999
    """Decay of the second moment."""
    adam_epsilon: Annotated[float, Field(title="Adam epsilon", gt=0, le=1e-2, json_schema_extra=ADVANCED)] = 1e-8
    """Added to the root of the second moment."""
    max_gradient_norm: Annotated[float | None, Field(title="Gradient clipping", gt=0, json_schema_extra=ADVANCED)] = 1.0
    """Gradients whose global norm is larger are scaled down to it; empty switches this off."""
    label_smoothing: Annotated[float, Field(title="Label smoothing", ge=0, lt=1, json_schema_extra=ADVANCED)] = 0.0
    """Share of probability that the loss spreads over all labels."""
    gradient_checkpointing: Annotated[bool, Field(title="Gradient checkpointing", json_schema_extra=ADVANCED)] = False
    """Computes activations twice to need less memory; slower."""
    length_buckets: Annotated[bool, Field(title="Group by length", json_schema_extra=ADVANCED)] = True
    """Rows of similar length share a batch, which saves padding; the order stays random and seeded."""
    early_stopping: Annotated[int | None, Field(title="Early stopping", ge=1, json_schema_extra=ADVANCED)] = None
    """Ends training after this many evaluations without a better `best_metric` (or evaluation loss)."""
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
