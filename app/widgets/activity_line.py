"""Owns the line that tells of work that takes a while, with a button that stops it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.progress import ThinProgressBar
from app.widgets.text.elided_label import ElidedLabel


class ActivityLine(QFrame):
    """Hidden until `begin`; `stopped` is emitted by its button."""

    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.role(self, "card")
        self.title = label("", "strong")
        self.detail = ElidedLabel("", "muted")
        self.bar = ThinProgressBar()
        self.stop = QPushButton(tr("Stop"))
        self.stop.clicked.connect(self.stopped)
        words = QHBoxLayout()
        words.setSpacing(12)
        words.addWidget(self.title)
        words.addWidget(self.detail, 1)
        texts = QVBoxLayout()
        texts.setSpacing(6)
        texts.addLayout(words)
        texts.addWidget(self.bar)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 8, 10, 8)
        row.setSpacing(14)
        row.addLayout(texts, 1)
        row.addWidget(self.stop)
        self.hide()

    def begin(self, title: str, can_stop: bool = True) -> None:
        """Something has begun."""
        self.title.setText(title)
        self.show_progress("", None)
        self.stop.setVisible(can_stop)
        self.stop.setAccessibleName(tr("Stop: {title}", title=title))
        self.show()

    def show_progress(self, detail: str, fraction: float | None) -> None:
        """How far it is; no fraction where that is unknown."""
        self.detail.setText(detail)
        self.bar.set_fraction(fraction)

    def end(self) -> None:
        """It is over."""
        self.hide()
