"""The learning rate of every step, as a pure function of the training settings."""

import math
from collections.abc import Callable

from backend.contract.spec import TrainingSection


def warmup_steps(training: TrainingSection, total_steps: int) -> int:
    """`warmup` below 1 is a fraction of all steps (rounded up), from 1 on a number of steps."""
    return math.ceil(training.warmup * total_steps) if training.warmup < 1 else int(training.warmup)


def learning_rate(step: int, total_steps: int, training: TrainingSection) -> float:
    """The learning rate of optimizer step `step`, counted from 1.

    As in transformers' schedules, where step k uses the multiplier of k - 1: with warm-up the first step has rate 0,
    and the decay would reach 0 exactly at `total_steps`.
    """
    done, total = step - 1, training.schedule_steps or total_steps
    if training.schedule == "one_cycle":
        return _one_cycle(done, total, training)
    warmup = warmup_steps(training, total)
    if done < warmup:
        return training.learning_rate * done / warmup
    return _AFTER_WARMUP[training.schedule](done, warmup, total, training)


# Each takes the steps done, those of the warm-up and all of them.


def _constant(done: int, warmup: int, total: int, training: TrainingSection) -> float:
    return training.learning_rate


def _linear(done: int, warmup: int, total: int, training: TrainingSection) -> float:
    return training.learning_rate * (1.0 - _progress(done, warmup, total))


def _cosine(done: int, warmup: int, total: int, training: TrainingSection) -> float:
    return training.learning_rate * 0.5 * (1.0 + math.cos(math.pi * _progress(done, warmup, total)))


def _cosine_with_restarts(done: int, warmup: int, total: int, training: TrainingSection) -> float:
    progress = _progress(done, warmup, total)
    if progress >= 1.0:
        return 0.0
    place = training.schedule_cycles * progress % 1.0
    return training.learning_rate * 0.5 * (1.0 + math.cos(math.pi * place))


def _polynomial(done: int, warmup: int, total: int, training: TrainingSection) -> float:
    end = min(training.schedule_end, training.learning_rate)
    left = 1.0 - _progress(done, warmup, total)
    return end + (training.learning_rate - end) * left**training.schedule_power


def _inverse_sqrt(done: int, warmup: int, total: int, training: TrainingSection) -> float:
    scale = training.schedule_timescale or warmup or 10_000
    return training.learning_rate * math.sqrt(scale / (done - warmup + scale))


def _one_cycle(done: int, total: int, training: TrainingSection) -> float:
    """Smith and Topin 2018 with linear phases, as in torch's OneCycleLR: the peak may fall between two steps."""
    highest = training.learning_rate
    first = highest / training.schedule_divisor
    last = first / training.schedule_final_divisor
    peak = (training.warmup if training.warmup < 1 else training.warmup / total) * total - 1
    if done <= peak and peak > 0:
        return first + (highest - first) * done / peak
    part = min(1.0, (done - peak) / max(1.0, total - 1 - peak))
    return highest + (last - highest) * part


def _progress(done: int, warmup: int, total: int) -> float:
    return min(1.0, (done - warmup) / max(1, total - warmup))


_AFTER_WARMUP: dict[str, Callable[[int, int, int, TrainingSection], float]] = {
    "linear": _linear,
    "cosine": _cosine,
    "cosine_with_restarts": _cosine_with_restarts,
    "polynomial": _polynomial,
    "constant": _constant,
    "constant_with_warmup": _constant,
    "inverse_sqrt": _inverse_sqrt,
}
