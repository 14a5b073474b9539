"""Text with rounded marks: answers in a context, entities in a sentence, differing words."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAction,
    QFont,
    QGuiApplication,
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
    QTextDocument,
    QTextFormat,
    QTextLine,
    QWheelEvent,
)  # fmt: skip
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit, QWidget

from app import theme
from app.core.i18n import tr

LONGEST = 200_000
"""Characters that are laid out; more would stop the window."""
LINE_PERCENT = 140
SPOKEN = 2000
LEAST, USUAL = 130, 200
"""Pixels that a text which scrolls by itself needs, and would like; it takes more where there is room."""
ROOM = 2.0
"""Pixels of a mark beside its letters."""
_TAG = QTextFormat.Property.UserProperty + 1


@dataclass(frozen=True)
class TextRun:
    """A run of text; colours are tokens of the theme, empty for none."""

    text: str
    ground: str = ""
    """The mark behind it."""
    outline: str = ""
    ink: str = ""
    tag: str = ""
    """A small word after it, inside the mark, that is never copied."""
    strike: bool = False


@dataclass(frozen=True)
class _Mark:
    start: int
    end: int
    text: str
    ground: str = ""
    outline: str = ""


class MarkedText(QTextEdit):
    """Selectable text that is as high as its lines, or with `fills` takes the available space and scrolls."""

    mark_hovered = Signal(int)
    """Which mark is under the mouse or at the cursor, in order, or −1."""

    def __init__(self, name: str, fills: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._name, self._fills = name, fills
        self._pieces: Sequence[TextRun] = ()
        self._marks: list[_Mark] = []
        self._outlines: list[_Mark] = []
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAcceptRichText(False)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setAccessibleName(name)
        self._add_menu()
        theme.role(self, "marked")
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(2)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        if not fills:
            self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().documentLayout().documentSizeChanged.connect(lambda _: self._fit())
        self.viewport().setMouseTracking(True)
        self.cursorPositionChanged.connect(lambda: self.mark_hovered.emit(self._mark_at(self.textCursor())))

    # What is shown

    def show_text(self, text: str, ink: str = "") -> None:
        """Show a text without marks."""
        self.show_pieces([TextRun(text, ink=ink)])

    def show_pieces(self, pieces: Sequence[TextRun]) -> None:
        """Show these runs of text in sequence."""
        self._pieces = pieces
        self._write()
        if self._fills:
            # After the layouts: where a line stands is known only at its final width.
            QTimer.singleShot(0, self, self._show_first_mark)
        self.setAccessibleDescription("".join(piece.text for piece in pieces)[:SPOKEN])

    def apply_theme(self) -> None:
        """Colours are stored in the document, so it is built again."""
        self._write()

    def plain(self) -> str:
        """The text without tags."""
        return "".join(piece.text for piece in self._pieces)

    def marked(self) -> list[str]:
        """The texts of the marks, in order."""
        return [mark.text for mark in self._marks]

    def outlined(self) -> list[str]:
        """The outlined texts, in order."""
        return [mark.text for mark in self._outlines]

    def _write(self) -> None:
        self.document().clear()
        self._marks, self._outlines = [], []
        cursor = QTextCursor(self.document())
        lines = QTextBlockFormat()
        lines.setLineHeight(LINE_PERCENT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.setBlockFormat(lines)
        room = LONGEST
        cursor.beginEditBlock()
        for piece in self._pieces:
            start = cursor.position()
            cursor.insertText(piece.text[:room], _letters(piece))
            if piece.tag:
                cursor.insertText(f"\u00a0{piece.tag.replace(' ', chr(0xA0))}", _tag_letters(piece))
            if piece.ground or piece.outline:
                self._marks.append(_Mark(start, cursor.position(), piece.text, piece.ground))
            if piece.outline:
                self._outline(start, cursor.position(), piece)
            room -= len(piece.text)
            if room <= 0:
                cursor.insertText(" …", _letters(TextRun("", ink="muted")))
                break
        cursor.endEditBlock()
        self._fit()

    def _outline(self, start: int, end: int, piece: TextRun) -> None:
        """One outline around consecutive pieces."""
        last = self._outlines[-1] if self._outlines else None
        if last is not None and last.end == start and last.outline == piece.outline:
            self._outlines[-1] = _Mark(last.start, end, last.text + piece.text, outline=piece.outline)
        else:
            self._outlines.append(_Mark(start, end, piece.text, outline=piece.outline))

    def _show_first_mark(self) -> None:
        start = min((mark.start for mark in self._marks), default=0)
        cursor = QTextCursor(self.document())
        cursor.setPosition(start)
        place = self.cursorRect(cursor).top() + self.verticalScrollBar().value()
        self.verticalScrollBar().setValue(max(0, place - self.viewport().height() // 3) if start else 0)

    # Size

    def _fit(self) -> None:
        height = self._whole_height()
        if self._fills:
            self.setMinimumHeight(min(height, LEAST))
            self.setMaximumHeight(height)
        elif height != self.height() or self.minimumHeight() != height:
            self.setFixedHeight(height)

    def sizeHint(self) -> QSize:
        """The height of the text at the current width."""
        return QSize(200, min(self._whole_height(), USUAL) if self._fills else self._whole_height())

    def _whole_height(self) -> int:
        return round(self.document().size().height()) + 2

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width needs another height."""
        super().resizeEvent(event)
        self._fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page if there is nothing to scroll."""
        if self._fills and self.verticalScrollBar().maximum() > 0:
            super().wheelEvent(event)
        else:
            event.ignore()

    # Marks

    def _mark_at(self, cursor: QTextCursor) -> int:
        place = bisect_right(self._marks, cursor.position(), key=lambda mark: mark.start) - 1
        return place if place >= 0 and cursor.position() <= self._marks[place].end else -1

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Hover."""
        super().mouseMoveEvent(event)
        self.mark_hovered.emit(self._mark_at(self.cursorForPosition(event.position().toPoint())))

    def leaveEvent(self, event: QEvent) -> None:
        """Leaving ends the hover."""
        super().leaveEvent(event)
        self.mark_hovered.emit(-1)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the marks, and the text over them."""
        first, last = positions_in(self, event.rect())
        moved = QPointF(0, -self.verticalScrollBar().value())
        with QPainter(self.viewport()) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for mark in [*self._marks, *self._outlines]:
                if first < mark.end and mark.start <= last:
                    for box in self._boxes(mark):
                        _paint(painter, box.translated(moved), mark)
        super().paintEvent(event)

    def _boxes(self, mark: _Mark) -> Iterator[QRectF]:
        """One box per line that a mark touches, in document coordinates."""
        for letters in letter_boxes(self.document(), mark.start, mark.end):
            yield letters.adjusted(-ROOM, -13.5, ROOM, 5.5)

    def copy_selection(self) -> None:
        """Copy the selected text to the clipboard, without the tags."""
        # Not by createMimeDataFromSelection: what Python makes there is deleted while the clipboard still has it.
        cursor, copied = self.textCursor(), []
        for block in _blocks(self.document().findBlock(cursor.selectionStart()), cursor.selectionEnd()):
            copied.append("")
            iterator = block.begin()
            while not iterator.atEnd():
                fragment = iterator.fragment()
                if not fragment.charFormat().boolProperty(_TAG):
                    copied[-1] += _selected_part(fragment.text(), fragment.position(), cursor)
                iterator += 1
        if cursor.hasSelection():
            QGuiApplication.clipboard().setText("\n".join(copied))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl+C copies without the tags."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_selection()
        else:
            super().keyPressEvent(event)

    def _add_menu(self) -> None:
        for words, slot in ((tr("Copy"), self.copy_selection), (tr("Select all"), self.selectAll)):
            action = QAction(words, self)
            action.triggered.connect(slot)
            self.addAction(action)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)


def _blocks(block, end: int) -> Iterator:
    while block.isValid() and block.position() < end:
        yield block
        block = block.next()


def _selected_part(text: str, position: int, cursor: QTextCursor) -> str:
    units = text.encode("utf-16-le", "surrogatepass")  # Qt counts in UTF-16
    start, end = max(0, cursor.selectionStart() - position), max(0, cursor.selectionEnd() - position)
    return units[2 * start : 2 * end].decode("utf-16-le", "replace").replace("\u2028", "\n")


def _letters(piece: TextRun) -> QTextCharFormat:
    letters = QTextCharFormat()
    letters.setForeground(theme.color(piece.ink or ("token_text" if piece.ground.startswith("token") else "text")))
    letters.setFontStrikeOut(piece.strike)
    return letters


def _tag_letters(piece: TextRun) -> QTextCharFormat:
    letters = QTextCharFormat()
    letters.setForeground(theme.color("token_special_text"))
    letters.setProperty(QTextFormat.Property.FontPixelSize, 10)
    letters.setFontWeight(QFont.Weight.DemiBold)
    letters.setProperty(_TAG, True)
    return letters


def positions_in(editor: QTextEdit, area: QRect) -> tuple[int, int]:
    """The first and last position of the lines in a part of the viewport."""
    top, bottom = editor.cursorForPosition(area.topLeft()), editor.cursorForPosition(area.bottomLeft())
    top.movePosition(QTextCursor.MoveOperation.StartOfLine)
    bottom.movePosition(QTextCursor.MoveOperation.EndOfLine)
    return top.position(), bottom.position()


def letter_boxes(document: QTextDocument, start: int, end: int) -> Iterator[QRectF]:
    """Where some letters stand, for each line that they touch: left, baseline, width, and no height."""
    block = document.findBlock(start)
    while block.isValid() and block.position() < end:
        layout, is_right_to_left = block.layout(), block.textDirection() == Qt.LayoutDirection.RightToLeft
        first, last = max(0, start - block.position()), min(block.length() - 1, end - block.position())
        for number in range(layout.lineCount()):
            line = layout.lineAt(number)
            begin, stop = max(first, line.textStart()), min(last, line.textStart() + line.textLength())
            if begin < stop:
                left, right = _extent(line, begin, stop, is_right_to_left)
                # The blank at which a line is broken belongs to no mark.
                written = line.naturalTextRect()
                left, right = max(left, written.left()), min(right, written.right())
                # A line that is higher than its letters has them at its foot.
                yield QRectF(left, line.y() + line.ascent(), right - left, 0).translated(layout.position())
        block = block.next()


def _extent(line: QTextLine, start: int, end: int, is_right_to_left: bool) -> tuple[float, float]:
    """The horizontal extent of a range of characters in the line."""
    if is_right_to_left:
        # Latin words within stand the other way round, so that the ends of a run are not its outermost places.
        runs = [run.boundingRect() for run in line.glyphRuns(start, end - start)]
        if runs:
            return min(run.left() for run in runs), max(run.right() for run in runs)
    sides = (QTextLine.Edge.Leading, QTextLine.Edge.Trailing)
    edges = [line.cursorToX(place, side)[0] for place in range(start, end) for side in sides]  # pyright: ignore[reportIndexIssue]  it is (x, place)
    return min(edges), max(edges)


def _paint(painter: QPainter, box: QRectF, mark: _Mark) -> None:
    painter.setPen(QPen(theme.color(mark.outline), 1.4) if mark.outline else Qt.PenStyle.NoPen)
    painter.setBrush(theme.color(mark.ground) if mark.ground else Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(box, 4, 4)
