"""Shows tokens with their role in training: coloured by kind, a label below, borders between rows.

It is as high as its lines; only visible ones are drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.core.i18n import tr
from app.core.text.invisible_characters import SPACES
from app.widgets.accessibility import Role

BOX, GAP, PAD, MARGIN = 22, 3, 5, 2
LABEL, CAPTION, BETWEEN = 14, 15, 5
SPOKEN = 2000

GROUNDS = {
    "token": "token_0", "second": "token_4", "special": "token_special", "target": "token_2", "label": "token_1",
    "hidden": "token_3", "answer": "token_1", "unknown": "danger_soft",
}  # fmt: skip
"""Kind → colour behind a token; the others are only outlined."""
_INKS = {"special": "token_special_text", "ignored": "faint", "padding": "disabled", "unknown": "danger"}


@dataclass(frozen=True)
class LabelledToken:
    """One token: its text, its kind, and the label below it."""

    text: str
    kind: str
    label: str = ""


class LabelledTokens(QWidget):
    """Tokens with hover, selection by click or arrows, and copying."""

    spoken_role = Role.List

    token_hovered = Signal(int)
    """Index, or −1 where nothing is hovered or chosen."""

    def __init__(self, name: str = tr("Tokens"), parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.follow(self)
        self._make_fonts()
        self._tokens: list[LabelledToken] = []
        self._captions: dict[int, str] = {}
        self._hovered = self._chosen = -1
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(name)
        self.show_tokens([])

    def _make_fonts(self) -> None:
        self._font, self._small = theme.mono_font(13), theme.font(10, QFont.Weight.DemiBold)
        self._font.setFeature(QFont.Tag("calt"), 0)  # `<|` is no arrow here
        self._metrics, self._small_metrics = QFontMetricsF(self._font), QFontMetricsF(self._small)
        self._size = theme.text_size()

    def show_tokens(self, tokens: Sequence[LabelledToken], borders: Sequence[tuple[int, str]] = ()) -> None:
        """Show these; each of `borders` (index, text) starts a new section."""
        self._tokens, self._captions = list(tokens), dict(borders)
        self._hovered = self._chosen = -1
        self._texts = [token.text.translate(SPACES) for token in self._tokens]
        self._has_labels = any(token.label for token in self._tokens)
        widths = [
            max(
                self._metrics.horizontalAdvance(text),
                self._small_metrics.horizontalAdvance(token.label.translate(SPACES)),
            )
            for text, token in zip(self._texts, self._tokens, strict=True)
        ]
        self._widths = np.array(widths, np.float64) + 2 * PAD
        self._advance = np.concatenate([[0.0], np.cumsum(self._widths + GAP)])
        self.setAccessibleDescription(" | ".join(token.text for token in self._tokens)[:SPOKEN])
        self._wrap()

    def tokens(self) -> list[LabelledToken]:
        """The tokens shown."""
        return self._tokens

    def apply_theme(self) -> None:
        """Colours are read at every paint; another text size needs a new layout."""
        if self._size != theme.text_size():
            self._make_fonts()
            self.show_tokens(self._tokens, list(self._captions.items()))
        self.update()

    # Lines

    @property
    def _line_height(self) -> int:
        return BOX + BETWEEN + (LABEL if self._has_labels else 0) + (CAPTION if self._captions else 0)

    def _wrap(self) -> None:
        width = max(80.0, self.width() - 2 * MARGIN + GAP)
        starts, begin = [0], 0
        while begin < len(self._tokens):
            fits = int(np.searchsorted(self._advance, self._advance[begin] + width, side="right")) - 1
            begin = max(begin + 1, fits)
            starts.append(min(begin, len(self._tokens)))
        self._starts = np.array(starts, np.int64)
        self.setFixedHeight(max(1, len(starts) - 1) * self._line_height + 2 * MARGIN)
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap again if the width has changed."""
        if event.size().width() != event.oldSize().width():
            self._wrap()

    def sizeHint(self) -> QSize:
        """As high as the lines."""
        return QSize(320, self.height())

    def box_of(self, index: int) -> QRectF:
        """The rectangle of a token."""
        line = int(np.searchsorted(self._starts, index, side="right")) - 1
        begin = int(self._starts[line])
        left = MARGIN + self._advance[index] - self._advance[begin]
        top = MARGIN + line * self._line_height + (CAPTION if self._captions else 0)
        return QRectF(left, top, self._widths[index], BOX)

    def token_at(self, place: QPointF) -> int:
        """The token under a point, or −1."""
        line = int((place.y() - MARGIN) // self._line_height)
        if not 0 <= line < len(self._starts) - 1:
            return -1
        hits = (index for index in range(*self._starts[line : line + 2]) if self._reach(index).contains(place))
        return next(hits, -1)

    def _reach(self, index: int) -> QRectF:
        box = self.box_of(index)
        return box.adjusted(0, 0, 0, LABEL) if self._has_labels else box

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the tokens of the visible lines."""
        first = max(0, (event.rect().top() - MARGIN) // self._line_height)
        last = min(len(self._starts) - 1, (event.rect().bottom() - MARGIN) // self._line_height + 1)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for line in range(first, last):
                for index in range(int(self._starts[line]), int(self._starts[line + 1])):
                    self._paint_token(painter, index)
            self._paint_captions(painter, first, last)

    def _paint_token(self, painter: QPainter, index: int) -> None:
        token, box = self._tokens[index], self.box_of(index)
        ground = GROUNDS.get(token.kind)
        outline = QPen(Qt.PenStyle.NoPen) if ground else QPen(theme.color("border"), 1, _LINES.get(token.kind, _SOLID))
        if index in (self._hovered, self._chosen):
            outline = QPen(theme.color("focus"), 1.6)
        painter.setPen(outline)
        painter.setBrush(theme.color(ground) if ground else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        painter.setFont(self._font)
        painter.setPen(theme.color(_INKS.get(token.kind, "token_text")))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self._texts[index])
        if token.label:
            painter.setFont(self._small)
            painter.setPen(theme.color("muted" if ground else "faint"))
            below = QRectF(box.left() - 2, box.bottom(), box.width() + 4, LABEL)
            painter.drawText(below, Qt.AlignmentFlag.AlignCenter, token.label.translate(SPACES))

    def _paint_captions(self, painter: QPainter, first: int, last: int) -> None:
        if not self._captions or first >= last:
            return
        places = sorted(self._captions)
        painter.setFont(self._small)
        for number, place in enumerate(places):
            if not self._starts[first] <= place < self._starts[last]:
                continue
            box = self.box_of(place)
            after = self.box_of(places[number + 1]) if number + 1 < len(places) else None
            end = after.left() - 8 if after is not None and after.top() == box.top() else float(self.width())
            painter.setPen(QPen(theme.color("accent"), 2))
            painter.drawLine(
                QPointF(box.left() - 1.5, box.top() - CAPTION + 3), QPointF(box.left() - 1.5, box.bottom())
            )
            painter.setPen(theme.color("accent_text"))
            room = max(0.0, end - box.left() - 4)
            words = self._small_metrics.elidedText(self._captions[place], Qt.TextElideMode.ElideMiddle, room)
            painter.drawText(QRectF(box.left() + 3, box.top() - CAPTION, room, CAPTION), _LEFT, words)

    # Mouse and keys

    def _emit_hovered(self) -> None:
        self.token_hovered.emit(self._hovered if self._hovered >= 0 else self._chosen)
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Hover."""
        index = self.token_at(event.position())
        if index != self._hovered:
            self._hovered = index
            self._emit_hovered()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a token."""
        self._chosen = self.token_at(event.position())
        self._emit_hovered()

    def event(self, event: QEvent) -> bool:
        """Leaving ends the hover."""
        if event.type() == QEvent.Type.Leave and self._hovered >= 0:
            self._hovered = -1
            self._emit_hovered()
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move from token to token; Ctrl+C copies all texts."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText("".join(token.text for token in self._tokens))
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right) and self._tokens:
            step = 1 if event.key() == Qt.Key.Key_Right else -1
            self._chosen = min(len(self._tokens) - 1, max(0, self._chosen + step))
            self._emit_hovered()
        else:
            super().keyPressEvent(event)


_SOLID = Qt.PenStyle.SolidLine
_LINES = {"padding": Qt.PenStyle.DashLine}
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
