"""The Compare side is tested with a small real helper process: the first tokenizer takes lines whole, others letters."""

import pytest
from PySide6.QtCore import Qt

from app.pages.tokenizer.compare.compare_tab import CompareTab
from app.widgets.text.token_view import LINE
from backend.contract.tokens.comparison import ComparedToken


@pytest.fixture
def side(qtbot, answering) -> CompareTab:
    made = CompareTab(answering)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    made.text.blockSignals(True)
    made.text.setPlainText("ab\ncd")
    made.text.blockSignals(False)
    made.use("/models/one")
    qtbot.waitUntil(lambda: made.columns.views[0].count() == 2)
    return made


def tops(side: CompareTab, column: int, indices: list[int]) -> list[int]:
    return [round(side.columns.views[column].box_of(index).top()) for index in indices]


def test_two_tokenizers_stand_beside_each_other(side: CompareTab):
    assert [view.count() for view in side.columns.views] == [2, 4, 0, 0]
    assert "2 tokens · 2 differ" in side.columns._counts[0].text()
    assert side.summary.text().startswith("1 place cut differently · 2 lines")


def test_lines_begin_at_the_same_height_however_they_wrap(qtbot, side: CompareTab):
    side.text.setPlainText(f"{'x' * 60}\ncd")
    qtbot.waitUntil(lambda: side.columns.views[1].count() == 62)
    second = tops(side, 1, [60])
    assert tops(side, 0, [1]) == second
    assert second[0] > 2 * LINE


def test_many_tokens_are_brought_together_too(qtbot, side: CompareTab):
    side.text.setPlainText("\n".join(["x" * 70] * 60))
    qtbot.waitUntil(lambda: side.columns.views[1].count() == 4200)
    qtbot.waitUntil(lambda: tops(side, 0, [59]) == tops(side, 1, [59 * 70]))
    assert tops(side, 0, [59])[0] > 60 * LINE


def test_nothing_is_left_between_an_unknown_token_and_its_neighbours(side: CompareTab):
    tokens = [
        ComparedToken(0, 0, 1, "<unk>", "ab", 0, 2, True, True),
        ComparedToken(0, 0, 2, "c", "c", 3, 4, False, True),
    ]
    side.columns._text = "ab cd"
    assert side.columns._gaps(tokens, [0]) == ["", " "]


def test_other_widths_bring_lines_together_again(qtbot, side: CompareTab):
    side.text.setPlainText(f"{'x' * 60}\ncd")
    qtbot.waitUntil(lambda: side.columns.views[1].count() == 62)
    before = tops(side, 1, [60])
    side.resize(740, 700)
    qtbot.waitUntil(lambda: tops(side, 1, [60]) != before and tops(side, 0, [1]) == tops(side, 1, [60]))


def test_no_text_leaves_columns_without_tokens(qtbot, side: CompareTab):
    side.text.setPlainText("")
    qtbot.waitUntil(lambda: side.summary.text().endswith("0 words"))
    assert [view.count() for view in side.columns.views] == [0, 0, 0, 0]
    side.text.setPlainText("ab")
    qtbot.waitUntil(lambda: side.columns.views[1].count() == 2)


def test_names_have_the_room_of_buttons_where_it_is_narrow(side: CompareTab):
    assert side.others.choices[0].browse_button.isVisible()
    side.add.click()
    side.add.click()
    side.resize(740, 700)
    assert not any(choice.browse_button.isVisible() for choice in side.others.choices)
    assert side.others.choices[0].box.currentText() == "bert-tiny · demo model"


def test_all_columns_scroll_together(qtbot, side: CompareTab):
    side.text.setPlainText("\n".join(["abc"] * 100))
    qtbot.waitUntil(lambda: side.columns.views[1].count() == 300)
    assert side.columns.bar.isVisible()
    side.columns.bar.setValue(200)
    assert [view.verticalScrollBar().value() for view in side.columns.views[:2]] == [200, 200]


def test_a_third_and_a_fourth_may_be_added_and_taken_away(qtbot, side: CompareTab):
    side.add.click()
    side.add.click()
    qtbot.waitUntil(lambda: side.columns.views[3].count() == 4)
    assert not side.add.isEnabled()
    side.others.remove(1)
    qtbot.waitUntil(lambda: side.columns.views[3].count() == 0)
    assert len(side.others.tokenizers) == 3
    assert side.add.isEnabled()


def test_a_token_tells_what_it_is(side: CompareTab):
    side.columns.views[1].token_hovered.emit(0)
    assert side.summary.text() == "a · id 5 · characters 0–1, cut otherwise elsewhere"
    side.columns.views[1].token_hovered.emit(-1)
    assert side.summary.text().startswith("1 place")


