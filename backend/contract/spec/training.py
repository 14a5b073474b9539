"""The `training` section: steps, batch, optimizer, schedule, checkpoints."""

from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, ValidationInfo, field_validator
from pydantic.config import JsonDict

from backend.contract.messages import message
from backend.contract.run.group import LARGEST_SEED, MOST_SEEDS
from backend.contract.spec.auto import AUTO, OrAuto
from backend.contract.spec.section import Section

Often = Literal["epoch", "never"] | PositiveInt
_Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
_SeedCount = Annotated[int, Field(ge=2, le=MOST_SEEDS)]
ADVANCED: JsonDict = {"advanced": True}
HIDDEN: JsonDict = {"hidden": True}
ADAMW = ("adamw", "adamw_8bit", "paged_adamw", "paged_adamw_8bit")
"""Optimizers that are AdamW, however they keep its state."""
ADAM = (*ADAMW, "adam")
"""Optimizers with two moments of each weight."""
STOCHASTIC = "bfloat16_stochastic"
_ADAM: JsonDict = {**ADVANCED, "when": {"optimizer": [*ADAM]}}
_RESTARTS: JsonDict = {**ADVANCED, "when": {"schedule": ["cosine_with_restarts"]}}
_POLYNOMIAL: JsonDict = {**ADVANCED, "when": {"schedule": ["polynomial"]}}
_INVERSE: JsonDict = {**ADVANCED, "when": {"schedule": ["inverse_sqrt"]}}
_ONE_CYCLE: JsonDict = {**ADVANCED, "when": {"schedule": ["one_cycle"]}}
DECODING: JsonDict = {"advanced": True, "decoding": True}
LATER: JsonDict = {"later": True}
"""Of a setting of a task that runs have been trained without: at its default they keep the order of their rows, which follows from the settings."""
Schedule = Literal[
    "linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup", "one_cycle",
    "inverse_sqrt",
]  # fmt: skip


