"""Lists all runs cheaply: for a long run it first reads the head and tail of its events, then the summary events."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.core import formatting
from app.core.i18n import tr, trn
from app.core.runs.diagnosis import doubt
from app.core.runs.run_spec import RunSubject, read_subject
from app.core.runs.run_state import RunState
from app.core.runs.run_status import ALIVE, RESUMABLE, RunStatus, look_at
from app.core.runs.series import Series
from backend.contract.errors import InputError
from backend.contract.metrics import spreads, unsure_metrics
from backend.contract.run import events
from backend.contract.run.event_summary import EventSummary
from backend.contract.run.folder import WHOLE_COMPUTER, DeviceRequest, RunFolder
from backend.contract.run.group import RunGroup, state_of
from backend.contract.run.notes import RunNotes, change_notes, notes_file, read_notes
from backend.contract.run.queue import find_blocking_runs
from backend.contract.safe_files import open_unlinked

HEAD_BYTES = 24_000
TAIL_BYTES = 48_000
FIRST_BYTES = 256_000
"""So much of a run's events is read before the list is first shown."""
MAX_CHUNKS = 8
"""Of a long run at one look; the rest waits for the next, so that no run holds up the others."""
SETTLES_AFTER_NS = 3_000_000_000
"""File systems keep the time of a change in steps of up to two seconds: until then a second change may not show."""
REFRESHES_UNTIL_INSIDE = 20
"""Of an ended run only the folder is looked at, and at every twentieth look, after half a minute, its files too."""


@dataclass(frozen=True)
class RunSummary:
    """One run as a line of the list."""

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
    """None as long as it is no better than a rule without a model."""
    at_chance: bool = False
    started: float | None = None
    seconds: float | None = None
    step: int = 0
    total_steps: int = 0
    message: str = ""
    has_predictions: bool = False
    note: str = ""
    tags: tuple[str, ...] = ()
    metrics: dict[str, float | None] = field(default_factory=dict)
    """The final ones, of a run that is not over the latest."""
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The 95 % confidence intervals of a finished run's metrics."""
    can_resume: bool = True
    """Whether going on could come to another end."""
    doubt: str = ""
    """Why a finished run is not a success; known once all its events are read."""
    queued_since: float | None = None
    """When it joined the queue in which it waits."""
    request: DeviceRequest = WHOLE_COMPUTER
    """The devices that it waits for."""
    claimed: frozenset[str] | None = None
    """The devices on which it computes, if it has chosen them."""
    job: str = ""
    """See `RunStatus.job`."""
    group: Path | None = None
    """The folder of the group that the run belongs to."""
    seed: int | None = None
    """Its seed, by which the runs of a group are told apart."""
    members: tuple[Path, ...] = ()
    """Of a group: the folders of its runs that are there, in the order of its seeds. Its metrics are means over those that
    have finished, its intervals Student's of these means."""
    deviations: dict[str, float] = field(default_factory=dict)
    """The standard deviation of each metric between a group's seeds."""
    trivial: dict[str, float] = field(default_factory=dict)
    """What a rule without a model reaches on the validation rows."""
    unsure: frozenset[str] = frozenset()
    """The metrics whose interval is not wholly better than that."""

    @property
    def waits(self) -> bool:
        """Whether it is queued: it has a process, but computes nothing yet."""
        return self.state == "queued"

    @property
    def alive(self) -> bool:
        """Whether a process is running it."""
        return self.state in ALIVE

    @property
    def resumable(self) -> bool:
        """Whether `resume` may continue it."""
        return self.state in RESUMABLE and self.can_resume

    @property
    def notes(self) -> RunNotes:
        """The user's notes."""
        return RunNotes(self.note, self.tags)


def count_words(runs: Iterable[RunSummary]) -> list[str]:
    """`1 running` and `2 queued`, if there are any."""
    present = list(runs)
    waiting = sum(run.waits for run in present)
    alive = sum(run.alive for run in present) - waiting
    running = [trn("{count} running", "{count} running", alive)] if alive else []
    return [*running, *([tr("{waiting} queued", waiting=waiting)] if waiting else [])]


def in_queue(runs: Iterable[RunSummary]) -> list[RunSummary]:
    """The queued runs in the order of `backend.contract.run.queue`."""
    return sorted(
        (run for run in runs if run.waits and not run.job), key=lambda run: (run.queued_since or 0.0, run.name)
    )


