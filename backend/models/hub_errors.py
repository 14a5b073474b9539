"""What is said when the hub does not give what it was asked for: one sentence with the way out."""

from typing import Any
from urllib.parse import urlsplit

from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HTTPError,  # type: ignore[attr-defined]  # of whichever HTTP library the hub library was built on
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from backend.contract.errors import InputError
from backend.contract.messages import message

FIELD = "model.name_or_path"
_DISK_FULL = 28
_HERE = message("choose a model that is on this computer")


class HubTimeoutError(ConnectionError):
    """The hub was asked once and has not answered; `why` is the HTTP library's own error."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class InterruptedDownloadError(ConnectionError):
    """The connection ended before the file did, and further tries brought nothing."""


def model_mistake(name: str, revision: str, error: Exception) -> InputError:
    """Why the hub does not give a model."""
    if isinstance(error, GatedRepoError):
        text = message(
            "{name} is given only to people who accepted its terms; accept them on its page, then `hf auth login`",
            name=name,
        )
    elif isinstance(error, RevisionNotFoundError):
        return InputError(
            message(
                "model.revision: {name} has no revision {revision}; take main or a commit",
                name=name,
                revision=repr(revision),
            ),
            "model.revision",
        )
    elif isinstance(error, RepositoryNotFoundError) and "Invalid credentials" not in str(error):
        text = message(
            "the hub has no model {name} that you may see; check the name, or log in with `hf auth login`", name=name
        )
    elif getattr(error, "errno", None) == _DISK_FULL:
        text = message(
            "the disk is full while {name} is downloaded; free some space and start again, it goes on where it stopped",
            name=name,
        )
    elif isinstance(error, InterruptedDownloadError):
        text = message(
            "the hub cannot be reached any more while {name} is downloaded; what has arrived is kept, so "
            "start again when the network is back, and it goes on there",
            name=name,
        )
    else:
        text = _describe_status(error) or (
            message(
                "the hub cannot be reached for {name} ({error}); check the network, or give a folder",
                name=name,
                error=_kind(error),
            )
        )
    return InputError(message("{field}: {text}", field=FIELD, text=text), FIELD)


def search_mistake(error: Exception) -> InputError:
    """Why the hub cannot be searched."""
    if isinstance(error, MALFORMED) and not status_of(error):
        return InputError(
            message(
                "what answers at {endpoint} is no model hub, or speaks another language ({error}); check "
                "HF_ENDPOINT, or {here}",
                endpoint=constants.ENDPOINT,
                error=_kind(error),
                here=_HERE,
            )
        )
    return InputError(
        _describe_status(error)
        or message(
            "the hub cannot be reached ({error}); check the network, or {here} meanwhile",
            error=_kind(error),
            here=_HERE,
        )
    )


def offline() -> InputError:
    """Why nothing is asked at all."""
    return InputError(
        message("Burnish works offline, so the hub is not asked; switch that off in Settings, or {here}", here=_HERE)
    )


def status_of(error: Exception) -> int:
    """The HTTP status of the answer, 0 where there was none."""
    response: Any = getattr(error, "response", None)
    return int(getattr(response, "status_code", 0) or 0)


def _describe_status(error: Exception) -> str:
    """What an answer with a bad status means; empty where there was no answer."""
    status = status_of(error)
    if status == 401:
        return message("the hub does not accept your login any more (401); renew it with `hf auth login`, or log out")
    if status == 403:
        return message("the hub does not let you have this (403); ask its owner, or log in as someone who may")
    if status == 404:
        return _describe_not_found(error)
    if status == 429:
        return message(
            "the hub was asked too often (429); {error}, or log in, which allows more questions",
            error=_describe_wait(error),
        )
    if status >= 500:
        return message(
            "the hub has trouble of its own ({status}); try again in some minutes, or {here} meanwhile",
            status=status,
            here=_HERE,
        )
    return message("the hub refused the question ({status})", status=status) if status else ""


def _describe_not_found(error: Any) -> str:
    """Of a hub, of a file that it names, or of the host to which it leads for the file."""
    url, hub = urlsplit(str(error.response.url)), urlsplit(constants.ENDPOINT)
    if url.netloc != hub.netloc:
        return message(
            "the hub leads to {netloc} for a file, and it is not there (404); try again later, or {here}",
            netloc=url.netloc[:80],
            here=_HERE,
        )
    if "/resolve/" in url.path:
        name = url.path.rpartition("/")[2][:80]
        return message(
            "the hub names the file {name} and does not have it (404); try again later, or {here}",
            name=name,
            here=_HERE,
        )
    return message("there is no model hub at {endpoint} (404); check HF_ENDPOINT", endpoint=constants.ENDPOINT)


def _describe_wait(error: Any) -> str:
    seconds = str(error.response.headers.get("Retry-After", ""))
    return message("wait {seconds} seconds", seconds=seconds) if seconds.isdigit() else message("wait a minute")


def _kind(error: Exception) -> str:
    cause = error.why if isinstance(error, HubTimeoutError) else error
    return message("no answer in time") if "Timeout" in type(cause).__name__ else type(cause).__name__


ERRORS = (HTTPError, OSError)
"""What the hub library raises when the network or the hub fails."""
MALFORMED = (ValueError, TypeError, KeyError, AttributeError)
"""What comes of an answer that is none of a hub's."""
