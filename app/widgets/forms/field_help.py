"""Owns the help on one field: what it does, its default, its bounds and its key in a spec."""

from typing import Any

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import filled, tr
from app.widgets.card import label
from app.widgets.forms.field_values import mixed_text
from app.widgets.forms.schema_field import FieldSchema, wanted

WIDTH = 320


def help_lines(field: FieldSchema, key: str) -> list[str]:
    """Description, what may be entered, unit, default, and the key, a line each."""
    lines = [" ".join(field.help.split())] if field.help else []
    lines.append(tr("Takes {taken}.", taken=_taken(field)))
    if field.unit:
        lines.append(tr("Unit: {unit}", unit=field.unit))
    if "default" in field.schema:
        lines.append(tr("Default: {value_words}", value_words=value_words(field.default)))
    lines.append(tr("In a spec: {key}", key=key))
    return lines


def value_words(value: Any) -> str:
    """A default in words: `not set`, `on`, `32`."""
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    return mixed_text(value) if value not in (None, "", [], {}) else tr("not set")


def _taken(field: FieldSchema) -> str:
    if field.kinds == ("boolean",):
        return tr("on or off")
    bounds = _bounds(field)
    return f"{wanted(field)} {bounds}" if bounds else wanted(field)


def _bounds(field: FieldSchema) -> str:
    least, most = field.bound("minimum"), field.bound("maximum")
    if least is not None and most is not None:
        return tr("from {least:,} to {most:,}", least=least, most=most)
    bounds = [filled(words, limit=limit) for name, words in _BOUNDS if (limit := field.bound(name)) is not None]
    return tr(" and ").join(bounds)


_BOUNDS = (
    ("minimum", tr("from {limit:,} on")),
    ("exclusiveMinimum", tr("above {limit:,}")),
    ("maximum", tr("up to {limit:,}")),
    ("exclusiveMaximum", tr("below {limit:,}")),
)


class FieldHelp(QFrame):
    """A small sheet over the page that goes at the next key or click."""

    def __init__(self, title: str, lines: list[str], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        theme.role(self, "sheet")
        self.setAccessibleName(f"{title}: {' '.join(lines)}")
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 11, 14, 12)
        column.setSpacing(4)
        column.addWidget(label(title, "strong"))
        for number, line in enumerate(lines):
            shown = label(line, "" if number == 0 else "faint", wrap=True, selectable=number == len(lines) - 1)
            column.addWidget(shown)
        self.setFixedWidth(WIDTH)

    def popup_at(self, widget: QWidget) -> None:
        """Below a widget, within its screen."""
        self.adjustSize()
        corner = widget.mapToGlobal(QPoint(widget.width() - WIDTH, widget.height() + 4))
        area = widget.screen().availableGeometry()
        left = min(max(corner.x(), area.left() + 8), area.right() - WIDTH - 8)
        above = corner.y() - widget.height() - self.height() - 8
        self.move(left, corner.y() if corner.y() + self.height() < area.bottom() else max(area.top() + 8, above))
        self.show()
        self.setFocus()

    def keyPressEvent(self, event) -> None:
        """Any key closes it."""
        self.close()
