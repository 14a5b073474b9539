"""Owns how a Python process of Burnish is started, from a checkout or a wheel and from any folder (stdlib only)."""

import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

OPEN_AGAIN = 75
"""The exit code with which the window asks whoever opened it to open it again, for example in another language."""

_ROOT = Path(__file__).resolve().parents[2]


def python_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of Burnish; `-P` keeps a folder named `app` in the working folder out of the way."""
    return [sys.executable, "-P", "-m", module, *arguments]


def child_environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment with `changes`, in which a child finds the packages of a checkout too."""
    environment = {**os.environ, **(changes or {})}
    # An installed package is found anyway, and site-packages in PYTHONPATH would come before the standard library.
    if str(_ROOT) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        known = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part and part != str(_ROOT)]
        environment["PYTHONPATH"] = os.pathsep.join([str(_ROOT), *known])
    return environment
