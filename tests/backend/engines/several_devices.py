"""Runs tasks of `on_devices.py` in a process with four virtual devices."""

import json
import os
import subprocess
import sys
from typing import Any

FLAGS = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"


def on_devices(*tasks: dict[str, Any]) -> list[dict[str, Any]]:
    """What a process with four processors made of the tasks (`on_devices.py`)."""
    command = [sys.executable, "-m", "tests.backend.engines.on_devices", json.dumps(tasks)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "XLA_FLAGS": FLAGS}, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
