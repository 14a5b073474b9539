"""Owns the learning rate of every step, as a pure function of the settings."""

import math

from backend.contract.spec import TrainingSection


def total_steps(training: TrainingSection, steps_per_epoch: int) -> int:
    """Optimizer steps of the whole training, at least one."""
    return training.max_steps or max(1, round(training.epochs * steps_per_epoch))


def warmup_steps(training: TrainingSection, total_steps: int) -> int:
    """`warmup` below 1 is a fraction of all steps (rounded up), from 1 on it is a number of steps."""
    return math.ceil(training.warmup * total_steps) if training.warmup < 1 else int(training.warmup)


def learning_rate(step: int, total_steps: int, training: TrainingSection) -> float:
    """The learning rate of optimizer step `step`, counted from 1.

    As in transformers' schedules, where step k uses the multiplier of k - 1: the first step with warm-up has rate 0,
    and the decay would reach 0 exactly at `total_steps`.
    """
    done, warmup = step - 1, warmup_steps(training, total_steps)
    if done < warmup:
        return training.learning_rate * done / warmup
    if training.schedule == "constant":
        return training.learning_rate
    progress = min(1.0, (done - warmup) / max(1, total_steps - warmup))
    if training.schedule == "cosine":
        return training.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))
    return training.learning_rate * (1.0 - progress)
