"""Remembers the layout of the window: geometry, splitter positions, widths and order of columns."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QByteArray, QEvent, QObject, QSettings, Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHeaderView, QSplitter, QTableView, QWidget

from backend.contract.places import config_folder

SAVE_MS = 300
"""After the last move of a handle."""
HANDLE = 14
"""Pixels between two parts, which are those between cards everywhere."""
LEAST, MOST = 24, 4000
"""Pixels of a column that a damaged file may not go beyond."""


def layout_file() -> QSettings:
    """The path of the layout file; an INI file returns every value except geometry as text."""
    return QSettings(str(config_folder() / "window.ini"), QSettings.Format.IniFormat)


class RememberedSplitter(QSplitter):
    """Keeps the sizes that the user last set; `name` is its unique key."""

    def __init__(
        self, name: str, orientation: Qt.Orientation = Qt.Orientation.Horizontal, parent: QWidget | None = None
    ) -> None:
        super().__init__(orientation, parent)
        self.setHandleWidth(HANDLE)
        self.setChildrenCollapsible(False)
        self._name = f"splitters/{name}"
        self._restored = False
        self._timer = QTimer(self, singleShot=True, interval=SAVE_MS)
        self._timer.timeout.connect(self._save)
        self.splitterMoved.connect(lambda: self._timer.start())

    def hold(self, parts: Sequence[QWidget], stretch: Sequence[int], sizes: Sequence[int]) -> None:
        """Put these side by side, with their stretch factors and initial sizes in pixels."""
        for part in parts:
            self.addWidget(part)
        for place, share in enumerate(stretch):
            self.setStretchFactor(place, share)
        self.setSizes(sizes)

    def showEvent(self, event: QShowEvent) -> None:
        """Restore the sizes once all its parts exist."""
        super().showEvent(event)
        if not self._restored:
            self._restored = True
            stored = layout_file().value(self._name)
            if isinstance(stored, QByteArray):
                shape = self.orientation()
                self.restoreState(stored)
                self.setOrientation(shape)

    def _save(self) -> None:
        layout_file().setValue(self._name, self.saveState())


class RememberedColumns(QObject):
    """Saves the widths and order of a table's columns by name, once the user has changed them."""

    def __init__(self, table: QTableView, name: str, names: Callable[[], list[str]]) -> None:
        super().__init__(table)
        self._header = table.horizontalHeader()
        self._name, self._names = f"columns/{name}", names
        self._header.setSectionsMovable(True)
        self._header.viewport().installEventFilter(self)

    def widths(self) -> dict[str, int]:
        """Pixels by column name, for columns that were changed."""
        stored = layout_file().value(f"{self._name}/widths")
        pairs = (
            str(one).rpartition("=") for one in (stored if isinstance(stored, list) else [stored] if stored else [])
        )
        return {name: max(LEAST, min(MOST, int(width))) for name, _, width in pairs if width.isdigit()}

    def restore(self) -> None:
        """Apply the saved widths and order to the current columns."""
        names, widths = self._names(), self.widths()
        for section, name in enumerate(names):
            if name in widths and self._header.sectionResizeMode(section) == QHeaderView.ResizeMode.Interactive:
                self._header.resizeSection(section, widths[name])
        stored = layout_file().value(f"{self._name}/order")
        order = [name for name in stored if name in names] if isinstance(stored, list) else []
        for place, name in enumerate(order if len(order) == len(names) else []):
            self._header.moveSection(self._header.visualIndex(names.index(name)), place)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Save when the user releases a column or its edge."""
        if event.type() == QEvent.Type.MouseButtonRelease:
            QTimer.singleShot(0, self, self._save)
        return False

    def _save(self) -> None:
        names = self._names()
        now = {
            name: self._header.sectionSize(section)
            for section, name in enumerate(names)
            if self._header.sectionResizeMode(section) == QHeaderView.ResizeMode.Interactive
        }
        file = layout_file()
        kept = {**self.widths(), **now}
        file.setValue(f"{self._name}/widths", [f"{name}={width}" for name, width in kept.items()])
        order = [names[self._header.logicalIndex(place)] for place in range(len(names))]
        file.setValue(f"{self._name}/order", order)
