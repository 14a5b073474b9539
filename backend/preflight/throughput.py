"""Owns the speeds that earlier runs reached here, from which a plan estimates time; nothing comparable, no estimate."""

import json
from contextlib import suppress
from pathlib import Path

from backend.contract.places import cache_folder
from backend.contract.run.folder import write_json
from backend.contract.spec import RunSpec
from backend.hardware.planner import Shape, read_config


def remember(spec: RunSpec, folder: Path, device: str, precision: str, tokens_per_second: float) -> None:
    """Keep the speed of a run that took at least a few seconds."""
    path = _path()
    with suppress(OSError):  # the next plan has no estimate, which is no reason to end a run
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {**_read(path), key_of(spec, folder, device, precision): round(tokens_per_second, 1)})


def expected(spec: RunSpec, folder: Path, device: str, precision: str) -> float | None:
    """Tokens per second of the last run with this shape of model on this device, or None.

    Without a run of the same batch size it is one of the nearest, which computes nearly as fast.
    """
    key, known = key_of(spec, folder, device, precision), _read(_path())
    if key in known:
        return known[key]
    shape, _, size = key.rpartition(" ")
    others = [one for one in known if one.rpartition(" ")[0] == shape]
    return known[min(others, key=lambda one: abs(int(one.rpartition(" ")[2]) - int(size)))] if others else None


def key_of(spec: RunSpec, folder: Path, device: str, precision: str) -> str:
    """Engine, device, precision, the model's shape and the rows of a step."""
    config = read_config(folder, spec)
    shape = Shape(config)
    size = f"{config.get('model_type')}-{shape.layers}x{shape.hidden}-{shape.vocabulary}"
    return f"{spec.hardware.engine} {device} {precision} {size} batch {spec.training.batch_size}"


def _path() -> Path:
    return cache_folder() / "throughput.json"


def _read(path: Path) -> dict[str, float]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
