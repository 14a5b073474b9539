"""Owns archives of data: fetched over HTTP so that an interruption costs nothing, and unpacked so that nothing escapes."""

import http
import http.client
import json
import lzma
import re
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zlib
from pathlib import Path, PurePosixPath

from backend.contract.errors import InputError
from backend.contract.safe_files import LARGEST_RATIO, most_unpacked
from backend.data.sources.source import Report

SECONDS_TO_ANSWER = 60
_BLOCK = 1 << 18
_ATTEMPTS = 5
"""Connections in a row that bring nothing new before giving up."""
_BROKEN = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError)


class Unreachable(Exception):
    """The archive could not be fetched; the text says why, in a few words."""


def fetch(address: str, path: Path, report: Report) -> None:
    """Bring what `address` (http or https) holds to `path`; `report` is told of bytes and may raise to stop.

    What has come lies beside as `.part`, and another call goes on where it stopped, if the server says that the file is
    still the same. Raises Unreachable, and InputError for an address of another kind.
    """
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise InputError(f"{address}: an archive is fetched from an address that begins with https:// or http://")
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
            reason = "the connection broke"
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise Unreachable(f"the server answers {error.code} {error.reason}") from None
            part.unlink()  # it holds more than the file does, so it was another file
        except _BROKEN as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        failures = 0 if _size(part) > before else failures + 1
    raise Unreachable(reason)


def _fetch_rest(address: str, part: Path, report: Report) -> bool:
    """Append what is missing, or begin anew; whether all of it is there now."""
    headers = {"User-Agent": "burnish", "Accept-Encoding": "identity"}
    tag = _read_tag(part)
    if tag and _size(part):
        headers |= {"Range": f"bytes={_size(part)}-", "If-Range": tag}
    request = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(request, timeout=SECONDS_TO_ANSWER) as answer:
        continues = answer.status == http.HTTPStatus.PARTIAL_CONTENT
        done = _size(part) if continues else 0
        total = done + int(answer.headers.get("Content-Length") or 0)
        _tag_of(part).write_text(json.dumps(answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""))
        with part.open("ab" if continues else "wb") as file:
            while block := answer.read1(_BLOCK):
                file.write(block)
                done += len(block)
                report(done, total, "bytes")
    return done >= total


def _tag_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.tag")


def _read_tag(part: Path) -> str:
    """What the server called this version of the file; a weak tag promises too little to go on from."""
    try:
        tag = json.loads(_tag_of(part).read_text())
    except (OSError, ValueError):
        return ""
    return "" if tag.startswith("W/") else tag


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def unpack(archive: Path, folder: Path, wanted: re.Pattern[str], report: Report) -> list[str]:
    """Put the files of a tar archive (compressed or not) whose own names are `wanted` into `folder`, side by side.

    Their folders in the archive are left out. Raises InputError where the archive is damaged, where any of its names
    leads out of a folder, where a wanted name is a link, or stands there twice.
    """
    found: list[str] = []
    size, unpacked = archive.stat().st_size, 0
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                _check_name(member, archive)
                unpacked += member.size
                if unpacked > most_unpacked(size):
                    raise InputError(
                        f"{archive.name} unpacks to more than {LARGEST_RATIO} times its size; it is not unpacked"
                    )
                name = PurePosixPath(member.name).name
                if member.isdir() or not wanted.fullmatch(name):
                    continue
                _check_file(member, archive, name in found)
                _extract(tar, member, folder)
                found.append(name)
                report(member.offset_data + member.size, size, "bytes")
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(f"{archive.name} is no tar archive, or it is damaged ({error}); fetch it again") from None
    return found


def _check_name(member: tarfile.TarInfo, archive: Path) -> None:
    parts = re.split(r"[/\\]", member.name)
    if member.name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        raise InputError(
            f"{archive.name} holds {member.name!r}, which would be written outside its folder; it is not unpacked, "
            "so take the archive from a source that you trust"
        )


def _check_file(member: tarfile.TarInfo, archive: Path, twice: bool) -> None:
    if not member.isfile():
        raise InputError(f"{archive.name} holds {member.name!r} as a link or device and no file; it is not unpacked")
    if twice:
        raise InputError(
            f"{archive.name} holds {PurePosixPath(member.name).name} twice; unpack it by hand and name the folder"
        )


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    member.name = PurePosixPath(member.name).name
    tar.extract(member, folder, filter="data")
