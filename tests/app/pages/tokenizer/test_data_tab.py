"""The tab of data as a training sees it, with recorded answers of a small real helper."""

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt

from app.main_window import MainWindow
from app.pages.tokenizer.data.data_tab import LENGTHS, NOTHING, ROWS, DataTab
from app.pages.tokenizer.page import TABS

SPEC: dict[str, Any] = {"name": "sentiment", "task": {"type": "text_classification"}}


@pytest.fixture
def tab(qtbot, training_helped) -> DataTab:
    made = DataTab(training_helped)
    qtbot.addWidget(made)
    made.resize(1020, 660)
    made.show()
    return made


@pytest.fixture
def measured(qtbot, tab: DataTab) -> DataTab:
    with qtbot.waitSignal(tab.lengths.measured):
        tab.show_draft(SPEC, "")
    return tab


def test_without_a_draft_it_says_what_to_do(qtbot, tab: DataTab):
    tab.on_shown()
    assert tab.pages.currentIndex() == NOTHING
    tab.show_draft(SPEC, "Choose a model.")
    assert tab.pages.currentIndex() == NOTHING
    with qtbot.waitSignal(tab.new_run_requested):
        tab.nothing.action_clicked.emit()


def test_a_better_limit_is_handed_over(qtbot, measured: DataTab):
    card = measured.lengths.lengths
    assert card.sentence.text() == "20 % of the rows lose text at 24 tokens; 64 loses 0.1 %."
    with qtbot.waitSignal(measured.settings_chosen) as chosen:
        qtbot.mouseClick(card.use, Qt.MouseButton.LeftButton)
    assert chosen.args == [{"task.max_length": 64}]


def test_a_run_offers_no_settings(qtbot, measured: DataTab):
    measured.bar.choose("/runs/old")
    with qtbot.waitSignal(measured.lengths.measured):
        measured.bar.changed.emit()
    assert measured.lengths.lengths.use.isHidden()
    assert not measured.lengths.limits._can_set


def test_any_usual_limit_can_be_set(qtbot, measured: DataTab):
    table = measured.lengths.limits.table
    place = next(row for row in range(table.shown_count()) if table.shown_text(row, "limit") == "32")
    with qtbot.waitSignal(measured.settings_chosen) as chosen:
        table.activated.emit(table.model().index(place, 1))
    assert chosen.args == [{"task.max_length": 32}]


def test_padding_of_a_better_rule_can_be_chosen(qtbot, measured: DataTab):
    lengths = measured.lengths.answer
    assert lengths is not None
    rules = [
        type(rule)(**{**{n: getattr(rule, n) for n in rule.__struct_fields__}, "chosen": rule.name == "random"})
        for rule in lengths.padding
    ]
    other = type(lengths)(**{**{n: getattr(lengths, n) for n in lengths.__struct_fields__}, "padding": rules})
    measured.lengths.padding.show_lengths(other, can_set=True)
    [button] = [
        one
        for one in measured.lengths.padding.findChildren(type(measured.lengths.lengths.use))
        if one.text() == "Use this"
    ]
    with qtbot.waitSignal(measured.settings_chosen) as chosen:
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert chosen.args == [{"training.length_buckets": True}]


def test_the_same_draft_is_not_measured_again(qtbot, measured: DataTab):
    asked = measured._context.client._number
    measured.show_draft(dict(SPEC), "")
    measured.on_shown()
    assert measured._context.client._number == asked
    with qtbot.waitSignal(measured.lengths.measured):
        measured.show_draft({**SPEC, "name": "other"}, "")


def test_a_mistake_stands_in_the_place_of_the_answer(qtbot, tab: DataTab):
    tab.show_draft({**SPEC, "name": "broken"}, "")
    qtbot.waitUntil(lambda: tab.lengths.currentIndex() == 2)
    assert "There is no such file" in tab.lengths.sentence._sentence.text()


def test_work_that_goes_on_can_be_stopped_and_taken_up(qtbot, tab: DataTab):
    tab.show_draft({**SPEC, "name": "never"}, "")
    assert tab.lengths.waits
    qtbot.mouseClick(tab.lengths.stop, Qt.MouseButton.LeftButton)
    assert not tab.lengths._question.open
    tab.lengths.again.emit()
    assert tab.lengths.waits


