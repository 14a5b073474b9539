"""Owns the heads that answer a question by a span of the text: plain starts and ends, and beams of them."""

from typing import Any

import numpy as np
import torch
import transformers
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import AutoModelForQuestionAnswering, PreTrainedConfig

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE, Head, HeadFacts
from backend.engines.engine import Batch
from backend.engines.torch.inputs import arguments, tensor
from backend.models.architectures import BEAM_CLASSES, why_not

_NEVER = -1e30  # the logit that XLNet's own head gives to what is masked
_BEAM_OUTPUTS = ("start_top_log_probs", "start_top_index", "end_top_log_probs", "end_top_index", "cls_logits")


class QuestionAnswering:
    """A start and an end, each over all tokens."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        self._device = device

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture with such a head; of XLNet, XLM and FlauBERT that is the one without beams."""
        return AutoModelForQuestionAnswering

    def answer(self, model: Any, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of starts and of ends, (batch, length) each."""
        found = model(**arguments(model, batch, self._device))
        return found.start_logits, found.end_logits

    def loss(self, answer: tuple[torch.Tensor, torch.Tensor], batch: Batch) -> torch.Tensor:
        """The mean of both cross-entropies."""
        return _span_loss(*answer, batch, self._device)

    def outputs(self, answer: tuple[torch.Tensor, torch.Tensor], batch: Batch) -> dict[str, np.ndarray]:
        """`start_logits` and `end_logits` (batch, length)."""
        start, end = (logits.float().cpu().numpy() for logits in answer)
        return {"start_logits": start, "end_logits": end}


class BeamQuestionAnswering:
    """XLNet's head: an end is sought for each of the likeliest starts, and whether there is an answer is learnt."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        self._device = device

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """The architecture's own class. Raises InputError where it has none."""
        if reason := why_not({"model_type": config.model_type}, Head.QUESTION_ANSWERING_BEAM):
            raise InputError(f"model.name_or_path: {reason}", "model.name_or_path")
        return getattr(transformers, BEAM_CLASSES[config.model_type])

    def answer(self, model: Any, batch: Batch) -> Any:
        """In training logits with the true start given, (start, end, unanswerable or None); else transformers' beams."""
        if not model.training:
            batch = _room_for_beams(batch, max(model.config.start_n_top, model.config.end_n_top))
        given = arguments(model, batch, self._device)
        extra = {"cls_index": tensor(batch["cls_index"], self._device)} if "cls_index" in batch else {}
        mask = {"p_mask": tensor(batch["p_mask"].astype(np.float32), self._device)} if "p_mask" in batch else {}
        if not model.training:
            return model(**given, **extra, **mask)
        hidden = model.transformer(**given)[0]
        head = getattr(model, "qa_outputs", model)  # XLM's and FlauBERT's three parts are a module of their own
        starts = tensor(batch["start_positions"].clip(min=0), self._device)
        learnt = "is_impossible" in batch and "cls_index" in batch
        return (
            head.start_logits(hidden, **mask),
            head.end_logits(hidden, start_positions=starts, **mask),
            head.answer_class(hidden, start_positions=starts, **extra) if learnt else None,
        )

    def loss(self, answer: Any, batch: Batch) -> torch.Tensor:
        """The mean of both cross-entropies, plus half the binary one of `is_impossible` where it is learnt."""
        start, end, impossible = answer
        total = _span_loss(start, end, batch, self._device)
        if impossible is None:
            return total
        known = tensor(batch["start_positions"] != IGNORE, self._device)
        wanted = tensor(batch["is_impossible"].astype(np.float32), self._device)
        each = binary_cross_entropy_with_logits(impossible.float(), wanted, reduction="none")
        return total + 0.5 * (each * known).sum()

    def outputs(self, answer: Any, batch: Batch) -> dict[str, np.ndarray]:
        """The five arrays of transformers' head; of `end_top_*` entry e · S + s is end e of start s."""
        found = {name: answer[name].float() if "index" not in name else answer[name] for name in _BEAM_OUTPUTS}
        return {name: value.cpu().numpy() for name, value in found.items()}


def _room_for_beams(batch: Batch, beams: int) -> Batch:
    missing = beams - batch["input_ids"].shape[1]
    if missing <= 0:
        return batch
    # There must be as many places as beams; those that are added are padding, which no answer may take.
    batch = {"p_mask": np.zeros_like(batch["input_ids"]), **batch}
    fillers = {"input_ids": 0, "attention_mask": 0, "token_type_ids": 0, "p_mask": 1}
    longer = {
        name: np.pad(batch[name], ((0, 0), (0, missing)), constant_values=filler)
        for name, filler in fillers.items()
        if name in batch
    }
    return {**batch, **longer}


def _span_loss(start: torch.Tensor, end: torch.Tensor, batch: Batch, device: torch.device) -> torch.Tensor:
    # Padding is no answer. transformers lets it compete, so that a row's loss would hang on its companions' lengths.
    padding = tensor(batch["attention_mask"] == 0, device)
    positions = (tensor(batch[name], device) for name in ("start_positions", "end_positions"))
    losses = [
        cross_entropy(logits.float().masked_fill(padding, _NEVER), wanted, ignore_index=IGNORE, reduction="sum")
        for logits, wanted in zip((start, end), positions, strict=True)
    ]
    return (losses[0] + losses[1]) / 2
