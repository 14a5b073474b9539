"""Two models on the same input, the list of answers, and the file that rows are added to; with a small real helper."""

import json
from pathlib import Path

import pytest
from example_runs import CLASSIFIED, write_run
from PySide6.QtWidgets import QFileDialog

from app.pages.predictions.interactive.try_box import TryBox
from app.widgets.text.chat_editor import TypedChat
from backend.contract.resources import resource
from tests.app.pages.try_steps import ask, choose_task

MODEL, OTHER = str(resource("demo", "bert-tiny")), str(resource("demo", "austen-gpt2"))


@pytest.fixture
def box(qtbot, try_box: TryBox) -> TryBox:
    """The Try box on a model folder, as a text classifier."""
    try_box.form.show_model(MODEL)
    choose_task(try_box, "text_classification")
    return try_box


def test_two_models_answer_the_same_and_the_difference_is_said(qtbot, box: TryBox):
    box.form.also.click()
    box.form.second.show_model(OTHER)
    ask(qtbot, box, text="surer")
    view = box.card.compared
    assert view.sentence.text() == "Both predict “pos”; austen-gpt2 is more confident by 10.0 points."
    assert [group.title for group in view.bars._groups] == ["pos · +10.0 points", "neg · −10.0 points"]
    assert box.answers.list.item(0).text() == "surer   →   pos   →   pos"
    ask(qtbot, box, text="otherwise")
    assert view.sentence.text() == "They differ: bert-tiny predicts “pos”, austen-gpt2 predicts “neg”."
    assert [text.outlined() for text in view.texts] == [["pos"], ["neg"]]


def test_words_that_differ_are_marked_in_texts(qtbot, box: TryBox):
    choose_task(box, "causal_lm")
    box.form.also.click()
    box.form.second.show_model(OTHER)
    assert box.form.writing._second is None  # it waits until it is wished
    box.form.writing.own.setChecked(True)
    box.form.writing._second.set_values({"num_beams": 3})
    assert [one.settings.get("num_beams") for one in box.form.questions()] == [None, 3]
    ask(qtbot, box, text="Once")
    assert [text.outlined() for text in box.card.compared.texts] == [["queen"], ["king"]]


def test_models_change_places(box: TryBox):
    box.form.also.click()
    box.form.second.show_model(OTHER)
    box.form.swap()
    assert [choice.chosen() for choice in box.form.choices()] == [OTHER, MODEL]


def test_second_model_of_another_task_is_refused(box: TryBox, runs: Path):
    run = write_run(runs, "question_answering")
    box.form.also.click()
    box.form.second.show_run(str(run))
    box.form.fill({"text": "film"})
    box.ask()
    assert (
        "was trained for question answering, but the first model was trained for text classification"
        in box.form.mistake.text()
    )


def test_answer_of_the_first_stays_where_the_second_fails(qtbot, box: TryBox):
    box.form.also.click()
    box.form.second.show_model("nowhere")
    ask(qtbot, box, text="film")
    assert box.form.mistake.text() == "nowhere: There is no model nowhere; choose a folder"
    assert box.kept[0].beside is None


def test_checkpoint_of_a_run_is_asked(box: TryBox, runs: Path):
    run = write_run(runs, "text_classification")
    for step in (8, 16):
        (run / "checkpoints" / f"step-{step:06d}").mkdir(parents=True)
    (run / "model").mkdir()
    (run / "model" / "config.json").write_text("{}", encoding="utf-8")
    box.form.show_run(run, "text_classification")
    choice = box.form.first
    assert [choice.checkpoint.itemText(n) for n in range(3)] == ["Final model", "Step 16", "Step 8"]
    choice.checkpoint.setCurrentIndex(1)
    assert box.form.question().target == str(run / "checkpoints" / "step-000016")
    assert choice.name == f"{run.name} · step 16"


def test_example_is_a_row_of_the_run_and_else_of_the_task(box: TryBox, runs: Path):
    box.form.example.click()
    assert box.form.parts.row()["text"] == "Funny, warm and beautifully played."
    box.form.show_run(write_run(runs, "text_classification"), "text_classification")
    box.form.example.click()
    assert box.form.parts.row() == {"text": CLASSIFIED[0]["text"]}


def test_answers_are_found_asked_again_and_taken_away(qtbot, box: TryBox):
    ask(qtbot, box, text="first")
    ask(qtbot, box, text="second")
    box.answers.search.setText("FIRST")
    assert [box.answers.list.item(place).isHidden() for place in range(2)] == [True, False]
    box.answers.list.setCurrentRow(1)
    box.answers.again.click()
    qtbot.waitUntil(lambda: len(box.kept) == 3)
    assert box.kept[0].question.row == {"text": "first"}
    box.answers.search.clear()
    box.answers.delete.click()
    assert [one.question.row["text"] for one in box.kept] == ["second", "first"]


def test_answered_row_goes_into_a_file_with_the_right_answer(qtbot, box: TryBox, tmp_path: Path):
    path = tmp_path / "mine.csv"
    ask(qtbot, box, text="=film")
    box.collecting.choose_file(str(path))
    box.collecting.bar.right.setEditText("neg")
    box.collecting.add_row()
    qtbot.waitUntil(lambda: bool(box.kept[0].added))
    assert path.read_text(encoding="utf-8").splitlines() == ["text,prediction,label", "=film,pos,neg"]
    assert box.answers.list.item(0).text().endswith("✓")
    assert box._context.preferences.rows_file == str(path)


def test_file_with_other_columns_is_refused_in_a_sentence(qtbot, box: TryBox, tmp_path: Path, monkeypatch):
    path = tmp_path / "other.csv"
    path.write_text("id,note\n1,x\n", encoding="utf-8")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (str(path), ""))
    ask(qtbot, box, text="film")
    with qtbot.waitSignal(box.message) as said:
        box.collecting.bar.add_button.click()
    kind, sentence = said.args
    assert kind == "error"
    assert sentence.startswith("other.csv has no column 'text' (it has id, note)")
    assert path.read_text(encoding="utf-8") == "id,note\n1,x\n"


def test_open_model_is_shown_and_let_go(qtbot, box: TryBox):
    ask(qtbot, box, text="film")
    qtbot.waitUntil(lambda: box.card.open.text() == "Loaded: bert-tiny (cpu)")
    box.card.release.click()
    qtbot.waitUntil(lambda: not box.card.release.isVisible())


def test_head_that_was_never_trained_is_said_before_asking(qtbot, box: TryBox):
    choose_task(box, "question_answering")
    qtbot.waitUntil(lambda: "Its answers will be random" in box.form.first.facts.text())
    box.form.show_model("nowhere")
    qtbot.waitUntil(lambda: box.form.first.facts.text() == "There is no model nowhere; choose a folder")


def test_chat_is_typed_as_messages_and_goes_on(qtbot):
    chat = TypedChat("Messages")
    qtbot.addWidget(chat)
    chat.setPlainText("Hello")
    assert json.loads(chat.toPlainText()) == [{"role": "user", "content": "Hello"}]
    chat.go_on("Hi!")
    chat.rows[-1].content.setPlainText("And now?")
    assert [role for role, _ in chat.messages()] == ["user", "assistant", "user"]
    told = chat.toPlainText()
    chat.setPlainText(told)
    assert chat.toPlainText() == told
    with qtbot.waitSignal(chat.entered):
        qtbot.keyClick(chat.rows[-1].content, "\r")
