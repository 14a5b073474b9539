"""Shows colored tokens that flow like text, with selection, hover, keyboard and mouse.

Qt's document shapes letters, orders both writing directions and fills lines; `token_text` decides what it says.
"""

from collections.abc import Callable, Iterator, Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextOption,
)  # fmt: skip
from PySide6.QtWidgets import QFrame, QTextEdit, QToolTip, QWidget

from app import theme
from app.core.i18n import tr
from app.core.text.invisible_characters import visible
from app.core.text.shown_tokens import SPECIAL, UNKNOWN, ShownToken, shorten, tokens_of_texts
from app.widgets.accessibility import Role
from app.widgets.text.marked_text import letter_boxes, positions_in
from app.widgets.text.token_text import CAPTION_INK, FAINT_INK, RIGHT_TO_LEFT, SPECIAL_INK, USUAL_INK, TokenText

LINE, BOX = 27, 21
"""Pixels from line to line, and of a box's height."""
MARGIN, PAD = 4, 2.5
"""Pixels around all tokens, and of a box beside its letters."""
COLORS = 6
FOOT = 2.0
"""Pixels of the line that marks each token for people who cannot distinguish the colours."""
SPOKEN = 2000
"""Characters of the text that a screen reader is given at once."""


class TokenView(QTextEdit):
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
        theme.role(self, "marked")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)  # what is selected are tokens
        self.setAcceptRichText(False)
        self.setUndoRedoEnabled(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.viewport().setAutoFillBackground(False)
        self.viewport().setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(MARGIN + PAD)
        self.setAccessibleName(tr("Tokens"))
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
        self.show_tokens(tokens_of_texts(texts, specials, gaps))

    def show_tokens(self, tokens: Sequence[ShownToken], rest: str = "") -> None:
        """Show these, and the text after them; clears the selection and keeps the same lines in view."""
        self._tokens, self._rest = tokens, rest
        self._hovered, self._selection = -1, None
        first = " | ".join(shorten(token.text) for token in tokens[:SPOKEN])
        self.setAccessibleDescription(first[:SPOKEN])
        self._write()

    def set_whitespace_visible(self, shown: bool) -> None:
        """Set whether to show spaces as dots, line breaks as arrows, and other invisible characters by name."""
        self._whitespace = shown
        self._write()

    def shown_text(self, index: int) -> str:
        """A token's display text on its own."""
        return visible(shorten(self._tokens[index].text), self._whitespace)

    def count(self) -> int:
        """The number of tokens."""
        return len(self._tokens)

    def apply_theme(self) -> None:
        """Inks and the text size are stored in the document, so it is written again."""
        self._write()

    def _write(self) -> None:
        self._text = TokenText(self._tokens, self._rest, self._whitespace)
        place, document = self.verticalScrollBar().value(), self.document()
        document.clear()
        cursor = QTextCursor(document)
        lines, inks = QTextBlockFormat(), _inks()
        lines.setLineHeight(LINE, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        lines.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        cursor.setBlockFormat(lines)
        cursor.beginEditBlock()
        for ink, parts in self._text.runs:
            cursor.insertText("".join(parts), inks[ink])
        lines.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        for position in self._text.turned:
            cursor.setPosition(position)
            cursor.setBlockFormat(lines)
        cursor.endEditBlock()
        self.verticalScrollBar().setValue(place)

    def line_counts(self) -> list[int]:
        """The number of lines of each paragraph at the current width."""
        document = self.document()
        document.documentLayout().blockBoundingRect(document.lastBlock())  # it lays out what it is asked for
        block, counts = document.firstBlock(), []
        while block.isValid():
            counts.append(max(1, block.layout().lineCount()))
            block = block.next()
        return counts

    def set_lines_below(self, lines: Sequence[int]) -> None:
        """Leave so many lines empty below each paragraph."""
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        block = self.document().firstBlock()
        for number in lines:
            if block.isValid() and block.blockFormat().bottomMargin() != number * LINE:
                cursor.setPosition(block.position())
                room = QTextBlockFormat()
                room.setBottomMargin(number * LINE)
                cursor.mergeBlockFormat(room)
            block = block.next()
        cursor.endEditBlock()

    # Where tokens are

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the boxes of the visible tokens, and the text over them."""
        with QPainter(self.viewport()) as painter:
            paint = TokenPaint(painter, self._hovered, self.selected(), self.current() if self.hasFocus() else -1)  # fmt: skip
            first, last = (self._text.group_at(place) for place in positions_in(self, event.rect()))
            for group in range(max(0, first), last + 1):
                is_alone = len(self._text.tokens_of(group)) == 1
                for index, box in self._places(group):
                    paint.paint(self._tokens[index], index, box, is_alone=is_alone)
        super().paintEvent(event)

    def _places(self, group: int) -> Iterator[tuple[int, QRectF]]:
        """The tokens of a group with their boxes in the viewport; one that is wider than a line has several."""
        text, tokens, top = self._text, self._text.tokens_of(group), self.verticalScrollBar().value()
        for letters in letter_boxes(self.document(), text.starts[group], text.ends[group]):
            box = letters.adjusted(-PAD, -BOX + 6, PAD, 6).translated(0, -top)
            if len(tokens) == 1:
                yield tokens[0], box
            else:
                yield from self._shares(group, box)
                return

    def _shares(self, group: int, box: QRectF) -> Iterator[tuple[int, QRectF]]:
        """Tokens drawn as one, each with its share of the width."""
        tokens, is_turned = self._text.tokens_of(group), bool(RIGHT_TO_LEFT.match(self._text.source_of(group)))
        width = box.width() / len(tokens)
        for place, index in enumerate(reversed(tokens) if is_turned else tokens):
            yield index, QRectF(box.left() + place * width, box.top(), width, box.height())

    def token_at(self, place: QPointF) -> int:
        """The token under a point of the viewport, or −1."""
        group = self._text.group_at(self.cursorForPosition(place.toPoint()).position())
        near = range(max(0, group - 1), min(len(self._text.starts), group + 2))
        return next((index for one in near for index, box in self._places(one) if box.contains(place)), -1)

    def box_of(self, index: int) -> QRectF:
        """The rectangle of a token in the viewport."""
        return next(box for token, box in self._places(self._text.group_of(index)) if token == index)

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
        if low < high:  # whole groups
            low = self._text.tokens_of(self._text.group_of(low)).start
            high = self._text.tokens_of(self._text.group_of(high - 1)).stop
        return "".join((token.gap if place else "") + token.added for place, token in enumerate(self._tokens[low:high]))

    def _choose(self, index: int, extend: bool = False) -> None:
        anchor = self._selection[0] if extend and self._selection else index
        self._selection = (anchor, index)
        self._bring(index)
        self.token_selected.emit(index)
        self.selection_changed.emit(*self.selected())
        self.viewport().update()

    def _cursor_at(self, index: int) -> QTextCursor:
        cursor = QTextCursor(self.document())
        cursor.setPosition(self._text.starts[self._text.group_of(max(0, index))])
        return cursor

    def _bring(self, index: int) -> None:
        self.setTextCursor(self._cursor_at(index))
        self.ensureCursorVisible()

    # Mouse, keys, size

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap again and keep the first visible token in place."""
        bar, first = self.verticalScrollBar(), self.cursorForPosition(QPoint(0, 0))
        kept = bar.value() > 0
        super().resizeEvent(event)
        if kept:
            bar.setValue(bar.value() + self.cursorRect(first).top())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Hover, or extend the selection."""
        index = self.token_at(event.position())
        is_dragging = event.buttons() & Qt.MouseButton.LeftButton and self._selection is not None
        if is_dragging and index not in (-1, self.current()):
            self._choose(index, extend=True)
        self._hover(index)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a token; with Shift, extend to it."""
        index = self.token_at(event.position())
        if index >= 0:
            self._choose(index, extend=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
            return
        self._selection = None
        self.selection_changed.emit(0, 0)
        self.viewport().update()

    def viewportEvent(self, event: QEvent) -> bool:
        """Leaving ends the hover; resting shows the tooltip."""
        if event.type() == QEvent.Type.Leave:
            self._hover(-1)
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = self.token_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), self.hint(index) if index >= 0 else "", self.viewport())
            return True
        return super().viewportEvent(event)

    def _hover(self, index: int) -> None:
        if index != self._hovered:
            self._hovered = index
            self.token_hovered.emit(index)
            self.viewport().update()

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
            event.ignore()

    def _target(self, event: QKeyEvent) -> int:
        """The token that a key moves to, −1 for none."""
        current, last, key = self.current(), self.count() - 1, event.key()
        if key in (Qt.Key.Key_Home, Qt.Key.Key_End) and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            return 0 if key == Qt.Key.Key_Home else last
        cursor = self._cursor_at(current)
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            is_turned = cursor.block().textDirection() == Qt.LayoutDirection.RightToLeft
            step = 1 if (key == Qt.Key.Key_Right) != is_turned else -1
            return 0 if current < 0 else min(last, max(0, current + step))
        if key not in _MOVES:
            return -1
        if current < 0:
            return 0
        page = max(1, self.viewport().height() // LINE - 1)
        cursor.movePosition(_MOVES[key], n=page if key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown) else 1)
        tokens = self._text.tokens_of(max(0, self._text.group_at(cursor.position())))
        return tokens[-1] if key == Qt.Key.Key_End else tokens[0]


_MOVES: dict[int, QTextCursor.MoveOperation] = {
    Qt.Key.Key_Up: QTextCursor.MoveOperation.Up,
    Qt.Key.Key_Down: QTextCursor.MoveOperation.Down,
    Qt.Key.Key_PageUp: QTextCursor.MoveOperation.Up,
    Qt.Key.Key_PageDown: QTextCursor.MoveOperation.Down,
    Qt.Key.Key_Home: QTextCursor.MoveOperation.StartOfLine,
    Qt.Key.Key_End: QTextCursor.MoveOperation.EndOfLine,
}
"""Keys that lead to other lines, or to the end of one."""


def _inks() -> dict[str, QTextCharFormat]:
    """How each ink of a TokenText is written."""
    mono = theme.mono_font(13)
    mono.setFeature(QFont.Tag("calt"), 0)  # `<|` is no arrow here
    made = {}
    for ink in (USUAL_INK, SPECIAL_INK, FAINT_INK, CAPTION_INK):
        letters = made[ink] = QTextCharFormat()
        letters.setFont(theme.font(11, QFont.Weight.DemiBold) if ink == CAPTION_INK else mono)
        letters.setForeground(theme.color("faint" if ink == CAPTION_INK else ink))
    return made


class TokenPaint:
    """Draws boxes with the colours of one paint."""

    def __init__(self, painter: QPainter, hovered: int, selected: tuple[int, int], current: int) -> None:
        self._painter, self._colors = painter, TokenColors()
        self._hovered, self._selected, self._current = hovered, selected, current
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def paint(self, token: ShownToken, index: int, box: QRectF, *, is_alone: bool) -> None:
        """Draw the box of a token, which is alone unless it is one of a group."""
        painter, colors, number = self._painter, self._colors, index % COLORS
        foot = colors.special_foot if token.kind == SPECIAL else colors.feet[number]
        if token.is_faint:
            painter.setPen(QPen(foot, 1, Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.special if token.kind == SPECIAL else colors.grounds[number])
            if is_alone:
                painter.drawRoundedRect(box, 4, 4)
            else:
                painter.drawRect(box.adjusted(0.5, 0, -0.5, 0))
            # A line at the foot: colours alone would not show everybody where a token ends.
            painter.setBrush(colors.unknown if token.kind == UNKNOWN else foot)
            painter.drawRoundedRect(QRectF(box.left() + 1, box.bottom() - FOOT, box.width() - 2, FOOT), 1, 1)
        is_current = index == self._current
        if is_current or index == self._hovered or self._selected[0] <= index < self._selected[1]:
            painter.setPen(colors.focus if is_current else colors.outline)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 4, 4)


class TokenColors:
    """The colours of one paint."""

    def __init__(self) -> None:
        self.ink, quiet = theme.color("token_text"), theme.color("token_special_text")
        self.special, self.unknown = theme.color("token_special"), theme.color("danger")
        self.grounds = [theme.color(f"token_{number}") for number in range(COLORS)]
        self.feet = [_towards(ground, self.ink) for ground in self.grounds]
        self.special_foot = _towards(self.special, quiet)
        self.outline, self.focus = QPen(theme.color("focus"), 1.5), QPen(theme.color("focus"), 2.4)


def _towards(ground: QColor, ink: QColor, part: float = 0.42) -> QColor:
    def mix(one: int, other: int) -> int:
        return round(one + (other - one) * part)

    return QColor(mix(ground.red(), ink.red()), mix(ground.green(), ink.green()), mix(ground.blue(), ink.blue()))
