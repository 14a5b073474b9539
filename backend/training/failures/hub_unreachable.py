"""Recognises a model hub that cannot be reached, or that offline mode blocks."""

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.run.fixes import RunFix
from backend.training.failures.failure import Failure, FailureContext, chain, kinds

MESSAGE = message("the model hub cannot be reached")
HINT = message("Check the network and try again, or set model.name_or_path to a local folder.")
OFFLINE_HINT = message("Turn off offline mode and try again, or set model.name_or_path to a local folder.")
_KINDS = {
    "ConnectError", "ConnectTimeout", "ReadTimeout", "ReadError", "ProxyError", "RemoteProtocolError", "ConnectionError",
    "LocalEntryNotFoundError",
}  # fmt: skip
_LIBRARIES = ("httpx", "httpcore", "requests", "huggingface_hub")
"""What their modules' names begin with."""


def recognise(error: BaseException, context: FailureContext) -> Failure | None:
    """The hub library's own errors, those of the HTTP library below it, datasets', and our message for each."""
    found = list(chain(error))
    own = next((str(each) for each in found if isinstance(each, InputError)), "")
    if (
        any("OfflineModeIsEnabled" in f"{kinds(each)} {each}" for each in found)
        or "network access is not allowed" in own
    ):
        return Failure(
            own or message("{message}: offline mode is on", message=MESSAGE), OFFLINE_HINT, RunFix(resume=True)
        )
    if any(map(_is_unreachable, found)):
        return Failure(own or MESSAGE, HINT, RunFix(resume=True))
    return None


def _is_unreachable(error: BaseException) -> bool:
    if isinstance(error, ConnectionError) and "on the Hub" in str(error):
        return True  # datasets raises Python's own
    return any(kind.__name__ in _KINDS and kind.__module__.startswith(_LIBRARIES) for kind in type(error).__mro__)


FAILURE = recognise
