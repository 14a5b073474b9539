"""Makes a toy language and small untrained translators for it: sentences, trained tokenizers, configurations."""

import io
import json
import random
from pathlib import Path
from typing import Any

import sentencepiece

WORDS = {
    "the": "el", "dog": "perro", "cat": "gato", "bird": "ave", "sees": "ve", "likes": "ama", "hears": "oye",
    "red": "rojo", "big": "gran", "old": "viejo", "today": "hoy", "always": "siempre", "Ana": "Ana", "Leo": "Leo",
}  # fmt: skip
"""Word by word; names are the same in both, so that copying the source is no worthless translation."""
_NOUNS, _VERBS = ("dog", "cat", "bird"), ("sees", "likes", "hears")


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Pairs such as `Ana sees the red dog today.` and `Ana ve el rojo perro hoy.`"""
    draw = random.Random(seed)

    def noun() -> list[str]:
        return draw.choice([["Ana"], ["Leo"], ["the", draw.choice(("red", "big", "old")), draw.choice(_NOUNS)]])

    pairs = []
    for _ in range(count):
        words = [*noun(), draw.choice(_VERBS), *noun(), *draw.choice([[], ["today"], ["always"]])]
        pairs.append((f"{' '.join(words)}.", f"{' '.join(WORDS[word] for word in words)}."))
    return pairs


def pieces(texts: list[str], size: int, **ids: int) -> bytes:
    """A sentencepiece model of these texts."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, vocab_size=size, hard_vocab_limit=False,
        character_coverage=1.0, num_threads=1, minloglevel=2, **ids,
    )  # fmt: skip
    return model.getvalue()


def mt5_folder(folder: Path, texts: list[str]) -> Path:
    """As mT5 ships: `spiece.model` without tokenizer.json; the configuration of a very small one, no weights."""
    folder.mkdir()
    (folder / "spiece.model").write_bytes(pieces(texts, 96, pad_id=0, eos_id=1, unk_id=2, bos_id=-1))
    config = {
        "model_type": "mt5", "architectures": ["MT5ForConditionalGeneration"], "vocab_size": 256, "d_model": 48,
        "d_kv": 12, "d_ff": 96, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "dropout_rate": 0.0,
        "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "pad_token_id": 0, "eos_token_id": 1,
        "decoder_start_token_id": 0, "is_encoder_decoder": True, "tokenizer_class": "T5Tokenizer",
    }  # fmt: skip
    return _with_config(folder, config)


def marian_folder(folder: Path, pairs: list[tuple[str, str]]) -> Path:
    """As Marian ships: one sentencepiece model for each side, a shared vocabulary, a tokenizer written in Python."""
    folder.mkdir()
    vocabulary = {"</s>": 0, "<unk>": 1}
    for side, name in enumerate(("source.spm", "target.spm")):
        model = pieces([pair[side] for pair in pairs], 64)
        (folder / name).write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        for piece in range(3, processor.get_piece_size()):
            vocabulary.setdefault(processor.id_to_piece(piece), len(vocabulary))
    vocabulary["<pad>"] = len(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    padding = vocabulary["<pad>"]
    config = {
        "model_type": "marian", "architectures": ["MarianMTModel"], "vocab_size": len(vocabulary), "d_model": 48,
        "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "max_position_embeddings": 64, "dropout": 0.0,
        "activation_function": "swish", "scale_embedding": True, "init_std": 0.1, "static_position_embeddings": True,
        "pad_token_id": padding, "decoder_start_token_id": padding, "eos_token_id": 0, "bos_token_id": 0,
        "forced_eos_token_id": 0, "is_encoder_decoder": True, "tokenizer_class": "MarianTokenizer",
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
    return _with_config(folder, config)


def _with_config(folder: Path, config: dict[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
