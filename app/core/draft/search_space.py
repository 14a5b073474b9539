"""The search in a draft: which settings are tried, over which values, in words and as a first suggestion."""

import math
from collections.abc import Mapping
from typing import Any

from app.core.draft.draft import SEARCH, Draft, Values
from app.core.draft.draft_settings import NO_SETTINGS, Setting, value_words
from app.core.i18n import tr, trn
from app.core.setting_titles import title_of_key

LOGARITHMIC, WHOLE = ("log", "log_int"), ("int", "log_int")
FIXED = ("training.seeds", "task.labels")
SECTIONS = ("task", "model", "training", "adapter")
"""Sections whose settings the form offers to search; a spec may search others too."""
FIRST = (
    "training.learning_rate", "training.batch_size", "training.epochs", "training.weight_decay", "training.warmup",
    "adapter.rank", "adapter.dropout", "model.dropout", "task.max_length",
)  # fmt: skip
"""What is searched most often, which is offered first."""
SAMPLERS = {"tpe": "TPE", "random": tr("Random"), "grid": tr("Grid"), "gp": tr("Gaussian process")}
TRIALS, SEEDS = 12, 5
SPREAD = 4
"""Around a value, a range goes from a quarter of it to four times as much."""
SMALL = 0.05
"""Numbers below it, such as learning rates, are tried on a logarithmic scale."""


def section_of(draft: Draft) -> Values:
    """The search's section; empty if the draft is a single run."""
    found = draft.get(SEARCH)
    return found if isinstance(found, dict) else {}


def space_of(draft: Draft) -> Values:
    """Key → the values that are tried, as they are written."""
    found = section_of(draft).get("space")
    return found if isinstance(found, dict) else {}


def can_be_searched(setting: Setting) -> bool:
    """Whether the form offers to search a setting."""
    return setting.section in SECTIONS and setting.key not in (*NO_SETTINGS, *FIXED)


def range_of(values: Any) -> tuple[str, Any, Any] | None:
    """Form and ends of a range, as it is written; None of a list, or of what makes no sense."""
    if not isinstance(values, dict) or len(values) != 1:
        return None
    ((form, ends),) = values.items()
    return (str(form), *ends) if isinstance(ends, list) and len(ends) == 2 else None


def values_in_words(values: Any) -> str:
    """`1e-5 to 1e-3, log scale` or `16, 32, 64`."""
    found = range_of(values)
    if found is None:
        return ", ".join(map(value_words, values)) if isinstance(values, list) else value_words(values)
    form, low, high = found
    ends = {"low": value_words(low), "high": value_words(high)}
    return tr("{low} to {high}, log scale", **ends) if form in LOGARITHMIC else tr("{low} to {high}", **ends)


def search_words(draft: Draft) -> str:
    """`12 trials · Learning rate, Batch size`; empty if the draft is a single run."""
    space, trials = space_of(draft), section_of(draft).get("trials")
    count = trn("{count} trial", "{count} trials", trials) if isinstance(trials, int) else tr("All combinations")
    return f"{count} · {', '.join(map(title_of_key, space))}" if space else ""


# Suggestions


def suggest(value: Any, default: Any = None) -> Any:
    """Values to try around one; of what is no number, a list with that value alone."""
    base = value if _is_number(value) else default
    if not _is_number(base) or base <= 0:
        return [value] if value is not None else []
    if isinstance(base, int) or float(base).is_integer():
        return sorted({max(1, int(base) // 2), int(base), 2 * int(base)})
    if base < SMALL:
        return {"log": [_rounded(base / SPREAD), _rounded(base * SPREAD)]}
    return [_rounded(base / 2), _rounded(base), _rounded(base * 2)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rounded(value: float) -> float:
    """To two digits."""
    return round(value, 1 - math.floor(math.log10(value)))


def new_section(space: Mapping[str, Any], metric: str | None) -> Values:
    """The section of a search that a person begins: the best of a dozen trials, trained again beside their own settings."""
    confirm = {"best": 1, "seeds": SEEDS, "baseline": True}
    return {"space": dict(space), "metric": metric, "trials": TRIALS, "sampler": "tpe", "confirm": confirm}


def search_around(values: Values, learning_rate: float | None, metric: str | None) -> Values:
    """The spec of a search around a run's settings: its learning rate, its batch size, and the rank of its adapter.

    `learning_rate` is the highest that the run had, for a spec that left it at `auto`.
    """
    draft = Draft(values)
    known = draft.get("training.learning_rate")
    rate = known if _is_number(known) else learning_rate
    space: Values = {"training.learning_rate": suggest(rate) if rate else {"log": [1e-5, 1e-3]}}
    for key in ("training.batch_size", "adapter.rank"):
        if _is_number(draft.get(key)):
            space[key] = suggest(draft.get(key))
    draft.unset("training.seeds")
    draft.set(SEARCH, new_section(space, draft.get("evaluation.best_metric") or metric))
    return draft.values()
