"""Owns `describe_model`, `convert_model`, `model_choices` and `cached_models`: what a model holds, and what is here."""

from backend.contract.errors import InputError
from backend.contract.places import cache_folder, is_offline, runs_folder
from backend.contract.rpc.model_choices import ModelChoices
from backend.contract.rpc.queries import CachedModel, CachedModels, ModelDescription
from backend.contract.run.folder import run_folders
from backend.helper.query import Arguments, Query, Tell, listed, needed, reporting
from backend.models.compatibility import wish_of

MAX_RECENT = 100


def _describe(arguments: Arguments, tell: Tell) -> ModelDescription:
    from backend.models import inspection  # loads the hub library

    return inspection.describe(
        needed(arguments, "name_or_path"),
        str(arguments.get("revision") or "main"),
        _task_name(arguments.get("task")),
        cache=cache_folder() / "weights",
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


def _cached(arguments: Arguments, tell: Tell) -> CachedModels:
    from huggingface_hub import CacheNotFound, scan_cache_dir

    from backend.models.local_models import holds_model

    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return CachedModels([])
    models = [one for one in repositories if one.repo_type == "model" and any(map(holds_model, one.revisions))]
    models.sort(key=lambda one: (-(one.last_accessed or 0), one.repo_id))
    return CachedModels([CachedModel(one.repo_id, one.size_on_disk / 1e6) for one in models])


def _choices(arguments: Arguments, tell: Tell) -> ModelChoices:
    from backend.models import local_models

    recent = [str(name) for name in listed(arguments, "recent", MAX_RECENT)]
    wanted = wish_of(arguments.get("wish") or {})
    return ModelChoices(local_models.choices(wanted, recent, run_folders(runs_folder())))


def _task_name(task: object) -> str:
    """The task's name, whether the question gives it or the whole section of a spec."""
    return str(task.get("type", "") if isinstance(task, dict) else task or "")


QUERIES = (
    Query("describe_model", _describe),
    Query("convert_model", _convert),
    Query("model_choices", _choices),
    Query("cached_models", _cached),
)
