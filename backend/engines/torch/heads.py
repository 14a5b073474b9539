"""Every head of the contract in PyTorch: a model class, a forward pass, a loss and outputs, all in one place.

A new head is one class here, and a line in HEADS.
"""

from typing import Any, Protocol

import numpy as np
import torch
import transformers
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedConfig,
    PreTrainedModel,
)

from backend.contract.errors import InputError
from backend.contract.heads import IGNORE, TOP_TOKENS, Head, HeadFacts
from backend.engines.engine import Batch
from backend.engines.torch.distributed.process_group import is_sharded
from backend.engines.torch.inputs import align_ends, check_packing, check_window, model_inputs, tensor
from backend.engines.torch.model_tail import can_repeat, ends_linear, trains_before
from backend.engines.torch.target_logits import TargetLogits
from backend.models.architectures import BEAM_CLASSES, explain_unsupported

_TRIED_TOKENS = 6  # of the batch, at which a model is tried
_NEVER = -1e30  # the logit that XLNet's own head gives to what is masked
_BEAM_OUTPUTS = ("start_top_log_probs", "start_top_index", "end_top_log_probs", "end_top_index", "cls_logits")


class TorchHead(Protocol):
    """One head of `backend.contract.heads` in PyTorch. Batches come without filler rows."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None: ...

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """The class with `from_pretrained` and `from_config` for this head. Raises InputError if there is none."""
        ...

    def answer(self, model: Any, batch: Batch) -> Any:
        """The forward pass; the caller controls autocast, gradients and dropout (`model.training`)."""
        ...

    def loss(self, answer: Any, batch: Batch) -> torch.Tensor:
        """The summed loss of a training answer, float32; the caller divides by the step's targets."""
        ...

    def outputs(self, answer: Any, batch: Batch) -> dict[str, np.ndarray]:
        """What `Engine.evaluate` returns, from an answer outside of training."""
        ...


class _Logits:
    """A head whose model returns the logits of each row, token or choice."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        self._smoothing, self._device = label_smoothing, device

    def answer(self, model: Any, batch: Batch) -> torch.Tensor:
        """Logits (batch, labels or choices)."""
        return model(**model_inputs(model, align_ends(model, batch), self._device)).logits

    def outputs(self, answer: torch.Tensor, batch: Batch) -> dict[str, np.ndarray]:
        """`logits`: (batch, labels) for rows, (batch,) for numbers, (batch, length, labels), (batch, choices)."""
        return {"logits": answer.float().cpu().numpy()}


class SequenceClassification(_Logits):
    """One of several classes per row."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        super().__init__(facts, label_smoothing, device)
        weights = facts.class_weights
        self._weights = None if weights is None else torch.tensor(weights, dtype=torch.float32, device=device)

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture with such a head."""
        return AutoModelForSequenceClassification

    def loss(self, answer: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Cross-entropy, weighted by class."""
        labels = tensor(batch["labels"], self._device)
        return cross_entropy(
            answer.float(),
            labels,
            weight=self._weights,
            ignore_index=IGNORE,
            reduction="sum",
            label_smoothing=self._smoothing,
        )