def waits_for(run: RunSummary, runs: Sequence[RunSummary]) -> str:
    """`Waits for “rte-3” to end; number 2 of 3 in the queue`."""
    if run.job:
        return run.job
    queue = in_queue(runs)
    place = queue.index(run)
    running = [(one, one.claimed) for one in runs if one.alive and not one.waits]
    blocking = find_blocking_runs(run.request, running, [(one, one.request) for one in queue[:place]])
    words = waiting_words([one.title for one in blocking if not one.waits] or [one.title for one in blocking[-1:]])
    if len(queue) == 1:
        return words
    return tr("{words}; {place} of {count} in the queue", words=words, place=place + 1, count=len(queue))


def waiting_words(ahead: Sequence[str]) -> str:
    """`Waits for “rte-3” to end`, by the titles of the runs that a queued one waits for."""
    if len(ahead) > 1:
        return tr("Starts after {count} other runs finish", count=len(ahead))
    return tr("Starts after “{title}” finishes", title=ahead[0]) if ahead else tr("Starting soon")


class RunLibrary:
    """All runs under a folder, newest first. `read_changes` works in small steps, one run each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs: list[RunSummary] = []
        self.groups: list[RunSummary] = []
        self._seeds: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {}
        """Of each group's folder, with the stamp of its file."""
        self._read: dict[str, _Read] = {}
        self._refresh_count = 0

    def read_changes(self) -> Iterator[None]:
        """Read what has changed; the list is replaced when the iterator ends."""
        found: list[RunSummary] = []
        present: dict[str, _Read] = {}
        self._refresh_count += 1
        some_wait = False
        groups: list[RunGroup] = []
        for number, path in enumerate(_paths(self.root)):
            read = self._read.get(path) or _Read(path)
            if not read.is_settled(reads_inside=(number + self._refresh_count) % REFRESHES_UNTIL_INSIDE == 0):
                if not read.folder.exists():
                    if fault := read.folder.fault():
                        name = read.folder.name
                        found.append(RunSummary(name, read.folder.path, "lost", name, message=fault, can_resume=False))
                    elif (group := RunGroup(path)).exists():
                        groups.append(group)
                    continue
                self._read[path] = read  # a refresh that is given up has read it all the same
                yield from read.read_changes()
                some_wait = some_wait or read.summary.waits
            present[path] = read
            found.append(read.summary)
            yield
        if some_wait:
            found = [replace(run, message=waits_for(run, found)) if run.waits else run for run in found]
        self.runs, self.groups = self._gather(found, groups)
        self._read = present

    def _gather(
        self, runs: list[RunSummary], groups: list[RunGroup]
    ) -> tuple[list[RunSummary], list[RunSummary]]:  # fmt: skip
        """The runs, which now know their group, and the groups; one that is damaged is left out."""
        by_path, known = {run.path: run for run in runs}, dict(self._seeds)
        self._seeds, found = {}, []
        for group in groups:
            key, stamp = str(group.path), file_stamp(group.file)
            if key not in known or known[key][0] != stamp:
                try:
                    known[key] = (stamp, group.seeds())
                except InputError:
                    continue
            self._seeds[key] = known[key]
            seeds = {group.run(seed).path: seed for seed in known[key][1]}
            by_path |= {
                path: replace(by_path[path], group=group.path, seed=seed)
                for path, seed in seeds.items()
                if path in by_path
            }
            own = [by_path[path] for path in seeds if path in by_path]
            found.append(summarise_group(group, own, len(seeds)))
        return list(by_path.values()), found

    def annotate(self, path: Path, notes: RunNotes) -> None:
        """Write the changes to a run's note and tags, and show both at once. Raises InputError if that fails."""
        seen = self.find(path)
        notes = change_notes(RunFolder(path), lambda stored: stored.merge_edits(seen.notes if seen else stored, notes))
        self.runs, self.groups = (
            [replace(run, note=notes.note, tags=notes.tags) if run.path == path else run for run in runs]
            for runs in (self.runs, self.groups)
        )

    def refresh(self) -> list[RunSummary]:
        """Read everything at once."""
        for _ in self.read_changes():
            pass
        return self.runs

    def find(self, path: str | Path) -> RunSummary | None:
        """The run or group in that folder, as of the last refresh."""
        return next((run for run in (*self.runs, *self.groups) if run.path == Path(path)), None)

    def members(self, group: RunSummary) -> list[RunSummary]:
        """The runs of a group, in the order of its seeds."""
        found = {run.path: run for run in self.runs}
        return [found[path] for path in group.members if path in found]

    def newest_alive(self) -> RunSummary | None:
        """The newest run that is training; one that waits in the queue only if none is."""
        alive = [run for run in self.runs if run.alive]
        return next((run for run in alive if not run.waits), next(iter(alive), None))


