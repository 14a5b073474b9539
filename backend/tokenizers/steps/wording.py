"""Owns what each step of a tokenizer does, in a sentence, and its settings."""

import json
from typing import Any

LONGEST = 120
_SENTENCES = {
    "BertNormalizer": "Cleans control characters away, sets spaces around Chinese characters, and as its settings say lower-cases and strips accents.",
    "Lowercase": "Makes all letters small.",
    "NFC": "Composes letters and marks (é as one character).",
    "NFD": "Takes letters and marks apart (é as e and an accent).",
    "NFKC": "Replaces compatibility forms (ﬁ, Ａ, ²) and composes letters and marks.",
    "NFKD": "Replaces compatibility forms (ﬁ, Ａ, ²) and takes letters and marks apart.",
    "Nmt": "Takes control characters away and makes other spaces plain ones.",
    "Precompiled": "Replaces characters by the table in the SentencePiece model (mostly NFKC).",
    "Prepend": "Sets a sign before the text.",
    "Replace": "Replaces one text by another.",
    "Strip": "Takes spaces at the ends away.",
    "StripAccents": "Takes accents away.",
    "ByteLevel": "Writes every byte of the text as one of 256 printable signs (Ġ is the space), so that nothing is ever unknown.",
    "BertPreTokenizer": "Parts words at white space and at every punctuation mark.",
    "Whitespace": "Parts words at white space, and letters from other signs.",
    "WhitespaceSplit": "Parts words at white space.",
    "Metaspace": "Writes spaces as ▁ and, as its settings say, parts words there and sets one before the text.",
    "Split": "Parts the text by a pattern.",
    "Digits": "Parts digits from everything else.",
    "Punctuation": "Parts punctuation marks.",
    "UnicodeScripts": "Parts the text where the script changes.",
    "CharDelimiterSplit": "Parts the text at one character.",
    "FixedLength": "Parts the text into stretches of one length.",
    "BPE": "Begins with single signs and merges the pair that comes first in its list, again and again.",
    "WordPiece": "Takes from the left the longest piece of the vocabulary that fits, again and again.",
    "Unigram": "Takes of all ways to cut a word the one whose pieces have the largest product of probabilities.",
    "WordLevel": "Looks every word up as a whole.",
    "TemplateProcessing": "Adds special tokens around the text, and type ids.",
    "BertProcessing": "Adds [CLS] and [SEP], and type ids.",
    "RobertaProcessing": "Adds <s> and </s>.",
    "Words": "The text came as words: each goes through all steps by itself.",
    "added_tokens": "Takes out the added tokens that stand in the text; later steps leave them alone.",
}
_OF_POST_PROCESSOR = {"ByteLevel": "As its settings say, leaves the space before a word out of its offsets."}


def sentence(name: str, stage: str) -> str:
    """What a step does; empty for one that we do not know."""
    own = _OF_POST_PROCESSOR if stage == "post_processor" else {}
    return own.get(name) or _SENTENCES.get(name, "")


def settings(step: Any) -> dict[str, str]:
    """The settings of a step in the library's words; long ones (tables, vocabularies) are left out."""
    try:
        stored = json.loads(step.__getstate__())
    except (TypeError, ValueError, AttributeError):  # a step written in Python has no settings that could be told
        return {}
    told = {name: value for name, value in stored.items() if name not in ("type", "vocab", "merges", "special_tokens")}
    texts = {name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for name, value in told.items()}  # fmt: skip
    return {name: text for name, text in texts.items() if len(text) <= LONGEST}
