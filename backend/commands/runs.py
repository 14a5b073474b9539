"""Owns `burnish runs`, `note` and `compare`: all runs as lines or a table, a person's words on one, several side by side."""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from backend.commands.command import Command, add_json
from backend.commands.follow import in_words
from backend.commands.named_run import named_run
from backend.contract.errors import InputError
from backend.contract.places import runs_folder
from backend.contract.run import search
from backend.contract.run.folder import run_faults, run_folders
from backend.contract.safe_text import one_line

if TYPE_CHECKING:
    from backend.commands.summary import Summary

FORMATS = ("csv", "markdown")
SORTED_BY = ("started", "name", "state", "task", "model", "data", "step", "seconds")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--search", metavar="WORDS", default="", help="only runs with all these words; #word is a tag")
    parser.add_argument("--sort", metavar="COLUMN", default="started", help=f"{', '.join(SORTED_BY)}, or a metric")
    parser.add_argument("--group", choices=("task", "model", "data", "state", "tag"), help="gather the runs")
    parser.add_argument("--table", choices=FORMATS, help="print final metrics as a table")
    add_json(parser)


def _runs(arguments: Namespace) -> int:
    import msgspec

    from backend.commands.summary import summary

    for fault in (faults := run_faults(runs_folder())):
        print(f"note: {one_line(fault)}", file=sys.stderr)
    every = [summary(folder) for folder in run_folders(runs_folder())]
    matching = [run for run in every if search.found(arguments.search, _texts(run), run.tags)]
    found = _sorted(matching, arguments.sort)
    if arguments.json:
        print(msgspec.json.encode(found).decode())
    elif arguments.table:
        print(_table(found, arguments.table), end="")
    elif not every and not faults:
        print(f"there are no runs in {runs_folder()} yet; burnish demo makes one")
    else:
        _print_lines(found, arguments.group)
    return 0


def _texts(run: "Summary") -> tuple[str, ...]:
    return (run.name, run.state, run.task, run.model, run.data, run.note)


def _sorted(runs: "list[Summary]", column: str) -> "list[Summary]":
    """Newest, or largest metric, first; texts by the alphabet; runs without a value last. Raises InputError."""
    if column not in SORTED_BY and runs and not any(column in run.metrics for run in runs):
        known = sorted({name for run in runs for name in run.metrics})
        raise InputError(f"--sort: no run has {column!r}; there are {', '.join([*SORTED_BY, *known])}")

    def value(run: "Summary") -> Any:
        if column == "started":
            return run.started or run.queued  # what waits is the newest there is
        return getattr(run, column) if column in SORTED_BY else run.metrics.get(column)

    is_text = column in ("name", "state", "task", "model", "data")
    return search.ordered(runs, value, descending=not is_text)


def _print_lines(runs: "list[Summary]", group: str | None) -> None:
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


def _line(run: "Summary", width: int) -> str:
    steps = f"{run.step}/{run.total_steps}" if run.total_steps else str(run.step)
    tags = "".join(f"  #{tag}" for tag in run.tags)
    line = f"{one_line(run.name):<{width}}  {run.state:<11}  {steps:>13}  {in_words(run.metrics) or run.message}{tags}"
    return one_line(line.rstrip())  # a stranger's run could write further rows by any of its texts


def _table(runs: "list[Summary]", form: str) -> str:
    from backend.contract.run.comparison import ABSENT, metrics_table

    def cells(run: "Summary") -> list[tuple[str, str]]:
        seconds = ABSENT if run.seconds is None else f"{run.seconds:.0f}"
        named = {"run": run.name, "state": run.state, "task": run.task, "model": run.model, "data": run.data}
        model = run.model.replace("\\", "/").rstrip("/").rpartition("/")[2]
        texts = [(name, text or ABSENT) for name, text in {**named, "model": model}.items()]
        texts = [(name, one_line(text)) for name, text in texts]  # a stranger's run could write further rows
        return [*texts, ("steps", str(run.step)), ("seconds", seconds)]

    return metrics_table([(cells(run), run.metrics) for run in runs]).written(form)


# Notes


def _note_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or folder of a run")
    parser.add_argument("text", metavar="TEXT", nargs="?", help="the note from now on; empty takes it away")
    parser.add_argument("--tag", metavar="TAG", action="append", default=[], help="add a tag (may be repeated)")
    parser.add_argument("--untag", metavar="TAG", action="append", default=[], help="take a tag away (may be repeated)")


def _note(arguments: Namespace) -> int:
    from backend.contract.run.notes import RunNotes, change_notes, tags_of

    folder = named_run(arguments.run)
    gone, added = tags_of(arguments.untag), tags_of(arguments.tag)

    def changed(before: RunNotes) -> RunNotes:
        tags = tuple(tag for tag in dict.fromkeys([*before.tags, *added]) if tag not in gone)
        return RunNotes(before.note if arguments.text is None else arguments.text.strip(), tags)

    notes = change_notes(folder, changed)
    print(f"{one_line(folder.name)}: {notes.note or 'no note'}{''.join(f'  #{tag}' for tag in notes.tags)}")
    return 0


# Side by side


def _compare_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="names or folders of two or more runs")
    parser.add_argument("--all", action="store_true", help="every setting, not only those that differ")
    parser.add_argument("--table", choices=FORMATS, default="markdown", help="how the tables are written")


def _compare(arguments: Namespace) -> int:
    from backend.commands.summary import summary
    from backend.contract import spec_file
    from backend.contract.run.comparison import settings_table

    folders = list({folder.path: folder for folder in map(named_run, arguments.runs)}.values())
    if len(folders) < 2:
        raise InputError("compare: name two or more runs, as burnish runs shows them")
    print(_table([summary(folder) for folder in folders], arguments.table))
    names = [folder.name for folder in folders]
    titles = [str(one.path) if names.count(one.name) > 1 else one.name for one in folders]
    specs = {one_line(title): spec_file.read_run(one.spec) for title, one in zip(titles, folders, strict=True)}
    settings = settings_table(specs, everything=arguments.all)
    print(settings.written(arguments.table) if settings.rows else "the settings are the same", end="\n")
    return 0


COMMANDS = (
    Command("runs", "all runs, newest first", _arguments, _runs),
    Command("note", "write a note and tags to a run", _note_arguments, _note),
    Command("compare", "final metrics and differing settings of several runs", _compare_arguments, _compare),
)
