"""Owns what a failure is judged by: the run's settings, plan, checkpoint and model, each read when it is first asked for."""

from functools import cached_property
from pathlib import Path
from typing import Any

from backend.contract.errors import InputError
from backend.contract.run.event_summary import landmarks
from backend.contract.run.events import AnyEvent, PlanMade, RunResumed, RunStarted, StageStarted
from backend.contract.run.folder import RunFolder
from backend.contract.spec import RunSpec
from backend.models.config import longest_sequence
from backend.models.inspection import read_config
from backend.models.location import CONVERT_OPTION
from backend.preflight.checks import locate_model
from backend.preflight.resolve import read_run
from backend.training.checkpoints import Checkpoints


class Situation:
    """A run at the moment of its failure. What cannot be read is None: it must not hide the failure itself."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def setting(self, key: str) -> Any:
        """The value at a dotted key of the complete spec, or None."""
        found: Any = self.spec.model_dump(mode="json") if self.spec else {}
        for name in key.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    @cached_property
    def spec(self) -> RunSpec | None:
        """The complete spec."""
        try:
            return read_run(self.folder)
        except (InputError, OSError):
            return None

    @cached_property
    def plan(self) -> PlanMade | None:
        """What the present attempt was about to do; None before its data was ready."""
        plans = [event for event in self._events if isinstance(event, PlanMade)]
        return plans[-1] if plans else None

    @cached_property
    def precision(self) -> str:
        """What the present attempt computes in, for the setting may leave the choice; empty before it began."""
        begun = [event for event in self._events if isinstance(event, RunStarted | RunResumed)]
        return begun[-1].precision if begun else ""

    @cached_property
    def stage(self) -> str:
        """What the present attempt was doing; compiling is done for the sake of another stage."""
        stages = [event.stage for event in self._events if isinstance(event, StageStarted)]
        return next((stage for stage in reversed(stages) if stage != "compiling"), "")

    @cached_property
    def _events(self) -> list[AnyEvent]:
        """Those of the present attempt, nearly without its steps: there may be no memory for all of them."""
        found = landmarks(self.folder.events)
        begun = [number for number, event in enumerate(found) if isinstance(event, RunStarted | RunResumed)]
        return found[begun[-1] :] if begun else []

    @cached_property
    def can_resume(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        try:
            return Checkpoints(self.folder).latest() is not None
        except OSError:
            return False

    @cached_property
    def model(self) -> Path | None:
        """The model's folder, if it is on this computer."""
        try:
            return locate_model(self.spec, local_only=True).folder if self.spec else None
        except (InputError, OSError):
            return None

    @cached_property
    def is_convertible(self) -> bool:
        """Whether the model is here with weights in an old format that nobody agreed to convert."""
        try:
            return self.spec is not None and not locate_model(self.spec, local_only=True)
        except InputError as refusal:
            return CONVERT_OPTION in str(refusal)

    @cached_property
    def positions(self) -> int | None:
        """Tokens that the model can count; None where it counts without end, or is not here."""
        try:
            config = read_config(self.model) if self.model else {}
        except (InputError, OSError):
            return None
        return longest_sequence({**config, **(self.setting("model.config") or {})})

    @property
    def longest(self) -> int | None:
        """Most tokens that a row of the run may have."""
        return self.setting("task.max_length") or self.positions
