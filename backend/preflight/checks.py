"""Checks a spec before a run is written: the model's folder, what the hardware supports, the data."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from backend.contract import spec_file
from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.places import cache_folder, is_offline
from backend.contract.rpc.plan import AutoSetting, DeviceList
from backend.contract.run.folder import RunFolder
from backend.contract.safe_files import write_whole
from backend.contract.safe_text import one_line
from backend.contract.spec import RunSpec
from backend.contract.spec.auto import AUTO
from backend.data.sources.source import Report
from backend.engines.cpu_device import cpu_device
from backend.hardware import devices, planner, run_sizes
from backend.models import inspection, location
from backend.models.location import ModelLocation
from backend.preflight import auto_settings, model_options, sample_lengths, task_facts
from backend.preflight.auto_settings import AutoResolution, ModelSize, choose_compile
from backend.preflight.datasets import Splits, ignore_progress, load_splits, make_task, with_max_length
from backend.preflight.engine_choice import (
    ALWAYS,
    check_compile,
    check_engine,
    check_processes,
    compile_setting,
)
from backend.preflight.fixes import MemoryFacts, choose_checkpointing, without_checkpointing
from backend.preflight.task_facts import FittedFacts
from backend.tokenizers.loading import open_tokenizer

EVERY_DEVICE_MB = 2000.0
"""Memory that every device has on which people train."""


@dataclass(frozen=True)
class Checked:
    """A spec that can be trained: guessed columns and automatic settings filled in, a hub model's commit pinned."""

    spec: RunSpec
    fitted: FittedFacts
    auto: tuple[AutoSetting, ...] = ()
    """What was left at `auto`, and how it was chosen; the spec has the numbers."""
    listed: DeviceList | None = None
    """The devices of this computer, if a check needed them: to list them may take seconds."""


def _ignore(sentence: str) -> None:
    """Ignore a sentence that the caller does not want to show."""


def locate_model(
    spec: RunSpec, report: Report = ignore_progress, *, local_only: bool = False, convert: bool = False
) -> ModelLocation:
    """The model's folder: local, cached, downloaded or converted. Raises InputError."""
    return location.locate(
        spec.model.name_or_path,
        spec.model.revision,
        cache=cache_folder() / "weights",
        offline=local_only or is_offline(),
        report=report,
        consent_to_convert=convert,
        needs_weights=spec.model.initialise == "pretrained",
    )


def locate_small_files(spec: RunSpec, report: Report = ignore_progress) -> ModelLocation:
    """The model's folder for inspecting data: configuration and tokenizer, but no weights. Raises InputError."""
    return location.locate_without_weights(
        spec.model.name_or_path,
        spec.model.revision,
        offline=is_offline(),
        report=report,
        needs_tokenizer=spec.model.tokenizer is None,
    )


def check(
    spec: RunSpec, report: Report = ignore_progress, *, convert: bool = False, say: Callable[[str], None] = _ignore
) -> Checked:
    """Check everything that can be known before a run is written: the model's folder, the data, its columns and labels.

    A hub model that is not downloaded yet is left to the run. `say` receives the guessed columns and what was chosen
    where a setting is `auto`. Raises InputError.
    """
    check_engine(spec)
    model_options.check_weights(spec)
    model_options.check_adapter(spec)
    model_options.check_optimizer(spec)
    model_options.check_master_weights(spec)
    check_compile(spec)
    list_once = cache(lambda: devices.query_devices(spec.hardware.engine, environment=spec.hardware.environment))
    choice = _check_hardware(spec, list_once)
    if choice is not None:
        model_options.check_optimizer(spec, choice.device.kind)
        model_options.check_master_weights(spec, choice.precision)
        check_compile(spec, choice.device.kind)
    model = _model_here(spec, report, convert)
    folder = model.folder if model else None
    fitted = auto_settings.fit_to_model(spec, folder) if folder is not None else AutoResolution(spec, ())
    spec = fitted.spec
    if count := _devices(spec, choice):
        run_sizes.split(spec, folder, count)
    if folder is not None:
        check_model(spec, folder)
        model_options.check_new_weights(spec, folder)
        model_options.check_model_options(spec, folder)
        run_sizes.read_config(folder, spec)  # refuses changes that make no model
        if spec.model.tokenizer is not None and Path(spec.model.tokenizer).is_absolute():
            open_tokenizer(spec.model.tokenizer, options=spec.model.tokenizer_options)
    splits = load_splits(spec, folder, report)
    if splits.guessed:
        say(splits.guessed)
    described = model or (_describe_model(spec) if auto_settings.needs_size(spec) else None)
    if model is None and described is not None:
        fitted = auto_settings.fit_to_model(spec, described.folder)
        spec = fitted.spec
        splits = replace(splits, facts=with_max_length(make_task(spec), splits.facts, described.folder))
    auto = auto_settings.resolve(spec, splits, lambda: model_size(spec, described or _describe_model(spec)))
    check_processes(auto.spec)
    auto = _choose_checkpointing(auto, splits, model, list_once, report)
    parameters = count_parameters(spec, described) if described else 0
    auto = choose_compile(auto, parameters, splits, lambda: _find_device(auto.spec, choice, list_once))
    auto = AutoResolution(auto.spec, (*fitted.chosen, *auto.chosen))
    for setting in auto.chosen:
        if setting.reason:
            say(setting.reason)
    commit = model.commit if model and model.commit else spec.model.revision
    complete = auto.spec.model_copy(
        update={
            "data": spec.data.model_copy(update={"columns": dict(splits.columns)}),
            "model": spec.model.model_copy(update={"revision": commit}),
        }
    )
    return Checked(complete, splits.fitted, auto.chosen, list_once() if list_once.cache_info().currsize else None)


