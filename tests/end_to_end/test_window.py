"""The real window, offscreen, clicked through a real training to a CSV on disk that is read back."""

import csv
from pathlib import Path

import pytest
from end_to_end.burnish_process import small_csv
from PySide6.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QLineEdit

from app.core import preferences
from app.main_window import MainWindow
from app.pages.settings.machine_card import FindingLine
from app.pages.tokenizer.text.text_input import BATCH, IDS, TEXT
from app.pages.tokenizer.text.tokens_card import STEPS
from backend.contract.catalog import Preset
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder

TRAINING_MS = 240_000
ANSWER_MS = 60_000


@pytest.fixture
def window(qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BURNISH_RUNS", str(tmp_path / "runs"))
    chosen = preferences.load(tmp_path / "config" / "preferences.json")
    chosen.set("runs_folder", str(tmp_path / "runs"))
    main_window = MainWindow(chosen)
    qtbot.addWidget(main_window)
    main_window.resize(1280, 800)
    with qtbot.waitSignal(main_window.first_painted, timeout=ANSWER_MS):
        main_window.show()
    main_window.open_services()
    yield main_window
    main_window.close()


def click(qtbot, button) -> None:
    qtbot.waitUntil(button.isEnabled, timeout=ANSWER_MS)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def write(qtbot, line: QLineEdit, text: str) -> None:
    line.clear()
    qtbot.keyClicks(line, text)
    qtbot.keyClick(line, Qt.Key.Key_Return)


def save_as(path: Path) -> None:
    """Answer the next file dialog as a person would: type a path, press Save."""

    def answer() -> None:
        dialog = QApplication.activeModalWidget()
        if not isinstance(dialog, QFileDialog):
            QTimer.singleShot(50, answer)
            return
        name = dialog.findChild(QLineEdit, "fileNameEdit")
        assert name is not None
        name.setText(str(path))  # `selectFile` leaves the line alone while it has the focus
        dialog.accept()

    QTimer.singleShot(50, answer)


def a_bad_tokenizer_leaves_nothing_on_screen(qtbot, window: MainWindow) -> None:
    panel = window.show_page("tokenizer")
    page = panel.tab()
    qtbot.waitUntil(lambda: "tokens" in page.counts.text(), timeout=ANSWER_MS)
    assert page.view.count() > 0
    write(qtbot, panel.choice.box.lineEdit(), "/no/such/tokenizer")
    qtbot.waitUntil(lambda: "no such folder" in page.banner.text(), timeout=ANSWER_MS)
    assert page.counts.text() == ""
    assert page.view.count() == 0


def the_options_of_the_tokenizer_page_go_to_the_new_run(qtbot, window: MainWindow) -> None:
    new_run = window.panel("new_run")
    assert new_run.draft.get("task.max_length") != 77
    page = window.show_page("tokenizer").tab()
    page.options.max_length.setValue(77)
    click(qtbot, page.options.use_button)
    assert new_run.draft.get("task.max_length") == 77
    assert window.pages.currentWidget() is new_run


def test_from_click_to_predictions(qtbot, window: MainWindow, tmp_path: Path):
    QApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
    small_csv(tmp_path / "train.csv", "train", 400)
    small_csv(tmp_path / "validation.csv", "validation", 60)
    page = window.show_page("new_run")
    qtbot.waitUntil(lambda: page.catalog is not None, timeout=ANSWER_MS)

    write(qtbot, page.sections.data.train.line, str(tmp_path / "nowhere.csv"))
    qtbot.waitUntil(lambda: "no such file" in page.sections.data.banner.text(), timeout=ANSWER_MS)
    assert not page.start_bar.start.isEnabled()
    write(qtbot, page.sections.data.train.line, str(tmp_path / "train.csv"))
    page.sections.data.validation_kind.setCurrentText("A file")
    page.sections.data.validation_kind.textActivated.emit("A file")
    write(qtbot, page.sections.data.validation.line, str(tmp_path / "validation.csv"))
    qtbot.waitUntil(lambda: page.draft.get("data.columns.label") == "label", timeout=ANSWER_MS)
    write(qtbot, page.sections.model.name, str(resource("demo", "bert-tiny")))
    qtbot.waitUntil(lambda: "4" in page.sections.model.facts.values["Parameters"].text(), timeout=ANSWER_MS)
    for key, value in {"training.learning_rate": 3e-4, "training.batch_size": 16, "training.epochs": 2}.items():
        page.change(key, value)
    click(qtbot, page.start_bar.start)

    qtbot.waitUntil(lambda: window.pages.currentWidget() is not page, timeout=ANSWER_MS)
    run_page = window.pages.currentWidget()
    assert run_page is window.panel("run")
    qtbot.waitUntil(
        lambda: run_page.watcher is not None and run_page.watcher.outcome.state == "finished", timeout=TRAINING_MS
    )
    [path] = (tmp_path / "runs").iterdir()
    folder = RunFolder(path)
    click(qtbot, run_page.controls.buttons["predictions"])

    table = window.show_page("predictions")
    qtbot.waitUntil(lambda: table.export_button.isEnabled(), timeout=ANSWER_MS)
    browser = table.browser
    qtbot.mouseClick(browser.filters.right_group.button(2), Qt.MouseButton.LeftButton)
    assert 0 < browser.table.shown_count() < 60
    qtbot.mouseClick(browser.filters.right_group.button(0), Qt.MouseButton.LeftButton)
    exported = tmp_path / "taken-home.csv"
    save_as(exported)
    click(qtbot, table.ask_export().save)
    qtbot.waitUntil(exported.exists, timeout=ANSWER_MS)

    with exported.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "validation.csv").open(encoding="utf-8", newline="") as file:
        inputs = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == [row["text"] for row in inputs]
    assert sum(row["prediction"] == row["actual"] for row in rows) / len(rows) > 0.6
    qtbot.waitUntil(lambda: folder.life() == "ended", timeout=ANSWER_MS)
    the_options_of_the_tokenizer_page_go_to_the_new_run(qtbot, window)  # the helper's processes are warm by now
    a_bad_tokenizer_leaves_nothing_on_screen(qtbot, window)


