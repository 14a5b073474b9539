"""Checks whether a window can be shown (stdlib only)."""

import os
import sys

NO_SCREEN_PLATFORMS = ("offscreen", "minimal", "vnc")


def has_display() -> bool:
    """Whether there is a display, and Qt is not set to draw elsewhere."""
    if os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0] in NO_SCREEN_PLATFORMS:
        return False
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