class MultiLabelClassification(_Logits):
    """Any number of classes per row."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        super().__init__(facts, label_smoothing, device)
        weights = facts.class_weights
        self._weights = None if weights is None else torch.tensor(weights, dtype=torch.float32, device=device)

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture that can classify rows: each of its outputs is a label of its own."""
        return AutoModelForSequenceClassification

    def loss(self, answer: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Binary cross-entropy of every label; those that a row has are weighted."""
        known = ~np.isnan(batch["has_label"])
        wanted = tensor(np.where(known, batch["has_label"], 0).astype(np.float32), self._device)  # (batch, labels)
        wanted = wanted * (1 - self._smoothing) + self._smoothing / 2
        each = binary_cross_entropy_with_logits(answer.float(), wanted, reduction="none", pos_weight=self._weights)
        return (each * tensor(known, self._device)).sum()


class SequenceRegression(_Logits):
    """One number per row."""

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture that can classify rows: the number is its only output."""
        return AutoModelForSequenceClassification

    def answer(self, model: Any, batch: Batch) -> torch.Tensor:
        """Numbers (batch,), even for one row: a column would broadcast against labels (batch,) to a square."""
        return super().answer(model, batch).squeeze(-1)  # (batch,)

    def loss(self, answer: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Squared error; a NaN label is unknown."""
        known = ~np.isnan(batch["labels"])
        wanted = tensor(np.where(known, batch["labels"], 0).astype(np.float32), self._device)
        return ((answer.float() - wanted).square() * tensor(known, self._device)).sum()


class TokenClassification(_Logits):
    """One of several classes per token."""

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture with such a head."""
        return AutoModelForTokenClassification

    def answer(self, model: Any, batch: Batch) -> torch.Tensor:
        """Logits (batch, length, labels)."""
        return model(**model_inputs(model, batch, self._device)).logits

    def loss(self, answer: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Cross-entropy at every target."""
        logits = answer.flatten(0, 1).float()  # (batch · length, labels)
        labels = tensor(batch["labels"], self._device).flatten()  # (batch · length,)
        return cross_entropy(logits, labels, ignore_index=IGNORE, reduction="sum", label_smoothing=self._smoothing)


class MultipleChoice(_Logits):
    """One of a row's choices; input arrays are (batch, choices, length)."""

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture with such a head."""
        return AutoModelForMultipleChoice

    def loss(self, answer: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Cross-entropy over the choices."""
        labels = tensor(batch["labels"], self._device)
        return cross_entropy(
            answer.float(), labels, ignore_index=IGNORE, reduction="sum", label_smoothing=self._smoothing
        )


class QuestionAnswering:
    """A start and an end, each over all tokens."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        self._device = device

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any architecture with such a head; for XLNet, XLM and FlauBERT the version without beams."""
        return AutoModelForQuestionAnswering

    def answer(self, model: Any, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of starts and ends, (batch, length) each."""
        found = model(**model_inputs(model, batch, self._device))
        return found.start_logits, found.end_logits  # each (batch, length)

    def loss(self, answer: tuple[torch.Tensor, torch.Tensor], batch: Batch) -> torch.Tensor:
        """The mean of both cross-entropies."""
        return _span_loss(*answer, batch, self._device)

    def outputs(self, answer: tuple[torch.Tensor, torch.Tensor], batch: Batch) -> dict[str, np.ndarray]:
        """`start_logits` and `end_logits` (batch, length)."""
        start, end = (logits.float().cpu().numpy() for logits in answer)
        return {"start_logits": start, "end_logits": end}


class BeamQuestionAnswering:
    """XLNet's head: ends are scored for each of the most likely starts, and answerability is learned."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        self._device = device

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """The architecture's own class. Raises InputError if it has none."""
        if reason := explain_unsupported({"model_type": config.model_type}, Head.QUESTION_ANSWERING_BEAM):
            raise InputError("model.name_or_path: {reason}", "model.name_or_path", reason=reason)
        return getattr(transformers, BEAM_CLASSES[config.model_type])

    def answer(self, model: Any, batch: Batch) -> Any:
        """In training, logits given the true start (start, end, unanswerable or None); else transformers' beams."""
        if not model.training:
            batch = _pad_for_beams(batch, max(model.config.start_n_top, model.config.end_n_top))
        given = model_inputs(model, batch, self._device)
        extra = {"cls_index": tensor(batch["cls_index"], self._device)} if "cls_index" in batch else {}
        mask = {"p_mask": tensor(batch["p_mask"].astype(np.float32), self._device)} if "p_mask" in batch else {}
        if not model.training:
            return model(**given, **extra, **mask)
        hidden = model.transformer(**given)[0]  # (batch, length, hidden_size)
        head = getattr(model, "qa_outputs", model)  # XLM's and FlauBERT's three parts are a module of their own
        starts = tensor(batch["start_positions"].clip(min=0), self._device)
        learnt = "is_impossible" in batch and "cls_index" in batch
        return (
            head.start_logits(hidden, **mask),  # (batch, length)
            head.end_logits(hidden, start_positions=starts, **mask),  # (batch, length)
            head.answer_class(hidden, start_positions=starts, **extra) if learnt else None,  # (batch,)
        )

    def loss(self, answer: Any, batch: Batch) -> torch.Tensor:
        """The mean of both cross-entropies, plus half the binary one of `is_impossible` if that is learned."""
        start, end, impossible = answer
        total = _span_loss(start, end, batch, self._device)
        if impossible is None:
            return total
        known = tensor(batch["start_positions"] != IGNORE, self._device)
        wanted = tensor(batch["is_impossible"].astype(np.float32), self._device)
        each = binary_cross_entropy_with_logits(impossible.float(), wanted, reduction="none")
        return total + 0.5 * (each * known).sum()

    def outputs(self, answer: Any, batch: Batch) -> dict[str, np.ndarray]:
        """The five arrays of transformers' head; in `end_top_*` entry e · S + s is end e of start s."""
        found = {name: answer[name].float() if "index" not in name else answer[name] for name in _BEAM_OUTPUTS}
        return {name: value.cpu().numpy() for name, value in found.items()}


def _pad_for_beams(batch: Batch, beams: int) -> Batch:
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
    # Padding is not an answer. transformers lets it compete, so a row's loss would depend on its batch's lengths.
    padding = tensor(batch["attention_mask"] == 0, device)
    positions = (tensor(batch[name], device) for name in ("start_positions", "end_positions"))
    losses = [
        cross_entropy(logits.float().masked_fill(padding, _NEVER), wanted, ignore_index=IGNORE, reduction="sum")
        for logits, wanted in zip((start, end), positions, strict=True)
    ]
    return (losses[0] + losses[1]) / 2


class _Language:
    """A head whose targets are tokens."""

    def __init__(self, facts: HeadFacts, label_smoothing: float, device: torch.device) -> None:
        self._smoothing, self._device = label_smoothing, device
        self._can_repeat: bool | None = None  # whether logits can be computed in parts; unknown until needed
        self._ends_linear = False  # whether they are what a linear layer returns

    def answer(self, model: Any, batch: Batch) -> TargetLogits:
        """Logits of the targets."""
        targets = TargetLogits(self._labels(batch), self._device)
        given = self._inputs(model, batch)
        exceeds = targets.exceed_chunk(model)
        # The processes that hold parts of a model try it together, at the first batch.
        if (exceeds or is_sharded(model)) and self._try_repeating(model, batch) and exceeds:
            return targets.postpone(model, lambda: model(**given), ends_linear=self._ends_linear)
        return targets.compute(model, lambda: model(**given))

    def loss(self, answer: TargetLogits, batch: Batch) -> torch.Tensor:
        """Cross-entropy of every target."""
        return answer.loss(self._smoothing)

    def _inputs(self, model: Any, batch: Batch) -> dict[str, Any]:
        """The arguments of the forward pass."""
        return model_inputs(model, batch, self._device)

    def _labels(self, batch: Batch) -> np.ndarray:
        """The token that each position predicts. (batch, length)"""
        return batch["labels"]

    def _try_repeating(self, model: Any, batch: Batch) -> bool:
        if self._can_repeat is None:
            # Tokens of the batch itself: no others need be in place where the word embedding is trained by rows.
            names = ("input_ids", "token_type_ids", "labels")
            few = {name: batch[name][:1, :_TRIED_TOKENS] for name in names if name in batch}
            few["attention_mask"] = np.ones_like(few["input_ids"])
            given = self._inputs(model, few)
            training = model.training
            model.eval()
            self._can_repeat = can_repeat(model, lambda: model(**given), self._labels(few).shape)
            self._ends_linear = self._can_repeat and ends_linear(model, lambda: model(**given))
            if is_sharded(model):  # FSDP follows no gradients taken between the forward and the backward pass
                self._can_repeat = self._ends_linear and trains_before(model, model.get_output_embeddings())
            model.train(training)
            torch.clear_autocast_cache()  # of weights that were converted without gradients
        return self._can_repeat


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
        """Logits of the positions that have a target after them."""
        if "segment" in batch:
            self._check_packing(model, batch)
        return super().answer(model, batch)

    def outputs(self, answer: TargetLogits, batch: Batch) -> dict[str, np.ndarray]:
        """`token_loss` and `token_prediction` (batch, length), at the position of the predicted token."""
        return {name: _shift_to_target(values) for name, values in _token_outputs(answer).items()}

    def _inputs(self, model: Any, batch: Batch) -> dict[str, Any]:
        return {**model_inputs(model, batch, self._device, causal=True), "use_cache": False}

    def _labels(self, batch: Batch) -> np.ndarray:
        own = batch["labels"] if "labels" in batch else np.where(batch["attention_mask"], batch["input_ids"], IGNORE)
        return next_labels(own)

    def _check_packing(self, model: Any, batch: Batch) -> None:
        check_window(model, batch)
        if not self._packs:
            check_packing(model, batch, self._device)
            self._packs = True


class MaskedLanguage(_Language):
    """The token behind a mask."""

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any encoder with a masked language modeling head."""
        return AutoModelForMaskedLM

    def outputs(self, answer: TargetLogits, batch: Batch) -> dict[str, np.ndarray]:
        """`token_loss` (batch, length) and the most likely tokens with their probabilities (batch, length, 5)."""
        losses, tokens, probabilities = [], [], []
        for logits, labels in answer.chunks():
            losses.append(cross_entropy(logits, labels, ignore_index=IGNORE, reduction="none"))  # (targets,)
            best = logits.topk(TOP_TOKENS, dim=-1)
            tokens.append(best.indices.int())  # (targets, top)
            probabilities.append((best.values - logits.logsumexp(dim=-1, keepdim=True)).exp())  # (targets, top)
        return {
            "token_loss": answer.scatter(losses),
            "top_tokens": answer.scatter(tokens),
            "top_probabilities": answer.scatter(probabilities),
        }


class SequenceToSequence(_Language):
    """The tokens of an answer, each from the source and the answer's tokens before it."""

    @staticmethod
    def model_class(config: PreTrainedConfig) -> Any:
        """Any encoder-decoder."""
        return AutoModelForSeq2SeqLM

    def outputs(self, answer: TargetLogits, batch: Batch) -> dict[str, np.ndarray]:
        """`token_loss` and `token_prediction` (batch, length of answers)."""
        return _token_outputs(answer)

    def _inputs(self, model: Any, batch: Batch) -> dict[str, Any]:
        # The decoder sees the answer's tokens one position later.
        before = shift_right(model, tensor(batch["labels"], self._device))
        return {**super()._inputs(model, batch), "decoder_input_ids": before, "use_cache": False}


def next_labels(labels: np.ndarray) -> np.ndarray:
    """The label that each position predicts: the next token's, none for the last. (batch, length)"""
    return np.concatenate([labels[:, 1:], np.full_like(labels[:, :1], IGNORE)], axis=1)


def shift_right(model: Any, labels: torch.Tensor) -> torch.Tensor:
    """The decoder's input, made from the labels as the architecture does; -100 becomes padding. (batch, length)"""
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
        losses.append(cross_entropy(logits, labels, ignore_index=IGNORE, reduction="none"))  # (targets,)
        predictions.append(logits.argmax(dim=-1).int())  # (targets,)
    return {"token_loss": answer.scatter(losses), "token_prediction": answer.scatter(predictions)}


def _shift_to_target(values: np.ndarray) -> np.ndarray:
    # The prediction at position i is for position i + 1; nothing predicts position 0.
    moved = np.zeros_like(values)
    moved[:, 1:] = values[:, :-1]
    return moved


def head_modules(model: PreTrainedModel, head: Head) -> list[str]:
    """The modules on top of a body, without layers and word embedding; none for language models, whose output is their own."""
    if head.declared.over_vocabulary:
        return []
    words = model.get_input_embeddings()
    return [
        name
        for name, part in model.named_children()
        if any(True for _ in part.parameters())
        and not any(isinstance(each, nn.ModuleList) or each is words for each in part.modules())
    ]


HEADS: dict[Head, type[TorchHead]] = {
    Head.CAUSAL_LM: CausalLanguage,
    Head.MASKED_LM: MaskedLanguage,
    Head.SEQ2SEQ_LM: SequenceToSequence,
    Head.SEQUENCE_CLASSIFICATION: SequenceClassification,
    Head.MULTI_LABEL_CLASSIFICATION: MultiLabelClassification,
    Head.SEQUENCE_REGRESSION: SequenceRegression,
    Head.TOKEN_CLASSIFICATION: TokenClassification,
    Head.QUESTION_ANSWERING: QuestionAnswering,
    Head.QUESTION_ANSWERING_BEAM: BeamQuestionAnswering,
    Head.MULTIPLE_CHOICE: MultipleChoice,
}
