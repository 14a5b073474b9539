"""The columns of the table of runs: what each shows, what it is sorted by, and how much room it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.core import formatting
from app.core.i18n import figure, tr
from app.core.runs.run_library import RunSummary
from app.core.runs.run_status import TITLES
from app.core.tasks import task_title

_STATES = tuple(TITLES)


@dataclass(frozen=True)
class Column:
    """One column; the order of COLUMNS is that on screen."""

    key: str
    title: str
    value: Callable[[RunSummary], Any]
    """What runs are sorted by; those with None come last."""
    text: Callable[[RunSummary], str]
    width: int = 0
    """In pixels; 0 for the column that gets the remaining width."""
    leaves: int = 0
    """Its place among the columns that are hidden where there is little room, from 1; 0 for one that always stays."""
    largest_first: bool = False
    """Whether the first click on its heading brings the largest value to the top."""
    hint: Callable[[RunSummary], str] | None = None
    """The tooltip, if it says more than the text."""


def task_words(run: RunSummary) -> str:
    """The display text of a task such as `text_classification`."""
    return task_title(run.task)


def state_words(run: RunSummary) -> str:
    """The display text of a state."""
    return TITLES.get(run.state, run.state)


def name_words(run: RunSummary) -> str:
    """The run's title; of one of a group, its seed."""
    return tr("Seed {seed}", seed=run.seed) if run.seed is not None else run.title


def model_words(run: RunSummary) -> str:
    """The model's name without its folder."""
    return formatting.name_of_path(run.model)


def _state_rank(run: RunSummary) -> int:
    return _STATES.index(run.state) if run.state in _STATES else len(_STATES)


def _best(run: RunSummary) -> str:
    if run.at_chance:
        return tr("at chance")
    if run.best is None:
        return "–"
    title, interval = formatting.metric_title(run.metric), _interval(run)
    if interval is not None:
        return f"{title} {formatting.sure_number(run.best, interval, 3)}"
    deviation = f" ± {figure(run.deviations[run.metric], '.2g')}" if run.metric in run.deviations else ""
    return f"{title} {formatting.number(run.best)}{deviation}"


def _interval(run: RunSummary) -> tuple[float, float] | None:
    """That of the saved model, or of a group's mean; None if the best value is another one."""
    return run.intervals.get(run.metric) if run.metrics.get(run.metric) == run.best else None


def _best_hint(run: RunSummary) -> str:
    """The value with what its interval is about, and a rule without a model."""
    lines, rule = [_best(run)], run.trivial.get(run.metric)
    if _interval(run) is not None:
        lines.append(
            tr("In parentheses: the 95 % interval of the mean over all seeds.") if run.members
            else tr("In parentheses: the 95 % confidence interval of the saved model.")
        )  # fmt: skip
    if rule is None:
        return "\n".join(lines)
    value = formatting.number(rule)
    if run.metric in run.unsure:
        lines.append(tr("It may be no better than a rule without a model ({value}).", value=value))
    else:
        lines.append(tr("A rule without a model reaches {value}.", value=value))
    return "\n".join(lines)


def _steps(run: RunSummary) -> str:
    total = f" / {formatting.group_digits(run.total_steps)}" if run.total_steps else ""
    return f"{formatting.group_digits(run.step)}{total}"


_ALL = (
    Column("run", tr("Run"), lambda run: run.title.casefold(), name_words),
    Column("state", tr("State"), _state_rank, state_words, width=136),
    Column("task", tr("Task"), task_words, task_words, width=196, leaves=4),
    Column("model", tr("Model"), lambda run: model_words(run).casefold(), model_words, width=112, leaves=6),
    Column("data", tr("Data"), lambda run: run.data.casefold(), lambda run: run.data, width=132, leaves=3),
    Column("best", tr("Best"), lambda run: run.best, _best, width=238, largest_first=True, hint=_best_hint),
    Column("steps", tr("Steps"), lambda run: run.step, _steps, width=116, leaves=1, largest_first=True),
    Column(
        "duration",
        tr("Duration"),
        lambda run: run.seconds,
        lambda run: formatting.duration(run.seconds),
        width=102,
        leaves=5,
        largest_first=True,
    ),
    Column(
        "started",
        tr("Started"),
        lambda run: run.started or run.queued_since,  # what waits is the newest there is
        lambda run: formatting.moment(run.started),
        width=118,
        largest_first=True,
    ),
    Column(
        "tags",
        tr("Tags"),
        lambda run: tuple(tag.casefold() for tag in run.tags),
        lambda run: " ".join(f"#{tag}" for tag in run.tags),
        width=120,
        leaves=2,  # they stand below the name too
    ),
)
COLUMNS = {column.key: column for column in _ALL}
