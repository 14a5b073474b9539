"""A field for a file or folder: typed, browsed, or dropped on it."""

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QFocusEvent, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QStyle, QStyleOptionFrame, QWidget

from app.core.draft.data_source import paths_in_text
from app.core.draft.draft_file import is_spec
from app.core.formatting import name_of_path
from app.core.i18n import inside, tr, trn
from app.widgets.icon_label import IconToolButton

REST_MS = 400
"""Whoever types on has not named the file yet."""
Paths = str | list[str] | None


class PathField(QWidget):
    """A line with two buttons. Several paths are separated by a semicolon."""

    changed = Signal(object)
    """The path, a list of paths, or None."""

    def __init__(self, name: str, hint: str, folders: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._value: Paths = None
        self._name = name
        self.line = PathLine(placeholderText=hint)
        self.line.setAccessibleName(name)
        self.line.editingFinished.connect(self._on_edited)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self._on_rest)
        self.line.textEdited.connect(lambda: self._rest.start())
        self.file_button = IconToolButton("table", tr("Choose a file: {name}", name=inside(name)))
        self.folder_button = IconToolButton("folder", tr("Choose a folder: {name}", name=inside(name)))
        self.file_button.clicked.connect(self._on_choose_file)
        self.folder_button.clicked.connect(self._on_choose_folder)
        self.folder_button.setVisible(folders)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.line, 1)
        row.addWidget(self.file_button)
        row.addWidget(self.folder_button)
        self.setAcceptDrops(True)
        self.setFocusProxy(self.line)

    def set_browsing(self, browsing: bool, hint: str) -> None:
        """Set whether it holds files, which can be browsed and dropped, or names; `hint` is the placeholder."""
        for widget in (self.file_button, self.folder_button):
            widget.setVisible(browsing)
        self.setAcceptDrops(browsing)
        self.line.setPlaceholderText(hint)

    @property
    def value(self) -> Paths:
        """The value of the text."""
        return self._value

    def set_value(self, value: Paths) -> None:
        """Show another path; emits nothing."""
        self._value = value or None
        self.line.summary = _several_words(value) if isinstance(value, list) else ""
        text = "; ".join(value) if isinstance(value, list) else str(value or "")
        if self.line.text() != text:
            self.line.setText(text)
            self.line.setCursorPosition(len(text))
        self.line.setToolTip(text)

    def choose(self, value: Paths) -> None:
        """Set it as if the user had chosen it."""
        if value != self._value:
            self.set_value(value)
            self.changed.emit(self._value)

    def _on_edited(self) -> None:
        self._rest.stop()
        parts = self._parts()
        self.choose(parts if len(parts) > 1 else parts[0] if parts else None)

    def _on_rest(self) -> None:
        """Accept a complete file name without Enter; a folder may be the start of a longer path."""
        parts = self._parts()
        if parts and self.acceptDrops() and all(Path(part).is_file() for part in parts):
            self._on_edited()

    def _parts(self) -> list[str]:
        text = self.line.text()
        return paths_in_text(text) or [part.strip() for part in text.split(";") if part.strip()]

    def _on_choose_file(self) -> None:
        paths, _ = QFileDialog.getOpenFileNames(self, self._name, self._start())
        if paths:
            self.choose(paths if len(paths) > 1 else paths[0])

    def _on_choose_folder(self) -> None:
        path = QFileDialog.getExistingDirectory(self, self._name, self._start())
        if path:
            self.choose(path)

    def _start(self) -> str:
        return self._value if isinstance(self._value, str) else ""

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept files."""
        if dropped_paths(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Use the drop."""
        paths = dropped_paths(event)
        if paths:
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            self.choose(paths if len(paths) > 1 else paths[0])


def _several_words(paths: list[str]) -> str:
    """`4 files: a.txt, b.txt, c.txt, d.txt`."""
    count = trn("{count} file", "{count} files", len(paths))
    return tr("{count}: {names}", count=count, names=", ".join(map(name_of_path, paths)))


def dropped_paths(event: QDropEvent, specs: bool = False) -> list[str]:
    """The dropped local files and folders; `specs` are left to the page, which handles them by name."""
    paths = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
    return [path for path in paths if specs or not is_spec(path)]


MARGIN = 4
"""Pixels between the style's contents and the text, as QLineEdit has them."""


class PathLine(QLineEdit):
    """Shows the end of a path that is too long while it is not being edited: the starts are alike."""

    left_out = Qt.TextElideMode.ElideLeft
    summary = ""
    """What stands for a text of several paths, whose end would look like one path."""

    def shortened(self, room: int) -> str:
        """The text in this many pixels."""
        if self.summary:
            return self.fontMetrics().elidedText(self.summary, Qt.TextElideMode.ElideRight, room)
        return self.fontMetrics().elidedText(self.text(), self.left_out, room)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the shortened text unless it fits or is being edited."""
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        area = self.style().subElementRect(QStyle.SubElement.SE_LineEditContents, option, self)
        room = area.width() - 2 * MARGIN
        if self.hasFocus() or self.fontMetrics().horizontalAdvance(self.text()) <= room:
            super().paintEvent(event)
            return
        elided = self.shortened(room)
        with QPainter(self) as painter:
            self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelLineEdit, option, painter, self)
            painter.setPen(self.palette().color(QPalette.ColorRole.Text))
            painter.drawText(area.adjusted(MARGIN, 0, -MARGIN, 0), int(Qt.AlignmentFlag.AlignVCenter), elided)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Shorten the text again after editing."""
        super().focusOutEvent(event)
        self.update()
