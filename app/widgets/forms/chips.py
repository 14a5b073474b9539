"""Round buttons: a row of choices, and filter conditions that can be removed."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QHBoxLayout, QPushButton, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.icon_label import IconButton


def chips(titles: Sequence[str], chosen: Callable[[int], object] | None = None) -> tuple[QButtonGroup, QHBoxLayout]:
    """Rounded buttons, one of which is selected; ids count from 0. `chosen` receives the one that the user clicks."""
    row = QHBoxLayout()
    row.setSpacing(6)
    group: QButtonGroup | None = None
    for place, title in enumerate(titles):
        button = QPushButton(title)
        theme.role(button, "chip")
        button.setCheckable(True)
        button.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        group = group or QButtonGroup(button)
        group.addButton(button, place)
        row.addWidget(button)
    assert group is not None
    group.buttonToggled.connect(_reach)
    group.button(0).setChecked(True)
    if chosen is not None:
        group.idClicked.connect(chosen)
    return group, row


def set_narrow(group: QButtonGroup, is_narrow: bool) -> None:
    """Give the buttons less room beside their words."""
    for button in group.buttons():
        theme.role(button, "chip-narrow" if is_narrow else "chip")


def _reach(button: QAbstractButton, chosen: bool) -> None:
    """Tab goes to the selected one, arrows to the others; Qt only does so once one has had the focus."""
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus if chosen else Qt.FocusPolicy.ClickFocus)


MAX_CHIPS = 8
"""Chips that have room; the others are taken back together."""


class FilterChips(QWidget):
    """The active conditions and how much matches; hidden while there are none."""

    dropped = Signal(str)
    """The key of a condition that is taken back."""
    cleared = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._buttons: list[IconButton] = []
        self.count = label("", "muted")
        self.clear_all = QPushButton(tr("Show all rows"))
        theme.role(self.clear_all, "quiet")
        self.clear_all.clicked.connect(self.cleared)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(6)
        self._row.addWidget(self.clear_all)
        self._row.addStretch(1)
        self._row.addWidget(self.count)
        self.hide()

    def show_chips(self, chips: Sequence[tuple[str, str]]) -> None:
        """(key, words) of each condition."""
        if [(button.property("key"), button.text()) for button in self._buttons] != list(chips[:MAX_CHIPS]):
            for button in self._buttons:
                button.hide()
                button.deleteLater()
            self._buttons = [self._chip(key, words) for key, words in chips[:MAX_CHIPS]]
            for place, button in enumerate(self._buttons):
                self._row.insertWidget(place, button)
        self.setVisible(bool(chips))

    def _chip(self, key: str, words: str) -> IconButton:
        button = IconButton(words.replace("&", "&&"), "close", "chip", "accent_text")
        button.setCheckable(True)
        button.setChecked(True)
        button.setProperty("key", key)
        button.setAccessibleName(tr("Remove: {words}", words=words))
        button.setToolTip(tr("Remove this filter"))
        button.clicked.connect(lambda: self.dropped.emit(key))
        return button

    def words(self) -> list[str]:
        """The texts of the chips."""
        return [button.text().replace("&&", "&") for button in self._buttons]

    def chip(self, key: str) -> QPushButton:
        """The button of a condition."""
        return next(button for button in self._buttons if button.property("key") == key)

    def show_count(self, words: str) -> None:
        """Show how many rows match, in words."""
        self.count.setText(words)
