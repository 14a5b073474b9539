"""The `evaluation` section: when and on what a run is evaluated."""

from typing import Annotated

from pydantic import Field

from backend.contract.spec.section import Section
from backend.contract.spec.training import ADVANCED, Often


class EvaluationSection(Section):
    """When and how a run is evaluated."""

    every: Annotated[Often, Field(title="Evaluate every")] = "epoch"
    """`epoch`, `never`, or a number of steps."""
    at_start: Annotated[bool, Field(title="Evaluate before training", json_schema_extra=ADVANCED)] = False
    """Also evaluate before the first step, as step 0."""
    best_metric: Annotated[str | None, Field(title="Best checkpoint by")] = None
    """The metric that selects the best checkpoint, which is kept and used for predictions. Empty keeps the last
    weights."""
    metrics: Annotated[list[str], Field(title="Additional metrics", json_schema_extra=ADVANCED)] = []
    """Metrics from installed packages to compute in addition to the task's own."""
    group_column: Annotated[str, Field(title="Rows that belong together", json_schema_extra=ADVANCED)] = "auto"
    """The column whose rows with the same value depend on each other, such as sentences of one document; metrics are then less
    sure. `auto` finds one by its name or takes the context of questions, `none` takes every row for itself."""
    batch_size: Annotated[int | None, Field(title="Evaluation batch size", ge=1, json_schema_extra=ADVANCED)] = None
    """Rows per forward pass. Empty chooses a size that fits."""
    max_rows: Annotated[int | None, Field(title="Max evaluation rows", ge=1, json_schema_extra=ADVANCED)] = None
    """Use at most this many rows for evaluations during training. The final predictions use all."""
    train_rows: Annotated[int, Field(title="Training rows to evaluate", ge=0, json_schema_extra=ADVANCED)] = 0
    """Also evaluate this many training rows, to detect overfitting."""
