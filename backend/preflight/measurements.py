"""The speeds measured here, by trials and by runs, and how a training run finds its own."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil

from backend.contract.places import cache_folder
from backend.contract.run.cost import Measurement
from backend.contract.run.folder import write_json
from backend.contract.spec import RunSpec
from backend.data.fingerprint import fingerprint
from backend.hardware.activations import ModelShape
from backend.hardware.run_sizes import read_config

ALIKE = 0.1
"""Part by which lengths may differ; what was measured is scaled by them."""
MAX_KEPT = 300
FORWARD = 1 / 3
"""A pass without gradients against one with them, which goes forward once and back at twice the cost."""
SCALES: Mapping[str, tuple[str, ...]] = {
    "training": (
        "epochs", "max_steps", "max_records", "learning_rate", "schedule", "warmup", "schedule_steps", "schedule_cycles",
        "schedule_power", "schedule_end", "schedule_timescale", "schedule_divisor", "schedule_final_divisor",
        "weight_decay", "seed", "early_stopping", "early_stopping_threshold", "checkpoint_every", "keep_checkpoints",
    ),
    "evaluation": ("every", "at_start", "best_metric", "max_rows", "train_rows"),
    "model": ("name_or_path", "revision", "initialise"),
    "hardware": ("device", "devices", "precision"),
}  # fmt: skip
"""Settings that change how often something is done, but not how long it takes once, or that the key says otherwise."""
_LEFT_OUT = ("name", "version", "data")
"""Of the data its lengths decide, and they are looked at by themselves."""
_NAMES = ("_name_or_path", "id2label", "label2id", "transformers_version", "torch_dtype", "dtype")
"""Of a configuration: what says nothing about sizes."""


def remember(key: str, measurement: Measurement) -> None:
    """Save a measurement as the newest for its key and lengths. If that fails, there is simply no estimate."""
    known = _read()
    others = [one for one in known.get(key, []) if not _fits(one, measurement.mean_length, measurement.longest)]
    known.pop(key, None)
    kept = dict(list(known.items())[-MAX_KEPT + 1 :])
    path = _path()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, msgspec.to_builtins({**kept, key: [*others, measurement]}))


def recall(key: str, mean_length: float, longest: int) -> Measurement | None:
    """The newest measurement for this key with similar lengths, scaled to them; None if there is none."""
    found = [one for one in _read().get(key, []) if _fits(one, mean_length, longest)]
    if not found:
        return None
    newest = max(found, key=lambda one: one.time)
    longer = mean_length / newest.mean_length
    each = newest.evaluation_row_seconds
    return msgspec.structs.replace(
        newest,
        step_seconds=newest.step_seconds * longer,
        evaluation_row_seconds=each if each is None or newest.writes else each * longer,
    )


def key_of(spec: RunSpec, folder: Path, device: str, precision: str) -> str:
    """What determines a step's duration, except its lengths; it starts with the `throughput_key`, for people."""
    values = {name: part for name, part in spec.model_dump(mode="json").items() if name not in _LEFT_OUT}
    for section, names in SCALES.items():
        values[section] = {name: value for name, value in values[section].items() if name not in names}
    config = {name: value for name, value in read_config(folder, spec).items() if name not in _NAMES}
    return f"{throughput_key(spec, folder, device, precision)} {fingerprint(values, _to_json(config))[:12]}"


def _fits(one: Measurement, mean_length: float, longest: int) -> bool:
    pairs = ((one.mean_length, mean_length), (one.longest, longest))
    return all(abs(known - wanted) <= ALIKE * max(known, wanted) for known, wanted in pairs)


def _to_json(config: dict[str, Any]) -> Any:
    """JSON text without non-finite numbers, which some configurations contain."""
    return json.loads(json.dumps(config), parse_constant=str)


def _path() -> Path:
    return cache_folder() / "measurements.json"


def _read() -> dict[str, list[Measurement]]:
    try:
        return msgspec.json.decode(_path().read_bytes(), type=dict[str, list[Measurement]])
    except (OSError, msgspec.DecodeError):
        return {}


def recall_similar(
    spec: RunSpec, folder: Path, device: str, precision: str, tokens_per_step: float, tokens_per_row: float
) -> Measurement | None:
    """The speed of the newest training run with this model shape on this device, without steps; None if there is none.

    Without one of the same batch size, the nearest is used, which is almost as fast.
    """
    shape, _, size = throughput_key(spec, folder, device, precision).rpartition(" ")
    alike = [
        (int(key.split()[-2]), one) for key, kept in _read().items() if key.startswith(f"{shape} ") for one in kept
    ]
    if not alike:
        return None
    rows, nearest = min(alike, key=lambda pair: (abs(pair[0] - int(size)), -pair[1].time))
    token_seconds = nearest.step_seconds / (rows * nearest.mean_length)
    return Measurement(
        time=nearest.time,
        mean_length=nearest.mean_length,
        longest=nearest.longest,
        steps=0,
        step_seconds=tokens_per_step * token_seconds,
        evaluation_row_seconds=FORWARD * tokens_per_row * token_seconds,
    )


def throughput_key(spec: RunSpec, folder: Path, device: str, precision: str) -> str:
    """Engine, device, precision, the model's shape and the rows per step."""
    config = read_config(folder, spec)
    shape = ModelShape(config)
    size = f"{config.get('model_type')}-{shape.layers}x{shape.hidden}-{shape.vocabulary}"
    return f"{spec.hardware.engine} {device} {precision} {size} batch {spec.training.batch_size}"


def peak_mb() -> float:
    """Peak resident memory, in megabytes (10^6 bytes)."""
    used = psutil.Process().memory_info()
    try:
        import resource  # there is none on Windows, which tells it otherwise
    except ImportError:
        return getattr(used, "peak_wset", used.rss) / 1e6
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if psutil.MACOS else most * 1024 / 1e6
