"""`burnish demo`: trains the embedded model on its data, end to end, in the window or in the terminal."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from backend.commands import new_run, window
from backend.commands.command import Command, add_json
from backend.commands.follow import EventReader, Follower, RunOutcome, format_metrics, report_outcome
from backend.commands.screen import ProgressScreen
from backend.commands.train import attempt
from backend.contract.errors import RunFailed
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder

if TYPE_CHECKING:
    from backend.contract.spec import RunSpec


def demo_spec() -> Path:
    """The spec of the embedded demo."""
    return resource("demo", "sentiment.yaml")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--headless", action="store_true", help="stay in the terminal even if there is a display")
    parser.add_argument("--run-folder", metavar="DIR", type=Path, help="a new folder for the run")
    add_json(parser)
    parser.set_defaults(changes=[], trust_remote_code=False, convert_weights=False)


def _demo(arguments: Namespace) -> int:
    from backend.preflight import resolve  # loads pydantic, pyarrow and the data room

    prepared = new_run.prepare(resolve.read_spec(demo_spec()), arguments)
    folder = new_run.write_run(prepared, arguments.run_folder)
    if not arguments.headless and not arguments.json and window.can_show():
        return _show_in_window(folder, prepared.spec)
    return _report(attempt(folder, prepared.spec), arguments.json)


def _show_in_window(folder: RunFolder, spec: "RunSpec") -> int:
    supervisor = new_run.start(folder, spec)
    try:
        return window.show("--run", str(folder.path))
    except RunFailed as error:
        # The run continues without the window, so the terminal takes over.
        screen = ProgressScreen()
        screen.line(str(error))
        return _report(Follower(folder, EventReader(folder.events), screen).watch(), False)
    finally:
        supervisor.returncode = supervisor.poll() or 0  # an active run outlives this process on purpose


def _report(outcome: RunOutcome, as_json: bool) -> int:
    if as_json or outcome.exit_code or outcome.predictions is None:
        return report_outcome(outcome, as_json)
    print(f"{outcome.state}: {format_metrics(outcome.metrics)}")
    print(f"run {outcome.folder.path}")
    print(outcome.predictions, flush=True)  # alone on the last line, for scripts
    return 0


COMMANDS = (Command("demo", "run the built-in demo, end to end", _arguments, _demo),)
