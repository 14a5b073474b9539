"""The command palette: type a few letters, choose an action, and run it."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QAbstractListModel, QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QKeySequence, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.core import fuzzy
from app.core.actions import Action
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.curtain import ModalOverlay

WIDTH = 620
ROW = 38
MAX_ROWS = 9
"""In view at once."""
MAX_FOUND = 60
ACTION = Qt.ItemDataRole.UserRole
PLACES = Qt.ItemDataRole.UserRole + 1
OBSTACLE = Qt.ItemDataRole.UserRole + 2
Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class _Found(QAbstractListModel):
    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.lines: list[tuple[Action, tuple[int, ...]]] = []
        self._obstacles: list[str] = []

    def set(self, lines: list[tuple[Action, tuple[int, ...]]]) -> None:
        self.beginResetModel()
        obstacles = [action.obstacle().rstrip(".") for action, _ in lines]
        order = sorted(range(len(lines)), key=lambda line: bool(obstacles[line]))
        self.lines, self._obstacles = [lines[line] for line in order], [obstacles[line] for line in order]
        self.endResetModel()

    @property
    def possible(self) -> int:
        """How many of the first lines can be chosen now."""
        return sum(not obstacle for obstacle in self._obstacles)

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.lines)

    def flags(self, index: Index) -> Qt.ItemFlag:
        on = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return on if index.isValid() and not self._obstacles[index.row()] else Qt.ItemFlag.NoItemFlags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        (action, places), obstacle = self.lines[index.row()], self._obstacles[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return action.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            keys = map(native, action.shortcuts())
            return ", ".join(filter(None, [action.title, obstacle, action.kind, *keys]))
        return {ACTION: action, PLACES: places, OBSTACLE: obstacle, Qt.ItemDataRole.ToolTipRole: obstacle}.get(role)


class _Line(QStyledItemDelegate):
    """Icon, title with the matching letters highlighted, category, and shortcut; if impossible, title and reason."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        action: Action = index.data(ACTION)
        area: QRect = option.rect.adjusted(6, 1, -6, -1)  # type: ignore[attr-defined]
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)  # type: ignore[attr-defined]
        obstacle = str(index.data(OBSTACLE))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if chosen:
            painter.setBrush(theme.color("selection"))
            painter.drawRoundedRect(area, 7, 7)
        token = "disabled" if obstacle else "accent_text" if chosen else "muted"
        if action.icon:
            painter.drawPixmap(area.left() + 10, area.center().y() - 7, theme.pixmap(action.icon, token, 16))
        room = area.adjusted(38, 0, -16, 0)
        if obstacle:
            room.setRight(_draw_obstacle(painter, room, action.title, obstacle) - 12)
        else:
            room.setRight(_draw_kind(painter, area, _draw_keys(painter, area, action), action.kind) - 12)
        _draw_title(painter, room, action.title, index.data(PLACES), possible=not obstacle)
        painter.restore()


