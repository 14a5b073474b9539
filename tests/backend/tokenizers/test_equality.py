"""Whatever text and options: our columns are what transformers and tokenizers say, and what can be derived from it."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.tokens.steps import StepsQuestion
from backend.contract.tokens.tokens import TokenizeQuestion
from backend.tokenizers import answers, long_text, tokenize
from backend.tokenizers.loading import open_tokenizer
from backend.tokenizers.long_text import Stream
from backend.tokenizers.steps.pipeline import steps
from backend.tokenizers.text import Text
from backend.tokenizers.token_table import NOWHERE

pytestmark = pytest.mark.filterwarnings("ignore:This sequence already has </s>")  # ByT5 of a text that holds it


PIECES = ["👩‍👩‍👧", "e\u0301", "සිංහල", "العربية", "東京", " ", "\n", "\t", "[MASK]", "</s>", "<|endoftext|>", "ﬁ", "the", "\0", "\u200d"]  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.just(""),
    st.text(st.characters(codec="utf-8"), max_size=20),
)  # fmt: skip
CLEAN = TEXTS.map(lambda text: text.encode("utf-8", "replace").decode())


@pytest.fixture(scope="session")
def folders(tmp_path_factory, byte_level: Path, unigram: Path) -> dict[str, str]:
    """A tokenizer of each family; the demo models are a real WordPiece, byte-level BPE and Unigram."""
    characters = tmp_path_factory.mktemp("canine")
    (characters / "tokenizer_config.json").write_text('{"tokenizer_class": "CanineTokenizer"}')
    as_bytes = tmp_path_factory.mktemp("byt5")
    (as_bytes / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    return {
        "word_piece": str(resource("demo", "bert-tiny")),
        "byte_level": str(resource("demo", "austen-gpt2")),
        "unigram": str(resource("demo", "eng-spa-marian")),
        "sentencepiece_bpe": str(_with_byte_fallback(tmp_path_factory.mktemp("fallback"))),
        "characters": str(characters),
        "bytes": str(as_bytes),
    }


def _with_byte_fallback(folder: Path) -> Path:
    """As Llama's: BPE over the whole text, spaces as ▁, and bytes for what has no piece."""
    words = ["▁t", "he", "▁the", "in", "▁a", "er", "▁▁"]
    signs = ["▁", *"abcdefghijklmnopqrstuvwxyz", "é"]
    names = ["<pad>", "<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *signs, *words]
    merges = [("▁", "t"), ("h", "e"), ("▁t", "he"), ("i", "n"), ("▁", "a"), ("e", "r"), ("▁", "▁")]
    model = models.BPE(
        vocab={name: number for number, name in enumerate(names)}, merges=merges, unk_token="<unk>", fuse_unk=True,
        byte_fallback=True,
    )  # fmt: skip
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    roles = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=made, **roles).save_pretrained(folder)
    return folder


@lru_cache
def opened(folder: str) -> Any:
    """Once for all examples."""
    tokenizer = open_tokenizer(folder)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


FAST = ["word_piece", "byte_level", "unigram", "sentencepiece_bpe"]
ALL = [*FAST, "characters", "bytes"]
calm = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    """Options as they may come together."""
    asked: dict[str, Any] = {"special_tokens": draw(st.booleans()), "pre_split": draw(st.booleans())}
    if draw(st.booleans()):
        asked["max_length"] = draw(st.integers(1, 24))
        asked["truncation"] = draw(st.sampled_from(["longest_first", "only_first", "only_second"]))
        asked["truncation_side"] = draw(st.sampled_from([None, "left", "right"]))
        if draw(st.booleans()):
            asked |= {"windows": True, "stride": draw(st.integers(0, 6))}
    if draw(st.booleans()):
        asked["padding"] = draw(st.sampled_from(["longest", "max_length"]))
        asked["padding_side"] = draw(st.sampled_from([None, "left", "right"]))
        asked["pad_to_multiple_of"] = draw(st.sampled_from([None, 8]))
    return asked


def fitting(asked: dict[str, Any], pair: str | None) -> dict[str, Any]:
    """Mostly options that go together; what is refused shows nothing."""
    found = dict(asked)
    if "max_length" in found:
        found["max_length"] = found["max_length"] * 8 if found.get("pad_to_multiple_of") else found["max_length"] + 4
        if found.get("windows"):
            found["stride"] = min(found["stride"], found["max_length"] - 4)
            found["truncation"] = "only_first" if pair is None else "only_second"
        elif pair is None:
            found["truncation"] = "only_first"
    return found


