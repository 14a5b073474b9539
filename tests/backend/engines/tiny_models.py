"""Makes tiny models of the architectures that people use, without dropout, with weights large enough to differ."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from safetensors.torch import load_file, save_file

VOCABULARY = 60
_BODY: dict[str, Any] = {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
_ENCODER: dict[str, Any] = {**_BODY, "intermediate_size": 32, "max_position_embeddings": 42, "pad_token_id": 0}
_DECODER: dict[str, Any] = {**_ENCODER, "num_key_value_heads": 1, "bos_token_id": 1, "eos_token_id": 2}
_DEBERTA: dict[str, Any] = {
    "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8, "type_vocab_size": 0
}  # fmt: skip
_GPT2: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 40,
    "eos_token_id": 1,
}
_XLNET: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "d_model": 16,
    "n_layer": 2,
    "n_head": 2,
    "d_inner": 32,
    "pad_token_id": 0,
}
_XLM: dict[str, Any] = {
    "vocab_size": VOCABULARY, "emb_dim": 16, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 40,
    "pad_index": 0, "pad_token_id": 0, "start_n_top": 3, "end_n_top": 4,
}  # fmt: skip
_T5: dict[str, Any] = {
    "vocab_size": VOCABULARY, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    "decoder_start_token_id": 0,
}  # fmt: skip
_BART: dict[str, Any] = {
    "vocab_size": VOCABULARY, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 40,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_FIXED: dict[str, Any] = {"static_position_embeddings": True}

MODELS: dict[str, Callable[[], Any]] = {
    "bert": lambda: hf.BertModel(hf.BertConfig(**_ENCODER)),
    "roberta": lambda: hf.RobertaModel(hf.RobertaConfig(**_ENCODER, type_vocab_size=1)),
    "xlm-roberta": lambda: hf.XLMRobertaModel(hf.XLMRobertaConfig(**_ENCODER, type_vocab_size=1)),
    "distilbert": lambda: hf.DistilBertModel(
        hf.DistilBertConfig(vocab_size=VOCABULARY, dim=16, n_layers=2, n_heads=2, hidden_dim=32)
    ),
    "deberta-v2": lambda: hf.DebertaV2Model(
        hf.DebertaV2Config(**_ENCODER, **_DEBERTA)
    ),
    "xlnet": lambda: hf.XLNetModel(hf.XLNetConfig(**_XLNET, start_n_top=3, end_n_top=4)),
    "xlm": lambda: hf.XLMModel(hf.XLMConfig(**_XLM)),
    "flaubert": lambda: hf.FlaubertModel(hf.FlaubertConfig(**_XLM)),
    "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**_GPT2)),
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**_DECODER, tie_word_embeddings=False)),
    "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**_DECODER, sliding_window=5)),
    "qwen2": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**_DECODER)),
    "qwen3": lambda: hf.Qwen3ForCausalLM(
        hf.Qwen3Config(**_DECODER, head_dim=8, use_sliding_window=True, sliding_window=5, max_window_layers=1)
    ),
    "opt": lambda: hf.OPTForCausalLM(
        hf.OPTConfig(  # as OPT-350m alone is: normalised after the layer, with narrower embeddings
            vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=32,
            max_position_embeddings=40, word_embed_proj_dim=8, do_layer_norm_before=False, pad_token_id=0,
        )
    ),
    "bloom": lambda: hf.BloomForCausalLM(
        hf.BloomConfig(vocab_size=VOCABULARY, hidden_size=16, n_layer=2, n_head=2, pad_token_id=0)
    ),
    "albert": lambda: hf.AlbertModel(hf.AlbertConfig(**_ENCODER, embedding_size=8)),
    "gpt_neo": lambda: hf.GPTNeoForCausalLM(
        hf.GPTNeoConfig(
            vocab_size=VOCABULARY, hidden_size=16, num_layers=2, num_heads=2, attention_types=[[["global", "local"], 1]],
            window_size=5, max_position_embeddings=40, bos_token_id=1, eos_token_id=1,
        )
    ),
    "t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(**_T5)),
    "switch_transformers": lambda: hf.SwitchTransformersForConditionalGeneration(
        hf.SwitchTransformersConfig(
            **_T5, num_decoder_layers=2, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1, num_experts=32,
            expert_capacity=64, router_jitter_noise=0.0,
        )
    ),
    "mt5": lambda: hf.MT5ForConditionalGeneration(hf.MT5Config(**_T5)),
    "bart": lambda: hf.BartForConditionalGeneration(
        hf.BartConfig(**_BART, decoder_start_token_id=2, forced_eos_token_id=2)
    ),
    "mbart": lambda: hf.MBartForConditionalGeneration(hf.MBartConfig(**_BART)),
    "marian": lambda: hf.MarianMTModel(
        hf.MarianConfig(
            **_BART | {"pad_token_id": 59, "eos_token_id": 0}, decoder_start_token_id=59, forced_eos_token_id=0, **_FIXED
        )
    ),
    "pegasus": lambda: hf.PegasusForConditionalGeneration(
        hf.PegasusConfig(**_BART | {"eos_token_id": 1}, **_FIXED)
    ),
    "m2m_100": lambda: hf.M2M100ForConditionalGeneration(hf.M2M100Config(**_BART, decoder_start_token_id=2)),
}  # fmt: skip
PADDING = {"marian": 59}
"""Ids of padding that are not 0."""
ENDS = {"bart": 2, "mbart": 2, "t5": 1, "mt5": 1}
"""Ids of the end token at which an architecture reads a whole text: every text must have one."""


_LAYERS = (
    "num_hidden_layers",
    "num_layers",
    "num_decoder_layers",
    "n_layer",
    "n_layers",
    "encoder_layers",
    "decoder_layers",
)


def tiny_model(name: str, *, one_layer: bool = False) -> Any:
    """The model, the same one every time; of two layers, or of one for what a second would say again."""
    torch.manual_seed(sum(map(ord, name)))
    model = MODELS[name]()
    if one_layer:
        for each in _LAYERS:
            if each in model.config.to_dict():
                setattr(model.config, each, 1)
        if getattr(model.config, "layer_types", None):
            model.config.layer_types = model.config.layer_types[:1]
        model = type(model)(model.config)
    for each in model.config.to_dict():
        if "dropout" in each or "pdrop" in each:
            setattr(model.config, each, 0.0)
    model.config.classifier_dropout = 0.0  # where a configuration is silent a classifier's is 0.1
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            # What a model was begun with is so small that any two answers are nearly alike.
            if parameter.ndim > 1 and parameter.requires_grad and name not in {"t5", "mt5", "switch_transformers"}:
                parameter.mul_(25 if "encoder_attn" in key else 5)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_(std=0.1)
    return model


def save_in_format(source: Path, folder: Path, dtype: torch.dtype, other: str = "") -> None:
    """Copy a saved model with its weights in this number format, except for the one of this name."""
    weights = load_file(source / "model.safetensors")
    if source != folder:
        shutil.copytree(source, folder)
    changed = {name: value if name == other else value.to(dtype) for name, value in weights.items()}
    save_file(changed, folder / "model.safetensors", {"format": "pt"})
