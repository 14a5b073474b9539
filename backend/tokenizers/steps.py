"""Owns the way of a text through a tokenizer, step by step."""

from typing import TYPE_CHECKING

from backend.contract.tokenizer_steps import TokenizerSteps

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def steps(tokenizer: "PreTrainedTokenizerBase", text: str, pair: str | None, special_tokens: bool) -> TokenizerSteps:
    """Every step with what stands after it."""
    return TokenizerSteps(text=text, pair=pair, problem="to come")
