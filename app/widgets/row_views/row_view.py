"""The base of all views of a predicted row: parts with small headings, reused for every row."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QLayout, QSizePolicy, QVBoxLayout, QWidget

from app.core.formatting import number, short_name
from app.core.predictions.predicted_row import PROBABILITY, PredictedRow
from app.widgets.card import label
from app.widgets.text.marked_text import MarkedText

FILLS = 1000
"""Stretch of a part that takes what room there is, up to its own height."""
LONGEST_VALUE = 2000
"""Characters of a value that is only listed."""


@dataclass(frozen=True)
class RowOrder:
    """A sort order for rows; `column` may be one that the helper derives."""

    title: str
    column: str
    descending: bool
    needs: str = ""
    """The required column, if it is not `column` itself; with a final underscore it is a prefix."""
    mistakes: bool = False
    """Only wrong rows are wanted so."""

    def fits(self, columns: Collection[str]) -> bool:
        """Whether rows with these columns can be sorted this way."""
        needed = self.needs or self.column
        if self.mistakes and "actual" not in columns:
            return False
        return any(name == needed or (needed.endswith("_") and name.startswith(needed)) for name in columns)


class CaptionedSection(QWidget):
    """A small heading over one widget; hidden if there is nothing to show."""

    def __init__(self, title: str, content: QWidget) -> None:
        super().__init__()
        self.title = label(title, "faint")
        self.title.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        column.addWidget(self.title)
        column.addWidget(content, 1)
        # No higher than its content may become.
        column.setSizeConstraint(QLayout.SizeConstraint.SetMinAndMaxSize)

    def set_title(self, title: str) -> None:
        """Change the heading."""
        self.title.setText(title)


class RowView(QWidget):
    """One row in full. A view is created once and shows one row after another."""

    own: ClassVar[frozenset[str]] = frozenset()
    """Columns of the task that the view shows in its own way, so that a table need not."""
    compares: ClassVar[bool] = True
    """Whether a prediction is right where it equals the actual value, and wrong where it does not."""
    confuses: ClassVar[bool] = False
    """Whether predictions are labels, of which one is taken for another."""
    orders: ClassVar[tuple[RowOrder, ...]] = ()
    folded: ClassVar[tuple[str, ...]] = ()
    """Parts that are too long for a table."""
    roles: ClassVar[tuple[str, ...]] = ()
    """Parts that the view shows in its own way; other input columns are listed at its end."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("scrolled")
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 8, 0)
        self.column.setSpacing(14)
        self.build()
        self._rest = ValueList()
        self.column.addWidget(self._rest)
        self.column.addStretch(1)

    @classmethod
    def hidden(cls, columns: Mapping[str, str]) -> set[str]:
        """Columns that the table hides: the view shows them better, or `actual` says the same."""
        return set(cls.own - {order.column for order in cls.orders}) | {
            columns[role] for role in (*ANSWERS, *cls.folded) if role in columns
        }

    @classmethod
    def fits(cls, columns: Collection[str]) -> bool:
        """Whether rows with these columns can be shown this way."""
        return True

    def build(self) -> None:
        """Add the parts to `column`."""
        raise NotImplementedError

    def show_row(self, row: PredictedRow) -> None:
        """Show another row."""
        self.show_parts(row)
        columns = {row.columns.get(role, role) for role in self.roles} | set(self.own)
        columns |= {row.columns[role] for role in ANSWERS if role in row.columns}
        rest = {name: value for name, value in row.inputs().items() if name not in columns}
        self._rest.show_values(rest)

    def show_parts(self, row: PredictedRow) -> None:
        """Show the parts specific to this view."""
        raise NotImplementedError

    # Parts that several views have

    def add_text(self, title: str, fills: bool = False) -> MarkedText:
        """A text under a heading; `show_or_hide` with it later."""
        text = MarkedText(title, fills)
        self.add(title, text, FILLS if fills else 0)
        return text

    def add(self, title: str, widget: QWidget, stretch: int = 0) -> CaptionedSection:
        """A widget under a heading."""
        section = CaptionedSection(title, widget)
        self.column.addWidget(section, stretch)
        return section


ANSWERS = ("label", "tags", "answers", "answer_start", "target")
"""Parts that say the right answer, which is shown as `actual`."""


def section_of(widget: QWidget) -> CaptionedSection:
    """The section that contains a widget."""
    section = widget.parentWidget()
    assert isinstance(section, CaptionedSection)
    return section


def show_or_hide(text: MarkedText, value: str | None) -> None:
    """Show a plain text, or hide the section if it is empty."""
    section_of(text).setVisible(bool(value))
    text.show_text(value or "")


class ValueList(QWidget):
    """Columns shown as small name and value pairs at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(14)
        self._grid.setVerticalSpacing(5)
        self._grid.setColumnStretch(1, 1)
        self._values: dict[str, QLabel] = {}
        self.shown: dict[str, str] = {}

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show these; labels are reused while the names stay the same."""
        self.shown = {name: value_text(value) for name, value in values.items()}
        if list(self.shown) != list(self._values):
            self._build(list(self.shown))
        for name, text in self.shown.items():
            self._values[name].setText(text)
        self.setVisible(bool(values))

    def _build(self, names: list[str]) -> None:
        while item := self._grid.takeAt(0):
            item.widget().hide()  # type: ignore[union-attr]
            item.widget().deleteLater()  # type: ignore[union-attr]
        self._values = {name: label("", "caption", wrap=True, selectable=True) for name in names}
        for place, (name, value) in enumerate(self._values.items()):
            title = label(short_name(name.removeprefix(PROBABILITY).replace("_", " ")), "faint")
            title.setToolTip(name)
            for column, widget in enumerate((title, value)):
                self._grid.addWidget(widget, place, column, Qt.AlignmentFlag.AlignTop)


def value_text(value: object) -> str:
    """A value as text, truncated if it is very long."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return number(value)
    text = str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


class PlainView(RowView):
    """Prediction and actual value first."""

    def build(self) -> None:
        """One list; the rest follows as in every view."""
        self.answers = ValueList()
        self.column.addWidget(self.answers)

    def show_parts(self, row: PredictedRow) -> None:
        """Prediction and actual value."""
        self.answers.show_values({name: row.values[name] for name in ("prediction", "actual") if name in row.values})
