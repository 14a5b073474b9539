"""Walks through the whole window in one language and prints what was found, as JSON: `-m tests.app.window_walk marked|cut|cut-en HOME`.

`marked` lists every text that was not looked up in a catalogue, `cut` those that do not fit in German at two sizes, `cut-en` in English. A process of its
own, since the pages' constants are looked up when they are imported; the helper is the real one. With a folder behind
HOME, pictures of every view are kept there; a theme and a text size may follow.
"""

import gettext
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QStyle,
    QStyleOptionComboBox,
    QTableView,
    QTreeView,
    QWidget,
)

from app.core import i18n
from tests.example_runs import CLASSIFIED, write_run

ROOT = Path(__file__).resolve().parents[2]
OPEN, CLOSE = "⟦", "⟧"
SECONDS = 20.0
CALM = 0.4
"""Seconds in which answers that nobody waits for arrive."""
LARGE, SMALL = QSize(1280, 800), QSize(800, 600)
SETTLED = 0.2
"""Seconds in which a resized window is laid out."""
MARGIN = 4
"""Pixels beside a heading that it can do without."""
MODEL = str(ROOT / "resources" / "demo" / "bert-tiny")
RECORDED = ROOT / "tests" / "data" / "recorded"


def marked_sentence(text: str) -> str:
    """A text in brackets; in a sentence of the backend they begin behind the key of a field, which pages take away."""
    key = re.match(r"[a-z{][\w.{}-]*: ", text)
    begin = key.end() if key else 0
    return f"{text[:begin]}{OPEN}{text[begin:]}{CLOSE}"


class Marked(gettext.NullTranslations):
    """Brackets around every text that was looked up."""

    def gettext(self, message: str) -> str:
        return marked_sentence(message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)


def main(mode: str, home: Path, pictures: Path | None = None, look: str = "light", size: str = "13") -> None:
    """Prints {text: where}."""
    os.environ.update({f"BURNISH_{name}": str(home / name.lower()) for name in ("RUNS", "CACHE", "CONFIG")})
    if mode == "marked":
        i18n._present, i18n._code = Marked(), "marked"  # before any page is imported
    else:
        i18n.choose("de" if mode == "cut" else "en")
    found: dict[str, str] = {}

    def look_at(view: str) -> None:
        until(lambda: False, CALM)
        for window in QApplication.topLevelWidgets():
            if window.isVisible():
                for where, text in marked(window) if mode == "marked" else _cut_at_each_size(window):
                    found.setdefault(text, f"{view}: {where}")
                if pictures is not None:
                    name = f"{view}-{look}" + ("" if window.parent() is None else f"-{type(window).__name__}")
                    window.grab().save(str(pictures / f"{name}.png"))

    walk(home, look, int(size), look_at)
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


def walk(home: Path, look: str, size: int, look_at: Callable[[str], None]) -> None:
    """Brings one view after another onto the screen."""
    shutil.copytree(RECORDED, home / "runs", dirs_exist_ok=True)
    run = write_run(home / "runs", "text_classification", [*CLASSIFIED, *CLASSIFIED])
    from app import theme
    from app.core import preferences
    from app.main_window import MainWindow

    application = QApplication(sys.argv[:1])
    theme.apply(application, look, size)
    chosen = preferences.load()
    chosen.set("tour_seen", True)
    window = MainWindow(chosen)
    window.resize(LARGE)
    window.show()
    window.open_services()
    for part in (_new_run, _run, _runs, _predictions, _tokenizer, _settings, _everywhere):
        part(window, run, look_at)
    window.close()