class _Read:
    """What has been read of one run so far."""

    def __init__(self, path: str) -> None:
        self._path, self.folder = path, RunFolder(path)
        self.summary = RunSummary(self.folder.name, self.folder.path, "starting")
        """As of the last look."""
        self._settled: tuple[int, ...] = ()
        """When folder and files had last changed, if the run was over and nothing of it unread."""
        self._begin()
        self._rough: RunState | None = None
        self._stamp = self._notes_stamp = (-1, -1)
        self._notes = RunNotes()
        self._is_first = True

    def _begin(self) -> None:
        self._landmarks = EventSummary(self.folder.events)
        self._exact = RunState()
        self._curves: dict[str, Series] | None = {"loss": Series(), "learning_rate": Series()}
        """Of every step, which the landmarks leave out; None once the run has ended and was judged by them."""
        self.doubt = ""

    def is_settled(self, reads_inside: bool) -> bool:
        """Whether the summary is still valid: the run was over, and its folder has not changed since.

        Whatever Burnish does with an ended run (a new attempt, notes, a request) creates or renames a file there.
        Only a manual edit of a file in place goes unnoticed.
        """
        if not self._settled or changed_at(self._path) != self._settled[0]:
            return False
        return not reads_inside or self._stamps() == self._settled

    def read_changes(self) -> Iterator[None]:
        """Read new events, in portions, and summarise the run."""
        self._settled, stamps = (), self._stamps()
        yield from self.go_on()
        summary = summarise(self.folder, self.state, look_at(self.folder, self.state))
        self.summary = replace(summary, doubt=self.doubt, **self.read_notes())
        if has_settled(stamps[0]) and not self.summary.alive and self._rough is None and self._landmarks.is_complete:
            self._settled = stamps

    def _stamps(self) -> tuple[int, ...]:
        files = (self.folder.events, notes_file(self.folder))
        return (changed_at(self._path), *(number for file in files for number in file_stamp(file)))

    @property
    def state(self) -> RunState:
        """The run's state; for a long one still being read, judged by its two ends."""
        return self._exact if self._rough is None else self._rough

    def read_notes(self) -> dict[str, object]:
        """The user's notes, read if their file has changed."""
        stamp = file_stamp(notes_file(self.folder))
        if stamp != self._notes_stamp:
            self._notes, self._notes_stamp = read_notes(self.folder), stamp
        return {"note": self._notes.note, "tags": self._notes.tags}

    def go_on(self) -> Iterator[None]:
        """Read the next portion of new events."""
        stamp = file_stamp(self.folder.events)
        if stamp == self._stamp and self._landmarks.is_complete:
            self._judge()  # a look may have been given up before it
            return
        self._stamp = stamp
        if self._is_first and stamp[1] > FIRST_BYTES:
            self._is_first = False
        else:
            if self._curves is None:
                self._begin()  # a resumed run is judged again
            yield from self._read_landmarks()
        if self._landmarks.is_complete:
            self._rough = None
            yield
            self._judge()
        else:
            self._rough = RunState()
            self._rough.apply_all(_head_and_tail(self.folder.events))

    def _read_landmarks(self) -> Iterator[None]:
        for _ in range(MAX_CHUNKS):
            found = self._landmarks.read()
            if self._landmarks.began_anew:
                self._exact = RunState()
            self._exact.apply_all(found)
            self._take_losses()
            if self._landmarks.is_complete:
                return
            yield

    def _take_losses(self) -> None:
        assert self._curves is not None
        found = list(self._landmarks.losses())
        cuts = [place for place in range(1, len(found)) if found[place][0] <= found[place - 1][0]]
        for begin, end in zip([0, *cuts], [*cuts, len(found)], strict=True):  # a resumed run repeats steps
            for place, series in enumerate(self._curves.values(), start=1):
                if begin < end:
                    series.truncate_after(found[begin][0] - 1)
                series.xs.extend(step[0] for step in found[begin:end])
                series.ys.extend(step[place] for step in found[begin:end])

    def _judge(self) -> None:
        """Judge an ended run once, then free its curves."""
        end = self._exact.finished
        if end is not None and self._curves is not None:
            if end.state == "finished":
                self.doubt = doubt(replace(self._exact, series=self._curves))
            self._curves = None


