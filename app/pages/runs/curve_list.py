"""Owns the list beside curves that lie over each other: whose each is, how it is drawn, and its value."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.plots.plot_series import DASHES

COLORS = ("plot_1", "plot_2", "plot_3", "plot_4", "plot_5")
PATH = Qt.ItemDataRole.UserRole
VALUE = Qt.ItemDataRole.UserRole + 1
GAP = 10


class _ValueAtTheEnd(QStyledItemDelegate):
    """The name may be cut, the value never."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        value, whole = str(index.data(VALUE) or ""), QRect(option.rect)
        width = option.fontMetrics.horizontalAdvance(value)
        named = QStyleOptionViewItem(option)
        named.rect = whole.adjusted(0, 0, -(width + GAP) if value else 0, 0)
        super().paint(painter, named, index)
        painter.save()
        painter.setPen(theme.color("muted"))
        painter.drawText(whole, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, value)
        painter.restore()


class CurveList(QListWidget):
    """`shown` tells that a person hid a run's curve, or wants it back."""

    shown = Signal(object, bool)
    """The run's folder, and whether its curve is to be seen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Compared runs"))
        self.setIconSize(QSize(26, 12))
        self.setSpacing(3)
        self.setMinimumWidth(200)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setItemDelegate(_ValueAtTheEnd(self))
        self.itemChanged.connect(self._on_item_changed)

    def fill(self, names: Mapping[Path, str], hidden: Sequence[Path] | set[Path]) -> None:
        """List these runs anew."""
        self.blockSignals(True)
        self.clear()
        for place, (path, name) in enumerate(names.items()):
            item = QListWidgetItem(_line_icon(place), name)
            item.setData(PATH, str(path))
            item.setToolTip(f"{name}\n{path}")
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsSelectable)
            item.setCheckState(Qt.CheckState.Unchecked if path in hidden else Qt.CheckState.Checked)
            self.addItem(item)
        self.blockSignals(False)

    def show_values(self, values: Mapping[Path, str]) -> None:
        """What stands behind each name."""
        self.blockSignals(True)
        for row in range(self.count()):
            item = self.item(row)
            value = values.get(Path(item.data(PATH)), "")
            if item.data(VALUE) != value:
                item.setData(VALUE, value)
                item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{item.text()} {value}".strip())
        self.blockSignals(False)
        self.viewport().update()

    def _on_item_changed(self, item: QListWidgetItem) -> None:
        self.shown.emit(Path(item.data(PATH)), item.checkState() == Qt.CheckState.Checked)


def _line_icon(place: int) -> QIcon:
    """A piece of the run's line, so that neither colour nor dash alone tells it."""
    picture = QPixmap(26, 12)
    picture.fill(Qt.GlobalColor.transparent)
    with QPainter(picture) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color(COLORS[place % len(COLORS)]), 2, DASHES[place // len(COLORS) % len(DASHES)]))
        painter.drawLine(1, 6, 25, 6)
    return QIcon(picture)
