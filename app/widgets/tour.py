"""The tour: a few cards beside the controls they describe, which can be closed at any time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app import theme
from app.core.i18n import tr
from app.widgets.card import label
from app.widgets.curtain import SHADE, ModalOverlay

TOUR = (
    (
        tr("See it in action"),
        tr("The demo fills this page with a small model and data. Start it and watch it train in under a minute."),
    ),
    (
        tr("Then use your own data"),
        tr("Choose a task, your data and a model above. You see the cost here before you start."),
    ),
    (
        tr("Your runs are kept"),
        tr(
            "Every run is listed here and keeps going when you close the window. Compare runs, "
            "resume them, export their predictions."
        ),
    ),
    (
        tr("Find anything"),
        tr("Press Ctrl+K to find any action, page, setting or run, including this tour. Press F1 for all shortcuts."),
    ),
)
"""Title and text of each card; the widgets that they point at are chosen in the main window's `show_tour`."""
WIDTH = 340
AROUND = 6
"""Pixels between a control and the edge of its light."""
BESIDE = 14


@dataclass(frozen=True)
class TourStep:
    """One card; `target` finds the widget it points at, or is None."""

    title: str
    text: str
    target: Callable[[], QWidget | None]


class Tour(ModalOverlay):
    """`begin` shows the first card."""

    ended = Signal()

    def __init__(self, over: QWidget, stops: Sequence[TourStep]) -> None:
        super().__init__(over)
        self._stops = stops
        self.place = 0
        self.setAccessibleName(tr("Tour"))
        self.title, self.text = label("", "section", wrap=True), label("", wrap=True)
        self.count = label("", "faint")
        self.skip, self.next = QPushButton(tr("Skip")), QPushButton(tr("Next"))
        theme.role(self.skip, "quiet")
        theme.role(self.next, "primary")
        self.skip.clicked.connect(self.close_curtain)
        self.next.clicked.connect(self._on_next)
        foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addWidget(self.count, 1)
        foot.addWidget(self.skip)
        foot.addWidget(self.next)
        column = QVBoxLayout(self.card)
        column.setContentsMargins(18, 16, 14, 12)
        column.setSpacing(8)
        for part in (self.title, self.text):
            column.addWidget(part)
        column.addSpacing(4)
        column.addLayout(foot)
        self.closed.connect(self.ended)

    def begin(self) -> None:
        """Start with the first card."""
        self.place = 0
        self._show_stop()

    def _on_next(self) -> None:
        self.place += 1
        if self.place < len(self._stops):
            self._show_stop()
        else:
            self.close_curtain()

    def _show_stop(self) -> None:
        stop = self._stops[self.place]
        is_last = self.place + 1 == len(self._stops)
        self.title.setText(stop.title)
        self.text.setText(stop.text)
        self.count.setText(tr("{place} of {number}", place=self.place + 1, number=len(self._stops)))
        self.next.setText(tr("Done") if is_last else tr("Next"))
        self.skip.setVisible(not is_last)
        self.card.setAccessibleName(f"{stop.title}. {stop.text}")
        self.open(self.next)
        self.next.setAccessibleDescription(f"{stop.title}. {stop.text}")
        self.update()

    def _light(self) -> QRect | None:
        """The control's rectangle in this widget's coordinates; None if it is not visible."""
        target = self._stops[self.place].target()
        if target is None or not target.isVisible():
            return None
        area = QRect(target.mapTo(self._over, QPoint(0, 0)), target.size())
        area.adjust(-AROUND, -AROUND, AROUND, AROUND)
        return area if self.rect().intersects(area) else None

    def place_card(self) -> None:
        """Beside its control if there is room: below, above, or to the right; else in the centre."""
        layout = self.card.layout()
        assert layout is not None
        height = layout.totalHeightForWidth(WIDTH)
        light, room = self._light(), self.rect().adjusted(12, 12, -12, -12)
        if light is None:
            self.card.setGeometry((self.width() - WIDTH) // 2, (self.height() - height) // 2, WIDTH, height)
            return
        middle = light.center().x() - WIDTH // 2
        places = (
            QRect(light.right() + BESIDE, light.top(), WIDTH, height),
            QRect(middle, light.bottom() + BESIDE, WIDTH, height),
            QRect(middle, light.top() - BESIDE - height, WIDTH, height),
            QRect(light.left() - BESIDE - WIDTH, light.top(), WIDTH, height),
        )
        for place in places:
            place.moveLeft(max(room.left(), min(place.left(), room.right() - WIDTH)))
            place.moveTop(max(room.top(), min(place.top(), room.bottom() - height)))
        free = next((place for place in places if not place.intersects(light)), places[1])
        self.card.setGeometry(free)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the shade, with the control highlighted."""
        shade = QPainterPath()
        shade.addRect(QRectF(self.rect()))
        light = self._light()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if light is not None:
                hole = QPainterPath()
                hole.addRoundedRect(QRectF(light), 10, 10)
                shade = shade.subtracted(hole)
                painter.setPen(QPen(theme.color("accent"), 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawPath(hole)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.fillPath(shade, QColor(8, 10, 14, SHADE))
