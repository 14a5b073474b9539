"""What is told of characters, directions, places and options, without a window."""

from pathlib import Path

from app.core.text import invisible_characters, tokenizer_input, tokenizer_list
from app.core.text.direction import runs_right_to_left
from app.core.text.tokenizer_input import TextOptions
from app.widgets.text.text_editor import Places


def test_what_cannot_be_seen_is_named():
    assert invisible_characters.visible("a b\t\n\u200b\u00a0\x00") == "a·b⇥⏎⟨ZWSP⟩⟨NBSP⟩⟨NUL⟩"
    assert invisible_characters.visible("") == "∅"
    assert invisible_characters.names_of("\u200b\x1b") == ["U+200B ZERO WIDTH SPACE", "U+001B ESCAPE"]


def test_a_joiner_is_named_where_it_stands_alone_and_kept_within_a_character():
    assert invisible_characters.visible("\u200d") == "⟨ZWJ⟩"
    assert invisible_characters.visible("👩\u200d👧") == "👩\u200d👧"


def test_a_mark_without_its_letter_stands_on_a_dotted_circle():
    assert invisible_characters.visible("\u0301") == "◌\u0301"
    assert invisible_characters.visible("e\u0301") == "e\u0301"
    assert invisible_characters.visible("\ufe0f") == "⟨VS16⟩"


def test_hidden_white_space_breaks_no_line():
    assert invisible_characters.visible("a\n\u2028\r\tb", whitespace=False) == "a       b"


def test_a_paragraph_runs_as_its_first_letter_does():
    assert runs_right_to_left("12 – שלום abc")
    assert not runs_right_to_left("abc שלום")


def test_places_are_counted_as_qt_counts_and_back():
    places = Places("a👩b👧c")
    assert [places.units(n) for n in range(6)] == [0, 1, 3, 4, 6, 7]
    assert [places.characters(n) for n in (0, 1, 3, 4, 6, 7)] == [0, 1, 2, 3, 4, 5]


def test_windows_are_asked_for_only_where_something_is_cut():
    assert "windows" not in TextOptions(windows=True, stride=3).question("x", text="a")
    asked = TextOptions(windows=True, stride=3, max_length=8).question("x", text="a")
    assert (asked["windows"], asked["stride"]) == (True, 3)


def test_a_template_is_asked_for_with_a_chat_alone():
    options = TextOptions(chat_template="{{ messages }}")
    assert "chat_template" not in options.question("x", text="a")
    asked = options.question("x", messages=tokenizer_input.messages_of([("user", "hi")]))
    assert asked["chat_template"] == "{{ messages }}"


def test_a_dropped_file_is_a_tokenizer_or_a_text(tmp_path: Path):
    assert tokenizer_list.is_tokenizer(tmp_path)
    assert tokenizer_list.is_tokenizer(tmp_path / "spiece.model")
    assert not tokenizer_list.is_tokenizer(tmp_path / "notes.txt")
    assert not tokenizer_list.is_tokenizer(tmp_path / "rows.json")
    assert tokenizer_list.tokenizer_of(tmp_path / "merges.txt") == tmp_path
    assert tokenizer_list.tokenizer_of(tmp_path / "vocab.txt") == tmp_path / "vocab.txt"
