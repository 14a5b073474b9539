"""Shows notifications on a freedesktop desktop without a tray (such as GNOME), using `notify-send` or its portal."""

import html
import os
import sys
from pathlib import Path

from PySide6.QtCore import QProcess, QStandardPaths

PROGRAM = "notify-send"
PORTAL = "org.freedesktop.portal.Desktop"
"""The bus name of the desktop's portal. `org.freedesktop.Notifications` itself is out of reach: it wants an unsigned
number, and PySide6 sends every number as a signed one."""


def is_possible() -> bool:
    """Whether there is a desktop session with a notification service."""
    return _has_session() and (bool(QStandardPaths.findExecutable(PROGRAM)) or _has_portal())


def _has_session() -> bool:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return bool(os.environ.get("DBUS_SESSION_BUS_ADDRESS")) or bool(runtime and (Path(runtime) / "bus").exists())


def _has_portal() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    from PySide6.QtDBus import QDBusConnection  # Windows has none

    bus = QDBusConnection.sessionBus()
    if not bus.isConnected():
        return False
    kinds = ("ListNames", "ListActivatableNames")
    return any(PORTAL in names for kind in kinds for names in bus.interface().call(kind).arguments())


def notify(title: str, text: str, is_error: bool) -> bool:
    """Show a desktop notification; return whether the desktop could show it."""
    if not _has_session():
        return False
    if QStandardPaths.findExecutable(PROGRAM):
        return _by_program(title, text, is_error)
    return _has_portal() and _by_portal(title, text, is_error)


def _by_program(title: str, text: str, is_error: bool) -> bool:
    urgency = "critical" if is_error else "normal"
    # The text is markup to the desktop, and a run's name may hold anything.
    arguments = ["--app-name=Burnish", f"--urgency={urgency}", "--", title, html.escape(text, quote=False)]
    started, _ = QProcess.startDetached(QStandardPaths.findExecutable(PROGRAM), arguments)
    return started


def _by_portal(title: str, text: str, is_error: bool) -> bool:
    from PySide6.QtDBus import QDBusConnection, QDBusMessage  # Windows has none

    call = QDBusMessage.createMethodCall(
        PORTAL, "/org/freedesktop/portal/desktop", "org.freedesktop.portal.Notification", "AddNotification"
    )
    priority = "high" if is_error else "normal"
    call.setArguments([text, {"title": title, "body": text, "priority": priority}])  # said twice, it is shown once
    return QDBusConnection.sessionBus().send(call)
