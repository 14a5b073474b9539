"""What a view draws of an answer's columns, and what is told of each token."""

import msgspec

from app.core.text import token_facts
from app.core.text.shown_tokens import SPECIAL, UNKNOWN, tokens_of
from app.services.token_answers import token_table
from backend.contract.tokens.tokens import MessageSpan, RoundTrip, TokenPiece, Tokens
from tests.app.example_tokens import CLS, HELLO, PAD, SEP, answer


def test_special_tokens_show_their_piece_and_others_their_text():
    tokens, _ = tokens_of(token_table(HELLO))
    assert [token.text for token in tokens] == ["[CLS]", "Hello", "world", "[SEP]"]
    assert [token.kind == SPECIAL for token in tokens] == [True, False, False, True]
    assert tokens[2].gap == " "


def test_a_space_that_belongs_to_a_piece_is_shown_with_it():
    pieces = [TokenPiece(1, "Hello"), TokenPiece(2, "Ġworld")]
    tokens, _ = tokens_of(token_table(answer("Hello world", [(0, 0, 0, 5), (1, 0, 6, 11)], pieces)))
    assert (tokens[1].text, tokens[1].gap) == (" world", "")


def test_tokens_that_share_a_character_are_one_group():
    pieces = [TokenPiece(number, one) for number, one in enumerate(("a", "Ã", "©"))]
    tokens, _ = tokens_of(token_table(answer("aé", [(0, 0, 0, 1), (1, 0, 1, 2), (2, 0, 1, 2)], pieces)))
    assert [token.is_linked for token in tokens] == [False, False, True]
    assert [token.added for token in tokens] == ["a", "é", ""]


def test_a_space_put_before_the_text_takes_nothing_from_the_first_word():
    pieces = [TokenPiece(1, "▁"), TokenPiece(2, "Hi")]
    tokens, _ = tokens_of(token_table(answer("Hi", [(0, 0, 0, 1), (1, 0, 0, 2)], pieces)))
    assert [token.text for token in tokens] == ["▁", "Hi"]
    assert not any(token.is_linked for token in tokens)


def test_what_was_cut_off_stands_before_the_last_special_token():
    cut = answer("one two three", [(0, -1, 0, 0), (2, 0, 0, 3), (1, -1, 0, 0)], [CLS, SEP, TokenPiece(1, "one")])
    tokens, rest = tokens_of(token_table(cut))
    assert (tokens[2].gap, rest) == (" two three", "")


def test_what_was_cut_off_without_special_tokens_stands_at_the_end():
    assert tokens_of(token_table(answer("one two", [(0, 0, 0, 3)], [TokenPiece(1, "one")])))[1] == " two"


def test_texts_whose_tokens_are_in_the_part_before_are_not_left_out():
    whole = answer("one two", [(0, 0, 0, 3), (0, 0, 4, 7), (1, -1, 0, 0)], [TokenPiece(1, "x"), SEP])
    pair = msgspec.structs.replace(whole, sources=["one two", "three"])
    assert tokens_of(token_table(pair).part(2, 3))[1] == ""
    assert [token.gap for token in tokens_of(token_table(pair).part(2, 3))[0]] == [""]


def test_windows_bear_captions_and_what_they_share_is_faint():
    rows = [(0, 0, 0, 1, 0), (1, 0, 1, 2, 0), (1, 0, 1, 2, 1), (2, 0, 2, 3, 1), (3, -1, 0, 0, 1, 0)]
    pieces = [TokenPiece(number, one) for number, one in enumerate("abc")]
    tokens, _ = tokens_of(token_table(answer("abc", rows, [*pieces, PAD], windows=2, padding=1)))
    assert [token.is_faint for token in tokens] == [False, False, True, False, True]
    assert [bool(token.caption) for token in tokens] == [True, False, True, False, False]
    assert "Window 2 of 2 · 3 tokens · 1 padding · 1 (dashed)" in tokens[2].caption


def test_an_unknown_token_is_marked_though_it_is_special_too():
    unknown = TokenPiece(100, "[UNK]", special=True, unknown=True)
    assert tokens_of(token_table(answer("ab", [(0, 0, 0, 2)], [unknown])))[0][0].kind == UNKNOWN


def test_the_turns_of_a_chat_and_the_end_of_what_is_read_bear_captions():
    rows = [(0, 0, 0, 1), (0, 0, 1, 2), (0, 0, 2, 3)]
    chat = answer(
        "abc", rows, [TokenPiece(1, "x")], turns=[MessageSpan("user", 0, 1), MessageSpan("assistant", 1, 3)], limit=2
    )
    captions = [token.caption for token in tokens_of(token_table(chat))[0]]
    assert captions[:2] == ["user", "assistant"]
    assert captions[2].startswith("The model reads 2 tokens")


def test_nothing_shows_no_tokens():
    assert tokens_of(token_table(Tokens())) == ([], "")


def test_a_part_of_a_long_table_counts_from_the_whole_text():
    part = token_table(HELLO).part(2, 4)
    assert (part.text(0), part.first, part.begin) == ("world", 2, 6)
    facts = {fact.name: fact.value for fact in token_facts.facts_of(part, 0)}
    assert facts["Characters"] == "6–11"
    assert facts["Bytes"] == "6–11   77 6F 72 6C 64"


def test_a_token_tells_all_that_is_known_of_it():
    piece = TokenPiece(9, "Ġéa", rank=1234, log_probability=-2.5)
    table = token_table(answer("éa", [(0, 0, 0, 2)], [piece]))
    facts = {fact.name: fact.value for fact in token_facts.facts_of(table, 0)}
    assert facts["ID"] == "9"
    assert facts["Piece"] == "Ġéa"
    assert facts["Bytes"] == "0–3   C3 A9 61"
    assert facts["Merge rank"] == "1\u202f234"
    assert facts["Log-probability"] == "-2.500"


def test_an_unseen_character_is_named_in_the_hint():
    table = token_table(answer("a\u200b", [(0, 0, 0, 2)], [TokenPiece(9, "a\u200b")]))
    assert "U+200B ZERO WIDTH SPACE" in token_facts.hint_of(table, 0)


def test_counts_of_nothing_divide_by_nothing():
    assert token_facts.counts_line(Tokens()) == "0 tokens · 0 characters · 0 words · 0 unknown"


def test_counts_say_what_people_compare():
    line = token_facts.counts_line(HELLO)
    assert line == "4 tokens · 11 characters · 2 words · 5.50 characters per token · 1.00 words per token · 0 unknown"


def test_the_cost_is_compared_with_a_limit():
    assert token_facts.against_limit(64, 512) == ("12% of 512", "success")
    assert token_facts.against_limit(600, 512) == ("88 tokens over 512", "danger")
    assert token_facts.against_limit(600, None)[0] == ""


def test_the_first_difference_of_a_round_trip_is_shown_with_what_cannot_be_seen():
    back = RoundTrip(same=False, place=5, text_part="a\u00a0b", decoded_part="a b")
    words, role = token_facts.round_trip(Tokens(round_trip=back))
    assert words == "Decodes differently starting at character 5: “a⟨NBSP⟩b” becomes “a·b”"
    assert role == "warning"
