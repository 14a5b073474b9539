"""Finds the runs that ended since the user last looked, and announces them in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app.core import formatting
from app.core.i18n import inside, tr
from app.core.runs.run_library import RunSummary
from app.core.runs.run_status import TITLES

ANNOUNCED = {"finished": "success", "failed": "error", "lost": "error", "interrupted": "warning"}
"""State → kind of message. Whoever stops or pauses a run knows of it."""


@dataclass(frozen=True)
class FinishedRun:
    """A run that ended while this window was open."""

    path: Path
    title: str
    state: str
    text: str
    doubt: str = ""

    @property
    def kind(self) -> str:
        """The kind of message: success, error, or a warning for an interrupted run or one that learned nothing."""
        return "warning" if self.doubt else ANNOUNCED[self.state]


class FinishedRuns:
    """Takes the list of runs repeatedly; a run that ended before `since`, seconds since the epoch, is not news."""

    def __init__(self, since: float) -> None:
        self._since = since
        self._known: set[Path] = set()
        self._alive: set[Path] = set()
        self.unseen: list[FinishedRun] = []
        """The runs that have not been viewed yet, newest last."""

    def take(self, runs: Iterable[RunSummary]) -> list[FinishedRun]:
        """The runs that have ended since the last list."""
        runs_now = list(runs)
        ended = [_ending(run) for run in runs_now if run.state in ANNOUNCED and self._is_news(run)]
        self._known |= {run.path for run in runs_now}  # one that comes back from the trash is not news
        self._alive = {run.path for run in runs_now if run.alive}
        # A resumed run is not finished.
        self.unseen = [one for one in self.unseen if one.path not in self._alive] + ended
        return ended

    def _is_news(self, run: RunSummary) -> bool:
        # One that came and went between two looks was never seen alive.
        is_short = run.path not in self._known and run.started is not None and run.started >= self._since
        return run.path in self._alive or is_short

    def see(self, path: Path) -> None:
        """The user is looking at this run."""
        self.unseen = [one for one in self.unseen if one.path != path]

    def see_all(self) -> None:
        """The user is looking at the list of runs."""
        self.unseen = []

    def title(self) -> str:
        """The window title, also shown in the task bar."""
        if not self.unseen:
            return tr("Burnish")
        if len(self.unseen) == 1:
            return tr(
                "{title} {state} – Burnish", title=self.unseen[0].title, state=inside(TITLES[self.unseen[0].state])
            )
        return tr("{number} runs ended – Burnish", number=len(self.unseen))


def _ending(run: RunSummary) -> FinishedRun:
    return FinishedRun(run.path, run.title, run.state, " ".join(filter(None, [_words(run), run.doubt])), run.doubt)


def _words(run: RunSummary) -> str:
    if run.state == "finished":
        metric = formatting.metric_title(run.metric)
        value = run.metrics.get(run.metric)
        score = f": {metric} {formatting.number(value)}" if value is not None else ""
        return tr(
            "{title} finished in {seconds}{score}.",
            title=run.title,
            seconds=formatting.duration(run.seconds),
            score=score,
        )
    at = tr(" at step {step}", step=formatting.group_digits(run.step)) if run.step else ""
    if run.state == "lost":
        return tr("{title} was lost{at}: its process disappeared.", title=run.title, at=at)
    if run.state == "interrupted":
        return tr("{title} was interrupted{at}. You can resume it.", title=run.title, at=at)
    why = f": {run.message.rstrip('.')}" if run.message else ""
    return tr("{title} failed{at}{why}.", title=run.title, at=at, why=why)
