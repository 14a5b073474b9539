"""Finds the devices of this machine, and chooses a run's device and precision."""

import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from backend import registry
from backend.catalog_building import missing
from backend.contract.catalog import Device
from backend.contract.errors import InputError
from backend.contract.messages import join, message
from backend.contract.processes import python_command
from backend.contract.rpc.plan import DeviceList
from backend.contract.run.folder import DeviceRequest
from backend.contract.spec import HardwareSection, RunSpec
from backend.contract.spec.auto import AUTO
from backend.engines.cpu_device import cpu_device
from backend.models.model_files import read_table_if_sound

Precision = Literal["float32", "bfloat16", "float16"]
SECONDS_TO_LIST = 60.0
OVERFLOWS_IN_FLOAT16 = ("t5", "mt5", "umt5", "longt5", "switch_transformers", "pegasus")
"""Families whose activations leave float16's range (https://github.com/huggingface/transformers/pull/10956)."""
FSDP = "fsdp"
"""The value of `hardware.strategy` that shards a model over processes."""
_NAMES_OF_THEIRS = re.compile(r"t5|t0pp|\bt0\b|ul2|madlad|pegasus|switch")
"""In the hub names of such models: flan-t5-base, byt5-small, mT5_multilingual_XLSum, madlad400-3b-mt …"""


_TPU_WAY_OUT = {
    "torch": message("training on a TPU requires hardware.engine: jax"),
    "jax": message(
        "JAX detects a TPU only if jax[tpu] is installed and no other process is using the TPU; run burnish doctor "
        "to see what is wrong"
    ),
}


@dataclass(frozen=True)
class DeviceChoice:
    """Where a run computes; `names` are the engine's names (`cpu`, `cuda:0`), `reason` explains the precision."""

    names: tuple[str, ...]
    device: Device
    """The one with the least free memory, where there are several."""
    precision: Precision
    reason: str
    warning: str = ""
    """Sentences on what may surprise about this choice."""
    hosts: int = 1
    """Computers that each have such devices."""
    shared: int = 1
    """Processes that share the one device, and its memory."""

    @property
    def words(self) -> str:
        """All devices, as named in events and plans; processes that share one as `cpu × 2`."""
        names = f"{self.names[0]} × {len(self.names)}" if self.shared > 1 else ", ".join(self.names)
        return names if self.hosts == 1 else message("{names} on each of {hosts} hosts", names=names, hosts=self.hosts)


def query_devices(
    engine: str = "torch", seconds: float = SECONDS_TO_LIST, environment: Mapping[str, str] | None = None
) -> DeviceList:
    """The devices that an engine's framework sees, queried in a child process that exits before the answer is used.

    A TPU admits only one process, and a framework takes accelerator memory at first use. Without the framework, or if
    it does not answer in time, only the CPU is listed, with a note that says why. `environment` is the spec's.
    No child is started (0.4 s) where the engine knows without its framework.
    """
    known = registry.find("engine", engine, "hardware.engine") if engine in registry.names("engine") else None
    if known is not None and known.knows_devices():
        return _listed(known.devices())
    command = python_command(f"backend.engines.{engine}.devices")
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=True,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        return _listed(msgspec.json.decode(done.stdout.splitlines()[-1], type=list[Device]))
    except subprocess.TimeoutExpired:
        note = message("{engine} did not list its devices within {seconds:g} seconds", engine=engine, seconds=seconds)
    except subprocess.CalledProcessError as error:
        words = error.stderr.decode(errors="replace").strip().splitlines() or [message("no reason given")]
        note = message("{engine} could not list its devices: {words}", engine=engine, words=words[-1])
    except (OSError, IndexError, msgspec.DecodeError) as error:
        note = message("{engine} could not list its devices: {error}", engine=engine, error=error)
    return _listed([msgspec.structs.replace(cpu_device(), note=note)])


def _listed(devices: list[Device]) -> DeviceList:
    return DeviceList(devices, _note(devices))


def _note(devices: list[Device]) -> str:
    """Why there may be other devices."""
    return next((one.note for one in devices if one.note), "")


def list_devices(
    engine: str = "torch", seconds: float = SECONDS_TO_LIST, environment: Mapping[str, str] | None = None
) -> list[Device]:
    """As `query_devices`; a CPU that was found alone has the note."""
    return query_devices(engine, seconds, environment).devices


