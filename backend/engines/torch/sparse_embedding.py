"""Trains a large word embedding on the CPU so that only rows that have ever occurred cost time.

A step touches a few hundred of tens of thousands of rows, yet a dense gradient is written, measured, clipped and
processed by AdamW as a whole. Here the step's rows are a small parameter. AdamW then updates every row that
has occurred since training started, because its moments are nonzero. A row that has not occurred has zero moments, so
AdamW only applies weight decay: one factor for all such rows, kept in float64 and multiplied in when a row is looked
up, first occurs or is exported. This equals the dense computation up to rounding; a test compares both.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import embedding
from torch.optim.adamw import adamw

from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from backend.contract.spec.training import ADAMW
from backend.engines.engine import Batch

_LOOKED_UP = ("input_ids", "token_type_ids")
_WORTH_IT = 1 << 20
"""Elements below which a dense gradient costs less than the book-keeping."""


class SparseEmbedding:
    """The input embedding `module`, whose whole weight is not tracked by autograd."""

    def __init__(self, name: str, module: nn.Embedding, training: TrainingSection, padding: int | None) -> None:
        self.name, self._module, self._training, self._padding = name, module, training, padding
        rows, width = module.weight.shape
        self._place = torch.full((rows,), -1)  # row → place in this step's leaf
        self._slot = torch.full((rows,), -1)  # row → place among the rows that ever occurred
        self._occurred = torch.empty(0, dtype=torch.int64)
        self._moments = torch.zeros(2, 0, width)  # both moments of the rows that occurred, with room to grow
        self._step = torch.zeros(())
        self._decay = 1.0  # what weight decay has done to every other row
        self._rows = torch.empty(0, dtype=torch.int64)
        self._leaf: torch.Tensor | None = None
        module.weight.requires_grad_(False)
        module.forward = self._look_up  # type: ignore[method-assign]

    def begin(self, batches: Sequence[Batch]) -> None:
        """Extract the rows that this optimizer step will look up."""
        # GPT-2 and XLM look up token types in the word embedding, and Longformer adds its own padding.
        ids = [batch[name].ravel() for batch in batches for name in _LOOKED_UP if name in batch]
        padding = np.array([] if self._padding is None else [self._padding], dtype=np.int64)
        self._rows = torch.from_numpy(np.unique(np.concatenate([*ids, padding])))
        self._admit(self._rows[self._slot[self._rows] < 0])
        self._place[self._rows] = torch.arange(len(self._rows))
        self._leaf = self._module.weight.detach()[self._rows].requires_grad_()

    @property
    def leaf(self) -> torch.Tensor:
        """This step's rows, of which autograd knows."""
        assert self._leaf is not None
        return self._leaf

    @property
    def gradient(self) -> torch.Tensor:
        """The gradient of this step's rows."""
        return self.leaf.grad if self.leaf.grad is not None else torch.zeros_like(self.leaf)

    @torch.no_grad()
    def finish(self, learning_rate: float, gradient_scale: torch.Tensor | None) -> None:
        """Apply AdamW to every row that has occurred; the gradient is divided by `gradient_scale`."""
        count, training, weight = len(self._occurred), self._training, self._module.weight
        gradient = torch.zeros(count, weight.shape[1])
        gradient[self._slot[self._rows]] = self.gradient
        values = weight.index_select(0, self._occurred)
        adamw(
            [values], [gradient], [self._moments[0, :count]], [self._moments[1, :count]], [], [self._step],
            fused=True, grad_scale=gradient_scale, amsgrad=False, maximize=False,
            beta1=training.adam_beta1, beta2=training.adam_beta2, eps=training.adam_epsilon,
            weight_decay=training.weight_decay, lr=learning_rate,
        )  # fmt: skip
        weight.index_copy_(0, self._occurred, values)
        self._decay *= 1 - learning_rate * training.weight_decay
        self._place[self._rows] = -1
        self._leaf = None

    @torch.no_grad()
    def dense_weight(self) -> torch.Tensor:
        """A copy of the whole embedding with its current values. (rows, width)"""
        whole = self._module.weight.clone()
        whole[self._slot < 0] *= self._decay
        return whole

    def state(self) -> dict[str, torch.Tensor]:
        """The state that a resumed run needs besides the weight itself."""
        return {
            "rows": self._occurred,
            "moments": self._moments[:, : len(self._occurred)].contiguous(),
            "step": self._step,
            "decay": torch.tensor(self._decay, dtype=torch.float64),
        }

    def restore(self, state: dict[str, torch.Tensor]) -> None:
        """Restore the result of `state`. Raises ValueError or KeyError if it is not one of this embedding."""
        _check_state(state, self._module.weight.shape)
        self._occurred, self._moments = state["rows"].clone(), state["moments"].clone()
        self._step, self._decay = state["step"].clone(), state["decay"].item()
        self._slot.fill_(-1)
        self._slot[self._occurred] = torch.arange(len(self._occurred))

    @torch.no_grad()
    def _admit(self, new: torch.Tensor) -> None:
        if not len(new):
            return
        count = len(self._occurred) + len(new)
        self._module.weight[new] *= self._decay
        self._slot[new] = torch.arange(len(self._occurred), count)
        self._occurred = torch.cat([self._occurred, new])
        if count > self._moments.shape[1]:
            room = torch.zeros(2, count, self._moments.shape[2])
            self._moments = torch.cat([self._moments, room], dim=1)  # more than doubles, so this is seldom

    def _look_up(self, ids: torch.Tensor) -> torch.Tensor:
        if self._leaf is None:
            found = embedding(ids, self._module.weight)
            waiting = (self._slot[ids] < 0).unsqueeze(-1)
            return found if self._decay == 1.0 else found * torch.where(waiting, self._decay, 1.0)
        # An id that was not announced has place -1, and this raises.
        return embedding(self._place[ids], self._leaf, self._padding_place())

    def _padding_place(self) -> int | None:
        padding = self._module.padding_idx
        if padding is None:
            return None
        place = int(self._place[padding])
        return place if place >= 0 else None


