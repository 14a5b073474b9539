"""Owns the `evaluation` section: when and on what a run is measured."""

from typing import Annotated

from pydantic import Field

from backend.contract.spec.section import Section
from backend.contract.spec.training import ADVANCED, Often


class EvaluationSection(Section):
    """When and how a run is measured."""

    every: Annotated[Often, Field(title="Evaluate every")] = "epoch"
    """`epoch`, `never`, or a number of steps."""
    at_start: Annotated[bool, Field(title="Evaluate before training", json_schema_extra=ADVANCED)] = False
    """Measures the untrained model too, as step 0."""
    best_metric: Annotated[str | None, Field(title="Best checkpoint by")] = None
    """Name of the metric whose best checkpoint is kept and used for predictions; empty keeps the last weights."""
    metrics: Annotated[list[str], Field(title="Further metrics", json_schema_extra=ADVANCED)] = []
    """Names of metrics that installed packages add, measured beside the task's own."""
    batch_size: Annotated[int | None, Field(title="Evaluation batch size", ge=1, json_schema_extra=ADVANCED)] = None
    """Rows per forward pass; empty takes a size that fits."""
    max_rows: Annotated[int | None, Field(title="Most evaluation rows", ge=1, json_schema_extra=ADVANCED)] = None
    """Evaluations during training use only this many rows; the final predictions use all."""
    train_rows: Annotated[int, Field(title="Training rows evaluated", ge=0, json_schema_extra=ADVANCED)] = 0
    """Also measures this many training rows, to see over-fitting."""
