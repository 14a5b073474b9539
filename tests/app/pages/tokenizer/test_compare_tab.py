"""The Compare tab is tested with a small real helper process: the first tokenizer takes lines whole, others letters."""

import pytest
from PySide6.QtCore import Qt

from app.pages.tokenizer.compare.compare_tab import CompareTab
from app.widgets.text.token_view import LINE
from backend.contract.tokens.comparison import ComparedToken


@pytest.fixture
def tab(qtbot, answering) -> CompareTab:
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


def tops(tab: CompareTab, column: int, indices: list[int]) -> list[int]:
    return [round(tab.columns.views[column].box_of(index).top()) for index in indices]


def test_two_tokenizers_stand_beside_each_other(tab: CompareTab):
    assert [view.count() for view in tab.columns.views] == [2, 4, 0, 0]
    assert "2 tokens · 2 differ" in tab.columns._counts[0].text()
    assert tab.summary.text().startswith("1 place split differently · 2 lines")


def test_lines_begin_at_the_same_height_however_they_wrap(qtbot, tab: CompareTab):
    tab.text.setPlainText(f"{'x' * 60}\ncd")
    qtbot.waitUntil(lambda: tab.columns.views[1].count() == 62)
    second = tops(tab, 1, [60])
    assert tops(tab, 0, [1]) == second
    assert second[0] > 2 * LINE


def test_many_tokens_are_brought_together_too(qtbot, tab: CompareTab):
    tab.text.setPlainText("\n".join(["x" * 70] * 60))
    qtbot.waitUntil(lambda: tab.columns.views[1].count() == 4200)
    qtbot.waitUntil(lambda: tops(tab, 0, [59]) == tops(tab, 1, [59 * 70]))
    assert tops(tab, 0, [59])[0] > 60 * LINE


def test_nothing_is_left_between_an_unknown_token_and_its_neighbours(tab: CompareTab):
    tokens = [
        ComparedToken(0, 0, 1, "<unk>", "ab", 0, 2, True, True),
        ComparedToken(0, 0, 2, "c", "c", 3, 4, False, True),
    ]
    tab.columns._text = "ab cd"
    assert tab.columns._gaps(tokens) == ["", " "]


def test_a_line_that_has_no_token_keeps_its_place(tab: CompareTab):
    tokens = [ComparedToken(0, line, 1, "a", "a", 0, 1, False, True) for line in (0, 3)]
    assert tab.columns._gaps(tokens) == ["", "\n\n\n"]


def test_other_widths_bring_lines_together_again(qtbot, tab: CompareTab):
    tab.text.setPlainText(f"{'x' * 70}\ncd")
    qtbot.waitUntil(lambda: tab.columns.views[1].count() == 72)
    before = tops(tab, 1, [70])
    tab.resize(740, 700)
    qtbot.waitUntil(lambda: tops(tab, 1, [70]) != before and tops(tab, 0, [1]) == tops(tab, 1, [70]))


def test_no_text_leaves_columns_without_tokens(qtbot, tab: CompareTab):
    tab.text.setPlainText("")
    qtbot.waitUntil(lambda: tab.summary.text().endswith("0 words"))
    assert [view.count() for view in tab.columns.views] == [0, 0, 0, 0]
    tab.text.setPlainText("ab")
    qtbot.waitUntil(lambda: tab.columns.views[1].count() == 2)


def test_names_have_the_room_of_buttons_where_it_is_narrow(tab: CompareTab):
    assert tab.others.choices[0].browse_button.isVisible()
    tab.add.click()
    tab.add.click()
    tab.resize(740, 700)
    assert not any(choice.browse_button.isVisible() for choice in tab.others.choices)
    assert tab.others.choices[0].box.currentText() == "bert-tiny · demo model"


def test_all_columns_scroll_together(qtbot, tab: CompareTab):
    tab.text.setPlainText("\n".join(["abc"] * 100))
    qtbot.waitUntil(lambda: tab.columns.views[1].count() == 300)
    assert tab.columns.bar.isVisible()
    tab.columns.bar.setValue(200)
    assert [view.verticalScrollBar().value() for view in tab.columns.views[:2]] == [200, 200]


def test_a_third_and_a_fourth_may_be_added_and_taken_away(qtbot, tab: CompareTab):
    tab.add.click()
    tab.add.click()
    qtbot.waitUntil(lambda: tab.columns.views[3].count() == 4)
    assert not tab.add.isEnabled()
    tab.others.remove(1)
    qtbot.waitUntil(lambda: tab.columns.views[3].count() == 0)
    assert len(tab.others.tokenizers) == 3
    assert tab.add.isEnabled()


def test_a_token_tells_what_it_is(tab: CompareTab):
    tab.columns.views[1].token_hovered.emit(0)
    assert tab.summary.text() == "a · ID 5 · characters 0–1, split differently elsewhere"
    tab.columns.views[1].token_hovered.emit(-1)
    assert tab.summary.text().startswith("1 place")


