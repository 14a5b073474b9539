"""Owns the drop-down that lets a page scroll under the mouse."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QWidget


class QuietComboBox(QComboBox):
    """Turning the wheel over it scrolls the page unless it has the focus."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(6)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)  # Return keeps the list as offered

    def paintEvent(self, event: QPaintEvent) -> None:
        """Of what is too long the middle is left out: names are told apart by their ends as well."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        parts = QStyle.SubControl
        field = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, parts.SC_ComboBoxEditField, self)
        shown = self.fontMetrics().elidedText(option.currentText, Qt.TextElideMode.ElideMiddle, field.width())
        if self.isEditable() or shown == option.currentText:
            super().paintEvent(event)
            return
        option.currentText = shown
        with QPainter(self) as painter:
            self.style().drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option, painter, self)
            self.style().drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option, painter, self)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Only where a person meant it."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()