class TrainingSection(Section):
    """How the weights are trained."""

    epochs: Annotated[float, Field(title="Epochs", gt=0, le=10_000), OrAuto()] = AUTO
    """Number of passes over the training data. `auto` chooses 1 to 12, or up to 20 from scratch: the fewer rows, the
    more. Too many overfit."""
    max_steps: Annotated[int | None, Field(title="Max steps", ge=1, le=10**12, json_schema_extra=ADVANCED)] = None
    """Stop after this many optimizer steps, regardless of `epochs`."""
    batch_size: Annotated[int, Field(title="Batch size", ge=1, le=1_000_000), OrAuto()] = AUTO
    """Rows per optimizer step, across all devices. They are split into as many micro-batches as memory requires.
    `auto` chooses 4 to 32: the fewer rows, the smaller. Usually 8 to 64."""
    learning_rate: Annotated[float, Field(title="Learning rate", gt=0, le=10), OrAuto()] = AUTO
    """The peak learning rate. `auto` chooses it by the size of the model, the adapter and the optimizer. With AdamW, usually 1e-5 to 5e-5 for models of 100 million parameters or more, up to
    5e-4 for smaller models and from scratch, and 1e-4 to 1e-3 for an adapter. Lion needs 3 to 10 times less, SGD 1e-3
    to 1e-1."""
    max_records: Annotated[int | None, Field(title="Max records", ge=1, le=10**12, json_schema_extra=ADVANCED)] = None
    """Stop after as many full batches as fit into this many rows, regardless of `epochs`."""
    drop_last: Annotated[bool, Field(title="Drop last batch", json_schema_extra=ADVANCED)] = False
    """Drop the rows that do not fill a batch, different ones in each epoch. Otherwise they form a smaller batch."""
    optimizer: Annotated[str, Field(title="Optimizer", json_schema_extra={"kind": "optimizer"})] = "adamw"
    """How gradients update the weights."""
    optimizer_options: Annotated[dict[str, Any], Field(title="Optimizer options", json_schema_extra=ADVANCED)] = {}
    """Settings specific to this optimizer, for example `{momentum: 0.9}` for `sgd`."""
    layer_decay: Annotated[
        float | None, Field(title="Layer-wise learning rate decay", gt=0, le=1, json_schema_extra=ADVANCED)
    ] = None
    """Each layer's learning rate is that of the layer above times this factor; the head trains at the full rate.
    Empty uses the same rate for all layers."""
    schedule: Annotated[Schedule, Field(title="Schedule")] = "linear"
    """How the learning rate changes after the warmup: `linear` and `cosine` fall to zero, `constant` (or
    `constant_with_warmup`) does not change, `one_cycle` rises and falls linearly."""
    warmup: Annotated[float, Field(title="Warmup", ge=0), OrAuto()] = AUTO
    """How long the learning rate rises from zero: below 1, a fraction of all steps; 1 or more, a number of steps.
    Usually 0.03 to 0.1; `auto` chooses 0.1, and none for a very short run. It keeps the first steps from damaging the
    model."""
    schedule_steps: Annotated[int | None, Field(title="Schedule steps", ge=1, json_schema_extra=ADVANCED)] = None
    """Number of steps that the schedule spans. Empty uses the run's number of steps."""
    schedule_cycles: Annotated[int, Field(title="Cosine cycles", ge=1, le=1000, json_schema_extra=_RESTARTS)] = 1
    """How many times `cosine_with_restarts` falls to zero."""
    schedule_power: Annotated[float, Field(title="Polynomial power", gt=0, le=10, json_schema_extra=_POLYNOMIAL)] = 1.0
    """The exponent of `polynomial`; 1 is linear."""
    schedule_end: Annotated[float, Field(title="Final learning rate", ge=0, json_schema_extra=_POLYNOMIAL)] = 1e-7
    """The final learning rate of `polynomial`."""
    schedule_timescale: Annotated[int | None, Field(title="Timescale", ge=1, json_schema_extra=_INVERSE)] = None
    """Steps after which `inverse_sqrt` starts to fall. Empty uses the warmup steps, or 10,000 without a warmup."""
    schedule_divisor: Annotated[float, Field(title="One-cycle divisor", ge=1, json_schema_extra=_ONE_CYCLE)] = 1e7
    """`one_cycle` starts at the peak learning rate divided by this."""
    schedule_final_divisor: Annotated[
        float, Field(title="One-cycle final divisor", ge=1, json_schema_extra=_ONE_CYCLE)
    ] = 1e10
    """`one_cycle` ends at its first learning rate divided by this."""
    weight_decay: Annotated[float, Field(title="Weight decay", ge=0, le=1)] = 0.01
    """How strongly weights are pulled toward zero (decoupled from the gradient, except with `adam` and `sgd`). Biases
    and normalization layers are excluded. Usually 0 to 0.1."""
    adam_beta1: Annotated[float, Field(title="Adam beta 1", ge=0, lt=1, json_schema_extra=_ADAM)] = 0.9
    """Decay rate of the first moment (`adam`, and `adamw` of any kind)."""
    adam_beta2: Annotated[float, Field(title="Adam beta 2", ge=0, lt=1, json_schema_extra=_ADAM)] = 0.999
    """Decay rate of the second moment (`adam`, and `adamw` of any kind)."""
    adam_epsilon: Annotated[float, Field(title="Adam epsilon", gt=0, le=1e-2, json_schema_extra=_ADAM)] = 1e-8
    """Added to the square root of the second moment (`adam`, and `adamw` of any kind)."""
    max_gradient_norm: Annotated[float | None, Field(title="Gradient clipping", gt=0, json_schema_extra=ADVANCED)] = 1.0
    """Gradients with a larger global norm are scaled down to it. Empty turns clipping off."""
    label_smoothing: Annotated[float, Field(title="Label smoothing", ge=0, lt=1, json_schema_extra=ADVANCED)] = 0.0
    """The fraction of probability that the loss spreads over all labels."""
    gradient_checkpointing: Annotated[
        Literal["auto"] | bool, Field(title="Gradient checkpointing", json_schema_extra=ADVANCED)
    ] = AUTO
    """Recompute activations in the backward pass: less memory, but each step takes about a third longer. `auto` turns it
    on only if the run does not fit in memory without it."""
    master_weights: Annotated[
        Literal["float32", "bfloat16_stochastic"], Field(title="Master weights", json_schema_extra=ADVANCED)
    ] = "float32"
    """Number format in which the weights that are trained are kept in memory. `bfloat16_stochastic` halves the memory of
    weights and gradients: each update is computed in float32 and rounded up or down at random, so that small ones are not
    lost. It is for full fine-tuning of large models in bfloat16 on one device."""
    length_buckets: Annotated[bool, Field(title="Group by length", json_schema_extra=ADVANCED)] = False
    """Batch rows of similar length: less padding and faster steps, but such batches often have rows of one kind,
    which can cost accuracy. Otherwise rows are in random order."""
    early_stopping: Annotated[int | None, Field(title="Early stopping", ge=1, json_schema_extra=ADVANCED)] = None
    """Stop after this many evaluations without a better `best_metric` (or evaluation loss). Usually 2 to 5."""
    early_stopping_threshold: Annotated[
        float, Field(title="Early stopping threshold", ge=0, json_schema_extra=ADVANCED)
    ] = 0.0
    """An evaluation only counts as better if it improves by more than this."""
    checkpoint_every: Annotated[Often, Field(title="Checkpoint every")] = "epoch"
    """`epoch`, `never`, or a number of steps."""
    keep_checkpoints: Annotated[int, Field(title="Checkpoints to keep", ge=1, json_schema_extra=ADVANCED)] = 2
    """Older checkpoints are deleted. The best one is kept as well."""
    seed: Annotated[int, Field(title="Seed", ge=0, lt=2**32)] = 42
    """Random seed for new weights, data order and dropout. The same spec and seed give the same run."""
    seeds: Annotated[list[_Seed] | _SeedCount | None, Field(title="Seeds")] = None
    """Train a group of runs that differ in nothing but the seed, to see how much of a result is luck: a list such as
    `[1, 2, 3]`, or how many runs, whose seeds count up from `seed`. Empty trains one run."""

    @field_validator("seeds", mode="before")
    @classmethod
    def _seeds_differ(cls, seeds: Any, info: ValidationInfo) -> Any:
        if type(seeds) is int and info.data.get("seed", 0) + seeds - 1 > LARGEST_SEED:
            raise ValueError(
                message("so many seeds from training.seed on would exceed the largest, {largest}", largest=LARGEST_SEED)
            )
        if (seeds if type(seeds) is int else len(seeds) if isinstance(seeds, list) else 2) < 2:
            raise ValueError(message("a group needs at least two seeds; for one run set training.seed"))
        if not isinstance(seeds, list):
            return seeds
        if len(seeds) > MOST_SEEDS:
            raise ValueError(message("a group has at most {most} seeds", most=MOST_SEEDS))
        twice = next((seed for place, seed in enumerate(seeds) if seed in seeds[:place]), None)
        if twice is not None:
            raise ValueError(message("the seed {seed} occurs in it twice", seed=repr(twice)))
        return seeds

    @property
    def group_seeds(self) -> tuple[int, ...]:
        """The seeds of the group that the spec asks for; empty if it asks for one run."""
        if isinstance(self.seeds, int):
            return tuple(range(self.seed, self.seed + self.seeds))
        return tuple(self.seeds or ())

    @field_validator("schedule_end")
    @classmethod
    def _ends_below_its_peak(cls, end: float, info: ValidationInfo) -> float:
        peak = info.data.get("learning_rate", AUTO)
        if info.data.get("schedule") == "polynomial" and peak != AUTO and end >= peak:
            raise ValueError(message("the last learning rate must be below training.learning_rate"))
        return end
