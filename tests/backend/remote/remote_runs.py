"""What tests of runs on another machine share: a command as a function, and the losses of a run."""

import json
import subprocess
from collections.abc import Callable

from backend.contract.run.folder import RunFolder

Burnish = Callable[..., "subprocess.CompletedProcess[str]"]


def losses(folder: RunFolder) -> list[float]:
    """The loss of every step in the run's events."""
    lines = map(json.loads, folder.events.read_text().splitlines()) if folder.events.exists() else ()
    return [line["loss"] for line in lines if line["event"] == "StepFinished"]
