"""The options of the Text tab and what they lead to: the run, chats, batches, decoded ids and steps."""

from pathlib import Path

import msgspec
import pytest
from PySide6.QtGui import QGuiApplication, QTextCursor

from app.pages.tokenizer.text import text_input, tokens_card
from app.pages.tokenizer.text.options_card import facts_line
from app.pages.tokenizer.text.text_tab import TextTab
from app.widgets.pill import Pill
from backend.catalog import catalog
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.tokens.batches import Decoded, DecodedRow, PiecesAsText, TokenGrid
from backend.contract.tokens.options import TokenOptions
from backend.contract.tokens.steps import ChosenPiece, Merge, Step, StepPart, TokenizerSteps, WordTrace
from backend.contract.tokens.tokens import TokenizerDescription, TokenPiece, Tokens
from tests.app.example_tokens import HELLO, PAD, answer
from tests.app.pages.tokenizer.text_tab_questions import asked

DESCRIPTION = TokenizerDescription(
    tokenizer_class="BertTokenizer",
    fast=True,
    model="WordPiece",
    vocabulary=30522,
    limit=512,
    stored_truncation="The tokenizer's file specifies truncation to 128 tokens, which is turned off here.",
    stored=TokenOptions(max_length=128, truncation_side="left", padding="max_length", padding_side="right"),
    switches={"do_lower_case": True},
)


def test_a_switch_is_offered_where_the_tokenizer_takes_it(text_tab: TextTab):
    text_tab.options.show_tokenizer(DESCRIPTION)
    assert not text_tab.options.switches["do_lower_case"].isHidden()
    assert text_tab.options.switches["add_prefix_space"].isHidden()
    assert facts_line(DESCRIPTION) == "WordPiece · 30\u202f522 pieces · reads 512 tokens"


def test_only_what_differs_from_the_tokenizer_is_asked_for(text_tab: TextTab, monkeypatch):
    found = asked(text_tab, monkeypatch)
    text_tab.options.show_tokenizer(DESCRIPTION)
    assert text_tab.options.options().construction == {}
    text_tab.options.switches["do_lower_case"].setChecked(False)
    assert found[-1][1]["options"] == {"do_lower_case": False}


def test_a_switch_that_the_next_tokenizer_lacks_is_asked_for_no_more(text_tab: TextTab, monkeypatch):
    text_tab.options.show_tokenizer(DESCRIPTION)
    text_tab.options.switches["do_lower_case"].setChecked(False)
    found = asked(text_tab, monkeypatch)
    text_tab.use("other")
    assert found[-1][1]["options"] == {"do_lower_case": False}
    text_tab._tokens.stop()
    text_tab._on_description(msgspec.structs.replace(DESCRIPTION, switches={}))
    assert found[-1][0] == "tokenize"
    assert "options" not in found[-1][1]


def test_what_a_file_has_stored_can_be_switched_on(text_tab: TextTab):
    text_tab.options.show_tokenizer(DESCRIPTION)
    assert text_tab.options.stored_note.text() == DESCRIPTION.stored_truncation
    text_tab.options.stored_button.click()
    chosen = text_tab.options.options()
    assert (chosen.max_length, chosen.truncation_side) == (128, "left")
    assert (chosen.padding, chosen.padding_side) == ("max_length", "right")


def test_the_options_go_to_the_run_that_is_set_up(qtbot, text_tab: TextTab):
    text_tab.options.show_tokenizer(DESCRIPTION)
    assert not text_tab.options.use_button.isEnabled()
    text_tab.draft_wanted.connect(lambda: text_tab.show_draft({"task": {"type": "token_classification"}}, ""))
    text_tab._on_catalog(catalog())
    text_tab.options.max_length.setValue(64)
    text_tab.options.switches["do_lower_case"].setChecked(False)
    with qtbot.waitSignal(text_tab.settings_chosen) as settings, qtbot.waitSignal(text_tab.message) as message:
        text_tab.options.use_button.click()
    expected = {"task.max_length": 64, "model.tokenizer_options.do_lower_case": False, "task.window": False}
    assert settings.args == [expected]
    assert message.args == ["success", "Your run now uses max_length 64, do_lower_case off, window off."]


