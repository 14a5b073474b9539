"""Owns the one line that says in words how a run goes, judged by its numbers alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from app.core import wording
from app.core.run_state import RunState
from app.core.series import Series

BLOCKS = 40
"""Parts into which a training loss is averaged, since single steps jump."""
FEWEST_STEPS = 40
"""A trend of the training loss needs as many."""
DIVERGED = 1.5
"""A training loss that stands this far above its lowest part, and has given back a quarter of what it had gained."""
STILL = 0.01
"""What changes by less, of its own size, has hardly changed."""
STILL_EVALUATIONS = 5
FAR_ABOVE = 0.05
"""An evaluation that is worse than the best by this share, and has been for FAR_EVALUATIONS, is past its best."""
FAR_EVALUATIONS = 3
SLOW = 0.6
"""Steps at less than this share of the usual speed are slow."""
SLOW_STEPS = 150
SAMPLED = 400
"""Points that stand for many, so that a long run costs no more than a short one."""
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Verdict:
    """A sentence; `kind` is info, success, warning or error."""

    text: str
    kind: str = "info"


@dataclass(frozen=True)
class Evaluations:
    """The evaluations of one measure, oldest first; `sign` is 1 where less is better, −1 where more is."""

    title: str
    steps: Sequence[float]
    values: Sequence[float]
    sign: int

    @property
    def best(self) -> int:
        """The place of the best one, the earliest of equals."""
        return min(range(len(self.values)), key=lambda place: self.sign * self.values[place])

    @property
    def worse_in_a_row(self) -> int:
        """How many of the last ones were each worse than the one before."""
        count = 0
        for before, after in zip(self.values[-2::-1], self.values[:0:-1], strict=True):
            if self.sign * (after - before) <= 0:
                break
            count += 1
        return count

    def words(self, place: int) -> str:
        """`0.3321 at step 400`."""
        return f"{wording.number(self.values[place])} at step {wording.grouped(int(self.steps[place]))}"


def verdict(state: RunState, alive: bool) -> Verdict:
    """What a person should know at a glance; of a living run also how long it still takes."""
    if not state.step:
        return Verdict("Training has not begun yet." if alive else "Training never began.")
    found = next(filter(None, (look(state, alive) for look in _LOOKS)))
    left = state.eta_seconds if alive else None
    more = f"; about {wording.duration(left)} left" if left is not None else ""
    return Verdict(f"{found.text}{more}.", found.kind)


def evaluations_of(state: RunState) -> Evaluations | None:
    """Those of the validation loss, or of the main metric where no loss is measured."""
    name = "loss" if "loss" in state.metric_series else state.main_metric
    series = state.metric_series.get(name)
    if not series:
        return None
    less = name == "loss" or (state.plan is not None and name == state.plan.best_metric and not _more_is_better(state))
    return Evaluations(
        f"Evaluation {wording.metric_title(name).lower()}" if name == "loss" else wording.metric_title(name),
        series.xs,
        series.ys,
        1 if less else -1,
    )


def _more_is_better(state: RunState) -> bool:
    return state.plan is None or state.plan.greater_is_better


# What may be said, most urgent first; each gives a verdict or nothing


def _not_a_number(state: RunState, alive: bool) -> Verdict | None:
    if state.finished is not None and state.finished.code == "nan_loss":
        at = wording.grouped(state.finished.step or state.step)
        return Verdict(f"The training loss became NaN after step {at}: a lower learning rate often helps", "error")
    last = next((one for one in reversed(state.evaluations) if one.split == "validation"), None)
    if last is not None and "loss" in last.metrics and last.metrics["loss"] is None:
        return Verdict(f"The evaluation loss is NaN at step {wording.grouped(last.step)}", "error")
    return None


def _diverging(state: RunState, alive: bool) -> Verdict | None:
    parts = _parts(state.series.get("loss"))
    if len(parts) < 2:
        return None
    values = [value for _, value in parts]
    now, least = values[-1], min(values)
    if now <= DIVERGED * least or now - least <= 0.25 * (values[0] - least):
        return None
    since = wording.grouped(int(parts[values.index(least)][0]))
    words = f"Training diverges: its loss has risen from {wording.number(least)} to {wording.number(now)}"
    return Verdict(f"{words} since step {since}; a lower learning rate often helps", "error")


def _getting_worse(state: RunState, alive: bool) -> Verdict | None:
    found = evaluations_of(state)
    if found is None or found.worse_in_a_row < 2:
        return None
    count = found.worse_in_a_row
    rises = f"{found.title} has risen for {_counted(count)} evaluations"
    falls = f"{found.title} has fallen for {_counted(count)} evaluations"
    words = rises if found.sign > 0 else falls
    best = f"best was step {wording.grouped(int(found.steps[found.best]))}"
    if _metric_is_best(state):
        title = wording.metric_title(state.main_metric)
        return Verdict(f"{words} ({best}), but {title} is the best yet", "info")
    if count >= 3 and _training_loss_falls(state, found.steps[-1 - count]):
        return Verdict(f"{words} while training loss falls, which is overfitting; {best}", "warning")
    return Verdict(f"{words}; {best}", "warning" if count >= 3 else "info")


def _past_its_best(state: RunState, alive: bool) -> Verdict | None:
    found = evaluations_of(state)
    if found is None:
        return None
    ago, best, now = len(found.values) - 1 - found.best, found.values[found.best], found.values[-1]
    if ago < FAR_EVALUATIONS or best == 0 or found.sign * (now - best) <= FAR_ABOVE * abs(best):
        return None
    far = abs(now - best) / abs(best)
    above = f"{found.title} is {far:.0%} above its best, {found.words(found.best)}"
    below = f"{found.title} is {far:.0%} below its best, {found.words(found.best)}"
    words = above if found.sign > 0 else below
    if _metric_is_best(state):
        return Verdict(f"{words}, but {wording.metric_title(state.main_metric)} is the best yet", "info")
    return Verdict(f"{words}, {_counted(ago)} evaluations ago", "warning")


def _standing_still(state: RunState, alive: bool) -> Verdict | None:
    found = evaluations_of(state)
    if found is not None and len(found.values) >= STILL_EVALUATIONS:
        last = found.values[-STILL_EVALUATIONS:]
        if max(last) - min(last) < STILL * abs(fmean(last)):
            words = f"{found.title} has hardly changed for {_counted(STILL_EVALUATIONS)} evaluations"
            return Verdict(f"{words}; best was {found.words(found.best)}", "info")
    return None


def _slower(state: RunState, alive: bool) -> Verdict | None:
    series, now = state.series.get("tokens_per_second"), state.pace.tokens_per_second
    if not alive or now is None or series is None or len(series) < SLOW_STEPS:
        return None
    usual = median(series.ys[:: max(1, len(series) // SAMPLED)])
    if now >= SLOW * usual:
        return None
    words = f"Speed has dropped to {now / usual:.0%} of the usual {wording.rate(usual)} tokens / s"
    return Verdict(f"{words}; does something else use the machine?", "warning")


def _evaluated(state: RunState, alive: bool) -> Verdict | None:
    found = evaluations_of(state)
    if found is None:
        return None
    last = len(found.values) - 1
    if last == 0:
        return Verdict(f"{found.title} was {found.words(0)}, the first evaluation")
    if found.best == last:
        falls = f"{found.title} falls: {found.words(last)} is the best yet"
        rises = f"{found.title} rises: {found.words(last)} is the best yet"
        return Verdict(falls if found.sign > 0 else rises, "success")
    return Verdict(f"{found.title} is {found.words(last)}; best was {found.words(found.best)}")


def _training(state: RunState, alive: bool) -> Verdict | None:
    parts = _parts(state.series.get("loss"))
    if len(parts) < 2:
        return Verdict(f"{wording.count(state.step, 'step')} made, too few for a trend")
    first, now = parts[0][1], parts[-1][1]
    before, after = wording.number(first), wording.number(now)
    if abs(now - first) < STILL * abs(first):
        return Verdict(f"Training loss has hardly changed: from {before} to {after}", "warning")
    later = [value for step, value in parts if step > parts[-1][0] / 2]
    if len(parts) >= BLOCKS // 2 and max(later) - min(later) < STILL * abs(fmean(later)):
        half = wording.grouped(int(parts[-1][0] / 2))
        return Verdict(f"Training loss has hardly changed since step {half}: {after}")
    if now < first:
        return Verdict(f"Training loss has fallen from {before} to {after}")
    return Verdict(f"Training loss has risen from {before} to {after}")


_LOOKS: tuple[Callable[[RunState, bool], Verdict | None], ...] = (
    _not_a_number,
    _diverging,
    _getting_worse,
    _past_its_best,
    _slower,
    _standing_still,
    _evaluated,
    _training,
)


def _metric_is_best(state: RunState) -> bool:
    """Whether the metric that decides, where it is not the loss, was never better than at the last evaluation."""
    name, best = state.main_metric, state.best
    return name not in ("", "loss") and bool(state.evaluations) and best is not None and best is state.evaluations[-1]


def _training_loss_falls(state: RunState, since: float) -> bool:
    parts = _parts(state.series.get("loss"))
    before = [value for step, value in parts if step <= since]
    after = [value for step, value in parts if step > since]
    return bool(before and after) and after[-1] < (1 - STILL) * before[-1]


def _parts(series: Series | None) -> list[tuple[float, float]]:
    """The curve as (last step, mean) of about BLOCKS parts, the last of them whole; empty where it is too short."""
    if series is None or len(series) < FEWEST_STEPS:
        return []
    size = max(10, len(series) // BLOCKS)
    ends = range(len(series), size - 1, -size)
    stride = max(1, size // SAMPLED)
    return [(series.xs[end - 1], fmean(series.ys[end - size : end : stride])) for end in reversed(ends)]


def _counted(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)
