"""Scores generated text against references: BLEU and chrF as in sacreBLEU, ROUGE, exact match.

BLEU and chrF use sacreBLEU's scale of 0 to 100, ROUGE (F-measure, mean over rows, Porter's stemmer) and exact
match on 0 to 1. `signatures` says exactly how each was computed, so that figures can be compared with published ones.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from backend.contract.errors import InputError
from backend.contract.metrics import Metric, Score
from backend.metrics.metric import Predictions
from backend.statistics.resampling import WeightedScores, ratios

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as SacreMetric

BleuWords = Literal["auto", "13a", "intl", "zh", "char", "ja-mecab", "ko-mecab", "none"]
ScoresOf = Callable[[Predictions, Any, Any], WeightedScores | None]
Kind = Literal["bleu", "chrf", "rouge", "exact_match"]

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
_MECAB = {"ja-mecab": ("MeCab", "ja"), "ko-mecab": ("mecab_ko", "ko")}
_SAMPLE = 500
"""References that are inspected to detect the script."""


def check_words(words: BleuWords) -> None:
    """Raises InputError if BLEU's word tokenization is not available here."""
    module, extra = _MECAB.get(words, ("", ""))
    if module and find_spec(module) is None:
        raise InputError(
            "task.bleu_words: {words} requires a package that is not installed; install it with: pip "
            "install 'sacrebleu[{extra}]', or choose auto or char",
            "task.bleu_words",
            words=words,
            extra=extra,
        )


def metrics_of_kinds(metrics: Iterable[Metric], kinds: Sequence[Kind]) -> tuple[Metric, ...]:
    """The metrics of one of these kinds, and those that do not score generated text."""
    others = {metric.score for metric in METRICS} - {_SCORES[kind] for kind in kinds}
    return tuple(metric for metric in metrics if metric.score not in others)


def _of_rows(score: Callable[[list[str], list[str], BleuWords], dict[str, float]]) -> Score:
    """The score of the rows with known text, one reference each; none if there is no such row."""

    def score_rows(predictions: Predictions, facts: Any, settings: Any) -> dict[str, float]:
        known = predictions.labelled_rows()
        written, references = known["prediction"].to_pylist(), known["actual"].to_pylist()
        return score(written, references, getattr(settings, "bleu_words", "auto")) if references else {}

    return score_rows


def _bleu(written: list[str], references: list[str], words: BleuWords) -> dict[str, float]:
    return {"bleu": float(_sacrebleu("bleu", references, words).corpus_score(written, [references]).score)}


def _chrf(written: list[str], references: list[str], words: BleuWords) -> dict[str, float]:
    return {"chrf": float(_sacrebleu("chrf", references, words).corpus_score(written, [references]).score)}


def _exact_match(written: list[str], references: list[str], words: BleuWords) -> dict[str, float]:
    return {"exact_match": float(_equal_rows(written, references).mean())}


def _equal_rows(written: list[str], references: list[str]) -> np.ndarray:
    pairs = zip(written, references, strict=True)
    return np.array([_normalise_spaces(one) == _normalise_spaces(other) for one, other in pairs])


def _of_draws(draw: Callable[[list[str], list[str], BleuWords], WeightedScores]) -> ScoresOf:
    """As `_of_rows`, for scores that are drawn again."""

    def draw_rows(predictions: Predictions, facts: Any, settings: Any) -> WeightedScores | None:
        known = predictions.labelled_rows()
        if known.num_rows < predictions.table.num_rows:
            return None
        written, references = known["prediction"].to_pylist(), known["actual"].to_pylist()
        return draw(written, references, getattr(settings, "bleu_words", "auto"))

    return draw_rows


def _draw_sacrebleu(kind: str) -> Callable[[list[str], list[str], BleuWords], WeightedScores]:
    def draw(written: list[str], references: list[str], words: BleuWords) -> WeightedScores:
        metric: Any = _sacrebleu(kind, references, words)
        # What sacreBLEU's own tests of significance add up and compute scores from.
        rows = np.array(metric._extract_corpus_statistics(written, [references]), dtype=np.float64)

        def scores(counts: np.ndarray) -> dict[str, np.ndarray]:
            sums = np.rint(counts @ rows).astype(np.int64).tolist()
            return {kind: np.array([metric._compute_score_from_stats(one).score for one in sums])}

        return WeightedScores(scores)

    return draw


