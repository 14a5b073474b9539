"""Paints the cells of a row table from cached text layouts, because Qt's style takes twice as long."""

from collections import OrderedDict

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QStaticText
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app import theme
from app.widgets.text.directed_text import direction_of

MARGIN = 13
"""As the header's texts have it."""
NARROW = 3
"""Pixels of the narrowest letters."""
MARK, MARK_GAP = 14, 6
MARKS = (("success", "check"), ("danger", "close"))
"""Colours that say right and wrong → the sign beside the text that says it to every eye."""
_TOKENS = {name: token for token, name in MARKS}
KEPT = 4000
"""Texts that are laid out."""


class RowDelegate(QStyledItemDelegate):
    """One line, elided at its end; a selected cell keeps its own colour, the current one has a frame."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._texts: OrderedDict[tuple[str, int], tuple[QStaticText, float]] = OrderedDict()
        self._font = QFont()
        self._metrics = QFontMetrics(self._font)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Paint background, text, and the frame of the current cell."""
        box, state = option.rect, option.state  # type: ignore[attr-defined]
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, theme.color("selection"))
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(box, theme.color("hover"))
        text = index.data(Qt.ItemDataRole.DisplayRole)
        own = index.data(Qt.ItemDataRole.ForegroundRole)
        if text or own:
            font = QFont(option.font)  # type: ignore[attr-defined]  # a copy: the option is gone after this paint
            if font != self._font:
                self._font, self._metrics = font, QFontMetrics(font)
                self._texts.clear()
            color = own or theme.color("text")
            mark = next((name for token, name in MARKS if color == theme.color(token)), "")
            left, right = box.x() + MARGIN, box.right() - MARGIN
            if mark:
                is_right = direction_of(text or "") == Qt.LayoutDirection.RightToLeft
                picture = theme.pixmap(mark, _TOKENS[mark], MARK)
                painter.drawPixmap(right - MARK if is_right else left, box.y() + (box.height() - MARK) // 2, picture)
                left, right = (left, right - MARK - MARK_GAP) if is_right else (left + MARK + MARK_GAP, right)
            painter.setPen(color)
            painter.setFont(font)
            top = box.y() + (box.height() - self._metrics.height()) / 2
            laid_out, indent = self._lay_out(text or "", right - left)
            painter.drawStaticText(QPointF(left + indent, top), laid_out)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(theme.color("focus"))
            painter.drawRect(box.adjusted(0, 0, -1, -1))

    def _lay_out(self, text: str, width: int) -> tuple[QStaticText, float]:
        """The text layout on one line, and its start position: right-to-left text ends on the right."""
        key = (text, width)
        made = self._texts.get(key)
        if made is None:
            most = max(1, width // NARROW)
            cut = text if len(text) <= most else f"{text[:most]}…"  # the rest of a long text need not be measured
            elided = self._metrics.elidedText(cut, Qt.TextElideMode.ElideRight, width)
            static = QStaticText(elided)
            static.setTextFormat(Qt.TextFormat.PlainText)
            static.setPerformanceHint(QStaticText.PerformanceHint.ModerateCaching)
            is_right = direction_of(text) == Qt.LayoutDirection.RightToLeft
            indent = max(0, width - self._metrics.horizontalAdvance(elided)) if is_right else 0
            made = self._texts[key] = static, indent
            if len(self._texts) > KEPT:
                self._texts.popitem(last=False)
        else:
            self._texts.move_to_end(key)
        return made