def call(tokenizer: Any, text: str, pair: str | None, asked: dict[str, Any]) -> Any:
    """The same of transformers."""
    given = [text.split() if asked["pre_split"] else text]
    second = None if pair is None else [pair.split() if asked["pre_split"] else pair]
    before = tokenizer.truncation_side
    tokenizer.truncation_side = asked.get("truncation_side") or before
    try:
        return tokenizer(
            given, second, add_special_tokens=asked["special_tokens"], is_split_into_words=asked["pre_split"],
            truncation=asked["truncation"] if "max_length" in asked else False, max_length=asked.get("max_length"),
            stride=asked.get("stride", 0), return_overflowing_tokens=asked.get("windows", False),
            padding=asked.get("padding") or False, padding_side=asked.get("padding_side"),
            pad_to_multiple_of=asked.get("pad_to_multiple_of"), return_token_type_ids=True,
            return_attention_mask=True, verbose=False,
            **({"return_offsets_mapping": True} if tokenizer.is_fast else {}),
        )  # fmt: skip
    finally:
        tokenizer.truncation_side = before


@pytest.mark.parametrize("family", FAST)
@calm
@given(text=CLEAN, pair=st.none() | CLEAN, asked=questions())
def test_fast_tokenizers_are_told_as_they_are(
    folders: dict[str, str], family: str, text: str, pair: str | None, asked: dict[str, Any]
):
    tokenizer = opened(folders[family])
    asked = fitting(asked, pair)
    question = TokenizeQuestion(tokenizer="", text=text, pair=pair, **asked)
    try:
        told = tokenize.as_json(tokenize.tokenize(tokenizer, text, question, pair))
    except InputError:
        return
    own = call(tokenizer, text, pair, asked)
    assert told["ids"] == [number for row in own["input_ids"] for number in row]
    assert told["attention_mask"] == [one for row in own["attention_mask"] for one in row]
    assert told["type_ids"] == [one for row in own["token_type_ids"] for one in row]
    assert told["windows"] == [number for number, row in enumerate(own["input_ids"]) for _ in row]
    assert told["pieces"] == tokenizer.convert_ids_to_tokens(told["ids"])
    assert told["word_ids"] == [word for one in own.encodings for word in one.word_ids]
    sequences = [which for one in own.encodings for which in one.sequence_ids]
    assert told["sequence_ids"] == sequences
    if not asked["pre_split"]:
        offsets = [tuple(one) for row in own["offset_mapping"] for one in row]
        assert [tuple(one) for one in told["offsets"]] == offsets
    for which, (start, end), piece_text in zip(sequences, told["offsets"], told["texts"], strict=True):
        assert piece_text == ("" if which is None else (text, pair)[which][start:end])


@pytest.mark.parametrize("family", ["characters", "bytes"])
@calm
@given(text=CLEAN, pair=st.none() | CLEAN, asked=questions().filter(lambda one: not one.get("windows")))
def test_tokenizers_written_in_python_are_told_as_they_are(
    folders: dict[str, str], family: str, text: str, pair: str | None, asked: dict[str, Any]
):
    tokenizer = opened(folders[family])
    asked = fitting(asked, pair)
    question = TokenizeQuestion(tokenizer="", text=text, pair=pair, **asked)
    try:
        told = tokenize.as_json(tokenize.tokenize(tokenizer, text, question, pair))
    except InputError:
        return
    if asked["pre_split"] and not (text.split() and (pair is None or pair.split())):
        return  # transformers takes no empty list of words here
    own = call(tokenizer, text, pair, asked)
    assert told["ids"] == list(own["input_ids"][0])
    assert told["attention_mask"] == list(own["attention_mask"][0])
    assert told["type_ids"] == list(own["token_type_ids"][0])


