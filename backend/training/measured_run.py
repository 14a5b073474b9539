"""Turns a finished run's events into a time measurement for the next similar run."""

from collections.abc import Sequence

import msgspec
import numpy as np

from backend.contract.run.cost import Measurement
from backend.contract.run.event_summary import landmarks
from backend.contract.run.events import (
    AnyEvent,
    CheckpointSaved,
    EvaluationFinished,
    ModelExported,
    ModelLoaded,
    ProgramCompiled,
    RunResumed,
    RunStarted,
    StageStarted,
)
from backend.contract.run.folder import RunFolder
from backend.preflight import measurements
from backend.preflight.measurements import peak_mb
from backend.preflight.sample_lengths import SAMPLE_ROWS
from backend.training.setup import RunSetup


def remember(folder: RunFolder, opened: RunSetup, steps: int, seconds: float) -> None:
    """Save what the current attempt measured: its `steps` and `seconds` without evaluations, and its events."""
    process = folder.process_record()
    found = msgspec.structs.replace(
        measure_events(
            landmarks(folder.events), process.started if process else None, steps, seconds, _lengths(opened)
        ),
        memory_mb=peak_mb(),
        device_memory_mb=opened.session.engine.device_memory_mb(),
    )
    key = measurements.key_of(opened.session.spec, opened.model_folder, opened.device, opened.precision)
    measurements.remember(key, found)


def measure_events(
    events: Sequence[AnyEvent], started: float | None, steps: int, seconds: float, lengths: np.ndarray
) -> Measurement:
    """The measurements in the last attempt's events; `started` is its start, `lengths` (features,) its tokens."""
    begun = [number for number, event in enumerate(events) if isinstance(event, RunStarted | RunResumed)]
    events = events[begun[-1] :] if begun else events
    compiled = [event.seconds for event in events if isinstance(event, ProgramCompiled)]
    evaluations = [event for event in events if isinstance(event, EvaluationFinished)]
    checkpoints = [event.seconds for event in events if isinstance(event, CheckpointSaved)]
    rows = sum(event.rows for event in evaluations)
    return Measurement(
        time=events[-1].time,
        source="run",
        mean_length=float(lengths.mean()),
        longest=int(lengths.max()),
        steps=steps,
        step_seconds=seconds / steps,
        starting_seconds=max(0.0, events[0].time - started) if started is not None and begun else None,
        loading_seconds=_seconds_between(events, "loading model", ModelLoaded),
        compile_seconds=sum(compiled) / len(compiled) if compiled else 0.0,
        programs=len(compiled),
        compiled=len(compiled),
        evaluation_row_seconds=sum(event.seconds for event in evaluations) / rows if rows else None,
        checkpoint_seconds=sum(checkpoints) / len(checkpoints) if checkpoints else None,
        saving_seconds=_seconds_between(events, "saving", ModelExported),
    )


def _seconds_between(events: Sequence[AnyEvent], stage: str, end: type[AnyEvent]) -> float | None:
    """Seconds from the first start of a stage to the first such event after it."""
    begun = next((event.time for event in events if isinstance(event, StageStarted) and event.stage == stage), None)
    ended = next((event.time for event in events if isinstance(event, end) and event.time >= (begun or 0.0)), None)
    return None if begun is None or ended is None else ended - begun


def _lengths(opened: RunSetup) -> np.ndarray:
    """The lengths of the same sample of features as a plan uses, so that both find the same longest one."""
    lengths = opened.features["train"].lengths
    return lengths[np.linspace(0, len(lengths) - 1, min(len(lengths), SAMPLE_ROWS)).astype(np.int64)]
