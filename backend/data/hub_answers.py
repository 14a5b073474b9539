"""Checks every name in a hub's answer before it becomes a path, and never sends the user's token elsewhere.

The hub library names files as the server says: content by its ETag, snapshots by their commit. So each
answer is checked here first, for any purpose: downloads, tokenizers, data sets. Any server can be a hub (HF_ENDPOINT).
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from huggingface_hub import constants, set_client_factory
from huggingface_hub.utils._http import default_client_factory

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import MAX_VOCABULARY, MB, read_regular
from backend.data import network_limits
from backend.data.network_limits import SlowServerError

_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"[0-9a-fA-F]{32,128}")
_LISTING = re.compile(r"/api/(models|datasets|spaces)/")
_CONTENT_HEADERS = ("X-Linked-ETag", "ETag")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_LONGEST_PART, _LONGEST_NAME = 255, 1000
"""Bytes of a file's name, and of its path in the repository."""
_LARGEST_SIZE = 10**15
"""Bytes that no file of a hub has."""
MAX_ANSWER = 50 * MB
"""Bytes of a reply that is not a file: the list of a repository with 100,000 files has about 20 MB."""
_installed: list[bool] = []


def install_limits() -> None:
    """From now on, check every answer that the hub library receives in this process."""
    if not _installed:
        _installed.append(True)
        set_client_factory(client)


def check_commit(commit: Any) -> str:
    """Check a git commit hash. Raises InputError."""
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        raise _refuse("commit", commit)
    return commit


def check_digest(digest: Any) -> str:
    """Check a file's digest, which names its content. Raises InputError."""
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise _refuse("ETag", digest)
    return digest


def check_file_name(name: Any) -> str:
    """Check a file's path in its repository, such as `folder/file.json`. Raises InputError if it leads out of it."""
    parts = name.split("/") if isinstance(name, str) else []
    sound = bool(parts) and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME and all(map(_is_part, parts))
    if not sound:
        raise _refuse(message("file name"), name)
    return name


def check_revision(revision: str, field: str = "model.revision") -> str:
    """Check a requested branch, tag or commit, which becomes a path in the cache. Raises InputError."""
    try:
        return check_file_name(revision)
    except InputError:
        raise InputError(
            "{field}: {revision} is not a branch, tag or commit; use main",
            field,
            field=field,
            revision=repr(revision[:80]),
        ) from None


def start_digests(size: int) -> "tuple[hashlib._Hash, ...]":
    """Digests for a file's content: SHA-256 names large files; git's SHA-1 (on some mirrors plain SHA-1) small ones."""
    blob = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    return hashlib.sha256(), blob, hashlib.sha1(usedforsecurity=False)


def check_content(snapshot: Path, patterns: Iterable[str]) -> None:
    """Compare a snapshot's small files with the digests that name them in the hub library's cache.

    Raises InputError for a file that does not match its digest, and removes it from the cache.
    """
    for path in sorted({path for pattern in patterns for path in snapshot.rglob(pattern)}):
        if not path.is_symlink() or not path.is_file():
            continue  # without links (on Windows) a file has no digest as its name
        blob = path.resolve()
        content = read_regular(blob, MAX_VOCABULARY)
        found = start_digests(len(content))
        for each in found:
            each.update(content)
        known = {each.hexdigest() for each in found if 2 * each.digest_size == len(blob.name)}
        if known and blob.name.lower() not in known:
            path.unlink()
            blob.unlink()
            raise InputError(
                "the downloaded {name} does not match the size or checksum on the Hub, so it was discarded; "
                "download it again",
                name=path.name,
            )


def _is_part(part: str) -> bool:
    if part in ("", ".", "..") or "\\" in part or _CONTROL.search(part) or "\ud800" <= max(part) <= "\udfff":
        return False
    if len(part.encode()) > _LONGEST_PART:
        return False
    return os.name != "nt" or not (_RESERVED.fullmatch(part) or set('<>:"|?*') & set(part) or part[-1] in ". ")


def client() -> Any:
    """The HTTP client for the hub library."""
    made: Any = default_client_factory()
    made.timeout = network_limits.SILENT_SECONDS
    made.send = _limit_time(made.send)
    hooks = made.event_hooks
    made.event_hooks = {
        "request": [*hooks["request"], _keep_token, _ask_for_plain_answer, _limit_silence],
        "response": [*hooks["response"], _check_answer],
    }
    return made


def _keep_token(request: Any) -> None:
    """Remove the token from requests to any host but the hub: a redirect or next page may lead anywhere."""
    own, origins = urlsplit(constants.ENDPOINT), urlsplit(str(request.url))
    is_endpoint = (own.scheme, own.netloc) == (origins.scheme, origins.netloc)
    is_hub = origins.scheme == "https" and f".{origins.hostname}".endswith((".huggingface.co", ".hf.co"))
    if not (is_endpoint or is_hub):
        request.headers.pop("Authorization", None)


def _ask_for_plain_answer(request: Any) -> None:
    request.headers["Accept-Encoding"] = "identity"  # a few packed kilobytes could become gigabytes


def _limit_silence(request: Any) -> None:
    """Set a read timeout: the hub library has none for some of its requests."""
    bounds = request.extensions.get("timeout", {})
    request.extensions["timeout"] = {
        what: network_limits.SILENT_SECONDS if seconds is None else seconds for what, seconds in bounds.items()
    }


