"""Opens and inspects tokenizers."""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

AnyTokenizer: TypeAlias = "PreTrainedTokenizerBase"
"""A tokenizer of transformers, fast or slow; its name alone, since to import it loads whatever framework is installed."""
