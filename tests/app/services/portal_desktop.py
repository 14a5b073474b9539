"""A small desktop portal on the session's bus, and the window's message to it: prints what arrives, as JSON: `TEXT error|normal`.

A process of its own, since Qt connects to one session's bus once.
"""

import json
import sys

from PySide6.QtCore import ClassInfo, QCoreApplication, QObject, QTimer, Slot
from PySide6.QtDBus import QDBusConnection

from app.services import notifications

LONGEST_MS = 20_000


@ClassInfo({"D-Bus Interface": "org.freedesktop.portal.Notification"})  # type: ignore[operator]
class Portal(QObject):
    """Takes one message and ends the process."""

    @Slot(str, "QVariantMap")
    def AddNotification(self, name: str, said: dict[str, str]) -> None:
        sys.stdout.write(json.dumps({"id": name, **said}) + "\n")
        QCoreApplication.quit()


def main(text: str, kind: str) -> None:
    application = QCoreApplication(sys.argv[:1])
    before = notifications.is_possible()
    bus = QDBusConnection.connectToBus(QDBusConnection.BusType.SessionBus, "portal")
    portal = Portal()
    slots = QDBusConnection.RegisterOption.ExportAllSlots
    assert bus.registerObject("/org/freedesktop/portal/desktop", portal, slots)
    assert bus.registerService(notifications.PORTAL)
    assert (before, notifications.is_possible()) == (False, True)
    assert notifications.notify("Burnish", text, kind == "error")
    QTimer.singleShot(LONGEST_MS, application.quit)
    application.exec()


if __name__ == "__main__":
    main(*sys.argv[1:])
