"""Owns what a page shows while it has nothing to show: an icon, a sentence, and what to do."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app import theme
from app.widgets.card import label
from app.widgets.icon_label import IconLabel

WIDTH = 420


class EmptyState(QWidget):
    """`asked` is emitted by the button, which is left out where `button` is empty."""

    asked = Signal()

    def __init__(
        self, icon: str, title: str, sentence: str = "", button: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._icon = IconLabel(icon, "faint", 40)
        self._title = label(title, "section")
        self._sentence = label(sentence, "muted", wrap=True)
        self._button = QPushButton()
        theme.role(self._button, "primary")
        self._button.clicked.connect(self.asked)
        self._sentence.setFixedWidth(WIDTH)
        column = QVBoxLayout(self)
        column.setSpacing(6)
        column.addStretch(2)
        for part in (self._icon, self._title, self._sentence):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
            column.addWidget(part, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(10)
        column.addWidget(self._button, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(3)
        self._set_button(button)
        self._fit()

    def set_words(self, title: str, sentence: str, button: str | None = None) -> None:
        """Change title and sentence, and the button where given."""
        self._title.setText(title)
        self._sentence.setText(sentence)
        self._fit()
        if button is not None:
            self._set_button(button)

    def _set_button(self, words: str) -> None:
        self._button.setText(words)
        self._button.setVisible(bool(words))
        self._button.setFocusPolicy(Qt.FocusPolicy.StrongFocus if words else Qt.FocusPolicy.NoFocus)

    def _fit(self) -> None:
        # A wrapped label that is centred in a layout is given one line's height unless told otherwise.
        self._sentence.ensurePolished()
        self._sentence.setFixedHeight(max(0, self._sentence.heightForWidth(WIDTH)))
        self._sentence.setVisible(bool(self._sentence.text()))
