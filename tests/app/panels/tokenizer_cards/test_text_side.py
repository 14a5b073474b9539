"""The side for one text is tested with answers as the helper gives them."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from PySide6.QtGui import QGuiApplication

from app.panels.tokenizer_cards.text_side import Side, counts_of, gaps_between
from app.services.backend_client import ArrowAnswer
from app.services.token_answer import token_table
from backend.contract.queries import Mistake
from backend.contract.tokens import TokenColumns, TokenPiece, Tokens

HELLO = Tokens(
    pieces=[
        TokenPiece(101, "[CLS]", special=True),
        TokenPiece(102, "[SEP]", special=True),
        TokenPiece(2088, "world"),
        TokenPiece(7592, "hello"),
    ],
    columns=TokenColumns(
        piece=[0, 3, 2, 1],
        sequence=[-1, 0, 0, -1],
        start=[0, 0, 6, 0],
        end=[0, 5, 11, 0],
        byte_start=[0, 0, 6, 0],
        byte_end=[0, 5, 11, 0],
        partial=[0, 0, 0, 0],
        word=[-1, 0, 1, -1],
        type=[0, 0, 0, 0],
        mask=[1, 1, 1, 1],
        window=[0, 0, 0, 0],
    ),
    sources=["Hello world"],
    tokens=4,
    characters=11,
    words=2,
)


@pytest.fixture
def side(qtbot, context) -> Side:
    made = Side(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    made.text.blockSignals(True)
    made.text.setPlainText("Hello world")
    made._on_tokens(HELLO)
    return made


def test_tokens_ids_and_counts_are_shown(side: Side):
    assert side.view.count() == 4
    assert side.ids.toPlainText() == "101, 7592, 2088, 102"
    assert side.counts.text().startswith("4 tokens · 11 characters · 2 words · 2.75 characters per token")


def test_a_token_tells_its_id_and_place(side: Side):
    side.view.token_selected.emit(2)
    assert "2088" in side.details.text()
    assert "6–11" in side.details.text()
    side.view.token_hovered.emit(-1)
    assert side.details.text() == "Hover or click a token."


def test_what_belongs_to_no_token_lies_between(side: Side):
    assert gaps_between(token_table(HELLO), "Hello world") == ["", "", " ", ""]


def test_ids_are_copied_whole(qtbot, side: Side):
    with qtbot.waitSignal(side.message) as signal:
        side.copy_ids()
    assert QGuiApplication.clipboard().text() == "101, 7592, 2088, 102"
    assert signal.args == ["success", "Copied 4 ids."]


def test_a_mistake_is_shown_where_it_happened(side: Side):
    side._on_mistake(Mistake("There is no tokenizer in this folder; choose another one."))
    assert not side.banner.isHidden()
    side._on_tokens(HELLO)
    assert side.banner.isHidden()


def test_words_among_the_ids_are_refused_in_one_sentence(qtbot, side: Side):
    side.decode_ids.setText("101, hello")
    qtbot.waitUntil(lambda: "whole numbers" in side.decoded.text())


def test_an_answer_about_ids_that_are_gone_is_not_shown(side: Side):
    side.decode_ids.setText("101")
    side._ask_text()
    side.decode_ids.setText("")
    side._ask_text()
    assert not side._open["decode"].open


def test_stored_truncation_is_mentioned(side: Side):
    stored = "The file stores truncation at 128; it is switched off here."
    side._on_tokens(Tokens(stored_truncation=stored))
    assert side.banner.text() == stored
    assert side.counts.text().startswith("0 tokens")


def test_a_long_answer_comes_as_a_file_and_the_file_goes(side: Side, tmp_path: Path):
    columns = {name: [0] for name in TokenColumns.__struct_fields__} | {"end": [1], "mask": [1]}
    rest = Tokens(pieces=[TokenPiece(5, "a")], sources=["a"], tokens=513, characters=1, words=1, limit=512)
    table = pa.table(columns).replace_schema_metadata({"answer": msgspec.json.encode(rest)})
    path = tmp_path / "answer.arrow"
    with path.open("wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    side._on_tokens(ArrowAnswer(str(path)))
    assert side.ids.toPlainText() == "5"
    assert side.counts.text().endswith("the model reads 512 tokens at most")
    assert not path.exists()


def test_counts_of_nothing_divide_by_nothing():
    assert counts_of(Tokens()).endswith("0 unknown")
