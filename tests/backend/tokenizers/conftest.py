"""Small real tokenizers of each family, trained on the spot on a text of several scripts."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

TEXT = [
    "The quick brown fox jumps over the lazy dog.",
    "සිංහල භාෂාව ලස්සනයි",
    "東京は日本の首都です。",
    "Naïve café 😀 👩‍👩‍👧 ends here.",
] * 20


@pytest.fixture(scope="session")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level BPE as GPT-2 has it: an end of text, no padding token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>", "model_max_length": 16}
    return _saved(tokenizer, tmp_path_factory.mktemp("byte-level"), config)


@pytest.fixture(scope="session")
def unigram(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Unigram model with `▁` for spaces, as sentencepiece makes them."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "eos_token": "</s>"}
    return _saved(tokenizer, tmp_path_factory.mktemp("unigram"), {**config, "unk_token": "<unk>"})


@pytest.fixture(scope="session")
def word_piece(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WordPiece that lower-cases and strips accents, so that tokens differ from the text they stand for."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        TEXT[:1] * 20, trainers.WordPieceTrainer(vocab_size=90, special_tokens=special, show_progress=False)
    )
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    return _saved(tokenizer, tmp_path_factory.mktemp("word-piece"), config)


def _saved(tokenizer: Tokenizer, folder: Path, config: dict[str, object]) -> Path:
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
