"""Owns what a draft says about the model that it wants: its task, engine, and the memory that is free for it."""

from collections.abc import Sequence
from typing import Any

from app.core.draft.draft import Draft
from backend.contract.catalog import Device


def wish(draft: Draft, devices: Sequence[Device]) -> dict[str, Any]:
    """The `wish` of a question about models."""
    return {
        "task": str(draft.get("task.type") or ""),
        "engine": str(draft.get("hardware.engine", "torch")),
        "optimizer": str(draft.get("training.optimizer", "adamw")),
        "partly": bool(draft.get("adapter") or draft.get("model.frozen")),
        "from_scratch": draft.get("model.initialise") == "from_config",
        "free_mb": free_mb(draft, devices),
    }


def free_mb(draft: Draft, devices: Sequence[Device]) -> float:
    """Of the device that the run would take, at most what it may use; 0 where none was looked at yet."""
    wanted = str(draft.get("hardware.device", "auto"))
    fitting = [one for one in devices if wanted in ("auto", one.kind)]
    best = next((one for one in fitting if one.kind != "cpu"), next(iter(fitting), None))
    free = best.free_mb if best else 0.0
    limit = draft.get("hardware.memory_limit")
    return min(free, limit * 1000) if isinstance(limit, int | float) and free else free
