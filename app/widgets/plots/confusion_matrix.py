"""The confusion matrix: rows are actual labels, columns predicted ones; a click on a cell or label selects it."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app import theme
from app.core.i18n import figure, group_digits, tr, trn
from app.widgets.accessibility import Role
from app.widgets.plots.plot_frame import HoverPlot

LARGEST, SMALLEST = 96, 16
ROOMY = 480
"""Pixels of width from which on cells may be half as large again."""
WRITTEN = 30
"""Cells at least this large show their number."""
LABEL = 130
"""The widest that a label is drawn."""
GAP = 2
PALEST, DEEPEST_LIGHT, DEEPEST_DARK = 0.14, 0.64, 0.48
"""How much of its colour a cell has."""
HEAD = -1
"""The place of a row's label before its cells, and of a column's above them."""


class ConfusionMatrix(HoverPlot):
    """A cell is coloured by its share of its row: correct ones green, wrong ones red; grey if rows have several labels,
    because a label that comes with another one is no mistake."""

    spoken_role = Role.Chart

    pair_chosen = Signal(str, str)
    """Actual and predicted label; one is empty where only the other is chosen, both when the choice is taken back."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._labels: Sequence[str] = ()
        self._counts: Sequence[Sequence[int]] = ()
        self._totals: tuple[Sequence[int], Sequence[int]] | None = None
        self._as_shares = False
        self._label_width: tuple[int, int] | None = None
        """The text size at which it was measured, and the width."""
        self._chosen: tuple[int, int] | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Confusion matrix: rows are actual labels, columns are predicted labels"))
        self.setSizePolicy(_as_high_as_wide())

    # What is shown

    def show_counts(
        self,
        labels: Sequence[str],
        counts: Sequence[Sequence[int]],
        totals: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> None:
        """`counts[actual][predicted]`; `totals` are the rows that have each label, and are predicted to have it, if rows
        have several."""
        self._labels, self._counts, self._totals = labels, counts, totals
        self._label_width = None
        self._chosen = self._hovered = None
        self._say()
        self.updateGeometry()
        self.update()

    def show_shares(self, on: bool) -> None:
        """Show shares of each row instead of counts."""
        self._as_shares = on
        self.update()

    def show_chosen(self, actual: str, predicted: str) -> None:
        """Mark a pair, a single label, or nothing; emits nothing."""
        names = [name for name in (actual, predicted) if name]
        known = bool(names) and all(name in self._labels for name in names)
        row, column = (self._labels.index(name) if known and name else HEAD for name in (actual, predicted))
        self._chosen = (row, column) if known else None
        self.update()

    def _rows_of(self, label: int) -> int:
        """The rows that have a label."""
        return sum(self._counts[label]) if self._totals is None else self._totals[0][label]

    def _rows_predicted(self, label: int) -> int:
        return sum(counts[label] for counts in self._counts) if self._totals is None else self._totals[1][label]

    def _say(self) -> None:
        wrong = [
            (
                count,
                tr(
                    "{labels} predicted as {labels_2} {count} times",
                    labels=self._labels[row],
                    labels_2=self._labels[column],
                    count=count,
                ),
            )
            for row, counts in enumerate(self._counts)
            for column, count in enumerate(counts)
            if count and row != column
        ]
        self.setAccessibleDescription("; ".join(words for _, words in sorted(wrong, reverse=True)[:10]))

    # Geometry

    def _side(self, width: int | None = None) -> float:
        """A cell's width and height at the current or another width."""
        across = self.width() if width is None else width
        room = across - self._left() - 4
        largest = LARGEST * 1.5 if across >= ROOMY else LARGEST
        return max(SMALLEST, min(largest, room / max(1, len(self._labels))))

    def _label_font(self) -> QFont:
        return theme.font(12 if len(self._labels) <= 20 else 11)

    def _widest(self) -> int:
        size = theme.text_size()
        if self._label_width is None or self._label_width[0] != size:  # asked for every cell
            metrics = QFontMetrics(self._label_font())
            widest = max((metrics.horizontalAdvance(label) for label in self._labels), default=0)
            self._label_width = size, min(LABEL, widest) + 8
        return self._label_width[1]

    def _left(self) -> int:
        return 20 + self._widest()

    def _top(self, width: int | None = None) -> int:
        """The space for the predicted labels, which are rotated if they are wider than a cell."""
        return 22 + (self._widest() if self._turned(width) else 20)

    def _turned(self, width: int | None = None) -> bool:
        return self._widest() > self._side(width)

    def hasHeightForWidth(self) -> bool:
        """Layouts query the height for a width: setting it after each resize would cause a loop with the scroll bar."""
        return True

    def heightForWidth(self, width: int) -> int:
        """The height of all cells at that width."""
        return round(self._top(width) + self._side(width) * len(self._labels)) + 4

    def sizeHint(self) -> QSize:
        return QSize(280, self.heightForWidth(280))

    def minimumSizeHint(self) -> QSize:
        """Wide enough for the smallest cells, and as high as they are."""
        width = self._left() + SMALLEST * len(self._labels) + 4
        return QSize(width, self.heightForWidth(width))

    def part_at(self, place: QPointF) -> tuple[int, int] | None:
        """The actual and predicted index of the cell at a point; HEAD instead of one of them for a label."""
        side = self._side()
        row, column = (
            max(HEAD, int((along - begin) // side))
            for along, begin in ((place.y(), self._top()), (place.x(), self._left()))
        )
        inside = row < len(self._labels) and column < len(self._labels) and (row, column) != (HEAD, HEAD)
        return (row, column) if inside and self.box_of(row, column).adjusted(0, 0, GAP, GAP).contains(place) else None

    def box_of(self, row: int, column: int) -> QRectF:
        """The rectangle of a cell or label."""
        side = self._side()
        if column == HEAD:
            return QRectF(18, self._top() + row * side, self._left() - 20, side - GAP)
        if row == HEAD:
            return QRectF(self._left() + column * side, 20, side - GAP, self._top() - 22)
        return QRectF(self._left() + column * side, self._top() + row * side, side - GAP, side - GAP)

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Labels, cells, and the selection outlined."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_axes(painter)
            rows, columns = self._in_view(event.rect())
            for row in rows:
                counts = self._counts[row]
                total = max(1, self._rows_of(row))
                for column in columns:
                    self._paint_cell(painter, row, column, counts[column], counts[column] / total)
            for cell, token in ((self._hovered, "border_strong"), (self._chosen, "focus")):
                if cell is not None:
                    painter.setPen(QPen(theme.color(token), 2))
                    painter.setBrush(Qt.BrushStyle.NoBrush)
                    painter.drawRoundedRect(self.box_of(*cell).adjusted(1, 1, -1, -1), 4, 4)

    def _in_view(self, area: QRect) -> tuple[range, range]:
        """The rows and columns whose cells overlap an area: 150 labels have 22,500 cells, few of them visible."""
        side, last = self._side(), len(self._counts)
        first_row, first_column = (area.top() - self._top()) // side, (area.left() - self._left()) // side
        end_row, end_column = (area.bottom() - self._top()) // side + 1, (area.right() - self._left()) // side + 1
        return tuple(
            range(max(0, int(first)), min(last, int(end)))
            for first, end in ((first_row, end_row), (first_column, end_column))
        )  # type: ignore[return-value]

    def _paint_axes(self, painter: QPainter) -> None:
        left, top, side = self._left(), self._top(), self._side()
        middle = Qt.AlignmentFlag.AlignVCenter  # the ring of the focus goes along the edges
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("faint"))
        painter.drawText(
            QRectF(left, 2, max(80.0, side * len(self._labels)), 18),
            middle | Qt.AlignmentFlag.AlignLeft,
            tr("Predicted"),
        )
        painter.save()
        painter.translate(0, top + side * len(self._labels))
        painter.rotate(-90)
        painter.drawText(
            QRectF(0, 2, max(60.0, side * len(self._labels)), 16), middle | Qt.AlignmentFlag.AlignRight, tr("Actual")
        )
        painter.restore()
        font = self._label_font()
        metrics, turned = QFontMetrics(font), self._turned()
        painter.setFont(font)
        for place, label in enumerate(self._labels):
            elided = metrics.elidedText(label, Qt.TextElideMode.ElideRight, LABEL)
            painter.setPen(self._head_color(place, HEAD))
            beside = QRectF(18, top + place * side, left - 26, side - GAP)
            painter.drawText(beside, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, elided)
            painter.setPen(self._head_color(HEAD, place))
            if not turned:
                above = QRectF(left + place * side, top - 20, side - GAP, 18)
                painter.drawText(above, Qt.AlignmentFlag.AlignCenter, elided)
                continue
            painter.save()
            painter.translate(left + place * side, top - 5)
            painter.rotate(-90)
            along = QRectF(0, 0, self._widest(), side - GAP)
            painter.drawText(along, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, elided)
            painter.restore()

    def _head_color(self, row: int, column: int) -> QColor:
        chosen = (row, column) == self._chosen
        return theme.color("accent_text" if chosen else "text" if (row, column) == self._hovered else "muted")

    def _paint_cell(self, painter: QPainter, row: int, column: int, count: int, share: float) -> None:
        box = self.box_of(row, column)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("card_alternate"))
        painter.drawRoundedRect(box, 4, 4)
        if count:
            other = "danger" if self._totals is None else "muted"
            painter.setBrush(tint("success" if row == column else other, share))
            painter.drawRoundedRect(box, 4, 4)
        if count and box.width() >= WRITTEN - GAP:
            painter.setFont(theme.font(12 if box.width() > 40 else 10, QFont.Weight.DemiBold))
            painter.setPen(theme.color("text"))
            words = f"{share:.0%}" if self._as_shares else _short(count)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)

    # Mouse and keys

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a pair or a label; clicking it again clears the selection."""
        cell = self.part_at(event.position())
        if cell is not None:
            self._choose(cell)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move, also to the labels, Enter selects, Escape clears the selection."""
        moves = {Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0), Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1)}
        key, last = Qt.Key(event.key()), len(self._labels) - 1
        if key in moves and last >= 0:
            self._move(*moves[key], last)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self._hovered:
            self._choose(self._hovered)
        elif key == Qt.Key.Key_Escape and self._chosen:
            self._choose(self._chosen)
        else:
            super().keyPressEvent(event)

    def _move(self, down: int, right: int, last: int) -> None:
        row, column = self._hovered or self._chosen or (0, 0)
        to = (min(last, max(HEAD, row + down)), min(last, max(HEAD, column + right)))
        if to == (HEAD, HEAD):
            return
        self._hovered = to
        QToolTip.showText(self.mapToGlobal(self.box_of(*to).center().toPoint()), self.words_of(to), self)
        self.update()

    def _choose(self, cell: tuple[int, int]) -> None:
        self._chosen = None if cell == self._chosen else cell
        self.update()
        row, column = self._chosen or (HEAD, HEAD)
        self.pair_chosen.emit(*("" if place == HEAD else self._labels[place] for place in (row, column)))

    def words_of(self, part: tuple[int, int]) -> str:
        """`61 rows: actual positive, predicted negative (12.2% of this actual label)`; for a label, its click."""
        row, column = part
        if column == HEAD:
            rows = trn("{count} row", "{count} rows", self._rows_of(row))
            return tr("{rows}: actual {label}. Click to see only these.", rows=rows, label=self._labels[row])
        if row == HEAD:
            rows = trn("{count} row", "{count} rows", self._rows_predicted(column))
            return tr("{rows}: predicted {label}. Click to see only these.", rows=rows, label=self._labels[column])
        count, total = self._counts[row][column], max(1, self._rows_of(row))
        rows = trn("{count} row", "{count} rows", count)
        pair = tr("actual {labels}, predicted {labels_2}", labels=self._labels[row], labels_2=self._labels[column])
        return tr("{rows}: {pair} ({count:.1%} of this actual label)", rows=rows, pair=pair, count=count / total)


def _as_high_as_wide() -> QSizePolicy:
    policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
    policy.setHeightForWidth(True)
    return policy


def tint(token: str, share: float) -> QColor:
    """A cell's background, light enough for its number to be readable."""
    color = theme.color(token)
    color.setAlphaF(PALEST + ((DEEPEST_DARK if theme.is_dark() else DEEPEST_LIGHT) - PALEST) * share)
    return color


def _short(count: int) -> str:
    if count < 10_000:
        return group_digits(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{figure(count / 1e6, '.1f')}M"
