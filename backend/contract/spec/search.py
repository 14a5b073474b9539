"""The `search` section: which settings are tried, by what they are compared, and how much that may cost."""

from typing import Annotated, Any, Literal

from pydantic import Field

from backend.contract.spec.section import Section
from backend.contract.spec.training import ADVANCED

SEARCH = "search"
"""The section's key in a spec. A run's own spec never has it."""


class HalvingSection(Section):
    """How trials are compared before they end, so that only the promising ones are trained through."""

    factor: Annotated[int, Field(title="Reduction factor", ge=2, le=10)] = 3
    """Of the trials that reach a rung, one in this many continues; the others stay paused with a checkpoint, and continue
    from it if they are among the best later on."""
    rungs: Annotated[int, Field(title="Rungs", ge=1, le=8)] = 2
    """How often trials are compared before their end. With a factor of 3, 2 rungs are at 1/9 and 1/3 of a trial's steps,
    each at the next evaluation."""


class ConfirmSection(Section):
    """How the best trials are trained again, to tell skill from luck."""

    best: Annotated[int, Field(title="Trials to confirm", ge=1, le=100)] = 2
    """How many of the best trials are trained again."""
    seeds: Annotated[int, Field(title="New seeds", ge=2, le=100)] = 3
    """With how many other seeds each of them is trained."""
    baseline: Annotated[bool, Field(title="Compare with your own settings")] = False
    """Train the settings that the spec has without its search with the same new seeds, to tell whether the best trial is
    really better."""


class SearchSection(Section):
    """Which settings are tried, by what they are compared, and how much that may cost."""

    space: Annotated[dict[str, Any], Field(title="Space", min_length=1)]
    """Dotted settings and the values to try: a list of choices, or a range as `{uniform: [low, high]}`,
    `{log: [low, high]}`, or for whole numbers `{int: [low, high]}` and `{log_int: [low, high]}`."""
    metric: Annotated[str | None, Field(title="Metric")] = None
    """The validation metric by which trials are compared. Empty uses `evaluation.best_metric`."""
    trials: Annotated[int | None, Field(title="Trials", ge=1, le=10_000)] = None
    """How many combinations of settings are tried. Only `grid` can do without: it then tries all."""
    sampler: Annotated[Literal["grid", "random", "tpe", "gp"], Field(title="Sampler")] = "tpe"
    """What proposes the next trial: every combination in order, chance, Optuna's tree-structured Parzen estimator, or its
    Gaussian process."""
    seed: Annotated[int, Field(title="Search seed", ge=0, lt=2**32, json_schema_extra=ADVANCED)] = 0
    """Random seed of the sampler. `training.seed` stays the same for all trials."""
    parallel: Annotated[int, Field(title="Trials at a time", ge=1, le=64, json_schema_extra=ADVANCED)] = 1
    """How many trials train at the same time. They wait for each other's devices."""
    machine: Annotated[str | None, Field(title="Machine", max_length=40, json_schema_extra=ADVANCED)] = None
    """The other machine on which the trials train (see `burnish machines`); the search itself stays here and follows them.
    Empty trains them here."""
    keep: Annotated[int | None, Field(title="Models to keep", ge=1, json_schema_extra=ADVANCED)] = None
    """Of how many of the best trials the weights and checkpoints are kept, so that a search does not fill the disk. All
    trials keep their events and predictions; one that continues later starts again. Empty keeps everything."""
    halving: Annotated[HalvingSection | None, Field(title="Successive halving")] = None
    """Compare trials before they end and pause the worse ones. Empty trains every trial through."""
    confirm: Annotated[ConfirmSection | None, Field(title="Confirmation")] = None
    """Train the best trials again with other seeds at the end."""
