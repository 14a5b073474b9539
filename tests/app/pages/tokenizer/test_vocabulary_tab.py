"""The Vocabulary tab is tested with real answers about nine pieces."""

import csv
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication

from app.pages.tokenizer.ids_and_pieces import MAX_PIECES, DecodedView
from app.pages.tokenizer.vocabulary.vocabulary_tab import VocabularyTab
from backend.contract.tokens.batches import Decoded, DecodedRow

WAYS = {"text": 0, "regex": 1, "id": 2, "script": 3}


@pytest.fixture
def tab(qtbot, answering) -> VocabularyTab:
    made = VocabularyTab(answering)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    return made


@pytest.fixture
def opened(qtbot, tab: VocabularyTab) -> VocabularyTab:
    tab.use("/models/gpt2")
    qtbot.waitUntil(lambda: tab.vocabulary is not None)
    return tab


def pieces(tab: VocabularyTab) -> list[str]:
    return [tab.table.shown_text(line, "piece") for line in range(tab.table.shown_count())]


def search(tab: VocabularyTab, text: str, by: str = "text") -> None:
    tab.search.way.setCurrentIndex(WAYS[by])
    tab.search.way.activated.emit(WAYS[by])
    tab.search.text.setText(text)


def test_all_pieces_are_shown_and_counted(opened: VocabularyTab):
    assert opened.table.shown_count() == 9
    assert opened.table.shown_text(5, "text") == "·ab"
    assert "9 rows · byte-level BPE · 1 special · 5 byte · 1 unused · 2 IDs without a piece" in opened.counts.text()


def test_a_text_is_searched_while_it_is_typed(qtbot, opened: VocabularyTab):
    search(opened, "AB")
    qtbot.waitUntil(lambda: pieces(opened) == ["ab", "Ġab"])
    assert opened.counts.text().startswith("2 of 9 rows")


def test_ids_are_searched(qtbot, opened: VocabularyTab):
    search(opened, "7, 1-2", "id")
    qtbot.waitUntil(lambda: pieces(opened) == ["a", "b", "c"])


def test_a_broken_expression_is_told_until_it_is_mended(qtbot, opened: VocabularyTab):
    search(opened, "(", "regex")
    qtbot.waitUntil(lambda: "is not a valid regular expression" in opened.banner.text())
    opened.search.text.setText("^a.?$")
    qtbot.waitUntil(lambda: pieces(opened) == ["a", "ab"])
    assert not opened.banner.isVisible()


def test_scripts_are_offered_with_their_counts(qtbot, opened: VocabularyTab):
    search(opened, "", "script")
    assert opened.search.script.isVisible()
    assert opened.search.script.itemText(1) == "Latin (7)"
    opened.search.script.setCurrentIndex(1)
    opened.search.script.activated.emit(1)
    qtbot.waitUntil(lambda: len(pieces(opened)) == 7)


def test_non_special_pieces_alone_are_shown(qtbot, opened: VocabularyTab):
    opened.search.type.setCurrentIndex(1)
    opened.search.type.activated.emit(1)
    qtbot.waitUntil(lambda: len(pieces(opened)) == 8)
    assert "<s>" not in pieces(opened)


def test_any_column_sorts(qtbot, opened: VocabularyTab):
    opened.table.sort_requested.emit("length", True)
    qtbot.waitUntil(lambda: pieces(opened)[0] == "[unused0]")


def test_the_newest_search_wins(qtbot, opened: VocabularyTab):
    for text in ("a", "c", "b"):
        opened.search.text.setText(text)
        opened.find_rows()
    qtbot.waitUntil(lambda: pieces(opened) == ["b", "ab", "Ġab"])


def test_a_piece_tells_what_it_is_made_of(qtbot, opened: VocabularyTab):
    opened.table.selectRow(5)
    qtbot.waitUntil(lambda: opened.piece.tree.isVisible())
    root = opened.piece.tree.topLevelItem(0)
    assert [root.text(0), root.text(1), root.child(0).text(0)] == ["·ab", "merge 1", "·"]
    opened.piece.copy()
    assert "\n·ab   merge 1\n  ·\n  ab   merge 0\n    a\n" in QGuiApplication.clipboard().text()
    assert opened.piece.facts["code points"][1].text() == "U+0020 U+0061 U+0062"


def test_a_special_piece_says_what_it_is(qtbot, opened: VocabularyTab):
    opened.table.selectRow(0)
    qtbot.waitUntil(lambda: "special token" in opened.piece.sentence.text())
    assert not opened.piece.tree.isVisible()


