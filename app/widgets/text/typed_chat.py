"""Owns the conversation that is typed to be answered: messages with roles, read and written as JSON."""

import json

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from app.widgets.text.chat_editor import ChatEditor
from backend.contract.safe_text import parse_json

HEIGHT = 230


class TypedChat(ChatEditor):
    """A `ChatEditor` that can stand where a typed text does: Enter answers, Shift+Enter breaks the line."""

    entered = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.generation_prompt.hide()
        self.setMinimumHeight(HEIGHT)
        self.setPlainText("")

    def toPlainText(self) -> str:
        """The messages that say something as a JSON list, empty without any."""
        said = [{"role": role, "content": content} for role, content in self.messages() if content.strip()]
        return json.dumps(said, ensure_ascii=False) if said else ""

    def setPlainText(self, text: str) -> None:
        """Messages as JSON, or plain text, which the user says."""
        for row in list(self.rows):
            self._remove(row)
        for role, content in _messages(text):
            self.add(role, content)

    def add(self, role: str, content: str) -> None:
        """Append a message."""
        super().add(role, content)
        self.rows[-1].content.installEventFilter(self)

    def go_on(self, answer: str) -> None:
        """Append what the model answered, and room for what is said next."""
        self.add("assistant", answer)
        self.add("user", "")
        self.rows[-1].content.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter in a message asks."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.entered.emit()
                return True
        return super().eventFilter(watched, event)


def _messages(text: str) -> list[tuple[str, str]]:
    try:
        found = parse_json(text)
    except ValueError:
        found = None
    if isinstance(found, list) and all(isinstance(one, dict) for one in found) and found:
        return [(str(one.get("role", "user")), str(one.get("content", ""))) for one in found]
    return [("user", text)]
