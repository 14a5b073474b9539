"""Owns `hub_account`, `hub_login` and `hub_logout`, by the hub library's own functions: it keeps the token, nobody else."""

import os

from backend.contract.errors import InputError
from backend.contract.places import is_offline
from backend.contract.redaction import HIDDEN, TOKEN_VARIABLES, redacted, token_file
from backend.contract.rpc.hub_account import HubAccount
from backend.helper.query import Arguments, Query, Tell, needed

OFFLINE = "Offline mode is on, so the hub is not asked whose token this is."
UNKNOWN_TOKEN = "the hub does not know this token; copy it once more from huggingface.co/settings/tokens"


def _account(arguments: Arguments, tell: Tell) -> HubAccount:
    import huggingface_hub as hub

    from backend.data.hub_answers import guard  # slow to import, as the library that it guards

    guard()
    known = {"from_environment": _in_environment(), "token_file": str(token_file())}
    token = hub.get_token()
    if not token:
        return HubAccount(**known)
    if is_offline():
        return HubAccount(has_token=True, note=OFFLINE, **known)
    try:
        told = hub.whoami(token)
    except (hub.errors.HfHubHTTPError, OSError, InputError) as error:
        return HubAccount(has_token=True, note=_why(error, token), **known)
    return HubAccount(
        name=str(told.get("name") or ""),
        full_name=str(told.get("fullname") or ""),
        organisations=[str(one.get("name")) for one in told.get("orgs") or []],
        has_token=True,
        **known,
    )


def _login(arguments: Arguments, tell: Tell) -> HubAccount:
    import huggingface_hub as hub

    from backend.data.hub_answers import guard

    guard()
    token = needed(arguments, "token").strip()
    if not token or any(letter.isspace() for letter in token):
        raise InputError("a token is one word; copy it from huggingface.co/settings/tokens", "token")
    if is_offline():
        raise InputError("the hub checks a token when you log in; switch Work offline off first", "token")
    try:
        hub.login(token, skip_if_logged_in=False)
    except (hub.errors.HfHubHTTPError, OSError, ValueError) as error:
        raise InputError(_why(error, token), "token") from None  # its traceback would hold the token
    return _account({}, tell)


def _logout(arguments: Arguments, tell: Tell) -> HubAccount:
    import huggingface_hub as hub
    from huggingface_hub.utils import get_stored_tokens

    token = hub.get_token()
    name = next((name for name, value in get_stored_tokens().items() if value == token), None)
    try:
        hub.logout(name)
    except OSError:
        if not _in_environment():  # otherwise the answer says that a variable still holds one
            raise
    return _account({}, tell)


def _in_environment() -> bool:
    return any(os.environ.get(name) for name in TOKEN_VARIABLES)


def _why(error: Exception, token: str) -> str:
    """Why the hub did not say who it is, in a sentence without the token."""
    response = getattr(error, "response", None)
    if response is not None and response.status_code in (401, 403):
        return UNKNOWN_TOKEN
    if isinstance(error, InputError):
        return redacted(str(error).replace(token, HIDDEN))
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return redacted(f"the hub cannot be asked now ({first.replace(token, HIDDEN)}); try again later")


QUERIES = (
    Query("hub_account", _account),
    Query("hub_login", _login),
    Query("hub_logout", _logout),
)
