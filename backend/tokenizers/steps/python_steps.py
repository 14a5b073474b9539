"""Owns what is known of the steps of a tokenizer that is written in Python, and the words for what is not."""

from typing import TYPE_CHECKING

from backend.contract.tokens.steps import Step, StepPart
from backend.tokenizers import guessed_offsets

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def unknown(tokenizer: "PreTrainedTokenizerBase") -> Step:
    """What comes before the model, and is not told."""
    name = type(tokenizer).__name__
    return Step(
        stage="normalizer",
        name="Before the model",
        sentence=f"{name} is written in Python: what it does to a text before it cuts it, it does not tell.",
        changed=False,
        known=False,
    )


def modelled(tokenizer: "PreTrainedTokenizerBase", parts: list[StepPart]) -> Step:
    """The pieces, without how they came about."""
    where = (
        "where they lie in the text is certain, since each is one byte or character"
        if guessed_offsets.are_exact(tokenizer)
        else "where they lie in the text was found by looking for them"
    )
    return Step(
        stage="model",
        name=type(tokenizer).__name__,
        sentence=f"These are its pieces; how it came to them it does not tell, and {where}.",
        parts=parts,
    )


def processed(parts: list[StepPart]) -> Step:
    """What was added around the pieces."""
    return Step(
        stage="post_processor", name="Special tokens", sentence="Adds special tokens around the text, and type ids.",
        parts=parts,
    )  # fmt: skip
