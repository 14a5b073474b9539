"""Answers queries about models: which are here, what one contains, old weights, and approving a model's code."""

from backend.contract.errors import InputError
from backend.contract.places import cache_folder, is_offline, runs_folder
from backend.contract.rpc.models import CachedModel, CachedModels, ModelChoices, ModelCode, ModelDescription
from backend.contract.run.folder import run_folders
from backend.helper.query import Arguments, Query, ReportProgress, reporting, require, require_list
from backend.models.compatibility import run_needs_of

MAX_RECENT = 100


def _choices(arguments: Arguments, report: ReportProgress) -> ModelChoices:
    from backend.models import local_models

    recent = [str(name) for name in require_list(arguments, "recent", MAX_RECENT)]
    wanted = run_needs_of(arguments.get("needs") or {})
    return ModelChoices(local_models.choices(wanted, recent, run_folders(runs_folder())))


def _list_cached(arguments: Arguments, report: ReportProgress) -> CachedModels:
    from huggingface_hub import CacheNotFound, scan_cache_dir

    from backend.models.local_models import holds_model

    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return CachedModels([])
    models = [one for one in repositories if one.repo_type == "model" and any(map(holds_model, one.revisions))]
    models.sort(key=lambda one: (-(one.last_accessed or 0), one.repo_id))
    return CachedModels([CachedModel(one.repo_id, one.size_on_disk / 1e6) for one in models])


def _describe(arguments: Arguments, report: ReportProgress) -> ModelDescription:
    from backend.models import inspection  # loads the hub library

    return inspection.describe(
        require(arguments, "name_or_path"),
        str(arguments.get("revision") or "main"),
        _task_name(arguments.get("task")),
        cache=cache_folder() / "weights",
        offline=is_offline(),
    )


def _task_name(task: object) -> str:
    """The task's name, given as such or as a whole spec section."""
    return str(task.get("type", "") if isinstance(task, dict) else task or "")


def _convert(arguments: Arguments, report: ReportProgress) -> ModelDescription:
    from backend.models import location

    if arguments.get("consent") is not True:
        raise InputError("converting runs a program on a downloaded file, so it needs your approval first")
    location.locate(
        require(arguments, "name_or_path"),
        str(arguments.get("revision") or "main"),
        cache=cache_folder() / "weights",
        offline=is_offline(),
        report=reporting(report),
        consent_to_convert=True,
    )
    return _describe(arguments, report)


def _model_code(arguments: Arguments, report: ReportProgress) -> ModelCode:
    from backend.inference import code_consent  # loads the hub library

    found = code_consent.code_of(require(arguments, "target"), _revision(arguments), reporting(report))
    return ModelCode(
        code={one.name: one.version for one in found},
        files=[name for one in found for name in one.files],
        folders=[str(one.folder) for one in found],
        agreed=all(one.is_agreed for one in found),
    )


def _agree_to_code(arguments: Arguments, report: ReportProgress) -> ModelCode:
    from backend.inference import code_consent

    target, seen = require(arguments, "target"), require(arguments, "code", dict)
    found = code_consent.code_of(target, _revision(arguments), reporting(report))
    if {one.name: one.version for one in found} != seen:
        raise InputError(
            "model.trust_remote_code: the code of {target} has changed since you reviewed it; review it again",
            "model.trust_remote_code",
            target=target,
        )
    for one in found:
        one.agree()
    return _model_code(arguments, report)


def _revision(arguments: Arguments) -> str:
    return str(arguments.get("revision") or "main")


QUERIES = (
    Query("describe_model", _describe),
    Query("convert_model", _convert),
    Query("model_choices", _choices),
    Query("cached_models", _list_cached),
    Query("model_code", _model_code),
    Query("agree_to_code", _agree_to_code),
)
