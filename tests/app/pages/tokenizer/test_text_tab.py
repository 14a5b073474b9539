"""The side for one text is tested with answers as the helper gives them."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication, QTextCursor

from app.pages.tokenizer.text import text_input, tokens_card
from app.pages.tokenizer.text.options_card import facts_line
from app.pages.tokenizer.text.text_tab import TextTab
from app.services.backend_client import ArrowAnswer
from app.widgets.pill import Pill
from backend.catalog import catalog
from backend.contract.rpc.queries import Mistake, Progress
from backend.contract.tokens.batches import Decoded, DecodedRow, PiecesAsText, TokenGrid
from backend.contract.tokens.options import TokenOptions
from backend.contract.tokens.steps import Choice, Merge, Step, StepPart, TokenizerSteps, WordTrace
from backend.contract.tokens.tokens import TokenColumns, TokenizerDescription, TokenizerOption, TokenPiece, Tokens
from tests.app.example_tokens import HELLO, PAD, answer

DESCRIPTION = TokenizerDescription(
    name="x",
    found="/x",
    tokenizer_class="BertTokenizer",
    fast=True,
    model="WordPiece",
    vocabulary=30522,
    limit=512,
    stored_truncation="The tokenizer's file has stored truncation to 128 tokens; this is switched off.",
    stored=TokenOptions(max_length=128, truncation_side="left", padding="max_length", padding_side="right"),
    options=[TokenizerOption("do_lower_case", "switch", True), TokenizerOption("padding_side", "side", "right")],
)


@pytest.fixture
def side(qtbot, context) -> TextTab:
    made = TextTab(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    made.text.blockSignals(True)
    made.text.setPlainText("Hello world")
    made.text.blockSignals(False)
    made._on_tokens(HELLO)
    qtbot.waitUntil(made.tokens.is_drawn)
    return made


def asked(side: TextTab, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict]]:
    """What the side asks from now on; nobody answers."""
    side.tokenizer = "some"
    found: list[tuple[str, dict]] = []
    ticket = type("Ticket", (), {"cancel": lambda self: None})

    def ask(query, arguments, *_):
        found.append((query, arguments))
        return ticket()

    monkeypatch.setattr(side._context.client, "ask", ask)
    return found


def test_tokens_ids_and_counts_are_shown(side: TextTab):
    assert side.view.count() == 4
    side.tokens.show_view(tokens_card.IDS)
    assert side.ids.toPlainText() == "101, 7592, 2088, 102"
    assert side.counts.text().startswith("4 tokens · 11 characters · 2 words")
    assert side.tokens.limit.text() == "1% of 512"


def test_a_token_tells_its_id_and_place(side: TextTab):
    side.view._choose(2)
    assert side.token.values()["Id"] == "2088"
    assert side.token.values()["Characters"] == "6–11"
    assert side.token.place.text() == "3 of 4"


def test_what_is_chosen_is_told_again_when_the_mouse_leaves(side: TextTab):
    side.view._choose(2)
    side.view.token_hovered.emit(1)
    assert side.token.values()["Id"] == "7592"
    side.view.token_hovered.emit(-1)
    assert side.token.values()["Id"] == "2088"


def test_choosing_tokens_selects_their_text(side: TextTab):
    side.view._choose(1)
    side.view._choose(2, extend=True)
    assert side.text.textCursor().selectedText() == "Hello world"


def test_selecting_text_selects_its_tokens(side: TextTab):
    cursor = side.text.textCursor()
    cursor.setPosition(7)
    cursor.setPosition(9, QTextCursor.MoveMode.KeepAnchor)
    side.text.setTextCursor(cursor)
    assert side.view.selected() == (2, 3)
    assert side.token.values()["Id"] == "2088"


def test_ids_are_copied_whole(qtbot, side: TextTab):
    with qtbot.waitSignal(side.message) as signal:
        side.tokens.copy_ids()
    assert QGuiApplication.clipboard().text() == "101, 7592, 2088, 102"
    assert signal.args == ["success", "Copied 4 ids."]


def test_a_mistake_leaves_nothing_that_would_mislead(side: TextTab):
    side._on_mistake(Mistake("There is no tokenizer in this folder; choose another one."))
    assert not side.banner.isHidden()
    assert side.view.count() == 0
    assert side.counts.text() == ""
    side._on_tokens(HELLO)
    assert side.banner.isHidden()


def test_a_long_answer_comes_as_a_file_and_the_file_goes(qtbot, side: TextTab, tmp_path: Path):
    columns = {name: pa.array(getattr(HELLO.columns, name)) for name in TokenColumns.__struct_fields__}
    rest = msgspec.json.encode(msgspec.structs.replace(HELLO, columns=TokenColumns()))
    table = pa.table(columns).replace_schema_metadata({"answer": rest})
    path = tmp_path / "answer.arrow"
    with path.open("wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    side._on_tokens(ArrowAnswer(str(path)))
    qtbot.waitUntil(side.tokens.is_drawn)
    assert side.view.shown_text(2) == "world"
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
def test_each_way_of_input_asks_its_question(side: TextTab, monkeypatch, mode, query, expected):
    found = asked(side, monkeypatch)
    side.input.set_mode(mode)
    name, arguments = found[-1]
    arguments = {"padding": "longest", **arguments} if query == "tokenize_batch" else arguments
    assert name == query
    assert {key: arguments[key] for key in expected} == expected


def test_a_conversation_is_asked_about_with_its_roles(side: TextTab, monkeypatch):
    found = asked(side, monkeypatch)
    side.input.set_mode(text_input.CHAT)
    side.input.chat.generation_prompt.setChecked(True)
    side._tokens.stop()
    side.ask()
    arguments = found[-1][1]
    assert [message["role"] for message in arguments["messages"]] == ["system", "user"]
    assert arguments["generation_prompt"] is True


def test_a_key_press_is_asked_about_at_once(side: TextTab, monkeypatch):
    found = asked(side, monkeypatch)
    side.text.insertPlainText("x")
    assert found[-1][1]["text"] == "xHello world"


def test_spaces_that_must_not_break_are_asked_about_as_they_are(side: TextTab, monkeypatch):
    found = asked(side, monkeypatch)
    side.text.setPlainText("a\u00a0b\nc\u202fd")
    assert found[-1][1]["text"] == "a\u00a0b\nc\u202fd"


def test_a_very_long_text_waits_for_a_pause(side: TextTab, monkeypatch):
    found = asked(side, monkeypatch)
    side.text.setPlainText("word " * 10_000)
    assert not found
    assert side._calm.isActive()


def test_words_among_the_ids_are_pieces(side: TextTab, monkeypatch):
    found = asked(side, monkeypatch)
    side.input.set_mode(text_input.IDS)
    side.input.ids.setPlainText("hello ##wor ##ld")
    assert found[-1] == ("pieces_to_text", {"tokenizer": "some", "options": {}, "pieces": ["hello", "##wor", "##ld"]})


def test_a_late_answer_overwrites_no_newer_mistake(side: TextTab, monkeypatch):
    asked(side, monkeypatch)
    side.input.set_mode(text_input.IDS)
    side.input.ids.setPlainText("99999999999999999999")
    side._decode._answered(
        Decoded(rows=[DecodedRow(text="a", with_special="a", without_special="a", cleaned="a", pieces=["a"])])
    )
    assert "is no id" in side.decoded.plain()


def test_late_steps_overwrite_no_newer_sentence(side: TextTab, monkeypatch):
    asked(side, monkeypatch)
    side.tokens.show_view(tokens_card.STEPS)
    side.input.set_mode(text_input.BATCH)
    shown = []
    monkeypatch.setattr(side.tokens.steps, "show_steps", shown.append)
    side._steps._answered(TokenizerSteps(text="a"))
    assert not shown


def test_a_small_file_is_put_into_the_editor_and_a_large_one_is_not(side: TextTab, monkeypatch, tmp_path: Path):
    found = asked(side, monkeypatch)
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    small.write_text("short")
    large.write_text("word " * 100_000)
    side.open_file(str(small))
    assert side.text.toPlainText() == "short"
    side._tokens.stop()
    side.open_file(str(large))
    assert found[-1][1]["file"] == str(large)
    assert side.text.toPlainText() == "short"
    assert side.input.file_size.text().startswith("0 MB") or "MB" in side.input.file_size.text()


def pasted(text: str) -> QMimeData:
    data = QMimeData()
    data.setText(text)
    return data


def test_a_pasted_text_whose_layout_would_stop_the_window_is_shown_by_its_tokens_alone(side: TextTab, monkeypatch):
    found = asked(side, monkeypatch)
    side.text.insertFromMimeData(pasted("x" * 30_000))
    assert side.text.toPlainText() == "Hello world"
    assert side.input.mode() == text_input.FILE
    assert found[-1][1]["text"] == "x" * 30_000
    assert side.input.file_name.text() == "The pasted text"
    side.input.close_file.click()
    assert side.input.mode() == text_input.TEXT


def test_a_long_line_that_grows_by_pasting_is_refused_too(side: TextTab):
    side.text.insertFromMimeData(pasted("x" * 15_000))
    side.text.insertFromMimeData(pasted("x" * 15_000))
    assert len(side.text.toPlainText()) == 15_011


def test_a_message_takes_no_endless_line(qtbot, side: TextTab):
    with qtbot.waitSignal(side.message) as signal:
        side.input.chat.rows[0].content.insertFromMimeData(pasted("x" * 30_000))
    assert signal.args == ["error", "30\u202f000 characters are too long for this field; open them as a file."]


def test_a_small_file_with_an_endless_line_stays_a_file(side: TextTab, monkeypatch, tmp_path: Path):
    found = asked(side, monkeypatch)
    (tmp_path / "line.txt").write_text("x" * 100_000)
    side.open_file(str(tmp_path / "line.txt"))
    assert found[-1][1]["file"] == str(tmp_path / "line.txt")


def test_a_token_of_many_characters_is_shown_by_its_beginning(qtbot, side: TextTab):
    text = "x" * 1_000_000
    side._on_tokens(answer(text, [(0, 0, 0, len(text))], [TokenPiece(100, "[UNK]", unknown=True)]))
    qtbot.waitUntil(side.tokens.is_drawn)
    assert side.view.shown_text(0) == f"{'x' * 60}…·999940·more·characters"
    side.view._choose(0)
    assert side.token.values()["Text"] == f"“{'x' * 60}…·999940·more·characters”"


def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(qtbot, side: TextTab, tmp_path: Path):
    with qtbot.waitSignal(side.message) as signal:
        side.open_file(str(tmp_path / "nowhere.txt"))
    assert signal.args[0] == "error"
    assert "nowhere.txt cannot be read" in signal.args[1]


def test_long_work_has_a_bar_and_can_be_stopped(side: TextTab, monkeypatch, tmp_path: Path):
    large = tmp_path / "large.txt"
    large.write_text("word " * 100_000)
    asked(side, monkeypatch)
    side.open_file(str(large))
    side.working.slow.stop()
    side.working.tell(Progress(250_000, 500_000, "characters"))
    assert not side.working.isHidden()
    assert side.working.bar.fraction() == 0.5
    side.working.stop_button.click()
    assert side.working.isHidden()
    assert side.counts.text() == "Stopped."
    assert not side._tokens.open


def test_tokens_of_a_file_show_its_text(qtbot, side: TextTab, tmp_path: Path):
    path = tmp_path / "large.txt"
    path.write_bytes(b"\xef\xbb\xbfHello world" + b" " * 300_000)
    side.open_file(str(path))
    side._on_tokens(msgspec.structs.replace(HELLO, sources=[], file=str(path), file_skip=3))
    qtbot.waitUntil(side.tokens.is_drawn)
    assert [side.view.shown_text(index) for index in (1, 2)] == ["Hello", "world"]


def test_another_file_ends_the_question_about_the_one_before(side: TextTab, monkeypatch, tmp_path: Path):
    found = asked(side, monkeypatch)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("word " * 100_000)
        side.open_file(str(tmp_path / name))
    assert [Path(question["file"]).name for _, question in found] == ["a.txt", "b.txt"]


def test_the_text_is_read_from_the_file_that_was_asked_about(qtbot, side: TextTab, tmp_path: Path):
    path = tmp_path / "large.txt"
    path.write_text("Hello world")
    side.input.path = tmp_path / "newer.txt"
    side._on_tokens(msgspec.structs.replace(HELLO, sources=[], file=str(path)))
    qtbot.waitUntil(side.tokens.is_drawn)
    assert side.view.shown_text(2) == "world"


def test_a_file_that_is_gone_meanwhile_is_told_in_a_sentence(side: TextTab, tmp_path: Path):
    side._on_tokens(msgspec.structs.replace(HELLO, sources=[], file=str(tmp_path / "gone.txt")))
    assert "gone.txt cannot be read any more" in side.banner.text()
    assert side.view.count() == 0


# Options


def test_a_switch_is_offered_where_the_tokenizer_takes_it(side: TextTab):
    side.options.show_tokenizer(DESCRIPTION)
    assert not side.options.switches["do_lower_case"].isHidden()
    assert side.options.switches["add_prefix_space"].isHidden()
    assert facts_line(DESCRIPTION) == "WordPiece · 30\u202f522 pieces · reads 512 tokens"


def test_only_what_differs_from_the_tokenizer_is_asked_for(side: TextTab, monkeypatch):
    found = asked(side, monkeypatch)
    side.options.show_tokenizer(DESCRIPTION)
    assert side.options.options().construction == {}
    side.options.switches["do_lower_case"].setChecked(False)
    assert found[-1][1]["options"] == {"do_lower_case": False}


def test_a_switch_that_the_next_tokenizer_lacks_is_asked_for_no_more(side: TextTab, monkeypatch):
    side.options.show_tokenizer(DESCRIPTION)
    side.options.switches["do_lower_case"].setChecked(False)
    found = asked(side, monkeypatch)
    side.use("other")
    assert found[-1][1]["options"] == {"do_lower_case": False}
    side._tokens.stop()
    side._on_description(msgspec.structs.replace(DESCRIPTION, options=[]))
    assert found[-1][0] == "tokenize"
    assert "options" not in found[-1][1]


def test_what_a_file_has_stored_can_be_switched_on(side: TextTab):
    side.options.show_tokenizer(DESCRIPTION)
    assert side.options.stored_note.text() == DESCRIPTION.stored_truncation
    side.options.stored_button.click()
    chosen = side.options.options()
    assert (chosen.max_length, chosen.truncation_side) == (128, "left")
    assert (chosen.padding, chosen.padding_side) == ("max_length", "right")


def test_the_options_go_to_the_run_that_is_set_up(qtbot, side: TextTab):
    side.options.show_tokenizer(DESCRIPTION)
    assert not side.options.use_button.isEnabled()
    side.draft_wanted.connect(lambda: side.show_draft({"task": {"type": "token_classification"}}, ""))
    side.run_use._on_catalog(catalog())
    side.options.max_length.setValue(64)
    side.options.switches["do_lower_case"].setChecked(False)
    with qtbot.waitSignal(side.settings_chosen) as settings, qtbot.waitSignal(side.message) as message:
        side.options.use_button.click()
    expected = {"task.max_length": 64, "model.tokenizer_options.do_lower_case": False, "task.window": False}
    assert settings.args == [expected]
    assert message.args == ["success", "Your run has now max_length 64, do_lower_case off, window off."]


def test_options_that_no_run_has_are_told_and_move_nothing(qtbot, side: TextTab):
    side.options.special.setChecked(False)
    with qtbot.assertNotEmitted(side.settings_chosen), qtbot.waitSignal(side.message) as message:
        side.options.use_button.click()
    assert message.args[0] == "info"
    assert "A run always adds the special tokens" in message.args[1]


def test_the_cost_is_compared_with_the_limit_that_is_written(side: TextTab):
    side.options.cost_limit.setValue(2)
    assert side.tokens.limit.text() == "2 tokens over 2"


def test_windows_are_compared_with_the_limit_one_by_one(side: TextTab):
    rows = [(0, 0, place, place + 1, window, 1) for window in range(3) for place in range(2)]
    side._on_tokens(answer("ab", [*rows, (1, -1, 0, 0, 2, 0)], [TokenPiece(5, "a"), PAD], limit=4))
    assert side.tokens.limit.text() == "50% of 4"


# The chat template

OWN = "{% for m in messages %}\n{{ m.content }}\n{% endfor %}"


@pytest.fixture
def chat(side: TextTab) -> TextTab:
    side.options.show_tokenizer(msgspec.structs.replace(DESCRIPTION, chat_template=OWN))
    side.input.set_mode(text_input.CHAT)
    return side


def test_the_tokenizers_template_is_shown_for_chats_alone(chat: TextTab):
    field = chat.options.template
    assert not field.isHidden()
    assert field.editor.toPlainText() == OWN
    assert chat.options.options().chat_template is None
    chat.input.set_mode(text_input.TEXT)
    assert field.isHidden()


def test_another_template_is_asked_for_and_the_tokenizers_comes_back(chat: TextTab, monkeypatch):
    found = asked(chat, monkeypatch)
    field = chat.options.template
    field.write("{{ messages }}")
    assert found[-1][1]["chat_template"] == "{{ messages }}"
    assert field.whose.text() == "Yours, in place of the tokenizer's."
    chat._tokens.stop()
    field.reset_button.click()
    assert "chat_template" not in found[-1][1]
    assert field.editor.toPlainText() == OWN


def test_a_template_that_was_written_stays_with_another_tokenizer(chat: TextTab):
    chat.options.template.write("{{ messages }}")
    chat.options.show_tokenizer(msgspec.structs.replace(DESCRIPTION, chat_template="b", chat_template_is_plain=True))
    assert chat.options.options().chat_template == "{{ messages }}"


def test_a_mistake_in_the_template_marks_its_line_and_moves_no_banner(chat: TextTab):
    field = chat.options.template
    chat._on_mistake(Mistake("the chat template is no Jinja (line 2: no end); correct it", "task.template", 2))
    assert chat.banner.isHidden()
    assert chat.counts.text() == field.mistake.text() == "The chat template is no Jinja (line 2: no end); correct it"
    (mark,) = field.editor.extraSelections()
    assert mark.cursor.blockNumber() == 1
    chat._on_tokens(HELLO)
    assert field.mistake.isHidden()
    assert not field.editor.extraSelections()


def test_the_large_window_writes_the_same_template(chat: TextTab):
    field = chat.options.template
    field.show_large()
    assert field.window_of_its_own.editor.toPlainText() == OWN
    field.window_of_its_own.editor.setPlainText("{{ messages }}")
    assert chat.options.options().chat_template == "{{ messages }}"
    field.window_of_its_own.close()


def test_a_template_is_read_from_a_file(chat: TextTab, tmp_path: Path):
    (tmp_path / "chat.jinja").write_text("from a file\r\n")
    chat.options.template.open_file(tmp_path / "chat.jinja")
    assert chat.options.options().chat_template == "from a file\n"
    chat.options.template.open_file(tmp_path / "nowhere.jinja")
    assert "nowhere.jinja cannot be read" in chat.options.template.mistake.text()


# Batch, ids to text, steps


def test_a_batch_says_how_much_is_padding(side: TextTab):
    side._on_batch(
        TokenGrid(
            rows=2, width=3, ids=[101, 5, 102, 101, 102, 0], mask=[1, 1, 1, 1, 1, 0], lengths=[3, 2],
            left_out=[0, 0], piece_ids=[0, 5, 101, 102], pieces=["[PAD]", "a", "[CLS]", "[SEP]"], pad_id=0,
        )
    )  # fmt: skip
    assert side.batch.grid.cell(0, 1) == "5"
    assert side.batch.counts.text() == "2 rows × 3 · 1 of 6 are padding (17%) · filled with id 0"


def test_ids_that_do_not_exist_are_outlined(side: TextTab):
    row = DecodedRow(
        text="hello⟨no token 99⟩",
        with_special="hello⟨no token 99⟩",
        without_special="hello⟨no token 99⟩",
        cleaned="hello⟨no token 99⟩",
        pieces=["hello", ""],
        missing=[1],
    )
    side._on_decoded(Decoded(rows=[row]))
    assert side.decoded.outlined().count("⟨no token 99⟩") == 3
    side._on_decoded(Decoded(rows=[row, row]))
    assert "2. 2 ids · 1 not in the vocabulary" in side.decoded.plain()


def test_pieces_become_text_with_their_ids(side: TextTab):
    side._on_pieces(PiecesAsText(text="hi⟨no piece zz⟩", ids=[5, -1], unknown=[1]))
    assert side.decoded.outlined() == ["⟨no piece zz⟩"]
    assert side.decoded.plain().endswith("5, –")


def test_the_pipeline_is_told_step_by_step(qtbot, side: TextTab):
    steps = [
        Step(stage="normalizer", name="Lowercase", sentence="Makes letters small.", parts=[StepPart("hi ho", 0, 5)]),
        Step(stage="pre_tokenizer", name="Whitespace", parts=[StepPart("hi", 0, 2), StepPart("ho", 3, 5)]),
        Step(stage="model", name="BPE", parts=[StepPart("hi", 0, 2, False, 7), StepPart("ho", 3, 5, False, 8)]),
        Step(stage="post_processor", name="TemplateProcessing", parts=[], changed=False),
    ]
    word = WordTrace(
        word="hi", start=0, end=2, pieces=["hi"], ids=[7], symbols=["h", "i"], merges=[Merge(3, "h", "i", 0)]
    )
    other = WordTrace(word="ho", start=3, end=5, pieces=["ho"], ids=[8], choices=[Choice("ho", 0, 2, -1.5, -1.5, True)])
    side._on_steps(TokenizerSteps(text="Hi Ho", steps=steps, words=[word, other]))
    view = side.tokens.steps
    qtbot.waitUntil(lambda: len(view.frames) == 4)
    assert view.frames[0].text.marked() == ["h", "h"]
    assert [text.strip() for text in view.frames[1].text.marked()] == ["hi", "ho"]
    rows = [view.frames[2].tree.topLevelItem(0).child(place).text(1) for place in range(2)]
    assert rows == ["h  i", "h + i   →   hi"]


def test_a_step_that_is_not_known_says_so(qtbot, side: TextTab):
    step = Step(stage="normalizer", name="Before the model", sentence="Not told.", changed=False, known=False)
    side._on_steps(TokenizerSteps(text="a", steps=[step], notes=["Cut otherwise within its chat."]))
    view = side.tokens.steps
    qtbot.waitUntil(lambda: len(view.frames) == 1)
    assert [pill.text() for pill in view.frames[0].findChildren(Pill)] == ["not known"]
    assert view.notes.text() == "Cut otherwise within its chat."


@pytest.mark.parametrize(
    ("mode", "offered", "expected"),
    [
        (text_input.CHAT, ["The whole chat", "1. system: You are a helpful assistant."], {"part": 0}),
        (text_input.WORDS, ["All words", "1. Fine-tuning"], {"part": 0, "pre_split": True}),
        (text_input.PAIR, ["The first text", "The second text"], {"part": 1, "pair": text_input.SECOND}),
    ],
)
def test_steps_are_shown_of_the_part_that_is_chosen(side: TextTab, monkeypatch, mode, offered, expected):
    found = asked(side, monkeypatch)
    side.input.set_mode(mode)
    side.tokens.show_view(tokens_card.STEPS)
    box = side.tokens.part_box
    assert not box.isHidden()
    assert [box.itemText(place) for place in (0, 1)] == offered
    side._steps.stop()
    box.setCurrentIndex(1)
    box.activated.emit(1)
    query, arguments = found[-1]
    assert query == "tokenizer_steps"
    assert {name: arguments[name] for name in expected} == expected


def test_the_steps_begin_with_the_part_of_the_chosen_token(side: TextTab, monkeypatch):
    found = asked(side, monkeypatch)
    side.input.words.setPlainText("Hello world")
    side.input.set_mode(text_input.WORDS)
    side._on_tokens(HELLO)
    side.tokens._show_boxes()
    side.view._choose(1)
    side.tokens.show_view(tokens_card.STEPS)
    assert found[-1][1]["part"] == 1


def test_a_long_text_is_shown_part_by_part(qtbot, side: TextTab, monkeypatch):
    monkeypatch.setattr("app.services.token_answer.SHOWN_AT_ONCE", 2)
    monkeypatch.setattr("app.pages.tokenizer.text.tokens_card.SHOWN_AT_ONCE", 2)
    side._on_tokens(HELLO)
    assert side.tokens.part.text() == "Tokens 1 to 2 of 4"
    assert side.tokens.copy_button.toolTip() == "Copy these ids"
    side.tokens.after.click()
    qtbot.waitUntil(side.tokens.is_drawn)
    assert side.view.shown_text(0) == "world"
    side.view._choose(0)
    assert side.text.textCursor().selectedText() == "world"
    side._on_tokens(Tokens())
    assert side.tokens.part.isHidden()
