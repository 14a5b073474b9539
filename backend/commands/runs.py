"""Runs `burnish runs`, `note` and `compare`: lists runs, edits a run's notes, and shows several runs side by side."""

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from backend.commands.command import Command, add_json, requested_group, requested_run
from backend.commands.follow import format_metrics, waits_for
from backend.contract.errors import InputError
from backend.contract.metrics import spreads, unsure_metrics
from backend.contract.places import runs_folder
from backend.contract.run import events, search
from backend.contract.run.event_summary import TOO_LONG, active_seconds, landmarks, last_end, last_step
from backend.contract.run.folder import RunFolder, run_faults, run_folders
from backend.contract.run.group import RunGroup, run_groups, state_of
from backend.contract.run.notes import RunNotes, change_notes, read_notes, tags_of
from backend.contract.safe_text import one_line

FORMATS = ("csv", "markdown")
SORTED_BY = ("started", "name", "state", "task", "model", "data", "step", "seconds")
E = TypeVar("E")
_ATTEMPTS = (events.RunStarted, events.RunResumed)
MISSING = "its events.jsonl is missing; burnish resume continues it from its checkpoint"
NO_CURVES = "its curves are missing, because its events.jsonl was deleted"


class Summary(msgspec.Struct, frozen=True):
    """One run or group in the output of `burnish runs --json`."""

    name: str
    run: str
    state: str
    task: str = ""
    model: str = ""
    step: int = 0
    total_steps: int = 0
    started: float | None = None
    metrics: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    """The 95 % confidence intervals of a finished run's metrics."""
    message: str = ""
    data: str = ""
    seconds: float | None = None
    """How long a process carried it; the time between two attempts does not count."""
    note: str = ""
    tags: tuple[str, ...] = ()
    queued: float | None = None
    """When it joined the queue in which it waits."""
    machine: str = ""
    """The machine that it runs on, unless it is this one."""
    group: str = ""
    """The folder of the group that a run belongs to."""
    seeds: tuple[int, ...] = ()
    """Of a group; its metrics are the means over the runs that have finished, its intervals Student's of these means."""
    runs: tuple[str, ...] = ()
    """The folders of a group's runs, in the order of the seeds."""
    deviations: dict[str, float] = {}
    """The standard deviation of each metric between a group's seeds."""
    trivial: dict[str, float] = {}
    """What a rule without a model reaches on the validation rows, such as the commonest label."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--search", metavar="WORDS", default="", help="only runs with all these words; #word is a tag")
    parser.add_argument("--sort", metavar="COLUMN", default="started", help=f"{', '.join(SORTED_BY)}, or a metric")
    parser.add_argument("--group", choices=("task", "model", "data", "state", "tag"), help="group the runs")
    parser.add_argument("--table", choices=FORMATS, help="print final metrics as a table")
    parser.add_argument("--members", action="store_true", help="also list each run of a group (--json always does)")
    add_json(parser)


def _runs(arguments: Namespace) -> int:
    faults = run_faults(runs_folder())
    every = _with_groups([summary(folder) for folder in run_folders(runs_folder())], faults)
    for fault in faults:
        print(f"note: {one_line(fault)}", file=sys.stderr)
    listed = every if arguments.json or arguments.members else [run for run in every if not run.group]
    matching = [run for run in listed if search.matches(arguments.search, _texts(run), run.tags)]
    found = _sort(matching, arguments.sort)
    if arguments.json:
        print(msgspec.json.encode(found).decode())
    elif arguments.table:
        print(_table(found, arguments.table), end="")
    elif not every and not faults:
        print(f"there are no runs in {runs_folder()} yet; burnish demo makes one")
    else:
        _print_lines(found, arguments.group)
    return 0


def _with_groups(runs: list[Summary], faults: list[str]) -> list[Summary]:
    """The runs and their groups; a damaged group is one more fault, and its runs are listed alone."""
    by_folder, groups = {run.run: run for run in runs}, []
    for group in run_groups(runs_folder()):
        try:
            found = group_summary(group, by_folder)
        except InputError as fault:
            faults.append(str(fault))
            continue
        groups.append(found)
        by_folder |= {
            folder: msgspec.structs.replace(by_folder[folder], group=found.run)
            for folder in found.runs
            if folder in by_folder
        }
    return [*groups, *by_folder.values()]


def _texts(run: Summary) -> tuple[str, ...]:
    return (run.name, run.state, run.task, run.model, run.data, run.note)


def _sort(runs: list[Summary], column: str) -> list[Summary]:
    """Newest or largest metric first; text alphabetically; runs without a value last. Raises InputError."""
    if column not in SORTED_BY and runs and not any(column in run.metrics for run in runs):
        known = sorted({name for run in runs for name in run.metrics})
        raise InputError(f"--sort: no run has {column!r}; there are {', '.join([*SORTED_BY, *known])}")

    def value(run: Summary) -> Any:
        if column == "started":
            return run.started or run.queued  # what waits is the newest there is
        return getattr(run, column) if column in SORTED_BY else run.metrics.get(column)

    is_text = column in ("name", "state", "task", "model", "data")
    return search.sort_items(runs, value, descending=not is_text)


def _print_lines(runs: list[Summary], group: str | None) -> None:
    width = max((len(one_line(run.name)) for run in runs), default=0)
    groups: dict[str, list[Summary]] = {}
    for run in runs:
        names = (run.tags or ("without a tag",)) if group == "tag" else (getattr(run, group) if group else "",)
        for name in names:
            groups.setdefault(name or f"unknown {group}" if group else "", []).append(run)
    for name, members in groups.items():
        if name:
            print(f"{one_line(name)} ({len(members)})")
        for run in members:
            print(_line(run, width))


def _line(run: Summary, width: int) -> str:
    steps = f"{run.step}/{run.total_steps}" if run.total_steps else str(run.step)
    tags = "".join(f"  #{tag}" for tag in run.tags) + (f"  on {run.machine}" if run.machine else "")
    words = format_metrics(run.metrics, run.intervals if run.seeds else None, run.deviations) or run.message
    words = ", ".join(dict.fromkeys(filter(None, [run.message, words]))) if run.seeds else words
    line = f"{one_line(run.name):<{width}}  {run.state:<11}  {steps:>13}  {words}{tags}"
    return one_line(line.rstrip())  # a stranger's run could write further rows by any of its texts


def _table(runs: list[Summary], form: str) -> str:
    from backend.contract.run.comparison import ABSENT, FinalMetrics, metrics_table

    def cells(run: Summary) -> list[tuple[str, str]]:
        seconds = ABSENT if run.seconds is None else f"{run.seconds:.0f}"
        named = {"run": run.name, "state": run.state, "task": run.task, "model": run.model, "data": run.data}
        model = run.model.replace("\\", "/").rstrip("/").rpartition("/")[2]
        texts = [(name, text or ABSENT) for name, text in {**named, "model": model}.items()]
        texts = [(name, one_line(text)) for name, text in texts]  # a stranger's run could write further rows
        return [*texts, ("steps", str(run.step)), ("seconds", seconds)]

    lines = [
        FinalMetrics(
            cells(run), run.metrics, run.intervals, run.trivial, unsure_metrics(run.intervals, run.trivial, {})
        )
        for run in runs
    ]
    return metrics_table(lines, form=form).format(form)


# Notes


def _note_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or folder of a run or group")
    parser.add_argument("text", metavar="TEXT", nargs="?", help="set the notes; empty removes them")
    parser.add_argument("--tag", metavar="TAG", action="append", default=[], help="add a tag (may be repeated)")
    parser.add_argument("--untag", metavar="TAG", action="append", default=[], help="remove a tag (may be repeated)")


def _note(arguments: Namespace) -> int:
    group = requested_group(arguments.run)
    folder = requested_run(arguments.run) if group is None else RunFolder(group.path)
    gone, added = tags_of(arguments.untag), tags_of(arguments.tag)

    def apply_changes(before: RunNotes) -> RunNotes:
        tags = tuple(tag for tag in dict.fromkeys([*before.tags, *added]) if tag not in gone)
        return RunNotes(before.note if arguments.text is None else arguments.text.strip(), tags)

    notes = change_notes(folder, apply_changes)
    print(f"{one_line(folder.name)}: {notes.note or 'no note'}{''.join(f'  #{tag}' for tag in notes.tags)}")
    return 0


# Side by side


def _compare_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="names or folders of two or more runs or groups")
    parser.add_argument("--all", action="store_true", help="show all settings, not only those that differ")
    parser.add_argument("--table", choices=FORMATS, default="markdown", help="format of the tables")
    add_json(parser)


def _compare(arguments: Namespace) -> int:
    from backend.contract import spec_file
    from backend.contract.run.comparison import settings_table

    asked = [requested_group(name) or requested_run(name) for name in arguments.runs]
    folders = list({one.path: one for one in asked}.values())
    if len(folders) < 2:
        raise InputError("compare: name two or more runs, as burnish runs shows them")
    names = [folder.name for folder in folders]
    titles = [one_line(str(one.path) if names.count(one.name) > 1 else one.name) for one in folders]
    from backend.helper.queries.runs import compare_runs  # loads pyarrow

    compared = compare_runs(folders, titles)
    specs = {
        title: {**(one.settings() if isinstance(one, RunGroup) else spec_file.read_run(one.spec)), **facts}
        for title, one, facts in zip(titles, folders, compared.facts, strict=True)
    }
    settings = settings_table(specs, everything=arguments.all)
    summaries = [group_summary(one) if isinstance(one, RunGroup) else summary(one) for one in folders]
    if arguments.json:
        table = {key: dict(zip(titles, values, strict=True)) for key, *values in settings.rows}
        found = {"runs": summaries, "settings": table, "losses": compared.losses, "tests": compared.tests}
        print(msgspec.json.encode({**found, "sentences": compared.sentences, "refusal": compared.refusal}).decode())
        return 0
    print(_table(summaries, arguments.table))
    print(settings.format(arguments.table) if settings.rows else "the settings are the same\n")
    for sentence in filter(None, [*compared.losses, *compared.sentences, compared.refusal]):
        print(one_line(sentence))
    return 0


# A run's line, read from its events but for most steps


def summary(folder: RunFolder) -> Summary:
    """The run's summary; a folder with unreadable events gets one too."""
    found, notes = landmarks(folder.events), read_notes(folder)
    first = _last(found, events.RunStarted)
    plan = _last(found, events.PlanMade)
    state, message = _state_of(folder, found)
    remote = folder.remote_run()
    cut = next((event.message for event in found if isinstance(event, events.Warned) and event.code == TOO_LONG), "")
    return Summary(
        name=folder.name,
        run=str(folder.path),
        state=state,
        task=first.task if first else "",
        model=first.model if first else "",
        step=last_step(found),
        total_steps=plan.total_steps if plan else 0,
        started=first.time if first else None,
        metrics=_metrics_of(found),
        intervals=_intervals_of(found) if state == "finished" else {},
        message="; ".join(filter(None, [message, cut])),
        data=_data_of(found),
        seconds=active_seconds(found) if found else None,
        note=notes.note,
        tags=notes.tags,
        queued=folder.queued_since() if state == "queued" else None,
        machine=remote.machine if remote else "",
        trivial=plan.trivial if plan else {},
    )


