"""The output heads that tasks and engines share.

A head fixes four things: the arrays of a batch, the loss, the loss's denominator, and what
`Engine.evaluate` returns. All arrays are numpy; B is rows, L is length, D is the length of targets, C is labels,
K is choices. int64 and float32 unless stated; -100 marks a label that is unknown or no target.

| head | targets in the batch | loss of a target | denominator | `evaluate` returns |
|---|---|---|---|---|
| SEQUENCE_CLASSIFICATION | `labels` (B,) | cross-entropy | known rows, or their summed class weights | `logits` (B, C) |
| MULTI_LABEL_CLASSIFICATION | `has_label` (B, C) float32, 1 or 0, NaN unknown | binary cross-entropy, of a 1 times the label's class weight | known pairs of row and label | `logits` (B, C) |
| SEQUENCE_REGRESSION | `labels` (B,) float32, NaN unknown | squared error | known rows | `logits` (B,) |
| TOKEN_CLASSIFICATION | `labels` (B, L) | cross-entropy | targets | `logits` (B, L, C) |
| QUESTION_ANSWERING | `start_positions`, `end_positions` (B,) | mean of both cross-entropies | known rows | `start_logits`, `end_logits` (B, L) |
| QUESTION_ANSWERING_BEAM | the same; `cls_index` (B,), `p_mask` (B, L) where 1 is never an answer, `is_impossible` (B,) float32 where it is learnt | the same, plus half the binary cross-entropy of `is_impossible` | known rows | `start_top_log_probs`, `start_top_index` (B, S), `end_top_log_probs`, `end_top_index` (B, S·E, as transformers orders them), `cls_logits` (B,) |
| MULTIPLE_CHOICE | `labels` (B,) | cross-entropy over choices | known rows | `logits` (B, K) |
| CAUSAL_LM | `labels` (B, L), *not shifted* | cross-entropy | targets | `token_loss` (B, L), `token_prediction` (B, L) int32 |
| MASKED_LM | `labels` (B, L) | cross-entropy | targets | `token_loss` (B, L), `top_tokens` (B, L, 5) int32, `top_probabilities` (B, L, 5); zeros where there is no target |
| SEQ2SEQ_LM | `labels` (B, D), *not shifted* | cross-entropy | targets | `token_loss` (B, D), `token_prediction` (B, D) int32 |

For CAUSAL_LM position i of both outputs belongs to the target at position i (predicted from the positions
before it), position 0 is never a target; `token_loss` is 0 if there is none. Vocabulary logits never leave the engine.
For SEQ2SEQ_LM the engine makes the decoder's input of `labels`, as the architecture shifts them (the start token, then
all labels but the last, -100 replaced by padding); `evaluate` needs `labels`, `generate` does not.

Every batch also has `input_ids` (B, L), `attention_mask` (B, L) and `row_valid` (B,) bool; `token_type_ids`
(B, L) where the tokenizer makes them; packed rows carry `segment` and `position` (B, L); `decoder_prompt` (B, P) are the
tokens that a SEQ2SEQ_LM answer begins with, after the start token (a language). For MULTIPLE_CHOICE these input arrays
are (B, K, L). A filler row (`row_valid` false) takes part in no loss, no denominator and no output.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from backend.contract.messages import message

IGNORE = -100
"""The label of a token that is not a target."""
TOP_TOKENS = 5
"""How many of the likeliest tokens MASKED_LM gives for each target."""


Targets = Literal["class", "classes", "number", "choice", "span", "token", "next_token", "sequence"]
"""What a model learns to give for a row: one class, any number of classes, a number, one choice of several, a span of the input, something for every
input token or for the one after it, or a sequence of its own."""


class Head(StrEnum):
    """The type of a model's output head."""

    CAUSAL_LM = "causal_lm"
    MASKED_LM = "masked_lm"
    SEQ2SEQ_LM = "seq2seq_lm"
    SEQUENCE_CLASSIFICATION = "sequence_classification"
    MULTI_LABEL_CLASSIFICATION = "multi_label_classification"
    SEQUENCE_REGRESSION = "sequence_regression"
    TOKEN_CLASSIFICATION = "token_classification"
    QUESTION_ANSWERING = "question_answering"
    QUESTION_ANSWERING_BEAM = "question_answering_beam"
    MULTIPLE_CHOICE = "multiple_choice"

    @property
    def declared(self) -> "HeadDeclaration":
        """The declaration of this head."""
        return DECLARATIONS[self]

    @property
    def targets(self) -> Targets:
        """What a model with this head learns to predict."""
        return DECLARATIONS[self].targets

    @property
    def chooses_labels(self) -> bool:
        """Whether it predicts labels: of a row or of each token."""
        return DECLARATIONS[self].names_labels or self.targets == "choice"


