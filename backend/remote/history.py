"""How fast a machine has trained, from the events of the runs whose copies are here; nothing of it is stored twice."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.run import events
from backend.contract.run.cost import Measurement
from backend.contract.run.folder import RunFolder, run_folders
from backend.contract.safe_files import open_unlinked
from backend.contract.spec import RunSpec

LAST_BYTES = 1_000_000
"""Of a run's events: some thousands of steps, the newest."""


@dataclass(frozen=True)
class Speed:
    """What the last part of a run's events tells."""

    steps: int
    rows_per_second: float
    token_seconds: float
    """Of one token in training."""
    time: float
    """Of its last step."""
    evaluation_row_seconds: float | None = None
    checkpoint_seconds: float | None = None

    def measure(self, tokens_per_step: float, tokens_per_row: float, machine: str) -> Measurement:
        """What it means for a training run with so many tokens."""
        return Measurement(
            time=self.time,
            source="run",
            mean_length=tokens_per_row,
            longest=round(tokens_per_row),
            steps=self.steps,
            step_seconds=self.token_seconds * tokens_per_step,
            evaluation_row_seconds=self.evaluation_row_seconds,
            checkpoint_seconds=self.checkpoint_seconds,
            machine=machine,
        )


def runs_on(machine: str, root: Path) -> list[RunFolder]:
    """The runs of that machine whose copies are under `root`, newest first."""
    return [
        folder
        for folder in run_folders(root)
        if (remote := folder.remote_run()) is not None and remote.machine == machine
    ]


def read_speed(folder: RunFolder) -> Speed | None:
    """How fast a run was; None before its second step, of which the first is not counted: it compiles and warms up."""
    try:
        with open_unlinked(folder.events) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES))
            found = list(events.decode_all(file.read().split(b"\n")))
    except (OSError, InputError):
        return None
    steps = [event for event in found if isinstance(event, events.StepFinished)][1:]
    seconds, tokens = sum(step.seconds for step in steps), sum(step.tokens for step in steps)
    if seconds <= 0 or tokens <= 0:
        return None
    evaluated = [event for event in found if isinstance(event, events.EvaluationFinished) and event.rows]
    saved = [event.seconds for event in found if isinstance(event, events.CheckpointSaved)]
    rows = sum(event.rows for event in evaluated)
    return Speed(
        steps=len(steps),
        rows_per_second=sum(step.rows for step in steps) / seconds,
        token_seconds=seconds / tokens,
        time=steps[-1].time,
        evaluation_row_seconds=sum(event.seconds for event in evaluated) / rows if rows else None,
        checkpoint_seconds=sum(saved) / len(saved) if saved else None,
    )


def find_speed(machine: str, root: Path, spec: RunSpec) -> Speed | None:
    """How fast the newest run there was that trains the same model for the same task; None if there is none."""
    wanted = _kind(spec.model_dump(mode="json"))
    for folder in runs_on(machine, root):
        try:
            is_alike = _kind(spec_file.read_run(folder.spec)) == wanted
        except (InputError, OSError):
            continue
        if is_alike and (speed := read_speed(folder)) is not None:
            return speed
    return None


def _kind(values: Mapping[str, Any]) -> tuple[object, ...]:
    """What decides the time of a token."""
    sections = {name: part if isinstance(part := values.get(name), dict) else {} for name in ("model", "task", "hardware", "adapter")}  # fmt: skip
    model = str(sections["model"].get("name_or_path")).rstrip("/").rpartition("/")[2]
    return model, sections["task"].get("type"), sections["hardware"].get("engine"), sections["adapter"].get("type")
