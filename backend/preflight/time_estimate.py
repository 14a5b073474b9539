"""Estimates how long the parts of a run will take, and the uncertainty of each estimate."""

import math
from dataclasses import dataclass

import msgspec

from backend.contract.messages import message
from backend.contract.run.cost import Measurement, TimePart
from backend.contract.spec import RunSpec
from backend.contract.time_span import BUSY

STEADY, ROUGH, GUESSED = 0.1, 0.25, 0.5
"""How far, as a part, a step may be off that was timed often, what was timed once, and what another training tells."""
MANY_STEPS = 20
"""From so many timed steps on, the time of others is known well."""
SOONER, SOON = 0.1, 0.5
"""Parts of a measured evaluation that a trained model needs, at least and as is likely, to write its answers.

It ends them; one that is not trained yet may write as long as it is let.
"""
FROM_CACHE = 0.1
"""Part of a compilation that it takes to read a kept program."""


@dataclass(frozen=True)
class Amounts:
    """How much there is to do."""

    spec: RunSpec
    rows: dict[str, int]
    """By split."""
    tokens_per_row: float
    steps_per_epoch: int
    total_steps: int
    tokenising: float
    """Seconds a row, as just measured."""
    tokenised: frozenset[str] = frozenset()
    """Splits whose features were made before."""

    @property
    def tokens_per_step(self) -> float:
        """Of a step on average."""
        return self.rows["train"] * self.tokens_per_row / self.steps_per_epoch

    @property
    def evaluations(self) -> int:
        """How often the validation data is evaluated during training."""
        if "validation" not in self.rows:
            return 0
        return (
            _count_due(_every(self.spec.evaluation.every, self), steps=self.total_steps) + self.spec.evaluation.at_start
        )

    @property
    def evaluated(self) -> int:
        """Rows per evaluation."""
        there, most = self.rows.get("validation", 0), self.spec.evaluation.max_rows
        return (there if most is None else min(there, most)) + min(self.rows["train"], self.spec.evaluation.train_rows)

    @property
    def predicted(self) -> int:
        """Rows predicted at the end."""
        return self.rows.get("validation", 0) + self.rows.get("test", 0)

    @property
    def checkpoints(self) -> tuple[int, int]:
        """The least and most checkpoints to be written: with a best metric, each evaluation may be the best one."""
        kept = _every(self.spec.training.checkpoint_every, self)
        least = _count_due(kept, steps=self.total_steps)
        if self.spec.evaluation.best_metric is None or not self.evaluations:
            return least, least
        return least, max(1, _count_due(kept, _every(self.spec.evaluation.every, self), steps=self.total_steps))


def _every(often: str | int, amounts: Amounts) -> int:
    """The interval in steps, as the loop uses it; 0 for never."""
    if often == "never":
        return 0
    return amounts.steps_per_epoch if often == "epoch" else int(often)