def test_what_is_no_tokenizer_is_told_and_nothing_else_is_shown(qtbot, tab: CompareTab):
    tab.others.choices[0].choose("/nowhere")
    qtbot.waitUntil(lambda: "it has no tokenizer" in tab.banner.text())
    assert tab.columns.views[0].count() == 0


def test_typing_ends_no_question_about_the_same_tokenizers(qtbot, tab: CompareTab, monkeypatch: pytest.MonkeyPatch):
    forgotten: list[int] = []
    monkeypatch.setattr(tab._context.client, "forget", forgotten.append)
    for text in ("abc", "abcd", "abcde"):
        tab.text.setPlainText(text)
        tab.compare_text()
    qtbot.waitUntil(lambda: tab.columns.views[1].count() == 5)
    assert forgotten == []


def test_enter_chooses_a_tokenizer_once(qtbot, tab: CompareTab):
    chosen: list[str] = []
    choice = tab.others.choices[0]
    choice.chosen.connect(chosen.append)
    choice.box.setEditText("/models/three")
    qtbot.keyClick(choice.box.lineEdit(), Qt.Key.Key_Return)
    assert chosen == ["/models/three"]


def test_names_tell_tokenizers_of_the_same_folder_name_apart(tab: CompareTab):
    tab.use("/first/model")
    tab.others.choices[0].choose("/second/model")
    assert tab.others.names == ["…/first/model", "…/second/model"]


def choose_data(qtbot, tab: CompareTab, column: str = "text") -> None:
    tab.show_mode(1)
    tab.data.choose("/data/texts.csv")
    qtbot.waitUntil(lambda: tab.data.ready)
    tab.data.column.setCurrentText(column)


def test_a_column_of_data_is_compared_as_table_and_plot(qtbot, tab: CompareTab):
    choose_data(qtbot, tab)
    assert tab.data.language.currentText() == "lang"
    tab.start.click()
    qtbot.waitUntil(lambda: tab.waiting.currentWidget() is tab.compared)
    assert tab.compared.table.shown_count() == 4
    assert tab.compared.table.shown_text(1, "per_word") == "2.500"
    assert tab.compared.bars.accessibleDescription().startswith("All: one 1.250, ")


def test_lengths_are_a_plot_of_their_own(qtbot, tab: CompareTab):
    choose_data(qtbot, tab)
    tab.start.click()
    qtbot.waitUntil(lambda: tab.waiting.currentWidget() is tab.compared)
    tab.compared.measure.button(3).click()
    assert tab.compared.plots.currentWidget() is tab.compared.lengths
    assert [len(series) for series in tab.compared.lengths.series.values()] == [2, 2, 0, 0]


def test_the_table_is_sorted_by_a_column(qtbot, tab: CompareTab):
    choose_data(qtbot, tab)
    tab.start.click()
    qtbot.waitUntil(lambda: tab.waiting.currentWidget() is tab.compared)
    tab.compared.table.sort_requested.emit("per_row", True)
    assert tab.compared.table.shown_text(0, "per_row") == "6.667"


def test_a_comparison_on_data_can_be_stopped(qtbot, tab: CompareTab):
    choose_data(qtbot, tab, "never")
    tab.start.click()
    assert not tab.start.isEnabled()
    tab.waiting.stop.click()
    assert "stopped" in tab.waiting.sentence._sentence.text()
    assert tab.start.isEnabled()


def test_other_tokenizers_make_the_result_void(qtbot, tab: CompareTab):
    choose_data(qtbot, tab)
    tab.start.click()
    qtbot.waitUntil(lambda: tab.waiting.currentWidget() is tab.compared)
    tab.use("/models/two")
    assert tab.waiting.currentWidget() is tab.nothing


def test_the_data_of_the_new_run_is_taken_as_a_whole(qtbot, tab: CompareTab):
    data = {"source": "files", "train": "/data/a.csv", "validation": 0.1, "separator": ";", "columns": {"text": "id"}}
    tab.draft_wanted.connect(lambda: tab.show_draft({"data": data}, ""))
    tab.show_mode(1)
    tab.data.of_run.click()
    qtbot.waitUntil(lambda: tab.data.ready)
    assert tab.data.data == {"source": "files", "train": "/data/a.csv", "separator": ";"}
    assert (tab.data.line.text(), tab.data.column.currentText()) == ("New run · a.csv", "id")
    tab.data.line.editingFinished.emit()
    assert tab.data.ready


def test_a_new_run_without_data_says_so(tab: CompareTab):
    told: list[tuple[str, str]] = []
    tab.message.connect(lambda *words: told.append(words))
    tab.data.of_run.click()
    assert told == [("info", "The new run has no data yet; choose some there or here.")]
