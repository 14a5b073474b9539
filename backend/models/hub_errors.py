"""Messages for failed hub requests: one sentence that says what to do."""

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
from backend.contract.messages import message, plural

FIELD = "model.name_or_path"
_DISK_FULL = 28
_ALTERNATIVE = message("choose a model that is on this computer")


class HubTimeoutError(ConnectionError):
    """The hub did not answer a request in time; `why` is the HTTP library's own error."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class InterruptedDownloadError(ConnectionError):
    """The connection ended before the file did, and retries received nothing."""


def model_mistake(name: str, revision: str, error: Exception, field: str = FIELD) -> InputError:
    """Why the hub does not provide a model, or the tokenizer of one."""
    if isinstance(error, GatedRepoError):
        text = message(
            "{name} is gated; accept its terms on its page, then run `hf auth login`",
            name=name,
        )
    elif isinstance(error, RevisionNotFoundError):
        return InputError(
            "model.revision: {name} has no revision {revision}; use main or a commit",
            "model.revision",
            name=name,
            revision=repr(revision),
        )
    elif isinstance(error, RepositoryNotFoundError) and "Invalid credentials" not in str(error):
        text = message(
            "the Hub has no model {name} that you have access to; check the name, or sign in with `hf auth login`",
            name=name,
        )
    elif getattr(error, "errno", None) == _DISK_FULL:
        text = message(
            "the disk became full while downloading {name}; free up some space and start again to "
            "continue the download where it stopped",
            name=name,
        )
    elif isinstance(error, InterruptedDownloadError):
        text = message(
            "the Hub became unreachable while downloading {name}; the part that was downloaded is "
            "kept, so start again when the network is back to continue the download",
            name=name,
        )
    else:
        text = _describe_status(error) or (
            message(
                "the Hub cannot be reached for {name} ({error}); check the network, or use a local folder",
                name=name,
                error=_kind(error),
            )
        )
    return InputError("{field}: {text}", field, field=field, text=text)


def search_mistake(error: Exception) -> InputError:
    """Why the hub cannot be searched."""
    if isinstance(error, MALFORMED) and not status_of(error):
        return InputError(
            "the server at {endpoint} is not a model hub, or uses a different protocol ({error}); "
            "check HF_ENDPOINT, or {alternative}",
            endpoint=constants.ENDPOINT,
            error=_kind(error),
            alternative=_ALTERNATIVE,
        )
    return InputError(
        _describe_status(error)
        or message(
            "the Hub cannot be reached ({error}); check the network, or {alternative} in the meantime",
            error=_kind(error),
            alternative=_ALTERNATIVE,
        )
    )


def offline() -> InputError:
    """Why no request is sent at all."""
    return InputError(
        "Burnish is in offline mode, so the Hub was not contacted; turn offline mode off in Settings, or {alternative}",
        alternative=_ALTERNATIVE,
    )


def status_of(error: Exception) -> int:
    """The HTTP status of the answer, 0 if there was none."""
    response: Any = getattr(error, "response", None)
    return int(getattr(response, "status_code", 0) or 0)


def _describe_status(error: Exception) -> str:
    """What a bad status means; empty if there was no answer."""
    status = status_of(error)
    if status == 401:
        return message("the Hub no longer accepts your login (401); renew it with `hf auth login`, or sign out")
    if status == 403:
        return message(
            "you don't have access to this on the Hub (403); ask its owner, or sign in with an account that has access"
        )
    if status == 404:
        return _describe_not_found(error)
    if status == 429:
        return message(
            "too many requests to the Hub (429); {error}, or sign in, which allows more requests",
            error=_describe_wait(error),
        )
    if status >= 500:
        return message(
            "the Hub returned an error ({status}); try again in a few minutes, or {alternative} in the meantime",
            status=status,
            alternative=_ALTERNATIVE,
        )
    return message("the Hub refused the request ({status})", status=status) if status else ""


def _describe_not_found(error: Any) -> str:
    """A 404 from the hub, for one of its files, or from a host that it redirects to."""
    url, hub = urlsplit(str(error.response.url)), urlsplit(constants.ENDPOINT)
    if url.netloc != hub.netloc:
        return message(
            "the Hub redirected a download to {netloc}, but the file is not there (404); try again later, or {alternative}",
            netloc=url.netloc[:80],
            alternative=_ALTERNATIVE,
        )
    if "/resolve/" in url.path:
        name = url.path.rpartition("/")[2][:80]
        return message(
            "the Hub lists the file {name}, but it could not be found (404); try again later, or {alternative}",
            name=name,
            alternative=_ALTERNATIVE,
        )
    return message("there is no model hub at {endpoint} (404); check HF_ENDPOINT", endpoint=constants.ENDPOINT)


def _describe_wait(error: Any) -> str:
    seconds = str(error.response.headers.get("Retry-After", ""))
    if not seconds.isdigit():
        return message("wait a minute")
    return plural("wait {count} second", "wait {count} seconds", int(seconds))


def _kind(error: Exception) -> str:
    cause = error.why if isinstance(error, HubTimeoutError) else error
    return message("the request timed out") if "Timeout" in type(cause).__name__ else type(cause).__name__


ERRORS = (HTTPError, OSError)
"""What the hub library raises when the network or the hub fails."""
MALFORMED = (ValueError, TypeError, KeyError, AttributeError)
"""What comes of an answer that is none of a hub's."""
