"""Records which model code this user has approved, in one file in the configuration folder.

The window and the command line both write it; a process reads it again before it runs such code.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.places import config_folder
from backend.contract.run.folder import write_json
from backend.contract.run.lock import changing

_LATEST = 2.0**32
"""In the year 2106; a later timestamp is not a plausible time of approval, and may not fit into a date."""


@dataclass(frozen=True)
class CodeConsent:
    """Consent to one version of one model's code."""

    name: str
    """A hub id, or a folder."""
    version: str
    """The hub's commit; of a folder the digest of its code files."""
    code: str
    """The digest of the code files, without which a commit proves nothing: a cache may hold anything under its name."""
    agreed: float = 0.0
    """When, in seconds since 1970."""
    files: tuple[str, ...] = ()
    """Which files that were; empty in what older versions wrote."""
    origin: str = ""
    """Of a copy that Burnish made, such as a run's `model/`: whose code it copied. Withdrawn together."""


def path() -> Path:
    """Where the consents are kept."""
    return config_folder() / "consents.json"


def read() -> list[CodeConsent]:
    """All valid consents, by name; none if the file is missing or invalid."""
    try:
        kept = json.loads(path().read_text(encoding="utf-8"))["code"]
        found = [
            CodeConsent(**{**one, "agreed": float(one["agreed"]), "files": tuple(one.get("files", ()))}) for one in kept
        ]
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return []
    return sorted(filter(_is_sound, found), key=lambda one: (one.name, one.version))


def _is_sound(one: CodeConsent) -> bool:
    texts = (one.name, one.version, one.code, one.origin, *one.files)
    return all(isinstance(text, str) for text in texts) and 0 <= one.agreed < _LATEST


def changed_at() -> int:
    """A number that changes with the file, so that no model stays open after its consent is withdrawn."""
    try:
        return path().stat().st_mtime_ns
    except OSError:
        return 0


def agree(name: str, version: str, code: str, files: tuple[str, ...] = (), origin: str = "") -> None:
    """Record the consent. Raises InputError if it cannot be saved."""
    assert all((name, version, code)), "a consent to nothing in particular would be one to everything"

    def add_consent(kept: list[CodeConsent]) -> list[CodeConsent]:
        others = [one for one in kept if (one.name, one.version) != (name, version)]
        return [*others, CodeConsent(name, version, code, time.time(), files, origin)]

    _write(add_consent)


def withdraw(name: str, version: str) -> None:
    """Withdraw the consent, for copies of the code too. Raises InputError if that cannot be saved."""
    _write(lambda kept: _remove_consent(kept, name, version))


def _remove_consent(kept: list[CodeConsent], name: str, version: str) -> list[CodeConsent]:
    gone = [one for one in kept if (one.name, one.version) == (name, version)]
    while gone:
        codes = {(one.name, one.code) for one in gone}
        kept = [one for one in kept if one not in gone]
        gone = [one for one in kept if (one.origin, one.code) in codes]
    return kept


def covers(name: str, version: str, code: str) -> bool:
    """Whether exactly this version is approved."""
    return any((one.name, one.version, one.code) == (name, version, code) for one in read())


def _write(change: Callable[[list[CodeConsent]], list[CodeConsent]]) -> None:
    try:
        path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with changing(path()):  # window and command line may both agree to something
            write_json(path(), {"code": [asdict(one) for one in change(read())]}, mode=0o600)
    except OSError as error:
        raise InputError(
            "{path}: your approvals cannot be saved there: {strerror}; set BURNISH_CONFIG to a "
            "folder that you can write to",
            path=path(),
            strerror=error.strerror,
        ) from None
