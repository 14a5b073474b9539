"""What an empty page shows: an icon, a sentence, and what to do."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.widgets.card import label
from app.widgets.icon_label import IconLabel

WIDTH, NARROWEST = 420, 200
"""Pixels of the sentence."""


class EmptyState(QWidget):
    """`action_clicked` is emitted by the button, which is omitted if `button` is empty."""

    action_clicked = Signal()

    def __init__(
        self, icon: str, title: str, sentence: str = "", button: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._icon = IconLabel(icon, "faint", 40)
        self._title = label(title, "section")
        self._sentence = label(sentence, "muted", wrap=True)
        self._button = QPushButton()
        theme.role(self._button, "primary")
        self._button.clicked.connect(self.action_clicked)
        self._sentence.setMinimumWidth(NARROWEST)
        self._sentence.setMaximumWidth(WIDTH)
        column = QVBoxLayout(self)
        column.setSpacing(6)
        column.addStretch(2)
        for part in (self._icon, self._title, self._sentence):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        for part in (self._icon, self._title):
            column.addWidget(part, 0, Qt.AlignmentFlag.AlignHCenter)
        # Centred by what is left at its sides: aligned itself, it would be given the height of one line.
        row = QHBoxLayout()
        row.addStretch(0)
        row.addWidget(self._sentence, 1)
        row.addStretch(0)
        column.addLayout(row)
        column.addSpacing(10)
        column.addWidget(self._button, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(3)
        self._set_button(button)
        self._sentence.setVisible(bool(sentence))

    def set_words(self, title: str, sentence: str, button: str | None = None) -> None:
        """Change title and sentence and, if given, the button."""
        self._title.setText(title)
        self._sentence.setText(sentence)
        self._sentence.setVisible(bool(sentence))
        if button is not None:
            self._set_button(button)

    def _set_button(self, words: str) -> None:
        self._button.setText(words)
        self._button.setVisible(bool(words))
        self._button.setFocusPolicy(Qt.FocusPolicy.StrongFocus if words else Qt.FocusPolicy.NoFocus)
