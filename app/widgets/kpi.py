"""Owns the tile with one large number."""

from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.widgets.card import label
from app.widgets.spoken_role import Role
from app.widgets.text.elided_label import ElidedLabel


class KpiTile(QFrame):
    """A caption, a value, and a smaller line below (left out while empty)."""

    spoken_role = Role.Indicator

    def __init__(self, caption: str, value: str = "–", sub: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.role(self, "card")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._caption = label(caption, "caption")
        self._value = ElidedLabel(value, "value")
        self._sub = ElidedLabel(sub, "faint")
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 14, 8)
        column.setSpacing(0)
        for part in (self._caption, self._value, self._sub):
            column.addWidget(part)
        column.addStretch(1)
        self._sub.setVisible(bool(sub))
        self._tell()

    def value(self) -> str:
        """The number as shown."""
        return self._value.text()

    def set_caption(self, caption: str) -> None:
        """Change what the number means."""
        self._caption.setText(caption)
        self._tell()

    def set_value(self, value: str, sub: str | None = None) -> None:
        """Change the number, and the line below where given; equal text costs nothing."""
        if value != self._value.text():
            self._value.setText(value)
            self._tell()
        if sub is not None and sub != self._sub.text():
            self._sub.setText(sub)
            self.setAccessibleDescription(sub.strip())
            self._sub.setVisible(bool(sub))

    def _tell(self) -> None:
        self.setAccessibleName(f"{self._caption.text()}: {self._value.text()}")
