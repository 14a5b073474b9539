"""Owns the small editor of a conversation: messages with their roles, in order."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.core.i18n import tr
from app.widgets.forms.quiet_combo_box import QuietComboBox
from app.widgets.icon_label import IconButton, IconToolButton
from app.widgets.text.editor_text import text_of
from app.widgets.text.text_editor import TextEditor

ROLES = ("system", "user", "assistant", "tool")
EXAMPLE = (("system", tr("You are a helpful assistant.")), ("user", tr("What is a token?")))
_HEIGHT = 40


class _Row(QWidget):
    changed = Signal()
    removed = Signal()

    def __init__(self, role: str, content: str) -> None:
        super().__init__()
        self.role = QuietComboBox()
        self.role.setEditable(True)
        self.role.addItems(ROLES)
        self.role.setCurrentText(role)
        self.role.setFixedWidth(104)
        self.role.setAccessibleName(tr("Role"))
        self.content = TextEditor(content)
        self.content.setAccessibleName(tr("Message"))
        self.content.setTabChangesFocus(True)
        self.content.setFixedHeight(_HEIGHT)
        self.remove = IconToolButton("close", tr("Remove this message"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.role, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.content, 1)
        row.addWidget(self.remove, 0, Qt.AlignmentFlag.AlignTop)
        self.role.currentTextChanged.connect(self.changed)
        self.content.textChanged.connect(self.changed)
        self.remove.clicked.connect(self.removed)


class ChatEditor(QWidget):
    """Messages, and whether the next answer's beginning is written out."""

    changed = Signal()
    too_long = Signal(str)
    """A text that was to be pasted into a message."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[_Row] = []
        holder = QWidget()
        holder.setObjectName("scrolled")
        self._column = QVBoxLayout(holder)
        self._column.setContentsMargins(0, 0, 4, 0)
        self._column.setSpacing(4)
        self._column.addStretch(1)
        area = QScrollArea(widgetResizable=True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(holder)
        self.add_button = IconButton(tr("Add message"), "plus", "quiet")
        self.add_button.clicked.connect(self._on_add)
        self.generation_prompt = QCheckBox(tr("Generation prompt"))
        self.generation_prompt.setToolTip(tr("Write out what comes before the assistant's next answer"))
        self.generation_prompt.toggled.connect(self.changed)
        bottom = QHBoxLayout()
        bottom.addWidget(self.add_button)
        bottom.addWidget(self.generation_prompt)
        bottom.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(area, 1)
        column.addLayout(bottom)
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
