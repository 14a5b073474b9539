"""The settings for training a tokenizer: its kind, its size, and how text is prepared."""

from typing import Annotated, Any, Literal

from pydantic import Field

from backend.contract.spec.section import Section
from backend.contract.spec.training import ADVANCED

TokenizerKind = Literal["byte_bpe", "bpe", "wordpiece", "unigram"]
TokenizerUse = Literal["decoder", "encoder", "encoder_decoder"]
KINDS: dict[str, Any] = {
    "byte_bpe": {"title": "Byte-level BPE"},
    "bpe": {"title": "BPE"},
    "wordpiece": {"title": "WordPiece"},
    "unigram": {"title": "Unigram"},
}
USES: dict[str, Any] = {
    "decoder": {"title": "Language model"},
    "encoder": {"title": "Encoder"},
    "encoder_decoder": {"title": "Encoder-decoder"},
}
"""What the choices are called where people choose."""


class TokenizerTraining(Section):
    """How a tokenizer is trained."""

    kind: Annotated[TokenizerKind, Field(title="Kind", json_schema_extra={"choices": KINDS})] = "byte_bpe"
    """`byte_bpe` as in GPT-2 (can encode any character), `bpe` and `unigram` as in SentencePiece, `wordpiece` as in
    BERT."""
    use: Annotated[TokenizerUse, Field(title="Purpose", json_schema_extra={"choices": USES})] = "decoder"
    """What the tokenizer is for: a language model, an encoder, or an encoder-decoder. This determines the special
    tokens."""
    vocabulary: Annotated[int, Field(title="Vocabulary size", ge=2, le=2_000_000)] = 8000
    """Maximum number of pieces, including special tokens. Byte-level BPE has at least the 256 bytes."""
    min_frequency: Annotated[
        int,
        Field(title="Minimum frequency", ge=1, json_schema_extra={"when": {"kind": ["byte_bpe", "bpe", "wordpiece"]}}),
    ] = 2
    """Pieces that occur less often are not added."""
    special_tokens: Annotated[list[str], Field(title="Additional special tokens")] = []
    """Special tokens in addition to the standard ones, for example `<speaker>`. Each is one token and is never
    split."""
    normaliser: Annotated[Literal["usual", "none", "nfc", "nfkc"], Field(title="Normalizer")] = "usual"
    """How text is normalized first: `usual` is what is standard for this kind (nothing for byte-level BPE; NFKC and
    single spaces for `bpe` and `unigram`; BERT's cleaning for `wordpiece`), nothing, or only a Unicode form."""
    lowercase: Annotated[bool, Field(title="Lowercase")] = False
    """Convert text to lowercase. The original text can't be restored exactly."""
    strip_accents: Annotated[bool, Field(title="Strip accents", json_schema_extra=ADVANCED)] = False
    """Remove accents from letters (é becomes e). The original text can't be restored exactly."""
    pre_tokenizer: Annotated[Literal["usual", "whitespace", "punctuation", "none"], Field(title="Pre-tokenizer")] = (
        "usual"
    )
    """Where text is split before pieces are learned: `usual` is what is standard for this kind; at spaces only; at
    spaces and punctuation; or nowhere, so that a piece may span several words (slow on long texts)."""
    split_digits: Annotated[bool, Field(title="Split digits", json_schema_extra=ADVANCED)] = False
    """Make every digit a separate piece, which helps with arithmetic."""
    held_out: Annotated[float | None, Field(title="Held-out rows", ge=0, le=0.5, json_schema_extra=ADVANCED)] = None
    """Fraction of the rows (at most 1,000) to hold out for measuring compression. Empty uses 0.05 if there is another
    tokenizer to compare with, otherwise none."""
