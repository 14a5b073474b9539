"""Owns `describe_model` and `convert_model`: what a model folder or hub id holds, and its one-time conversion."""

from backend.contract.errors import InputError
from backend.contract.places import cache_folder, is_offline
from backend.contract.queries import ModelDescription
from backend.queries.query import Arguments, Query, Tell, needed, reporting


def _describe(arguments: Arguments, tell: Tell) -> ModelDescription:
    from backend.models import inspection  # loads the hub library

    return inspection.describe(
        needed(arguments, "name_or_path"),
        str(arguments.get("revision") or "main"),
        _task_name(arguments.get("task")),
        offline=is_offline(),
    )


def _convert(arguments: Arguments, tell: Tell) -> ModelDescription:
    from backend.models import location

    if arguments.get("consent") is not True:
        raise InputError("converting runs a program on a file from elsewhere, so it needs your consent first")
    location.locate(
        needed(arguments, "name_or_path"),
        str(arguments.get("revision") or "main"),
        cache=cache_folder() / "weights",
        offline=is_offline(),
        report=reporting(tell),
        consent_to_convert=True,
    )
    return _describe(arguments, tell)


def _task_name(task: object) -> str:
    """The task's name, whether the question gives it or the whole section of a spec."""
    return str(task.get("type", "") if isinstance(task, dict) else task or "")


QUERIES = (Query("describe_model", _describe), Query("convert_model", _convert))
