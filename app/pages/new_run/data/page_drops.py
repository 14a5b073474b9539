"""Handles drops and pastes anywhere on the New run page, and the hint that shows where a drop would go."""

from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QDropEvent, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QTextEdit, QWidget

from app.core.draft.data_source import are_specs, is_data, paths_in_text
from app.core.i18n import tr
from app.pages.new_run.data.data_section import DataSection
from app.widgets.drop_hint import DropHint

_SPLIT_WORDS = {
    "train": tr("Drop to train on it"),
    "validation": tr("Drop to validate on it"),
    "test": tr("Drop to test on it"),
}
_DRAGGED = (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop)


class PageDrops(QObject):
    """Filters the window's events, because a text field would take the drag; widgets that accept drops keep them."""

    dropped = Signal(list, str)
    """Paths, and the split on whose field they were dropped; empty elsewhere."""

    def __init__(self, page: QWidget, section: DataSection) -> None:
        super().__init__(page)
        self._page, self._section = page, section
        self._window: QObject | None = None
        self.hint = DropHint(page)
        page.installEventFilter(self)
        paste = QShortcut(QKeySequence(QKeySequence.StandardKey.Paste), page)
        paste.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        paste.activated.connect(self.paste)

    def paste(self) -> None:
        """Use the paths or URLs on the clipboard as data."""
        paths = dropped_places(QGuiApplication.clipboard().mimeData())
        if paths and not are_specs(paths):
            self.dropped.emit(paths, "")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the page into its window, and the drags through it."""
        if watched is self._page:
            if event.type() == QEvent.Type.Show:
                self._follow_window()
            return False
        if event.type() == QEvent.Type.DragLeave:
            self.hint.hide()
        if event.type() in _DRAGGED and isinstance(event, QDropEvent):
            return self._on_dragged(event)
        return False

    def _follow_window(self) -> None:
        handle = self._page.window().windowHandle()
        if handle is not None and handle is not self._window:
            handle.installEventFilter(self)
            self._window = handle

    def _on_dragged(self, event: QDropEvent) -> bool:
        """Returns whether the event was handled here."""
        place = self._page.mapFrom(self._page.window(), event.position().toPoint())
        paths = dropped_places(event.mimeData()) if self._page.isVisible() and self._page.rect().contains(place) else []
        if not paths or are_specs(paths) or (self._is_taken(place) and not all(map(is_data, paths))):
            self.hint.hide()
            return False
        split, target = self._target(place)
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        if event.type() == QEvent.Type.Drop:
            self.hint.hide()
            self.dropped.emit(paths, split)
        else:
            self.hint.show_target(target, _SPLIT_WORDS.get(split, tr("Drop to use it as data")))
        return True

    def _target(self, place: QPoint) -> tuple[str, QRect]:
        """The split whose field is there, and the area to frame."""
        for split, field in self._section.splits.fields().items():
            area = QRect(field.mapTo(self._page, QPoint(0, 0)), field.size())
            if field.isVisible() and area.contains(place):
                return split, area
        return "", self._page.rect()

    def _is_taken(self, place: QPoint) -> bool:
        """Whether a different section takes drops there, such as the model's."""
        widget: QWidget | None = self._page.childAt(place)
        if widget is not None and self._section.isAncestorOf(widget):
            return False
        while widget is not None and widget is not self._page:
            if widget.acceptDrops() and not isinstance(widget, QLineEdit | QTextEdit | QPlainTextEdit):
                return True
            widget = widget.parentWidget()
        return False


def dropped_places(mime: QMimeData) -> list[str]:
    """Local paths, other URLs, or the paths listed in a text."""
    if mime.hasUrls():
        return [url.toLocalFile() if url.isLocalFile() else url.toString() for url in mime.urls()]
    return paths_in_text(mime.text()) if mime.hasText() and len(mime.text()) < 100_000 else []
