"""Owns the training of a new tokenizer on texts: BPE, byte-level BPE, WordPiece or Unigram, saved as transformers loads it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from backend.contract.errors import InputError
from backend.contract.spec import Section
from backend.data.sources.source import Report

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Kind = Literal["byte_bpe", "bpe", "wordpiece", "unigram"]
Use = Literal["decoder", "encoder", "encoder_decoder"]


class TokenizerTraining(Section):
    """How a tokenizer is made."""

    kind: Annotated[Kind, Field(title="Kind")] = "byte_bpe"
    """`byte_bpe` as GPT-2 (knows every sign), `bpe` and `unigram` as SentencePiece, `wordpiece` as BERT."""
    use: Annotated[Use, Field(title="For")] = "decoder"
    """What it is for, which decides the special tokens: a language model, an encoder, or an encoder-decoder."""
    vocabulary: Annotated[int, Field(title="Vocabulary", ge=2, le=2_000_000)] = 8000
    """Most pieces, special tokens included; byte-level BPE has at least the 256 bytes."""
    min_frequency: Annotated[int, Field(title="Least frequency", ge=1)] = 2
    """Pieces that occur less often are not made."""
    lowercase: Annotated[bool, Field(title="Lower case")] = False
    """Makes no difference between upper and lower case; the text cannot be brought back exactly."""


@dataclass(frozen=True)
class _Specials:
    """The special tokens of a use, by the names that transformers gives their parts."""

    tokens: dict[str, str]
    single: str
    pair: str


_SPECIALS: dict[Use, _Specials] = {
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


def train(
    texts: Iterable[str], settings: TokenizerTraining, report: Report, total: int = 0
) -> "PreTrainedTokenizerFast":
    """A new tokenizer that has seen `texts`; `report` counts them. Raises InputError where they hold nothing."""
    specials = _SPECIALS[settings.use]
    unknown = specials.tokens["unk_token"]
    tokenizer, trainer = _KINDS[settings.kind](settings, list(dict.fromkeys(specials.tokens.values())), unknown)
    if settings.lowercase:
        steps = [normalizers.Lowercase(), *([tokenizer.normalizer] if tokenizer.normalizer else [])]
        tokenizer.normalizer = normalizers.Sequence(steps)
    seen = _Seen(report, total)
    tokenizer.train_from_iterator(seen.told(texts), trainer)
    if not seen.letters:
        raise InputError("the chosen column holds no text to learn from; choose another one")
    names = dict.fromkeys(specials.tokens.values())
    tokenizer.post_processor = processors.TemplateProcessing(
        single=specials.single, pair=specials.pair, special_tokens=[(name, tokenizer.token_to_id(name)) for name in names]
    )  # fmt: skip
    from transformers import PreTrainedTokenizerFast  # heavy: loads whatever framework is installed

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **specials.tokens)


class _Seen:
    """Counts the texts that the trainer has taken."""

    def __init__(self, report: Report, total: int) -> None:
        self._report, self._total, self.letters = report, total, 0

    def told(self, texts: Iterable[str]) -> Iterator[str]:
        for number, text in enumerate(texts, 1):
            self.letters += len(text.strip())
            if number % 1000 == 0 or number == self._total:
                self._report(number, self._total, "rows")
            yield text


def _byte_bpe(settings: TokenizerTraining, specials: list[str], unknown: str) -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return tokenizer, _bpe_trainer(settings, specials, alphabet)


def _bpe(settings: TokenizerTraining, specials: list[str], unknown: str) -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.BPE(unk_token=unknown))
    _like_sentencepiece(tokenizer)
    return tokenizer, _bpe_trainer(settings, specials, [])


def _bpe_trainer(settings: TokenizerTraining, specials: list[str], alphabet: list[str]) -> Any:
    return trainers.BpeTrainer(
        vocab_size=settings.vocabulary, min_frequency=settings.min_frequency, special_tokens=specials,
        initial_alphabet=alphabet, show_progress=False,
    )  # fmt: skip


def _unigram(settings: TokenizerTraining, specials: list[str], unknown: str) -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.Unigram())
    _like_sentencepiece(tokenizer)
    trainer = trainers.UnigramTrainer(
        vocab_size=settings.vocabulary, special_tokens=specials, unk_token=unknown, show_progress=False
    )
    return tokenizer, trainer


def _like_sentencepiece(tokenizer: Tokenizer) -> None:
    # NFKC, one space between words, and a mark for the space: Kudo and Richardson 2018.
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()


def _wordpiece(settings: TokenizerTraining, specials: list[str], unknown: str) -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.WordPiece(unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=settings.lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=settings.vocabulary, min_frequency=settings.min_frequency, special_tokens=specials, show_progress=False
    )  # fmt: skip
    return tokenizer, trainer


_KINDS: dict[Kind, Callable[[TokenizerTraining, list[str], str], tuple[Tokenizer, Any]]] = {
    "byte_bpe": _byte_bpe,
    "bpe": _bpe,
    "wordpiece": _wordpiece,
    "unigram": _unigram,
}