def summarise(folder: RunFolder, state: RunState, outcome: RunStatus) -> RunSummary:
    """A run's line in the list."""
    metric = state.main_metric or _first_metric(state)
    subject = _subject(state) if state.name else read_subject(folder)
    return RunSummary(
        name=folder.name,
        path=folder.path,
        state=outcome.state,
        title=subject.title,
        task=subject.task,
        model=subject.model,
        engine=subject.engine,
        data=subject.data,
        metric=metric,
        best=None if state.at_chance else _best(state, metric),
        at_chance=state.at_chance,
        started=state.started,
        seconds=state.seconds_spent,
        step=state.step,
        total_steps=state.total_steps,
        message=outcome.message,
        has_predictions=bool(folder.prediction_names() if outcome.lacks_events else state.predictions),
        metrics=_metrics(state),
        intervals=state.intervals,
        trivial=state.trivial,
        unsure=unsure_metrics(state.intervals, state.trivial, state.plan.metrics if state.plan else {}),
        can_resume=outcome.can_resume,
        queued_since=folder.queued_since() if outcome.waits else None,
        request=folder.device_request() if outcome.waits else WHOLE_COMPUTER,
        claimed=folder.claimed_devices() if outcome.state in ALIVE else None,
        job=outcome.job,
    )


def summarise_group(group: RunGroup, runs: Sequence[RunSummary], count: int) -> RunSummary:
    """A group's line in the list; `runs` are those that are there, of `count`."""
    done, notes, own = [run for run in runs if run.state == "finished"], read_notes(RunFolder(group.path)), list(runs)
    found = spreads([run.metrics for run in done])
    first = next(
        (run for run in own if run.metric), next(iter(own), RunSummary(group.name, group.path, "lost", group.name))
    )
    return replace(
        first,
        name=group.name,
        path=group.path,
        state=state_of([*(run.state for run in own), *["lost"] * (count - len(own))]),
        best=found[first.metric].mean if first.metric in found and not any(run.at_chance for run in done) else None,
        at_chance=bool(done) and all(run.at_chance for run in done),
        started=min((run.started for run in own if run.started is not None), default=None),
        seconds=sum(run.seconds or 0.0 for run in own),
        step=sum(run.step for run in own),
        total_steps=sum(run.total_steps for run in own),
        message=tr("{done} of {count} runs finished", done=len(done), count=count),
        has_predictions=len(done) > 1,
        note=notes.note,
        tags=notes.tags,
        metrics={name: one.mean for name, one in found.items()},
        intervals={name: one.interval for name, one in found.items() if one.interval is not None},
        deviations={name: one.deviation for name, one in found.items() if one.deviation is not None},
        unsure=unsure_metrics(
            {name: one.interval for name, one in found.items() if one.interval is not None}, first.trivial, {}
        ),
        can_resume=len(own) < count or any(run.resumable for run in own),
        doubt=next((run.doubt for run in own if run.doubt), ""),
        queued_since=min((run.queued_since for run in own if run.queued_since is not None), default=None),
        claimed=None,
        job="",
        group=None,
        seed=None,
        members=tuple(run.path for run in own),
    )


def _subject(state: RunState) -> RunSubject:
    data = state.training_data
    files = ", ".join(formatting.name_of_path(file) for file in data.files[:2]) if data else ""
    return RunSubject(state.name, state.task, state.model, state.engine, files)


def _metrics(state: RunState) -> dict[str, float | None]:
    if state.finished is not None and state.finished.metrics:
        return state.finished.metrics
    measured = [one for one in state.evaluations if one.split == "validation"]
    chosen = state.best or (measured[-1] if measured else None)
    return chosen.metrics if chosen else {}


def _first_metric(state: RunState) -> str:
    """Of a search, which evaluates nothing itself: that of its best trial by which it has searched."""
    return next(iter(state.finished.metrics), "") if state.finished is not None and not state.evaluations else ""


def _best(state: RunState, metric: str) -> float | None:
    decides = state.plan is not None and state.plan.best_metric == metric
    found = None if decides else state.best_of(metric)
    if found is not None:
        return found[1]
    if state.finished is not None and metric in state.finished.metrics:
        return state.finished.metrics[metric]
    return state.best.metrics.get(metric) if state.best else state.last_metric(metric)


def _paths(root: Path) -> list[str]:
    """Everything in `root`, newest name first."""
    try:
        with os.scandir(root) as entries:
            return sorted((entry.path for entry in entries), reverse=True)
    except OSError:
        return []


def changed_at(folder: Path | str) -> int:
    """When a file in a folder was last created, renamed or deleted, in nanoseconds; 0 if the folder is gone."""
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 (a thousand at each look)
    except OSError:
        return 0


def has_settled(changed: int) -> bool:
    """Whether a change at that time, in nanoseconds, is old enough for a later one to have a different time."""
    return 0 < changed < time.time_ns() - SETTLES_AFTER_NS


def file_stamp(path: Path) -> tuple[int, int]:
    """A file's modification time in nanoseconds, and its size; zeros if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def _head_and_tail(path: Path) -> list[events.AnyEvent]:
    try:
        with open_unlinked(path) as file:
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
