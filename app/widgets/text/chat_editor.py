"""Editors for a conversation (messages with roles, in order): one to try a chat template, one to query a model."""

import json

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QWidget

from app.core.i18n import tr
from app.widgets.boxes import hbox, holder, scroll_area, vbox
from app.widgets.forms.inputs import QuietComboBox
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.text.text_editor import TextEditor, sends, text_of
from backend.contract.safe_text import parse_json

ROLES = ("system", "user", "assistant", "tool")
EXAMPLE = (("system", tr("You are a helpful assistant.")), ("user", tr("What is a token?")))
_HEIGHT = 40


class _Row(QWidget):
    changed = Signal()
    removed = Signal()

    def __init__(self, role: str, content: str) -> None:
        super().__init__()
        self.role = QuietComboBox(name=tr("Role"))
        self.role.setEditable(True)
        self.role.addItems(ROLES)
        self.role.setCurrentText(role)
        self.role.setFixedWidth(104)
        self.content = TextEditor(content)
        self.content.setAccessibleName(tr("Message"))
        self.content.setTabChangesFocus(True)
        self.content.setFixedHeight(_HEIGHT)
        self.remove = IconToolButton("close", tr("Remove message"), clicked=self.removed)
        row = hbox(self.role, (self.content, 1), self.remove, spacing=8, parent=self)
        for part in (self.role, self.remove):
            row.setAlignment(part, Qt.AlignmentFlag.AlignTop)
        self.role.currentTextChanged.connect(self.changed)
        self.content.textChanged.connect(self.changed)


class ChatEditor(QWidget):
    """Messages, and whether to add a generation prompt."""

    changed = Signal()
    too_long = Signal(str)
    """A text that was to be pasted into a message."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[_Row] = []
        self._column = vbox(1, spacing=4, margins=(0, 0, 4, 0))
        self.add_button = IconButton(tr("Add message"), "plus", "quiet", clicked=self._on_add)
        self.generation_prompt = QCheckBox(tr("Generation prompt"))
        self.generation_prompt.setToolTip(tr("Add the prompt for the assistant's next answer"))
        self.generation_prompt.toggled.connect(self.changed)
        bottom = hbox(self.add_button, self.generation_prompt, 1)
        vbox((scroll_area(holder(self._column)), 1), bottom, spacing=6, parent=self)
        for role, content in EXAMPLE:
            self.add(role, content)

    def messages(self) -> list[tuple[str, str]]:
        """Role and content of each message."""
        return [(row.role.currentText().strip(), text_of(row.content)) for row in self.rows]

    def add(self, role: str, content: str) -> None:
        """Append a message."""
        row = _Row(role, content)
        self.rows.append(row)
        self._column.insertWidget(len(self.rows) - 1, row)
        row.changed.connect(self.changed)
        row.content.too_long.connect(self.too_long)
        row.removed.connect(lambda: self._remove(row))

    def _on_add(self) -> None:
        last = self.rows[-1].role.currentText() if self.rows else ""
        self.add("assistant" if last == "user" else "user", "")
        self.rows[-1].content.setFocus()
        self.changed.emit()

    def _remove(self, row: _Row) -> None:
        self.rows.remove(row)
        self._column.removeWidget(row)
        row.hide()
        row.deleteLater()
        self.changed.emit()


TYPED_HEIGHT = 230


class TypedChat(ChatEditor):
    """A `ChatEditor` that can replace a text field: Enter sends, Shift+Enter breaks the line."""

    entered = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.generation_prompt.hide()
        self.setMinimumHeight(TYPED_HEIGHT)
        self.setPlainText("")

    def toPlainText(self) -> str:
        """The non-empty messages as a JSON list, empty if there are none."""
        said = [{"role": role, "content": content} for role, content in self.messages() if content.strip()]
        return json.dumps(said, ensure_ascii=False) if said else ""

    def setPlainText(self, text: str) -> None:
        """Set messages from JSON, or from plain text as the user's message."""
        for row in list(self.rows):
            self._remove(row)
        for role, content in _messages(text):
            self.add(role, content)

    def add(self, role: str, content: str) -> None:
        """Append a message."""
        super().add(role, content)
        self.rows[-1].content.installEventFilter(self)

    def go_on(self, answer: str) -> None:
        """Append the model's answer, and an empty message for what comes next."""
        self.add("assistant", answer)
        self.add("user", "")
        self.rows[-1].content.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Enter in a message sends it."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and sends(event):
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
