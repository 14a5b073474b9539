"""Checks the chosen engine before its framework is imported: whether it is installed and supports the spec."""

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from sysconfig import get_path
from typing import Any

from backend import registry
from backend.catalog_building import engine_entry, missing
from backend.contract.catalog import find_refusal
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.contract.run.folder import RunFolder
from backend.contract.spec import HardwareSection, RunSpec
from backend.contract.spec.auto import AUTO
from backend.engines.hosts import EngineOfHosts, Position
from backend.engines.weight_formats import QUANTIZED
from backend.hardware.devices import FSDP, count_processes
from backend.hardware.run_sizes import engine_settings
from backend.models.inspection import read_config

ALWAYS, IF_POSSIBLE, NEVER = "always", "if_possible", "never"
"""Values of `hardware.compile`."""
_FIELD, _PYTORCH = "hardware.engine", "torch"
_COMPILERS = {"darwin": "clang++", "win32": "cl"}
"""The C++ compiler that PyTorch takes, if the environment's CXX names no other."""


def check_engine(spec: RunSpec, folder: Path | None = None, head: Head | None = None, *, trains: bool = True) -> None:
    """Raises InputError if the engine is not installed, or does not support the optimizer, model or head."""
    name = spec.hardware.engine
    engine = registry.find("engine", name, _FIELD)
    entry = engine_entry(name, engine)
    model_type = str(read_config(folder).get("model_type", "")) if folder is not None else ""
    if trains and spec.hardware.bridge and name != _PYTORCH:
        raise InputError(
            "hardware.bridge: the torchax bridge was removed, so {title} cannot train this; start a new "
            "run with PyTorch ({field}: {pytorch})",
            "hardware.bridge",
            title=entry.title,
            field=_FIELD,
            pytorch=_PYTORCH,
        )
    found = find_refusal(entry, model_type, spec.training.optimizer if trains else "")
    if found is not None:
        reason = found.reason
        if found.field == _FIELD and not entry.missing:
            reason = message("{reason}; choose PyTorch", reason=reason)
        raise InputError("{field}: {reason}", found.field, field=found.field, reason=reason)
    if model_type and head is not None:
        engine.check(model_type, head, engine_settings(spec))


def check_processes(spec: RunSpec) -> None:
    """Raises InputError for processes that the engine does not use, that have no rows, or that cannot shard the model."""
    engine = registry.find("engine", spec.hardware.engine, _FIELD)
    wanted, rows = spec.hardware.processes, spec.training.batch_size
    if problem := _find_sharding_problem(spec, engine):
        raise InputError("{field}: {reason}", problem[0], field=problem[0], reason=problem[1])
    if wanted != AUTO and wanted > 1 and not engine.several_processes:
        raise InputError(
            "hardware.processes: {title} uses all devices of a computer from one process; set it to auto and list the "
            "devices in hardware.devices",
            "hardware.processes",
            title=engine.title,
        )
    if rows == AUTO or (count := count_processes(spec.hardware)) <= rows:
        return
    if wanted == AUTO:
        raise InputError(
            "hardware.devices: the processes of {count} devices cannot share the {rows} rows of a batch; list {rows} "
            "or fewer, or raise training.batch_size",
            "hardware.devices",
            count=count,
            rows=rows,
        )
    raise InputError(
        "hardware.processes: {wanted} processes cannot share the {rows} rows of a batch; set it to {rows} or less, "
        "or raise training.batch_size",
        "hardware.processes",
        wanted=wanted,
        rows=rows,
    )


def _find_sharding_problem(spec: RunSpec, engine: Any) -> tuple[str, str] | None:
    """The field and the reason why the model cannot be sharded, or None."""
    given = spec.hardware.model_extra or {}
    if given.get("strategy") != FSDP:
        if given.get("cpu_offload") is True and "cpu_offload" in engine.Settings.model_fields:
            return "hardware.cpu_offload", message("this needs hardware.strategy: fsdp; set it to false")
        return None
    optimizer = registry.find("optimizer", spec.training.optimizer, "training.optimizer")
    if "strategy" not in engine.Settings.model_fields:
        return "hardware.strategy", message(
            "{title} shards a model with hardware.parallelism: fsdp; set that, and remove this", title=engine.title
        )
    if count_processes(spec.hardware) == 1:
        return "hardware.strategy", message(
            "fsdp shards a model over several processes, and this run has one; raise hardware.processes, or set "
            "this to ddp"
        )
    if spec.model.weights in QUANTIZED:
        return "model.weights", message(
            "fsdp cannot shard weights in 4 or 8 bits; choose bfloat16, or set hardware.strategy to ddp"
        )
    if not getattr(optimizer, "elementwise", False):
        return "training.optimizer", message(
            "{optimizer} needs all of a weight, and with fsdp each process has a part; choose adamw, adam, lion or sgd, "
            "or set hardware.strategy to ddp",
            optimizer=spec.training.optimizer,
        )
    if spec.hardware.precision == "float16":
        return "hardware.precision", message(
            "fsdp computes in float32 or bfloat16; choose one of them, or set hardware.strategy to ddp"
        )
    return None