def group_summary(group: RunGroup, known: Mapping[str, Summary] | None = None) -> Summary:
    """The group's summary, from those of its runs if they are known. Raises InputError if the group is damaged."""
    there = [run for run in group.runs() if run.exists()]
    own = [(known or {}).get(str(run.path)) or summary(run) for run in there]
    done, seeds, notes = (
        [run for run in own if run.state == "finished"],
        group.seeds(),
        read_notes(RunFolder(group.path)),
    )
    found = spreads([run.metrics for run in done])
    first = own[0] if own else Summary(group.name, "", "lost")
    return Summary(
        name=group.name,
        run=str(group.path),
        state=state_of([*(run.state for run in own), *["lost"] * (len(seeds) - len(own))]),
        task=first.task,
        model=first.model,
        step=sum(run.step for run in own),
        total_steps=sum(run.total_steps for run in own),
        started=min((run.started for run in own if run.started is not None), default=None),
        metrics={name: one.mean for name, one in found.items()},
        intervals={name: one.interval for name, one in found.items() if one.interval is not None},
        message=f"{len(done)} of {len(seeds)} finished",
        data=first.data,
        seconds=sum(run.seconds or 0.0 for run in own) if own else None,
        note=notes.note,
        tags=notes.tags,
        seeds=seeds,
        runs=tuple(str(run.path) for run in group.runs()),
        deviations={name: one.deviation for name, one in found.items() if one.deviation is not None},
        trivial=first.trivial,
    )


