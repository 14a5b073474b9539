"""Describes this computer's devices: which ones a draft uses, and why a device lacks a precision."""

from collections.abc import Sequence

from app.core import formatting
from app.core.backend_words import translate_word
from app.core.draft.draft import Draft
from app.core.i18n import tr, trn
from backend.contract.catalog import Device


def candidate_devices(draft: Draft, devices: Sequence[Device]) -> list[Device]:
    """The devices that the draft can use: those of its kind, else accelerators if there are any."""
    wanted = draft.get("hardware.device", "auto")
    if wanted != "auto":
        return [device for device in devices if device.kind == wanted]
    return [device for device in devices if device.kind != "cpu"] or list(devices)


def selected_devices(draft: Draft, devices: Sequence[Device]) -> list[Device]:
    """The devices that the draft would train on; if it names none, those with the most free memory, one per process."""
    possible, numbers = candidate_devices(draft, devices), draft.get("hardware.devices")
    if not numbers:
        processes = draft.get("hardware.processes")
        count = processes if isinstance(processes, int) and possible and possible[0].kind != "cpu" else 1
        return sorted(possible, key=lambda device: -device.free_mb)[:count]
    return [device for device in possible if device.index in numbers]


def device_words(device: Device) -> str:
    """`Processor, 8 cores`, `NVIDIA H100 · number 1`."""
    if device.kind == "cpu":
        name = translate_word(device.name)
        return f"{name}, " + trn("{count} core", "{count} cores", device.cores) if device.cores else name
    return tr("{name} · #{index}", name=device.name, index=device.index)


def memory_words(device: Device) -> str:
    """`24.3 GB of 32.0 GB free`; empty if the device does not report it."""
    if not device.memory_mb:
        return ""
    return tr(
        "{free_mb} of {memory_mb} free",
        free_mb=formatting.megabytes(device.free_mb),
        memory_mb=formatting.megabytes(device.memory_mb),
    )


def against_precision(precision: str, devices: Sequence[Device]) -> str:
    """Why the devices do not support a precision; empty if they do, or if none is known."""
    unable = next((one for one in devices if one.precisions and precision not in one.precisions), None)
    if precision == "auto" or unable is None:
        return ""
    return tr(
        "{name} does not support {precision}. Supported: {precisions}.",
        name=unable.name,
        precision=precision,
        precisions=", ".join(unable.precisions),
    )
