"""Windows, positions and masks of question answering, with a tokenizer that puts [CLS] first and one that puts it last."""

import itertools
import re

import pyarrow as pa
import pytest
from transformers import AutoTokenizer

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.tasks.question_answering import QuestionAnswering, Settings
from backend.tokenizers.loading import open_tokenizer
from tests.backend.tasks.questions import COLUMNS, answer_text, answered, bert, features_of, rows_of, xlnet

CONTEXT = "The old bridge crosses the Tamsel near Port Ellory. " * 12 + "It was opened by Ines Varga in 1908."
QUESTION = "Who opened the bridge?"
LONG = {"max_length": 64, "doc_stride": 16}


@pytest.fixture(scope="module")
def first():
    return bert()


@pytest.fixture(scope="module")
def last():
    return xlnet([CONTEXT, QUESTION] * 20)


def test_long_context_is_read_in_windows_that_overlap_by_the_stride(first):
    features = features_of(first, rows_of([answered(QUESTION, CONTEXT, "Ines Varga")]), **LONG)
    starts = [[start for start in one if start >= 0] for one in features["offset_start"].to_pylist()]
    assert len(starts) > 2
    assert all(before[-16:] == after[:16] for before, after in itertools.pairwise(starts))
    assert features["part"].to_pylist() == list(range(len(starts)))


