"""Sends a run's curves to Trackio: into its database on this computer, or to a Space of the Hub."""

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any, ClassVar

from pydantic import Field

from backend.contract import places
from backend.contract.errors import InputError
from backend.mirrors.mirror import RunDescription, TrackerSettings, import_library


class TrackioSettings(TrackerSettings):
    """Where runs go."""

    project: str = Field("burnish", title="Project", min_length=1, max_length=128)
    """The project that the runs belong to."""
    space: str = Field("", title="Space", max_length=200)
    """A Space of the Hub such as `ada/trackio`, where others see the runs too; empty for this computer alone."""


class Trackio:
    """Runs of a project."""

    title: ClassVar[str] = "Trackio"
    description: ClassVar[str] = "A database on this computer, or a Space of the Hub. See it with: trackio show"
    Settings = TrackioSettings

    def check(self, settings: TrackioSettings) -> None:
        """See `Tracker.check`."""
        if settings.space and places.is_offline():
            raise InputError("space: offline mode is on; turn it off, or leave the Space out", "space")

    def open(self, run: RunDescription, settings: TrackioSettings, run_id: str) -> "TrackioWriter":
        """See `Tracker.open`; the id is the run's name."""
        with redirect_stdout(sys.stderr):
            trackio = import_library("trackio", self.title)
        return TrackioWriter(trackio, run, settings, run_id)


class TrackioWriter:
    """Ends the library's run at each flush: only then has everything reached the database."""

    def __init__(self, trackio: Any, run: RunDescription, settings: TrackioSettings, run_id: str) -> None:
        self.id = run_id or run.name
        self._trackio, self._sent_run, self._settings = trackio, run, settings
        self._resume = "allow" if run_id else "never"
        self._run: Any = None

    def write(self, step: int, time: float, values: Mapping[str, float]) -> None:
        """See `Writer.write`."""
        if self._run is None:
            with redirect_stdout(sys.stderr):
                self._run = self._trackio.init(
                    project=self._settings.project, name=self.id, space_id=self._settings.space or None,
                    config=self._sent_run.settings, resume=self._resume, embed=False, auto_log_gpu=False, auto_log_cpu=False,
                )  # fmt: skip
            self._resume = "allow"
        self._run.log(dict(values), step=step)

    def rewind(self, step: int) -> bool:
        """See `Writer.rewind`."""
        return False

    def flush(self) -> None:
        """See `Writer.flush`."""
        if self._run is not None:
            with redirect_stdout(sys.stderr):
                self._run.finish()
            self._run = None

    def close(self, state: str) -> None:
        """See `Writer.close`; Trackio knows no states."""
        self.flush()


MIRROR = Trackio()
