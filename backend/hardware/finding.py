"""Owns what one look of `burnish doctor` finds."""

import sys
from importlib import metadata
from typing import Literal

import msgspec

State = Literal["fine", "note", "missing"]


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at; `mend` is a command or a sentence where something can be done."""

    state: State
    text: str
    mend: str = ""


def version_of(distribution: str) -> str:
    """The installed version; empty where there is none."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def pip(*wanted: str) -> str:
    """The command that installs extras of Burnish, or whole requirements such as `jax[tpu]`, here."""
    named = [one if "[" in one or "=" in one else f"burnish[{one}]" for one in wanted]
    return f"{sys.executable} -m pip install {' '.join(repr(one) for one in named)}"
