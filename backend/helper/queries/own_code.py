"""Owns `model_code` and `agree_to_code`: which code of its own a model would run, and this person's consent to it."""

from backend.contract.errors import InputError
from backend.contract.rpc.queries import ModelCode
from backend.helper.query import Arguments, Query, Tell, needed, reporting


def _look(arguments: Arguments, tell: Tell) -> ModelCode:
    from backend.inference import code_consent  # loads the hub library

    found = code_consent.code_of(needed(arguments, "target"), _revision(arguments), reporting(tell))
    return ModelCode(
        code={one.name: one.version for one in found},
        files=[name for one in found for name in one.files],
        folders=[str(one.folder) for one in found],
        agreed=all(one.is_agreed for one in found),
    )


def _agree(arguments: Arguments, tell: Tell) -> ModelCode:
    from backend.inference import code_consent

    target, seen = needed(arguments, "target"), needed(arguments, "code", dict)
    found = code_consent.code_of(target, _revision(arguments), reporting(tell))
    if {one.name: one.version for one in found} != seen:
        raise InputError(
            f"model.trust_remote_code: the code of {target} has changed since it was shown; look at it again",
            "model.trust_remote_code",
        )
    for one in found:
        one.agree()
    return _look(arguments, tell)


def _revision(arguments: Arguments) -> str:
    return str(arguments.get("revision") or "main")


QUERIES = (Query("model_code", _look), Query("agree_to_code", _agree))
