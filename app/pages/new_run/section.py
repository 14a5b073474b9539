"""A section of the New run page: one line with its state, its fields while it is open, and the panel beside them."""

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr
from app.pages.new_run.section_state import BUSY, DONE, OPEN, WRONG, SectionState
from app.widgets.boxes import hbox, holder, keep_room, scroll_area
from app.widgets.card import label, rule
from app.widgets.icon_label import IconLabel
from app.widgets.page_layout import PageArea
from app.widgets.progress import ThinProgressBar
from app.widgets.text.elided_label import ElidedLabel

_ICONS = {
    DONE: ("check", "success"),
    OPEN: ("circle", "faint"),
    BUSY: ("circle", "accent"),
    WRONG: ("error", "danger"),
}
_WORDS = {
    DONE: tr("Complete."),
    OPEN: tr("Something is still missing here."),
    BUSY: tr("Being checked."),
    WRONG: tr("There is a problem here."),
}
TITLE_WIDTH = 88
"""Pixels of a title, so that the values are aligned."""


class SectionHeader(QPushButton):
    """Checked while the section is open; a click on an open one leaves it open."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        theme.role(self, "section")
        self.setCheckable(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._name, self._state = title, SectionState(OPEN)
        self.icon_label = IconLabel("circle", "faint", 16)
        self.title = label(title, "strong")
        self.value, self.note = ElidedLabel("", "muted"), ElidedLabel("", "muted")
        self._arrow = IconLabel("chevron-right", "faint", 14)
        self.corner: QWidget | None = None
        """What can be chosen here while the section is closed and something is missing."""
        row = self._row = QHBoxLayout(self)
        row.setContentsMargins(14, 0, 14, 0)
        row.setSpacing(10)
        for part, stretch in ((self.icon_label, 0), (self.title, 0), (self.value, 3), (self.note, 4), (self._arrow, 0)):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            row.addWidget(part, stretch)
        self.toggled.connect(lambda: self.apply_theme())
        self.apply_theme()
        self.show_state(self._state, "")

    def offer(self, *buttons: QWidget) -> None:
        """Offer these in the line while the section is closed and something is missing."""
        self.corner = holder(hbox(*buttons, spacing=6))
        self._row.insertWidget(self._row.count() - 1, self.corner)
        self._show_parts()

    def nextCheckState(self) -> None:
        """One section is always open."""
        self.setChecked(True)

    def show_state(self, state: SectionState, value: str) -> None:
        """Show the section's state, its main value, and while it is closed what is missing or has to be done."""
        self._state = state
        self.icon_label.set_icon(*_ICONS[state.kind])
        self.value.setText(value)
        self.note.setText(state.action or state.note)
        theme.role(self.note, "danger" if state.kind == WRONG else "muted")
        self.setToolTip(state.note or _WORDS[state.kind])
        self.setAccessibleName(f"{self._name}: {value}" if value else self._name)
        self.setAccessibleDescription(f"{_WORDS[state.kind]} {state.note}".strip())
        self._show_parts()

    def _show_parts(self) -> None:
        offers = self.corner is not None and self._state.kind == OPEN and not self.isChecked()
        if self.corner is not None:
            self.corner.setVisible(offers)
        self.note.setVisible(bool(self._state.note) and not self.isChecked() and not offers)
        self.value.setVisible(bool(self.value.text()) or not self.note.isVisibleTo(self))

    def apply_theme(self) -> None:
        """Sizes follow the text size, the arrow whether it is open."""
        self.title.setFixedWidth(theme.pixels(TITLE_WIDTH))
        self._arrow.set_icon("chevron-down" if self.isChecked() else "chevron-right", "faint")
        self._show_parts()


class Panel(QFrame):
    """The panel beside an open section: a title, small buttons in `corner`, a bar, and the content in `body`."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.role(self, "card")
        self.title = ElidedLabel(title, "section")
        self.corner = QHBoxLayout()
        self.corner.setSpacing(4)
        self.title.setMinimumHeight(theme.pixels(30))
        self.bar = ThinProgressBar()
        keep_room(self.bar)
        self.bar.hide()
        inside = QWidget(self)
        self.body = QVBoxLayout(inside)
        self.body.setContentsMargins(16, 2, 16, 12)
        self.body.setSpacing(10)
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 8, 1, 8)
        column.setSpacing(4)
        column.addLayout(hbox((self.title, 1), self.corner, spacing=8, margins=(15, 0, 11, 0)))
        column.addLayout(hbox(self.bar, margins=(15, 0, 15, 0)))
        area = scroll_area(inside)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        column.addWidget(area, 1)


class Section(QWidget):
    """Put fields into `body`; nothing in it may come or go when an answer arrives: that belongs into `panel`."""

    open_requested = Signal()
    """Somebody wants to see the section."""

    def __init__(self, title: str, panel: Panel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.header = SectionHeader(title, self)
        self.header.clicked.connect(self.open_requested)
        self.panel = panel
        self.inside = QWidget(self)
        self.area = PageArea(self.inside, self)
        self.area.setAccessibleName(title)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        whole = QVBoxLayout(self.inside)
        whole.setContentsMargins(16, 6, 4, 12)
        whole.setSpacing(12)
        self.body = QVBoxLayout()
        self.body.setSpacing(8)
        whole.addLayout(self.body)
        self.below = QVBoxLayout()
        """Where the panel stands if there is no room for it beside the sections."""
        whole.addLayout(self.below, 100)
        whole.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.area, 1)
        self.line = rule()
        column.addWidget(self.line)
        self.area.hide()

    def set_open(self, wanted: bool) -> None:
        """Show or hide the fields."""
        self.header.setChecked(wanted)
        self.area.setVisible(wanted)

    def add(self, widget: QWidget) -> QWidget:
        """Append a widget to the fields and return it."""
        self.body.addWidget(widget)
        return widget

    def lay_out(self) -> None:
        """Lay everything out now, also while the section is closed."""
        if not self.area.isVisible():
            self.inside.resize(self.area.width(), self.inside.sizeHint().height())
        for part in (self.inside, *self.inside.findChildren(QWidget)):
            if (layout := part.layout()) is not None:
                layout.activate()

    def place_of(self, widget: QWidget) -> int:
        """The position of a widget in it, from the top; its header comes first."""
        return widget.mapTo(self.inside, QPoint(0, 0)).y() if self.inside.isAncestorOf(widget) else -1

    def scroll_to(self, widget: QWidget) -> None:
        """Scroll a field into view, with some margin."""
        if self.inside.isAncestorOf(widget):
            self.area.ensureWidgetVisible(widget, 20, 60)

    def focus_first(self) -> None:
        """Focus the first field that can be used."""
        fields = (one for one in self.inside.findChildren(QWidget) if one.focusPolicy() & Qt.FocusPolicy.TabFocus)
        first = next((one for one in fields if one.isVisibleTo(self) and one.isEnabled()), self.header)
        first.setFocus(Qt.FocusReason.ShortcutFocusReason)
