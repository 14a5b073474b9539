"""Owns who offers actions in this window: their shortcuts, the palette that finds them and the sheet that lists them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.core.actions import Action
from app.widgets.palette import Palette
from app.widgets.shortcut_sheet import ShortcutSheet

Offer = Callable[[], Sequence[Action]]


@dataclass(frozen=True)
class _Group:
    title: str
    owner: QWidget
    offer: Offer
    reach: Callable[[], object]


class Commands(QObject):
    """`add` takes a group of actions; `show_palette` and `show_sheet` are made from all groups."""

    def __init__(self, over: QWidget, parent: QObject) -> None:
        super().__init__(parent)
        self._over = over
        self._groups: list[_Group] = []
        self.palette: Palette | None = None
        self.sheet: ShortcutSheet | None = None

    def add(self, title: str, owner: QWidget, offer: Offer, reach: Callable[[], object] = lambda: None) -> None:
        """Listen for the shortcuts of what is offered while `owner` is in view; `reach` brings it into view."""
        group = _Group(title, owner, offer, reach)
        self._groups.append(group)
        for action in offer():
            for keys in action.shortcuts():
                QShortcut(QKeySequence(keys), owner, lambda action=action: self._do(action), autoRepeat=False)

    def show_palette(self) -> None:
        """Open it, or close it if it is open."""
        if self.palette is None:
            self.palette = Palette(self._over, self._do)
        if self.palette.isVisible():
            self.palette.close_curtain()
            return
        self._close()
        self.palette.open_with([action for group in self._in_order() for action in _reaching(group)])

    def show_sheet(self) -> None:
        """Open it, or close it if it is open."""
        if self.sheet is None:
            self.sheet = ShortcutSheet(self._over)
        if self.sheet.isVisible():
            self.sheet.close_curtain()
            return
        self._close()
        self.sheet.open_with({group.title: group.offer() for group in self._in_order()})

    def _in_order(self) -> list[_Group]:
        """What is in view first: of the pages only one is, and the window always."""
        return sorted(self._groups, key=lambda group: (not group.owner.isVisible(), group.owner is self._over.window()))

    def _do(self, action: Action) -> None:
        if action.possible():
            if action.do not in (self.show_palette, self.show_sheet):
                self._close()
            action.do()

    def _close(self) -> None:
        for curtain in (self.palette, self.sheet):
            if curtain is not None:
                curtain.close_curtain()


def button_action(button: QAbstractButton, title: str, shortcut: str = "", icon: str = "", words: str = "") -> Action:
    """What a button does, possible while a person could click it."""
    return Action(
        title, button.click, shortcut, icon, lambda: button.isEnabled() and not button.isHidden(), words=words
    )


def _reaching(group: _Group) -> list[Action]:
    """The group's actions, each of which brings the group into view before it is done."""

    def do(action: Action) -> None:
        group.reach()
        action.do()

    kind = group.title
    return [replace(action, do=lambda action=action: do(action), kind=action.kind or kind) for action in group.offer()]
