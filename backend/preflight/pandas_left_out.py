"""Keeps pyarrow from importing pandas, in a process that reads one source and ends."""

import sys
from contextlib import suppress

import pyarrow as pa

from backend import registry

_MAKES_DATA_FRAMES = "hub"
"""The source whose library, `datasets`, hands objects of pandas to pyarrow."""


def leave_pandas_out(source: str) -> None:
    """Let pyarrow find no pandas when it makes its first array, for which it imports it (0.5 s) to recognise its objects.

    Nothing of ours makes such objects, but an installed plugin may.
    """
    if source == _MAKES_DATA_FRAMES or "pandas" in sys.modules or registry.installed_plugins():
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        for _ in range(2):  # pyarrow looks for it in two places, one after the other
            with suppress(ImportError, AttributeError):
                pa.scalar(0)
    finally:
        del sys.modules["pandas"]
