"""Opens untrusted files: only regular files of bounded size, and in a run folder never through a link (stdlib only).

A path that the user names may be a link, because the hub's cache consists of links. Its target must be a regular
file: `/dev/zero`, a FIFO or a file of `/proc` would block or never end.
"""

import errno
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from backend.contract.errors import InputError
from backend.contract.messages import message

MB = 1_000_000
MAX_SPEC = 2 * MB
"""Of a spec, or another tool's configuration: thousands of labels take a few hundred kilobytes; parsed in two seconds."""
MAX_TEXT = 100 * MB
"""Of a text, template, chat or list of tokens that is read whole. `tokenize --counts` streams larger ones."""
MAX_VOCABULARY = 500 * MB
"""Of one file that is a tokenizer: those with a million pieces have 50 MB."""
MAX_JSON = 1000 * MB
"""Of one JSON document, whose values take ten times as much memory: SQuAD has 45 MB. JSON lines have no limit."""
LONGEST_LINE = 1 << 26
"""Characters of one line of data, which is in memory as a whole: the longest books have a fifth of that."""
LARGEST_UNPACKED = 1000 * MB
LARGEST_RATIO = 200
"""A packed file that unpacks to more than both was made to fill a disk: tables pack to a tenth, at best to a hundredth."""
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
"""A folder in which this user may open files by name need not be one that this user may list."""
_QUIET = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Opening a FIFO without a writer must not wait, and opening a terminal must not make it ours."""
_BINARY = getattr(os, "O_BINARY", 0)
_LINK_TAGS = (0xA000000C, 0xA0000003)
"""Windows' IO_REPARSE_TAG_SYMLINK and IO_REPARSE_TAG_MOUNT_POINT (a junction), which Python names there alone."""
LINK = message("it is a link, and links in a run folder are not followed; replace it with its target")
NOT_REGULAR = message("it is not a regular file; remove it, or use another run folder")
ANOTHER_NAME = message(
    "it also exists under another name (a hard link), which would change with it; replace it with a copy"
)
_ENDLESS = ("/proc", "/sys", "/dev")
"""File systems whose regular files are made up by the kernel as they are read."""


def user_path(text: str | Path) -> Path:
    """A user's path with `~` expanded; `~name` for an unknown user is kept, so that no file is found."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 (Path.expanduser fails where there is no such person)


def open_regular(path: Path, limit: int | None = None) -> IO[bytes]:
    """A regular file, opened for reading. Raises OSError, or InputError if it is not one or exceeds `limit` bytes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _QUIET | _BINARY)
    except ValueError:
        raise InputError("{path} is not a path, because it contains a NUL character", path=repr(str(path))) from None
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket cannot be opened at all
            raise InputError("{path} is not a regular file; use a file on a disk", path=path) from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_dev in _endless_devices():
            raise InputError("{path} is not a regular file; use a file on a disk", path=path)
        if limit is not None and status.st_size > limit:
            raise InputError(
                "{path} is too large ({st_size:,.0f} MB; at most {limit:,.0f} MB)",
                path=path,
                st_size=status.st_size / MB,
                limit=limit / MB,
            )
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, limit: int) -> bytes:
    """The whole content of a regular file of at most `limit` bytes. Raises OSError and InputError."""
    with open_regular(path, limit) as file:
        content = _read_at_most(file, limit)
    if len(content) > limit:  # it grew meanwhile
        raise InputError("{path} is too large (more than {limit:,.0f} MB)", path=path, limit=limit / MB)
    return content


def _read_at_most(file: IO[bytes], limit: int) -> bytes:
    """The whole content of a file, or the first `limit` + 1 bytes."""
    # A read of `limit` bytes would allocate them all for the smallest file.
    return file.read(min(limit, os.fstat(file.fileno()).st_size) + 1)


def _endless_devices() -> set[int]:
    found = set()
    for path in _ENDLESS:
        try:
            found.add(Path(path).stat().st_dev)
        except OSError:
            continue  # no such file system here
    return found - {Path("/").stat().st_dev}


def max_unpacked(packed: int) -> int:
    """Bytes that a file of `packed` bytes may unpack to."""
    return max(LARGEST_UNPACKED, LARGEST_RATIO * packed)


def is_file_name(value: object) -> bool:
    """Whether it is a plain file name, without a path to another folder."""
    separators = "/\\\0:" if os.name == "nt" else "/\\\0"
    return isinstance(value, str) and value not in ("", ".", "..") and not set(separators) & set(value)


