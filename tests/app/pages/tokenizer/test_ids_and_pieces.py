"""Ids and pieces are read as people write them."""

import pytest

from app.pages.tokenizer.ids_and_pieces import read_lists


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("101, 7592, 102", [[101, 7592, 102]]),
        ("[101 7592]\n(102)", [[101, 7592], [102]]),
        ("[[1, 2], [3]]", [[1, 2], [3]]),
        ("[1,\n 2]", [[1, 2]]),
        ("101\n7592;102", [[101], [7592, 102]]),
        ("  \n", []),
    ],
)
def test_ids_are_read_as_people_write_them(text, ids):
    assert read_lists(text).ids == ids


@pytest.mark.parametrize("text", ["un ##believ ##able", "['un', '##believ', '##able']", '["un", "##believ", "##able"]'])
def test_words_are_pieces(text):
    assert read_lists(text).pieces == [["un", "##believ", "##able"]]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("[CLS] hello [SEP]", [["[CLS]", "hello", "[SEP]"]]),
        ('["a b", "c"]', [["a b", "c"]]),
        ("[" * 100_000, [["[" * 100_000]]),
    ],
)
def test_pieces_with_brackets_or_spaces_are_told_apart(text, pieces):
    assert read_lists(text).pieces == pieces


def test_a_negative_number_is_no_id():
    assert read_lists("1, -5").problem.startswith("-5 is not an ID")
