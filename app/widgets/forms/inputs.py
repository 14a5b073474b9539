"""Qt's own inputs for long pages: the mouse wheel changes them only when they have the focus."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from PySide6.QtCore import QLocale, QSize, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QLineEdit,
    QMenu,
    QSlider,
    QSpinBox,
    QStyle,
    QStyleOptionComboBox,
    QWidget,
)

from app.core import i18n


class QuietComboBox(QComboBox):
    """A drop-down; the wheel scrolls the page unless it has the focus.

    `name` is its accessible name, `hint` its tooltip; `activated` is called when a person has chosen an item.
    """

    def __init__(
        self,
        parent: QWidget | None = None,
        *,
        name: str = "",
        hint: str = "",
        items: Iterable[tuple[str, Any]] = (),
        activated: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setToolTip(hint)
        self.set_items(items)
        if activated is not None:
            self.activated.connect(lambda _: activated())
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumContentsLength(6)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)  # Return keeps the list as offered

    def sizeHint(self) -> QSize:
        """Room for a few letters and an icon, whatever the items are.

        Qt has a policy for this, but setting it builds the list that drops down, which takes most of a box's time.
        """
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        """The same."""
        return super().minimumSizeHint() + QSize(self.iconSize().width() + 4, 0)

    def set_items(self, items: Iterable[tuple[str, Any]], chosen: Any = None) -> None:
        """Offer these words with their values, with that of the value `chosen` selected, or the first one."""
        self.clear()
        place = -1
        for words, value in items:
            self.addItem(words, value)
            if place < 0 and value == chosen:  # findData does not compare Python's objects
                place = self.count() - 1
        self.setCurrentIndex(max(place, min(0, self.count() - 1)))

    def replace_items(self, items: Iterable[tuple[str, Any]]) -> None:
        """Offer these instead, without a signal; the chosen value stays chosen if it is among them."""
        self.blockSignals(True)
        self.set_items(items, self.currentData())
        self.blockSignals(False)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Elide long text in the middle, because names also differ at their ends."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        parts = QStyle.SubControl
        field = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, parts.SC_ComboBoxEditField, self)
        elided = self.fontMetrics().elidedText(option.currentText, Qt.TextElideMode.ElideMiddle, field.width())
        if self.isEditable() or elided == option.currentText:
            super().paintEvent(event)
            return
        option.currentText = elided
        with QPainter(self) as painter:
            self.style().drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option, painter, self)
            self.style().drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option, painter, self)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Only with the focus."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class CheckMenu(QuietComboBox):
    """A drop-down with check boxes; it shows the checked items, or `none`."""

    changed = Signal()

    def __init__(self, name: str, none: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name, self._none = name, none
        self.menu = QMenu(self)
        self._actions: list[QAction] = []
        self.addItem(none)
        self.offer([], [])

    def offer(self, choices: Sequence[str], ticked: Sequence[str]) -> None:
        """Offer other items; emits nothing."""
        self.menu.clear()
        self._actions = [self._action(choice, choice in ticked) for choice in choices]
        self.setEnabled(bool(choices))
        self._show()

    def checked_items(self) -> list[str]:
        """The checked items, in the order offered."""
        return [str(action.data()) for action in self._actions if action.isChecked()]

    def tick(self, choices: Sequence[str]) -> None:
        """Check these and no others, as if the user had."""
        for action in self._actions:
            action.setChecked(action.data() in choices)

    def showPopup(self) -> None:
        """Show the list of items, as wide as the field."""
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
        words = ", ".join(self.checked_items()) or self._none
        self.setItemText(0, words)
        self.setToolTip(words)
        self.setAccessibleName(f"{self._name}: {words}")


class _TurnedInFocus:
    """A mixin before the widget's own class that ignores the wheel without focus."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Only where a person meant it."""
        if self.hasFocus():  # type: ignore[attr-defined]
            super().wheelEvent(event)  # type: ignore[misc]
        else:
            event.ignore()


class QuietSpinBox(_TurnedInFocus, QSpinBox):
    """An integer."""

    def __init__(self, minimum: int = 0, maximum: int = 99, value: int = 0) -> None:
        super().__init__(minimum=minimum, maximum=maximum, value=value)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)


class QuietDoubleSpinBox(_TurnedInFocus, QDoubleSpinBox):
    """A number with a fixed number of decimals."""

    def __init__(self, minimum: float, maximum: float, step: float, decimals: int) -> None:
        super().__init__(minimum=minimum, maximum=maximum, singleStep=step, decimals=decimals)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setLocale(QLocale(i18n.current_language()))

    def validate(self, text: str, place: int) -> object:
        """Accept both point and comma as the decimal separator."""
        return super().validate(self._own(text), place)

    def valueFromText(self, text: str) -> float:
        """The same for finished input."""
        return super().valueFromText(self._own(text))

    def _own(self, text: str) -> str:
        return text.replace(",", ".").replace(".", self.locale().decimalPoint())


class QuietSlider(_TurnedInFocus, QSlider):
    """A slider."""

    def __init__(self, orientation: Qt.Orientation) -> None:
        super().__init__(orientation)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)


class NumberLine(QLineEdit):
    """A line for a number; the arrow keys step integers up and down."""

    def __init__(self, whole: bool) -> None:
        super().__init__()
        self._whole = whole

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and down change an integer by one."""
        step = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}.get(Qt.Key(event.key()))
        if step and self._whole and self.text().strip().lstrip("-").isdigit():
            self.setText(str(int(self.text()) + step))
            self.textEdited.emit(self.text())
            return
        super().keyPressEvent(event)