def check_inside(path: Path, folder: Path) -> None:
    """Raises InputError if a file found in `folder` is really outside it, because of a link.

    The folder itself may be a link, because the user named it. In a hub snapshot, links lead to the blobs beside it.
    """
    if leads_out(path, folder):
        raise InputError(
            "{path} is a link that points outside {folder}; use its target, or copy it there", path=path, folder=folder
        )


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a file found in `folder` is really elsewhere; the blobs of a hub cache snapshot do not count."""
    real, found = (Path(os.path.realpath(one)) for one in (folder, path))  # Path.resolve fails on a link to itself
    blobs = [one.parent / "blobs" for one in (real, *real.parents) if one.name == "snapshots"]
    return not any(found.is_relative_to(one) for one in (real, *blobs))


def open_inside(folder: Path, name: str, flags: int, mode: int = 0o644) -> int:
    """A descriptor of the regular file `name` (may be `a/b`) below `folder`, without following links.

    `folder` itself may be reached through links, because the user named it. Raises OSError with an apt `strerror` if
    `name` leads elsewhere, a part of it is a link (or a junction on Windows), the file is not regular, or it is to be
    written and is also a hard link to another name.
    """
    parts = tuple(name.split("/"))
    if not all(map(is_file_name, parts)):
        raise OSError(errno.EINVAL, "it is not the name of a file below this folder", name)
    empties = flags & os.O_TRUNC
    descriptor = _open_inside(folder, parts, flags & ~os.O_TRUNC, mode)  # not before it is known what would be emptied
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, NOT_REGULAR, str(folder / name))
        if flags & (os.O_WRONLY | os.O_RDWR) and status.st_nlink > 1:
            raise OSError(errno.EMLINK, ANOTHER_NAME, str(folder / name))
        if empties:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _open_inside(folder: Path, parts: tuple[str, ...], flags: int, mode: int) -> int:
    if os.open not in os.supports_dir_fd:
        _refuse_links(folder, parts)
        return os.open(folder.joinpath(*parts), flags | _BINARY, mode)
    with _folder_inside(folder, parts[:-1]) as parent:
        try:
            return os.open(parts[-1], flags | _NO_FOLLOW | _QUIET, mode, dir_fd=parent)
        except OSError:
            _refuse_link(parts[-1], parent, folder.joinpath(*parts))
            raise


def open_unlinked(path: Path) -> IO[bytes]:
    """A file of a run folder, opened for reading. Raises OSError, also if `path` itself is a link."""
    return os.fdopen(open_inside(path.parent, path.name, os.O_RDONLY), "rb")


def read_unlinked(path: Path, limit: int) -> bytes:
    """The whole content of a run folder's file, up to `limit` bytes. Raises OSError."""
    with open_unlinked(path) as file:
        content = _read_at_most(file, limit)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it is too large (more than {limit / MB:,.0f} MB)", str(path))
    return content


def write_whole(path: Path, content: bytes, mode: int = 0o666, *, durable: bool = True) -> None:
    """Write a temporary file, flush it, rename it: readers see the old or the new file. Never follows a link.

    Without `durable` it is not flushed to the disk, which is quick, but a power failure may leave an empty file.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)  # left by a process with the same ID, or a link planted there
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def check_folder(folder: Path, written: Collection[str] = ()) -> None:
    """Raises InputError if anything below `folder` is neither a folder nor a regular file, such as a link.

    Files named in `written` will be written in place, so they must not have another name elsewhere (a hard link).
    Entries that cannot be inspected are kept; opening them reports the error.
    """
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            with suppress(FileNotFoundError):  # of a run that is going on
                if _check_entry(entry, written):
                    folders.append(Path(entry.path))


def _check_entry(entry: "os.DirEntry[str]", written: Collection[str]) -> bool:
    """Whether the entry is a folder to descend into."""
    status = entry.stat(follow_symlinks=False)
    if _is_link(status):
        raise InputError("{path}: {problem}", path=entry.path, problem=LINK)
    if stat.S_ISDIR(status.st_mode):
        return True
    if not stat.S_ISREG(status.st_mode):
        raise InputError("{path}: {problem}", path=entry.path, problem=NOT_REGULAR)
    # Queried again: on Windows a directory entry does not know how many hard links its file has.
    if entry.name in written and Path(entry.path).lstat().st_nlink > 1:
        raise InputError("{path}: {problem}", path=entry.path, problem=ANOTHER_NAME)
    return False


@contextmanager
def _folder_inside(folder: Path, parts: tuple[str, ...]) -> Iterator[int]:
    descriptor = os.open(folder, _DIRECTORY)
    try:
        for number, part in enumerate(parts):
            try:
                inner = os.open(part, _DIRECTORY | _NO_FOLLOW, dir_fd=descriptor)
            except OSError:
                _refuse_link(part, descriptor, folder.joinpath(*parts[: number + 1]))
                raise
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_link(name: str, parent: int, path: Path) -> None:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return
    if _is_link(status):
        raise OSError(errno.ELOOP, LINK, str(path)) from None


def _refuse_links(folder: Path, parts: tuple[str, ...]) -> None:
    for number in range(len(parts)):
        path = folder.joinpath(*parts[: number + 1])
        try:
            status: Any = path.lstat()
        except OSError:
            return
        if _is_link(status):
            raise OSError(errno.ELOOP, LINK, str(path))


def _is_link(status: Any) -> bool:
    # Of Windows, where placeholders of OneDrive are reparse points too, and lead nowhere else.
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) in _LINK_TAGS
