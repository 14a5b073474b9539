"""Cards and their parts: headings, labels, rules, rows of captioned fields, and the tile with one large number."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.widgets.accessibility import Role
from app.widgets.boxes import Part, fill, hbox
from app.widgets.text.elided_label import ElidedLabel

HEADING_HEIGHT = 22
"""Height of a heading, so that headings side by side are aligned whatever is in their corners."""


class Card(QFrame):
    """A rounded surface with a heading. Put content into `body` (a vertical layout) and small controls into `corner` (right of the heading)."""

    def __init__(self, title: str = "", parent: QWidget | None = None, spacing: int = 12) -> None:
        super().__init__(parent)
        theme.role(self, "card")
        outer = QVBoxLayout(self)
        outer.setContentsMargins(16, 12, 16, 16)
        outer.setSpacing(8)
        top = QHBoxLayout()
        outer.addLayout(top)
        self.heading = QLabel(title.upper(), self)
        theme.role(self.heading, "heading")
        self.heading.setMinimumHeight(HEADING_HEIGHT)
        top.addWidget(self.heading)
        top.addStretch(1)
        self.corner = QHBoxLayout()
        self.corner.setSpacing(8)
        top.addLayout(self.corner)
        self.body = QVBoxLayout()
        self.body.setSpacing(spacing)
        outer.addLayout(self.body, 1)
        self.heading.setVisible(bool(title))
        self.setAccessibleName(title)

    def set_title(self, title: str) -> None:
        """Change the heading; empty hides it."""
        self.heading.setText(title.upper())
        self.heading.setVisible(bool(title))
        self.setAccessibleName(title)

    def add(self, widget: QWidget, stretch: int = 0) -> QWidget:
        """Append a widget to the body and return it."""
        self.body.addWidget(widget, stretch)
        return widget

    def add_all(self, *parts: Part) -> None:
        """Append several widgets and layouts to the body."""
        fill(self.body, parts)


class TableCard(Card):
    """A table up to the edges, and a line of words below it."""

    def __init__(self, table: QWidget, words: QWidget) -> None:
        super().__init__()
        self.layout().setContentsMargins(1, 6, 1, 8)  # type: ignore[union-attr]
        self.add_all((table, 1), hbox(words, margins=(14, 0, 14, 0)))


def rule(parent: QWidget | None = None) -> QFrame:
    """A thin dividing line."""
    line = QFrame(parent)
    theme.role(line, "rule")
    line.setFixedHeight(1)
    return line


def label(text: str = "", role: str = "", wrap: bool = False, selectable: bool = False) -> QLabel:
    """A plain-text label in a role of the style sheet."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setWordWrap(wrap)
    if selectable:
        made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if role:
        theme.role(made, role)
    return made


CAPTION_WIDTH = 104


class FormGrid(QGridLayout):
    """Rows of caption and field; captions name their fields for screen readers."""

    def __init__(self) -> None:
        super().__init__()
        self.setHorizontalSpacing(10)
        self.setVerticalSpacing(8)
        self.setColumnMinimumWidth(0, CAPTION_WIDTH)
        self.setColumnStretch(1, 1)

    def add(self, caption: str, field: QWidget, target: QWidget | None = None) -> QLabel:
        """Add a row; returns its caption, which names `target` if the field holds several widgets."""
        made = label(caption, "muted")
        named = target or field
        made.setBuddy(named)
        if not named.accessibleName():
            named.setAccessibleName(caption)
        row = self.rowCount()
        self.addWidget(made, row, 0)
        self.addWidget(field, row, 1)
        return made


class KpiTile(QFrame):
    """A tile with one large number: a caption, a value, and a smaller line below (hidden while empty)."""

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
        self._update_accessible_name()

    def value(self) -> str:
        """The displayed text of the number."""
        return self._value.text()

    def set_caption(self, caption: str) -> None:
        """Change the caption."""
        self._caption.setText(caption)
        self._update_accessible_name()

    def set_value(self, value: str, sub: str | None = None) -> None:
        """Change the number and, if given, the line below; unchanged text costs nothing."""
        if value != self._value.text():
            self._value.setText(value)
            self._update_accessible_name()
        if sub is not None and sub != self._sub.text():
            self._sub.setText(sub)
            self.setAccessibleDescription(sub.strip())
            self._sub.setVisible(bool(sub))

    def _update_accessible_name(self) -> None:
        self.setAccessibleName(f"{self._caption.text()}: {self._value.text()}")
