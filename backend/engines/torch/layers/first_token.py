"""Computes an encoder's last layer only for the first token of each row, if that is all the head reads.

Heads that classify, score or compare rows do. Keys and values are still those of all tokens, but queries, the feed-forward
part and the norms are the first token's: a sixth of the layer's usual work. Loss and gradients stay the same. The layer is
not compiled, because what remains of it is not worth a program of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from backend.contract.heads import Head
from backend.engines.torch.layers.dropout import attend_with_dropout

ROW_HEADS = (
    Head.SEQUENCE_CLASSIFICATION,
    Head.MULTI_LABEL_CLASSIFICATION,
    Head.SEQUENCE_REGRESSION,
    Head.MULTIPLE_CHOICE,
)
"""Heads whose result is one for each row, or for each choice."""


class _Projections(NamedTuple):
    """The linear layers in front of attention."""

    query: nn.Module
    key: nn.Module
    value: nn.Module


class FirstToken:
    """The last layer of a model whose head reads the first token of each row."""

    def __init__(self, layer: Any, compute: Callable[..., torch.Tensor]) -> None:
        self._layer, self._compute = layer, compute

    @contextmanager
    def only(self, rows_inside: Callable[[], Any]) -> Iterator[None]:
        """Let the layer return only the first tokens, (rows, 1, hidden_size), of the PackedRows that are in it, if any.

        No row may be empty or padded in front.
        """

        def forward(hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            rows = rows_inside()
            if rows is None:
                return type(self._layer).forward(self._layer, hidden_states, *args, **kwargs)
            first = hidden_states.index_select(1, rows.first_tokens)  # (1, rows, hidden_size)
            return self._compute(self._layer, hidden_states, first, rows).transpose(0, 1)

        self._layer.forward = forward
        try:
            yield
        finally:
            del self._layer.forward


def first_token(model: Any, head: Head, layers: list[nn.Module]) -> FirstToken | None:
    """The last of these layers, to be computed for first tokens only; None if the head reads more of it, or may."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    compute = _COMPUTE.get(model.config.model_type)
    if head not in ROW_HEADS or compute is None or not layers or "forward" in vars(layers[-1]):
        return None
    if getattr(inner.config, "summary_type", "first") != "first":  # of ELECTRA with choices
        return None
    if not type(inner).__module__.startswith("transformers."):  # a head of the model's own may read what it likes
        return None
    return FirstToken(layers[-1], compute)


def _bert(layer: Any, states: torch.Tensor, first: torch.Tensor, rows: Any) -> torch.Tensor:
    module = layer.attention.self
    attended = _attend(module, _Projections(module.query, module.key, module.value), states, first, rows)
    return layer.feed_forward_chunk(layer.attention.output(attended, first))


def _distilbert(layer: Any, states: torch.Tensor, first: torch.Tensor, rows: Any) -> torch.Tensor:
    module = layer.attention
    projections = _Projections(module.q_lin, module.k_lin, module.v_lin)
    attended = module.out_lin(_attend(module, projections, states, first, rows))
    attended = layer.sa_layer_norm(attended + first)
    return layer.output_layer_norm(layer.ffn(attended) + attended)


_COMPUTE: dict[str, Callable[..., torch.Tensor]] = {
    **dict.fromkeys(("bert", "camembert", "electra", "roberta", "xlm-roberta"), _bert),
    "distilbert": _distilbert,
}
"""Model type → its layer's forward pass for the first tokens."""


def _attend(
    module: Any, projections: _Projections, states: torch.Tensor, first: torch.Tensor, rows: Any
) -> torch.Tensor:  # fmt: skip
    """Attention of (1, rows, hidden_size) to (1, tokens, hidden_size) of the same rows, (1, rows, hidden_size)."""
    size = module.attention_head_size
    query = projections.query(first).unflatten(-1, (-1, size)).transpose(0, 1)  # (rows, 1, heads, head_size)
    key, value = (
        rows.pad(project(states)).unflatten(-1, (-1, size)) for project in projections[1:]
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
