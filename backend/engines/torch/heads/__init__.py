"""Every head of the contract in PyTorch."""

from backend.contract.heads import Head
from backend.engines.torch.heads.classification import (
    MultipleChoice,
    SequenceClassification,
    SequenceRegression,
    TokenClassification,
)
from backend.engines.torch.heads.head import TorchHead
from backend.engines.torch.heads.language import CausalLanguage, MaskedLanguage, SequenceToSequence
from backend.engines.torch.heads.spans import BeamQuestionAnswering, QuestionAnswering

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