def test_windows_together_hold_every_token_of_the_context(first):
    features = features_of(first, rows_of([answered(QUESTION, CONTEXT, "Ines Varga")]), **LONG)
    seen = {start for one in features["offset_start"].to_pylist() for start in one if start >= 0}
    whole = first(CONTEXT, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    assert seen == {start for start, _ in whole}


@pytest.mark.parametrize("which", ["first", "last"])
def test_answer_stands_at_its_positions_and_elsewhere_at_the_classification_token(which, request):
    tokenizer = request.getfixturevalue(which)
    features = features_of(tokenizer, rows_of([answered(QUESTION, CONTEXT, "Ines Varga")]), **LONG)
    first_character = CONTEXT.index("Ines Varga")
    for number, offsets in enumerate(features["offset_start"].to_pylist()):
        place = features["input_ids"][number].as_py().index(tokenizer.cls_token_id)
        if first_character in offsets:
            assert answer_text(features, number, CONTEXT) == "Ines Varga"
        else:
            assert features["start_positions"][number].as_py() == features["end_positions"][number].as_py() == place


def test_classification_token_is_looked_up_and_not_taken_to_be_the_first(last):
    features = features_of(last, rows_of([answered(QUESTION, CONTEXT, "Ines Varga")]), **LONG)
    assert features["null_index"][0].as_py() == len(features["input_ids"][0]) - 1 > 0


def test_tokenizer_that_pads_on_the_left_takes_the_context_first(last):
    features = features_of(last, rows_of([answered(QUESTION, CONTEXT, "Ines Varga")]), **LONG)
    assert all(offsets[0] >= 0 for offsets in features["offset_start"].to_pylist())
    assert all(offsets[-1] == -1 for offsets in features["offset_start"].to_pylist())


def test_segments_that_xlnet_was_trained_with_reach_the_model_and_are_saved_with_it(last, tmp_path):
    last.save_pretrained(tmp_path / "stored")
    opened = open_tokenizer(str(tmp_path / "stored"))
    opened.save_pretrained(tmp_path / "again")
    again = AutoTokenizer.from_pretrained(tmp_path / "again")
    for tokenizer in (opened, again):
        features = features_of(tokenizer, rows_of([answered(QUESTION, "by Ines Varga", "Varga")]))
        assert sorted(set(features["token_type_ids"][0].as_py())) == [0, 1, 2]


def test_tokenizer_that_pads_on_the_right_cuts_the_context_and_never_the_question(first):
    features = features_of(first, rows_of([answered(QUESTION, CONTEXT, "Ines Varga")]), **LONG)
    question = first(QUESTION)["input_ids"]
    assert all(ids[: len(question)] == question for ids in features["input_ids"].to_pylist())


def test_answer_that_is_the_last_word_of_the_context_ends_there(first):
    context = "It was opened by Ines Varga"
    features = features_of(first, rows_of([answered(QUESTION, context, "Varga")]))
    assert answer_text(features, 0, context) == "Varga"


def test_every_answer_inside_a_window_is_found_again_whatever_its_place(first):
    words = re.finditer(r"\S+", CONTEXT[-90:-1])
    spans = [(word.start() + len(CONTEXT) - 90, word.group()) for word in words][1:]
    questions = [
        {"question": QUESTION, "context": CONTEXT, "answers": {"text": [text], "answer_start": [start]}}
        for start, text in spans
    ]
    features = features_of(first, rows_of(questions))
    assert [answer_text(features, number, CONTEXT) for number in range(len(spans))] == [text for _, text in spans]


def test_only_the_first_of_several_answers_is_trained(first):
    features = features_of(first, rows_of([answered(QUESTION, "by Ines Varga in 1908", "1908", "Ines Varga")]))
    assert answer_text(features, 0, "by Ines Varga in 1908") == "1908"


def test_question_without_answer_trains_the_classification_token(first):
    rows = rows_of([answered(QUESTION, "by Ines Varga", "Ines Varga"), answered(QUESTION, "by nobody")])
    features = features_of(first, rows)
    assert features["start_positions"].to_pylist()[1] == features["end_positions"].to_pylist()[1] == 0


def test_unknown_answers_are_no_targets(first):
    rows = rows_of([{"question": QUESTION, "context": "by Ines Varga"}])
    features = features_of(first, rows, {"version_2_with_negative": False})
    assert features["start_positions"].to_pylist() == features["end_positions"].to_pylist() == [-100]


@pytest.mark.parametrize("which", ["first", "last"])
def test_beams_may_answer_with_the_context_and_the_classification_token_alone(which, request):
    tokenizer = request.getfixturevalue(which)
    features = features_of(tokenizer, rows_of([answered(QUESTION, "by Ines Varga", "Ines Varga")]), head="beam")
    offsets, mask = features["offset_start"][0].as_py(), features["p_mask"][0].as_py()
    place = features["cls_index"][0].as_py()
    assert features["input_ids"][0].as_py()[place] == tokenizer.cls_token_id
    assert [one == 0 for one in mask] == [start >= 0 or index == place for index, start in enumerate(offsets)]


def test_beams_learn_whether_there_is_an_answer_only_where_there_may_be_none(first):
    known, none = answered(QUESTION, "by Ines Varga", "Ines Varga"), answered(QUESTION, "by nobody")
    assert "is_impossible" not in features_of(first, rows_of([known]), head="beam").column_names
    impossible = features_of(first, rows_of([known, none]), head="beam")["is_impossible"]
    assert impossible.type == pa.float32()
    assert impossible.to_pylist() == [0.0, 1.0]


def test_head_follows_the_setting():
    assert QuestionAnswering(Settings()).head is Head.QUESTION_ANSWERING
    assert QuestionAnswering(Settings(head="beam")).head is Head.QUESTION_ANSWERING_BEAM


def test_tokenizer_without_offsets_is_refused_in_one_sentence():
    from transformers import ByT5Tokenizer  # it reads bytes and has no fast twin

    with pytest.raises(InputError, match="ByT5Tokenizer cannot tell") as caught:
        features_of(ByT5Tokenizer(), rows_of([answered(QUESTION, "by Ines Varga", "Varga")]))
    assert caught.value.field == "model.tokenizer"


def test_question_that_leaves_the_windows_no_room_is_named_before_the_tokenizer_aborts(first):
    rows = rows_of([answered("Who?", CONTEXT, "Ines Varga"), answered(QUESTION * 10, CONTEXT, "Ines Varga")])
    with pytest.raises(InputError, match=r"questions\.json:2 has a long question, which leaves \d+ tokens"):
        features_of(first, rows, **LONG)


def test_long_question_with_a_short_context_is_no_mistake(first):
    rows = rows_of([answered(QUESTION * 10, "by Ines Varga", "Varga")])
    assert features_of(first, rows, **LONG).num_rows == 1


def test_stride_as_wide_as_the_window_is_refused():
    with pytest.raises(ValueError, match=r"max_length 64 cannot share doc_stride 64 tokens.*for example 21"):
        Settings(max_length=64, doc_stride=64)


def test_white_space_before_a_question_counts_for_nothing(first):
    rows = rows_of([answered("   Who?", "by Ines Varga", "Varga"), answered("Who?", "by Ines Varga", "Varga")])
    spaced, plain = features_of(first, rows)["input_ids"].to_pylist()
    assert spaced == plain


def test_columns_of_the_data_are_guessed():
    from backend.preflight.datasets import choose_columns

    rows = rows_of([answered("Who?", "by Ines Varga", "Varga")])
    assert choose_columns(QuestionAnswering, {}, rows) == COLUMNS  # type: ignore[arg-type]