def test_rows_of_a_step_and_their_tokens_are_shown(qtbot, measured: DataTab):
    measured.show_page(ROWS)
    card = measured.rows.feature_card
    qtbot.waitUntil(lambda: card.feature is not None)
    assert measured.rows.said.text().startswith("Epoch 1 · ")
    assert card.views[0].marked()[0] == "[CLS]"
    card.views[0].mark_hovered.emit(0)
    assert "ID 101" in card.details.text()
    assert "attention_mask 1" in card.details.text()


def test_another_step_is_asked_for(qtbot, measured: DataTab):
    measured.show_page(ROWS)
    qtbot.waitUntil(lambda: measured.rows.answer is not None)
    with qtbot.waitSignal(measured.rows.answered) as answered:
        measured.rows.number.setValue(7)
    assert answered.args[0].step.step == 7


def test_turning_steps_over_ends_no_question(qtbot, measured: DataTab, monkeypatch: pytest.MonkeyPatch):
    measured.show_page(ROWS)
    qtbot.waitUntil(lambda: measured.rows.feature_card.feature is not None)
    forgotten: list[int] = []
    monkeypatch.setattr(measured._context.client, "forget", forgotten.append)
    for step in (2, 3, 4):
        measured.rows.number.setValue(step)
    for line in (1, 0):
        measured.rows.table.selectRow(line)
    qtbot.waitUntil(lambda: measured.rows.answer.step.step == 4 and not measured.rows._feature.open)
    assert forgotten == []


def test_a_click_on_a_spike_leads_to_its_rows(qtbot, tab: DataTab):
    with qtbot.waitSignal(tab.rows.answered) as answered:
        tab.show_step("/runs/old", 41)
    assert answered.args[0].step.step == 41
    assert tab.rows.number.value() == 41
    assert tab.bar.subject.run == "/runs/old"
    assert tab.pages.currentIndex() == ROWS


def test_a_row_with_unknown_tokens_leads_to_its_features(qtbot, measured: DataTab):
    with qtbot.waitSignal(measured.rows.answered) as answered:
        measured.lengths.row_chosen.emit(12)
    assert answered.args[0].step is None
    assert measured.rows._arguments["row"] == 12


def test_splits_that_the_data_has_are_offered(measured: DataTab):
    box = measured.bar.split_box
    assert [box.itemData(place) for place in range(box.count())] == ["train", "validation"]


@pytest.mark.parametrize("size", [(748, 500), (1020, 660), (1660, 940)])
@pytest.mark.parametrize("place", [LENGTHS, ROWS])
def test_nothing_is_wider_than_the_page(qtbot, measured: DataTab, size: tuple[int, int], place: int):
    measured.show_page(place)
    measured.resize(*size)
    qtbot.waitUntil(lambda: not measured.rows.waits)
    assert measured.minimumSizeHint().width() <= size[0]
    assert measured.minimumSizeHint().height() <= size[1]


def test_the_window_leads_from_new_run_and_from_a_run(qtbot, training_helped, monkeypatch: pytest.MonkeyPatch):
    window = MainWindow(training_helped.preferences)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.context = training_helped
    window.show()
    new_run = window.show_page("new_run")
    monkeypatch.setattr(new_run, "offered", lambda: (SPEC, ""))
    new_run.data_requested.emit()
    tokenizer = window.panel("tokenizer")
    place = [name for _, name, _ in TABS].index("data.data_tab.DataTab")
    assert tokenizer.titles.checkedId() == place
    assert tokenizer.choice.isHidden()
    qtbot.waitUntil(lambda: tokenizer.tab().lengths.answer is not None)
    run = window.show_page("run")
    run.rows_requested.emit(str(Path("/runs/old")), 12)
    qtbot.waitUntil(lambda: tokenizer.tab().rows.answer is not None)
    assert tokenizer.tab().rows.answer.step.step == 12
    tokenizer.settings_chosen.emit({"task.max_length": 64})
    assert new_run.draft.get("task.max_length") == 64
    assert window.pages.currentWidget() is new_run