def _new_run(window: Any, _: Path, look_at: Callable[[str], None]) -> None:
    page = window.show_page("new_run")
    until(lambda: page.catalog is not None)
    look_at("new-run-empty")
    page.fill_demo()
    until(lambda: page.checks.plan is not None and not page.reason())
    look_at("new-run")
    area = page.sections.settings
    for place, group in enumerate(area.findChildren(QAbstractButton)):
        if group.isCheckable() and group.isVisible() and place < 12:
            group.setChecked(True)
    page.change("training.learning_rate", 2.0)
    look_at("new-run-mistake")
    page.controller.undo()
    until(lambda: page.checks.plan is not None and not page.reason())
    for name in page.sections.named:
        page.sections.open(name)
        look_at(f"new-run-{name}")
    presets = page.presets if hasattr(page, "presets") else None
    dialogs = {
        "models": (page.model_controller.open, lambda: page.model_controller.chooser),
        "report": (page.sections.data.report.click, lambda: page.report),
        "unusable": (page.data_controller.show_unusable, lambda: page.data_controller.unusable),
        "row": (lambda: page.data_controller.show_row(3), lambda: page.data_controller.row),
    }
    if presets is not None:
        dialogs |= {
            "presets": (presets.open_dialog, lambda: presets.dialog),
            "preset-saving": (presets.ask_save, lambda: presets.saving),
        }
    for name, (show, dialog) in dialogs.items():
        show()
        until(lambda: False, CALM)
        look_at(name)
        if (shown := dialog()) is not None:
            shown.close()


def _run(window: Any, run: Path, look_at: Callable[[str], None]) -> None:
    page = window.show_page("run")
    look_at("run-empty")
    for name in ("sentiment-finished", "sentiment-failed", "sentiment-lost", "sentiment-resumed"):
        window.show_run(str(run.parent / name))
        until(lambda: page.watcher is not None and page.watcher.is_caught_up)
        look_at(f"run-{name}")


def _runs(window: Any, run: Path, look_at: Callable[[str], None]) -> None:
    page = window.show_page("runs")
    page.table.choose(run.parent / "sentiment-failed")
    look_at("runs")
    page.group.setCurrentIndex(5)
    page.table.selectAll()
    look_at("runs-grouped")
    page._on_compare()
    look_at("runs-compared")
    page._on_compare_closed()


def _predictions(window: Any, run: Path, look_at: Callable[[str], None]) -> None:
    page = window.show_page("predictions")
    look_at("predictions-empty")
    page.show_run(str(run))
    until(lambda: page.table.shown_count() > 0)
    page.table.selectRow(1)
    look_at("predictions")
    dialog = page.ask_export()
    look_at("export")
    dialog.close()
    page.show_tab(1)
    until(lambda: page.attempt._has_catalog)
    form = page.attempt.form
    form.show_model(MODEL)
    form.task.setCurrentIndex(form.task.findData("text_classification"))
    form.task.activated.emit(form.task.currentIndex())
    form.fill({"text": "A warm film"})
    page.attempt.ask()
    until(lambda: bool(page.attempt.kept))
    look_at("try")


def _tokenizer(window: Any, run: Path, look_at: Callable[[str], None]) -> None:
    page = window.show_page("tokenizer")
    page.show_tokenizer(MODEL)
    side = page.tab()
    side.text.setPlainText("A few words, naïve")
    for place in range(len(page.titles.buttons())):
        page.show_tab(place)
        until(lambda: False, CALM)
        until(lambda: not _works(page))
        look_at(f"tokenizer-{place}")


def _works(page: QWidget) -> bool:
    """Whether something is being answered, which a button offers to stop."""
    buttons = page.findChildren(QAbstractButton)
    return any(one.isVisible() and one.text() == i18n.tr("Stop") for one in buttons)


def _settings(window: Any, _: Path, look_at: Callable[[str], None]) -> None:
    page = window.show_page("settings")
    until(page.machine.check_again.isEnabled)
    look_at("settings")


def _everywhere(window: Any, _: Path, look_at: Callable[[str], None]) -> None:
    window.show_page("new_run")
    window.commands.show_palette()
    look_at("palette")
    window.commands.show_palette()
    window.commands.show_sheet()
    look_at("keys")
    window.commands.show_sheet()
    window.show_tour()
    look_at("tour")


# What was not looked up


def marked(window: QWidget) -> Iterator[tuple[str, str]]:
    """Where a text stands, and the text."""
    for widget in [window, *window.findChildren(QWidget)]:
        for where, text in _of(widget):
            if re.search(r"[A-Za-zÀ-ÿ]{3,}", unmarked(text)):
                yield f"{type(widget).__name__}.{where}", text
    for action in window.findChildren(QAction):
        if re.search(r"[A-Za-zÀ-ÿ]{3,}", unmarked(action.text())):
            yield "QAction", action.text()


