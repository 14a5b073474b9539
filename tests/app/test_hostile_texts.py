"""Texts that come from data, models and runs are shown as they stand on every page: never as HTML, which loads files."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QAbstractItemModel, QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QGraphicsTextItem,
    QGraphicsView,
    QLabel,
    QTextEdit,
    QToolTip,
    QWidget,
)

from app import theme
from app.core import preferences
from app.main_window import PAGES, MainWindow
from app.widgets.card import Card
from app.widgets.page_layout import PageHeader
from app.widgets.question import Question
from app.widgets.row_views.row_view import ValueList
from backend.contract.run.folder import RunFolder
from backend.contract.run.notes import RunNotes, write_notes
from tests.app.gone import gone
from tests.app.helper_process import help_windows
from tests.app.hostile_helper import HOSTILE, spoil
from tests.app.test_every_page import dialogs, sides, until
from tests.example_runs import CLASSIFIED, write_run

HERE = Path(__file__).parent
PAGES = [name for _, _, name in PAGES]
ROLES = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
FEWEST = {"new_run": 40, "run": 4, "runs": 40, "predictions": 20, "tokenizer": 5, "settings": 1}
"""How many texts of a page are hostile at least: so many were seen when this was written."""


def write_runs(root: Path) -> None:
    """Recorded runs, and one with predictions, full of markup."""
    shutil.copytree(HERE.parent / "data" / "recorded", root)
    for folder in list(root.iterdir()):
        for name in ("events.jsonl", "exit.json"):
            if (folder / name).exists():
                (folder / name).write_text(spoil((folder / name).read_text(encoding="utf-8")), encoding="utf-8")
        (folder / "process.log").write_text(f"{HOSTILE}\n", encoding="utf-8")
        write_notes(RunFolder(folder), RunNotes(note=HOSTILE, tags=("<i>tag</i>",)))
    rows = [
        {(f"{HOSTILE}{name}" if name == "source" else name): spoiled_cell(cell) for name, cell in row.items()}
        for row in CLASSIFIED
    ]
    write_run(root, "text_classification", rows, "2026-11-21-<b>predicted<b>")


def spoiled_cell(cell: Any) -> Any:
    return f"{HOSTILE}{cell}" if isinstance(cell, str) else cell


@pytest.fixture(scope="module")
def window(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    home = tmp_path_factory.mktemp("hostile-texts")
    write_runs(home / "runs")
    theme.apply(qapp, "light")
    chosen = preferences.load(home / "preferences.json")
    chosen.set("runs_folder", str(home / "runs"))
    chosen.set("recent_models", [f"team/{HOSTILE}"])
    chosen.set("tour_seen", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURNISH_CONFIG", str(home / "config"))
        help_windows(patch, "tests.app.hostile_helper")
        made = MainWindow(chosen)
        made.resize(1280, 800)
        made.show()
        made.open_services()
        fill(made)
        yield made
        gone(made)


def fill(window: MainWindow) -> None:
    """Give every page something to show."""
    assert window.context is not None
    root = window.context.library.root
    new_run: Any = window.show_page("new_run")
    until(lambda: new_run.catalog is not None)
    until(lambda: bool(window.context.library.runs))  # type: ignore[union-attr]
    new_run.fill_demo()
    until(lambda: new_run.checks.plan is not None)
    new_run.change("model.name_or_path", f"team/{HOSTILE}")
    for name in ("sentiment-finished", "sentiment-failed"):
        window.show_run(str(root / name))
        page: Any = window.panel("run")
        until(lambda page=page: page.watcher.is_caught_up)
    predictions: Any = window.show_page("predictions")
    predictions.show_run(str(root / "2026-11-21-<b>predicted<b>"))
    until(lambda: predictions.table.shown_count() > 0)
    predictions.table.selectRow(1)
    for name in ("tokenizer", "settings", "runs"):
        window.show_page(name)
    window.show_message("error", HOSTILE)
    QApplication.processEvents()


# What is looked for


def texts(widget: QWidget) -> Iterator[str]:
    """What a widget shows, and says when the mouse is over it."""
    yield widget.toolTip()
    if isinstance(widget, QLabel | QAbstractButton):
        yield widget.text()
    elif isinstance(widget, QComboBox):
        yield from (widget.itemText(place) for place in range(widget.count()))
    elif isinstance(widget, QTextEdit):
        yield widget.toPlainText()
    elif isinstance(widget, QAbstractItemView) and widget.model() is not None:
        yield from cells(widget.model())


def cells(model: QAbstractItemModel) -> Iterator[str]:
    for role in ROLES:
        for column in range(min(12, model.columnCount())):
            yield str(model.headerData(column, Qt.Orientation.Horizontal, role) or "")
            yield from (str(model.index(row, column).data(role) or "") for row in range(min(20, model.rowCount())))


def is_hostile(text: str) -> bool:
    return "<b>" in text or "<img" in text or "<i>" in text


def read_as_html(widget: QWidget) -> Iterator[str]:
    """The places of a widget where markup in a text would be obeyed."""
    widget.ensurePolished()
    if isinstance(widget, QLabel) and widget.textFormat() != Qt.TextFormat.PlainText:
        is_ours = widget.textFormat() == Qt.TextFormat.RichText and "<img" not in widget.text()
        if not is_ours:
            yield f"{widget.textFormat().name} {widget.text()!r}"
    if isinstance(widget, QTextEdit) and ("<img" in widget.document().toHtml() or widget.acceptRichText()):
        yield widget.toPlainText()
    if isinstance(widget, QGraphicsView) and widget.scene() is not None:
        items = [one for one in widget.scene().items() if isinstance(one, QGraphicsTextItem)]
        yield from (one.toPlainText() for one in items if "<img" in one.toHtml())
    if isinstance(widget, QAbstractButton) and HOSTILE in widget.text():
        yield f"the & of {widget.text()!r}"  # a letter behind it is underlined, and it is not seen


def every(window: QWidget) -> list[QWidget]:
    return [window, *window.findChildren(QWidget)]


@pytest.mark.parametrize("name", PAGES)
def test_no_text_of_a_page_is_read_as_html(window: MainWindow, name: str):
    seen, found = 0, list[str]()
    for side, _ in sides(window, name):
        for widget in every(window):
            seen += sum(map(is_hostile, texts(widget))) if widget.isVisible() else 0
            found += [f"{side}: {type(widget).__name__} {what}" for what in read_as_html(widget)]
    assert sorted(set(found)) == []
    assert seen >= FEWEST[name]


def test_no_text_of_a_dialog_is_read_as_html(window: MainWindow):
    found = [
        f"{name}: {type(widget).__name__} {what}"
        for name, dialog in dialogs(window)
        for widget in every(dialog)
        for what in read_as_html(widget)
    ]
    assert found == []


def test_no_menu_swallows_a_sign_of_a_name(window: MainWindow):
    window.show_run(str(window.context.library.root / "sentiment-finished"))  # type: ignore[union-attr]
    window.panel("run").comparison.fill_menu()  # type: ignore[union-attr]
    found = [one.text() for one in window.findChildren(QAction) if is_hostile(one.text())]
    assert found
    assert [text for text in found if "&" in text.replace("&&", "")] == []


def tip() -> QLabel:
    return next(one for one in QApplication.topLevelWidgets() if one.metaObject().className() == "QTipLabel")  # type: ignore[return-value]


def test_a_tooltip_shows_markup_as_it_stands(window: MainWindow):
    hinted = [widget for widget in every(window) if is_hostile(widget.toolTip())]
    assert hinted
    for widget in hinted:
        QToolTip.showText(QPoint(5, 5), widget.toolTip(), widget)
        assert (tip().textFormat(), tip().text()) == (Qt.TextFormat.PlainText, widget.toolTip())
    QToolTip.hideText()


def test_a_question_shows_a_run_name_as_it_stands(window: MainWindow):
    question = Question(window, HOSTILE, HOSTILE, HOSTILE)
    question.show()
    found = [what for widget in every(question) for what in read_as_html(widget)]
    question.close()
    question.deleteLater()
    assert found == []


def test_a_heading_from_data_is_shown_as_it_stands(styled: QApplication, qtbot):
    card = Card(HOSTILE)
    qtbot.addWidget(card)
    card.show()
    assert card.heading.textFormat() == Qt.TextFormat.PlainText


def test_a_long_column_name_does_not_widen_the_row(styled: QApplication, qtbot):
    values = ValueList()
    qtbot.addWidget(values)
    values.show_values({"column" * 40: "1"})
    assert values.minimumSizeHint().width() < 320
    assert any(one.toolTip() == "column" * 40 for one in values.findChildren(QLabel))


def test_a_long_name_as_a_title_takes_no_room_from_the_buttons(styled: QApplication, qtbot):
    header = PageHeader("run" * 33)
    qtbot.addWidget(header)
    assert header.minimumSizeHint().width() < 320
