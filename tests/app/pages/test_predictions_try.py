"""The Try box is tested with a small real helper that knows the real catalog and answers at once."""

import shutil
from pathlib import Path

import pytest
from example_runs import CLASSIFIED, write_run
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from app.pages.predictions.interactive.try_box import TryBox
from app.pages.predictions.page import TRY, Page
from backend.contract.resources import resource
from backend.contract.run.folder import RunFolder
from tests.app.pages.try_steps import ask, choose_task

MODEL = str(resource("demo", "bert-tiny"))


@pytest.fixture
def panel(qtbot, context) -> Page:
    made = Page(context)
    qtbot.addWidget(made)
    made.resize(1100, 700)
    made.show()
    return made


@pytest.fixture
def box(qtbot, try_box: TryBox) -> TryBox:
    """The Try box on a model folder, as a text classifier."""
    try_box.form.show_model(MODEL)
    choose_task(try_box, "text_classification")
    return try_box


def test_the_try_side_is_built_when_somebody_goes_there(qtbot, context):
    panel = Page(context)
    qtbot.addWidget(panel)
    assert not panel.findChildren(TryBox)
    panel.show_tab(TRY)
    assert panel.findChildren(TryBox) == [panel.attempt]
    assert panel.pages.currentWidget() is panel.attempt


def test_fields_are_those_of_the_task(box: TryBox):
    assert list(box.form.fields) == ["text", "text_pair"]
    choose_task(box, "causal_lm")
    assert list(box.form.fields) == ["text"]
    assert box.form.settings is not None
    assert box.form.settings.values()["max_new_tokens"] == 64


def test_a_demo_model_is_asked_what_it_was_trained_for(box: TryBox):
    box.form.show_model(str(resource("demo", "eng-spa-marian")))
    assert box.form.task.currentData() == "seq2seq_lm"
    assert "source" in box.form.fields


def test_what_was_typed_stays_when_the_task_changes(box: TryBox):
    box.form.fill({"text": "the film"})
    choose_task(box, "causal_lm")
    assert box.form.fields["text"].toPlainText() == "the film"


def test_enter_asks_and_the_answer_is_shown_as_a_row(qtbot, box: TryBox):
    field = box.form.fields["text"]
    qtbot.keyClicks(field, "a good film")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(box.kept))
    assert [bar.label for bar in box.card.view.bars.visible_bars()] == ["pos", "neg"]
    assert box.card.facts.text() == f"{Path(MODEL).name} · 12 ms · cpu"