def test_options_that_no_run_has_are_told_and_move_nothing(qtbot, text_tab: TextTab):
    text_tab.options.special.setChecked(False)
    with qtbot.assertNotEmitted(text_tab.settings_chosen), qtbot.waitSignal(text_tab.message) as message:
        text_tab.options.use_button.click()
    assert message.args[0] == "info"
    assert "A run always adds the special tokens" in message.args[1]


def test_the_cost_is_compared_with_the_limit_that_is_written(text_tab: TextTab):
    text_tab.options.cost_limit.setValue(2)
    assert text_tab.tokens.limit.text() == "2 tokens over 2"


def test_windows_are_compared_with_the_limit_one_by_one(text_tab: TextTab):
    rows = [(0, 0, place, place + 1, window, 1) for window in range(3) for place in range(2)]
    text_tab._on_tokens(answer("ab", [*rows, (1, -1, 0, 0, 2, 0)], [TokenPiece(5, "a"), PAD], limit=4))
    assert text_tab.tokens.limit.text() == "50% of 4"


# The chat template

OWN = "{% for m in messages %}\n{{ m.content }}\n{% endfor %}"


@pytest.fixture
def chat(text_tab: TextTab) -> TextTab:
    text_tab.options.show_tokenizer(msgspec.structs.replace(DESCRIPTION, chat_template=OWN))
    text_tab.input.set_mode(text_input.CHAT)
    return text_tab


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
    assert field.whose.text() == "Your template replaces the tokenizer's."
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
    chat._on_mistake(
        ErrorReply("the chat template is not valid Jinja (line 2: no end); correct it", "task.template", 2)
    )
    assert chat.banner.isHidden()
    assert (
        chat.counts.text()
        == field.mistake.text()
        == "The chat template is not valid Jinja (line 2: no end); correct it"
    )
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
    assert "nowhere.jinja can't be read" in chat.options.template.mistake.text()


# Batch, ids to text, steps


def test_a_batch_says_how_much_is_padding(text_tab: TextTab):
    text_tab.batch.show_grid(
        TokenGrid(
            rows=2, width=3, ids=[101, 5, 102, 101, 102, 0], mask=[1, 1, 1, 1, 1, 0], lengths=[3, 2],
            left_out=[0, 0], piece_ids=[0, 5, 101, 102], pieces=["[PAD]", "a", "[CLS]", "[SEP]"], pad_id=0,
        )
    )  # fmt: skip
    assert text_tab.batch.grid.cell(0, 1) == "5"
    assert text_tab.batch.counts.text() == "2 rows × 3 · 1 of 6 are padding (17%) · filled with ID 0"


def test_ids_that_do_not_exist_are_outlined(text_tab: TextTab):
    row = DecodedRow(
        text="hello⟨no token 99⟩",
        with_special="hello⟨no token 99⟩",
        without_special="hello⟨no token 99⟩",
        cleaned="hello⟨no token 99⟩",
        pieces=["hello", ""],
        missing=[1],
    )
    text_tab.decoded.show_decoded(Decoded(rows=[row]))
    assert text_tab.decoded.outlined().count("⟨no token 99⟩") == 3
    text_tab.decoded.show_decoded(Decoded(rows=[row, row]))
    assert "2. 2 IDs · 1 not in the vocabulary" in text_tab.decoded.plain()


def test_pieces_become_text_with_their_ids(text_tab: TextTab):
    text_tab.decoded.show_pieces_as_text(PiecesAsText(text="hi⟨no piece zz⟩", ids=[5, -1], unknown=[1]))
    assert text_tab.decoded.outlined() == ["⟨no piece zz⟩"]
    assert text_tab.decoded.plain().endswith("5, –")