def list_all() -> list[Device]:
    """What each installed engine sees, each device with its engine."""
    usable = [name for name, one in registry.all_of("engine").items() if not missing(one)]
    return [msgspec.structs.replace(device, engine=name) for name in usable for device in list_devices(name)]


def choose(spec: RunSpec, devices: list[Device], taken: frozenset[str] = frozenset()) -> DeviceChoice:
    """The devices and precision of a run. Raises InputError that lists the available devices if it cannot be met.

    Devices `taken` by other runs are the last choice. Of devices that differ, precision is what all can compute in.
    """
    found = _devices(spec, devices, taken)
    device = min(found, key=lambda one: one.free_mb)
    precision, reason = _precision(spec, min(found, key=lambda one: len(one.precisions) or math.inf))
    shared = count_processes(spec.hardware) if device.kind == "cpu" else 1
    names = tuple(_name(one) for one in found) * shared
    return DeviceChoice(
        names,
        device,
        precision,
        reason,
        " ".join(_warnings(spec, found, precision, taken)),
        count_hosts(spec.hardware),
        shared,
    )


def device_request(spec: RunSpec, listed: DeviceList | None = None) -> DeviceRequest:
    """As `make_request`, of this computer's devices; `listed` are those, if they are known."""
    found = listed or query_devices(spec.hardware.engine, environment=spec.hardware.environment)
    return make_request(spec, found.devices)


def make_request(spec: RunSpec, devices: list[Device]) -> DeviceRequest:
    """What a run waits for in the queue. Raises InputError as `choose` does."""
    chosen = _devices(spec, devices, frozenset())
    pool = chosen if spec.hardware.devices else [one for one in devices if one.kind == chosen[0].kind]
    return DeviceRequest(len(chosen), tuple(map(_name, pool)))


def count_processes(hardware: HardwareSection) -> int:
    """The processes that train together: `hardware.processes`, else one for each of `hardware.devices`."""
    if not registry.find("engine", hardware.engine, "hardware.engine").several_processes:
        return 1
    return max(1, len(hardware.devices or ())) if hardware.processes == AUTO else hardware.processes


def count_hosts(hardware: HardwareSection) -> int:
    """The hosts that train together: `hardware.hosts`, where the engine has this setting."""
    return (hardware.model_extra or {}).get("hosts", 1)


def _name(device: Device) -> str:
    return "cpu" if device.kind == "cpu" and device.index == 0 else f"{device.kind}:{device.index}"


def _devices(spec: RunSpec, devices: list[Device], taken: frozenset[str]) -> list[Device]:
    wanted, numbers = spec.hardware.device, spec.hardware.devices
    if wanted == "auto":
        found = [device for device in devices if device.kind != "cpu"] or devices
    else:
        found = [device for device in devices if device.kind == wanted]
    if not found:
        kinds = ", ".join(sorted({device.kind for device in devices}))
        way_out = _TPU_WAY_OUT.get(spec.hardware.engine, "") if wanted == "tpu" else ""
        reasons = join(
            "; ",
            filter(
                None,
                [
                    message("there is no {wanted} here; available: {kinds}", wanted=wanted, kinds=kinds),
                    _note(devices),
                    way_out,
                ],
            ),
        )
        raise InputError("hardware.device: {reasons}", "hardware.device", reasons=reasons)
    processes = count_processes(spec.hardware)
    if processes > 1 and sys.platform == "win32":  # no NCCL, and gloo would listen beyond this computer
        raise InputError(
            "hardware.processes: on Windows PyTorch trains in one process; set it to 1 and list at most one device in "
            "hardware.devices, or use WSL",
            "hardware.processes",
        )
    is_cpu = found[0].kind == "cpu"
    if processes > (len(numbers) if numbers else len(found)) and not is_cpu:
        raise InputError(
            "hardware.processes: {processes} processes need as many devices, but there are {count}; set it to auto",
            "hardware.processes",
            processes=processes,
            count=len(numbers) if numbers else len(found),
        )
    if not numbers:  # of several the freest, the first where they are alike
        by_room = sorted(found, key=lambda one: (_name(one) in taken, -one.free_mb))
        return by_room[: 1 if is_cpu else processes] if count_hosts(spec.hardware) == 1 else found
    engine = registry.find("engine", spec.hardware.engine, "hardware.engine")
    if engine.several_processes and processes < len(numbers):
        raise InputError(
            "hardware.processes: {count} devices need a process each, but it is {processes}; set it to auto",
            "hardware.processes",
            processes=processes,
            count=len(numbers),
        )
    by_number = {device.index: device for device in found}
    for number in numbers:
        if number not in by_number:
            there = ", ".join(map(str, by_number))
            raise InputError(
                "hardware.devices: there is no device number {number}; the devices are {there}",
                "hardware.devices",
                number=number,
                there=there,
            )
    if len(set(numbers)) < len(numbers):
        raise InputError("hardware.devices: a device is listed twice; list each device once", "hardware.devices")
    return [by_number[number] for number in numbers]