def _limit_time(send: Callable[..., Any]) -> Callable[..., Any]:
    """The same, with a limit on everything before the body, including redirects and headers."""

    def send_in_time(request: Any, *, stream: bool = False, **options: Any) -> Any:
        try:
            response = network_limits.run_in_time(lambda: send(request, stream=True, **options))
        except SlowServerError:
            raise _too_slow_error() from None
        if not stream:
            with closing(response):
                response.read()
        return response

    return send_in_time


def _is_answer(request: Any) -> bool:
    """Whether the response is an API answer, read into memory, and not a file."""
    return request.url.path.startswith("/api/")


def _limit_body(response: Any) -> None:
    """Limit the body's size and time as it arrives, whatever length the server declares."""
    pieces = response.iter_raw
    is_file = response.is_success and not _is_answer(response.request)
    pace = network_limits.limit_stalls if is_file else network_limits.limit_total_time

    def limit_size(*given: Any) -> Iterator[bytes]:
        count = 0
        try:
            for piece in pace(pieces(*given)):
                count += len(piece)
                if count > MAX_ANSWER and not is_file:
                    raise _too_large_error()
                yield piece
        except SlowServerError:
            raise _too_slow_error() from None

    response.iter_raw = limit_size


def _check_is_plain(response: Any) -> None:
    has_body = response.request.method != "HEAD" and not response.is_redirect
    if has_body and response.headers.get("Content-Encoding", "identity") != "identity":
        raise _refuse(message("compressed response"), response.headers["Content-Encoding"])


def _check_size(response: Any) -> None:
    """Check a file's size before the hub library reserves space; over 50 GB it must come in parts (Xet)."""
    declared = response.headers.get(constants.HUGGINGFACE_HEADER_X_LINKED_SIZE, "0")
    is_in_parts = constants.HUGGINGFACE_HEADER_X_XET_HASH in response.headers
    if not re.fullmatch(r"[0-9]{1,15}", declared) or (
        int(declared) > constants.MAX_HTTP_DOWNLOAD_SIZE and not is_in_parts
    ):
        raise _refuse(message("file size"), declared)


def _check_length(response: Any) -> None:
    declared = response.headers.get("Content-Length", "0")
    if not re.fullmatch(r"[0-9]{1,18}", declared) or int(declared) > MAX_ANSWER:
        raise _too_large_error()


def _too_slow_error() -> InputError:
    return InputError(
        "the Hub at {endpoint} responds too slowly; check the network and HF_ENDPOINT and try "
        "again, or choose a model that is on this computer",
        endpoint=constants.ENDPOINT,
    )


def _too_large_error() -> InputError:
    return InputError(
        "the Hub at {endpoint} sent a response of more than {max_answer:,.0f} MB, so it was "
        "discarded; check HF_ENDPOINT, or choose a model that is on this computer",
        endpoint=constants.ENDPOINT,
        max_answer=MAX_ANSWER / MB,
    )


def _check_answer(response: Any) -> None:
    path = response.request.url.path
    _limit_body(response)
    _check_is_plain(response)
    if _is_answer(response.request):
        _check_length(response)
    commit = response.headers.get(constants.HUGGINGFACE_HEADER_X_REPO_COMMIT)
    if commit is not None:
        check_commit(commit)
    if "/resolve/" in path and response.request.method == "HEAD" and response.status_code < 400:
        _check_size(response)
        for name in _CONTENT_HEADERS:
            if (digest := response.headers.get(name)) is not None:
                check_digest(digest.removeprefix("W/").strip('"'))
    if _LISTING.match(path) and response.headers.get("Content-Type", "").startswith("application/json"):
        response.read()
        try:
            found = response.json()
        except (ValueError, RecursionError):
            return  # the caller says that this is not an answer from a hub
        _check_listing(found)


def _check_listing(found: Any) -> None:
    """Check the names in a repository's description or file list."""
    for entry in _entries(found):
        if (name := entry.get("rfilename", entry.get("path"))) is not None:
            check_file_name(name)
        for digest in (entry.get("oid"), entry.get("blobId"), _lfs_value(entry, "oid"), _lfs_value(entry, "sha256")):
            if digest is not None:
                check_digest(digest)
        for size in (entry.get("size"), _lfs_value(entry, "size")):
            if isinstance(size, int | float) and not 0 <= size < _LARGEST_SIZE:
                raise _refuse(message("file size"), size)
    if isinstance(found, dict) and found.get("sha") is not None:
        check_commit(found["sha"])
    for ref in _refs(found):
        check_commit(ref.get("targetCommit"))


def _entries(found: Any) -> Iterator[dict]:
    files = found if isinstance(found, list) else found.get("siblings") if isinstance(found, dict) else None
    is_search = isinstance(found, list) and any(isinstance(entry, dict) and "id" in entry for entry in found)
    for entry in files if isinstance(files, list) and not is_search else ():
        if isinstance(entry, dict):
            yield entry


def _lfs_value(entry: dict, key: str) -> Any:
    lfs = entry.get("lfs")
    return lfs.get(key) if isinstance(lfs, dict) else None


def _refs(found: Any) -> Iterator[dict]:
    for kind in ("branches", "tags", "converts", "pullRequests") if isinstance(found, dict) else ():
        refs = found.get(kind)
        yield from (ref for ref in refs if isinstance(ref, dict)) if isinstance(refs, list) else ()


def _refuse(kind: str, value: Any) -> InputError:
    return InputError(
        "the Hub at {endpoint} sent an invalid {kind} ({value}), so its response was discarded; "
        "check HF_ENDPOINT, or choose a model that is on this computer",
        endpoint=constants.ENDPOINT,
        kind=kind,
        value=repr(str(value)[:80]),
    )