def test_the_pipeline_is_told_step_by_step(qtbot, text_tab: TextTab):
    steps = [
        Step(stage="normalizer", name="Lowercase", sentence="Makes letters small.", parts=[StepPart("hi ho", 0, 5)]),
        Step(stage="pre_tokenizer", name="Whitespace", parts=[StepPart("hi", 0, 2), StepPart("ho", 3, 5)]),
        Step(stage="model", name="BPE", parts=[StepPart("hi", 0, 2, False, 7), StepPart("ho", 3, 5, False, 8)]),
        Step(stage="post_processor", name="TemplateProcessing", parts=[], changed=False),
    ]
    word = WordTrace(
        word="hi", start=0, end=2, pieces=["hi"], ids=[7], symbols=["h", "i"], merges=[Merge(3, "h", "i", 0)]
    )
    other = WordTrace(
        word="ho", start=3, end=5, pieces=["ho"], ids=[8], choices=[ChosenPiece("ho", 0, 2, -1.5, -1.5, True)]
    )
    text_tab.tokens.steps.show_steps(TokenizerSteps(text="Hi Ho", steps=steps, words=[word, other]))
    view = text_tab.tokens.steps
    qtbot.waitUntil(lambda: len(view.frames) == 4)
    assert view.frames[0].text.marked() == ["h", "h"]
    assert [text.strip() for text in view.frames[1].text.marked()] == ["hi", "ho"]
    rows = [view.frames[2].tree.topLevelItem(0).child(place).text(1) for place in range(2)]
    assert rows == ["h  i", "h + i   →   hi"]


def test_a_step_that_is_not_known_says_so(qtbot, text_tab: TextTab):
    step = Step(stage="normalizer", name="Before the model", sentence="Not told.", changed=False, known=False)
    text_tab.tokens.steps.show_steps(TokenizerSteps(text="a", steps=[step], notes=["Cut otherwise within its chat."]))
    view = text_tab.tokens.steps
    qtbot.waitUntil(lambda: len(view.frames) == 1)
    assert [pill.text() for pill in view.frames[0].findChildren(Pill)] == ["unknown"]
    assert view.notes.text() == "Cut otherwise within its chat."


@pytest.mark.parametrize(
    ("mode", "offered", "expected"),
    [
        (text_input.CHAT, ["The whole chat", "1. system: You are a helpful assistant."], {"part": 0}),
        (text_input.WORDS, ["All words", "1. Fine-tuning"], {"part": 0, "pre_split": True}),
        (text_input.PAIR, ["The first text", "The second text"], {"part": 1, "pair": text_input.SECOND}),
    ],
)
def test_steps_are_shown_of_the_part_that_is_chosen(text_tab: TextTab, monkeypatch, mode, offered, expected):
    found = asked(text_tab, monkeypatch)
    text_tab.input.set_mode(mode)
    text_tab.tokens.show_view(tokens_card.STEPS)
    box = text_tab.tokens.part_box
    assert not box.isHidden()
    assert [box.itemText(place) for place in (0, 1)] == offered
    text_tab._steps.stop()
    box.setCurrentIndex(1)
    box.activated.emit(1)
    query, arguments = found[-1]
    assert query == "tokenizer_steps"
    assert {name: arguments[name] for name in expected} == expected


def test_the_steps_begin_with_the_part_of_the_chosen_token(text_tab: TextTab, monkeypatch):
    found = asked(text_tab, monkeypatch)
    text_tab.input.words.setPlainText("Hello world")
    text_tab.input.set_mode(text_input.WORDS)
    text_tab._on_tokens(HELLO)
    text_tab.view._choose(1)
    text_tab.tokens.show_view(tokens_card.STEPS)
    assert found[-1][1]["part"] == 1


def test_a_long_text_is_shown_part_by_part(qtbot, text_tab: TextTab, monkeypatch):
    monkeypatch.setattr("app.services.token_answers.SHOWN_AT_ONCE", 2)
    monkeypatch.setattr("app.pages.tokenizer.text.tokens_card.SHOWN_AT_ONCE", 2)
    text_tab._on_tokens(HELLO)
    assert text_tab.tokens.part.text() == "Tokens 1 to 2 of 4"
    assert text_tab.tokens.copy_button.toolTip() == "Copy all IDs"
    text_tab.tokens.copy_ids()
    assert QGuiApplication.clipboard().text() == "101, 7592, 2088, 102"
    text_tab.tokens.after.click()
    assert text_tab.view.shown_text(0) == "world"
    text_tab.view._choose(0)
    assert text_tab.text.textCursor().selectedText() == "world"
    cursor = text_tab.text.textCursor()
    cursor.setPosition(1)
    cursor.setPosition(3, QTextCursor.MoveMode.KeepAnchor)
    text_tab.text.setTextCursor(cursor)
    assert text_tab.tokens.part.text() == "Tokens 1 to 2 of 4"
    assert text_tab.view.selected() == (1, 2)
    text_tab._on_tokens(Tokens())
    assert text_tab.tokens.part.isHidden()