def compile_setting(spec: RunSpec) -> str:
    """`hardware.compile`, or `never` for an engine that does not have this setting."""
    return (spec.hardware.model_extra or {}).get("compile", "never")


def check_compile(spec: RunSpec, device: str | None = None) -> None:
    """Raises InputError if the layers of the model cannot be compiled as `hardware.compile` says.

    `device` is the kind of the chosen one, once it is known.
    """
    setting, reason = compile_setting(spec), ""
    if setting in (ALWAYS, IF_POSSIBLE):
        reason = find_compile_problem(spec)
    if setting == ALWAYS and device is not None:
        reason = reason or find_missing_compiler(device)
    if reason:
        raise InputError("hardware.compile: {reason}; set it to never", "hardware.compile", reason=reason)


def find_compile_problem(spec: RunSpec) -> str:
    """Why a model that is trained in this way cannot be compiled; empty if it can."""
    if (spec.hardware.model_extra or {}).get("strategy") == FSDP:
        return message("a model that is sharded with fsdp cannot be compiled")
    return ""


def find_missing_compiler(device: str) -> str:
    """What PyTorch lacks here to compile for this kind of device, and how to get it; empty if nothing.

    On a CPU it compiles C++ that uses Python's own headers. For a GPU it needs Triton, which compiles a little C itself.
    """
    if device == "cuda" and find_spec("triton") is None:
        return message("PyTorch compiles with Triton, which is not installed (pip install triton)")
    usual = ("gcc", "clang") if device == "cuda" else (_COMPILERS.get(sys.platform, "g++"),)
    named = os.environ.get("CC" if device == "cuda" else "CXX")
    compilers = (named,) if named else usual
    if not any(map(which, compilers)):
        return message(
            "PyTorch needs the compiler {compiler}, which is not installed (on Debian or Ubuntu: sudo apt install g++)",
            compiler=compilers[0],
        )
    if not (Path(get_path("include")) / "Python.h").is_file():
        return message(
            "PyTorch needs Python's headers, which are not installed (on Debian or Ubuntu: sudo apt install python3-dev)"
        )
    return ""


def to_ask(hardware: Mapping[str, Any], engine: str | None = None) -> dict[str, Any]:
    """The `hardware` section for inference with a run trained under this one, here or elsewhere.

    A model is the same in every engine: `engine` asks for another one, and if the run's own is not installed, another
    is used. Models trained by the removed torchax bridge use PyTorch. Several devices, processes or hosts were for
    training; one is enough for inference.
    """
    engines = registry.all_of("engine")
    own = hardware.get("engine", _PYTORCH)
    usable = [name for name, one in engines.items() if not missing(one)]
    if hardware.get("bridge") and own != _PYTORCH and _PYTORCH in usable:
        usable = [_PYTORCH]
    if engine is None and own not in usable and own in engines and usable:
        return {"engine": usable[0]}
    chosen = engine or own
    several = len(hardware.get("devices") or []) > 1 or hardware.get("hosts", 1) > 1
    common = HardwareSection.model_fields.keys() - {"bridge", "processes", *({"devices"} if several else ())}
    settings = set(engines[chosen].Settings.model_fields) if chosen in engines and not several else set()
    settings -= {"strategy", "cpu_offload", "compile"}
    return {key: value for key, value in hardware.items() if key in common or key in settings}


def position(spec: RunSpec, folder: RunFolder | None = None) -> Position:
    """Which of the spec's hosts this one is. Raises InputError if that cannot be determined.

    The driver of a Ray job (`folder` is its run) is none of them: it starts them all.
    """
    settings = engine_settings(spec)
    job = folder.job_record() if folder is not None else None
    if getattr(settings, "hosts", 1) == 1 or (job is not None and job.scheduler == "ray"):
        return Position()
    return engine_of_hosts(spec).position(settings)


def engine_of_hosts(spec: RunSpec) -> EngineOfHosts:
    return registry.find("engine", spec.hardware.engine, "hardware.engine")
