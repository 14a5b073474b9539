"""Leaves the padding of a batch out of a model's layers.

Linear layers, norms and dropout need no neighbors: they compute on the tokens of all rows, laid end to end as one row.
Attention computes on each row by itself on a CPU, and on CUDA with a kernel for such rows (torch.nn.attention.varlen), which
also keeps packed texts apart. Where that does not apply, it pads its own inputs on an accelerator. The embeddings before
the layers and the head behind them still see the padded batch, so that no architecture's own code has to change; a head that
reads the first token of each row gets that alone.
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from backend.contract.heads import Head
from backend.engines.engine import Batch
from backend.engines.torch.inputs import tensor
from backend.engines.torch.layers.dropout import attend_with_dropout
from backend.engines.torch.layers.first_token import ROW_HEADS, first_token

LAYERS = {
    "albert": "encoder",
    "bert": "encoder.layer",
    "camembert": "encoder.layer",
    "distilbert": "transformer.layer",
    "electra": "encoder.layer",
    "gemma": "layers",
    "gemma3_text": "layers",
    "gpt2": "h",
    "gpt_neox": "layers",
    "granite": "layers",
    "llama": "layers",
    "mistral": "layers",
    "modernbert": "layers",
    "olmo2": "layers",
    "opt": "decoder.layers",
    "phi3": "layers",
    "qwen2": "layers",
    "qwen3": "layers",
    "roberta": "encoder.layer",
    "smollm3": "layers",
    "xlm-roberta": "encoder.layer",
}
"""Model type → where its layers are in the base model. tests/backend/engines/test_unpadded.py compares each."""
ROW_BY_ROW_DEVICES = ("cpu",)
"""Devices on which attention computes row by row; elsewhere so many small kernels cost more than the padding."""
VARLEN_DEVICES = ("cuda",)
"""Devices with a kernel for attention of rows laid end to end, which has no dropout and computes in HALF_DTYPES."""
HALF_DTYPES = (torch.float16, torch.bfloat16)
_HEAD_SIZE_MULTIPLE = 8
"""torch pads other heads before it calls the kernel, but not for rows laid end to end."""
SIMILAR_LENGTH = 0.5
"""Attention with dropout pads rows together that have at least this part of the longest one's tokens: each group of rows
takes many operations, and padding costs its square."""
_POSITIONS = ("position_embeddings", "position_ids")
"""Arguments of every layer that have an entry for each token, (batch or 1, length, …)."""


class PackedRows:
    """The tokens of a padded grid of rows, laid end to end; rows of the same length are next to each other.

    Texts that the batch itself has packed stay in its order, and their `row_lengths` are those of the texts.
    """

    def __init__(self, attention_mask: np.ndarray, device: torch.device, segment: np.ndarray | None = None) -> None:
        """Both are (rows, length); in each row the tokens are in one piece. `segment` numbers the texts in a row."""
        self.shape, self.is_packed_batch = attention_mask.shape, segment is not None
        if segment is not None:
            places = np.flatnonzero(attention_mask)  # (tokens,)
            texts = np.stack([places // self.shape[1], segment.ravel()[places]])  # (2, tokens)
            starts = np.flatnonzero((np.diff(texts, prepend=-1) != 0).any(axis=0))  # (texts,)
            self._set_places(places, np.diff(starts, append=len(places)), device)
            return
        lengths = attention_mask.sum(axis=1)  # (rows,)
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        lengths, starts = lengths[order], attention_mask.argmax(axis=1)[order]
        self._order, self._starts, self._lengths = order, starts, lengths
        within = np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)
        self._set_places(np.repeat(order * self.shape[1] + starts, lengths) + within, lengths, device)

    @cached_property
    def first_tokens(self) -> torch.Tensor:
        """Where the first token of each row is, in the order of the grid. (rows,)"""
        return tensor((self._lengths.cumsum() - self._lengths)[np.argsort(self._order)], self._device)

    @cached_property
    def present(self) -> torch.Tensor:
        """Which places of the grid have tokens, if none is padded in front. (rows, 1, length)"""
        lengths = self._lengths[np.argsort(self._order)]
        return tensor(np.arange(self.shape[1]) < lengths[:, None, None], self._device)

    def _set_places(self, places: np.ndarray, row_lengths: np.ndarray, device: torch.device) -> None:
        self._places = tensor(places, device)  # (tokens,)
        self._row_lengths, self._device = row_lengths, device
        self.longest = int(row_lengths.max())
        self._positions: dict[int, tuple[Any, Any]] = {}  # what layers share, by its id, padded and flat

    @cached_property
    def offsets(self) -> torch.Tensor:
        """Where each row starts, and where the last one ends, as the kernel takes them. (rows + 1,)"""
        return tensor(np.concatenate([[0], self._row_lengths.cumsum()]).astype(np.int32), self._device)

    @cached_property
    def equal_length_groups(self) -> "list[_Group]":
        """The rows in groups without padding."""
        return self._groups(1.0)

    @cached_property
    def similar_length_groups(self) -> "list[_Group]":
        """The rows in fewer groups with a little padding."""
        return self._groups(SIMILAR_LENGTH)

    def _groups(self, similar: float) -> "list[_Group]":
        found, end = [], len(self._order)
        while end:
            start = int(np.searchsorted(self._lengths, self._lengths[end - 1] * similar))
            own = slice(start, end)
            found.insert(0, _Group(self._order[own], self._starts[own], self._lengths[own], self._device))
            end = start
        return found

    def flatten(self, padded: torch.Tensor) -> torch.Tensor:
        """(rows or 1, length, …) → (1, tokens, …)"""
        return padded.expand(self.shape[0], *padded.shape[1:]).flatten(0, 1).index_select(0, self._places)[None]

    def flatten_positions(self, padded: torch.Tensor | tuple[torch.Tensor, ...]) -> Any:
        """The same for what all layers get, once for all of them."""
        if id(padded) not in self._positions:
            flat = tuple(map(self.flatten, padded)) if isinstance(padded, tuple) else self.flatten(padded)
            self._positions[id(padded)] = padded, flat
        return self._positions[id(padded)][1]

    def pad(self, flat: torch.Tensor) -> torch.Tensor:
        """(1, tokens, …) → (rows, length, …), zeros as padding"""
        grid = flat.new_zeros((self.shape[0] * self.shape[1], *flat.shape[2:]))
        return grid.index_copy_(0, self._places, flat[0]).unflatten(0, self.shape)


class _Group:
    """Rows that attention computes together, padded at their ends to the longest one."""

    def __init__(self, rows: np.ndarray, starts: np.ndarray, lengths: np.ndarray, device: torch.device) -> None:
        """All (rows,). `rows` and `starts` are where the tokens are in the padded grid."""
        self._rows, self._starts = rows, starts
        self.length, self.tokens = int(lengths[-1]), int(lengths.sum())
        present = np.arange(self.length) < lengths[:, None]  # (rows, length)
        self._shape, is_padded = present.shape, not present.all()
        self._places = tensor(np.flatnonzero(present), device) if is_padded else None  # (tokens,)
        bias = np.where(present, np.float32(0), np.finfo(np.float32).min)[:, None]
        self.bias = tensor(bias, device) if is_padded else None
        """What attention adds to its scores, (rows, 1, length)."""

    def pad(self, flat: torch.Tensor) -> torch.Tensor:
        """(heads, tokens, head_size) → (heads, rows, length, head_size)"""
        if self._places is not None:
            grid = flat.new_zeros((len(flat), self._shape[0] * self._shape[1], flat.shape[-1]))
            flat = grid.index_copy_(1, self._places, flat)
        return flat.unflatten(1, self._shape)

    def flatten(self, padded: torch.Tensor) -> torch.Tensor:
        """(heads, rows, length, head_size) → (tokens, heads, head_size)"""
        flat = padded.flatten(1, 2)
        return (flat if self._places is None else flat.index_select(1, self._places)).transpose(0, 1)

    def mask(self, padded: torch.Tensor) -> torch.Tensor:
        """The part of an attention mask (batch or 1, 1, length, length) for rows of one length. (rows, length, length)"""
        return torch.stack(
            [
                padded[row if len(padded) > 1 else 0, 0, start : start + self.length, start : start + self.length]
                for row, start in zip(self._rows, self._starts, strict=True)
            ]
        )


class RowMask(NamedTuple):
    """Takes the place of a layer's attention mask, which it keeps for attention that needs it after all."""

    rows: PackedRows
    padded: torch.Tensor | None


