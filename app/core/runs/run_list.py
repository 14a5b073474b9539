"""Searches, sorts and groups the list of runs, and offers runs by name in the command palette."""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core import formatting
from app.core.actions import Action
from app.core.heading import GroupHeading
from app.core.i18n import tr
from app.core.runs.run_columns import COLUMNS, model_words, state_words, task_words
from app.core.runs.run_library import RunSummary
from app.core.runs.run_status import TITLES
from backend.contract.run import search

GROUPS = {
    "": tr("No grouping"),
    "task": tr("Task"),
    "model": tr("Model"),
    "data": tr("Data"),
    "tag": tr("Tag"),
    "state": tr("State"),
}
"""What runs can be gathered by, in the words of a list."""
WITHOUT = {
    "task": tr("Unknown task"),
    "model": tr("Unknown model"),
    "data": tr("Unknown data"),
    "tag": tr("No tag"),
}


@dataclass(frozen=True)
class RunListOptions:
    """The user's view options."""

    words: str = ""
    column: str = "started"
    descending: bool = True
    group: str = ""


Line = RunSummary | GroupHeading


def arrange(
    runs: Sequence[RunSummary],
    options: RunListOptions,
    groups: Sequence[RunSummary] = (),
    expanded: Container[Path] = (),
) -> list[Line]:
    """The lines to list; a run with several tags appears under each, an empty value always last.

    A group of runs is a line; if it is `expanded`, its runs follow.
    """
    listed = {path for group in groups for path in group.members}
    alone = [*groups, *(run for run in runs if run.path not in listed)]
    found = sort_runs(matching(alone, options.words), options.column, descending=options.descending)
    by_path = {run.path: run for run in runs}
    members = {group.path: [by_path[path] for path in group.members] for group in groups if group.path in expanded}
    if not options.group:
        return [line for run in found for line in (run, *members.get(run.path, ()))]
    gathered: dict[str, list[RunSummary]] = {}
    for run in found:
        for name in _groups_of(run, options.group):
            gathered.setdefault(name, []).append(run)
    order = sorted(gathered, key=_rank(options.group))
    return [
        line
        for name in order
        for line in (
            GroupHeading(name, len(gathered[name])),
            *(line for run in gathered[name] for line in (run, *members.get(run.path, ()))),
        )
    ]


def matching(runs: Sequence[RunSummary], words: str) -> list[RunSummary]:
    """The runs that match every word; `#word` means a tag."""
    if not words.strip():
        return list(runs)
    return [run for run in runs if search.matches(words, _texts(run), run.tags)]


def sort_runs(runs: Sequence[RunSummary], column: str, *, descending: bool) -> list[RunSummary]:
    """Runs sorted by one of COLUMNS; those without a value always come last, ties keep their order."""
    return search.sort_items(runs, COLUMNS[column].value, descending=descending)


def _texts(run: RunSummary) -> tuple[str, ...]:
    return (run.title, run.name, state_words(run), task_words(run), run.task, model_words(run), run.data, run.note)


def _groups_of(run: RunSummary, group: str) -> Sequence[str]:
    if group == "tag":
        return run.tags or (WITHOUT["tag"],)
    name = {"task": task_words, "model": model_words, "data": lambda run: run.data, "state": state_words}[group](run)
    return (name or WITHOUT.get(group, ""),)


def _rank(group: str) -> Callable[[str], tuple[bool, int, str]]:
    titles = list(TITLES.values())
    return lambda name: (
        name == WITHOUT.get(group),
        titles.index(name) if group == "state" and name in titles else 0,
        name.casefold(),
    )


MAX_ACTIONS = 2000
"""The newest runs are known; older ones are found on the Runs page."""


def run_actions(runs: Iterable[RunSummary], show: Callable[[str], object]) -> list[Action]:
    """One action per run, newest first; `show` takes the path of its folder."""
    newest = sorted(runs, key=lambda run: run.started or run.queued_since or 0.0, reverse=True)[:MAX_ACTIONS]
    return [
        Action(
            run.title,
            lambda path=str(run.path): show(path),
            icon="chart",
            kind=tr("Run of {started}", started=formatting.moment(run.started)),
            words=f"{run.path.name} {run.state} {run.model}",
        )
        for run in newest
    ]
