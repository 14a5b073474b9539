"""Owns how written text is measured against references: BLEU and chrF as sacreBLEU has them, ROUGE, exact match.

BLEU and chrF stand on sacreBLEU's scale of 0 to 100, ROUGE (F-measure, mean over rows, Porter's stemmer) and exact
match on 0 to 1. `signatures` says exactly how each was computed, so that figures can be compared with published ones.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Literal

from backend.contract.errors import InputError

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

BleuWords = Literal["auto", "13a", "intl", "zh", "char", "ja-mecab", "ko-mecab", "none"]
Kind = Literal["bleu", "chrf", "rouge", "exact_match"]

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
METRICS: dict[Kind, tuple[str, ...]] = {
    "bleu": ("bleu",),
    "chrf": ("chrf",),
    "rouge": ROUGE,
    "exact_match": ("exact_match",),
}
"""Kind of score → the metrics that come of it."""
_MECAB = {"ja-mecab": ("MeCab", "ja"), "ko-mecab": ("mecab_ko", "ko")}
_SAMPLE = 500
"""References that are looked at to tell the kind of writing."""


def check_words(words: BleuWords) -> None:
    """Raises InputError where BLEU cannot cut text into words this way here."""
    module, extra = _MECAB.get(words, ("", ""))
    if module and find_spec(module) is None:
        raise InputError(
            f"task.bleu_words: {words} needs a package that is not installed; install it with: "
            f"pip install 'sacrebleu[{extra}]', or choose auto or char",
            "task.bleu_words",
        )


def text_scores(
    written: Sequence[str], references: Sequence[str], kinds: Sequence[Kind], words: BleuWords = "auto"
) -> dict[str, float]:
    """The metrics of `kinds` over all rows, one reference each; there is at least one row."""
    scores: dict[str, float] = {}
    for kind in kinds:
        if kind == "rouge":
            scores |= _rouge(written, references)
        elif kind == "exact_match":
            hits = sum(_spaced(one) == _spaced(other) for one, other in zip(written, references, strict=True))
            scores["exact_match"] = hits / len(references)
        else:
            metric = _sacrebleu(kind, references, words)
            scores[kind] = float(metric.corpus_score(list(written), [list(references)]).score)
    return scores


def signatures(references: Sequence[str], kinds: Sequence[Kind], words: BleuWords = "auto") -> dict[str, str]:
    """How each score of `kinds` is computed for these references."""
    found = {}
    for kind in kinds:
        if kind == "rouge":
            found["rouge"] = (
                f"F-measure|mean of rows|stem:yes|tok:{_rouge_words(references)}|rouge-score:{version('rouge-score')}"
            )
        elif kind == "exact_match":
            found["exact_match"] = "case:mixed|space:normalised"
        else:
            metric = _sacrebleu(kind, references, words)
            metric.corpus_score([""], [[""]])  # only then does it know how many references there are
            found[kind] = str(metric.get_signature())
    return found


def _sacrebleu(kind: str, references: Sequence[str], words: BleuWords) -> "Metric":
    from sacrebleu.metrics.bleu import BLEU  # the catalog reads this module without it
    from sacrebleu.metrics.chrf import CHRF

    if kind == "chrf":
        return CHRF()
    # `force` only silences the advice to detokenise; it changes no score.
    return BLEU(tokenize=_words_for(references) if words == "auto" else words, force=True)


def _rouge(written: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    from rouge_score.rouge_scorer import RougeScorer  # brings nltk along, which takes seconds

    cut = _Words() if _rouge_words(references) == "unicode" else None
    lines = RougeScorer(list(ROUGE), use_stemmer=True, tokenizer=cut)
    one_line = RougeScorer(list(ROUGE[:3]), use_stemmer=True, tokenizer=cut)
    sums: Counter[str] = Counter()
    for prediction, reference in zip(written, references, strict=True):
        several = "\n" in prediction or "\n" in reference
        found = (lines if several else one_line).score(reference, prediction)
        for name in ROUGE:  # of one line each rougeLsum is rougeL, and costs as much again
            sums[name] += (found[name] if name in found else found["rougeL"]).fmeasure
    return {name: sums[name] / len(references) for name in ROUGE}


def _rouge_words(references: Sequence[str]) -> Literal["default", "unicode"]:
    """rouge_score's own words are of a to z and 0 to 9; of other writing nothing would be left."""
    letters = [letter for text in islice(references, _SAMPLE) for letter in text if letter.isalpha()]
    latin = sum(letter.isascii() for letter in letters)
    return "default" if latin * 2 >= len(letters) else "unicode"


def _words_for(references: Sequence[str]) -> Literal["13a", "zh", "char"]:
    """13a (that of WMT) where spaces part words; Chinese characters one by one; elsewhere all characters."""
    counts = Counter(_writing(letter) for text in islice(references, _SAMPLE) for letter in text if letter.isalpha())
    spaceless = counts["han"] + counts["other"]
    if spaceless * 2 <= counts.total():
        return "13a"
    return "zh" if counts["other"] * 20 < spaceless else "char"


_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_OTHER_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff]"
)  # Thai, Lao, Burmese, Khmer, kana


def _writing(letter: str) -> str:
    return "han" if _HAN.match(letter) else "other" if _OTHER_SPACELESS.match(letter) else "spaced"


def _spaced(text: str) -> str:
    return " ".join(text.split())


class _Words:
    """Words of any writing for rouge_score: punctuation parts them, and letters of spaceless writing stand alone."""

    def __init__(self) -> None:
        self._table = _Replacements(_replaced)

    def tokenize(self, text: str) -> list[str]:
        """The words in lower case."""
        return text.lower().translate(self._table).split()


class _Replacements(dict[int, str]):
    def __init__(self, of: Callable[[str], str]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, codepoint: int) -> str:
        self[codepoint] = self._of(chr(codepoint))
        return self[codepoint]


def _replaced(character: str) -> str:
    if _writing(character) != "spaced" and unicodedata.category(character)[0] == "L":
        return f" {character} "
    return " " if unicodedata.category(character)[0] in "PSZ" else character
