"""The list of models on the New run page: what fits is said, the hub is searched, and a download goes on and is chosen."""

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtTest import QTest

from app.core.draft.model_rows import GroupHeading
from app.pages.new_run.model.model_chooser import HUB
from app.pages.new_run.model.model_section import ModelFacts
from backend.contract.resources import resource
from backend.contract.rpc.models import ModelDescription

MODEL = str(resource("demo", "bert-tiny"))


@pytest.fixture
def panel(panel):
    return panel


@pytest.fixture
def chooser(qtbot, panel):
    """The list, open and filled."""
    panel.sections.model.list.click()
    made = panel.model_controller.chooser
    qtbot.waitUntil(lambda: len(made.list.models) == 3)
    return made


def names(chooser) -> list[str]:
    return [one.name for one in chooser.list.models]


def test_the_list_gathers_models_judges_them_and_chooses(qtbot, panel, chooser):
    headings = [line.title for line in chooser.list.model().lines if isinstance(line, GroupHeading)]
    assert [one.split(" ·")[0] for one in headings] == ["Demo models", "From your runs", "On this computer"]
    assert chooser.list.current().name == MODEL  # the first that fits
    # What does not fit can be reached and read, and not be chosen.
    QTest.keyClick(chooser.list, Qt.Key.Key_Down)
    assert chooser.list.current().group == "run"
    assert "A gpt2 model is too shy for this" in chooser.marked.sentences.text()
    assert not chooser.choose.isEnabled()
    QTest.keyClick(chooser.list, Qt.Key.Key_Return)
    assert chooser.isVisible()
    index = chooser.list.currentIndex()
    spoken = chooser.list.model().data(index.siblingAtColumn(0), Qt.ItemDataRole.AccessibleTextRole)
    assert "Does not fit" in spoken
    assert "too shy" in spoken
    # Words, the task and what fits limit the list.
    chooser.words.setText("mt5 apache")
    assert names(chooser) == ["google/mt5-small"]
    assert "converted once" in chooser.marked.sentences.text()
    chooser.words.clear()
    chooser.task.setCurrentIndex(chooser.task.findData("causal_lm"))
    chooser.task.activated.emit(0)
    assert names(chooser) == ["/runs/2026-11-20-0900-poems/model"]
    chooser.fitting.setChecked(True)
    assert chooser.stack.sentence.isVisible()
    chooser.task.setCurrentIndex(0)
    chooser.task.activated.emit(0)
    assert names(chooser) == [MODEL, "google/mt5-small"]
    chooser.list.mark("google/mt5-small")
    QTest.keyClick(chooser.list, Qt.Key.Key_Return)
    assert not chooser.isVisible()
    assert panel.draft.get("model.name_or_path") == "google/mt5-small"


def test_the_hub_is_searched_and_says_why_where_it_cannot_be(qtbot, panel, chooser):
    chooser.show_hub()
    qtbot.waitUntil(lambda: names(chooser) == ["team/base", "team/gated", "team/never"])
    assert chooser.list.model().headerData(5, Qt.Orientation.Horizontal) == "Downloads"
    qtbot.waitUntil(lambda: chooser.marked.download.text() == "Download 340 MB")
    assert "440 MB in 2 files · 100 MB already downloaded" in chooser.marked.facts.text()
    chooser.list.mark("team/gated")
    assert not chooser.marked.download.isEnabled()
    assert not chooser.choose.isEnabled()
    chooser.words.setText("slow")
    qtbot.waitUntil(lambda: chooser.stack.waits)
    chooser.words.setText("offline")  # the newest words win
    qtbot.waitUntil(lambda: not chooser.stack.waits)
    assert chooser.stack.sentence._title.text() == "Can't reach the Hub"
    assert not chooser.choose.isEnabled()
    chooser.sides.button(0).click()
    assert chooser.stack.sentence._title.text() == "No results"
    chooser.stack.sentence.action_clicked.emit()
    assert chooser.sides.checkedId() == HUB


def test_a_download_shows_how_far_it_is_stops_and_is_chosen_at_its_end(qtbot, panel, chooser):
    assert panel.unfinished() == ""
    chooser.show_hub()
    assert not chooser.choose.isEnabled()
    qtbot.waitUntil(lambda: names(chooser) == ["team/base", "team/gated", "team/never"])
    chooser.list.mark("team/never")
    chooser.marked.download.click()
    qtbot.waitUntil(lambda: chooser.progress.words.text() == "110 MB of 440 MB")
    assert chooser.progress.file.text() == "model.safetensors, 100 MB of 430 MB"
    assert panel.sections.model.progress.words.text() == "110 MB of 440 MB"
    assert not chooser.marked.download.isEnabled()
    assert "team/never is still downloading (110 MB of 440 MB)" in panel.unfinished()
    chooser.progress.stop.click()
    assert panel.unfinished() == ""
    assert not chooser.progress.isVisible()
    chooser.list.mark("team/base")
    chooser.marked.download.click()
    qtbot.waitUntil(lambda: panel.draft.get("model.name_or_path") == "team/base")
    assert not chooser.isVisible()


def test_the_section_says_what_is_in_the_way_and_helps(qtbot, panel):
    card = panel.sections.model
    asked: list[str] = []
    panel.tokenizer_requested.connect(asked.append)
    panel.sections.open("model")
    card.embedded.click()
    qtbot.waitUntil(lambda: panel.checks.model is not None)
    card.tokenizer.click()
    assert asked == [MODEL]
    panel.change("task.max_length", 4096)
    assert "exceeds this model's limit of 512" in card.banner.text().replace("\u202f", "")
    card.shorten.click()
    assert panel.draft.get("task.max_length") == 512
    assert not card.banner.isVisible()
    card.choose("/some/nowhere")
    qtbot.waitUntil(card.another.isVisible)
    card.another.click()
    qtbot.waitUntil(lambda: names(panel.model_controller.chooser) == [MODEL, "google/mt5-small"])
    assert panel.model_controller.chooser.fitting.isChecked()


def test_a_folder_or_a_file_of_it_can_be_dropped_on_the_section(panel, tmp_path: Path):
    (tmp_path / "model.safetensors").write_bytes(b"x")
    for path in (tmp_path, tmp_path / "model.safetensors"):
        panel.sections.model.choose("")
        content = QMimeData()
        content.setUrls([QUrl.fromLocalFile(str(path))])
        panel.sections.model.dropEvent(
            QDropEvent(
                QPointF(1, 1),
                Qt.DropAction.CopyAction,
                content,
                Qt.MouseButton.LeftButton,
                Qt.KeyboardModifier.NoModifier,
            )
        )
        assert panel.draft.get("model.name_or_path") == str(tmp_path)


def test_the_tokenizers_size_is_written_as_every_other_count(qtbot):
    facts = ModelFacts()
    qtbot.addWidget(facts)
    facts.show_model(ModelDescription(name="m", found="folder", tokenizer="BPE with 30,522 tokens"))
    assert facts.values["Tokenizer"].text() == "BPE with 30\u202f522 tokens"


def test_a_length_that_nobody_has_set_follows_the_model(qtbot, panel):
    for name, length in (("/models/few-positions", 96), (MODEL, None)):
        panel.sections.model.choose(name)
        qtbot.waitUntil(lambda: panel.checks.model is not None)
        assert panel.draft.get("task.max_length") == length
        assert "task.max_length" not in [one.setting.key for one in panel.controller.differences()]
    panel.change("task.max_length", 100)
    panel.sections.model.choose("/models/few-positions")
    qtbot.waitUntil(lambda: panel.checks.model is not None)
    assert panel.draft.get("task.max_length") == 100