@pytest.mark.parametrize("family", ALL)
@calm
@given(text=TEXTS)
def test_bytes_of_a_text_are_those_of_its_tokens(folders: dict[str, str], family: str, text: str):
    """Any string that Python holds, lone surrogates too."""
    tokenizer = opened(folders[family])
    table = tokenize.tokenize(tokenizer, text)
    columns, source = table.columns, table.rest.sources[0].encode()
    assert all(columns["byte_start"] <= columns["byte_end"])
    assert columns["byte_end"].max(initial=0) <= len(source)
    places = zip(*(columns[name].tolist() for name in ("piece", "byte_start", "byte_end", "partial")), strict=True)
    for place, start, end, cut in places:
        piece = table.rest.pieces[place]
        if cut:
            assert source[start:end].hex() == piece.bytes
        else:
            source[start:end].decode()  # whole characters


@calm
@given(text=CLEAN)
def test_byte_level_bytes_follow_each_other_without_gaps(folders: dict[str, str], text: str):
    columns = tokenize.tokenize(opened(folders["byte_level"]), text).columns
    borders = [0, *columns["byte_end"].tolist()]
    assert columns["byte_start"].tolist() == borders[:-1]
    assert borders[-1] == len(text.encode())


@pytest.mark.parametrize("family", [*FAST, "bytes"])
@settings(calm, max_examples=15)
@given(parts=st.lists(CLEAN | st.sampled_from(["word ", "two words\n", "x" * 90, "සිංහල "]), min_size=1, max_size=30))
def test_a_long_text_in_blocks_is_the_text_whole(folders: dict[str, str], family: str, parts: list[str]):
    text = " ".join(parts * (1 + 2000 // max(1, sum(map(len, parts)))))
    tokenizer = opened(folders[family])
    whole = tokenize.tokenize(tokenizer, text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_text, "BLOCK", 500)
        for name, value in {"AROUND": 120, "AGREED": 60}.items():
            patch.setattr(long_text, name, value)
        stream = Stream(tokenizer, Text(text), True)
        parts_of = list(stream.arrays(lambda *_: None))
    told = stream.facts()
    ids = np.array([one.id for one in whole.rest.pieces])[whole.columns["piece"]]
    assert np.concatenate([np.array([one.id for one in told.pieces])[part["piece"]] for part in parts_of]).tolist() == ids.tolist()  # fmt: skip
    for name in ("start", "end", "byte_start", "byte_end", "word", "partial", "sequence"):
        assert np.concatenate([part[name] for part in parts_of]).tolist() == whole.columns[name].tolist(), name
    for name in ("tokens", "text_tokens", "characters", "bytes", "words", "unknown", "partial", "byte_fallback"):
        assert getattr(told, name) == getattr(whole.rest, name), name


@pytest.mark.parametrize("family", FAST)
@calm
@given(text=CLEAN, special=st.booleans())
def test_the_last_step_gives_the_tokens(folders: dict[str, str], family: str, text: str, special: bool):
    tokenizer = opened(folders[family])
    told = steps(tokenizer, StepsQuestion(tokenizer="", text=text, special_tokens=special))
    assert [part.id for part in told.steps[-1].parts] == tokenizer(text, add_special_tokens=special)["input_ids"]
    pieces = {word.word: word.pieces for word in told.words}
    before = [step for step in told.steps if step.stage == "pre_tokenizer"][-1]
    model = next(step for step in told.steps if step.stage == "model")
    traced = [piece for part in before.parts for piece in ([part.text] if part.fixed else pieces[part.text])]
    known = tokenizer.backend_tokenizer.model
    unknown = known.unk_token if hasattr(known, "unk_token") else "<unk>"
    assert [one if known.token_to_id(one) is not None else unknown for one in traced] == [
        part.text for part in model.parts
    ]
    assert not any("cannot be distinguished" in word.sentence for word in told.words)


@pytest.mark.parametrize("family", FAST)
@calm
@given(text=CLEAN)
def test_a_short_question_and_its_json_say_the_same(folders: dict[str, str], family: str, text: str):
    tokenizer = opened(folders[family])
    answer = answers.answer_tokenize(tokenizer, TokenizeQuestion(tokenizer="", text=text), lambda *_: None)
    assert not isinstance(answer, dict)
    told = tokenize.as_json(tokenize.tokenize(tokenizer, text))
    assert [answer.pieces[place].id for place in answer.columns.piece] == told["ids"]
    assert json.loads(json.dumps(told)) == told
    assert [None if one == NOWHERE else one for one in answer.columns.sequence] == told["sequence_ids"]
