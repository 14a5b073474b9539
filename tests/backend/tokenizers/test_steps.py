"""The steps of a tokenizer are told of any text, pair, chat and words, or a part of them, however long and broken."""

from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.tokens.steps import MAX_CHARACTERS, StepsQuestion, TokenizerSteps
from backend.contract.tokens.tokens import Message
from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.steps import pipeline, subject

BERT_TINY, MARIAN = str(resource("demo", "bert-tiny")), str(resource("demo", "eng-spa-marian"))
CHAT = [Message("user", "Is a fox quick?"), Message("assistant", "Yes."), Message("user", "Thanks")]
MARKED = "{% for m in messages %}<|endoftext|>{{ m.content }}{% endfor %}"


def steps(tokenizer: str, **question) -> TokenizerSteps:
    return pipeline.steps(open_tokenizer(tokenizer), StepsQuestion(tokenizer="", **question))


def texts(found: TokenizerSteps, stage: str) -> list[str]:
    return [part.text for part in [step for step in found.steps if step.stage == stage][-1].parts]


def test_a_long_and_broken_pair_is_cleaned_and_shortened(word_piece: Path):
    found = steps(str(word_piece), text="fox", pair="\ud83d" + "a " * MAX_CHARACTERS)
    assert found.pair is not None
    assert (found.pair[:2], len(found.pair)) == ("\ufffda", MAX_CHARACTERS)
    assert found.shortened


def test_merges_are_told_in_the_order_in_which_they_apply(byte_level: Path):
    told = steps(str(byte_level), text="the")
    (word,) = told.words
    ranks = [merge.rank for merge in word.merges]
    assert word.symbols == ["t", "h", "e"]
    assert ranks == sorted(ranks)
    assert word.merges[-1].left + word.merges[-1].right == word.pieces[-1]


def test_unigrams_choice_is_the_best_of_all_ways():
    told = steps(MARIAN, text="unbelievable")
    (word,) = told.words
    taken = [choice.log_probability for choice in word.choices if choice.taken]
    assert sum(taken) == pytest.approx(word.score)
    assert word.runner_up_score < word.score
    assert "".join(word.runner_up) == word.word


def test_word_piece_says_why_a_word_is_unknown():
    words = {word.word: word for word in steps(BERT_TINY, text="🦊 " + "x" * 101).words}
    assert "No piece matches" in words["🦊"].sentence
    assert "longer than 100 characters" in words["x" * 101].sentence


def test_added_tokens_are_left_alone_by_the_steps():
    told = steps(BERT_TINY, text="A [MASK] B", pair="pair")
    assert [part.text for part in told.steps[0].parts] == ["A ", "[MASK]", " B"]
    assert [part.text for part in told.steps[1].parts] == ["a ", "[MASK]", " b"]
    assert [part.type for part in told.steps[-1].parts] == [0, 0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("part", "first", "second"), [(None, "a house", "red"), (0, "a house", "red"), (1, "red", "a house")]
)
def test_either_text_of_a_pair_is_told(part: int | None, first: str, second: str):
    found = steps(BERT_TINY, text="a house", pair="red", part=part)
    assert (found.text, found.pair) == (first, second)
    assert texts(found, "model") == first.split()
    assert texts(found, "post_processor") == ["[CLS]", "a", "house", "[SEP]", "red", "[SEP]"]


@pytest.mark.parametrize("tokenizer", [BERT_TINY, MARIAN])
def test_words_that_were_split_before_go_through_the_steps_one_by_one(tokenizer: str):
    text = "Un-believable  </s>fox\nnaïve [MASK]"
    found = steps(tokenizer, text=text, pre_split=True)
    assert texts(found, "words") == text.split()
    own = open_tokenizer(tokenizer)
    ids = own(text.split(), is_split_into_words=True)["input_ids"]
    assert [part.id for part in found.steps[-1].parts] == ids
    traced = {word.word: word.ids for word in found.words}
    cut = [step for step in found.steps if step.stage == "pre_tokenizer"][-1].parts
    model = next(step for step in found.steps if step.stage == "model").parts
    assert [number for part in cut for number in ([part.id] if part.fixed else traced[part.text])] == [
        part.id for part in model
    ]
    spans = [(part.start, part.end) for part in cut]
    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())


def test_one_word_of_several_is_told():
    found = steps(BERT_TINY, text="naïve foxes", pre_split=True, part=1)
    assert (found.text, texts(found, "model")) == ("foxes", ["foxes"])
    with pytest.raises(InputError, match="there is no word 3; there are 2"):
        steps(BERT_TINY, text="naïve foxes", pre_split=True, part=2)


def test_what_is_done_at_the_beginning_of_a_text_is_not_done_after_an_added_token(unigram: Path):
    tokenizer = open_tokenizer(str(unigram))
    tokenizer.backend_tokenizer.pre_tokenizer.prepend_scheme = "first"
    found = pipeline.steps(tokenizer, StepsQuestion(tokenizer="", text="fox</s>dog"))
    assert texts(found, "pre_tokenizer") == ["▁fox", "</s>", "dog"]


def test_a_chat_is_told_as_its_template_writes_it(byte_level: Path):
    found = steps(str(byte_level), messages=CHAT, chat_template=MARKED)
    assert found.text == "<|endoftext|>Is a fox quick?<|endoftext|>Yes.<|endoftext|>Thanks"
    assert texts(found, "added_tokens")[:3] == ["<|endoftext|>", "Is a fox quick?", "<|endoftext|>"]


def test_one_message_of_a_chat_is_told(byte_level: Path):
    found = steps(str(byte_level), messages=CHAT, chat_template=MARKED, part=1)
    assert (found.text, found.notes) == ("<|endoftext|>Yes.", [])
    with pytest.raises(InputError, match="there is no message 4; there are 3"):
        steps(str(byte_level), messages=CHAT, chat_template=MARKED, part=3)


def test_a_message_that_its_neighbours_change_says_so(byte_level: Path):
    joined = "{% for m in messages %}{{ m.content }}{% endfor %}"
    messages = [Message("user", "The quick brown f"), Message("user", "ox jumps")]
    assert steps(str(byte_level), messages=messages, chat_template=joined, part=1).notes == [subject.CUT_OTHERWISE]


def test_messages_that_cannot_be_told_apart_are_told_as_a_whole(byte_level: Path):
    counted = "{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}"
    found = steps(str(byte_level), messages=CHAT, chat_template=counted, part=1)
    assert (found.text[:4], found.notes) == ("3Is ", [subject.NOT_TOLD_APART])


def test_of_a_tokenizer_in_python_the_pieces_are_told_and_what_is_not_known(tmp_path: Path):
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    before, model, after = steps(str(tmp_path), text="fé").steps
    assert not before.known
    assert "it does not report what it does" in before.sentence
    assert [(part.start, part.end) for part in model.parts] == [(0, 1), (1, 2), (1, 2)]
    assert "are certain" in model.sentence
    assert [part.text for part in after.parts][-1] == "</s>"
