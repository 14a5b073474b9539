"""Owns number fields and sliders that let a page scroll under the mouse: the wheel turns them where they have the focus."""

from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox, QSlider, QSpinBox

from app.core import i18n


class _TurnedInFocus:
    """Comes before the widget's own class, whose wheel it guards."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Only where a person meant it."""
        if self.hasFocus():  # type: ignore[attr-defined]
            super().wheelEvent(event)  # type: ignore[misc]
        else:
            event.ignore()


class QuietSpinBox(_TurnedInFocus, QSpinBox):
    """A whole number."""

    def __init__(self, minimum: int = 0, maximum: int = 99, value: int = 0) -> None:
        super().__init__(minimum=minimum, maximum=maximum, value=value)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)


class QuietDoubleSpinBox(_TurnedInFocus, QDoubleSpinBox):
    """A number of so many decimals."""

    def __init__(self, minimum: float, maximum: float, step: float, decimals: int) -> None:
        super().__init__(minimum=minimum, maximum=maximum, singleStep=step, decimals=decimals)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setLocale(QLocale(i18n.chosen()))

    def validate(self, text: str, place: int) -> object:
        """Point and comma are both taken for the decimal sign."""
        return super().validate(self._own(text), place)

    def valueFromText(self, text: str) -> float:
        """The same of what was typed to its end."""
        return super().valueFromText(self._own(text))

    def _own(self, text: str) -> str:
        return text.replace(",", ".").replace(".", self.locale().decimalPoint())


class QuietSlider(_TurnedInFocus, QSlider):
    """A number by its place."""

    def __init__(self, orientation: Qt.Orientation) -> None:
        super().__init__(orientation)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
