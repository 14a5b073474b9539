"""Downloads data archives, resuming after an interruption, and unpacks them safely."""

import gzip
import http
import http.client
import json
import lzma
import re
import shutil
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zlib
from functools import partial
from pathlib import Path, PurePosixPath

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import LARGEST_RATIO, LARGEST_UNPACKED, MB, max_unpacked
from backend.data import network_limits
from backend.data.network_limits import SlowServerError
from backend.data.sources.source import Report

SECONDS_TO_ANSWER = 60
_BLOCK = 1 << 18
_ATTEMPTS, _PROGRESS = 5, 1 << 16
"""Connections in a row that bring next to nothing, and what is more than that in bytes, before giving up."""
_BROKEN = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError)
_DAMAGED = (
    tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, ValueError, OverflowError, RecursionError
)  # fmt: skip
"""The last three come of numbers in a tar's headers that cannot be, and of thousands of headers before one file."""
_HEADERS = (
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE
)  # fmt: skip


class DownloadError(Exception):
    """The archive could not be downloaded; the text says why, in a few words."""


def fetch(address: str, path: Path, report: Report) -> None:
    """Download `address` (http or https) to `path`; `report` receives the bytes so far and may raise to stop.

    A partial download is kept as `.part`, and the next call resumes it if the server says that the file has
    not changed. Raises DownloadError, and InputError for any other kind of address.
    """
    _check_address(address)
    part = path.with_name(f"{path.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    failures, reason = 0, ""
    while failures < _ATTEMPTS:
        before = _size(part)
        try:
            if _fetch_rest(address, part, report):
                part.replace(path)
                _tag_of(part).unlink(missing_ok=True)
                return
            reason = message("the connection was lost")
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise DownloadError(
                    message("the server responded with {code} {reason}", code=error.code, reason=error.reason)
                ) from None
            part.unlink()  # it holds more than the file does, so it was another file
        except SlowServerError:
            raise DownloadError(message("the server responded too slowly")) from None
        except _BROKEN as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        failures = 0 if _size(part) - before >= _PROGRESS else failures + 1
    raise DownloadError(reason)


def _check_address(address: str) -> None:
    try:
        parts = urllib.parse.urlsplit(address)
        _ = (parts.hostname or "").encode("idna"), parts.port
    except ValueError as error:
        raise InputError(
            "{address} is not a valid URL ({error}); correct it", address=address[:200], error=error
        ) from None
    if parts.scheme not in ("http", "https"):
        raise InputError(
            "{address}: archives can only be downloaded from URLs that start with https:// or http://",
            address=address,
        )


def _web() -> urllib.request.OpenerDirector:
    """Opens only http and https: a redirect must not lead to FTP, which `urlopen` would follow."""
    web = urllib.request.OpenerDirector()
    for kind in (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler, urllib.request.UnknownHandler,
        urllib.request.HTTPRedirectHandler, urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor,
    ):  # fmt: skip
        web.add_handler(kind())
    return web


def _size_of_rest(answer: http.client.HTTPResponse, folder: Path) -> int | None:
    """The remaining bytes according to the server; None if unknown. Raises DownloadError for an impossible size."""
    declared = answer.headers.get("Content-Length")
    if declared is not None and not re.fullmatch(r"[0-9]{1,18}", declared.strip()):
        raise DownloadError(message("the server reported an invalid size: {said}", said=repr(declared[:80])))
    free = shutil.disk_usage(folder).free
    if declared is not None and int(declared) > free:
        raise DownloadError(
            message(
                "it needs another {said:,.0f} MB, but the disk only has room for {free:,.0f} MB",
                said=int(declared) / MB,
                free=free / MB,
            )
        )
    return None if declared is None else int(declared)


def _fetch_rest(address: str, part: Path, report: Report) -> bool:
    """Append what is missing, or start over; returns whether the file is complete."""
    headers = {"User-Agent": "burnish", "Accept-Encoding": "identity"}
    tag = _read_tag(part)
    if tag and _size(part):
        headers |= {"Range": f"bytes={_size(part)}-", "If-Range": tag}
    request = urllib.request.Request(address, headers=headers)
    with network_limits.run_in_time(lambda: _web().open(request, timeout=SECONDS_TO_ANSWER)) as answer:
        continues = answer.status == http.HTTPStatus.PARTIAL_CONTENT
        done = _size(part) if continues else 0
        rest = _size_of_rest(answer, part.parent)
        total = done + (rest or 0)
        _tag_of(part).write_text(json.dumps(answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""))
        with part.open("ab" if continues else "wb") as file:
            for block in network_limits.limit_stalls(iter(partial(answer.read1, _BLOCK), b"")):
                file.write(block)
                done += len(block)
                if rest is None and done > LARGEST_UNPACKED:
                    raise DownloadError(
                        message(
                            "the server did not report a size and sent more than {largest_unpacked:,.0f} MB",
                            largest_unpacked=LARGEST_UNPACKED / MB,
                        )
                    )
                report(done, total, "bytes")
    return done >= total


def _tag_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.tag")


def _read_tag(part: Path) -> str:
    """The server's ETag for this version of the file; a weak one is not reliable enough to resume."""
    try:
        tag = json.loads(_tag_of(part).read_text())
    except (OSError, ValueError):
        return ""
    return "" if tag.startswith("W/") else tag


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


class _Member(tarfile.TarInfo):
    """Rejects a header of gigabytes (a long name or extended attributes), which the library would read at once."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Member":
        """As for any member. Raises ReadError."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _HEADERS and found.size > MB:
            raise tarfile.ReadError(message("a header of more than 1 MB"))
        return found


def unpack(archive: Path, folder: Path, wanted: re.Pattern[str], report: Report) -> list[str]:
    """Extract the files of a tar archive (compressed or not) whose base names are `wanted` into `folder`, side by side.

    Their folders in the archive are dropped. Raises InputError if the archive is damaged, if any of its names
    leads out of a folder, or if a wanted name is a link or occurs twice.
    """
    found: list[str] = []
    size, unpacked = archive.stat().st_size, 0
    try:
        with tarfile.open(archive, tarinfo=_Member) as tar:
            for member in tar:
                _check_name(member, archive)
                unpacked += member.size
                if unpacked > max_unpacked(size):
                    raise InputError(
                        "{name} unpacks to more than {largest_ratio} times its size, so it was not unpacked",
                        name=archive.name,
                        largest_ratio=LARGEST_RATIO,
                    )
                name = PurePosixPath(member.name).name
                if member.isdir() or not wanted.fullmatch(name):
                    continue
                _check_file(member, archive, name in found)
                _extract(tar, member, folder)
                found.append(name)
                report(member.offset_data + member.size, size, "bytes")
    except InputError:
        raise
    except _DAMAGED as damage:
        error = str(damage).split("\n")[0].rstrip(":")  # the library adds a line for each way of packing that it tried
        raise InputError(
            "{name} is not a tar archive, or it is damaged ({error}); download it again", name=archive.name, error=error
        ) from None
    return found


def _check_name(member: tarfile.TarInfo, archive: Path) -> None:
    parts = re.split(r"[/\\]", member.name)
    if member.name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        raise InputError(
            "{name} contains {name_2}, which would be written outside its folder, so it was not "
            "unpacked; get the archive from a source that you trust",
            name=archive.name,
            name_2=repr(member.name),
        )


def _check_file(member: tarfile.TarInfo, archive: Path, twice: bool) -> None:
    if not member.isfile():
        raise InputError(
            "{name} contains {name_2} as a link or device, not a file, so it was not unpacked",
            name=archive.name,
            name_2=repr(member.name),
        )
    if twice:
        raise InputError(
            "{name} contains {name_2} twice; unpack it by hand and use the folder",
            name=archive.name,
            name_2=PurePosixPath(member.name).name,
        )


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    member.name = PurePosixPath(member.name).name
    tar.extract(member, folder, filter="data")
