"""Owns the buttons that make a run fit: each takes over other settings and says which memory they leave."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QWidget

from app import theme
from app.core import formatting
from app.core.i18n import tr
from app.widgets.card import label
from backend.contract.run.cost import Remedy

SHOWN = 3


class RemedyRow(QWidget):
    """The first that fit stand there, all others in a menu."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons = [QPushButton() for _ in range(SHOWN)]
        self._offered: list[Remedy] = []
        self.more = QPushButton(tr("Other ways"))
        self.menu = QMenu(self.more)
        self.menu.setToolTipsVisible(True)
        self.more.setMenu(self.menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 2, 0, 0)
        row.setSpacing(6)
        row.addWidget(label(tr("Make it fit:"), "muted"))
        for place, button in enumerate(self.buttons):
            theme.role(button, "chip")
            button.clicked.connect(lambda _=False, place=place: self.chosen.emit(self._offered[place]))
            row.addWidget(button)
        theme.role(self.more, "chip")
        row.addWidget(self.more)
        row.addStretch(1)
        self.hide()

    def show_remedies(self, remedies: Sequence[Remedy]) -> None:
        """Offer these, what fits first."""
        ordered = sorted(remedies, key=lambda remedy: not remedy.fits)
        self._offered = [remedy for remedy in ordered if remedy.fits][:SHOWN]
        for place, button in enumerate(self.buttons):
            button.setVisible(place < len(self._offered))
            if place < len(self._offered):
                remedy = self._offered[place]
                button.setText(_button_words(remedy))
                button.setToolTip(_hint(remedy))
        self.menu.clear()
        for remedy in ordered[len(self._offered) :]:
            action = self.menu.addAction(remedy_words(remedy))
            action.setToolTip(remedy.note)
            action.triggered.connect(lambda _=False, remedy=remedy: self.chosen.emit(remedy))
        self.more.setVisible(len(ordered) > len(self._offered))
        self.setVisible(bool(ordered))


def _button_words(remedy: Remedy) -> str:
    """What to do, and the memory that it leaves where that is known."""
    return f"{remedy.title} · {formatting.megabytes(remedy.memory_mb)}" if remedy.memory_mb else remedy.title


def _hint(remedy: Remedy) -> str:
    if not remedy.memory_mb:
        return remedy.note
    needed = formatting.megabytes(remedy.memory_mb)
    return tr("{note} It needs about {memory_mb} then.", note=remedy.note, memory_mb=needed)


def remedy_words(remedy: Remedy) -> str:
    """`LoRA adapter: about 3.1 GB`, and whether that is still too much."""
    needed = formatting.megabytes(remedy.memory_mb)
    return (
        tr("{title}: about {needed}", title=remedy.title, needed=needed)
        if remedy.fits
        else tr("{title}: about {needed}, still too much", title=remedy.title, needed=needed)
    )
