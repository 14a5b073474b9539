"""The actions of this window: which objects offer them, their shortcuts, and the sheet that lists all shortcuts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QFrame, QGridLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.core.actions import Action
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.curtain import ModalOverlay
from app.widgets.icon_label import IconToolButton
from app.widgets.palette import Palette, native

Offer = Callable[[], Sequence[Action]]


@dataclass(frozen=True)
class _Group:
    title: str
    owner: QWidget | None
    """None for a page that is not built yet."""
    offer: Offer
    reach: Callable[[], object]


class Commands(QObject):
    """`add` and `announce` register groups of actions; `show_palette` and `show_sheet` show all groups."""

    def __init__(self, over: QWidget, parent: QObject) -> None:
        super().__init__(parent)
        self._over = over
        self._groups: dict[str, _Group] = {}
        self.palette: Palette | None = None
        self.sheet: ShortcutSheet | None = None

    def add(self, title: str, owner: QWidget, offer: Offer, reach: Callable[[], object] = lambda: None) -> None:
        """Enable the shortcuts of offered actions while `owner` is visible; `reach` brings it into view."""
        self._groups[title] = _Group(title, owner, offer, reach)
        for action in offer():
            for keys in action.shortcuts():
                QShortcut(QKeySequence(keys), owner, lambda action=action: self._do(action), autoRepeat=False)

    def announce(self, title: str, actions: Iterable[Action], reach: Callable[[], object]) -> None:
        """Offer the actions of a page until `add` replaces them; one that is chosen builds the page, which then does it."""

        def do(title_of_action: str) -> None:
            reach()
            if self._groups[title].owner is not None:  # before the services there are no pages
                self._do(next(one for one in self._groups[title].offer() if one.title == title_of_action))

        announced = [replace(action, do=lambda words=action.title: do(words)) for action in actions]
        self._groups[title] = _Group(title, None, lambda: announced, lambda: None)

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
        """Visible groups first: only one page is visible, and the window always is."""
        window = self._over.window()
        hidden = {group.title: group.owner is None or not group.owner.isVisible() for group in self._groups.values()}
        return sorted(self._groups.values(), key=lambda group: (hidden[group.title], group.owner is window))

    def _do(self, action: Action) -> None:
        if action.is_possible():
            if action.do not in (self.show_palette, self.show_sheet):
                self._close()
            action.do()

    def _close(self) -> None:
        for curtain in (self.palette, self.sheet):
            if curtain is not None:
                curtain.close_curtain()


def button_action(button: QAbstractButton, action: Action, obstacle: Callable[[], str]) -> Action:
    """The action that a button does; while the user could not click it, `obstacle` says why."""

    def why_not() -> str:
        usable = button.isEnabled() and not button.isHidden()
        return "" if usable else obstacle() or tr("Not possible right now.")

    return action.bind(button.click, why_not)


def _reaching(group: _Group) -> list[Action]:
    """The group's actions, each of which first brings the group into view."""

    def do(action: Action) -> None:
        group.reach()
        action.do()

    kind = group.title
    return [replace(action, do=lambda action=action: do(action), kind=action.kind or kind) for action in group.offer()]


SHEET_WIDTH = 780
SHEET_COLUMNS = 2


class ShortcutSheet(ModalOverlay):
    """All shortcuts of the window and its pages. `open_with` shows the groups; one without shortcuts is left out."""

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.setAccessibleName(tr("Keyboard shortcuts"))
        close = IconToolButton("close", tr("Close"), size=14)
        close.clicked.connect(self.close_curtain)
        self.close_button = close
        top = QHBoxLayout()
        top.addWidget(label(tr("Keyboard shortcuts"), "section"), 1)
        top.addWidget(close)
        self._area = QScrollArea(widgetResizable=True)
        self._area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._area.setAccessibleName(tr("Shortcuts by page"))
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        column = QVBoxLayout(self.card)
        column.setContentsMargins(20, 14, 14, 16)
        column.setSpacing(10)
        column.addLayout(top)
        column.addWidget(self._area, 1)
        self.lines: dict[str, list[tuple[str, str]]] = {}

    def open_with(self, groups: Mapping[str, Sequence[Action]]) -> None:
        """Show the groups, each with a title and actions."""
        self.lines = {
            title: [(action.title, ", ".join(map(native, action.shortcuts()))) for action in actions if action.shortcut]
            for title, actions in groups.items()
        }
        self.lines = {title: lines for title, lines in self.lines.items() if lines}
        self._area.setWidget(self._body())
        self.open(self.close_button)

    def place_card(self) -> None:
        """As high as its lines need, if there is room."""
        body = self._area.widget()
        needed = (body.sizeHint().height() if body else 0) + 76
        width, height = min(SHEET_WIDTH, self.width() - 32), min(needed, self.height() - 64)
        self.card.setGeometry((self.width() - width) // 2, (self.height() - height) // 2, width, height)

    def _body(self) -> QWidget:
        body = QWidget()
        body.setObjectName("scrolled")
        row = QHBoxLayout(body)
        row.setContentsMargins(0, 0, 10, 0)
        row.setSpacing(32)
        columns = [QVBoxLayout() for _ in range(SHEET_COLUMNS)]
        heights = [0] * SHEET_COLUMNS
        for title, lines in self.lines.items():
            place = heights.index(min(heights))
            heights[place] += len(lines) + 2
            columns[place].addLayout(_group_lines(title, lines))
            columns[place].addSpacing(14)
        for column in columns:
            column.addStretch(1)
            row.addLayout(column, 1)
        return body


def _group_lines(title: str, lines: Sequence[tuple[str, str]]) -> QGridLayout:
    grid = QGridLayout()
    grid.setVerticalSpacing(7)
    grid.setColumnStretch(0, 1)
    grid.addWidget(label(title.upper(), "heading"), 0, 0)
    for number, (words, keys) in enumerate(lines, start=1):
        description = label(words, wrap=True)
        description.setAccessibleName(f"{words}: {keys}")
        grid.addWidget(description, number, 0)
        grid.addWidget(label(keys, "key"), number, 1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
    return grid
