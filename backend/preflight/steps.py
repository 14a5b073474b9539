"""The steps of a training run as pure functions of its settings: how many, and which rows are in each batch."""

from backend.contract.spec import RunSpec, TrainingSection
from backend.data.features import Features
from backend.data.order import DataOrder


def steps_per_epoch(training: TrainingSection, rows: int) -> int:
    """Optimizer steps of one epoch over `rows` features; with `drop_last` only whole batches, but at least one."""
    if training.drop_last:
        return max(1, rows // training.batch_size)
    return -(-rows // training.batch_size)


def total_steps(training: TrainingSection, steps_per_epoch: int) -> int:
    """Optimizer steps of the whole training run, at least one: by `max_steps`, else `max_records`, else `epochs`."""
    if training.max_steps is not None:
        return training.max_steps
    if training.max_records is not None:
        return max(1, training.max_records // training.batch_size)
    return max(1, round(training.epochs * steps_per_epoch))


def training_order(spec: RunSpec, train: Features) -> DataOrder:
    """Which features are in each step's batch when `spec` is trained."""
    training = spec.training
    return DataOrder(
        train.lengths,
        training.batch_size,
        training.seed,
        train.fingerprint,
        training.length_buckets,
        training.drop_last,
    )
