"""Owns how long a sequence a model's positions can count."""

from typing import Any

_COUNTED_FROM_PADDING = {
    "roberta", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm", "camembert", "data2vec-text", "ibert",
    "longformer", "mpnet", "esm", "xmod", "luke", "markuplm", "layoutlmv3",
}  # fmt: skip
_RELATIVE = {
    "t5", "mt5", "umt5", "byt5", "longt5", "switch_transformers", "bloom", "mpt", "xlnet", "transfo-xl",
    "deberta-v2", "mamba", "mamba2", "rwkv", "reformer", "falcon_mamba",
}  # fmt: skip
_KEYS = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length")


def longest_sequence(config: dict[str, Any]) -> int | None:
    """Tokens that fit a configuration's positions, or None where they have no end (T5's and Bloom's are relative).

    RoBERTa and its kin start to count at the padding id plus one, so two rows of their table are never used.
    """
    model_type = config.get("model_type")
    if model_type in _RELATIVE:
        return None
    for key in _KEYS:
        value = config.get(key)
        if isinstance(value, int) and value > 0:
            return value - 2 if model_type in _COUNTED_FROM_PADDING else value
    return None
