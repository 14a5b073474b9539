"""Every head of the contract in PyTorch."""

from backend.contract.heads import Head
from backend.engines.torch.classification_heads import (
    MultipleChoice,
    SequenceClassification,
    SequenceRegression,
    TokenClassification,
)
from backend.engines.torch.head_protocol import TorchHead
from backend.engines.torch.language_heads import CausalLanguage, MaskedLanguage, SequenceToSequence
from backend.engines.torch.span_heads import BeamQuestionAnswering, QuestionAnswering

HEADS: dict[Head, type[TorchHead]] = {
    Head.CAUSAL_LM: CausalLanguage,
    Head.MASKED_LM: MaskedLanguage,
    Head.SEQ2SEQ_LM: SequenceToSequence,
    Head.SEQUENCE_CLASSIFICATION: SequenceClassification,
    Head.SEQUENCE_REGRESSION: SequenceRegression,
    Head.TOKEN_CLASSIFICATION: TokenClassification,
    Head.QUESTION_ANSWERING: QuestionAnswering,
    Head.QUESTION_ANSWERING_BEAM: BeamQuestionAnswering,
    Head.MULTIPLE_CHOICE: MultipleChoice,
}
