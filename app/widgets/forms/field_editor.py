"""Owns what every editor of a field shares."""

from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.widgets.forms.schema_field import FieldSchema


class Editor(QObject):
    """What all editors share: `widget` to place, `value()` (may raise NotUsableError), `set_value`, and `changed`."""

    changed = Signal()

    def __init__(self, field: FieldSchema, widget: QWidget, target: QWidget | None = None) -> None:
        super().__init__(widget)
        self.field = field
        self.widget = widget
        self.target = target or widget
        """What has the focus and shows a mistake."""
        self.target.setAccessibleName(field.title)
        self.target.setAccessibleDescription(field.help)
        self.target.setToolTip(field.help)

    def value(self) -> Any:
        """The value as the spec holds it."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Show a value; emits nothing."""
        raise NotImplementedError

    def flush(self) -> None:
        """Tell at once what was typed, where an editor waits for the next letter."""
