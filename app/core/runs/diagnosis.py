"""Diagnoses a run in one line: what the user should know at a glance, judging only by its numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isnan
from statistics import median

from app.core import formatting
from app.core.i18n import figure, tr, trn
from app.core.runs.divergence import find_divergence
from app.core.runs.run_state import RunState
from app.core.runs.series import Series, mean
from backend.contract.metrics import deciding_metrics, is_at_chance
from backend.contract.run.events import EvaluationFinished

STILL = 0.01
"""What changes by less, of its own size, has hardly changed."""
STILL_EVALUATIONS = 5
FAR_ABOVE = 0.05
"""An evaluation that is worse than the best by this share, and has been for FAR_EVALUATIONS, is past its best."""
FAR_EVALUATIONS = 3
SLOW = 0.6
"""Steps at less than this share of the usual speed are slow."""
SLOW_STEPS = 150


@dataclass(frozen=True)
class Diagnosis:
    """A sentence; `kind` is info, success, warning or error."""

    text: str
    kind: str = "info"


def diagnose(state: RunState, alive: bool) -> Diagnosis:
    """What the user should know at a glance; for an active run also the remaining time."""
    if not state.step:
        return Diagnosis(tr("Training has not started yet.") if alive else tr("Training never started."))
    found = next(filter(None, (check(state, alive) for check in _CHECKS)))
    left = state.eta_seconds if alive else None
    more = tr("; about {left} left", left=formatting.duration(left)) if left is not None else ""
    return Diagnosis(f"{found.text}{more}.", found.kind)


def doubt(state: RunState) -> str:
    """Why a finished run is still not a success, and what to do; empty if nothing is wrong."""
    found = next(filter(None, (check(state, False) for check in _DOUBTS)), None)
    return f"{found.text}." if found and state.step else ""


# What the numbers show


@dataclass(frozen=True)
class Evaluations:
    """The evaluations of one measure, oldest first; `sign` is 1 if lower is better, −1 if higher is."""

    title: str
    steps: Sequence[float]
    values: Sequence[float]
    sign: int

    @property
    def best(self) -> int:
        """The index of the best one, the earliest if tied."""
        return min(range(len(self.values)), key=lambda place: self.sign * self.values[place])

    @property
    def worse_in_a_row(self) -> int:
        """How many of the last ones were each worse than the previous one."""
        count = 0
        for before, after in zip(self.values[-2::-1], self.values[:0:-1], strict=True):
            if self.sign * (after - before) <= 0:
                break
            count += 1
        return count

    def words(self, place: int) -> str:
        """`0.3321 at step 400`."""
        return tr(
            "{values} at step {steps}",
            values=formatting.number(self.values[place]),
            steps=formatting.group_digits(int(self.steps[place])),
        )


def evaluations_of(state: RunState) -> Evaluations | None:
    """The evaluations of the validation loss, else of the main metric; None if its direction is unknown."""
    name = "loss" if "loss" in state.metric_series else state.main_metric
    series = state.metric_series.get(name)
    if not series:
        return None
    measured = [place for place, value in enumerate(series.ys) if not isnan(value)]
    greater = state.greater_is_better(name)
    if greater is None:
        return None
    return Evaluations(
        tr("Evaluation loss") if name == "loss" else formatting.metric_title(name),
        [series.xs[place] for place in measured],
        [series.ys[place] for place in measured],
        -1 if greater else 1,
    )


BLOCKS = 40
"""Parts into which a training loss is averaged, since single steps jump."""
FEWEST_STEPS = 40
"""A trend of the training loss needs as many."""
SAMPLED = 400
"""The number of points after reduction, so that a long run costs no more than a short one."""
DIVERGED = 1.5
"""An evaluation loss this far above the first training loss is not a success, even if it falls."""
HIGH_RATE = 1e-3
"""From here on a learning rate is as likely too high as too low."""


def loss_blocks(losses: Series | None) -> list[tuple[float, float]]:
    """The curve as (last step, mean) of about BLOCKS parts, the last one complete; empty if it is too short."""
    if losses is None or len(losses) < FEWEST_STEPS:
        return []
    size = max(10, len(losses) // BLOCKS)
    ends = range(len(losses), size - 1, -size)
    stride = max(1, size // SAMPLED)
    return [(losses.xs[end - 1], mean(losses.ys[end - size : end : stride])) for end in reversed(ends)]


def predicts_one_label(metrics: Mapping[str, float | None]) -> bool:
    """Whether a classifier's scores show that it predicts one label for every row.

    Such a model has a Matthews correlation of exactly 0, and with accuracy p a weighted F1 of
    p · 2p / (1 + p); if the rows themselves have only one label, it is 2p / (1 + p).
    """
    share, f1 = metrics.get("accuracy"), metrics.get("f1_weighted")
    if metrics.get("matthews") != 0.0 or share is None or not 0 < share < 1:
        return False
    return f1 is None or isclose(f1, 2 * share * share / (1 + share), abs_tol=1e-6)


def finds_no_entity(metrics: Mapping[str, float | None]) -> bool:
    """Whether tag scores show that only words outside entities are right, as when every tag is O.

    Rows without any entity have no scores per type, because there was nothing to find.
    """
    none = all(metrics.get(name) == 0.0 for name in ("precision", "recall", "f1"))
    there_are_some = any(name.startswith("f1_") for name in metrics)
    return none and there_are_some and 0 < (metrics.get("accuracy") or 0.0) < 1


# What may be said; each returns a diagnosis or None


def _not_a_number(state: RunState, alive: bool) -> Diagnosis | None:
    if state.finished is not None and state.finished.code == "nan_loss":
        at = formatting.group_digits(state.step)
        rates = state.series.get("learning_rate")
        if rates is not None and not any(rates.ys[:-1]):  # a step's loss is of the weights before it
            return Diagnosis(
                tr(
                    "The training loss was NaN at step {at}, before any weight update: check the "
                    "model's weights and the data",
                    at=at,
                ),
                "error",
            )
        return Diagnosis(tr("The training loss became NaN at step {at}: try a lower learning rate", at=at), "error")
    last = next((one for one in reversed(state.evaluations) if one.split == "validation"), None)
    if last is not None and "loss" in last.metrics and last.metrics["loss"] is None:
        return Diagnosis(
            tr("The evaluation loss is NaN at step {step}", step=formatting.group_digits(last.step)), "error"
        )
    return None


def _diverging(state: RunState, alive: bool) -> Diagnosis | None:
    found = find_divergence(state.series.get("loss"))
    if found is None or _is_improving(state, found.window):
        return None
    words = tr(
        "Training is diverging: the loss has risen from {least} to {now}",
        least=formatting.number(found.before),
        now=formatting.number(found.now),
    )
    lower = tr("try a learning rate below {rate}", rate=figure(_highest_rate(state), "g"))
    return Diagnosis(
        tr("{words} since step {since}; {lower}", words=words, since=formatting.group_digits(found.since), lower=lower),
        "error",
    )


def _one_label(state: RunState, alive: bool) -> Diagnosis | None:
    """The scores of a classifier that has only learned the most frequent label."""
    last = _last_of_trained(state)
    if last is None or not predicts_one_label(last.metrics):
        return None
    return Diagnosis(
        tr("The model predicts the same label for every row; {helps}", helps=_helps(state, last)), "warning"
    )


def _no_entity(state: RunState, alive: bool) -> Diagnosis | None:
    """The scores of a tagger that has only learned that most words are outside entities."""
    last = _last_of_trained(state)
    if last is None or not finds_no_entity(last.metrics):
        return None
    return Diagnosis(tr("The model finds no entities; {helps}", helps=_helps(state, last)), "warning")


def _at_chance(state: RunState, alive: bool) -> Diagnosis | None:
    """Scores that a rule without a model reaches too."""
    last = _last_of_trained(state)
    if last is None or state.plan is None or not is_at_chance(last.metrics, state.plan.trivial):
        return None
    if not alive and state.plan.best_metric and not state.at_chance:
        return None  # the model that was saved is better
    trivial = state.plan.trivial
    deciding = deciding_metrics(trivial)
    name = next(name for name in (state.main_metric, *deciding) if name in deciding and name in last.metrics)
    return Diagnosis(
        tr(
            "{title} is {value}, no better than without a model ({trivial}); {helps}",
            title=formatting.metric_title(name),
            value=formatting.number(last.metrics[name]),
            trivial=formatting.number(trivial[name]),
            helps=_helps(state, last),
        ),
        "warning",
    )


def _getting_worse(state: RunState, alive: bool) -> Diagnosis | None:
    found = evaluations_of(state)
    if found is None or found.worse_in_a_row < 2:
        return None
    count = found.worse_in_a_row
    rises = tr(
        "{title} has increased for {counted} evaluations", title=found.title, counted=_evaluation_count_words(count)
    )
    falls = tr(
        "{title} has decreased for {counted} evaluations", title=found.title, counted=_evaluation_count_words(count)
    )
    words = rises if found.sign > 0 else falls
    best = tr("best was step {steps}", steps=formatting.group_digits(int(found.steps[found.best])))
    if _metric_is_best(state):
        values = {"words": words, "best": best, "title": formatting.metric_title(state.main_metric)}
        now = tr("{words} ({best}), but {title} is at its best so far", **values)
        return Diagnosis(now if alive else tr("{words} ({best}), but {title} was best at the end", **values), "info")
    if count >= 3 and _training_loss_falls(state, found.steps[-1 - count]):
        return Diagnosis(
            tr(
                "{words}; {best}. The training loss is still falling, so the model is overfitting",
                words=words,
                best=best,
            ),
            "warning",
        )
    return Diagnosis(f"{words}; {best}", "warning" if count >= 3 else "info")


def _past_its_best(state: RunState, alive: bool) -> Diagnosis | None:
    found = evaluations_of(state)
    if found is None:
        return None
    ago, best, now = len(found.values) - 1 - found.best, found.values[found.best], found.values[-1]
    if ago < FAR_EVALUATIONS or best == 0 or found.sign * (now - best) <= FAR_ABOVE * abs(best):
        return None
    far = abs(now - best) / abs(best)
    above = tr(
        "{title} is {far:.0%} above its best, {words}", title=found.title, far=far, words=found.words(found.best)
    )
    below = tr(
        "{title} is {far:.0%} below its best, {words}", title=found.title, far=far, words=found.words(found.best)
    )
    words = above if found.sign > 0 else below
    if _metric_is_best(state):
        values = {"words": words, "main_metric": formatting.metric_title(state.main_metric)}
        now = tr("{words}, but {main_metric} is at its best so far", **values)
        return Diagnosis(now if alive else tr("{words}, but {main_metric} was best at the end", **values), "info")
    return Diagnosis(
        tr("{words}, {counted} evaluations ago", words=words, counted=_evaluation_count_words(ago)), "warning"
    )


def _standing_still(state: RunState, alive: bool) -> Diagnosis | None:
    found = evaluations_of(state)
    if found is not None and len(found.values) >= STILL_EVALUATIONS:
        last = found.values[-STILL_EVALUATIONS:]
        if max(last) - min(last) < STILL * abs(mean(last)):
            words = tr(
                "{title} has barely changed for {counted} evaluations",
                title=found.title,
                counted=_evaluation_count_words(STILL_EVALUATIONS),
            )
            return Diagnosis(tr("{words}; best was {words_2}", words=words, words_2=found.words(found.best)), "info")
    return None


def _slower(state: RunState, alive: bool) -> Diagnosis | None:
    series, now = state.series.get("tokens_per_second"), state.pace.tokens_per_second
    if not alive or now is None or series is None or len(series) < SLOW_STEPS:
        return None
    usual = median(series.ys[:: max(1, len(series) // SAMPLED)])
    if now >= SLOW * usual:
        return None
    words = tr(
        "Training has slowed to {now:.0%} of its usual {usual} tokens/s", now=now / usual, usual=formatting.rate(usual)
    )
    return Diagnosis(tr("{words}; is another program using this machine?", words=words), "warning")


def _diagnose_evaluations(state: RunState, alive: bool) -> Diagnosis | None:
    found = evaluations_of(state)
    if found is None:
        return None
    last = len(found.values) - 1
    if last == 0:
        return Diagnosis(tr("{title} was {words} (first evaluation)", title=found.title, words=found.words(0)))
    if found.best == last:
        if (first := _first_loss_below(state, found)) is not None:
            return Diagnosis(
                tr(
                    "{title} is {words}, far above the training loss at the first step ({first})",
                    title=found.title,
                    words=found.words(last),
                    first=formatting.number(first),
                ),
                "warning",
            )
        values = {"title": found.title, "words": found.words(last)}
        if alive:
            falls = tr("{title} is falling: {words} is the best so far", **values)
            rises = tr("{title} is rising: {words} is the best so far", **values)
        else:
            falls = tr("{title} fell until the end: {words} is the lowest", **values)
            rises = tr("{title} rose until the end: {words} is the highest", **values)
        return Diagnosis(falls if found.sign > 0 else rises, "success")
    return Diagnosis(
        tr(
            "{title} is {words}; best was {words_2}",
            title=found.title,
            words=found.words(last),
            words_2=found.words(found.best),
        )
    )


def _training(state: RunState, alive: bool) -> Diagnosis | None:
    parts = loss_blocks(state.series.get("loss"))
    if len(parts) < 2:
        return Diagnosis(
            tr("Only {count} so far, too early to see a trend", count=trn("{count} step", "{count} steps", state.step))
        )
    first, now = parts[0][1], parts[-1][1]
    before, after = formatting.number(first), formatting.number(now)
    if abs(now - first) < STILL * abs(first):
        return Diagnosis(
            tr("Training loss has barely changed: from {before} to {after}", before=before, after=after), "warning"
        )
    later = [value for step, value in parts if step > parts[-1][0] / 2]
    if len(parts) >= BLOCKS // 2 and max(later) - min(later) < STILL * abs(mean(later)):
        half = formatting.group_digits(int(parts[-1][0] / 2))
        return Diagnosis(tr("Training loss has barely changed since step {half}: {after}", half=half, after=after))
    if now < first:
        return Diagnosis(tr("Training loss has fallen from {before} to {after}", before=before, after=after))
    return Diagnosis(tr("Training loss has risen from {before} to {after}", before=before, after=after))


def _highest_rate(state: RunState) -> float:
    rates = state.series.get("learning_rate")
    return max(rates.ys) if rates else 0.0


def _last_of_trained(state: RunState) -> EvaluationFinished | None:
    last = next((one for one in reversed(state.evaluations) if one.split == "validation"), None)
    return last if last is not None and last.step else None


def _helps(state: RunState, last: EvaluationFinished) -> str:
    rate, losses, now = _highest_rate(state), state.series.get("loss"), last.metrics.get("loss")
    if losses is not None and now is not None and now > DIVERGED * losses.ys[0]:
        return tr("try a learning rate below {rate}", rate=figure(rate, "g"))
    if rate < HIGH_RATE:
        return tr("try a higher learning rate or more epochs")
    return tr("try a learning rate other than {rate}", rate=figure(rate, "g"))


def _is_improving(state: RunState, since: int) -> bool:
    """Whether an evaluation since this step shows that the model still learns, however the training loss jumps."""
    found, last = evaluations_of(state), _last_of_trained(state)
    if last is None or last.step < since:
        return False
    if _metric_is_best(state) and not (state.plan and is_at_chance(last.metrics, state.plan.trivial)):
        return True
    if found is None or "loss" not in state.metric_series or found.steps[-1] != last.step:
        return False
    return found.values[-1] <= min((1 + FAR_ABOVE) * found.values[found.best], state.series["loss"].ys[0])


def _metric_is_best(state: RunState) -> bool:
    """Whether the deciding metric, if it is not the loss, was best at the last evaluation."""
    name = state.main_metric
    best = None if name in ("", "loss") else state.best_of(name)
    return best is not None and bool(state.evaluations) and best[0] == state.evaluations[-1].step


def _training_loss_falls(state: RunState, since: float) -> bool:
    parts = loss_blocks(state.series.get("loss"))
    before = [value for step, value in parts if step <= since]
    after = [value for step, value in parts if step > since]
    return bool(before and after) and after[-1] < (1 - STILL) * before[-1]


def _first_loss_below(state: RunState, found: Evaluations) -> float | None:
    """The first training loss from which all are far below the last evaluation; a memorised set is different."""
    series = state.series.get("loss")
    if series is None or "loss" not in state.metric_series or series.ys[-1] < series.ys[0]:
        return None
    return series.ys[0] if found.values[-1] > DIVERGED * series.ys[0] else None


_NUMBERS = {
    2: tr("two"), 3: tr("three"), 4: tr("four"), 5: tr("five"), 6: tr("six"), 7: tr("seven"), 8: tr("eight"),
    9: tr("nine"), 10: tr("ten"),
}  # fmt: skip


def _evaluation_count_words(number: int) -> str:
    return _NUMBERS.get(number, str(number))


_Check = Callable[[RunState, bool], Diagnosis | None]
_DOUBTS: tuple[_Check, ...] = (_not_a_number, _diverging, _one_label, _no_entity, _at_chance)
_CHECKS: tuple[_Check, ...] = (
    *_DOUBTS,
    _getting_worse,
    _past_its_best,
    _slower,
    _standing_still,
    _diagnose_evaluations,
    _training,
)
"""The most urgent first."""