def _count_due(every: int, other: int = 0, *, steps: int) -> int:
    """After how many steps either is due; both are after the last. Computed, because there may be billions."""
    if not (every and other):
        return -(-steps // (every or other)) if every or other else 0
    together = math.lcm(every, other)
    due = steps // every + steps // other - steps // together
    return due if steps % every == 0 or steps % other == 0 else due + 1


def estimate_parts(amounts: Amounts, measured: Measurement) -> list[TimePart]:
    """Every part of a run, based on a measurement of this very training run, or on the speed of a similar one."""
    is_guess = measured.steps == 0
    roughly = GUESSED if is_guess else ROUGH
    training = _part(
        "Training",
        amounts.total_steps * measured.step_seconds,
        message("{total_steps:,} steps", total_steps=amounts.total_steps)
        if is_guess
        else message(
            "{total_steps:,} × {step_seconds}",
            total_steps=amounts.total_steps,
            step_seconds=_format_seconds(measured.step_seconds),
        ),
        STEADY if measured.steps >= MANY_STEPS else roughly,
    )
    parts = [*_start(amounts, measured), _tokenising(amounts), *_compiling(measured), training]
    each, once = measured.evaluation_row_seconds, measured.first_evaluation_seconds
    if amounts.evaluations and each is not None:
        seconds = amounts.evaluations * amounts.evaluated * each
        part = _add_once(_evaluation_part("Evaluations", seconds, measured, roughly), once)
        parts.append(_with_rows(part, amounts.evaluated, amounts.evaluations))
        once = 0.0
    parts += _saving_parts(amounts, measured)
    if amounts.predicted and each is not None:
        part = _add_once(_evaluation_part("Predictions", amounts.predicted * each, measured, roughly), once)
        parts.append(_with_rows(part, amounts.predicted))
    return [_widen_for_load(part, measured) for part in _allow_early_stop(amounts, parts)]


def unknown_parts(amounts: Amounts) -> list[TimePart]:
    """The parts of a run if nothing was measured that tells its time."""
    training = TimePart("Training", None, message("{total_steps:,} steps", total_steps=amounts.total_steps))
    evaluations = [_with_rows(TimePart("Evaluations", None), amounts.evaluated, amounts.evaluations)]
    predictions = [_with_rows(TimePart("Predictions", None), amounts.predicted)]
    return [
        _tokenising(amounts),
        training,
        *(evaluations if amounts.evaluations else ()),
        *(predictions if amounts.predicted else ()),
    ]


def sum_parts(parts: list[TimePart]) -> tuple[float | None, float | None, float | None]:
    """Total seconds, at least and at most; None if training is unknown."""
    if any(part.seconds is None for part in parts):
        return None, None, None
    return (
        sum(part.seconds or 0.0 for part in parts),
        sum(part.least or 0.0 for part in parts),
        sum(part.most or 0.0 for part in parts),
    )


def _part(name: str, seconds: float, words: str, spread: float) -> TimePart:
    return TimePart(name, seconds, words, seconds * (1 - spread), seconds * (1 + spread))


def _start(amounts: Amounts, measured: Measurement) -> list[TimePart]:
    if measured.starting_seconds is None or measured.loading_seconds is None:
        return []
    seconds = measured.starting_seconds + measured.loading_seconds
    return [_part("Startup", seconds, "libraries, data and model", ROUGH)]


def _tokenising(amounts: Amounts) -> TimePart:
    left = sum(count for split, count in amounts.rows.items() if split not in amounts.tokenised)
    if not left:
        return _part("Tokenizing", 0.0, "already done", ROUGH)
    return _with_rows(_part("Tokenizing", left * amounts.tokenising, "", ROUGH), left)


def _compiling(measured: Measurement) -> list[TimePart]:
    if not measured.compile_seconds or not measured.programs:
        return []
    new = max(0, measured.programs - measured.compiled)
    kept = min(measured.compiled, measured.programs) * FROM_CACHE
    of_one = measured.compile_seconds
    words = message(
        "{programs} programs, {programs_2} of them already compiled",
        programs=measured.programs,
        programs_2=measured.programs - new,
    )
    return [
        TimePart("Compiling", (new + kept) * of_one, words, (new / 2 + kept / 2) * of_one, (1.5 * new + kept) * of_one)
    ]


def _evaluation_part(name: str, seconds: float, measured: Measurement, spread: float) -> TimePart:
    if measured.writes:
        return TimePart(name, seconds * SOON, "", seconds * SOONER, seconds * (1 + spread))
    return _part(name, seconds, "", spread)


def _add_once(part: TimePart, seconds: float) -> TimePart:
    """The part with one-time seconds added, independent of the amount of work."""
    whole, least, most = (one or 0.0 for one in (part.seconds, part.least, part.most))
    return msgspec.structs.replace(part, seconds=whole + seconds, least=least + seconds, most=most + seconds)


def _with_rows(part: TimePart, rows: int, times: int = 1) -> TimePart:
    """The part with the rows that it processes, each several times if needed."""
    words = (
        message("{rows:,} rows", rows=rows)
        if times == 1 and part.name != "Evaluations"
        else message("{times:,} × {rows:,} rows", times=times, rows=rows)
    )
    return msgspec.structs.replace(part, rows=rows, times=times, words=words)


def _saving_parts(amounts: Amounts, measured: Measurement) -> list[TimePart]:
    """The checkpoints, and the model at the end."""
    least, most = amounts.checkpoints
    parts = []
    if most and measured.checkpoint_seconds is not None:
        each = measured.checkpoint_seconds
        words = message("{least} × {each}", least=_format_range(least, most), each=_format_seconds(each))
        low, high = least * each * (1 - ROUGH), most * each * (1 + ROUGH)
        parts.append(TimePart("Checkpoints", (least + most) / 2 * each, words, low, high))
    if measured.saving_seconds is not None:
        parts.append(_part("Saving", measured.saving_seconds, "the model", ROUGH))
    return parts


def _widen_for_load(part: TimePart, measured: Measurement) -> TimePart:
    """Widen the range for CPU load from other processes during the measurement."""
    if measured.others < BUSY or part.least is None:
        return part
    return msgspec.structs.replace(part, least=part.least * (1 - measured.others))


def _allow_early_stop(amounts: Amounts, parts: list[TimePart]) -> list[TimePart]:
    """With early stopping, training may end after the first evaluation and as many worse ones as configured."""
    patience = amounts.spec.training.early_stopping
    if patience is None or not amounts.evaluations:
        return parts
    shortest = min(1.0, (patience + 1) / amounts.evaluations)
    return [
        msgspec.structs.replace(part, least=(part.least or 0.0) * shortest)
        if part.name in ("Training", "Evaluations", "Checkpoints")
        else part
        for part in parts
    ]


def _format_range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"