def _draw_rouge(written: list[str], references: list[str], words: BleuWords) -> WeightedScores:
    rows = _rouge_rows(written, references)
    ones = np.ones(len(rows))
    return WeightedScores(ratios({name: (rows[:, place], ones) for place, name in enumerate(ROUGE)}))


def _draw_exact_match(written: list[str], references: list[str], words: BleuWords) -> WeightedScores:
    right = _equal_rows(written, references)
    return WeightedScores(
        ratios({"exact_match": (right.astype(np.float64), np.ones(len(right)))}), {"exact_match": right}
    )


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


def _sacrebleu(kind: str, references: Sequence[str], words: BleuWords) -> "SacreMetric":
    from sacrebleu.metrics.bleu import BLEU  # the catalog reads this module without it
    from sacrebleu.metrics.chrf import CHRF

    if kind == "chrf":
        return CHRF()
    # `force` only silences the advice to detokenise; it changes no score.
    return BLEU(tokenize=_choose_tokenization(references) if words == "auto" else words, force=True)


def _rouge(written: list[str], references: list[str], words: BleuWords) -> dict[str, float]:
    return dict(zip(ROUGE, _rouge_rows(written, references).mean(axis=0).tolist(), strict=True))


def _rouge_rows(written: list[str], references: list[str]) -> np.ndarray:
    """(rows, the scores of `ROUGE`)"""
    from rouge_score.rouge_scorer import RougeScorer  # brings nltk along, which takes seconds

    cut = _RougeTokenizer() if _rouge_words(references) == "unicode" else None
    lines = RougeScorer(list(ROUGE), use_stemmer=True, tokenizer=cut)
    one_line = RougeScorer(list(ROUGE[:3]), use_stemmer=True, tokenizer=cut)
    found = []
    for prediction, reference in zip(written, references, strict=True):
        several = "\n" in prediction or "\n" in reference
        own = (lines if several else one_line).score(reference, prediction)
        # Of one line each rougeLsum is rougeL, and costs as much again.
        found.append([(own[name] if name in own else own["rougeL"]).fmeasure for name in ROUGE])
    return np.array(found)


def _rouge_words(references: Sequence[str]) -> Literal["default", "unicode"]:
    """rouge_score's default tokenizer keeps only a to z and 0 to 9; other scripts would lose everything."""
    letters = [letter for text in islice(references, _SAMPLE) for letter in text if letter.isalpha()]
    latin = sum(letter.isascii() for letter in letters)
    return "default" if latin * 2 >= len(letters) else "unicode"


def _choose_tokenization(references: Sequence[str]) -> Literal["13a", "zh", "char"]:
    """13a (WMT's) if spaces separate words; Chinese characters one by one; otherwise all characters."""
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


def _normalise_spaces(text: str) -> str:
    return " ".join(text.split())


class _RougeTokenizer:
    """Words of any script for rouge_score: split at punctuation, with letters of spaceless scripts one by one."""

    def __init__(self) -> None:
        self._table = _Replacements(_replace)

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


def _replace(character: str) -> str:
    if _writing(character) != "spaced" and unicodedata.category(character)[0] == "L":
        return f" {character} "
    return " " if unicodedata.category(character)[0] in "PSZ" else character


_WEIGHTED_SCORES: dict[Kind, ScoresOf] = {
    "bleu": _of_draws(_draw_sacrebleu("bleu")),
    "chrf": _of_draws(_draw_sacrebleu("chrf")),
    "rouge": _of_draws(_draw_rouge),
    "exact_match": _of_draws(_draw_exact_match),
}
_SCORES: dict[Kind, Score] = {
    "bleu": _of_rows(_bleu),
    "chrf": _of_rows(_chrf),
    "rouge": _of_rows(_rouge),
    "exact_match": _of_rows(_exact_match),
}


def _metric(name: str, title: str, kind: Kind, highest: int = 1) -> Metric:
    return Metric(
        name, title, greater_is_better=True, range=(0, highest),
        tasks=("causal_lm", "seq2seq_lm"), score=_SCORES[kind], weighted_scores=_WEIGHTED_SCORES[kind],
    )  # fmt: skip


METRICS = (
    _metric("bleu", "BLEU", "bleu", 100),
    _metric("chrf", "chrF", "chrf", 100),
    _metric("rouge1", "ROUGE-1", "rouge"),
    _metric("rouge2", "ROUGE-2", "rouge"),
    _metric("rougeL", "ROUGE-L", "rouge"),
    _metric("rougeLsum", "ROUGE-Lsum", "rouge"),
    _metric("exact_match", "Exact match", "exact_match"),
)