def test_merges_are_a_table_of_their_own(qtbot, opened: VocabularyTab):
    opened.search.tables.button(1).click()
    assert [opened.table.shown_text(line, "result") for line in range(2)] == ["ab", "Ġab"]
    opened.table.selectRow(0)
    assert opened.piece.facts["id"][1].text() == "4"
    assert not opened.search.type.isEnabled()


def test_a_tokenizer_without_merges_offers_none(qtbot, opened: VocabularyTab):
    opened.search.tables.button(1).click()
    opened.use("/models/bert")
    qtbot.waitUntil(lambda: opened.vocabulary is not None and opened.vocabulary.kind == "WordPiece")
    assert not opened.search.tables.button(1).isEnabled()
    assert opened.table.shown_count() == 9


def test_a_search_stays_when_another_tokenizer_is_chosen(qtbot, opened: VocabularyTab):
    search(opened, "ab")
    qtbot.waitUntil(lambda: len(pieces(opened)) == 2)
    opened.use("/models/bert")
    qtbot.waitUntil(lambda: opened.counts.text().startswith("2 of 9 pieces · WordPiece"))


def test_ids_and_pieces_are_converted_both_ways(qtbot, opened: VocabularyTab):
    opened.convert.field.setPlainText("1, 5, 99")
    qtbot.waitUntil(lambda: opened.convert.view.marked() == ["a", "Ġab", "?"])
    assert opened.convert.view.plain().startswith("3 IDs · 1 not in the vocabulary")
    opened.convert.field.setPlainText("b zzz")
    qtbot.waitUntil(lambda: opened.convert.view.plain().endswith("2, –"))


def choose_data(qtbot, tab: VocabularyTab, column: str = "text") -> None:
    tab.frequency.data.choose("/data/texts.csv")
    qtbot.waitUntil(lambda: tab.frequency.data.ready)
    tab.frequency.data.column.setCurrentText(column)


def test_counted_pieces_are_sorted_by_frequency(qtbot, opened: VocabularyTab):
    choose_data(qtbot, opened)
    opened.frequency.start.click()
    qtbot.waitUntil(lambda: pieces(opened)[0] == "Ġab")
    assert opened.table.shown_text(0, "frequency") == "50"
    assert "7 pieces occur in texts.csv" in opened.counts.text()


def test_counting_can_be_stopped(qtbot, opened: VocabularyTab):
    choose_data(qtbot, opened, "never")
    opened.frequency.start.click()
    assert opened.frequency.works
    opened.frequency.work.stop.click()
    assert not opened.frequency.works
    assert opened.frequency.start.isEnabled()


def test_a_file_that_cannot_be_read_is_told(qtbot, opened: VocabularyTab):
    opened.frequency.data.choose("/nowhere.csv")
    qtbot.waitUntil(lambda: "there is no such file" in opened.banner.text())
    assert not opened.frequency.start.isEnabled()


def test_an_export_holds_the_shown_rows_or_all(qtbot, opened: VocabularyTab, tmp_path: Path):
    search(opened, "ab")
    qtbot.waitUntil(lambda: len(pieces(opened)) == 2)
    for whole, expected in ((False, 2), (True, 9)):
        output = tmp_path / f"{whole}.csv"
        with qtbot.waitSignal(opened.message) as said:
            opened.export(str(output), whole)
        assert said.args[0] == "success"
        with output.open(encoding="utf-8", newline="") as file:
            assert len(list(csv.DictReader(file))) == expected


def test_what_is_no_tokenizer_is_told_and_may_be_tried_again(qtbot, tab: VocabularyTab):
    tab.use("/nowhere")
    qtbot.waitUntil(lambda: tab.waiting.currentWidget() is tab.waiting.sentence)
    assert "it has no tokenizer" in tab.waiting.sentence._sentence.text()


def test_opening_can_be_stopped(qtbot, tab: VocabularyTab):
    tab.use("/never")
    tab.waiting.stop.click()
    assert "stopped" in tab.waiting.sentence._sentence.text()
    tab.use("/models/gpt2")
    qtbot.waitUntil(lambda: tab.vocabulary is not None)


def test_pieces_of_many_long_lists_are_bounded(qtbot, styled):
    view = DecodedView()
    qtbot.addWidget(view)
    row = DecodedRow(text="a", with_special="a", without_special="a", cleaned="a", pieces=["a"] * 2000)
    view.show_decoded(Decoded([row] * 9))
    assert len(view.marked()) == MAX_PIECES
    assert view.plain().endswith("…\n\nand 6 more lists")
