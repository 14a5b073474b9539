"""What people do to a draft: type into its fields, write a spec, drop a file."""

from pathlib import Path

from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QLineEdit

from app.pages.new_run.page import Page
from backend.contract import spec_file


def line(panel: Page, name: str) -> QLineEdit:
    target = panel.sections.settings.forms["training"].editor(name).target
    assert isinstance(target, QLineEdit)
    return target


def write(qtbot, field: QLineEdit, text: str) -> None:
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)


def spec(tmp_path: Path, values: dict) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(spec_file.dump(values))
    return path


def dropped(path: Path) -> tuple[QMimeData, QDropEvent]:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    at, keys = QPointF(5, 5), Qt.KeyboardModifier.NoModifier
    return mime, QDropEvent(at, Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, keys)
