"""Shows colored tokens that flow like text, with selection, hover, keyboard and mouse.

`token_paragraphs` computes token positions, `token_paint` draws the visible ones, so 100,000 tokens are fast.
"""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPaintEvent,
    QResizeEvent,
)  # fmt: skip
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip, QWidget

from app import theme
from app.core.i18n import tr
from app.core.text.invisible_characters import visible
from app.core.text.token_boxes import TokenBoxes, boxes_of_texts, shorten
from app.widgets.accessibility import Role
from app.widgets.text.token_paint import TokenPaint
from app.widgets.text.token_paragraphs import BOX, LINE, MARGIN, TokenParagraphs

SPOKEN = 2000
"""Characters of the text that a screen reader is given at once."""


class TokenView(QAbstractScrollArea):
    """Tokens with hover, click, arrows, selection by dragging or Shift, and copying."""

    spoken_role = Role.List

    token_hovered = Signal(int)
    """Index, or −1."""
    token_selected = Signal(int)
    """The token that was clicked or reached by keys."""
    selection_changed = Signal(int, int)
    """First and last + 1 of the tokens that a person selected here; equal where none is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Tokens"))
        self._size = theme.text_size()
        self.paragraphs = TokenParagraphs(theme.mono_font(13))
        self._whitespace = True
        self._hovered = -1
        self._selection: tuple[int, int] | None = None
        self.hint: Callable[[int], str] = lambda index: ""
        """What the tooltip of a token says."""
        self.set_tokens([])

    # What is shown

    def set_tokens(
        self, texts: Sequence[str], specials: Sequence[bool] | None = None, gaps: Sequence[str] | None = None
    ) -> None:
        """Set the tokens' texts; `specials` are drawn grey; `gaps` is the untokenized text before each token."""
        self.set_boxes(boxes_of_texts(texts, specials, gaps))

    def set_boxes(self, boxes: TokenBoxes) -> None:
        """Show these; clears the selection and keeps the same lines in view."""
        self._boxes = boxes
        self._hovered, self._selection = -1, None
        self.paragraphs.set_boxes(boxes, self._whitespace)
        first = " | ".join(shorten(boxes.text(index)) for index in range(min(len(boxes), SPOKEN)))
        self.setAccessibleDescription(first[:SPOKEN])
        self._wrap()

    def set_whitespace_visible(self, shown: bool) -> None:
        """Set whether to show spaces as dots, line breaks as arrows, and other invisible characters by name."""
        self._whitespace = shown
        self.paragraphs.set_boxes(self._boxes, shown)
        self._wrap()

    def shown_text(self, index: int) -> str:
        """A token's display text on its own."""
        return visible(shorten(self._boxes.text(index)), self._whitespace)

    def count(self) -> int:
        """The number of tokens."""
        return len(self._boxes)

    def line_count(self) -> int:
        """The number of lines at the current width."""
        return self.paragraphs.line_count()

    def apply_theme(self) -> None:
        """Colours are read at every paint; another text size needs a new layout."""
        if self._size != theme.text_size():
            self._size = theme.text_size()
            self.paragraphs = TokenParagraphs(theme.mono_font(13))
            self.paragraphs.set_boxes(self._boxes, self._whitespace)
            self._wrap()
        self.viewport().update()

    def _wrap(self) -> None:
        self.paragraphs.wrap(self.viewport().width())
        self._show_range()
        self._lay_out()
        self.viewport().update()

    def _show_range(self) -> None:
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, self.line_count() * LINE + 2 * MARGIN - self.viewport().height()))
        bar.setPageStep(self.viewport().height())
        bar.setSingleStep(LINE)

    def _lay_out(self) -> None:
        """Lay out what is visible without moving it, even if what is above turns out higher than estimated."""
        bar = self.verticalScrollBar()
        moved = self.paragraphs.lay_out(bar.value() // LINE, (bar.value() + self.viewport().height()) // LINE)
        self._show_range()
        if moved:
            bar.setValue(bar.value() + moved * LINE)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Other lines come into view."""
        self._lay_out()
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the tokens of the visible lines."""
        current = self.current() if self.hasFocus() else -1
        paint = TokenPaint(self.viewport(), self._hovered, self.selected(), current)
        paint.paint(self.paragraphs, self.verticalScrollBar().value())

    # Where tokens are

    def token_at(self, place: QPointF) -> int:
        """The token under a point of the viewport, or −1."""
        top = self.verticalScrollBar().value()
        line = int((place.y() + top - MARGIN) // LINE)
        if not 0 <= line < self.line_count() or not 0 <= place.y() + top - MARGIN - line * LINE <= BOX:
            return -1
        hits = (one.index for one in self.paragraphs.places(line) if one.left <= place.x() <= one.left + one.width)
        return next(hits, -1)

    def box_of(self, index: int) -> QRectF:
        """The rectangle of a token in the viewport."""
        line = self.paragraphs.line_of(index)
        place = next(one for one in self.paragraphs.places(line) if one.index == index)
        return QRectF(place.left, MARGIN + line * LINE - self.verticalScrollBar().value(), place.width, BOX)

    # Selection

    def selected(self) -> tuple[int, int]:
        """First and last + 1 of the selected tokens; equal if none are selected."""
        if self._selection is None:
            return 0, 0
        return min(self._selection), max(self._selection) + 1

    def select(self, first: int, last: int) -> None:
        """Select tokens from outside, for a selection made elsewhere, and scroll to the first; emits nothing."""
        self._selection = (first, last - 1) if first < last else None
        if first < last:
            self._bring(last - 1)
            self._bring(first)
        self.viewport().update()

    def current(self) -> int:
        """The token that keys start from, −1 for none."""
        return self._selection[1] if self._selection else -1

    def selected_text(self) -> str:
        """The text from the first to the last selected token; everything if nothing is selected."""
        low, high = self.selected() if self._selection else (0, self.count())
        boxes, parts, index = self._boxes, [], low
        while index < high:
            first, last = boxes.group(index)
            parts.append(("" if index == low else boxes.gap_text(first)) + boxes.spanned(first, last))
            index = last
        return "".join(parts)

    def _choose(self, index: int, extend: bool = False) -> None:
        anchor = self._selection[0] if extend and self._selection else index
        self._selection = (anchor, index)
        self._bring(index)
        self.token_selected.emit(index)
        self.selection_changed.emit(*self.selected())
        self.viewport().update()

    def _bring(self, index: int) -> None:
        line, bar = self.paragraphs.line_of(index), self.verticalScrollBar()
        self._show_range()
        least = (line + 1) * LINE + 2 * MARGIN - self.viewport().height()
        bar.setValue(min(line * LINE, max(bar.value(), least)))

    def _drop_selection(self) -> None:
        self._selection = None
        self.selection_changed.emit(0, 0)
        self.viewport().update()

    # Mouse, keys, size

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap again and keep the first visible token in place."""
        line = min(self.line_count() - 1, self.verticalScrollBar().value() // LINE)
        places = self.paragraphs.places(line) if line > 0 else []
        kept = places[0].index if places else 0
        self._wrap()
        if kept:
            self.verticalScrollBar().setValue(self.paragraphs.line_of(kept) * LINE)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Hover, or extend the selection."""
        index = self.token_at(event.position())
        is_dragging = event.buttons() & Qt.MouseButton.LeftButton and self._selection is not None
        if is_dragging and index not in (-1, self.current()):
            self._choose(index, extend=True)
        if index != self._hovered:
            self._hovered = index
            self.token_hovered.emit(index)
            self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a token; with Shift, extend to it."""
        index = self.token_at(event.position())
        if index < 0:
            self._drop_selection()
        else:
            self._choose(index, extend=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))

    def viewportEvent(self, event: QEvent) -> bool:
        """Leaving ends the hover; resting shows the tooltip."""
        if event.type() == QEvent.Type.Leave and self._hovered >= 0:
            self._hovered = -1
            self.token_hovered.emit(-1)
            self.viewport().update()
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = self.token_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), self.hint(index) if index >= 0 else "", self.viewport())
            return True
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows, Home, End and the page keys move, with Shift they extend; Ctrl+A selects all, Ctrl+C copies."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.selected_text())
        elif event.matches(QKeySequence.StandardKey.SelectAll) and self.count():
            self._selection = (0, self.count() - 1)
            self.selection_changed.emit(0, self.count())
            self.viewport().update()
        elif self.count() and (target := self._target(event)) >= 0:
            self._choose(target, extend=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        else:
            super().keyPressEvent(event)

    def _target(self, event: QKeyEvent) -> int:
        """The token that a key moves to, −1 for none."""
        current, last = self.current(), self.count() - 1
        key, whole = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        page = max(1, self.viewport().height() // LINE - 1)
        if key in _LINES:
            step = _LINES[key]
            return self._in_line(current, step if abs(step) == 1 else page * step // 2)
        if key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            places = self.paragraphs.places(self.paragraphs.line_of(max(0, current)))
            ends = (0, last) if whole else (places[0].index, places[-1].index)
            return ends[key == Qt.Key.Key_End]
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            return self._beside(current, 1 if key == Qt.Key.Key_Right else -1)
        return -1

    def _beside(self, current: int, step: int) -> int:
        """The token to the right or left; on a right-to-left line, the one before or after."""
        if current < 0:
            return 0
        places = sorted(self.paragraphs.places(self.paragraphs.line_of(current)), key=lambda one: one.left)
        at = [one.index for one in places].index(current)
        if 0 <= at + step < len(places):
            return places[at + step].index
        runs_right = len(places) > 1 and places[0].index > places[-1].index
        ends = [one.index for one in places]
        after = max(ends) + 1 if (step > 0) != runs_right else min(ends) - 1
        return min(self.count() - 1, max(0, after))

    def _in_line(self, current: int, lines: int) -> int:
        """The nearest token some lines above or below."""
        if current < 0:
            return 0
        box, line = self.box_of(current), self.paragraphs.line_of(current)
        step = 1 if lines > 0 else -1
        goal = min(self.line_count() - 1, max(0, line + lines))
        while 0 <= goal < self.line_count():
            places = self.paragraphs.places(goal)
            if places and goal != line:
                centre = box.center().x()
                return min(places, key=lambda one: abs(one.left + one.width / 2 - centre)).index
            goal += step
        return current


_LINES: dict[int, int] = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -2, Qt.Key.Key_PageDown: 2}
"""Keys that lead to other lines: by one, or (2) by a page."""