def sparse_embedding(model: Any, device: torch.device, training: TrainingSection, head: Head) -> SparseEmbedding | None:
    """The model's word embedding, if training only its rows is correct and worthwhile; else None.

    It is correct for an untied, plain, trainable embedding in which only input tokens are looked up; an encoder-decoder
    shares it between both sides, and DeBERTa's masked language model uses all of it for logits. It is worthwhile for a
    large one on a CPU: on an accelerator the dense pass takes less time than launching these kernels.
    """
    module = model.get_input_embeddings()
    if device.type != "cpu" or type(module) is not nn.Embedding or module.max_norm is not None:
        return None
    if module.weight.dtype is not torch.float32:  # its rows are rounded with the other weights
        return None
    if training.optimizer not in ADAMW:  # what is done here to rows that did not occur is AdamW's arithmetic
        return None
    if model.config.is_encoder_decoder or head is Head.MASKED_LM:
        return None
    holders = [
        name
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if parameter is module.weight and parameter.requires_grad
    ]
    if len(holders) != 1 or module.weight.numel() < _WORTH_IT:
        return None
    return SparseEmbedding(holders[0], module, training, model.config.pad_token_id)


@torch.no_grad()
def convert_words(
    state: dict[str, torch.Tensor],
    weights: dict[str, torch.Tensor],
    stored: str,
    wanted: str,
    first: int = 0,
    count: int | None = None,
) -> None:
    """Convert a checkpoint's optimizer state where its run trained a word embedding by rows, and this one does not.

    Or the other way round: `stored` and `wanted` name the embeddings that are trained so, if any. Of a sharded model
    `weights` has the rows from `first` on of `count` ones. The decay that rows have been waiting for is applied.
    Raises ValueError or KeyError if the state is not that of such an embedding.
    """
    if stored == wanted:
        return
    if stored:
        own_rows, width = weights[stored].shape
        values = {key.removeprefix("words."): value for key, value in state.items() if key.startswith("words.")}
        _check_state(values, (own_rows if count is None else count, width))
        weight, rows = weights[stored], state["words.rows"] - first
        own = (rows >= 0) & (rows < len(weight))
        for key, moments in zip(("exp_avg", "exp_avg_sq"), state["words.moments"], strict=True):
            state[f"{key}.{stored}"] = torch.zeros_like(weight).index_copy_(0, rows[own], moments[own])
        state[f"step.{stored}"] = state["words.step"]
        waiting = torch.ones(len(weight), dtype=torch.bool).index_fill_(0, rows[own], False)
        weight[waiting] *= state["words.decay"].item()
        for name in [name for name in state if name.startswith("words.")]:
            del state[name]
    if wanted and f"step.{wanted}" in state:
        moments = torch.stack([state.pop(f"exp_avg.{wanted}"), state.pop(f"exp_avg_sq.{wanted}")])  # (2, rows, width)
        occurred = moments.any(dim=2).any(dim=0).nonzero().flatten()  # (occurred,)
        state |= {
            "words.rows": occurred,
            "words.moments": moments[:, occurred],
            "words.step": state.pop(f"step.{wanted}"),
            "words.decay": torch.ones((), dtype=torch.float64),
        }


def _check_state(state: Mapping[str, torch.Tensor], shape: Sequence[int]) -> None:
    """Raises ValueError or KeyError if `SparseEmbedding.state` of an embedding (rows, width) cannot look like this."""
    occurred, moments = state["rows"], state["moments"]
    fits = occurred.dtype is torch.int64 and len(occurred.unique()) == occurred.numel()
    fits = fits and moments.shape == (2, *occurred.shape, shape[1]) and moments.dtype is torch.float32
    fits = fits and state["step"].ndim == state["decay"].ndim == 0 and occurred.ndim == 1
    if not fits or not ((occurred >= 0) & (occurred < shape[0])).all():
        raise ValueError(f"its state of {shape[0]} rows of words does not fit them")
