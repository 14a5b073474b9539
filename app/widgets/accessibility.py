"""Accessibility: what a screen reader announces, the Tab order, and the focus ring."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QAccessibleWidget,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QTextEdit,
    QWidget,
)

from app import theme
from app.widgets.page_layout import PageArea

Role = QAccessible.Role


class _Spoken(QAccessibleWidget):
    """Reports the widget's `spoken_role`, and its description as its value, which the painting code updates."""

    def text(self, t: QAccessible.Text) -> str:
        """Called by Qt for name, description, value and more."""
        if t == QAccessible.Text.Value:
            return self.widget().accessibleDescription()
        return super().text(t)


@cache
def speak_roles() -> None:
    """From now on announce widgets with a `spoken_role` by that role, not as an unnamed area."""
    QAccessible.installFactory(_make_interface)


def _make_interface(kind: str, thing: QObject) -> QAccessibleInterface | None:
    role = getattr(thing, "spoken_role", None)
    return _Spoken(thing, role) if role is not None and isinstance(thing, QWidget) else None


# The order of Tab: as the window is read, whatever order its parts were made in

TOLERANCE = 4
"""Pixels by which neighbours may overlap and still count as separate."""


class TabOrder(QWidget):
    """Reorders registered widgets at every Tab; hidden ones keep their position."""

    def focusNextPrevChild(self, next: bool) -> bool:
        """Reorder Qt's focus chain, then follow it."""
        stops = in_reading_order(self)
        if stops and stops != _chain(stops):
            for before, after in pairwise(stops):
                QWidget.setTabOrder(before, after)
        return super().focusNextPrevChild(next)


@dataclass(frozen=True)
class _Part:
    """A widget with its focusable parts."""

    box: QRect
    stops: list[QWidget]


def in_reading_order(holder: QWidget) -> list[QWidget]:
    """Focusable widgets in reading order: rows from the top, columns from the left; a container counts as one."""
    parts = []
    for child in holder.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
        if child.isVisible() and not child.isWindow():
            stops = ([child] if _is_stop(child) else []) + ([] if _is_whole(child) else in_reading_order(child))
            if stops:
                parts.append(_Part(child.geometry(), stops))
    return [stop for part in _order(parts) for stop in part.stops]


def _is_stop(widget: QWidget) -> bool:
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.focusProxy() is None


def _is_whole(widget: QWidget) -> bool:
    """Whether Qt itself moves through its parts."""
    return isinstance(widget, QComboBox | QAbstractSpinBox)


def _order(parts: Sequence[_Part]) -> Iterator[_Part]:
    for begin, end in ((QRect.top, QRect.bottom), (QRect.left, QRect.right)):
        groups = _cut(parts, begin, end)
        if len(groups) > 1:
            for group in groups:
                yield from _order(group)
            return
    yield from sorted(parts, key=lambda part: (part.box.top(), part.box.left()))


def _cut(parts: Sequence[_Part], begin: Callable[[QRect], int], end: Callable[[QRect], int]) -> list[list[_Part]]:
    """Group the parts between gaps that no part crosses."""
    groups: list[list[_Part]] = []
    reached = 0
    for part in sorted(parts, key=lambda part: begin(part.box)):
        if groups and begin(part.box) <= reached - TOLERANCE:
            groups[-1].append(part)
        else:
            groups.append([part])
        reached = max(reached, end(part.box)) if len(groups[-1]) > 1 else end(part.box)
    return groups


def _chain(stops: Sequence[QWidget]) -> list[QWidget]:
    """The same in the current Tab order, starting with the first."""
    wanted, found = {*stops}, [stops[0]]
    link = stops[0].nextInFocusChain()
    while link is not None and link is not stops[0]:
        if link in wanted:
            found.append(link)
        link = link.nextInFocusChain()
    return found


# The ring around what has the focus and does not show it by its own style

STYLED = (QAbstractButton, QLineEdit, QComboBox, QAbstractSpinBox, QPlainTextEdit)
"""The style sheet draws their focus."""
NO_CHILDREN = (QSplitter, QTabWidget, QStackedWidget, PageArea)
"""Containers that would take the ring for one of their parts, and what is a page as a whole."""
PAGES = ("page", "scrolled")
"""Names of a page, and of what it scrolls."""


class FocusRing(QWidget):
    """One per window: a child of the focused widget, drawn over it, transparent to the mouse."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._window = window
        self._around: QWidget | None = None
        self.hide()
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._on_focus_changed)

    def _on_focus_changed(self, before: QWidget | None, now: QWidget | None) -> None:
        by_mouse = QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton
        if now is None or by_mouse or now.window() is not self._window or not _needs_ring(now):
            self._leave()
            return
        self._leave()
        self._around = now
        self.setParent(now)
        now.installEventFilter(self)
        self.setGeometry(now.rect())
        self.show()
        self.raise_()

    def _leave(self) -> None:
        around, self._around = self._around, None
        if around is not None:
            around.removeEventFilter(self)
            self.hide()
            self.setParent(self._window)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Match the size of the focused widget; must not be destroyed with it."""
        if self._around is not None and watched is self._around:
            if event.type() == QEvent.Type.Resize:
                self.setGeometry(self._around.rect())
            elif event.type() == QEvent.Type.DeferredDelete:
                self._leave()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """A thin line in the accent colour, just inside."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme.color("focus"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)


def _needs_ring(widget: QWidget) -> bool:
    if not widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
        return False  # the focus did not come from the keyboard
    if isinstance(widget, QTextEdit):
        return widget.property("role") == "marked"  # the others have a border of their own
    return not isinstance(widget, (*STYLED, *NO_CHILDREN)) and widget.objectName() not in PAGES
