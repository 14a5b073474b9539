"""Makes small random models of the architectures that the presets name, and trains tokenizers for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from backend.contract.resources import resource
from backend.tokenizers.train import TokenizerTraining, train

POSITIONS = 520
"""More than any preset's longest text."""
_TEXT = (resource("demo", "austen", "persuasion.txt").read_text(encoding="utf-8").splitlines())[:1000]


def small_model(name: str, folder: Path) -> Path:
    """A model folder of the architecture that the hub's `name` has. KeyError for a name that no preset had yet."""
    kind = next(kind for kind in _CONFIGS if name.rsplit("/", 1)[-1].startswith(kind))
    use, tokenizer_kind, config = _CONFIGS[kind]
    tokenizer = train(
        _TEXT, TokenizerTraining(kind=tokenizer_kind, use=use, vocabulary=500), lambda stage, done, total, unit: None
    )
    tokenizer.save_pretrained(folder)
    import torch  # takes seconds, and not every test needs a model
    from transformers import AutoModel

    torch.manual_seed(0)
    AutoModel.from_config(config(tokenizer)).save_pretrained(folder)
    return folder


def _bert(tokenizer: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=POSITIONS, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip


def _roberta(tokenizer: Any) -> Any:
    from transformers import RobertaConfig

    return RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=POSITIONS, pad_token_id=tokenizer.pad_token_id, type_vocab_size=2,
    )  # fmt: skip


def _gpt2(tokenizer: Any) -> Any:
    from transformers import GPT2Config

    return GPT2Config(
        vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=1024, bos_token_id=0, eos_token_id=0
    )


def _opt(tokenizer: Any) -> Any:
    from transformers import OPTConfig

    return OPTConfig(  # of the shape of OPT-350m
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=32,
        max_position_embeddings=POSITIONS, word_embed_proj_dim=8, do_layer_norm_before=False, pad_token_id=0,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip


def _xlnet(tokenizer: Any) -> Any:
    from transformers import XLNetConfig

    return XLNetConfig(
        vocab_size=len(tokenizer), d_model=16, n_layer=2, n_head=2, d_inner=32, pad_token_id=tokenizer.pad_token_id
    )


def _mt5(tokenizer: Any) -> Any:
    from transformers import MT5Config

    return MT5Config(
        vocab_size=len(tokenizer) + 12, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2,
        decoder_start_token_id=tokenizer.pad_token_id, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip


_CONFIGS: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "bert": ("encoder", "wordpiece", _bert),
    "roberta": ("encoder", "byte_bpe", _roberta),
    "gpt2": ("decoder", "byte_bpe", _gpt2),
    "opt": ("decoder", "byte_bpe", _opt),
    "xlnet": ("encoder", "unigram", _xlnet),
    "mt5": ("encoder_decoder", "unigram", _mt5),
}