def write_spec(folder: RunFolder, checked: Checked) -> None:
    """Write the spec, with the reasons of its automatic values. Raises OSError."""
    reasons = "".join(f"# {one_line(setting.reason)}\n" for setting in checked.auto if setting.reason)
    text = reasons + spec_file.dump(checked.spec.model_dump(mode="json"))
    task_facts.keep(folder, checked.fitted)
    write_whole(folder.spec, text.encode())  # a folder is a run as soon as its complete spec exists


def _choose_checkpointing(
    auto: AutoResolution,
    splits: Splits,
    model: ModelLocation | None,
    list_devices: Callable[[], DeviceList],
    report: Report,
) -> AutoResolution:
    """Choose gradient checkpointing if it is `auto`. What takes seconds is only asked for if the run may not fit.

    It stays off if only the run downloads the model, and on a pod, where a single host knows no devices.
    """
    spec = auto.spec
    if spec.training.gradient_checkpointing != AUTO:
        return auto
    if model is None or devices.count_hosts(spec.hardware) > 1 or _fits_anywhere(spec, splits, model):
        return without_checkpointing(auto)
    sample = sample_lengths.measure(spec, splits, model, report)
    here = list_devices().devices
    counts = sample.count_features(splits)
    return choose_checkpointing(auto, MemoryFacts(model.folder, make_task(spec).head, sample.lengths, here, counts))


def _find_device(
    spec: RunSpec, choice: devices.DeviceChoice | None, list_devices: Callable[[], DeviceList]
) -> Device | None:
    """The device that the run would use; None on a pod, where a single host knows no devices."""
    if devices.count_hosts(spec.hardware) > 1:
        return None
    return (choice or devices.choose(spec, list_devices().devices)).device


def _fits_anywhere(spec: RunSpec, splits: Splits, model: ModelLocation) -> bool:
    """Whether even the longest sequences, a whole batch at once, need no more than every device has."""
    head, longest = make_task(spec).head, splits.facts["max_length"]
    if head.targets == "choice":
        return False  # a limit of each choice, and how many there are is not known
    work = planner.TrainingLoad(
        spec, model.folder, head, longest, run_sizes.count_parameters(spec, model.folder), "float32",
        counts={split: len(rows) for split, rows in splits.rows.items()},
    )  # fmt: skip
    room = min(EVERY_DEVICE_MB, run_sizes.available_mb(spec, cpu_device()))
    return planner.total(work.memory(spec.training.batch_size)) <= room


def count_parameters(spec: RunSpec, model: ModelLocation) -> int:
    """The parameters of the model: as the hub says, else as its files or its configuration say."""
    return (model.remote and model.remote.parameters) or run_sizes.count_parameters(spec, model.folder)


def model_size(spec: RunSpec, model: ModelLocation) -> ModelSize:
    """What automatic settings need to know about the model."""
    return ModelSize(count_parameters(spec, model), model.folder)


def _describe_model(spec: RunSpec) -> ModelLocation:
    """The hub's description and the small files of a model whose weights the run will download."""
    return location.locate_small_files(
        spec.model.name_or_path, spec.model.revision, cache=cache_folder() / "weights", offline=is_offline()
    )


def check_model(spec: RunSpec, folder: Path, *, looks_at_weights: bool = True) -> None:
    """Raises InputError if the model in `folder` does not support what the spec asks, or not with its engine."""
    task = make_task(spec)
    check_engine(spec, folder, task.head)
    inspection.check(
        folder,
        task.head,
        max_length=spec.task.get("max_length"),  # what nobody has set is fitted to the model
        from_config=spec.model.initialise == "from_config" or not looks_at_weights,
        needs_tokenizer=spec.model.tokenizer is None,
        runs_code=spec.model.trust_remote_code,
    )
    _check_tokenizer(spec, task, Path(spec.model.tokenizer or folder))


def _check_tokenizer(spec: RunSpec, task: Any, folder: Path) -> None:
    """Check what a task needs from a tokenizer. A tokenizer.json supports all, and opening it takes seconds."""
    check = getattr(task, "check_tokenizer", None)
    if check is not None and folder.is_dir() and not (folder / "tokenizer.json").is_file():
        check(open_tokenizer(str(folder), options=spec.model.tokenizer_options))


def _check_hardware(spec: RunSpec, list_devices: Callable[[], DeviceList]) -> devices.DeviceChoice | None:
    """Reject a device or precision that this machine lacks; if any will do, skip the query, which takes seconds."""
    hardware = spec.hardware
    if devices.count_hosts(spec.hardware) > 1:
        return None  # one host of a pod sees nothing alone; the run looks when all have met
    is_any = hardware.device == hardware.precision == "auto" and not hardware.devices
    is_any = is_any and devices.count_processes(hardware) == 1 and spec.training.master_weights == "float32"
    is_any = is_any and compile_setting(spec) != ALWAYS
    if not is_any or "cpu" not in (model_options.devices_of_optimizer(spec) or ("cpu",)):
        return devices.choose(spec, list_devices().devices)
    return None


def _devices(spec: RunSpec, choice: devices.DeviceChoice | None) -> int:
    """The number of devices per host; 0 if only the run will know."""
    if choice is not None:
        return len(choice.names)
    return len(spec.hardware.devices or []) if devices.count_hosts(spec.hardware) > 1 else 1


def _model_here(spec: RunSpec, report: Report, convert: bool) -> ModelLocation | None:
    if Path(spec.model.name_or_path).is_absolute() or is_offline() or convert:
        return locate_model(spec, report, convert=convert)
    try:
        return locate_model(spec, report, local_only=True)
    except InputError:
        return None  # not here yet: the run downloads it in a separate stage
