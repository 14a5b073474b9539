"""Lists the models on this computer: the demo's, recently used ones, those trained by runs, the hub's cache."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from backend.contract.messages import message
from backend.contract.resources import DEMO_MODELS
from backend.contract.rpc.models import ModelChoice
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import user_path
from backend.models import compatibility, hub_transfer, inspection
from backend.models.compatibility import ModelFacts, RunNeeds
from backend.models.weights import flax_problem, read_weights

MAX_RUNS = 200
"""Runs whose models are offered, the newest first."""
_GONE = message("the folder no longer exists; choose another model")


def choices(needs: RunNeeds, recent: Sequence[str], runs: Iterable[RunFolder]) -> list[ModelChoice]:
    """Every model once, by group; recently used ones only if they are nowhere else."""
    cached = {one.name: one for one in cached_models(needs)}
    groups = [demo(needs), recent_models(needs, recent, cached), of_runs(needs, runs), list(cached.values())]
    found: dict[str, ModelChoice] = {}
    for one in (one for group in groups for one in group):
        found.setdefault(one.name, one)
    return list(found.values())


def demo(needs: RunNeeds) -> list[ModelChoice]:
    """The models that come with the program."""
    return [of_folder(model.folder, needs, "demo", model.name, use=model.use) for model in DEMO_MODELS]


def recent_models(needs: RunNeeds, recent: Sequence[str], cached: dict[str, ModelChoice]) -> list[ModelChoice]:
    """Folders and hub ids, newest first; a hub model that is no longer in the cache needs a download."""
    found = []
    for name in recent:
        path = user_path(name)
        if name in cached:
            found.append(replace(cached[name], group="recent"))
        elif path.is_dir():
            found.append(of_folder(path, needs, "recent", path.name, name=name))
        elif path.is_absolute() or name.startswith((".", "~")):
            found.append(ModelChoice(name=name, group="recent", title=path.name, problem=_GONE))
        else:
            note = message("It is no longer in the cache, so it will be downloaded.")
            found.append(ModelChoice(name=name, group="recent", is_here=False, notes=[note]))
    return found


def of_runs(needs: RunNeeds, runs: Iterable[RunFolder]) -> list[ModelChoice]:
    """The models in the `model/` of runs, to start a new run from; newest first."""
    found = []
    for run in runs:
        if len(found) < MAX_RUNS and (run.model / "config.json").is_file():
            used = (run.model / "config.json").stat().st_mtime
            found.append(of_folder(run.model, needs, "run", run.path.name, used=used))
    return found


def cached_models(needs: RunNeeds) -> list[ModelChoice]:
    """The models in the hub library's cache, last used first, including unfinished downloads."""
    from huggingface_hub import CacheNotFound, scan_cache_dir  # slow to import

    try:
        repositories = [one for one in scan_cache_dir().repos if one.repo_type == "model"]
    except CacheNotFound:
        return []
    repositories.sort(key=lambda one: (-(one.last_accessed or 0), one.repo_id))
    found = (_to_choice(one, needs) for one in repositories)
    return [one for one in found if one is not None]


def of_folder(
    folder: Path, needs: RunNeeds, group: str, title: str, *, name: str = "", use: str = "", used: float | None = None
) -> ModelChoice:
    """A folder as a row of the chooser."""
    config = inspection.read_config(folder)
    weights = read_weights(folder)
    lacking = inspection.config_problem(folder)
    if not lacking and weights.format in ("lfs-pointer", "broken"):
        lacking = weights.problem
    if not lacking and weights.format == "none" and not needs.from_scratch:
        lacking = flax_problem(folder) if (folder / "flax_model.msgpack").is_file() else weights.problem
    known = ModelFacts(config, weights.parameters, weights.format, lacking)
    return ModelChoice(
        name=name or str(folder),
        group=group,
        title=title,
        use=use or compatibility.purpose_of_class(str((config.get("architectures") or [""])[0])),
        model_type=str(config.get("model_type") or ""),
        parameters=weights.parameters,
        size_mb=weights.size / 1e6,
        licence=inspection.licence(folder),
        used=used,
        tasks=compatibility.tasks_of(config),
        notes=compatibility.notes(known, needs),
        problem=compatibility.problem(known, needs),
    )


def _to_choice(repository: Any, needs: RunNeeds) -> ModelChoice | None:
    revisions = sorted(repository.revisions, key=lambda one: ("main" in one.refs, one.last_modified), reverse=True)
    whole = next((one for one in revisions if holds_model(one)), None)
    started = hub_transfer.started_bytes(repository.repo_id) / 1e6
    if whole is not None:
        found = of_folder(
            whole.snapshot_path, needs, "cache", "", name=repository.repo_id, used=repository.last_accessed
        )
        return replace(found, size_mb=repository.size_on_disk / 1e6)
    if started and revisions:
        found = of_folder(
            revisions[0].snapshot_path, dataclasses.replace(needs, from_scratch=True), "cache", "", name=repository.repo_id,
            used=repository.last_accessed,
        )  # fmt: skip
        return replace(found, is_here=False, started_mb=started, size_mb=0.0)
    return None


def holds_model(revision: Any) -> bool:
    """Whether a revision in the cache has a configuration and weights; a tokenizer alone is not a model."""
    names = {file.file_name for file in revision.files}
    return "config.json" in names and any(name.endswith((".safetensors", ".bin", ".msgpack")) for name in names)
