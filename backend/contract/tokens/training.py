"""Answers about new tokenizers: trained on texts, or extended with more tokens."""

import msgspec


class Compression(msgspec.Struct, frozen=True, kw_only=True):
    """How many tokens a tokenizer makes of some texts, without special tokens."""

    tokenizer: str
    """Folder, file or hub id."""
    vocabulary: int
    rows: int
    tokens: int
    words: int
    characters: int
    bytes: int
    unknown: int
    """Tokens that replace unknown text."""

    @property
    def per_word(self) -> float:
        """Tokens per space-separated word; fewer is better."""
        return self.tokens / self.words if self.words else 0.0

    @property
    def per_character(self) -> float:
        """Tokens per character; fewer is better."""
        return self.tokens / self.characters if self.characters else 0.0

    @property
    def bytes_per_token(self) -> float:
        """Text bytes per token; more is better."""
        return self.bytes / self.tokens if self.tokens else 0.0


class TrainedTokenizer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `train_tokenizer {data, columns, settings, output, compare_with, folder}` and of `extend_tokenizer
    {tokenizer, add, special, whole_words, output}`: the folder that was written."""

    path: str
    vocabulary: int
    rows: int = 0
    """Texts that it was learnt from."""
    held_out: bool = False
    """Whether compression was measured on rows that nothing was learnt from."""
    compression: list[Compression] = []
    """The new one first."""
    added: int = 0
    notes: list[str] = []
    seconds: float = 0


class ProposedToken(msgspec.Struct, frozen=True):
    """A token that could be added, and how its text is tokenized now."""

    text: str
    special: bool
    pieces: list[str]
    ids: list[int]
    known: int | None = None
    """Its id where it is a token already."""
    problem: str = ""
    """Why it cannot be added, as a sentence; empty where it can."""


class ProposedTokens(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `propose_tokens {tokenizer, add, special}`: one proposal per text, in order."""

    tokens: list[ProposedToken]
    vocabulary: int


class TokenCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `count_proposed {tokenizer, add, special, whole_words, data, columns}`: the effect of adding them."""

    counts: dict[str, int]
    """Proposed token → how often it would occur."""
    rows: int
    tokens_before: int
    tokens_after: int