def group_lines(found: Summary) -> list[str]:
    """What became of each seed, and all of them together."""
    lines = []
    for seed, folder in zip(found.seeds, found.runs, strict=True):
        run = summary(RunFolder(folder))
        lines.append(one_line(f"seed {seed:<8}{run.state:<11} {format_metrics(run.metrics) or run.message}".rstrip()))
    words = format_metrics(found.metrics, found.intervals, found.deviations)
    return [*lines, ": ".join(filter(None, [found.message, words]))]


def _data_of(found: list[events.AnyEvent]) -> str:
    loaded = [event for event in found if isinstance(event, events.DataLoaded) and event.split == "train"]
    return ", ".join(Path(file).name for file in loaded[-1].files[:2]) if loaded else ""


def _state_of(folder: RunFolder, found: list[events.AnyEvent]) -> tuple[str, str]:
    finished, life = last_end(found), folder.life()
    if life == "alive" and folder.waits():
        return "queued", waits_for(folder)
    if life == "lost" and folder.queued.exists():
        return "lost", "its process was killed, or the computer shut down, while it waited in the queue"
    if life == "alive":
        has_started = _last(found, events.PlanMade) or _last(found, events.TrialProposed)
        return ("running" if has_started else "starting"), ""
    if (record := folder.exit_record()) and record.state:
        return record.state, record.message or "it was removed from the queue before it started"
    attempt = max((event.attempt for event in found if isinstance(event, _ATTEMPTS)), default=0)
    if finished and not folder.has_later_attempt(attempt, finished.time):
        return finished.state, finished.message
    if record := folder.exit_record():
        unsaid = "the run ended without saying how" if folder.events.exists() else MISSING
        ended_well = not record.has_failed and not folder.events.exists()  # the events knew how
        if ended_well and not record.message and folder.has_results():
            return "finished", NO_CURVES
        return "lost" if ended_well else "failed", record.message or unsaid
    return "lost", "it was never started" if life == "new" else "its process was killed or the computer shut down"


def _metrics_of(found: list[events.AnyEvent]) -> dict[str, float | None]:
    from_step = math.inf  # what is later than the step of a resume that follows it is void
    for event in reversed(found):
        match event:
            case events.RunResumed():
                from_step = min(from_step, event.from_step)
            case events.RunFinished() | events.EvaluationFinished(split="validation"):
                if event.metrics and event.step <= from_step:
                    return event.metrics
    return {}


def _intervals_of(found: list[events.AnyEvent]) -> dict[str, tuple[float, float]]:
    written = {event.split: event for event in found if isinstance(event, events.PredictionsWritten)}
    chosen = written.get("validation", written.get("test"))
    return chosen.intervals if chosen is not None else {}


def _last(found: list[events.AnyEvent], kind: type[E]) -> E | None:
    return next((event for event in reversed(found) if isinstance(event, kind)), None)


COMMANDS = (
    Command("runs", "list all runs, newest first", _arguments, _runs),
    Command("note", "add notes and tags to a run", _note_arguments, _note),
    Command("compare", "compare the final metrics and settings of several runs", _compare_arguments, _compare),
)