class Palette(ModalOverlay):
    """`open_with` shows the actions available now."""

    def __init__(self, over: QWidget, do: Callable[[Action], object]) -> None:
        super().__init__(over)
        self._do = do
        self._actions: Sequence[Action] = ()
        self.setAccessibleName(tr("Command palette"))
        self.field = QLineEdit(placeholderText=tr("Search actions, pages, runs and settings"))
        self.field.setAccessibleName(tr("Search actions, pages, runs and settings"))
        self.field.textChanged.connect(self._search)
        self.field.installEventFilter(self)
        self._found = _Found(self)
        self.list = QListView()
        self.list.setAccessibleName(tr("Results"))
        self.list.setModel(self._found)
        self.list.setItemDelegate(_Line(self.list))
        self.list.setUniformItemSizes(True)
        self.list.setMouseTracking(True)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.entered.connect(self.list.setCurrentIndex)
        self.list.clicked.connect(self._take)
        self.list.selectionModel().currentChanged.connect(self._on_current)
        self.nothing = label("", "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.nothing.setMinimumHeight(ROW * 2)
        column = QVBoxLayout(self.card)
        column.setContentsMargins(10, 10, 10, 10)
        column.setSpacing(8)
        column.addWidget(self.field)
        column.addWidget(self.list, 1)
        column.addWidget(self.nothing)

    def open_with(self, actions: Sequence[Action]) -> None:
        """Show these actions, those of the current page first."""
        self._actions = actions
        self.field.clear()
        self._search()
        self.open(self.field)

    def visible_titles(self) -> list[str]:
        """The listed titles, from the top."""
        return [action.title for action, _ in self._found.lines]

    def place_card(self) -> None:
        """At the top, so that typing only moves its lower edge."""
        width = min(WIDTH, self.width() - 32)
        rows = min(MAX_ROWS, len(self._found.lines))
        body = rows * ROW + 8 if rows else ROW * 2
        height = self.field.sizeHint().height() + body + 30
        self.card.setGeometry((self.width() - width) // 2, 72, width, min(height, self.height() - 88))

    def _search(self) -> None:
        query = self.field.text()
        self._found.set(
            fuzzy.rank(query, self._actions, lambda one: one.title, lambda one: f"{one.kind} {one.words}", MAX_FOUND)
        )
        self.list.setVisible(bool(self._found.lines))
        self.nothing.setVisible(not self._found.lines)
        self.nothing.setText(tr("No results for “{query}”. Try fewer letters.", query=query.strip()))
        self._choose(0)
        self.place_card()

    def _choose(self, row: int) -> None:
        last = self._found.possible - 1
        if last >= 0:
            self.list.setCurrentIndex(self._found.index(max(0, min(row, last))))
            self.list.scrollTo(self.list.currentIndex())
        else:
            self._on_current(self._found.index(0))  # at least it is heard why

    def _on_current(self, index: QModelIndex) -> None:
        # The focus stays in the field: this is how a screen reader hears which line is chosen.
        spoken = index.data(Qt.ItemDataRole.AccessibleTextRole) if index.isValid() else ""
        self.field.setAccessibleDescription(str(spoken))

    def _take(self, index: QModelIndex) -> None:
        if index.isValid() and index.flags() & Qt.ItemFlag.ItemIsEnabled:
            action: Action = index.data(ACTION)
            self.close_curtain()
            self._do(action)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Send arrows and Enter from the search field to the list."""
        if watched is self.field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            row, key = self.list.currentIndex().row(), event.key()
            steps = {
                Qt.Key.Key_Down: row + 1 if row + 1 < self._found.possible else 0,
                Qt.Key.Key_Up: row - 1 if row > 0 else self._found.possible - 1,
                Qt.Key.Key_PageDown: row + MAX_ROWS - 1,
                Qt.Key.Key_PageUp: row - MAX_ROWS + 1,
            }
            if key in steps:
                self._choose(steps[Qt.Key(key)])
                return True
            if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._take(self.list.currentIndex())
                return True
        return super().eventFilter(watched, event)


def native(keys: str) -> str:
    """A shortcut in this system's notation."""
    return QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText)


def _draw_keys(painter: QPainter, area: QRect, action: Action) -> int:
    """Draw the shortcut on the right; returns where it starts."""
    right = area.right() - 10
    painter.setFont(theme.font(11, QFont.Weight.Medium))
    for keys in reversed([native(each) for each in action.shortcuts()]):
        width = painter.fontMetrics().horizontalAdvance(keys) + 12
        key = QRect(right - width, area.center().y() - 9, width, 20)
        painter.setPen(QPen(theme.color("border_strong"), 1))
        painter.setBrush(theme.color("card"))
        painter.drawRoundedRect(key, 5, 5)
        painter.setPen(theme.color("muted"))
        painter.drawText(key, Qt.AlignmentFlag.AlignCenter, keys)
        right -= width + 6
    return right


def _draw_kind(painter: QPainter, area: QRect, right: int, kind: str) -> int:
    painter.setFont(theme.font(12))
    painter.setPen(theme.color("faint"))
    width = painter.fontMetrics().horizontalAdvance(kind)
    place = QRect(right - width - 6, area.top(), width, area.height())
    painter.drawText(place, int(Qt.AlignmentFlag.AlignVCenter), kind)
    return place.left()


def _draw_obstacle(painter: QPainter, room: QRect, title: str, obstacle: str) -> int:
    """Draw why it cannot be done on the right, in what the title leaves; returns where it starts."""
    taken = QFontMetrics(theme.font(13)).horizontalAdvance(title) + 20
    painter.setFont(theme.font(12))
    painter.setPen(theme.color("faint"))
    most = max(room.width() - taken, room.width() // 3)
    words = painter.fontMetrics().elidedText(obstacle, Qt.TextElideMode.ElideRight, most)
    place = QRect(room.right() - painter.fontMetrics().horizontalAdvance(words), room.top(), most, room.height())
    painter.drawText(place, int(Qt.AlignmentFlag.AlignVCenter), words)
    return place.left()


def _draw_title(painter: QPainter, room: QRect, title: str, places: Sequence[int], *, possible: bool) -> None:
    plain, strong = theme.font(13), theme.font(13, QFont.Weight.DemiBold)
    painter.setFont(plain)
    title = painter.fontMetrics().elidedText(title, Qt.TextElideMode.ElideRight, room.width())
    if not places:
        painter.setPen(theme.color("text" if possible else "disabled"))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), title)
        return
    left, marked = room.left(), set(places)
    for begin, end in _stretches(len(title), marked):
        is_hit = begin in marked
        painter.setFont(strong if is_hit else plain)
        painter.setPen(theme.color("disabled" if not possible else "accent_text" if is_hit else "text"))
        part = title[begin:end]
        width = painter.fontMetrics().horizontalAdvance(part)
        painter.drawText(QRect(left, room.top(), width + 4, room.height()), int(Qt.AlignmentFlag.AlignVCenter), part)
        left += width


def _stretches(length: int, marked: set[int]) -> list[tuple[int, int]]:
    """Runs of letters that are all highlighted, or all not."""
    cuts = [at for at in range(1, length) if (at in marked) != (at - 1 in marked)]
    return list(zip([0, *cuts], [*cuts, length], strict=True)) if length else []
