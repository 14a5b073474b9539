"""Trains a new tokenizer on texts: BPE, byte-level BPE, WordPiece or Unigram, saved as transformers loads it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from backend.contract.errors import InputError, first_line
from backend.contract.messages import message, plural
from backend.contract.spec.tokenizer_training import TokenizerTraining, TokenizerUse
from backend.models.lean_transformers import leave_torch_out
from backend.tokenizers.trainer_progress import Say, report_progress

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

__all__ = ["TokenizerTraining", "train"]
BYTES = 256
MAX_PART = 1_000_000
"""Characters of a text that are handed over at once: the library takes 50 times as much memory, and without it aborts."""
READING, LEARNING = message("Reading the texts"), message("Learning the pieces")
SILENT = message("Learning the pieces; Unigram reports no progress")
"""Stages of every kind; `trainer_progress` has those that only some report."""


@dataclass(frozen=True)
class _Specials:
    """The special tokens for a use, by transformers' names for their roles."""

    tokens: dict[str, str]
    single: str
    pair: str


_SPECIALS: dict[TokenizerUse, _Specials] = {
    "decoder": _Specials({"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}, "$A", "$A $B"),
    "encoder": _Specials(
        {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"},
        "[CLS] $A [SEP]",
        "[CLS] $A [SEP] $B:1 [SEP]:1",
    ),
    "encoder_decoder": _Specials(
        {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}, "$A </s>", "$A </s> $B </s>"
    ),
}  # fmt: skip


def train(texts: Iterable[str], settings: TokenizerTraining, say: Say, total: int = 0) -> "PreTrainedTokenizerFast":
    """A new tokenizer trained on `texts`, of which there are `total`. Raises InputError if they are empty."""
    usual = _SPECIALS[settings.use]
    specials = list(dict.fromkeys([*usual.tokens.values(), *settings.special_tokens]))
    _check(settings, specials)
    tokenizer, trainer = _make(settings, specials, usual.tokens["unk_token"])
    set_steps(tokenizer, settings)
    seen = _Seen(say, total, SILENT if settings.kind == "unigram" else LEARNING)
    try:
        with report_progress(trainer, say):
            tokenizer.train_from_iterator(seen.watch(texts), trainer)
    except InputError:
        raise
    except Exception as error:  # that is what the Rust trainer raises
        raise _training_error(error, settings, has_letters=seen.letters > 0) from None
    if not seen.letters:
        raise _no_text()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=usual.single,
        pair=usual.pair,
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in dict.fromkeys(usual.tokens.values())],
    )
    with leave_torch_out({}):
        from transformers import PreTrainedTokenizerFast  # takes a second

    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **usual.tokens)
    if more := [name for name in specials if name not in usual.tokens.values()]:
        made.add_special_tokens({"additional_special_tokens": more})
    return made


def _check(settings: TokenizerTraining, specials: list[str]) -> None:
    """Raises InputError if the special tokens are invalid, or leave no room for pieces."""
    if not all(name.strip() for name in settings.special_tokens):
        raise InputError(
            "special_tokens: a special token must have at least one character; remove the empty one", "special_tokens"
        )
    least = len(specials) + (BYTES if settings.kind == "byte_bpe" else 0)
    if settings.vocabulary < least:
        what = plural("{count} special token", "{count} special tokens", len(specials))
        if settings.kind == "byte_bpe":
            what = message("{specials} and the 256 bytes", specials=what)
        raise InputError(
            "vocabulary: {vocabulary} leaves no room for {what}; set it to {least} or more, usually to "
            "several thousand",
            "vocabulary",
            vocabulary=settings.vocabulary,
            what=what,
            least=least,
        )


def _training_error(error: Exception, settings: TokenizerTraining, *, has_letters: bool) -> InputError:
    if not has_letters:
        return _no_text()
    return InputError(
        "vocabulary: these texts do not yield a {kind} of {vocabulary:,} pieces ({reason}); set another "
        "size, or choose another kind",
        "vocabulary",
        kind=settings.kind,
        vocabulary=settings.vocabulary,
        reason=first_line(error),
    )


