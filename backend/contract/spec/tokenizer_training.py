"""Owns the settings of a tokenizer that is trained: its kind, its size, and what is done to texts before pieces are learnt."""

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
    """How a tokenizer is made."""

    kind: Annotated[TokenizerKind, Field(title="Kind", json_schema_extra={"choices": KINDS})] = "byte_bpe"
    """`byte_bpe` as GPT-2 (knows every sign), `bpe` and `unigram` as SentencePiece, `wordpiece` as BERT."""
    use: Annotated[TokenizerUse, Field(title="For", json_schema_extra={"choices": USES})] = "decoder"
    """What it is for, which decides the special tokens: a language model, an encoder, or an encoder-decoder."""
    vocabulary: Annotated[int, Field(title="Vocabulary size", ge=2, le=2_000_000)] = 8000
    """Most pieces, special tokens included; byte-level BPE has at least the 256 bytes."""
    min_frequency: Annotated[
        int,
        Field(title="Minimum frequency", ge=1, json_schema_extra={"when": {"kind": ["byte_bpe", "bpe", "wordpiece"]}}),
    ] = 2
    """Pieces that occur less often are not made."""
    special_tokens: Annotated[list[str], Field(title="More special tokens")] = []
    """Beside those of the use, for example `<speaker>`; each is one token and never split."""
    normaliser: Annotated[Literal["usual", "none", "nfc", "nfkc"], Field(title="Normaliser")] = "usual"
    """What is done to a text first: `usual` as the models of its kind have it (nothing for byte-level BPE; NFKC and
    single spaces for `bpe` and `unigram`; BERT's cleaning for `wordpiece`), nothing, or a Unicode form alone."""
    lowercase: Annotated[bool, Field(title="Lower case")] = False
    """Makes no difference between upper and lower case; the text cannot be brought back exactly."""
    strip_accents: Annotated[bool, Field(title="Strip accents", json_schema_extra=ADVANCED)] = False
    """Takes accents from letters (é becomes e); the text cannot be brought back exactly."""
    pre_tokenizer: Annotated[Literal["usual", "whitespace", "punctuation", "none"], Field(title="Pre-tokenizer")] = (
        "usual"
    )
    """Borders over which no piece reaches: `usual` as the models of its kind have it; only spaces; spaces and every
    punctuation sign; or none, so that pieces may hold several words (slow on long texts)."""
    split_digits: Annotated[bool, Field(title="Digits apart", json_schema_extra=ADVANCED)] = False
    """Every digit is a piece of its own, which helps with arithmetic."""
    held_out: Annotated[float | None, Field(title="Held out", ge=0, le=0.5, json_schema_extra=ADVANCED)] = None
    """Share of the rows (1,000 at most) that nothing is learnt from, to measure compression on; empty takes 0.05 where
    there is another tokenizer to compare with, else none."""
