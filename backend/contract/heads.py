"""Owns the output shapes in which a task and an engine meet.

A head fixes four things: the arrays of a batch, the loss, the loss's denominator, and what
`Engine.evaluate` returns. All arrays are numpy; B is rows, L is length, C is labels.

| head | labels in the batch | denominator | `evaluate` returns |
|---|---|---|---|
| SEQUENCE_CLASSIFICATION | `labels` (B,) int64 | valid rows, or their summed class weights | `logits` (B, C) float32 |
| CAUSAL_LM | `labels` (B, L) int64, -100 no target, *not shifted* | targets of the step | `token_loss` (B, L) float32, `token_prediction` (B, L) int32 |

For CAUSAL_LM position i of both outputs belongs to the target at position i (predicted from the positions
before it), position 0 is never a target; `token_loss` is 0 where there is none. Vocabulary logits never leave the engine.
Every batch also has `input_ids` (B, L) int64, `attention_mask` (B, L) int64 and `row_valid` (B,) bool; `token_type_ids`
(B, L) where the tokenizer makes them; packed rows carry `segment` and `position` (B, L). A filler row
(`row_valid` false) takes part in no loss, no denominator and no output.
"""

from dataclasses import dataclass
from enum import StrEnum

IGNORE = -100
"""The label of a token that is no target."""


class Head(StrEnum):
    """The output shape of a model."""

    CAUSAL_LM = "causal_lm"
    MASKED_LM = "masked_lm"
    SEQ2SEQ_LM = "seq2seq_lm"
    SEQUENCE_CLASSIFICATION = "sequence_classification"
    SEQUENCE_REGRESSION = "sequence_regression"
    TOKEN_CLASSIFICATION = "token_classification"
    QUESTION_ANSWERING = "question_answering"
    QUESTION_ANSWERING_BEAM = "question_answering_beam"
    MULTIPLE_CHOICE = "multiple_choice"


@dataclass(frozen=True)
class HeadFacts:
    """What an engine must know of the head beside its kind: the labels' names in id order and their weights."""

    head: Head
    labels: tuple[str, ...] = ()
    class_weights: tuple[float, ...] | None = None
