"""The query `tokenizer_steps` and its answer: how a tokenizer turns a text into tokens, step by step."""

from typing import Literal

import msgspec

from backend.contract.tokens.tokens import TokenizeQuestion

MAX_CHARACTERS = 5_000
"""Steps describe only the start of a long text."""

Stage = Literal["words", "added_tokens", "normalizer", "pre_tokenizer", "model", "post_processor"]


class StepsQuestion(TokenizeQuestion, frozen=True, kw_only=True, omit_defaults=True):
    """Arguments of `tokenizer_steps`: those of `tokenize`, without truncation or padding; files are not supported."""

    part: int | None = None
    """Which message of a chat, word of split words or text of a pair, from 0; None is the whole, of a pair the first."""


class StepPart(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of the text after a step."""

    text: str
    start: int
    end: int
    """The characters of the original text that it represents."""
    fixed: bool = False
    """An added or special token, which later steps leave alone."""
    id: int | None = None
    """From the model on."""
    type: int = 0
    """Type id, after the post-processor."""
    sequence: int = 0
    """The text that `start` and `end` point into: 1 is the pair (after the post-processor), −1 none."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step; each member of a sequence is its own step."""

    stage: Stage
    name: str
    """`BertNormalizer`, `ByteLevel`, `BPE`, `TemplateProcessing` …"""
    settings: dict[str, str] = {}
    """Its settings in the words of the tokenizers library, without the vocabulary."""
    sentence: str = ""
    """What it does, for people."""
    parts: list[StepPart] = []
    """The text after it; of a normaliser one part for each stretch between added tokens."""
    changed: bool = True
    """Whether anything is other than after the step before."""
    known: bool = True
    """Whether the tokenizer reports this step; one written in Python does not report all of them."""


class Merge(msgspec.Struct, frozen=True, array_like=True):
    """One BPE merge, in the order of application."""

    rank: int
    left: str
    right: str
    place: int
    """Of the left one among the symbols before the merge."""


class ChosenPiece(msgspec.Struct, frozen=True, array_like=True):
    """A piece that the model considered."""

    piece: str
    start: int
    end: int
    """Characters within the word (after normaliser and pre-tokenizer)."""
    log_probability: float | None = None
    """Of Unigram."""
    best: float | None = None
    """Of Unigram: the best sum of log-probabilities of a way from the word's beginning to the end of this piece."""
    taken: bool = False
    """Part of the result."""


class WordTrace(msgspec.Struct, frozen=True, kw_only=True):
    """How the model split one word (as the pre-tokenizer produced it)."""

    word: str
    start: int
    end: int
    """Characters of the original text."""
    pieces: list[str]
    ids: list[int]
    symbols: list[str] = []
    """BPE: the initial symbols."""
    merges: list[Merge] = []
    """BPE: those that were applied, in order."""
    choices: list[ChosenPiece] = []
    """Unigram: the pieces that fit somewhere, by their beginning; WordPiece: the longest match at each place (`taken`)."""
    score: float | None = None
    """Unigram: the sum of the taken log-probabilities."""
    runner_up: list[str] = []
    runner_up_score: float | None = None
    """Unigram: the second best way; empty where there is only one."""
    sentence: str = ""
    """Why it is so, where merges and choices do not say: an unknown word, one too long, a whole word in the vocabulary."""


class TokenizerSteps(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `tokenizer_steps`."""

    text: str
    """What the steps describe: the text, the rendered chat, or the requested part of it."""
    pair: str | None = None
    shortened: bool = False
    steps: list[Step] = []
    """Of the text; the post-processor's has the pair too."""
    words: list[WordTrace] = []
    """Of the model, the same word only once, in the order of the text; of the first few hundred."""
    notes: list[str] = []
    """Sentences worth reading, for example that a message is cut otherwise within its chat."""
