"""Lays out widgets side by side, aligned right, in as many rows as the width needs."""

from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget

Row = list[QLayoutItem]


class FlowLayout(QLayout):
    """Needs no more width than its widest widget; hidden widgets take no room."""

    def __init__(self, *widgets: QWidget, spacing: int = 8) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing)
        for widget in widgets:
            self.addWidget(widget)

    def addItem(self, item: QLayoutItem, /) -> None:
        """Append an item."""
        self._items.append(item)

    def count(self) -> int:
        """The number of items, hidden ones included."""
        return len(self._items)

    def itemAt(self, index: int, /) -> QLayoutItem | None:  # type: ignore[override]  # Qt asks beyond the last one
        """The item at this place."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int, /) -> QLayoutItem | None:  # type: ignore[override]
        """Remove the item at this place."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """It takes no more room than it needs."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """A narrow layout has more rows."""
        return True

    def heightForWidth(self, width: int, /) -> int:
        """The height of all rows."""
        rows = list(self._rows(width))
        return sum(map(_height, rows)) + self.spacing() * max(0, len(rows) - 1)

    def sizeHint(self) -> QSize:
        """All in one row."""
        rows = list(self._rows(1 << 20))
        return QSize(self._width(rows[0]), _height(rows[0])) if rows else QSize(0, 0)

    def minimumSize(self) -> QSize:
        """That of the widest one."""
        shown = [item.sizeHint() for row in self._rows(0) for item in row]
        return QSize(
            max((size.width() for size in shown), default=0), max((size.height() for size in shown), default=0)
        )

    def setGeometry(self, rect: QRect, /) -> None:
        """Place the widgets in rows from top to bottom."""
        super().setGeometry(rect)
        top = rect.top()
        for row in self._rows(rect.width()):
            left, height = rect.right() + 1 - self._width(row), _height(row)
            for item in row:
                size = item.sizeHint()
                item.setGeometry(QRect(QPoint(left, top + (height - size.height()) // 2), size))
                left += size.width() + self.spacing()
            top += height + self.spacing()

    def _rows(self, width: int) -> Iterator[Row]:
        row: Row = []
        for item in self._items:
            if item.isEmpty():
                continue
            if row and self._width([*row, item]) > width:
                yield row
                row = []
            row.append(item)
        if row:
            yield row

    def _width(self, row: Row) -> int:
        return sum(item.sizeHint().width() for item in row) + self.spacing() * (len(row) - 1)


def _height(row: Row) -> int:
    return max(item.sizeHint().height() for item in row)
