"""The tab for one text is tested with answers as the helper gives them."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication, QTextCursor

from app.pages.tokenizer.text import text_input, tokens_card
from app.pages.tokenizer.text.text_tab import TextTab
from app.services.backend_client import ArrowAnswer
from backend.contract.rpc.protocol import ErrorReply, Progress
from backend.contract.tokens.batches import Decoded, DecodedRow
from backend.contract.tokens.steps import TokenizerSteps
from backend.contract.tokens.tokens import TokenColumns, TokenPiece
from tests.app.example_tokens import HELLO, answer
from tests.app.pages.tokenizer.text_tab_questions import asked


def test_tokens_ids_and_counts_are_shown(text_tab: TextTab):
    assert text_tab.view.count() == 4
    text_tab.tokens.show_view(tokens_card.IDS)
    assert text_tab.ids.toPlainText() == "101, 7592, 2088, 102"
    assert text_tab.counts.text().startswith("4 tokens · 11 characters · 2 words")
    assert text_tab.tokens.limit.text() == "1% of 512"


def test_a_token_tells_its_id_and_place(text_tab: TextTab):
    text_tab.view._choose(2)
    assert text_tab.token.values()["ID"] == "2088"
    assert text_tab.token.values()["Characters"] == "6–11"
    assert text_tab.token.place.text() == "3 of 4"


def test_what_is_chosen_is_told_again_when_the_mouse_leaves(text_tab: TextTab):
    text_tab.view._choose(2)
    text_tab.view.token_hovered.emit(1)
    assert text_tab.token.values()["ID"] == "7592"
    text_tab.view.token_hovered.emit(-1)
    assert text_tab.token.values()["ID"] == "2088"


def test_choosing_tokens_selects_their_text(text_tab: TextTab):
    text_tab.view._choose(1)
    text_tab.view._choose(2, extend=True)
    assert text_tab.text.textCursor().selectedText() == "Hello world"


def test_selecting_text_selects_its_tokens(text_tab: TextTab):
    cursor = text_tab.text.textCursor()
    cursor.setPosition(7)
    cursor.setPosition(9, QTextCursor.MoveMode.KeepAnchor)
    text_tab.text.setTextCursor(cursor)
    assert text_tab.view.selected() == (2, 3)
    assert text_tab.token.values()["ID"] == "2088"


def test_ids_are_copied_whole(qtbot, text_tab: TextTab):
    with qtbot.waitSignal(text_tab.message) as signal:
        text_tab.tokens.copy_ids()
    assert QGuiApplication.clipboard().text() == "101, 7592, 2088, 102"
    assert signal.args == ["success", "Copied 4 IDs."]


def test_a_mistake_leaves_nothing_that_would_mislead(text_tab: TextTab):
    text_tab._on_mistake(ErrorReply("There is no tokenizer in this folder; choose another one."))
    assert not text_tab.banner.isHidden()
    assert text_tab.view.count() == 0
    assert text_tab.counts.text() == ""
    text_tab._on_tokens(HELLO)
    assert text_tab.banner.isHidden()


def test_a_long_answer_comes_as_a_file_and_the_file_goes(qtbot, text_tab: TextTab, tmp_path: Path):
    columns = {name: pa.array(getattr(HELLO.columns, name)) for name in TokenColumns.__struct_fields__}
    rest = msgspec.json.encode(msgspec.structs.replace(HELLO, columns=TokenColumns()))
    batch = pa.record_batch(columns)
    path = tmp_path / "answer.arrow"
    with path.open("wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch.slice(0, 0), custom_metadata={"answer": rest})
    text_tab._on_tokens(ArrowAnswer(str(path)))
    assert text_tab.view.shown_text(2) == "world"
    assert not path.exists()


# Ways of input


@pytest.mark.parametrize(
    ("mode", "query", "expected"),
    [
        (text_input.TEXT, "tokenize", {"text": "Hello world"}),
        (text_input.PAIR, "tokenize", {"text": "Hello world", "pair": text_input.SECOND}),
        (text_input.WORDS, "tokenize", {"pre_split": True}),
        (text_input.BATCH, "tokenize_batch", {"texts": text_input.SEVERAL.split("\n"), "padding": "longest"}),
        (text_input.IDS, "decode", {"ids": [[101, 7592, 2088, 102]]}),
    ],
)
def test_each_way_of_input_asks_its_question(text_tab: TextTab, monkeypatch, mode, query, expected):
    found = asked(text_tab, monkeypatch)
    text_tab.input.set_mode(mode)
    name, arguments = found[-1]
    arguments = {"padding": "longest", **arguments} if query == "tokenize_batch" else arguments
    assert name == query
    assert {key: arguments[key] for key in expected} == expected


def test_a_conversation_is_asked_about_with_its_roles(text_tab: TextTab, monkeypatch):
    found = asked(text_tab, monkeypatch)
    text_tab.input.set_mode(text_input.CHAT)
    text_tab.input.chat.generation_prompt.setChecked(True)
    text_tab._tokens.stop()
    text_tab.ask()
    arguments = found[-1][1]
    assert [message["role"] for message in arguments["messages"]] == ["system", "user"]
    assert arguments["generation_prompt"] is True


def test_a_key_press_is_asked_about_at_once(text_tab: TextTab, monkeypatch):
    found = asked(text_tab, monkeypatch)
    text_tab.text.insertPlainText("x")
    assert found[-1][1]["text"] == "xHello world"


def test_spaces_that_must_not_break_are_asked_about_as_they_are(text_tab: TextTab, monkeypatch):
    found = asked(text_tab, monkeypatch)
    text_tab.text.setPlainText("a\u00a0b\nc\u202fd")
    assert found[-1][1]["text"] == "a\u00a0b\nc\u202fd"


def test_a_very_long_text_waits_for_a_pause(text_tab: TextTab, monkeypatch):
    found = asked(text_tab, monkeypatch)
    text_tab.text.setPlainText("word " * 10_000)
    assert not found
    assert text_tab._calm.isActive()


def test_words_among_the_ids_are_pieces(text_tab: TextTab, monkeypatch):
    found = asked(text_tab, monkeypatch)
    text_tab.input.set_mode(text_input.IDS)
    text_tab.input.ids.setPlainText("hello ##wor ##ld")
    assert found[-1] == ("pieces_to_text", {"tokenizer": "some", "options": {}, "pieces": ["hello", "##wor", "##ld"]})


def test_a_late_answer_overwrites_no_newer_mistake(text_tab: TextTab, monkeypatch):
    asked(text_tab, monkeypatch)
    text_tab.input.set_mode(text_input.IDS)
    text_tab.input.ids.setPlainText("99999999999999999999")
    text_tab._ids.questions[0]._on_answered(
        Decoded(rows=[DecodedRow(text="a", with_special="a", without_special="a", cleaned="a", pieces=["a"])])
    )
    assert "is not an ID" in text_tab.decoded.plain()


def test_late_steps_overwrite_no_newer_sentence(text_tab: TextTab, monkeypatch):
    asked(text_tab, monkeypatch)
    text_tab.tokens.show_view(tokens_card.STEPS)
    text_tab.input.set_mode(text_input.BATCH)
    shown = []
    monkeypatch.setattr(text_tab.tokens.steps, "show_steps", shown.append)
    text_tab._steps._on_answered(TokenizerSteps(text="a"))
    assert not shown


def test_a_small_file_is_put_into_the_editor_and_a_large_one_is_not(text_tab: TextTab, monkeypatch, tmp_path: Path):
    found = asked(text_tab, monkeypatch)
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    small.write_text("short")
    large.write_text("word " * 100_000)
    text_tab.open_file(str(small))
    assert text_tab.text.toPlainText() == "short"
    text_tab._tokens.stop()
    text_tab.open_file(str(large))
    assert found[-1][1]["file"] == str(large)
    assert text_tab.text.toPlainText() == "short"
    assert text_tab.input.file_size.text().startswith("0 MB") or "MB" in text_tab.input.file_size.text()


def pasted(text: str) -> QMimeData:
    data = QMimeData()
    data.setText(text)
    return data


def test_a_pasted_text_whose_layout_would_stop_the_window_is_shown_by_its_tokens_alone(text_tab: TextTab, monkeypatch):
    found = asked(text_tab, monkeypatch)
    text_tab.text.insertFromMimeData(pasted("x" * 30_000))
    assert text_tab.text.toPlainText() == "Hello world"
    assert text_tab.input.mode() == text_input.FILE
    assert found[-1][1]["text"] == "x" * 30_000
    assert text_tab.input.file_name.text() == "The pasted text"
    text_tab.input.close_file.click()
    assert text_tab.input.mode() == text_input.TEXT


def test_a_long_line_that_grows_by_pasting_is_refused_too(text_tab: TextTab):
    text_tab.text.insertFromMimeData(pasted("x" * 15_000))
    text_tab.text.insertFromMimeData(pasted("x" * 15_000))
    assert len(text_tab.text.toPlainText()) == 15_011


def test_a_message_takes_no_endless_line(qtbot, text_tab: TextTab):
    with qtbot.waitSignal(text_tab.message) as signal:
        text_tab.input.chat.rows[0].content.insertFromMimeData(pasted("x" * 30_000))
    assert signal.args == ["error", "30\u202f000 characters are too long for this field; open them as a file."]


def test_a_small_file_with_an_endless_line_stays_a_file(text_tab: TextTab, monkeypatch, tmp_path: Path):
    found = asked(text_tab, monkeypatch)
    (tmp_path / "line.txt").write_text("x" * 100_000)
    text_tab.open_file(str(tmp_path / "line.txt"))
    assert found[-1][1]["file"] == str(tmp_path / "line.txt")


def test_a_token_of_many_characters_is_shown_by_its_beginning(qtbot, text_tab: TextTab):
    text = "x" * 1_000_000
    text_tab._on_tokens(answer(text, [(0, 0, 0, len(text))], [TokenPiece(100, "[UNK]", unknown=True)]))
    assert text_tab.view.shown_text(0) == f"{'x' * 60}…·999940·more·characters"
    text_tab.view._choose(0)
    assert text_tab.token.values()["Text"] == f"“{'x' * 60}…·999940·more·characters”"


def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(qtbot, text_tab: TextTab, tmp_path: Path):
    with qtbot.waitSignal(text_tab.message) as signal:
        text_tab.open_file(str(tmp_path / "nowhere.txt"))
    assert signal.args[0] == "error"
    assert "nowhere.txt can't be read" in signal.args[1]


def test_long_work_has_a_bar_and_can_be_stopped(text_tab: TextTab, monkeypatch, tmp_path: Path):
    large = tmp_path / "large.txt"
    large.write_text("word " * 100_000)
    asked(text_tab, monkeypatch)
    text_tab.open_file(str(large))
    text_tab.working.slow.stop()
    text_tab.working.show_progress(Progress(250_000, 500_000, "characters"))
    assert not text_tab.working.isHidden()
    assert text_tab.working.bar.fraction() == 0.5
    text_tab.working.stop.click()
    assert text_tab.working.isHidden()
    assert text_tab.counts.text() == "Stopped."
    assert not text_tab._tokens.open


def test_tokens_of_a_file_show_its_text(qtbot, text_tab: TextTab, tmp_path: Path):
    path = tmp_path / "large.txt"
    path.write_bytes(b"\xef\xbb\xbfHello world" + b" " * 300_000)
    text_tab.open_file(str(path))
    text_tab._on_tokens(msgspec.structs.replace(HELLO, sources=[], file=str(path), file_skip=3))
    assert [text_tab.view.shown_text(index) for index in (1, 2)] == ["Hello", "world"]


def test_another_file_ends_the_question_about_the_one_before(text_tab: TextTab, monkeypatch, tmp_path: Path):
    found = asked(text_tab, monkeypatch)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("word " * 100_000)
        text_tab.open_file(str(tmp_path / name))
    assert [Path(question["file"]).name for _, question in found] == ["a.txt", "b.txt"]


def test_the_text_is_read_from_the_file_that_was_asked_about(qtbot, text_tab: TextTab, tmp_path: Path):
    path = tmp_path / "large.txt"
    path.write_text("Hello world")
    text_tab.input.path = tmp_path / "newer.txt"
    text_tab._on_tokens(msgspec.structs.replace(HELLO, sources=[], file=str(path)))
    assert text_tab.view.shown_text(2) == "world"


def test_a_file_that_is_gone_meanwhile_is_told_in_a_sentence(text_tab: TextTab, tmp_path: Path):
    text_tab._on_tokens(msgspec.structs.replace(HELLO, sources=[], file=str(tmp_path / "gone.txt")))
    assert "gone.txt can't be read" in text_tab.banner.text()
    assert text_tab.view.count() == 0
