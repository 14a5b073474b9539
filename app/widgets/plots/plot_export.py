"""Exports a plot from its menu: as an image (PNG, SVG), or its curves' points as a CSV file."""

import csv
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from pathlib import Path

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QObject, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QFontMetrics, QGuiApplication, QImage, QPainter, QTextDocument
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from app import theme
from app.core.backend_messages import translate_message
from app.core.i18n import tr
from app.widgets.icon_label import IconToolButton
from app.widgets.plots.min_max_pyramid import Floats
from backend.contract.errors import InputError
from backend.contract.output_file import whole_file

HEAD = 34
"""Room for the title and the legend above the curves."""
MARGIN = 12
SHARP = 2
"""Pixels of a PNG per pixel on the screen."""


class PlotPicture:
    """The plot as currently shown, with title and legend."""

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
        """The image size, in screen pixels."""
        return self._widget.size() + QSize(2 * MARGIN, self._head + MARGIN)

    def image(self) -> QImage:
        """The plot as pixels."""
        made = QImage(self.size() * SHARP, QImage.Format.Format_ARGB32_Premultiplied)
        made.setDevicePixelRatio(SHARP)
        with QPainter(made) as painter:
            self._paint(painter)
        return made

    def save_png(self, path: Path) -> None:
        """Raises OSError if it cannot be written."""
        if not self.image().save(str(path), "PNG"):  # type: ignore[call-overload]
            raise OSError(tr("it can't be written"))

    def save_svg(self, path: Path) -> None:
        """Raises OSError if it cannot be written."""
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


HINTS = (
    tr("Drag: zoom into a box"),
    tr("Shift + drag: move"),
    tr("Ctrl + scroll: zoom"),
    tr("Double-click: reset zoom"),
)


class PlotMenu(QObject):
    """`button` opens it; `picture` and `curves` provide what is saved, `name` the default file name."""

    message = Signal(str, str)

    def __init__(
        self,
        parent: QWidget,
        picture: Callable[[], PlotPicture],
        curves: Callable[[], tuple[str, dict]],
        show_all: Callable[[], None],
    ) -> None:
        super().__init__(parent)
        self._owner, self._picture, self._curves = parent, picture, curves
        self.name = "plot"
        self._writing: list[tuple[Path, Iterator[None]]] = []
        self._turn = QTimer(self, interval=0)
        self._turn.timeout.connect(self._write_portion)
        self.button = IconToolButton("download", tr("Save plot"))
        self.button.setPopupMode(self.button.ToolButtonPopupMode.InstantPopup)
        self.menu = QMenu(self.button)
        for title, suffix in (
            (tr("Save as PNG…"), "png"),
            (tr("Save as SVG…"), "svg"),
            (tr("Save values as CSV…"), "csv"),
        ):
            self.menu.addAction(title, lambda suffix=suffix: self._choose(suffix))
        self._copy = self.menu.addAction(tr("Copy image"), self.copy)
        self.menu.addSeparator()
        self.menu.addAction(tr("Reset zoom"), show_all)
        for hint in HINTS:
            self.menu.addAction(hint).setEnabled(False)
        self.button.setMenu(self.menu)

    def offer(self, title: str, do: Callable[[], object]) -> None:
        """Add another export option for the surrounding view."""
        action = QAction(title, self.menu)
        action.triggered.connect(do)
        self.menu.insertAction(self._copy, action)

    def _choose(self, suffix: str) -> None:
        suggested = str(Path.home() / f"{self.name}.{suffix}")
        path, _ = QFileDialog.getSaveFileName(self._owner, tr("Save plot"), suggested, f"{suffix.upper()} (*.{suffix})")
        if path:
            self.save(Path(path) if Path(path).suffix else Path(f"{path}.{suffix}"))

    def save(self, path: Path) -> None:
        """Write the plot in the format of the file's extension; values are written in portions."""
        if path.suffix.lower() == ".csv":
            self._writing.append((path, write_curves(path, *self._curves())))
            self._turn.start()
            return
        try:
            with whole_file(path) as beside:
                if path.suffix.lower() == ".svg":
                    self._picture().save_svg(beside)
                else:
                    self._picture().save_png(beside)
        except InputError as error:
            self.message.emit("error", translate_message(str(error)))
        else:
            self._report_saved(path)

    def _write_portion(self) -> None:
        """Write portions in the order of the requests."""
        path, portions = self._writing[0]
        try:
            if next(portions, self) is not self:
                return
        except InputError as error:
            self.message.emit("error", translate_message(str(error)))
        else:
            self._report_saved(path)
        self._writing.pop(0)
        if not self._writing:
            self._turn.stop()

    def _report_saved(self, path: Path) -> None:
        self.message.emit("success", tr("Saved {path}.", path=path))

    def copy(self) -> None:
        """Copy the image to the clipboard."""
        QGuiApplication.clipboard().setImage(self._picture().image())
        self.message.emit("success", tr("Copied the image to the clipboard."))


# Values as a CSV file, written a portion at a time, so that the window stays quick

CELLS = 8_000
"""Written at once: some milliseconds."""


def write_curves(path: Path, x_label: str, curves: Mapping[str, tuple[Floats, Floats]]) -> Iterator[None]:
    """Write every point of every curve, one line per x, empty if a curve has none; each turn writes a portion.

    The file gets its name at the end; if writing stops early, nothing is left. Raises InputError.
    """
    # A run in progress writes into the same arrays.
    curves = {name: (np.array(xs), np.array(ys)) for name, (xs, ys) in curves.items()}
    with whole_file(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([x_label, *curves])
        places = np.zeros(0)
        for xs, _ in curves.values():
            places = _with(places, xs)
            yield
        columns = []
        for xs, ys in curves.values():
            columns.append(_column(places, xs, ys))
            yield
        lines = max(1, CELLS // (1 + len(columns)))
        for begin in range(0, len(places), lines):
            part = [places[begin : begin + lines], *(column[begin : begin + lines] for column in columns)]
            writer.writerows(zip(*(map(_cell, cells.tolist()) for cells in part), strict=True))
            yield


def _with(places: Floats, xs: Floats) -> Floats:
    """Merge another curve's positions; steps are almost always ascending, so little is sorted."""
    if not len(places):
        return xs if bool((np.diff(xs) > 0).all()) else np.unique(xs)
    at = np.searchsorted(places, xs)
    new = np.unique(xs[places[np.minimum(at, len(places) - 1)] != xs])
    return np.insert(places, np.searchsorted(places, new), new) if len(new) else places


def _column(places: Floats, xs: Floats, ys: Floats) -> Floats:
    """One value per position, NaN if the curve has none."""
    values = np.full(len(places), np.nan)
    values[np.searchsorted(places, xs)] = ys
    return values


def _cell(value: float) -> str:
    if not isfinite(value):
        return ""
    return str(int(value)) if value == round(value) and abs(value) < 1e15 else repr(value)
