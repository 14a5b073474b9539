"""Answers queries about the hub: search for models, download one, log in and out."""

import os
import time

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.places import cache_folder, is_offline
from backend.contract.redaction import HIDDEN, TOKEN_VARIABLES, redact, token_file
from backend.contract.rpc.models import DownloadedModel, HubAccount, HubModel, HubSearch
from backend.contract.rpc.protocol import Progress
from backend.helper.query import Arguments, Query, ReportProgress, require
from backend.models.compatibility import RunNeeds, run_needs_of

OFFLINE = message("Offline mode is on, so the Hub can't verify this token.")
UNKNOWN_TOKEN = message("the Hub does not recognize this token; copy it again from huggingface.co/settings/tokens")
_REPORT_SECONDS = 0.2


def _search(arguments: Arguments, report: ReportProgress) -> HubSearch:
    from backend.models import hub_search  # loads the hub library

    return hub_search.search(str(arguments.get("words") or ""), run_needs(arguments), is_offline=is_offline())


def _model(arguments: Arguments, report: ReportProgress) -> HubModel:
    from backend.models import hub_search

    name, revision = require(arguments, "name"), str(arguments.get("revision") or "main")
    return hub_search.details(name, revision, run_needs(arguments), is_offline=is_offline())


def run_needs(arguments: Arguments) -> RunNeeds:
    """The run that a model should fit."""
    return run_needs_of(arguments.get("needs") or {})


def _download(arguments: Arguments, report: ReportProgress) -> DownloadedModel:
    from backend.models import hub_search

    name, revision = require(arguments, "name"), str(arguments.get("revision") or "main")
    watched = _DownloadWatcher(report)
    return hub_search.download(
        name, revision, cache_folder() / "weights", watched.report, watched.on_file, is_offline=is_offline()
    )


class _DownloadWatcher:
    """Reports the progress of a download, in total and for the current file, a few times a second."""

    def __init__(self, report: ReportProgress) -> None:
        self._report, self._reported_at = report, 0.0
        self._file = Progress()

    def on_file(self, name: str, done: int, size: int) -> None:
        self._file = Progress(part=name, part_done=done, part_total=size)

    def report(self, done: int, total: int, unit: str) -> None:
        now = time.monotonic()
        if done >= total or now - self._reported_at >= _REPORT_SECONDS:
            self._reported_at = now
            file = self._file
            self._report(Progress(done, total, unit, "", file.part, file.part_done, file.part_total))


def _account(arguments: Arguments, report: ReportProgress) -> HubAccount:
    import huggingface_hub as hub

    from backend.data.hub_answers import install_limits  # slow to import, as the library that it guards

    install_limits()
    known = {"from_environment": _is_in_environment(), "token_file": str(token_file())}
    token = hub.get_token()
    if not token:
        return HubAccount(**known)
    if is_offline():
        return HubAccount(has_token=True, note=OFFLINE, **known)
    try:
        account = hub.whoami(token)
    except (hub.errors.HfHubHTTPError, OSError, InputError) as error:
        return HubAccount(has_token=True, note=_describe_error(error, token), **known)
    return HubAccount(
        name=str(account.get("name") or ""),
        full_name=str(account.get("fullname") or ""),
        organisations=[str(one.get("name")) for one in account.get("orgs") or []],
        has_token=True,
        **known,
    )


def _login(arguments: Arguments, report: ReportProgress) -> HubAccount:
    import huggingface_hub as hub

    from backend.data.hub_answers import install_limits

    install_limits()
    token = require(arguments, "token").strip()
    if not token or any(letter.isspace() for letter in token):
        raise InputError("enter a token without spaces; copy it from huggingface.co/settings/tokens", "token")
    if is_offline():
        raise InputError("the Hub checks the token when you sign in; turn off Work offline first", "token")
    try:
        hub.login(token, skip_if_logged_in=False)
    except (hub.errors.HfHubHTTPError, OSError, ValueError) as error:
        raise InputError(_describe_error(error, token), "token") from None  # its traceback would hold the token
    return _account({}, report)


def _logout(arguments: Arguments, report: ReportProgress) -> HubAccount:
    import huggingface_hub as hub
    from huggingface_hub.utils import get_stored_tokens

    token = hub.get_token()
    name = next((name for name, value in get_stored_tokens().items() if value == token), None)
    try:
        hub.logout(name)
    except OSError:
        if not _is_in_environment():  # otherwise the answer says that a variable still holds one
            raise
    return _account({}, report)


def _is_in_environment() -> bool:
    return any(os.environ.get(name) for name in TOKEN_VARIABLES)


def _describe_error(error: Exception, token: str) -> str:
    """Why the hub did not return the account, in a sentence without the token."""
    response = getattr(error, "response", None)
    if response is not None and response.status_code in (401, 403):
        return UNKNOWN_TOKEN
    if isinstance(error, InputError):
        return redact(str(error).replace(token, HIDDEN))
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return redact(f"the hub cannot be asked now ({first.replace(token, HIDDEN)}); try again later")


QUERIES = (
    Query("hub_search", _search),
    Query("hub_model", _model),
    Query("download_model", _download),
    Query("hub_account", _account),
    Query("hub_login", _login),
    Query("hub_logout", _logout),
)
