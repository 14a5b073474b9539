"""Owns what a new tokenizer does to a text before its model sees it: normaliser, pre-tokenizer, and the decoder that undoes them."""

from typing import Any

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers

from backend.contract.errors import InputError
from backend.contract.spec.tokenizer_training import TokenizerTraining

_WITH_SPACE = Regex(r"\s*\S+|\s+$")
"""A word with the spaces before it, as byte-level pieces hold them."""
_SIGN = Regex(r"[[\p{P}\p{S}]&&[^▁]]")
"""Punctuation and symbols, less the mark that SentencePiece puts for a space."""


def put_in_place(tokenizer: Tokenizer, settings: TokenizerTraining) -> None:
    """Sets normaliser, pre-tokenizer and decoder. Raises InputError where a kind cannot do without borders."""
    steps = [*_of_letters(settings), *_normalisers(settings)]
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps) if len(steps) > 1 else steps[0]
    borders = _BORDERS[settings.kind](settings)
    if settings.split_digits:
        borders = _with_digits(settings, borders)
    tokenizer.pre_tokenizer = borders[0] if len(borders) == 1 else pre_tokenizers.Sequence(borders)
    tokenizer.decoder = _decoder(settings)


def _decoder(settings: TokenizerTraining) -> Any:
    if settings.kind == "byte_bpe":
        return decoders.ByteLevel()
    if settings.kind == "wordpiece":
        return decoders.WordPiece()
    if settings.pre_tokenizer != "none":
        return decoders.Metaspace()
    # That one would take every mark out of a first piece that holds several words.
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def _of_letters(settings: TokenizerTraining) -> list[Any]:
    lower = [normalizers.Lowercase()] if settings.lowercase else []
    return [*lower, *([normalizers.NFD(), normalizers.StripAccents()] if settings.strip_accents else [])]


def _normalisers(settings: TokenizerTraining) -> list[Any]:
    if settings.normaliser == "none":
        return []
    if settings.normaliser != "usual":
        return [{"nfc": normalizers.NFC, "nfkc": normalizers.NFKC}[settings.normaliser]()]
    if settings.kind == "byte_bpe":
        return []
    if settings.kind == "wordpiece":
        return [normalizers.BertNormalizer(lowercase=settings.lowercase)]
    # NFKC, and one space between words: Kudo and Richardson 2018.
    return [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]


def _bytes(settings: TokenizerTraining) -> list[Any]:
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if settings.pre_tokenizer == "none":
        return [plain]
    if settings.pre_tokenizer == "whitespace":
        return [pre_tokenizers.Split(_WITH_SPACE, "isolated"), plain]
    usual = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return [usual] if settings.pre_tokenizer == "usual" else [pre_tokenizers.Split(_SIGN, "isolated"), usual]


def _spaces_marked(settings: TokenizerTraining) -> list[Any]:
    if settings.pre_tokenizer == "none":
        return [pre_tokenizers.Metaspace(split=False)]
    marked = pre_tokenizers.Metaspace()
    return [marked, pre_tokenizers.Split(_SIGN, "isolated")] if settings.pre_tokenizer == "punctuation" else [marked]


def _words(settings: TokenizerTraining) -> list[Any]:
    if settings.pre_tokenizer == "none":
        raise InputError(
            "pre_tokenizer: WordPiece cuts words, so it needs borders; choose another one", "pre_tokenizer"
        )
    if settings.pre_tokenizer == "whitespace":
        return [pre_tokenizers.WhitespaceSplit()]
    return [pre_tokenizers.BertPreTokenizer()]


def _with_digits(settings: TokenizerTraining, borders: list[Any]) -> list[Any]:
    digits = pre_tokenizers.Digits(individual_digits=True)
    return [digits, *borders] if settings.kind == "byte_bpe" else [*borders, digits]  # bytes are no digits any more


_BORDERS = {"byte_bpe": _bytes, "bpe": _spaces_marked, "unigram": _spaces_marked, "wordpiece": _words}
