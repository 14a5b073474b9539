"""Owns the menu of a plot: the ways to take it along, and what the mouse does in it."""

from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from app.core.backend_sentences import told
from app.core.i18n import tr
from app.widgets.icon_label import IconToolButton
from app.widgets.plots import curve_file
from app.widgets.plots.plot_picture import PlotPicture
from backend.contract.errors import InputError
from backend.contract.output_file import whole_file

HINTS = (
    tr("Drag: zoom into a box"),
    tr("Shift + drag: move"),
    tr("Ctrl + wheel: zoom"),
    tr("Double-click: show everything"),
)


class PlotMenu(QObject):
    """`button` opens it; `picture` and `curves` give what is saved, `name` the file's usual name."""

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
        self.button = IconToolButton("download", tr("Save this plot"))
        self.button.setPopupMode(self.button.ToolButtonPopupMode.InstantPopup)
        self.menu = QMenu(self.button)
        for title, suffix in (
            (tr("Save as PNG…"), "png"),
            (tr("Save as SVG…"), "svg"),
            (tr("Save values as CSV…"), "csv"),
        ):
            self.menu.addAction(title, lambda suffix=suffix: self._choose(suffix))
        self._copy = self.menu.addAction(tr("Copy picture"), self.copy)
        self.menu.addSeparator()
        self.menu.addAction(tr("Show everything"), show_all)
        for hint in HINTS:
            self.menu.addAction(hint).setEnabled(False)
        self.button.setMenu(self.menu)

    def offer(self, title: str, do: Callable[[], object]) -> None:
        """One more way to take it along, of whoever shows the plot."""
        action = QAction(title, self.menu)
        action.triggered.connect(do)
        self.menu.insertAction(self._copy, action)

    def _choose(self, suffix: str) -> None:
        suggested = str(Path.home() / f"{self.name}.{suffix}")
        path, _ = QFileDialog.getSaveFileName(
            self._owner, tr("Save this plot"), suggested, f"{suffix.upper()} (*.{suffix})"
        )
        if path:
            self.save(Path(path) if Path(path).suffix else Path(f"{path}.{suffix}"))

    def save(self, path: Path) -> None:
        """Write the plot in the form that the file's ending asks for; values are written by and by."""
        if path.suffix.lower() == ".csv":
            self._writing.append((path, curve_file.written(path, *self._curves())))
            self._turn.start()
            return
        try:
            with whole_file(path) as beside:
                if path.suffix.lower() == ".svg":
                    self._picture().save_svg(beside)
                else:
                    self._picture().save_png(beside)
        except InputError as error:
            self.message.emit("error", told(str(error)))
        else:
            self._tell_success(path)

    def _write_portion(self) -> None:
        """In the order in which they were asked for."""
        path, portions = self._writing[0]
        try:
            if next(portions, self) is not self:
                return
        except InputError as error:
            self.message.emit("error", told(str(error)))
        else:
            self._tell_success(path)
        self._writing.pop(0)
        if not self._writing:
            self._turn.stop()

    def _tell_success(self, path: Path) -> None:
        self.message.emit("success", tr("Saved {path}.", path=path))

    def copy(self) -> None:
        """Put the picture on the clipboard."""
        QGuiApplication.clipboard().setImage(self._picture().image())
        self.message.emit("success", tr("The picture is on the clipboard."))
