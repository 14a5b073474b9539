"""Rows and columns of widgets in one expression."""

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QSizePolicy,
    QStackedWidget,
    QStyle,
    QVBoxLayout,
    QWidget,
)

Part = QWidget | QLayout | int | tuple[QWidget | QLayout, int]
"""A widget or layout, alone or with its stretch; a number is an empty stretch."""
Margins = tuple[int, int, int, int]
"""Left, top, right, bottom."""
NO_MARGINS = (0, 0, 0, 0)


def hbox(
    *parts: Part, spacing: int | None = None, margins: Margins = NO_MARGINS, parent: QWidget | None = None
) -> QHBoxLayout:
    """A row, which is `parent`'s layout."""
    row = QHBoxLayout(parent) if parent is not None else QHBoxLayout()
    _lay_out(row, parts, spacing, margins)
    return row


def vbox(
    *parts: Part, spacing: int | None = None, margins: Margins = NO_MARGINS, parent: QWidget | None = None
) -> QVBoxLayout:
    """A column, which is `parent`'s layout."""
    column = QVBoxLayout(parent) if parent is not None else QVBoxLayout()
    _lay_out(column, parts, spacing, margins)
    return column


def _lay_out(layout: QBoxLayout, parts: Iterable[Part], spacing: int | None, margins: Margins) -> None:
    layout.setContentsMargins(*margins)
    if spacing is not None:
        layout.setSpacing(spacing)
    fill(layout, parts)


def fill(layout: QBoxLayout, parts: Iterable[Part]) -> None:
    """Append these to a row or a column."""
    for each in parts:
        part, stretch = each if isinstance(each, tuple) else (each, 0)
        if isinstance(part, int):
            layout.addStretch(part)
        elif isinstance(part, QLayout):
            layout.addLayout(part, stretch)
        else:
            layout.addWidget(part, stretch)


def holder(layout: QLayout) -> QWidget:
    """A widget with this layout."""
    made = QWidget()
    made.setLayout(layout)
    return made


class WrapLayout(QLayout):
    """A row that continues below where there is no more room, as words do."""

    def __init__(self, parent: QWidget | None = None, spacing: int = 6) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        """For Qt, which calls it from `addWidget`."""
        self._items.append(item)

    def count(self) -> int:
        """How many items there are."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """The item at a place; None beyond the last."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Remove an item and return it."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def hasHeightForWidth(self) -> bool:
        """Its height depends on its width."""
        return True

    def heightForWidth(self, width: int) -> int:
        """The height of all rows."""
        return self._place(QRect(0, 0, width, 0), moves=False)

    def setGeometry(self, rect: QRect) -> None:
        """Place the items."""
        super().setGeometry(rect)
        self._place(rect, moves=True)

    def sizeHint(self) -> QSize:
        """That of the largest item: its width is given."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """That of the largest item."""
        size = QSize()
        for item in self._visible():
            size = size.expandedTo(item.minimumSize())
        return size

    def _visible(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _place(self, rect: QRect, *, moves: bool) -> int:
        x, y, height = rect.x(), rect.y(), 0
        for item in self._visible():
            hint = item.sizeHint()
            if x > rect.x() and x + hint.width() > rect.right() + 1:
                x, y, height = rect.x(), y + height + self.spacing(), 0
            if moves:
                item.setGeometry(QRect(QPoint(x, y), hint))
            x, height = x + hint.width() + self.spacing(), max(height, hint.height())
        return y + height - rect.y()


class PageStack(QStackedWidget):
    """Needs no more room than the page in view: others adapt when they are shown."""

    def minimumSizeHint(self) -> QSize:
        """That of the current page."""
        page = self.currentWidget()
        return page.minimumSizeHint().expandedTo(page.minimumSize()) if page is not None else super().minimumSizeHint()


class ButtonRow(QWidget):
    """Buttons side by side, aligned right, in as many lines as they need."""

    def __init__(self, *widgets: QWidget) -> None:
        super().__init__()
        self._widgets = widgets
        for widget in widgets:
            widget.setParent(self)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def sizeHint(self) -> QSize:
        """All in one line."""
        sizes = [widget.sizeHint() for widget in self._shown()]
        return QSize(sum(size.width() for size in sizes), max((size.height() for size in sizes), default=0))

    def minimumSizeHint(self) -> QSize:
        """As wide as the widest one."""
        sizes = [widget.sizeHint() for widget in self._shown()]
        height = self.heightForWidth(self.width()) if self.isVisible() else self.sizeHint().height()
        return QSize(max((size.width() for size in sizes), default=0), height)

    def heightForWidth(self, width: int) -> int:
        """The height of all lines."""
        return sum(max(widget.sizeHint().height() for widget in line) for line in self._lines(width))

    def _shown(self) -> list[QWidget]:
        return [widget for widget in self._widgets if not widget.isHidden()]

    def _lines(self, width: int) -> list[list[QWidget]]:
        lines: list[list[QWidget]] = []
        left = 0
        for widget in self._shown():
            wanted = widget.sizeHint().width()
            if not lines or wanted > left:
                lines.append([])
                left = width
            lines[-1].append(widget)
            left -= wanted
        return lines

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the room."""
        self._arrange()
        super().resizeEvent(event)

    def event(self, event: QEvent, /) -> bool:
        """The same when a widget is shown or hidden, or gets other words; while the row is hidden, Qt says nothing of them."""
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Show):
            self.updateGeometry()
            self._arrange()
        return super().event(event)

    def _arrange(self) -> None:
        top = 0
        for line in self._lines(self.width()):
            sizes = [widget.sizeHint() for widget in line]
            left = self.width() - sum(size.width() for size in sizes)
            for widget, size in zip(line, sizes, strict=True):
                width = min(size.width(), self.width())
                place = QRect(max(0, left), top, width, size.height())
                widget.setGeometry(QStyle.visualRect(self.layoutDirection(), self.rect(), place))
                left += size.width()
            top += max(size.height() for size in sizes)


def stack(*pages: QWidget, parent: QWidget | None = None) -> PageStack:
    """Pages of which one is in view, the first at the beginning."""
    made = PageStack(parent)
    for page in pages:
        made.addWidget(page)
    return made


def scroll_area(content: QWidget) -> QScrollArea:
    """A scroll area that only scrolls vertically."""
    content.setObjectName("scrolled")
    area = QScrollArea(widgetResizable=True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(content)
    return area


def keep_room(*widgets: QWidget) -> None:
    """Leave the room of these widgets empty while they are hidden."""
    for widget in widgets:
        policy = widget.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        widget.setSizePolicy(policy)
