"""Owns a plot as a picture for other programs: PNG or SVG."""

from pathlib import Path

import pyqtgraph as pg
from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QImage, QPainter, QTextDocument
from PySide6.QtSvg import QSvgGenerator

from app import theme

HEAD = 34
"""Room for the title and the legend above the curves."""
MARGIN = 12
SHARP = 2
"""Pixels of a PNG per pixel on the screen."""


class PlotPicture:
    """The plot as it is shown now, with title and legend."""

    def __init__(self, widget: pg.PlotWidget, title: str, legend: str) -> None:
        self._widget, self._title, self._legend = widget, title, legend

    def size(self) -> QSize:
        """Of the picture, in pixels of the screen."""
        return self._widget.size() + QSize(2 * MARGIN, HEAD + MARGIN)

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
            raise OSError("it cannot be written")

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
        words = QTextDocument()
        words.setDefaultFont(theme.font(12))
        words.setHtml(self._legend)
        words.setDocumentMargin(0)
        painter.save()
        painter.translate(whole.width() - MARGIN - words.idealWidth(), (HEAD - words.size().height()) / 2)
        words.drawContents(painter)
        painter.restore()
        target = QRectF(MARGIN, HEAD, self._widget.width(), self._widget.height())
        self._widget.render(painter, target, self._widget.viewport().rect())