def drop(window: MainWindow, path: Path) -> None:
    """Drop a file on the middle of the window; the window is told, as the system would."""
    mime, handle = QMimeData(), window.windowHandle()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    place, left = window.rect().center(), Qt.MouseButton.LeftButton
    how = (Qt.DropAction.CopyAction, mime, left, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(handle, QDragEnterEvent(place, *how))
    QApplication.sendEvent(handle, QDropEvent(QPointF(place), *how))


def test_a_clear_file_is_trained_on_after_three_actions_without_scrolling(qtbot, window: MainWindow, tmp_path: Path):
    page = window.show_page("new_run")
    qtbot.waitUntil(lambda: page.catalog is not None, timeout=ANSWER_MS)
    small_csv(tmp_path / "reviews.csv", "train", 100)
    drop(window, tmp_path / "reviews.csv")
    for button in (page.sections.model.quick, page.start_bar.start):
        qtbot.waitUntil(lambda: page.reason() in ("", "Choose a model."), timeout=ANSWER_MS)
        assert window.childAt(button.mapTo(window, button.rect().center())) is button, "it is in view"
        click(qtbot, button)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is not page, timeout=ANSWER_MS)
    run_page = window.panel("run")
    assert window.pages.currentWidget() is run_page
    click(qtbot, run_page.requests.buttons["stop"])
    qtbot.waitUntil(lambda: run_page.watcher.outcome.state in ("stopped", "finished"), timeout=TRAINING_MS)


_STANDS_IN_THE_WAY = ("decoder", "Choose a column")
"""The demo is an encoder, with texts and labels."""


def _brings_nothing(preset: Preset | str | None) -> bool:
    if isinstance(preset, str):
        return False  # a task's heading among the presets
    spec = preset.spec if preset else {}
    return "data" not in spec and "name_or_path" not in spec.get("model", {})


@pytest.mark.slow
def test_every_preset_can_follow_every_other(qtbot, window: MainWindow):
    page = window.show_page("new_run")
    qtbot.waitUntil(lambda: page.catalog is not None, timeout=ANSWER_MS)
    click(qtbot, page.demo)
    qtbot.waitUntil(lambda: page.checks.plan is not None and not page.reason(), timeout=ANSWER_MS)
    box = page.sections.task.presets
    # Presets of experiments bring along data sets and models that are not here.
    offered = [box.itemData(place) for place in range(box.count())]
    own = [preset for preset in offered if _brings_nothing(preset)]
    for preset in [*own[1:], *reversed(own)]:
        # Those of the chosen task come first, so places change.
        place = next(at for at in range(box.count()) if box.itemData(at) == preset)
        box.setCurrentIndex(place)
        box.activated.emit(place)
        if page.draft.get("task.type") == "text_classification":
            qtbot.waitUntil(lambda: page.checks.plan is not None and not page.reason(), timeout=ANSWER_MS)
        else:
            qtbot.waitUntil(lambda: any(words in page.reason() for words in _STANDS_IN_THE_WAY), timeout=ANSWER_MS)
    assert page.draft.get("task.type") == "text_classification"
    assert not [said for said in window.toasts.messages() if "could not" in said]


@pytest.mark.slow
def test_the_tokenizer_answers_in_every_mode(qtbot, window: MainWindow):
    panel = window.show_page("tokenizer")
    page = panel.tab()
    qtbot.waitUntil(lambda: "tokens" in page.counts.text(), timeout=ANSWER_MS)
    page.view.setFocus()
    qtbot.keyClick(page.view, Qt.Key.Key_Right)
    assert page.token.values()["Piece"] == "[CLS]"
    page.tokens.show_view(STEPS)
    qtbot.waitUntil(lambda: len(page.tokens.steps.frames) > 2, timeout=ANSWER_MS)
    page.input.set_mode(BATCH)
    qtbot.waitUntil(lambda: page.batch.counts.text().startswith("3 rows"), timeout=ANSWER_MS)
    page.input.set_mode(IDS)
    page.input.ids.setPlainText("7592, 99999999")
    qtbot.waitUntil(lambda: "⟨no token 99999999⟩" in page.decoded.outlined(), timeout=ANSWER_MS)
    page.input.set_mode(TEXT)


@pytest.mark.slow
def test_the_settings_page_reads_what_the_doctor_says(qtbot, window: MainWindow):
    page = window.show_page("settings")
    qtbot.waitUntil(lambda: len(page.machine.findChildren(FindingLine)) > 10, timeout=ANSWER_MS)
    assert page.machine.banner.text() == ""
    assert page.machine.check_again.isEnabled()
    words = [line.text() for line in page.findChildren(QLabel)]
    assert any("PyTorch engine is ready: torch " in word for word in words)
