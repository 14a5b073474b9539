"""Owns a plot as a picture for other programs: PNG or SVG."""

from pathlib import Path

import pyqtgraph as pg
from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QImage, QPainter, QTextDocument
from PySide6.QtSvg import QSvgGenerator

from app import theme
from app.core.i18n import tr

HEAD = 34
"""Room for the title and the legend above the curves."""
MARGIN = 12
SHARP = 2
"""Pixels of a PNG per pixel on the screen."""


class PlotPicture:
    """The plot as it is shown now, with title and legend."""

    def __init__(self, widget: pg.PlotWidget, title: str, legend: str) -> None:
        self._widget, self._title = widget, title
        self._legend = QTextDocument()
        self._legend.setDefaultFont(theme.font(12))
        self._legend.setDocumentMargin(0)
        self._legend.setHtml(legend)
        room = widget.width() - QFontMetrics(theme.font(13)).horizontalAdvance(title) - MARGIN
        self._is_long = self._legend.idealWidth() > room
        if self._is_long:  # then it has lines of its own
            self._legend.setTextWidth(widget.width())
        self._head = HEAD + (round(self._legend.size().height()) + MARGIN // 2 if self._is_long else 0)

    def size(self) -> QSize:
        """Of the picture, in pixels of the screen."""
        return self._widget.size() + QSize(2 * MARGIN, self._head + MARGIN)

    def image(self) -> QImage:
        """As pixels."""
        made = QImage(self.size() * SHARP, QImage.Format.Format_ARGB32_Premultiplied)
        made.setDevicePixelRatio(SHARP)
        with QPainter(made) as painter:
            self._paint(painter)
        return made

    def save_png(self, path: Path) -> None:
        """Raises OSError where it cannot be written."""
        if not self.image().save(str(path), "PNG"):  # type: ignore[call-overload]
            raise OSError(tr("it cannot be written"))

    def save_svg(self, path: Path) -> None:
        """Raises OSError where it cannot be written."""
        with path.open("wb"):  # Qt would only print why it cannot
            pass
        made = QSvgGenerator()
        made.setFileName(str(path))
        made.setSize(self.size())
        made.setViewBox(QRect(0, 0, self.size().width(), self.size().height()))
        made.setTitle(self._title)
        # The axes are recorded drawings, which Qt scales where resolutions differ.
        made.setResolution(self._widget.logicalDpiX())
        with QPainter(made) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(0, 0, self.size().width(), self.size().height())
        painter.fillRect(whole, theme.color("card"))
        painter.setFont(theme.font(13))
        painter.setPen(theme.color("text"))
        painter.drawText(QRectF(MARGIN, 0, whole.width(), HEAD), Qt.AlignmentFlag.AlignVCenter, self._title)
        words = self._legend
        painter.save()
        if self._is_long:
            painter.translate(MARGIN, HEAD)
        else:
            painter.translate(whole.width() - MARGIN - words.idealWidth(), (HEAD - words.size().height()) / 2)
        words.drawContents(painter)
        painter.restore()
        target = QRectF(MARGIN, self._head, self._widget.width(), self._widget.height())
        self._widget.render(painter, target, self._widget.viewport().rect())
