"""Words and tags: their alignment with tokens, schemes, windows, entities and what is lost."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from transformers import AutoTokenizer

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.spec import validate
from backend.data.rows import Rows
from backend.tasks._token_classification_features import tokens_of, word_tokenizer
from backend.tasks.token_classification import Settings, TokenClassification

COLUMNS = {"tokens": "tokens", "tags": "tags"}
FACTS = {"labels": ["B-PER", "I-PER", "O"], "scheme": "BIO", "learned": "BIO", "outside": "O", "max_length": 512}
LONG = "Wolfeschlegelsteinhausenbergerdorff"  # a name of many tokens


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(resource("demo", "bert-tiny"))


def rows_of(tokens: list, tags: list | None = None) -> Rows:
    count = len(tokens)
    table = pa.table({"tokens": tokens} | ({"tags": tags} if tags is not None else {}))
    return Rows(table, ("news.conll",), np.zeros(count, np.int32), np.arange(count) * 10 + 1, "fingerprint")


def task(**settings: object) -> TokenClassification:
    return TokenClassification(Settings(**settings))


def encode(tokenizer, rows: Rows, facts: dict | None = None, **settings: object) -> pa.Table:
    return pa.Table.from_batches(list(task(**settings).encode(rows, COLUMNS, tokenizer, facts or FACTS)))


# Reading words and tags


@pytest.mark.parametrize(
    ("tokens", "tags"),
    [
        ([["Ada", "wrote"]], [["B-PER", "O"]]),
        (["Ada wrote"], ["B-PER O"]),  # the two-column table of sentences and slots
        (['["Ada", "wrote"]'], ['["B-PER", "O"]']),
        (["['Ada', 'wrote']"], ["['B-PER', 'O']"]),  # as pandas writes lists
    ],
)
def test_lists_json_text_and_spaced_text_are_the_same(tokenizer, tokens, tags):
    features = encode(tokenizer, rows_of(tokens, tags))
    assert features["labels"].to_pylist() == [[-100, 0, 2, -100]]


def test_text_in_brackets_is_no_list(tokenizer):
    features = encode(tokenizer, rows_of(["[1]"]))
    assert features["input_ids"].to_pylist() == [tokenizer("[1]")["input_ids"]]


def test_plain_text_without_tags_is_split_at_white_space(tokenizer):
    features = encode(tokenizer, rows_of(["Ada  wrote\nthis"]))
    assert features["word"].to_pylist() == [[-1, 0, 1, 2, -1]]


def test_other_number_of_tags_than_words_names_the_row():
    rows = rows_of([["a"], ["Ada", "wrote"]], [["O"], ["B-PER"]])
    with pytest.raises(InputError, match=r"news\.conll:11 has 2 words and 1 tag; .*mismatched_rows: skip"):
        task().unusable(rows, COLUMNS, "training")


def test_rows_that_cannot_be_used_are_listed():
    rows = rows_of([[], ["Ada", "wrote"], ["a"], ["b"]], [[], ["B-PER"], [], [None]])
    assert task(mismatched_rows="skip").unusable(rows, COLUMNS, "training") == [
        (0, "no words"),
        (1, "2 words and 1 tag"),
        (2, "no tags"),
        (3, "a word without a tag"),
    ]


def test_rows_without_tags_can_be_predicted():
    assert task().unusable(rows_of([["a"], ["b"]], [[], ["O"]]), COLUMNS, "predicting") == []
    assert task().unusable(rows_of([["a"]]), COLUMNS, "training") == []


# Labels and schemes


def fitted(tags: list[list[str]], model_labels: tuple[str, ...] = (), **settings: object) -> dict:
    return task(**settings).fit(rows_of([["w"] * len(one) for one in tags], tags), COLUMNS, model_labels)


def test_labels_are_the_sorted_tags_of_the_training_rows():
    assert fitted([["O", "I-PER"], ["B-PER", "I-PER"], ["B-LOC"]])["labels"] == ["B-LOC", "B-PER", "I-PER", "O"]


def test_the_checkpoints_order_is_kept_where_it_knows_every_tag():
    known = ("O", "B-PER", "I-PER", "B-LOC")
    assert fitted([["B-PER", "O"]], known)["labels"] == list(known)
    assert fitted([["B-ORG", "O"]], known)["labels"] == ["B-ORG", "O"]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ([["B-PER", "I-PER", "O", "B-PER"]], "BIO"),
        ([["I-PER", "I-PER", "O", "I-LOC", "B-LOC"]], "IOB1"),
        ([["B-PER", "E-PER", "O", "S-PER"]], "IOBES"),
        ([["B-PER", "L-PER", "O", "U-PER"]], "BILOU"),
        ([["NOUN", "VERB", "O"]], "none"),
        ([["0", "1", "2"]], "none"),
    ],
)
def test_scheme_is_seen_in_the_tags(tags, scheme):
    assert fitted(tags)["scheme"] == scheme


def test_single_tag_without_prefix_among_many_is_refused_by_its_row():
    tags = [["B-PER"]] * 20 + [["PERSON"]]
    with pytest.raises(InputError, match=r"news\.conll:201 has the tag 'PERSON'.*task\.scheme: none"):
        fitted(tags)


def test_faulty_tags_are_repaired_and_counted():
    facts = fitted([["B-PER", "O"]] * 3 + [["O", "I-PER"]])
    assert facts["labels"] == ["B-PER", "O"]
    [note] = facts["notes"]
    assert "1 tags did not follow BIO" in note
    assert "'I-PER' in news.conll:31" in note


def test_faulty_tags_can_be_refused():
    with pytest.raises(InputError, match=r"1 tags do not follow BIO; the first is 'I-PER' in news\.conll:31"):
        fitted([["B-PER", "O"]] * 3 + [["O", "I-PER"]], faulty_tags="refuse")


def test_other_scheme_can_be_learnt():
    facts = fitted([["I-PER", "I-PER", "B-PER", "O", "I-LOC"]], learned_scheme="IOBES")
    assert facts["scheme"] == "IOB1"
    assert facts["labels"] == ["B-PER", "E-PER", "O", "S-LOC", "S-PER"]


def test_tags_that_only_the_validation_data_has_are_told():
    facts = fitted([["B-PER", "O"]])
    task().check(rows_of([["a", "b"]], [["B-PER", "B-LOC"]]), COLUMNS, facts, "validation")
    assert facts["notes"] == [
        "data.validation: 1 words have tags that do not occur in the training data (B-LOC); they cannot be predicted and count as errors"
    ]


def test_split_with_none_of_the_known_tags_is_refused():
    with pytest.raises(InputError, match=r"data\.validation: none of its tags \(B-LOC\)"):
        task().check(rows_of([["a", "b"]], [["O", "B-LOC"]]), COLUMNS, fitted([["B-PER", "O"]]), "validation")


def test_nothing_to_learn_is_refused():
    with pytest.raises(InputError, match="every word has the tag 'O'"):
        fitted([["O", "O"]])


def test_overlap_as_long_as_the_window_is_refused():
    with pytest.raises(InputError, match="max_length 64 cannot share stride 64 tokens"):
        validate(Settings, {"max_length": 64, "stride": 64}, "task")


# Alignment with tokens


def test_first_token_has_the_tag_and_others_are_no_targets(tokenizer):
    pieces = len(tokenizer(LONG, add_special_tokens=False)["input_ids"])
    features = encode(tokenizer, rows_of([[LONG, "wrote"]], [["B-PER", "O"]]))
    assert features["labels"].to_pylist() == [[-100, 0, *[-100] * (pieces - 1), 2, -100]]


def test_with_all_tokens_a_beginning_goes_on_inside(tokenizer):
    pieces = len(tokenizer(LONG, add_special_tokens=False)["input_ids"])
    features = encode(tokenizer, rows_of([[LONG, LONG]], [["B-PER", "O"]]), label_all_tokens=True)
    assert features["labels"].to_pylist() == [[-100, 0, *[1] * (pieces - 1), *[2] * pieces, -100]]


@pytest.mark.parametrize("label_all_tokens", [False, True])
def test_alignment_is_that_of_the_transformers_example(tokenizer, label_all_tokens: bool):
    """The rule of run_ner.py, written out from its description: word_ids, B to I, -100 elsewhere."""
    text = (Path(__file__).parents[2] / "data" / "ner" / "train.conll").read_text(encoding="utf-8")
    sentences = [[line.split("\t") for line in block.split("\n") if line] for block in text.split("\n\n")]
    words, tags = ([[cells[k] for cells in one] for one in sentences] for k in (0, 1))
    facts = task().fit(rows_of(words, tags), COLUMNS) | {"max_length": 512}
    number = {label: index for index, label in enumerate(facts["labels"])}
    expected = []
    for one, its_tags in zip(words, tags, strict=True):
        before, labels = None, []
        for word in tokenizer(one, is_split_into_words=True).word_ids():
            if word is None or (word == before and not label_all_tokens):
                labels.append(-100)
            elif word != before:
                labels.append(number[its_tags[word]])
            else:
                labels.append(number.get(its_tags[word].replace("B-", "I-"), number[its_tags[word]]))
            before = word
        expected.append(labels)
    features = encode(tokenizer, rows_of(words, tags), facts, label_all_tokens=label_all_tokens)
    assert features["labels"].to_pylist() == expected


def test_words_without_a_token_leave_their_neighbours_alone(tokenizer):
    features = encode(tokenizer, rows_of([["\u200b", "Ada", "", "wrote", "\x07"]], [["O", "B-PER", "O", "O", "O"]]))
    assert features["word"].to_pylist() == [[-1, 1, 3, -1]]
    assert features["labels"].to_pylist() == [[-100, 0, 2, -100]]


def test_unknown_tags_are_no_targets(tokenizer):
    features = encode(tokenizer, rows_of([["Ada", "wrote"]], [["B-LOC", "B-PER"]]))
    assert features["labels"].to_pylist() == [[-100, -100, 0, -100]]


# Byte-level and slow tokenizers


def byte_level(**options: object):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    backend.train_from_iterator(["the world says hello to the world"] * 9, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, **options)


def test_every_word_of_a_byte_level_tokenizer_begins_with_its_space():
    tokenizer = byte_level()
    tokens = tokens_of(word_tokenizer(tokenizer), [["world", "world"]])
    assert tokenizer.convert_ids_to_tokens(tokens.ids.tolist()) == ["Ġworld", "Ġworld"]


def test_the_tokenizer_itself_stays_as_it_is():
    tokenizer = byte_level()
    word_tokenizer(tokenizer)
    assert tokenizer.convert_ids_to_tokens(tokenizer("world")["input_ids"])[0] != "Ġworld"


def test_slow_tokenizer_is_refused_in_a_sentence():
    with pytest.raises(InputError, match=r"model\.tokenizer: .* tokenizer\.json"):
        word_tokenizer(object())


# Windows


def windowed(tokenizer, words: list[str], longest: int, **settings: object) -> pa.Table:
    return encode(tokenizer, rows_of([words], [["O"] * len(words)]), FACTS | {"max_length": longest}, **settings)


def test_every_word_is_predicted_once_and_no_window_is_too_long(tokenizer):
    words = ["a", LONG, "of", "the"] * 40
    features = windowed(tokenizer, words, 32, stride=8)
    assert max(len(ids) for ids in features["input_ids"].to_pylist()) <= 32
    assert sorted(word for one in features["word"].to_pylist() for word in one if word >= 0) == list(range(160))
    assert features["part"].to_pylist() == list(range(len(features)))


def test_windows_have_the_special_tokens_and_overlap_as_asked(tokenizer):
    features = windowed(tokenizer, ["a"] * 20, 12, stride=4)
    ids = features["input_ids"].to_pylist()
    assert [(one[0], one[-1]) for one in ids] == [(tokenizer.cls_token_id, tokenizer.sep_token_id)] * len(ids)
    assert [len(one) - 2 for one in ids] == [10, 10, 8]  # words 0 to 9, 6 to 15, 12 to 19


def test_word_belongs_to_the_window_with_most_around_it(tokenizer):
    features = windowed(tokenizer, ["a"] * 16, 12, stride=4)  # words 0 to 9 and 6 to 15
    first, second = ([word for word in one if word >= 0] for one in features["word"].to_pylist())
    assert first == list(range(8))  # word 7 has two words to its right here, and one to its left there
    assert second == list(range(8, 16))


def test_word_longer_than_a_window_keeps_its_first_token(tokenizer):
    features = windowed(tokenizer, ["a", LONG, "b"], 6)
    assert sorted(word for one in features["word"].to_pylist() for word in one if word >= 0) == [0, 1, 2]


def test_overlap_without_room_is_refused(tokenizer):
    with pytest.raises(InputError, match=r"task\.stride: windows of 12 tokens have room for 10"):
        windowed(tokenizer, ["a"] * 20, 12, stride=11)


# Predictions and scores


def decoded(tokenizer, rows: Rows, guesses: list[list[str]], facts: dict = FACTS, **settings: object):
    """What comes of logits that say `guesses`, word by word."""
    one = task(**settings)
    features = encode(tokenizer, rows, facts, **settings)
    logits = []
    for row, words in zip(features["row"].to_pylist(), features["word"].to_pylist(), strict=True):
        array = np.zeros((len(words), len(facts["labels"])), np.float32)
        for place, word in enumerate(words):
            if word >= 0:
                array[place, facts["labels"].index(guesses[row][word])] = 5.0
        logits.append(array)
    predictions = one.decode({"logits": logits}, features, rows, COLUMNS, facts, tokenizer)
    return predictions, one.score(predictions, facts)


def test_lost_words_are_outside_and_stay_in_the_reference(tokenizer):
    rows = rows_of([["Ada"] * 10], [["B-PER"] * 10])
    predictions, scores = decoded(
        tokenizer, rows, [["B-PER"] * 10], FACTS | {"max_length": 6}, window=False, max_length=6
    )
    assert predictions.table["prediction"].to_pylist() == ["B-PER " * 4 + "O O O O O O"]
    assert predictions.table["lost_words"].to_pylist() == [6]
    assert scores["recall"] == pytest.approx(0.4)


def test_with_windows_nothing_is_lost(tokenizer):
    rows = rows_of([["Ada"] * 10], [["B-PER"] * 10])
    predictions, scores = decoded(tokenizer, rows, [["B-PER"] * 10], FACTS | {"max_length": 6}, max_length=6)
    assert predictions.table["lost_words"].to_pylist() == [0]
    assert scores["recall"] == 1.0


def test_words_without_a_token_are_lost_too(tokenizer):
    predictions, _ = decoded(tokenizer, rows_of([["Ada", "\u200b"]]), [["B-PER", "O"]])
    assert predictions.table["prediction"].to_pylist() == ["B-PER O"]
    assert predictions.table["lost_words"].to_pylist() == [1]


def test_sentences_do_not_melt_into_one(tokenizer):
    rows = rows_of([["Ada"], ["Ada"]], [["B-PER"], ["I-PER"]])
    _, scores = decoded(tokenizer, rows, [["B-PER"], ["I-PER"]])
    assert scores["f1"] == scores["f1_PER"] == 1.0  # as one sequence the two would be one entity


def test_scores_of_a_known_case(tokenizer):
    facts = FACTS | {"labels": ["B-LOC", "B-PER", "I-PER", "O"]}
    rows = rows_of([["a", "b", "c", "d"]], [["B-PER", "I-PER", "O", "B-LOC"]])
    _, scores = decoded(tokenizer, rows, [["B-PER", "O", "O", "B-LOC"]], facts)
    assert scores["accuracy"] == 0.75
    assert scores["precision"] == scores["recall"] == scores["f1"] == 0.5
    assert (scores["f1_LOC"], scores["f1_PER"]) == (1.0, 0.0)


def test_loss_is_the_mean_over_words(tokenizer):
    rows = rows_of([["a", "b", "c"]], [["O", "O", "B-PER"]])
    _, scores = decoded(tokenizer, rows, [["O", "O", "O"]])
    expected = np.log(np.exp(5) + 2) - np.array([5, 5, 0])
    assert scores["loss"] == pytest.approx(expected.mean())


def test_without_tags_there_are_predictions_and_no_scores(tokenizer):
    predictions, scores = decoded(tokenizer, rows_of([["Ada", "wrote"]]), [["B-PER", "O"]])
    assert predictions.table["actual"].to_pylist() == [None]
    assert predictions.documents["predictions.conll"] == "Ada\tB-PER\nwrote\tO\n\n"
    assert scores == {}


def test_predictions_are_written_in_the_scheme_of_the_rows(tokenizer):
    facts = {"labels": ["B-PER", "E-PER", "O", "S-PER"], "scheme": "IOB1", "learned": "IOBES", "outside": "O"}
    facts["max_length"] = 512
    rows = rows_of([["a", "b", "c", "d"]], [["I-PER", "I-PER", "B-PER", "O"]])
    predictions, scores = decoded(tokenizer, rows, [["B-PER", "E-PER", "S-PER", "O"]], facts)
    assert predictions.table["prediction"].to_pylist() == ["I-PER I-PER B-PER O"]
    assert scores["f1"] == scores["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("BIO", ["B-PER", "I-PER", "B-PER", "O"]),
        ("IOB1", ["I-PER", "I-PER", "B-PER", "O"]),
        ("IOBES", ["B-PER", "E-PER", "S-PER", "O"]),
        ("BILOU", ["B-PER", "L-PER", "U-PER", "O"]),
    ],
)
def test_document_is_written_in_the_wanted_scheme(tokenizer, scheme: str, tags: list[str]):
    words, actual = ["a", "b", "c", "d"], ["B-PER", "I-PER", "B-PER", "O"]
    predictions, _ = decoded(tokenizer, rows_of([words], [actual]), [actual], written_scheme=scheme)
    lines = [f"{word}\t{tag}\t{tag}" for word, tag in zip(words, tags, strict=True)]
    assert predictions.documents["predictions.conll"] == "\n".join([*lines, "", ""])


def test_parts_of_speech_are_scored_tag_by_tag(tokenizer):
    facts = {"labels": ["NOUN", "VERB"], "scheme": "none", "learned": "none", "outside": "NOUN", "max_length": 512}
    rows = rows_of([["a", "b", "c"]], [["NOUN", "VERB", "VERB"]])
    _, scores = decoded(tokenizer, rows, [["NOUN", "VERB", "NOUN"]], facts)
    assert scores["f1_NOUN"] == scores["f1_VERB"] == scores["f1"] == pytest.approx(2 / 3)


def test_model_of_another_origin_tells_its_scheme_by_its_labels():
    assert task().facts_of_model(("O", "B-PER", "I-PER"))["scheme"] == "BIO"
    assert task().facts_of_model(("O", "I-PER"))["scheme"] == "IOB1"
    assert task().facts_of_model(("ADJ", "NOUN"))["outside"] == "ADJ"
