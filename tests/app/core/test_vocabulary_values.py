"""What the Vocabulary and Compare sides show is worked out without Qt."""

from app.core.text.pipeline_steps import merge_row
from backend.contract.tokens.text_columns import language_column, text_column
from backend.contract.tokens.vocabulary import MergeNode


def test_a_part_of_a_character_is_drawn_as_its_piece():
    assert merge_row(MergeNode(0, "à", "\ufffd")) == ("à", "")
    assert merge_row(MergeNode(0, "Ġthe", " the", 9)) == ("·the", "merge 9")


def test_a_column_with_long_texts_is_taken_for_the_texts():
    assert text_column(["id", "review"], [["1", "quite long"], ["2", "another"]]) == "review"
    assert text_column([], []) == ""
    assert language_column(["text", "Lang"]) == "Lang"
