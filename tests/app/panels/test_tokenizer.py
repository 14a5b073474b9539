"""The Tokenizer page is tested with answers as the helper gives them."""

from pathlib import Path

import pyarrow as pa
import pytest
from PySide6.QtGui import QGuiApplication

from app.panels.tokenizer import Panel, counts_of, gaps_between
from app.services.backend_client import ArrowAnswer
from backend.contract.queries import Mistake, Token, Tokens

HELLO = Tokens(
    tokens=[
        Token(101, "[CLS]", "", 0, 0, True),
        Token(7592, "hello", "Hello", 0, 5),
        Token(2088, "world", "world", 6, 11),
        Token(102, "[SEP]", "", 11, 11, True),
    ],
    characters=11,
    words=2,
    unknown=0,
)


@pytest.fixture
def panel(qtbot, context) -> Panel:
    made = Panel(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    made.text.blockSignals(True)
    made.text.setPlainText("Hello world")
    made._on_tokens(HELLO)
    return made


def test_tokens_ids_and_counts_are_shown(panel: Panel):
    assert panel.view.count() == 4
    assert panel.ids.toPlainText() == "101, 7592, 2088, 102"
    assert panel.counts.text().startswith("4 tokens · 11 characters · 2 words · 2.75 characters per token")


def test_a_token_tells_its_id_and_place(panel: Panel):
    panel.view.token_selected.emit(2)
    assert "2088" in panel.details.text()
    assert "6–11" in panel.details.text()
    panel.view.token_hovered.emit(-1)
    assert panel.details.text() == "Hover or click a token."


def test_what_belongs_to_no_token_lies_between(panel: Panel):
    assert gaps_between(HELLO.tokens, "Hello world") == ["", "", " ", ""]


def test_ids_are_copied_whole(qtbot, panel: Panel):
    with qtbot.waitSignal(panel.message) as signal:
        panel.copy_ids()
    assert QGuiApplication.clipboard().text() == "101, 7592, 2088, 102"
    assert signal.args == ["success", "Copied 4 ids."]


def test_a_mistake_is_shown_where_it_happened(panel: Panel):
    panel._on_mistake(Mistake("There is no tokenizer in this folder; choose another one."))
    assert not panel.banner.isHidden()
    panel._on_tokens(HELLO)
    assert panel.banner.isHidden()


def test_words_among_the_ids_are_refused_in_one_sentence(qtbot, panel: Panel):
    panel.decode_ids.setText("101, hello")
    qtbot.waitUntil(lambda: "whole numbers" in panel.decoded.text())


def test_an_answer_about_ids_that_are_gone_is_not_shown(panel: Panel):
    panel.decode_ids.setText("101")
    panel._ask_text()
    panel.decode_ids.setText("")
    panel._ask_text()
    assert not panel._open["decode"].open


def test_the_demo_model_is_offered_and_a_path_may_be_typed(panel: Panel):
    assert Path(panel.tokenizer()).name == "bert-tiny"
    panel.choice.setEditText("/somewhere/model")
    assert panel.tokenizer() == "/somewhere/model"


def test_stored_truncation_is_mentioned(panel: Panel):
    stored = "The file stores truncation at 128; it is switched off here."
    panel._on_tokens(Tokens(tokens=[], characters=0, words=0, unknown=0, stored_truncation=stored))
    assert panel.banner.text() == stored
    assert panel.counts.text().startswith("0 tokens")


def test_a_long_answer_comes_as_a_file_and_the_file_goes(panel: Panel, tmp_path: Path):
    columns = {"id": [5], "piece": ["a"], "text": ["a"], "start": [0], "end": [1], "special": [False]}
    table = pa.table(columns).replace_schema_metadata({"answer": '{"characters": 1, "words": 1, "truncated_at": 512}'})
    path = tmp_path / "answer.arrow"
    with path.open("wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    panel._on_tokens(ArrowAnswer(str(path)))
    assert panel.ids.toPlainText() == "5"
    assert panel.counts.text().endswith("the model reads 512 tokens at most")
    assert not path.exists()


def test_counts_of_nothing_divide_by_nothing():
    assert counts_of(Tokens(tokens=[], characters=0, words=0, unknown=0)).endswith("0 unknown")