class Unpadding:
    """Lets one model compute without padding, if its architecture is one of LAYERS; otherwise changes nothing."""

    def __init__(self, model: Any, head: Head, device: torch.device) -> None:
        self._head, self._device = head, device
        self._rows: PackedRows | None = None
        self._inside: PackedRows | None = None  # the rows whose tokens are in the layers now
        self._reads_first = False  # whether the last layer returns the first token of each row alone
        takes_packed = head is Head.CAUSAL_LM and device.type in VARLEN_DEVICES
        self._takes_packed = takes_packed and _varlen() is not None
        self._layers = _layers(model, head)
        self._first_token = first_token(model, head, self._layers)
        for layer in self._layers:
            layer.register_forward_pre_hook(self._flatten, with_kwargs=True)
        if self._layers:
            self._signature = inspect.signature(self._layers[0].forward)
            self._layers[-1].register_forward_hook(self._pad)
            ALL_ATTENTION_FUNCTIONS["sdpa"] = _attention  # which stays: it does the same where no padding is left out

    @contextmanager
    def for_batch(self, batch: Batch, *, lays_out_all: bool = False) -> Iterator[None]:
        """Leave out this batch's padding in the forward pass, and in what the backward pass computes again.

        With `lays_out_all`, the rows are laid end to end without any padding too: one compiled program serves both.
        """
        mask = batch["attention_mask"].reshape(-1, batch["attention_mask"].shape[-1])  # choices are rows too
        has_padding_in_front = not mask[:, 0].all()
        # Logits of padding are among the outputs of question answering, though not in its loss.
        reads_padding = self._head is Head.QUESTION_ANSWERING and not torch.is_grad_enabled()
        reads_padding |= self._head in ROW_HEADS and has_padding_in_front  # an encoder's first token is padding then
        last_layer = nullcontext()
        self._reads_first = False
        if self._first_token is not None and not has_padding_in_front:
            self._reads_first, last_layer = True, self._first_token.only(lambda: self._inside)
        if (
            self._layers
            and not reads_padding
            and ("segment" not in batch or self._takes_packed)
            and (lays_out_all or "segment" in batch or self._reads_first or (len(mask) > 1 and not mask.all()))
            and mask.any()
            and _is_in_one_piece(mask)
        ):
            self._rows = PackedRows(mask, self._device, batch.get("segment"))
        try:
            with last_layer:
                yield
        finally:
            self._rows = self._inside = None

    def _flatten(self, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        given = bound.arguments
        if is_first := layer is self._layers[0]:
            # A model may be called with other tokens meanwhile, to try what it can.
            fits = self._rows is not None and given["hidden_states"].shape[:2] == self._rows.shape
            is_flat = self._rows is not None and self._rows.is_packed_batch
            if fits and is_flat and _attention_dtype(given["hidden_states"]) not in HALF_DTYPES:
                fits = False  # attention could only pad again
            self._inside = self._rows if fits else None
        rows = self._inside
        if rows is None:
            return None
        given["attention_mask"] = RowMask(rows, given.get("attention_mask"))
        if is_first:
            given["hidden_states"] = rows.flatten(given["hidden_states"])
        for name in _POSITIONS:
            if given.get(name) is not None:
                given[name] = rows.flatten_positions(given[name])
        return bound.args, bound.kwargs

    def _pad(self, layer: nn.Module, given: Any, returned: Any) -> Any:
        if self._inside is None or self._reads_first:
            return returned
        if isinstance(returned, torch.Tensor):
            return self._inside.pad(returned)
        returned.last_hidden_state = self._inside.pad(returned.last_hidden_state)
        return returned


def _layers(model: Any, head: Head) -> list[nn.Module]:
    config = model.config
    path = LAYERS.get(config.model_type)
    if path is None or config._attn_implementation != "sdpa" or head is Head.QUESTION_ANSWERING_BEAM:
        return []
    if getattr(config, "layerdrop", 0) or (getattr(config, "is_decoder", False) and path.startswith("encoder")):
        return []
    if getattr(config, "chunk_size_feed_forward", 0):  # which must divide the length
        return []
    if not getattr(config, "is_causal", True):  # a decoder's attention, whose mask alone says that it sees ahead
        return []
    base = (model.get_base_model() if hasattr(model, "get_base_model") else model).base_model
    if not type(base).__module__.startswith("transformers."):  # code of the model's own may have other layers
        return []
    found = base.get_submodule(path)
    return list(found) if isinstance(found, nn.ModuleList) else [found]


def _is_in_one_piece(mask: np.ndarray) -> bool:
    return bool((np.count_nonzero(np.diff(mask, axis=1, prepend=0, append=0), axis=1) <= 2).all())


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | RowMask | None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' attention, or if the mask is a RowMask that of tokens laid end to end."""
    if not isinstance(attention_mask, RowMask):
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    rows, padded = attention_mask
    if query.device.type not in ROW_BY_ROW_DEVICES:
        attended = _attend_end_to_end(module, query, key, value, rows, **options)
        if attended is not None:
            return attended, None
        grid = (rows.pad(each.transpose(1, 2)).transpose(1, 2) for each in (query, key, value))
        own_query, own_key, own_value = grid  # each (rows, heads, length, head_size)
        attended = sdpa_attention_forward(module, own_query, own_key, own_value, padded, **options)[0]
        return rows.flatten(attended), None  # (1, tokens, heads, head_size)
    window = options.get("sliding_window")
    # Without dropout PyTorch's kernel has few operations, and padding to similar lengths costs 2 to 10 % of a step.
    groups = rows.similar_length_groups if options.get("dropout") and not window else rows.equal_length_groups
    sizes, found = [group.tokens for group in groups], []
    # each (heads, tokens, head_size)
    for group, *parts in zip(groups, *(each[0].split(sizes, dim=1) for each in (query, key, value)), strict=True):
        mask = group.mask(padded) if window and group.length > window and padded is not None else group.bias
        own_query, own_key, own_value = map(group.pad, parts)  # each (heads, rows, length, head_size)
        found.append(group.flatten(_attend(module, own_query, own_key, own_value, mask, **options)))
    return torch.cat(found)[None], None  # (1, tokens, heads, head_size)


def _attend_end_to_end(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    rows: PackedRows,
    dropout: float = 0.0,
    **options: Any,
) -> torch.Tensor | None:
    """Attention of (1, heads, tokens, head_size) without padding, (1, tokens, heads, head_size); None if it cannot."""
    window = options.get("sliding_window")
    if dropout or (window and rows.longest > window):
        return None
    dtype = _attention_dtype(query)
    query, key, value = (each.to(dtype) for each in (query, key, value))  # as autocast does before its own kernels
    is_causal = _is_causal(module, options)
    kernel = _find_kernel(query, key, value, is_causal=is_causal)
    if kernel is None:
        return None
    flat = (each[0].transpose(0, 1) for each in (query, key, value))  # each (tokens, heads, head_size)
    attended = kernel(
        *flat, rows.offsets, rows.offsets, rows.longest, rows.longest, scale=options.get("scaling"),
        window_size=(-1, 0) if is_causal else (-1, -1), enable_gqa=query.shape[1] != key.shape[1],
    )  # fmt: skip
    return attended[None]


def _attention_dtype(states: torch.Tensor) -> torch.dtype:
    """The number format in which attention computes."""
    kind = states.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype


def _find_kernel(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, is_causal: bool) -> Any:
    """torch's `varlen_attn` if it computes this attention, each (1, heads, tokens, head_size); else None."""
    if query.device.type not in VARLEN_DEVICES or query.dtype not in HALF_DTYPES:
        return None
    if query.shape[-1] % _HEAD_SIZE_MULTIPLE or query.shape[-1] != value.shape[-1]:
        return None
    has_groups = query.shape[1] != key.shape[1]
    given = torch.backends.cuda.SDPAParams(query, key, value, None, 0.0, is_causal, has_groups)
    return _varlen() if torch.backends.cuda.can_use_flash_attention(given) else None


@cache
def _varlen() -> Any:
    """torch's `varlen_attn`; None for a release in which it takes other arguments."""
    from torch.nn.attention.varlen import varlen_attn  # not before it is used: it defines operators

    known = inspect.signature(varlen_attn).parameters.keys()
    return varlen_attn if {"scale", "window_size", "enable_gqa"} <= known else None


def _is_causal(module: nn.Module, options: Mapping[str, Any]) -> bool:
    given = options.get("is_causal")
    return bool(getattr(module, "is_causal", True) if given is None else given)


def _attend(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float = 0.0,
    **options: Any,
) -> torch.Tensor:
    """Arguments and result are (heads, rows, length, head_size), the mask is (rows, length or 1, length)."""
    if not dropout:
        query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        mask = None if mask is None else mask[:, None]
        return sdpa_attention_forward(module, query, key, value, mask, dropout, **options)[0].permute(2, 0, 1, 3)
    is_causal = _is_causal(module, options)
    return attend_with_dropout(query, key, value, mask, dropout, options.get("scaling"), is_causal=is_causal)
