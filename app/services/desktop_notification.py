"""Owns messages of a freedesktop desktop that has no tray, GNOME's for example, through its own `notify-send`."""

import html
import os
from pathlib import Path

from PySide6.QtCore import QProcess, QStandardPaths

PROGRAM = "notify-send"


def is_possible() -> bool:
    """Whether the program is there, and a session that it could tell."""
    return bool(QStandardPaths.findExecutable(PROGRAM)) and _has_session()


def _has_session() -> bool:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return bool(os.environ.get("DBUS_SESSION_BUS_ADDRESS")) or bool(runtime and (Path(runtime) / "bus").exists())


def notify(title: str, text: str, is_error: bool) -> bool:
    """Say it; whether somebody could be told."""
    if not is_possible():
        return False
    urgency = "critical" if is_error else "normal"
    # The text is markup to the desktop, and a run's name may hold anything.
    arguments = ["--app-name=Burnish", f"--urgency={urgency}", "--", title, html.escape(text, quote=False)]
    started, _ = QProcess.startDetached(QStandardPaths.findExecutable(PROGRAM), arguments)
    return started
