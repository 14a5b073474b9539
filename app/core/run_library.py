"""Owns the list of all runs, read cheaply: of each run only the head and the tail of its events."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.core import wording
from app.core.outcome import OVER, RESUMABLE, Outcome, look_at
from app.core.run_state import RunState
from backend.contract import events
from backend.contract.run_folder import RunFolder, run_folders

HEAD_BYTES = 24_000
TAIL_BYTES = 48_000


@dataclass(frozen=True)
class RunSummary:
    """One run in a line of the list."""

    name: str
    path: Path
    state: str
    title: str = ""
    task: str = ""
    model: str = ""
    engine: str = ""
    data: str = ""
    metric: str = ""
    best: float | None = None
    started: float | None = None
    seconds: float | None = None
    step: int = 0
    total_steps: int = 0
    message: str = ""
    has_predictions: bool = False

    @property
    def alive(self) -> bool:
        """Whether a process carries the run."""
        return self.state not in OVER

    @property
    def resumable(self) -> bool:
        """Whether `resume` may continue it."""
        return self.state in RESUMABLE


class RunLibrary:
    """All runs under a folder, newest first. `look` does the work in small pieces, one run each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs: list[RunSummary] = []
        self._read: dict[Path, tuple[tuple[int, int], RunState]] = {}

    def look(self) -> Iterator[None]:
        """Read what has changed; the list is replaced when the iterator ends."""
        found: list[RunSummary] = []
        for folder in run_folders(self.root):
            found.append(self._summary(folder))
            yield
        self.runs = found
        here = {run.path for run in found}
        self._read = {path: read for path, read in self._read.items() if path in here}

    def refresh(self) -> list[RunSummary]:
        """Read everything at once."""
        for _ in self.look():
            pass
        return self.runs

    def find(self, path: str | Path) -> RunSummary | None:
        """The run in that folder, as of the last look."""
        return next((run for run in self.runs if run.path == Path(path)), None)

    def _summary(self, folder: RunFolder) -> RunSummary:
        state = self._state(folder)
        return summarise(folder, state, look_at(folder, state))

    def _state(self, folder: RunFolder) -> RunState:
        stamp = _stamp(folder.events)
        known = self._read.get(folder.path)
        if known and known[0] == stamp:
            return known[1]
        state = RunState()
        state.apply_all(_head_and_tail(folder.events))
        self._read[folder.path] = (stamp, state)
        return state


def summarise(folder: RunFolder, state: RunState, outcome: Outcome) -> RunSummary:
    """The line of the list that stands for a run."""
    metric = state.main_metric
    data = state.training_data
    return RunSummary(
        name=folder.name,
        path=folder.path,
        state=outcome.state,
        title=state.name or folder.name,
        task=state.task,
        model=state.model,
        engine=state.engine,
        data=", ".join(wording.name_of_path(file) for file in data.files[:2]) if data else "",
        metric=metric,
        best=_best(state, metric),
        started=state.started,
        seconds=state.seconds_spent,
        step=state.step,
        total_steps=state.total_steps,
        message=outcome.message,
        has_predictions=bool(state.predictions),
    )


def _best(state: RunState, metric: str) -> float | None:
    if state.finished is not None and metric in state.finished.metrics:
        return state.finished.metrics[metric]
    return state.best.metrics.get(metric) if state.best else state.last_metric(metric)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def _head_and_tail(path: Path) -> list[events.AnyEvent]:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            size = file.seek(0, 2)
            if size <= HEAD_BYTES:
                return events.decode_lines(head)[0]
            file.seek(max(size - TAIL_BYTES, len(head)))
            tail = file.read(TAIL_BYTES)
    except OSError:
        return []
    # Cut lines at the seams do not decode and are left out.
    return [*events.decode_lines(head)[0], *events.decode_lines(tail[tail.find(b"\n") + 1 :])[0]]