def _precision(spec: RunSpec, device: Device) -> tuple[Precision, str]:
    wanted = spec.hardware.precision
    if wanted != "auto":
        if device.precisions and wanted not in device.precisions:
            raise InputError(
                "hardware.precision: {name} does not support {wanted}, only {precisions}",
                "hardware.precision",
                name=device.name,
                wanted=wanted,
                precisions=", ".join(device.precisions),
            )
        return wanted, message("chosen manually")
    if device.kind == "cpu":
        return "float32", message("float32 is fastest on CPU")
    if "bfloat16" in device.precisions:
        return "bfloat16", message("{name} computes in bfloat16, which has the range of float32", name=device.name)
    if "float16" not in device.precisions or _overflows(spec):
        return (
            "float32",
            message("this model overflows in float16")
            if "float16" in device.precisions
            else message("{name} does not support anything faster", name=device.name),
        )
    if (spec.hardware.model_extra or {}).get("strategy") == FSDP:
        return "float32", message("with fsdp there is no loss scaling, which float16 needs")
    return "float16", message(
        "{name} has no bfloat16; float16 with loss scaling is faster than float32", name=device.name
    )


def _warnings(spec: RunSpec, devices: list[Device], precision: Precision, taken: frozenset[str]) -> Iterator[str]:
    if busy := [name for one in devices if (name := _name(one)) in taken]:
        yield message(
            "hardware.devices: another run uses {names} too; both take longer and may run out of memory. With --queue a "
            "run waits for its turn.",
            names=", ".join(busy),
        )
    if spec.hardware.device == AUTO and (note := _note(devices)):
        yield message("hardware.device: the run uses the processor, because {note}.", note=note)
    if len(kinds := dict.fromkeys(one.name for one in devices)) > 1:
        yield message(
            "hardware.devices: {kinds} differ; every step waits for the slowest, and the one with the least memory "
            "decides how many rows fit.",
            kinds=", ".join(kinds),
        )
    if precision == "bfloat16" and devices[0].emulates_bfloat16:
        yield message(
            "hardware.precision: this processor has no bfloat16 units and emulates them, which is slower than float32."
        )
    if precision == "float16" and _overflows(spec):
        has_bfloat16 = all("bfloat16" in one.precisions for one in devices)
        yield message(
            "hardware.precision: float16 was chosen manually, but models of this family (T5, mT5, "
            "Pegasus) overflow in it, and the loss may become NaN; {safe} is safe.",
            safe=message("bfloat16 or float32") if has_bfloat16 else "float32",
        )


def _overflows(spec: RunSpec) -> bool:
    """Whether the model's family overflows float16; judged by its name if the model is not downloaded yet."""
    model_type = spec.model.config.get("model_type") or _config(spec).get("model_type")
    if model_type:
        return model_type in OVERFLOWS_IN_FLOAT16
    return _NAMES_OF_THEIRS.search(spec.model.name_or_path.rsplit("/", 1)[-1].lower()) is not None


def _config(spec: RunSpec) -> dict[str, Any]:
    """The model's configuration, if it is in a folder or in the hub's cache."""
    name = spec.model.name_or_path
    found: Any = Path(name) / "config.json"
    if not found.is_file():
        from huggingface_hub import try_to_load_from_cache  # not needed for a folder
        from huggingface_hub.errors import HFValidationError

        try:
            found = try_to_load_from_cache(name, "config.json", revision=spec.model.revision)
        except HFValidationError:  # a folder that is not there
            return {}
    return read_table_if_sound(Path(found)) if isinstance(found, str | Path) else {}
