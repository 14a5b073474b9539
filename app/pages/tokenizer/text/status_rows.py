"""Owns the line that says how far long work is, with a button that ends it."""

from collections.abc import Callable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.core.backend_words import said
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.icon_label import IconButton
from app.widgets.progress_bar import ThinProgressBar
from backend.contract.rpc.queries import Progress

SLOW_MS = 400
"""After this the line appears."""


class WorkingRow(QWidget):
    """Hidden until work that `is_working` tells of takes long."""

    stop_asked = Signal()

    def __init__(self, is_working: Callable[[], bool], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_working = is_working
        self.bar, self.words = ThinProgressBar(), label("", "faint")
        self.stop_button = IconButton(tr("Stop"), "stop", "quiet")
        self.stop_button.clicked.connect(self.stop_asked)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 0, 0)
        row.addWidget(self.bar, 1)
        row.addWidget(self.words)
        row.addWidget(self.stop_button)
        self.slow = QTimer(self, interval=SLOW_MS, singleShot=True)
        self.slow.timeout.connect(self._appear)
        self.hide()

    def begin(self) -> None:
        """Something was asked."""
        self.slow.start()

    def tell(self, progress: Progress) -> None:
        """How far it is."""
        if progress.total:
            self.bar.set_fraction(progress.done / progress.total)
            self.words.setText(
                tr(
                    "{done:.0%} of {total:,} {unit}",
                    done=progress.done / progress.total,
                    total=progress.total,
                    unit=said(progress.unit),
                )
            )
            self._appear()

    def end(self) -> None:
        """It is done, or nobody waits for it."""
        self.slow.stop()
        self.hide()
        self.words.setText("")

    def _appear(self) -> None:
        if self._is_working() and self.isHidden() and not self.slow.isActive():
            if not self.words.text():
                self.bar.set_fraction(None)
                self.words.setText(tr("Working…"))
            self.show()
