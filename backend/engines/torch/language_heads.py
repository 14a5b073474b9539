"""Owns the language models' heads: the next token, masked tokens, and the tokens of an answer."""

from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM, PreTrainedConfig

from backend.contract.heads import IGNORE, TOP_TOKENS, HeadFacts
from backend.engines.engine import Batch
from backend.engines.torch.inputs import arguments, tensor
from backend.engines.torch.packing import check_packing, check_window
from backend.engines.torch.target_logits import TargetLogits


class _Language:
    """A head whose targets are tokens."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        self._smoothing, self._device = label_smoothing, device

    def loss(self, answer: TargetLogits, batch: Batch) -> torch.Tensor:
        """Cross-entropy of every target."""
        return answer.loss(self._smoothing)


class CausalLanguage(_Language):
    """The next token of each token."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        super().__init__(facts, label_smoothing, device)
        self._packs = False  # whether it has been tried that the model keeps packed texts apart

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any decoder."""
        return AutoModelForCausalLM

    def answer(self, model: Any, batch: Batch) -> TargetLogits:
        """Logits of the places that have a target behind them."""
        if "segment" in batch:
            self._check_packing(model, batch)
        given = arguments(model, batch, self._device, causal=True)
        labels = batch["labels"] if "labels" in batch else np.where(batch["attention_mask"], batch["input_ids"], IGNORE)
        targets = TargetLogits(next_labels(labels), self._device)
        return targets.compute(model, lambda: model(**given, use_cache=False))

    def outputs(self, answer: TargetLogits, batch: Batch) -> dict[str, np.ndarray]:
        """`token_loss` and `token_prediction` (batch, length), at the token that is predicted."""
        return {name: _moved_to_target(values) for name, values in _token_outputs(answer).items()}

    def _check_packing(self, model: Any, batch: Batch) -> None:
        check_window(model, batch)
        if not self._packs:
            check_packing(model, batch, self._device)
            self._packs = True


class MaskedLanguage(_Language):
    """What stands behind a mask."""

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any encoder that was made for it."""
        return AutoModelForMaskedLM

    def answer(self, model: Any, batch: Batch) -> TargetLogits:
        """Logits of the targets."""
        given = arguments(model, batch, self._device)
        return TargetLogits(batch["labels"], self._device).compute(model, lambda: model(**given))

    def outputs(self, answer: TargetLogits, batch: Batch) -> dict[str, np.ndarray]:
        """`token_loss` (batch, length) and the likeliest tokens with their probabilities (batch, length, 5)."""
        losses, tokens, probabilities = [], [], []
        for logits, labels in answer.chunks():
            losses.append(cross_entropy(logits, labels, ignore_index=IGNORE, reduction="none"))
            best = logits.topk(TOP_TOKENS, dim=-1)
            tokens.append(best.indices.int())
            probabilities.append((best.values - logits.logsumexp(dim=-1, keepdim=True)).exp())
        return {
            "token_loss": answer.spread(losses),
            "top_tokens": answer.spread(tokens),
            "top_probabilities": answer.spread(probabilities),
        }


class SequenceToSequence(_Language):
    """The tokens of an answer, each from the source and the answer's tokens before it."""

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any encoder-decoder."""
        return AutoModelForSeq2SeqLM

    def answer(self, model: Any, batch: Batch) -> TargetLogits:
        """Logits of the answer's tokens; the decoder sees them one place later."""
        given = arguments(model, batch, self._device)
        given["decoder_input_ids"] = shifted(model, tensor(batch["labels"], self._device))
        targets = TargetLogits(batch["labels"], self._device)
        return targets.compute(model, lambda: model(**given, use_cache=False))

    def outputs(self, answer: TargetLogits, batch: Batch) -> dict[str, np.ndarray]:
        """`token_loss` and `token_prediction` (batch, length of answers)."""
        return _token_outputs(answer)


def next_labels(labels: np.ndarray) -> np.ndarray:
    """The label that each position predicts: the next one, and none at the end. (batch, length)"""
    return np.concatenate([labels[:, 1:], np.full_like(labels[:, :1], IGNORE)], axis=1)


def shifted(model: Any, labels: torch.Tensor) -> torch.Tensor:
    """The decoder's input as the architecture makes it of the labels; -100 becomes padding. (batch, length)"""
    shift = getattr(model, "prepare_decoder_input_ids_from_labels", None)
    if shift is not None:
        return shift(labels=labels)
    # What architectures without a method of their own (M2M100, Blenderbot) do in their forward pass.
    config = model.config
    moved = labels.roll(1, dims=-1)
    moved[:, 0] = config.decoder_start_token_id
    return moved.masked_fill(moved == IGNORE, config.pad_token_id)


def _token_outputs(answer: TargetLogits) -> dict[str, np.ndarray]:
    losses, predictions = [], []
    for logits, labels in answer.chunks():
        losses.append(cross_entropy(logits, labels, ignore_index=IGNORE, reduction="none"))
        predictions.append(logits.argmax(dim=-1).int())
    return {"token_loss": answer.spread(losses), "token_prediction": answer.spread(predictions)}


def _moved_to_target(values: np.ndarray) -> np.ndarray:
    # What position i says of its successor belongs to position i + 1; position 0 is nobody's successor.
    moved = np.zeros_like(values)
    moved[:, 1:] = values[:, :-1]
    return moved
