"""Downloads one hub file in parts: what has arrived is kept, and the next attempt resumes after it.

The hub library discards the data of an interrupted download. So large files are downloaded here, by byte ranges,
to where its cache stores file contents (`blobs/`, named by their ETag); the library then only links them.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout
from huggingface_hub import constants, get_hf_file_metadata, get_session, hf_hub_url
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.data.hub_answers import check_digest, install_limits, start_digests
from backend.models.hub_errors import FIELD, InterruptedDownloadError, status_of

PART = ".burnish-part"
"""Ending of a file that is not whole yet, beside the content of whole ones."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 8.0)
"""Seconds before each further try when nothing new has arrived."""
SECONDS = 30.0
"""Without a byte for so long the connection counts as broken."""
_PROGRESS = 1 << 16
"""Bytes that a connection must deliver (or complete the file) to reset the number of retries."""
_PASSING = (403, 408, 429, 500, 502, 503, 504)
"""Statuses that may be others at the next try; the address that a file is fetched from expires with a 403."""

Arrived = Callable[[int], None]
"""Called with the bytes of the file that are here; it may raise to stop."""


@dataclass(frozen=True)
class RemoteFile:
    """One file of a repository at a commit."""

    repository: str
    commit: str
    name: str
    size: int


def storage(repository: str) -> Path:
    """Where the hub library stores a model."""
    return Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}"


def started_bytes(repository: str) -> int:
    """The bytes in a model's unfinished downloads."""
    return sum(part.stat().st_size for part in (storage(repository) / "blobs").glob(f"*{PART}"))


def fetch(file: RemoteFile, arrived: Arrived) -> int:
    """Download the file's content to the cache; returns the bytes that came over the network.

    Raises the hub library's errors, InterruptedDownloadError after several empty tries, InputError for damaged files.
    """
    install_limits()
    url = hf_hub_url(file.repository, file.name, revision=file.commit)
    etag = check_digest(get_hf_file_metadata(url, timeout=SECONDS).etag)
    blob = storage(file.repository) / "blobs" / etag
    lock = Path(constants.HF_HUB_CACHE) / ".locks" / storage(file.repository).name / f"{etag}.lock"
    for folder in (blob.parent, lock.parent):
        folder.mkdir(parents=True, exist_ok=True)
    part = blob.with_name(blob.name + PART)
    with _hold_lock(lock, part, arrived):
        if blob.exists():
            arrived(file.size)
            return 0
        content = _PartialFile(part, file)
        before = content.size
        _fetch_all(url, content, arrived)
        content.check(etag)
        part.replace(blob)
        return file.size - before


@contextmanager
def _hold_lock(path: Path, part: Path, arrived: Arrived) -> Iterator[None]:
    """Take the lock; while another process downloads the same file, report its progress."""
    lock = FileLock(path)
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0.5)
        except Timeout:
            arrived(part.stat().st_size if part.exists() else 0)
    try:
        yield
    finally:
        lock.release()


class _PartialFile:
    """The downloaded part of a file, and its checksum so far."""

    def __init__(self, path: Path, file: RemoteFile) -> None:
        self._path, self._file = path, file
        self.size, self._sums = 0, start_digests(file.size)
        if path.exists():
            self._read_again()

    @property
    def is_whole(self) -> bool:
        return self.size == self._file.size

    def forget(self) -> None:
        """Discard the part: it is not the start of the file."""
        self._path.unlink(missing_ok=True)
        self.size, self._sums = 0, start_digests(self._file.size)

    def open(self) -> IO[bytes]:
        return self._path.open("ab")

    def add(self, target: IO[bytes], piece: bytes) -> None:
        if self.size + len(piece) > self._file.size:
            self.forget()
            raise _mismatch_error(self._file)
        target.write(piece)
        self._count(piece)

    def check(self, etag: str) -> None:
        """Raises InputError if the content does not match the hub's digest."""
        known = {found.hexdigest() for found in self._sums if 2 * found.digest_size == len(etag)}
        if not self.is_whole or (known and etag.lower() not in known):
            self.forget()
            raise _mismatch_error(self._file)

    def _read_again(self) -> None:
        if self._path.stat().st_size > self._file.size:
            self.forget()
            return
        with self._path.open("rb") as source:
            while piece := source.read(1 << 20):
                self._count(piece)

    def _count(self, piece: bytes) -> None:
        for found in self._sums:
            found.update(piece)
        self.size += len(piece)


def _mismatch_error(file: RemoteFile) -> InputError:
    return InputError(
        "{field}: the downloaded {name} does not match the size or checksum on the Hub, so it was discarded; "
        "download it again",
        FIELD,
        field=FIELD,
        name=file.name,
    )


def _fetch_all(url: str, content: _PartialFile, arrived: Arrived) -> None:
    tries = 0
    arrived(content.size)
    while not content.is_whole:
        before = content.size
        try:
            _fetch_on(url, content, arrived)
        except (HTTPError, InterruptedDownloadError) as error:
            tries = 0 if content.size - before >= _PROGRESS else tries + 1
            if status_of(error) and status_of(error) not in _PASSING:
                raise
            if tries >= len(PAUSES):
                raise error if status_of(error) else InterruptedDownloadError(str(error)) from error
            time.sleep(PAUSES[tries])


def _fetch_on(url: str, content: _PartialFile, arrived: Arrived) -> None:
    """Download from the end of the content to the end of the file or connection."""
    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if content.size:
        headers["Range"] = f"bytes={content.size}-"
    client: Any = get_session()
    with client.stream("GET", url, headers=headers, follow_redirects=True, timeout=SECONDS) as response:
        if response.status_code == 416:
            content.forget()
            raise InterruptedDownloadError(message("the file is shorter than the part that was already downloaded"))
        hf_raise_for_status(response)
        if content.size and not _is_resumed(response, content.size):
            content.forget()  # the server does not support ranges and starts over
        with content.open() as target:
            for piece in response.iter_bytes():
                content.add(target, piece)
                arrived(content.size)
    if not content.is_whole:
        raise InterruptedDownloadError(message("the connection closed after {size:,} bytes", size=content.size))


def _is_resumed(response: Any, start: int) -> bool:
    return response.status_code == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")


def free_bytes() -> int:
    """Free bytes on the disk of the hub library's cache."""
    folder = Path(constants.HF_HUB_CACHE)
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