def _no_text() -> InputError:
    return InputError("the chosen column has no text to learn from; choose another one")


class _Seen:
    """Counts the texts that the trainer has read."""

    def __init__(self, say: Say, total: int, learning: str) -> None:
        self._say, self._total, self._learning, self.letters = say, total, learning, 0

    def watch(self, texts: Iterable[str]) -> Iterator[str]:
        for number, text in enumerate(texts, 1):
            self.letters += len(text.strip())
            if number % 1000 == 0 or number == self._total:
                self._say(READING, number, self._total, "texts")
            yield from _split_text(text)
        self._say(self._learning, 0, 0, "")


def _split_text(text: str) -> Iterator[str]:
    """A long text split before white space, keeping words whole. Raises InputError for a word longer than a part."""
    start = 0
    while len(text) - start > MAX_PART:
        end = max(text.rfind(sign, start + 1, start + MAX_PART) for sign in " \n\t\u3000")
        if end < 0:
            raise InputError(
                "a text has a word of more than {max_part:,} characters, which is too long for training "
                "a tokenizer; remove that text, or choose another column",
                max_part=MAX_PART,
            )
        yield text[start:end]
        start = end
    yield text[start:]


Made = tuple[Tokenizer, Any]
"""A tokenizer that knows nothing yet, and what trains it."""


def _make(settings: TokenizerTraining, specials: list[str], unknown: str) -> Made:
    kind, options = settings.kind, {"vocab_size": settings.vocabulary, "special_tokens": specials}
    if kind == "unigram":
        return Tokenizer(models.Unigram()), trainers.UnigramTrainer(unk_token=unknown, show_progress=False, **options)
    # The maximum alphabet size; rarer characters beyond it are unknown, or the vocabulary would exceed its size.
    forms = 2 if kind == "wordpiece" else 1  # at the beginning of a word and within
    options |= {"min_frequency": settings.min_frequency, "show_progress": False}
    options["limit_alphabet"] = (settings.vocabulary - len(specials)) // forms
    if kind == "wordpiece":
        return Tokenizer(models.WordPiece(unk_token=unknown)), trainers.WordPieceTrainer(**options)
    if kind == "bpe":
        return Tokenizer(models.BPE(unk_token=unknown)), trainers.BpeTrainer(**options)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return Tokenizer(models.BPE()), trainers.BpeTrainer(initial_alphabet=alphabet, **options)


_WITH_SPACE = Regex(r"\s*\S+|\s+$")
"""A word with the spaces before it, as byte-level pieces hold them."""
_SIGN = Regex(r"[[\p{P}\p{S}]&&[^▁]]")
"""Punctuation and symbols, less the mark that SentencePiece puts for a space."""


def set_steps(tokenizer: Tokenizer, settings: TokenizerTraining) -> None:
    """Set normaliser, pre-tokenizer and decoder. Raises InputError if a model type needs word boundaries."""
    steps = [*_of_letters(settings), *_normalisers(settings)]
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps) if len(steps) > 1 else steps[0]
    borders = _BORDERS[settings.kind](settings)
    if settings.split_digits:
        borders = _add_digit_splitter(settings, borders)
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


def _word_pre_tokenizers(settings: TokenizerTraining) -> list[Any]:
    if settings.pre_tokenizer == "none":
        raise InputError(
            "pre_tokenizer: WordPiece splits words, so it needs word boundaries; choose another pre-tokenizer",
            "pre_tokenizer",
        )
    if settings.pre_tokenizer == "whitespace":
        return [pre_tokenizers.WhitespaceSplit()]
    return [pre_tokenizers.BertPreTokenizer()]


def _add_digit_splitter(settings: TokenizerTraining, borders: list[Any]) -> list[Any]:
    digits = pre_tokenizers.Digits(individual_digits=True)
    return [digits, *borders] if settings.kind == "byte_bpe" else [*borders, digits]  # bytes are no longer digits


_BORDERS = {"byte_bpe": _bytes, "bpe": _spaces_marked, "unigram": _spaces_marked, "wordpiece": _word_pre_tokenizers}
