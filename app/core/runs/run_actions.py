"""Owns how the palette finds a run by its name."""

from collections.abc import Callable, Iterable

from app.core import formatting
from app.core.actions import Action
from app.core.i18n import tr
from app.core.runs.run_library import RunSummary

MOST = 2000
"""The newest runs are known; older ones are found on the Runs page."""


def run_actions(runs: Iterable[RunSummary], show: Callable[[str], object]) -> list[Action]:
    """One action a run, the newest first; `show` takes the path of its folder."""
    newest = sorted(runs, key=lambda run: run.started or run.queued_since or 0.0, reverse=True)[:MOST]
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
