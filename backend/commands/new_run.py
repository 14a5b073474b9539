"""Creates a run folder from a validated spec, and starts an attempt on it."""

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from backend.commands import consents
from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.output_file import check_output_folder, output_errors
from backend.contract.places import runs_folder
from backend.contract.run.folder import RemoteRun, RunFolder, new_run_folder
from backend.contract.safe_files import MAX_SPEC, read_unlinked, write_whole

if TYPE_CHECKING:
    from backend.contract.rpc.plan import DeviceList
    from backend.contract.spec import HardwareSection, RunSpec
    from backend.preflight.checks import Checked
    from backend.training.checkpoints import Checkpoints
    from backend.training.spec_change import SpecChange


def prepare(spec: "RunSpec", arguments: Namespace) -> "Checked":
    """The fully checked spec; writes nothing. Raises InputError."""
    from backend.commands.screen import ProgressScreen
    from backend.preflight import checks
    from backend.preflight.pandas_left_out import leave_pandas_out  # these load pyarrow and the data room

    leave_pandas_out(spec.data.source)
    spec = agree_to_code(spec, arguments)
    if arguments.run_folder is not None:
        refuse_existing(arguments.run_folder)
    screen = ProgressScreen()
    try:
        return checks.check(spec, screen.report("checking"), convert=arguments.convert_weights, say=screen.line)
    finally:
        screen.close()


def write_run(prepared: "Checked", path: Path | None) -> RunFolder:
    """Create a run folder that holds the spec: at `path`, or under the runs folder, named by date and spec."""
    from backend.preflight import checks  # loaded by now

    folder = make_folder(path, prepared.spec.name)
    try:
        with output_errors(folder.path, "--run-folder" if path else "", folder.path):
            checks.write_spec(folder, prepared)
    except InputError:
        with suppress(OSError):
            folder.facts.unlink(missing_ok=True)
            folder.path.rmdir()
        raise
    return folder


def write_copy(spec: str, name: str, remote: RemoteRun, path: Path | None) -> RunFolder:
    """Create the folder of a run that was started on another machine: at `path`, or under the runs folder."""
    folder = make_folder(path, name)
    from backend.remote import remote_runs  # loads the registry

    with output_errors(folder.path, "--run-folder" if path else "", folder.path):
        remote_runs.write_copy(folder, spec, remote)
    return folder


def make_folder(path: Path | None, name: str) -> RunFolder:
    """A new, empty folder: at `path`, or under the runs folder, named by date and `name`. Raises InputError."""
    return _make(path) if path else _make_dated(name)


def change_engine(
    folder: RunFolder, spec: "RunSpec", checkpoints: "Checkpoints", engine: str, *, new_optimizer: bool
) -> "RunSpec":
    """Continue a run with another engine. The previous spec is kept beside the new one. Raises InputError."""
    with hold(folder, message("another engine")):
        from backend.training import spec_change  # loads the engines, which whoever is refused need not wait for

        change = spec_change.with_engine(folder, spec, checkpoints, engine, new_optimizer=new_optimizer)
        return spec if change is None else _change_spec(folder, spec, change)


def change_settings(folder: RunFolder, spec: "RunSpec", changes: list[str]) -> "RunSpec":
    """Continue a run with other settings. The previous spec is kept beside the new one. Raises InputError."""
    with hold(folder, message("other settings")):
        from backend.training import spec_change

        change = spec_change.with_settings(folder, spec, changes)
        return _change_spec(folder, spec, change)


@contextmanager
def hold(folder: RunFolder, wanted: str) -> Iterator[None]:
    """Keep the run from being resumed meanwhile. Raises InputError if it is running or belongs to another user."""
    from backend.contract.run.lock import RunLocked, take_lock

    try:
        lock = take_lock(folder.lock)
    except RunLocked:
        raise InputError(
            message(
                "{name}: this run is in progress; pause it, then resume it with {option}",
                name=folder.name,
                option=wanted,
            )
        ) from None
    except OSError as error:
        raise _not_changed(folder, error) from None
    try:
        yield
    finally:
        os.close(lock)


def _change_spec(folder: RunFolder, before: "RunSpec", change: "SpecChange") -> "RunSpec":
    """Replace the run's spec after checking the new one; that of the last attempt is kept beside it."""
    from backend.contract import spec_file
    from backend.preflight import checks
    from backend.training import spec_change

    checked = checks.check(change.spec).spec
    spec_change.remove_unneeded(folder, before, checked)
    try:
        if not change.kept.exists():  # else nothing was trained with the present one
            write_whole(change.kept, read_unlinked(folder.spec, MAX_SPEC))
        write_whole(folder.spec, spec_file.dump(checked.model_dump(mode="json")).encode())
        spec_change.keep_started(folder, checked)
    except OSError as error:
        raise _not_changed(folder, error) from None
    return checked


def _not_changed(folder: RunFolder, error: OSError) -> InputError:
    return InputError(
        message(
            "{name}: its settings cannot be changed ({strerror}); if this is another user's run, "
            "start your own from {spec}",
            name=folder.name,
            strerror=error.strerror,
            spec=folder.spec,
        )
    )


def start(
    folder: RunFolder,
    spec: "RunSpec",
    *,
    pause: float | None = None,
    queue: bool = False,
    listed: "DeviceList | None" = None,
) -> "subprocess.Popen[bytes]":
    """See `launcher.start`; a trial of a search that a person resumes pauses at no rung."""
    from backend.launchers import launcher

    return launcher.start(folder, spec, pause=pause, queue=queue, listed=listed, report=_print_note)


def launch(folder: RunFolder, hardware: "HardwareSection") -> "subprocess.Popen[bytes]":
    """See `launcher.launch`."""
    from backend.launchers import launcher

    return launcher.launch(folder, hardware, report=_print_note)


def _print_note(words: str) -> None:
    print(f"note: {words}", file=sys.stderr)


def requested_changes(arguments: Namespace) -> list[str]:
    """The changes from the command line, including `--trust-remote-code`."""
    changes = ["model.trust_remote_code=true"] if arguments.trust_remote_code else []
    return [*arguments.changes, *changes]


def agree_to_code(spec: "RunSpec", arguments: Namespace) -> "RunSpec":
    """The spec, pinned for a hub model to the commit whose code the user just approved. Raises InputError."""
    model = spec.model
    versions = consents.agree_if_asked(
        arguments, model.name_or_path, *([model.tokenizer] if model.tokenizer else []), revision=model.revision
    )
    if model.name_or_path not in versions or Path(model.name_or_path).is_dir():
        return spec
    return spec.model_copy(update={"model": model.model_copy(update={"revision": versions[model.name_or_path]})})


def _make_dated(name: str) -> RunFolder:
    try:
        return new_run_folder(runs_folder(), name)
    except OSError as error:
        raise InputError(
            message(
                "{runs_folder}: runs cannot be saved there: {strerror}; set BURNISH_RUNS to a folder "
                "that you can write to",
                runs_folder=runs_folder(),
                strerror=error.strerror,
            )
        ) from None


def refuse_existing(path: Path) -> None:
    """Raise InputError unless a run folder can be created there."""
    if os.path.lexists(path):
        raise InputError(
            message("--run-folder {path} already exists; choose a new folder, or resume the run in it", path=path)
        )
    check_output_folder(path, "--run-folder")


def _make(path: Path) -> RunFolder:
    try:
        with output_errors(path, "--run-folder", *path.parents):
            path.mkdir(parents=True)
    except FileExistsError:
        refuse_existing(path)
    return RunFolder(path)
