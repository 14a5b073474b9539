"""Owns the view of coloured tokens that flow like text; only what is visible is drawn, so 100,000 tokens are quick.

The wrap is computed with numpy: widths are summed once, each line's end is one binary search.
"""

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QStaticText,
)  # fmt: skip
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from app import theme

COLORS = 6
LINE, BOX = 27, 21
PAD, GAP, SPACE = 4, 3, 6
MARGIN = 4
SPOKEN = 2000
"""Characters of the text that a screen reader is given at once."""


class TokenView(QAbstractScrollArea):
    """Tokens with hover, click, selection by dragging, and copying."""

    token_hovered = Signal(int)
    """Index, or −1."""
    token_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Tokens")
        self._font = theme.mono_font(13)
        self._metrics = QFontMetricsF(self._font)
        self._whitespace = True
        self._hovered = -1
        self._selection: tuple[int, int] | None = None
        self._drawn: dict[str, QStaticText] = {}
        self.set_tokens([])

    # What is shown

    def set_tokens(
        self, texts: Sequence[str], specials: Sequence[bool] | None = None, gaps: Sequence[str] | None = None
    ) -> None:
        """Texts of the tokens; `specials` are drawn grey; `gaps` is the untouched text before each token."""
        self._texts = list(texts)
        self._specials = list(specials) if specials is not None else [False] * len(self._texts)
        self._gaps = list(gaps) if gaps is not None else [""] * len(self._texts)
        self._hovered, self._selection = -1, None
        self.setAccessibleDescription(" | ".join(self._texts)[:SPOKEN])
        self._measure()

    def set_whitespace_visible(self, visible: bool) -> None:
        """Show spaces as dots and line breaks as arrows."""
        self._whitespace = visible
        self._measure()

    def count(self) -> int:
        """How many tokens there are."""
        return len(self._texts)

    def line_count(self) -> int:
        """How many lines they take at the present width."""
        return len(self._starts) - 1

    def apply_theme(self) -> None:
        """Colours are read at every paint."""
        self.viewport().update()

    def _measure(self) -> None:
        self._shown = [self._visible_text(text) for text in self._texts]
        self._drawn.clear()
        lengths = np.fromiter((len(text) for text in self._shown), np.int64, len(self._shown))
        widths = lengths * self._metrics.horizontalAdvance("0")
        for index, text in enumerate(self._shown):
            if not text.isascii():
                widths[index] = self._metrics.horizontalAdvance(text)
        spaces = np.fromiter((SPACE if gap.strip("\n\r") else 0 for gap in self._gaps), np.float64, len(self._gaps))
        self._lead = spaces
        self._widths = widths + 2 * PAD
        self._advance = np.concatenate([[0.0], np.cumsum(self._widths + GAP + spaces)])
        before = [i for i, gap in enumerate(self._gaps) for _ in range(gap.count("\n"))]
        after = [i + 1 for i, text in enumerate(self._texts) for _ in range(text.count("\n"))]
        self._breaks = np.array(sorted(before + after), np.int64)
        self._wrap()

    def _visible_text(self, text: str) -> str:
        if not self._whitespace:
            return text.replace("\n", " ").replace("\t", "    ") or " "
        return text.replace(" ", "·").replace("\n", "⏎").replace("\t", "⇥") or "∅"

    def _wrap(self) -> None:
        """Starts of the lines; between two equal starts lies an empty line."""
        width = max(60.0, self.viewport().width() - 2 * MARGIN + GAP)
        starts, begin, count = [0], 0, len(self._texts)
        for stop in [*self._breaks.tolist(), count]:
            while begin < stop:
                fits = int(np.searchsorted(self._advance, self._advance[begin] + width, side="right")) - 1
                begin = min(stop, max(begin + 1, fits))
                starts.append(begin)
        self._starts = self._with_empty_lines(starts)
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, self.line_count() * LINE + 2 * MARGIN - self.viewport().height()))
        bar.setPageStep(self.viewport().height())
        bar.setSingleStep(LINE)
        self.viewport().update()

    def _with_empty_lines(self, starts: list[int]) -> np.ndarray:
        places, counts = np.unique(self._breaks, return_counts=True)
        empty = np.repeat(places, counts - 1)
        return np.sort(np.concatenate([np.array(starts, np.int64), empty]), kind="stable")

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """The tokens of the visible lines."""
        top = self.verticalScrollBar().value()
        first = max(0, (top - MARGIN) // LINE)
        last = min(self.line_count(), (top + self.viewport().height()) // LINE + 1)
        colors = [theme.color(f"token_{number}") for number in range(COLORS)]
        special, ink, quiet = (theme.color(f"token_{n}") for n in ("special", "text", "special_text"))
        outline = QPen(theme.color("accent"), 1.5)
        low, high = self._selected_range()
        with QPainter(self.viewport()) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setFont(self._font)
            for line in range(first, last):
                for index in range(self._starts[line], self._starts[line + 1]):
                    box = self._box(index, line, top)
                    marked = index == self._hovered or low <= index < high
                    painter.setPen(outline if marked else Qt.PenStyle.NoPen)
                    painter.setBrush(special if self._specials[index] else colors[index % COLORS])
                    painter.drawRoundedRect(box, 4, 4)
                    painter.setPen(quiet if self._specials[index] else ink)
                    painter.drawStaticText(QPointF(box.left() + PAD, box.top() + 1.5), self._static(index))

    def _static(self, index: int) -> QStaticText:
        text = self._shown[index]
        made = self._drawn.get(text)
        if made is None:
            if len(self._drawn) > 20_000:
                self._drawn.clear()
            made = self._drawn[text] = QStaticText(text)
            made.setTextFormat(Qt.TextFormat.PlainText)
            made.prepare(font=self._font)
        return made

    def _box(self, index: int, line: int, top: int) -> QRectF:
        begin = self._starts[line]
        lead = self._lead[index] - self._lead[begin]
        left = MARGIN + self._advance[index] - self._advance[begin] + lead
        return QRectF(left, MARGIN + line * LINE - top, self._widths[index], BOX)

    def token_at(self, place: QPointF) -> int:
        """The token under a point of the viewport, or −1."""
        top = self.verticalScrollBar().value()
        line = int((place.y() + top - MARGIN) // LINE)
        if not 0 <= line < self.line_count():
            return -1
        hits = (i for i in range(self._starts[line], self._starts[line + 1]) if self._box(i, line, top).contains(place))
        return next(hits, -1)

    def box_of(self, index: int) -> QRectF:
        """Where a token lies in the viewport."""
        line = int(np.searchsorted(self._starts, index, side="right")) - 1
        return self._box(index, line, self.verticalScrollBar().value())

    # Mouse, keys, selection

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap again and keep the first visible token in place."""
        line = min(self.line_count() - 1, self.verticalScrollBar().value() // LINE)
        kept = int(self._starts[line]) if line > 0 else 0
        self._wrap()
        if kept:
            self.verticalScrollBar().setValue((int(np.searchsorted(self._starts, kept, side="right")) - 1) * LINE)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Hover, or extend the selection."""
        index = self.token_at(event.position())
        if event.buttons() & Qt.MouseButton.LeftButton and index >= 0 and self._selection:
            self._selection = (self._selection[0], index)
        if index != self._hovered:
            self._hovered = index
            self.token_hovered.emit(index)
        self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose a token; with shift extend to it."""
        index = self.token_at(event.position())
        if index < 0:
            self._selection = None
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier and self._selection:
            self._selection = (self._selection[0], index)
        else:
            self._choose(index)
        self.viewport().update()

    def viewportEvent(self, event: QEvent) -> bool:
        """Leaving ends the hover."""
        if event.type() == QEvent.Type.Leave and self._hovered >= 0:
            self._hovered = -1
            self.token_hovered.emit(-1)
            self.viewport().update()
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move, Ctrl+A selects all, Ctrl+C copies."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.selected_text())
        elif event.matches(QKeySequence.StandardKey.SelectAll) and self._texts:
            self._selection = (0, len(self._texts) - 1)
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right) and self._texts:
            step = 1 if event.key() == Qt.Key.Key_Right else -1
            at = self._selection[1] if self._selection else -1
            self._choose(min(len(self._texts) - 1, max(0, at + step)))
        else:
            super().keyPressEvent(event)
        self.viewport().update()

    def _choose(self, index: int) -> None:
        self._selection = (index, index)
        line = int(np.searchsorted(self._starts, index, side="right")) - 1
        bar = self.verticalScrollBar()
        bar.setValue(min(line * LINE, max(bar.value(), (line + 1) * LINE + MARGIN - self.viewport().height())))
        self.token_selected.emit(index)

    def _selected_range(self) -> tuple[int, int]:
        if self._selection is None:
            return 0, 0
        return min(self._selection), max(self._selection) + 1

    def selected_text(self) -> str:
        """The selected tokens' text with what lies between them; everything where nothing is selected."""
        low, high = self._selected_range() if self._selection else (0, len(self._texts))
        parts = (("" if i == low else self._gaps[i]) + self._texts[i] for i in range(low, high))
        return "".join(parts)
