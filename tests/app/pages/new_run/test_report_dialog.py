"""The report on the data, in its window beside the New run page."""

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel

from app.widgets.plots.label_bars import LabelBars
from backend.contract.resources import resource

TRAIN = str(resource("demo", "sentiment", "train.csv"))


@pytest.fixture
def read(qtbot, panel):
    """A page whose data could be read."""

    def make(path: str = TRAIN):
        panel.sections.data.train.choose(path)
        qtbot.waitUntil(lambda: panel.checks.preview is not None)
        return panel

    return make


@pytest.fixture
def report(qtbot, read):
    """The report on the demo."""
    page = read()
    page.sections.data.report.click()
    qtbot.waitUntil(lambda: page.report.pages.currentIndex() == 1)
    return page.report


def words(widget) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel)]


def test_only_data_that_can_be_read_can_be_reported_on(qtbot, panel, read):
    assert not panel.sections.data.report.isEnabled()
    assert read().sections.data.report.isEnabled()
    panel.sections.data.train.choose("/nowhere/data.csv")
    qtbot.waitUntil(lambda: "data" in panel.checks.problems)
    assert not panel.sections.data.report.isEnabled()


def test_each_split_has_its_counts(report):
    assert {"2\u202f400", "11", "2"} <= set(words(report.view.cards["train"]))
    assert {"600", "7"} <= set(words(report.view.cards["validation"]))
    assert "0.5% · for example train.csv:1045 = train.csv:1771" in words(report.view.cards["train"])


def test_lengths_stand_in_a_table(report):
    shown = words(report.view.cards["train"])
    start = shown.index("text, words")
    assert shown[start + 1 : start + 7] == ["11.9", "10", "26", "36", "53.6", "62"]


def test_labels_are_bars_with_their_ratios(report):
    bars = report.view.cards["train"].findChild(LabelBars).visible_bars()
    assert [(bar.label, bar.probability) for bar in bars] == [
        ("negative  ·  1\u202f202", 0.5008), ("positive  ·  1\u202f198", 0.4992)
    ]  # fmt: skip


def test_what_cannot_be_used_is_told_with_its_reason(report):
    assert "2 rows: the text is empty" in words(report.view.cards["train"])
    assert "text: 2 empty cells" in words(report.view.cards["train"])


def test_a_report_is_copied_as_json_and_as_markdown(report):
    report.json.click()
    assert json.loads(QGuiApplication.clipboard().text())["splits"]["train"]["rows"] == 2400
    report.markdown.click()
    assert QGuiApplication.clipboard().text().startswith("# Data report")
    assert report.said.text() == "Copied as Markdown"


def slow_copy(tmp_path: Path) -> str:
    path = tmp_path / "never.csv"
    path.write_bytes(Path(TRAIN).read_bytes())
    return str(path)


def test_progress_is_shown_while_the_data_is_read(qtbot, read, tmp_path: Path):
    page = read(slow_copy(tmp_path))
    page.sections.data.report.click()
    qtbot.waitUntil(lambda: page.report.words.text() == "Reading the data… 1\u202f200 of 2\u202f400 rows")
    assert not page.report.markdown.isVisible()


@pytest.mark.parametrize("how", ["button", "escape", "close"])
def test_a_report_that_is_not_wanted_any_more_is_cancelled(qtbot, read, tmp_path: Path, how: str):
    page = read(slow_copy(tmp_path))
    page.sections.data.report.click()
    ticket = page.report._ticket
    assert ticket.open
    if how == "button":
        page.report.cancel.click()
    elif how == "escape":
        qtbot.keyClick(page.report, Qt.Key.Key_Escape)
    else:
        page.report.close()
    assert not ticket.open
    assert not page.report.isVisible()


def test_data_that_cannot_be_read_any_more_are_told_and_can_be_tried_again(qtbot, read, tmp_path: Path):
    path = tmp_path / "train.csv"
    path.write_bytes(Path(TRAIN).read_bytes())
    page = read(str(path))
    path.write_bytes(b"")
    page.sections.data.report.click()
    qtbot.waitUntil(lambda: page.report.pages.currentIndex() == 2)
    assert "train.csv is empty; use a file with rows" in words(page.report.failure)
    path.write_bytes(Path(TRAIN).read_bytes())
    page.report.failure._button.click()
    qtbot.waitUntil(lambda: page.report.pages.currentIndex() == 1)


def test_a_whole_spec_is_reported_on_with_its_tokenizer(qtbot, panel):
    panel.demo.click()
    qtbot.waitUntil(lambda: panel.checks.plan is not None)
    assert set(panel.checks.report_arguments()) == {"spec"}
    panel.change("model.name_or_path", "/some/nowhere")
    assert set(panel.checks.report_arguments()) == {"task", "data"}
