"""Owns the drop-down in which several things can be ticked; it shows which ones are."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from app.widgets.forms.quiet_combo_box import QuietComboBox


class CheckMenu(QuietComboBox):
    """`none` stands there while nothing is ticked."""

    changed = Signal()

    def __init__(self, name: str, none: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name, self._none = name, none
        self.menu = QMenu(self)
        self._actions: list[QAction] = []
        self.addItem(none)
        self.offer([], [])

    def offer(self, choices: Sequence[str], ticked: Sequence[str]) -> None:
        """Other things to tick; emits nothing."""
        self.menu.clear()
        self._actions = [self._action(choice, choice in ticked) for choice in choices]
        self.setEnabled(bool(choices))
        self._show()

    def ticked(self) -> list[str]:
        """What is ticked, in the order in which it is offered."""
        return [str(action.data()) for action in self._actions if action.isChecked()]

    def tick(self, choices: Sequence[str]) -> None:
        """Tick these and no others, as if a person had."""
        for action in self._actions:
            action.setChecked(action.data() in choices)

    def showPopup(self) -> None:
        """The list of what can be ticked, as wide as the field."""
        self.menu.setMinimumWidth(self.width())
        self.menu.popup(self.mapToGlobal(self.rect().bottomLeft()))

    def _action(self, choice: str, ticked: bool) -> QAction:
        action = self.menu.addAction(choice.replace("&", "&&"))
        action.setData(choice)
        action.setCheckable(True)
        action.setChecked(ticked)
        action.toggled.connect(self._on_toggled)
        return action

    def _on_toggled(self) -> None:
        self._show()
        self.changed.emit()

    def _show(self) -> None:
        words = ", ".join(self.ticked()) or self._none
        self.setItemText(0, words)
        self.setToolTip(words)
        self.setAccessibleName(f"{self._name}: {words}")