@dataclass(frozen=True)
class HeadDeclaration:
    """What the rest of the backend needs to know about a head; its loss and outputs are in each engine's `heads.py`."""

    purpose: str
    """What a model with it can do, behind "can"."""
    targets: Targets
    table: str = ""
    """The table of transformers that lists its architectures, between `MODEL_FOR_` and `_MAPPING_NAMES`."""
    auto_class: str = ""
    """The name under which a model's own code offers a class for it."""
    peft: str = ""
    """PEFT's name for it, where PEFT has a class of its own."""
    problem_type: str = ""
    """The configuration's, by which transformers chooses the loss."""
    outputs: int = 0
    """How many outputs it has whatever the data; 0 where labels or the vocabulary decide."""
    over_vocabulary: bool = False
    """Whether its outputs are the vocabulary's."""
    names_labels: bool = False
    """Whether a configuration names its outputs by the labels."""


DECLARATIONS = {
    Head.CAUSAL_LM: HeadDeclaration(
        message("continue text"), "next_token", "CAUSAL_LM", "AutoModelForCausalLM", "CAUSAL_LM", over_vocabulary=True
    ),
    Head.MASKED_LM: HeadDeclaration(
        message("fill in masked words"), "token", "MASKED_LM", "AutoModelForMaskedLM", over_vocabulary=True
    ),
    Head.SEQ2SEQ_LM: HeadDeclaration(
        message("turn one text into another"), "sequence", "SEQ_TO_SEQ_CAUSAL_LM", "AutoModelForSeq2SeqLM", "SEQ_2_SEQ_LM",
        over_vocabulary=True,
    ),
    Head.SEQUENCE_CLASSIFICATION: HeadDeclaration(
        message("classify text"), "class", "SEQUENCE_CLASSIFICATION", "AutoModelForSequenceClassification", "SEQ_CLS",
        problem_type="single_label_classification", names_labels=True,
    ),
    Head.MULTI_LABEL_CLASSIFICATION: HeadDeclaration(
        message("classify text by several labels"), "classes", "SEQUENCE_CLASSIFICATION", "AutoModelForSequenceClassification",
        "SEQ_CLS", problem_type="multi_label_classification", names_labels=True,
    ),
    Head.SEQUENCE_REGRESSION: HeadDeclaration(
        message("score text"), "number", "SEQUENCE_CLASSIFICATION", "AutoModelForSequenceClassification", "SEQ_CLS",
        problem_type="regression", outputs=1,
    ),
    Head.TOKEN_CLASSIFICATION: HeadDeclaration(
        message("label words"), "token", "TOKEN_CLASSIFICATION", "AutoModelForTokenClassification", "TOKEN_CLS", names_labels=True
    ),
    Head.QUESTION_ANSWERING: HeadDeclaration(
        message("answer questions"), "span", "QUESTION_ANSWERING", "AutoModelForQuestionAnswering", "QUESTION_ANS", outputs=2
    ),
    Head.QUESTION_ANSWERING_BEAM: HeadDeclaration(message("answer questions by beam search"), "span"),
    Head.MULTIPLE_CHOICE: HeadDeclaration(
        message("choose among answers"), "choice", "MULTIPLE_CHOICE", "AutoModelForMultipleChoice", outputs=2
    ),
}  # fmt: skip
"""Multiple choice has one output; a configuration names two, since XLM's choices would have an output for each."""


@dataclass(frozen=True)
class HeadFacts:
    """What an engine needs to know about the head besides its kind: the label names in id order and their weights."""

    head: Head
    labels: tuple[str, ...] = ()
    class_weights: tuple[float, ...] | None = None
