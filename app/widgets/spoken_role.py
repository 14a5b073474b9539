"""Owns as what a screen reader announces widgets that paint themselves: a chart, a progress bar, an indicator."""

from functools import cache

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget

Role = QAccessible.Role


class _Spoken(QAccessibleWidget):
    """The widget's `spoken_role`, and its description as its value: whoever paints keeps the description current."""

    def text(self, t: QAccessible.Text) -> str:
        """Qt asks for name, description, value and more."""
        if t == QAccessible.Text.Value:
            return self.widget().accessibleDescription()
        return super().text(t)


@cache
def speak_roles() -> None:
    """From now on widgets with a `spoken_role` are announced as that, not as an unnamed area."""
    QAccessible.installFactory(_made)


def _made(kind: str, thing: QObject) -> QAccessibleInterface | None:
    role = getattr(thing, "spoken_role", None)
    return _Spoken(thing, role) if role is not None and isinstance(thing, QWidget) else None