def test_what_is_no_tokenizer_is_told_and_nothing_else_is_shown(qtbot, side: CompareTab):
    side.others.choices[0].choose("/nowhere")
    qtbot.waitUntil(lambda: "there is no tokenizer in it" in side.banner.text())
    assert side.columns.views[0].count() == 0


def test_typing_ends_no_question_about_the_same_tokenizers(qtbot, side: CompareTab, monkeypatch: pytest.MonkeyPatch):
    forgotten: list[int] = []
    monkeypatch.setattr(side._context.client, "forget", forgotten.append)
    for text in ("abc", "abcd", "abcde"):
        side.text.setPlainText(text)
        side.compare_text()
    qtbot.waitUntil(lambda: side.columns.views[1].count() == 5)
    assert forgotten == []


def test_enter_chooses_a_tokenizer_once(qtbot, side: CompareTab):
    chosen: list[str] = []
    choice = side.others.choices[0]
    choice.chosen.connect(chosen.append)
    choice.box.setEditText("/models/three")
    qtbot.keyClick(choice.box.lineEdit(), Qt.Key.Key_Return)
    assert chosen == ["/models/three"]


def test_names_tell_tokenizers_of_the_same_folder_name_apart(side: CompareTab):
    side.use("/first/model")
    side.others.choices[0].choose("/second/model")
    assert side.others.names == ["…/first/model", "…/second/model"]


def choose_data(qtbot, side: CompareTab, column: str = "text") -> None:
    side.show_mode(1)
    side.data.choose("/data/texts.csv")
    qtbot.waitUntil(lambda: side.data.ready)
    side.data.column.setCurrentText(column)


def test_a_column_of_data_is_compared_as_table_and_plot(qtbot, side: CompareTab):
    choose_data(qtbot, side)
    assert side.data.language.currentText() == "lang"
    side.start.click()
    qtbot.waitUntil(lambda: side.waiting.currentWidget() is side.compared)
    assert side.compared.table.shown_count() == 4
    assert side.compared.table.shown_text(1, "per_word") == "2.500"
    assert side.compared.bars.accessibleDescription().startswith("All: one 1.25")


def test_lengths_are_a_plot_of_their_own(qtbot, side: CompareTab):
    choose_data(qtbot, side)
    side.start.click()
    qtbot.waitUntil(lambda: side.waiting.currentWidget() is side.compared)
    side.compared.measure.button(3).click()
    assert side.compared.plots.currentWidget() is side.compared.lengths
    assert [len(series) for series in side.compared.lengths.series.values()] == [2, 2, 0, 0]


def test_the_table_is_sorted_by_a_column(qtbot, side: CompareTab):
    choose_data(qtbot, side)
    side.start.click()
    qtbot.waitUntil(lambda: side.waiting.currentWidget() is side.compared)
    side.compared.table.sort_requested.emit("per_row", True)
    assert side.compared.table.shown_text(0, "per_row") == "6.667"


def test_a_comparison_on_data_can_be_stopped(qtbot, side: CompareTab):
    choose_data(qtbot, side, "never")
    side.start.click()
    assert not side.start.isEnabled()
    side.waiting.stop.click()
    assert "stopped" in side.waiting.sentence._sentence.text()
    assert side.start.isEnabled()


def test_other_tokenizers_make_the_result_void(qtbot, side: CompareTab):
    choose_data(qtbot, side)
    side.start.click()
    qtbot.waitUntil(lambda: side.waiting.currentWidget() is side.compared)
    side.use("/models/two")
    assert side.waiting.currentWidget() is side.nothing


def test_the_data_of_the_new_run_is_taken_as_a_whole(qtbot, side: CompareTab):
    data = {"source": "files", "train": "/data/a.csv", "validation": 0.1, "separator": ";", "columns": {"text": "id"}}
    side.draft_wanted.connect(lambda: side.show_draft({"data": data}, ""))
    side.show_mode(1)
    side.data.of_run.click()
    qtbot.waitUntil(lambda: side.data.ready)
    assert side.data.data == {"source": "files", "train": "/data/a.csv", "separator": ";"}
    assert (side.data.line.text(), side.data.column.currentText()) == ("New run · a.csv", "id")
    side.data.line.editingFinished.emit()
    assert side.data.ready


def test_a_new_run_without_data_says_so(side: CompareTab):
    told: list[tuple[str, str]] = []
    side.message.connect(lambda *words: told.append(words))
    side.data.of_run.click()
    assert told == [("info", "The new run has no data yet; choose it there, or here.")]