def test_shift_enter_breaks_the_line(qtbot, box: TryBox):
    qtbot.keyClick(box.form.fields["text"], Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert box.form.fields["text"].toPlainText() == "\n"
    assert not box.asking.open


def test_untrained_head_is_said_above_the_answer(qtbot, box: TryBox):
    ask(qtbot, box, text="film")
    assert "its new head is random" in box.card.note.text()


def test_nothing_typed_is_said_at_once(box: TryBox):
    box.ask()
    assert box.form.mistake.text() == "Enter text first."
    assert not box.asking.open


def test_what_the_model_cannot_answer_is_said_in_a_sentence(qtbot, box: TryBox):
    box.form.fill({"text": "nonsense"})
    box.ask()
    qtbot.waitUntil(lambda: bool(box.form.mistake.text()))
    assert box.form.mistake.text() == "No text; enter something else"
    assert not box.form.answer.isHidden()


def test_an_open_question_can_be_taken_back(qtbot, box: TryBox):
    box.form.fill({"text": "never"})
    box.ask()
    assert not box.form.cancel.isHidden()
    box.form.cancel.click()
    assert box.form.cancel.isHidden()
    ask(qtbot, box, text="film")
    assert len(box.kept) == 1


def test_what_was_written_until_it_is_stopped_stays_in_view(qtbot, box: TryBox):
    choose_task(box, "causal_lm")
    box.form.fill({"text": "never"})
    box.ask()
    qtbot.waitUntil(lambda: box.asking.text == " lived a queen")
    box.form.cancel.click()
    assert " lived a queen" in box.card.view.text.plain()
    assert box.card.facts.text() == "Stopped"


def test_last_answers_stay_and_can_be_looked_at_again(qtbot, box: TryBox):
    ask(qtbot, box, text="first")
    ask(qtbot, box, text="second")
    assert [box.answers.list.item(place).text() for place in range(2)] == ["second   →   pos", "first   →   pos"]
    box.answers.list.setCurrentRow(1)
    assert box.card.view.text.plain() == "first"
    assert box.form.fields["text"].toPlainText() == "first"


def test_text_appears_while_it_is_written(qtbot, box: TryBox):
    choose_task(box, "causal_lm")
    ask(qtbot, box, text="Once")
    assert box.asking.text == " lived a queen"
    assert box.card.view.text.plain() == "Once lived a queen"


SAMPLED = {"sample": True, "temperature": 0.8, "top_p": 0.95}


def test_a_language_model_is_tried_by_sampling_unless_its_user_says_otherwise(box: TryBox):
    choose_task(box, "causal_lm")
    assert box.form.question().settings == SAMPLED
    assert box.form.settings is not None
    box.form.settings.set_values({"sample": False})
    assert "sample" not in box.form.question().settings  # the task's default, which is greedy
    choose_task(box, "seq2seq_lm")
    assert box.form.question().settings == {}


def test_only_changed_settings_are_asked_for(box: TryBox):
    choose_task(box, "causal_lm")
    assert box.form.settings is not None
    box.form.settings.set_values({"num_beams": 4})
    assert box.form.question().settings == SAMPLED | {"num_beams": 4}


def test_choices_are_typed_one_a_line(box: TryBox):
    choose_task(box, "multiple_choice")
    box.form.fill({"text": "She", "choices": "runs.\n\nsleeps."})
    assert box.form.question().row == {"text": "She", "choices": ["runs.", "sleeps."]}


def test_a_row_is_tried_under_the_task_and_columns_of_its_run(qtbot, panel: Page, runs: Path):
    run = write_run(runs, "text_classification")
    panel.show_run(str(run))
    panel.browser.table.selectRow(0)
    panel.browser.details.attempt.click()
    qtbot.waitUntil(lambda: bool(panel.attempt.form.fields))
    form = panel.attempt.form
    assert (form.chosen_target(), form.task.isEnabled()) == (str(run), False)
    assert list(form.fields) == ["text"]
    assert form.fields["text"].toPlainText() == CLASSIFIED[0]["text"]


def test_the_box_begins_with_the_run_that_is_shown(qtbot, panel: Page, runs: Path):
    run = write_run(runs, "question_answering")
    panel.show_run(str(run))
    panel.show_tab(TRY)
    qtbot.waitUntil(lambda: list(panel.attempt.form.fields) == ["question", "context"])
    assert panel.attempt.form.chosen_target() == str(run)


def test_code_of_a_model_is_agreed_to_before_it_is_asked(qtbot, box: TryBox):
    box.form.show_model("/models/try-own-code")
    first = box.form.first
    qtbot.waitUntil(first.trust.isVisible)
    assert "its own Python code" in first.facts.text()
    assert "modeling.py" in first.facts.text()
    first.trust.click()
    qtbot.waitUntil(lambda: not first.trust.isVisible())
    assert "Python code" not in first.facts.text()


def test_old_weights_are_converted_from_the_try_box(qtbot, box: TryBox):
    box.form.show_model("/models/old-weights")
    first = box.form.first
    qtbot.waitUntil(first.convert.isVisible)
    assert "converted" in first.facts.text() or "convert them to safetensors once" in first.facts.text()
    first.convert.click()
    assert not first.convert.isVisible()


def test_run_that_goes_on_is_asked_by_its_newest_checkpoint(box: TryBox, context, tmp_path: Path):
    folder = RunFolder(tmp_path / "2026-11-21-1530-going")
    for step in (3, 6):
        folder.checkpoint(step).mkdir(parents=True)
    (folder.path / "spec.yaml").write_text("version: 1\n")
    box.form.show_run(folder.path, "text_classification")
    assert box.form.chosen_target() == str(folder.checkpoint(6))
    folder.checkpoint(9).mkdir()
    shutil.rmtree(folder.checkpoint(6))
    box._offer()
    assert box.form.chosen_target() == str(folder.checkpoint(9))


def test_a_run_that_was_deleted_says_so_and_is_not_asked(qtbot, box: TryBox, context, tmp_path: Path):
    folder = RunFolder(tmp_path / "2026-11-21-1530-gone")
    folder.checkpoint(3).mkdir(parents=True)
    (folder.path / "spec.yaml").write_text("version: 1\ntask: {type: text_classification}\n")
    first = box.form.first
    box.form.show_run(folder.path, "text_classification")
    qtbot.waitUntil(lambda: first.facts.text() == "" and not box.described._calm.isActive())
    shutil.rmtree(folder.path)
    context.library_watcher.changed.emit()
    assert first.facts.text() == "This run was deleted. Choose another model."
    assert first.chosen_whole() == str(folder.path)
    box.ask()
    assert "deleted" in box.form.mistake.text()
    first.show_model(MODEL)
    box._offer()
    assert first.target.findData(str(folder.path)) < 0


def typed(qtbot, box: TryBox, text: str) -> None:
    """Write a model into the field and press Return."""
    line = box.form.first.target.lineEdit()
    line.setFocus()
    line.selectAll()
    qtbot.keyClicks(line, text)
    qtbot.keyClick(line, Qt.Key.Key_Return)


def test_a_folder_typed_and_finished_with_return_stays_when_the_models_are_listed_again(qtbot, box: TryBox, tmp_path):
    typed(qtbot, box, str(tmp_path))
    listed = box.form.first.target.count()
    box._offer()
    assert box.form.first.target.currentText() == str(tmp_path)
    assert box.form.chosen_target() == str(tmp_path)
    typed(qtbot, box, str(tmp_path / "other"))
    assert box.form.first.target.count() == listed


@pytest.mark.parametrize("finish", [Qt.Key.Key_Return, Qt.Key.Key_Tab])
def test_what_was_wrong_with_a_model_goes_when_the_field_is_corrected(qtbot, box: TryBox, finish):
    typed(qtbot, box, "no-such-model")
    box.form.first.show_facts("no-such-model is neither a folder nor cached", is_problem=True)
    box.form.show_mistake("no-such-model cannot be opened")
    line = box.form.first.target.lineEdit()
    line.selectAll()
    qtbot.keyClicks(line, MODEL)
    assert not box.form.first.facts.isVisible()
    qtbot.keyClick(line, finish)
    assert not box.form.first.facts.isVisible()
    assert not box.form.mistake.isVisible()


def test_one_button_asks_and_the_side_of_the_first_answer_says_how_it_stands(box: TryBox):
    box.form.fill({"text": "never"})
    assert [one.text() for one in box.findChildren(QPushButton) if one.isVisible()].count("Answer") == 1
    assert box.card.empty._title.text() == "No answer yet"
    box.ask()
    assert box.card.empty._title.text() == "Answering…"
    box.cancel()
    assert box.card.empty._title.text() == "No answer yet"
