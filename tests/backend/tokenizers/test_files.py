"""A tokenizer opens from any of its files alone, and half of one or none is one sentence."""

import base64
import io
import json
import shutil
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.tokenizers.decoding import decode, exists
from backend.tokenizers.loading import open_tokenizer, opening_note
from backend.tokenizers.resolve import resolve_name

BERT_TINY = resource("demo", "bert-tiny")
TEXTS = ["The quick brown fox", "Naïve café 😀 👩‍👩‍👧 ends here.", "සිංහල භාෂාව", "東京は  日本\n\n\tx", ""]


@pytest.fixture(scope="session")
def tiktoken_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file as OpenAI's, with a few pieces above the bytes."""
    pieces = [bytes([byte]) for byte in range(256)] + [b"th", b"the", b" the", b"qu", b"ick", b"ic", b"\xf0\x9f"]
    ordered = [*pieces[:256], b"th", b"the", b" t", b" the", b"ic", b"ick", b"qu", b"\xf0\x9f"]
    path = tmp_path_factory.mktemp("tiktoken") / "small.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(one) + b" %d\n" % rank for rank, one in enumerate(ordered)))
    return path


@pytest.fixture(scope="session", params=["unigram", "bpe"])
def sentencepiece_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that sentencepiece itself has trained, with byte fallback."""
    sentencepiece = pytest.importorskip("sentencepiece")
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter((resource("demo", "austen") / "emma.txt").read_text().splitlines()[:2000]),
        model_writer=written, vocab_size=700, model_type=request.param, byte_fallback=True, minloglevel=2,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("sentencepiece") / "spiece.model"
    path.write_bytes(written.getvalue())
    return path


@pytest.mark.parametrize("text", TEXTS)
def test_a_sentencepiece_file_gives_the_ids_of_sentencepiece(sentencepiece_file: Path, text: str):
    import sentencepiece

    own = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_file))
    assert open_tokenizer(str(sentencepiece_file))(text)["input_ids"] == own.encode(text)


@pytest.mark.parametrize("text", TEXTS)
def test_a_tiktoken_file_brings_texts_back(tiktoken_file: Path, text: str):
    tokenizer = open_tokenizer(str(tiktoken_file))
    assert decode(tokenizer, tokenizer(text)["input_ids"]) == text
    assert "cl100k" in opening_note(tokenizer)


def test_a_tiktoken_file_takes_the_largest_pieces(tiktoken_file: Path):
    assert open_tokenizer(str(tiktoken_file)).tokenize("the quick the") == ["the", "Ġ", "qu", "ick", "Ġthe"]


def test_a_word_piece_vocabulary_opens_as_berts(tmp_path: Path):
    shutil.copy(BERT_TINY / "vocab.txt", tmp_path)
    tokenizer = open_tokenizer(str(tmp_path / "vocab.txt"))
    assert tokenizer("Not bad!")["input_ids"] == open_tokenizer(str(BERT_TINY))("Not bad!")["input_ids"]
    assert "lowercased" in opening_note(tokenizer)
    assert tokenizer.pad_token == "[PAD]"


@pytest.mark.parametrize("name", ["", "vocab.json", "merges.txt"])
def test_vocabulary_and_merges_open_together(byte_level: Path, tmp_path: Path, name: str):
    Tokenizer.from_file(str(byte_level / "tokenizer.json")).model.save(str(tmp_path))
    tokenizer = open_tokenizer(str(tmp_path / name))
    for text in TEXTS:
        assert tokenizer(text)["input_ids"] == open_tokenizer(str(byte_level))(text)["input_ids"]


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
@pytest.mark.parametrize("config", [None, {"tokenizer_class": "GPT2Tokenizer"}])
def test_half_a_tokenizer_is_refused(byte_level: Path, tmp_path: Path, name: str, config: dict | None):
    Tokenizer.from_file(str(byte_level / "tokenizer.json")).model.save(str(tmp_path))
    (tmp_path / name).unlink()
    if config:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=f"this tokenizer is incomplete: it has .* but not {name}; add {name}"):
        open_tokenizer(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("tokenizer.json", b"", "empty"),
        ("tokenizer.json", b'{"model": {', "damaged"),
        ("config.json", b'{"a": 1}', "not a tokenizer; choose its folder"),
        ("tokenizer.json", b'{"model": {"type": "Unigram", "vocab": []}}', "no pieces"),
        ("tokenizer.json", b'{"model": {"type": "Unheard"}}', "cannot be opened"),
        ("vocab.txt", b"hello\nworld\n", r"no line \[UNK\]"),
        ("vocab.txt", b"\xff\xfe\x00", "not UTF-8"),
        ("spiece.model", b"no model at all", "not a SentencePiece model"),
        ("x.tiktoken", b"YQ== 0\nYg== 1\n", "254 of the 256 bytes"),
        ("x.tiktoken", b"YQ== 0\nnonsense\n", ":2: this is not a line"),
        ("notes.md", b"hello", "this file is not a tokenizer"),
    ],
)
def test_what_is_no_tokenizer_is_one_sentence(tmp_path: Path, name: str, content: bytes, match: str):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=match) as caught:
        open_tokenizer(str(tmp_path / name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 5000])
def test_names_that_no_file_can_have_are_refused(name: str):
    with pytest.raises(InputError):
        open_tokenizer(resolve_name(name).name_or_path)


def test_holes_in_a_vocabulary_are_ids_that_do_not_exist(word_piece: Path, tmp_path: Path):
    values = json.loads((word_piece / "tokenizer.json").read_text())
    last = max(values["model"]["vocab"], key=values["model"]["vocab"].get)
    values["model"]["vocab"][last] = 5000
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    tokenizer = open_tokenizer(str(tmp_path / "tokenizer.json"))
    assert exists(tokenizer, 5000)
    assert not exists(tokenizer, 4999)
    assert decode(tokenizer, [4999]) == "⟨no token 4999⟩"


def test_a_run_has_the_tokenizer_of_its_model_or_of_the_model_it_begins_with(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("BURNISH_RUNS", str(tmp_path))
    run = tmp_path / "2026-11-22-0900-reviews"
    run.mkdir()
    (run / "spec.yaml").write_text(f"model: {{name_or_path: {BERT_TINY}, tokenizer_options: {{do_lower_case: false}}}}")
    found = resolve_name(run.name)
    assert (found.name_or_path, found.options) == (str(BERT_TINY), {"do_lower_case": False})
    assert "starts from" in found.note
    shutil.copytree(BERT_TINY, run / "model")
    assert resolve_name(str(run)).name_or_path == str(run / "model")
