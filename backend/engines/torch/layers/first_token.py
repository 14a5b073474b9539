"""Leaves out of an encoder's last layer what its head does not read: all tokens but the first of each row.

Heads that classify, score or compare rows read this token alone. Keys and values are those of all tokens, but queries, the
feed-forward part and the norms are the first token's: a sixth of what the layer computes otherwise. Loss and gradients stay the same.
The layer is not compiled then, because what remains of it is not worth a program of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from backend.contract.heads import Head
from backend.engines.torch.layers.dropout import attend_with_dropout

_HEADS = (Head.SEQUENCE_CLASSIFICATION, Head.SEQUENCE_REGRESSION, Head.MULTIPLE_CHOICE)


class _Projections(NamedTuple):
    """The parts of an attention layer."""

    query: nn.Module
    key: nn.Module
    value: nn.Module


class FirstToken:
    """The last layer of a model whose head reads the first token of each row."""

    def __init__(self, layer: Any, run: Callable[..., torch.Tensor]) -> None:
        self._layer, self._run = layer, run

    @contextmanager
    def alone(self, packed: Callable[[], Any]) -> Iterator[None]:
        """Let the layer return the first tokens (rows, 1, hidden_size) of the PackedRows that are in it, if any are.

        None of these rows may be empty or padded in front.
        """

        def forward(hidden_states: torch.Tensor, *given: Any, **named: Any) -> torch.Tensor:
            rows = packed()
            if rows is None:
                return type(self._layer).forward(self._layer, hidden_states, *given, **named)
            first = hidden_states.index_select(1, rows.first_tokens)  # (1, rows, hidden_size)
            return self._run(self._layer, hidden_states, first, rows).transpose(0, 1)

        self._layer.forward = forward
        try:
            yield
        finally:
            del self._layer.forward


def first_token(model: Any, head: Head, layers: list[nn.Module]) -> FirstToken | None:
    """What computes the last of these layers for the first tokens; None if more of it is read, or may be."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    run = _RUN.get(model.config.model_type)
    if head not in _HEADS or run is None or not layers or "forward" in vars(layers[-1]):
        return None
    if getattr(inner.config, "summary_type", "first") != "first":  # of ELECTRA with choices
        return None
    if not type(inner).__module__.startswith("transformers."):  # a head of the model's own may read what it likes
        return None
    return FirstToken(layers[-1], run)


def _bert(layer: Any, states: torch.Tensor, first: torch.Tensor, rows: Any) -> torch.Tensor:
    own = layer.attention.self
    attended = _attend(own, _Projections(own.query, own.key, own.value), states, first, rows)
    return layer.feed_forward_chunk(layer.attention.output(attended, first))


def _distilbert(layer: Any, states: torch.Tensor, first: torch.Tensor, rows: Any) -> torch.Tensor:
    own = layer.attention
    attended = own.out_lin(_attend(own, _Projections(own.q_lin, own.k_lin, own.v_lin), states, first, rows))
    attended = layer.sa_layer_norm(attended + first)
    return layer.output_layer_norm(layer.ffn(attended) + attended)


_RUN: dict[str, Callable[..., torch.Tensor]] = {
    **dict.fromkeys(("bert", "camembert", "electra", "roberta", "xlm-roberta"), _bert),
    "distilbert": _distilbert,
}
"""Model type → its layer's forward pass for the first tokens."""


def _attend(
    module: Any, parts: _Projections, states: torch.Tensor, first: torch.Tensor, rows: Any
) -> torch.Tensor:  # fmt: skip
    """Attention of (1, rows, hidden_size) to (1, tokens, hidden_size) of the same rows, (1, rows, hidden_size)."""
    size = module.attention_head_size
    query = parts.query(first).unflatten(-1, (-1, size)).transpose(0, 1)  # (rows, 1, heads, head_size)
    key, value = (
        rows.pad(part(states)).unflatten(-1, (-1, size)) for part in parts[1:]
    )  # (rows, length, heads, head_size)
    rate = module.dropout.p if module.training else 0.0
    if rate and states.device.type == "cpu":
        query, key, value = (each.permute(2, 0, 1, 3) for each in (query, key, value))
        attended = attend_with_dropout(query, key, value, rows.present, rate, module.scaling, is_causal=False)
        return attended.permute(2, 1, 0, 3).flatten(2)  # from (heads, rows, 1, head_size)
    query, key, value = (each.transpose(1, 2) for each in (query, key, value))
    mask = rows.present[:, None]  # (rows, 1, 1, length)
    attended = sdpa_attention_forward(module, query, key, value, mask, rate, module.scaling, is_causal=False)[0]
    return attended.transpose(0, 1).flatten(2)  # from (rows, 1, heads, head_size)
