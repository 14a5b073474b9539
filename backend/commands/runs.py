"""Owns `burnish runs`: all runs, newest first, as lines or as JSON."""

import math
from argparse import ArgumentParser, Namespace

from backend.commands.command import Command, add_json
from backend.commands.follow import in_words
from backend.contract.places import runs_folder
from backend.contract.run_folder import run_folders


def _arguments(parser: ArgumentParser) -> None:
    add_json(parser)


def _runs(arguments: Namespace) -> int:
    import msgspec

    from backend.commands.summary import Summary, summary

    found = [summary(folder) for folder in run_folders(runs_folder())]
    found.sort(key=lambda run: run.started or math.inf, reverse=True)
    if arguments.json:
        print(msgspec.json.encode(found).decode())
        return 0
    if not found:
        print(f"there are no runs in {runs_folder()} yet; burnish demo makes one")
    width = max((len(run.name) for run in found), default=0)

    def line(run: Summary) -> str:
        steps = f"{run.step}/{run.total_steps}" if run.total_steps else str(run.step)
        return f"{run.name:<{width}}  {run.state:<8}  {steps:>13}  {in_words(run.metrics) or run.message}".rstrip()

    for run in found:
        print(line(run))
    return 0


COMMANDS = (Command("runs", "all runs, newest first", _arguments, _runs),)
