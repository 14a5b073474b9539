"""Sends a run's curves to Weights & Biases, or into a folder that `wandb sync` uploads later."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from backend.contract import places
from backend.mirrors.mirror import RunDescription, TrackerSettings, check_address, import_library


class WandbSettings(TrackerSettings):
    """Where runs go."""

    project: str = Field("burnish", title="Project", min_length=1, max_length=128)
    """The project that the runs belong to."""
    entity: str = Field("", title="Entity", max_length=128)
    """A team or user other than your default."""
    address: str = Field("", title="Address", max_length=1000)
    """A server of your own; empty for wandb.ai."""
    mode: Literal["online", "offline"] = Field("online", title="Mode")
    """`offline` keeps runs in the folder below until you run `wandb sync` on them. Offline mode of Burnish does that, too."""
    folder: str = Field("", title="Folder", max_length=1000, json_schema_extra={"path": True})
    """Where the files of runs are kept; empty for Burnish's cache."""


class Wandb:
    """Runs of a project."""

    title: ClassVar[str] = "Weights & Biases"
    description: ClassVar[str] = "wandb.ai or a server of your own. Log in once with: wandb login"
    Settings = WandbSettings

    def check(self, settings: WandbSettings) -> None:
        """See `Tracker.check`."""
        if settings.mode == "online" and settings.address:
            check_address(settings.address, "address")

    def open(self, run: RunDescription, settings: WandbSettings, run_id: str) -> "WandbWriter":
        """See `Tracker.open`."""
        os.environ |= {"WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true"}
        wandb = import_library("wandb", self.title)  # seconds
        is_offline = settings.mode == "offline" or places.is_offline()
        folder = settings.folder or str(places.private_folder("wandb"))
        found = wandb.init(
            project=settings.project, entity=settings.entity or None, name=run.name, id=run_id or None,
            resume="allow", mode="offline" if is_offline else "online", dir=folder, config=run.settings,
            settings=wandb.Settings(
                console="off", disable_git=True, disable_code=True, x_disable_stats=True, x_save_requirements=False, init_timeout=30,
                **({"base_url": settings.address} if settings.address else {}),
            ),
        )  # fmt: skip
        found.define_metric("*", step_metric="step")
        return WandbWriter(found)


class WandbWriter:
    """Each point carries its step, because W&B's own steps can only rise."""

    def __init__(self, run: Any) -> None:
        self.id = run.id
        self._run = run

    def write(self, step: int, time: float, values: Mapping[str, float]) -> None:
        """See `Writer.write`."""
        self._run.log({**values, "step": step, "_timestamp": time})

    def rewind(self, step: int) -> bool:
        """See `Writer.rewind`."""
        return False

    def flush(self) -> None:
        """See `Writer.flush`; the library keeps points on disk until they are sent."""

    def close(self, state: str) -> None:
        """See `Writer.close`."""
        self._run.summary["state"] = state
        self._run.finish(exit_code=int(state == "failed"))


MIRROR = Wandb()
