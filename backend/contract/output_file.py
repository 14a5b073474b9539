"""Writes a user's output file whole or not at all, never over a device, link, input or run file (stdlib only)."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backend.contract.errors import NO_ROOM, InputError
from backend.contract.messages import message
from backend.contract.run.folder import REQUESTS, RunFolder
from backend.contract.safe_files import user_path

_RUN = RunFolder("run")
_OWN = {one.name for one in vars(_RUN).values()} | set(REQUESTS)
"""Names that mean something in a run folder, also before there is such a file: `stop` would stop the run."""
_SIGNS_OF_A_RUN = (_RUN.events.name, _RUN.lock.name, _RUN.process.name)
"""One of them lies beside the spec of a run, but not beside a spec in a user's folder."""


def check_output(path: Path, option: str = "", *others: Path) -> None:
    """Raises InputError if no file may be written at `path`.

    `option` is the option that named it; `others` are inputs or other outputs.
    """
    name = _name_path(path, option)
    with output_errors(path, option):
        _check_kind(path, name)
    for other in map(user_path, others):
        if path.samefile(other) if path.exists() and other.exists() else path.resolve() == other.resolve():
            raise InputError("{name} is the input file, or another output; choose another file", name=name)
    run = _run_above(path.parent)
    if run is None:
        return
    if Path(os.path.realpath(path.parent)) != run:
        raise InputError(
            "{name} is inside the folder of the run {name_2}; choose a file outside it", name=name, name_2=run.name
        )
    if os.path.lexists(path) or path.name.lower() in _OWN:
        raise InputError(
            "{name} belongs to the run {name_2}; choose a new file, or one outside the run's folder",
            name=name,
            name_2=run.name,
        )


def check_appended(path: Path, option: str = "") -> None:
    """Raises InputError if rows cannot be appended to the file at `path`, which may already exist."""
    name = _name_path(path, option)
    with output_errors(path, option):
        _check_kind(path, name)
    if run := _run_above(path.parent):
        raise InputError(
            "{name} is in the folder of the run {name_2}; choose a file outside it", name=name, name_2=run.name
        )


def check_output_folder(folder: Path, option: str = "") -> None:
    """Raises InputError if `folder`, which will receive files, is a run's folder or inside one."""
    run = _run_above(folder)
    if run is not None:
        raise InputError(
            "{folder} is inside the folder of the run {name}; choose a folder outside it",
            folder=_name_path(folder, option),
            name=run.name,
        )


@contextmanager
def whole_file(path: Path, option: str = "", *others: Path) -> Iterator[Path]:
    """A temporary path to write to, renamed to `path` at the end. Raises InputError.

    On failure `path` stays as it was, and the temporary file is removed.
    """
    check_output(path, option, *others)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with output_errors(path, option, beside):
        beside.unlink(missing_ok=True)  # left by a process with the same ID, or a link planted there
        try:
            yield beside
            check_output(path, option, *others)  # it may have been made in the meantime
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def output_errors(path: Path, option: str = "", *written: Path) -> Iterator[None]:
    """Turn system errors into InputErrors that say what to do; an OSError about another file passes through."""
    try:
        yield
    except OSError as error:
        if not _is_about(error, (path, *written)):
            raise
        raise _write_error(error, _name_path(path, option)) from None


def _check_kind(path: Path, name: str) -> None:
    try:
        status = path.lstat()
    except ValueError:
        raise InputError("{path} is not a path, because it contains a NUL character", path=repr(str(path))) from None
    except (FileNotFoundError, NotADirectoryError):
        folder = path.absolute().parent
        if not folder.is_dir():
            raise InputError(
                "{name} cannot be written: the folder {folder} does not exist; create it first",
                name=name,
                folder=folder,
            ) from None
        return
    if stat.S_ISDIR(status.st_mode):
        raise InputError("{name} is a folder; choose a file in it", name=name)
    if stat.S_ISLNK(status.st_mode) and (path.is_file() or not path.exists()):
        raise InputError("{name} is a link; use the file it points to ({path})", name=name, path=os.path.realpath(path))
    if not stat.S_ISREG(status.st_mode):
        raise InputError("{name} is not a regular file; use a file on a disk", name=name)


def _run_above(folder: Path) -> Path | None:
    """The run folder that this is, or is inside."""
    real = Path(os.path.realpath(folder))
    return next((one for one in (real, *real.parents) if _is_run(one)), None)


def _is_run(folder: Path) -> bool:
    return os.path.lexists(folder / _RUN.spec.name) and any(os.path.lexists(folder / one) for one in _SIGNS_OF_A_RUN)


def _is_about(error: OSError, written: tuple[Path, ...]) -> bool:
    # Libraries that write into an open file name none; a folder's copy collects errors, which have no number.
    if error.filename is None or error.errno in (*NO_ROOM, errno.EROFS):
        return True
    name = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes | os.PathLike) else None
    return name is not None and any(name == one or one in name.parents for one in written)


def _write_error(error: OSError, name: str) -> InputError:
    number = error.errno or _number_of_a_copy(error)
    if number in NO_ROOM:
        return InputError(
            "{name} cannot be written: the disk is full; free up some space, or choose a file on another disk",
            name=name,
        )
    if number == errno.EROFS:
        return InputError("{name} cannot be written: the disk is read-only; choose a file on another disk", name=name)
    reason = error.strerror or (os.strerror(number) if number else message("the system refused the operation"))
    return InputError("{name} cannot be written: {reason}; choose another file", name=name, reason=reason.lower())


def _number_of_a_copy(error: OSError) -> int | None:
    """The errno of the first error that `shutil.copytree` collected, which keeps only their messages."""
    words = str(error)
    return next((number for number in (*NO_ROOM, errno.EROFS) if f"[Errno {number}]" in words), None)


def _name_path(path: Path, option: str) -> str:
    return message("{option}: {path}", option=option, path=path) if option else str(path)