def _of(widget: QWidget) -> Iterator[tuple[str, str]]:
    yield "toolTip", widget.toolTip()
    yield "accessibleName", widget.accessibleName()
    if isinstance(widget, QLabel | QAbstractButton):
        yield "text", widget.text()
    if isinstance(widget, QLineEdit):
        yield "placeholder", widget.placeholderText()
    if isinstance(widget, QComboBox):
        yield from (("item", widget.itemText(place)) for place in range(widget.count()))
    if isinstance(widget, QTableView | QTreeView) and widget.model() is not None:
        yield from (("header", text) for text in _headers(widget.model()))


def _headers(model: QAbstractItemModel) -> Iterator[str]:
    for section in range(model.columnCount()):
        yield str(model.headerData(section, Qt.Orientation.Horizontal) or "")


def unmarked(text: str) -> str:
    """What stands outside all brackets."""
    before = None
    while before != text:
        before, text = text, re.sub(rf"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}", "", text)
    return text


# What does not fit


def _cut_at_each_size(window: QWidget) -> list[tuple[str, str]]:
    """What is cut off at the usual size and, of the main window, at the smallest, to which it is resized for this look."""
    found = list(cut(window))
    if window.parent() is None and window.size() == LARGE:
        window.resize(SMALL)
        until(lambda: window.size() == SMALL, SECONDS)
        until(lambda: False, SETTLED)
        for _ in range(10):
            QApplication.processEvents()
        found += [(f"{where} at {SMALL.width()}", text) for where, text in cut(window)]
        found += too_large(window)
        window.resize(LARGE)
        until(lambda: False, SETTLED)
    return found


def too_large(window: Any) -> Iterator[tuple[str, str]]:
    """The page that needs more room than a small window has."""
    page = window.pages.currentWidget()
    needed, room = page.minimumSizeHint(), page.size()
    if needed.width() > room.width() or needed.height() > room.height():
        yield (
            f"needs {needed.width()}×{needed.height()} of {room.width()}×{room.height()}",
            type(page).__module__,
        )


def cut(window: QWidget) -> Iterator[tuple[str, str]]:
    """Labels, buttons, boxes and headings whose words have less room than they take."""
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or widget.window() is not window:
            continue
        if isinstance(widget, QHeaderView):
            yield from _cut_headings(widget)
        elif (lack := _lack(widget)) > 1:
            yield f"{type(widget).__name__} in {type(widget.parent()).__name__} lacks {lack}", _said(widget)


def _lack(widget: QWidget) -> int:
    """Missing pixels."""
    if type(widget) is QLabel and widget.text() and not widget.pixmap():
        if widget.wordWrap():
            return widget.heightForWidth(widget.width()) - widget.height()
        return widget.minimumSizeHint().width() - widget.width()
    if isinstance(widget, QAbstractButton) and len(widget.text()) > 1:
        return widget.minimumSizeHint().width() - widget.width()
    if isinstance(widget, QComboBox) and not widget.isEditable():
        option = QStyleOptionComboBox()
        widget.initStyleOption(option)
        field = widget.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, widget
        )
        return widget.fontMetrics().horizontalAdvance(widget.currentText()) - field.width()
    if isinstance(widget, QLineEdit) and widget.placeholderText() and not widget.text():
        return widget.fontMetrics().horizontalAdvance(widget.placeholderText()) + 8 - widget.width()
    return 0


def _said(widget: QWidget) -> str:
    if isinstance(widget, QComboBox):
        return widget.currentText()
    if isinstance(widget, QLineEdit):
        return widget.placeholderText()
    return widget.text()  # type: ignore[attr-defined]


def _cut_headings(header: QHeaderView) -> Iterator[tuple[str, str]]:
    table = header.parent()
    if header.orientation() != Qt.Orientation.Horizontal or not isinstance(table, QTableView):
        return
    for section in range(header.count()):
        lack = header.sectionSizeHint(section) - header.sectionSize(section)
        if not header.isSectionHidden(section) and lack > MARGIN:
            text = str(header.model().headerData(section, Qt.Orientation.Horizontal))
            yield f"heading of {type(table.parent()).__name__} lacks {lack}", text


def until(holds: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Let the window live until the condition holds or the time is over."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.005)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *(Path(one) if "/" in one else one for one in sys.argv[3:]))  # type: ignore[arg-type]
