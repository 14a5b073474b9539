"""Declares each metric once, with whether a greater value is better; backend, catalog and window read it here."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One metric. A task lists those of its own as such values, or names those that are declared below."""

    name: str
    title: str
    greater_is_better: bool | None
    """None where nobody can say; such a metric is shown, and neither a best checkpoint nor early stopping follows it."""


METRICS = {
    metric.name: metric
    for metric in (
        Metric("loss", "Loss", greater_is_better=False),
        Metric("perplexity", "Perplexity", greater_is_better=False),
        Metric("accuracy", "Accuracy", greater_is_better=True),
        Metric("precision", "Precision", greater_is_better=True),
        Metric("recall", "Recall", greater_is_better=True),
        Metric("f1", "F1", greater_is_better=True),
        Metric("f1_macro", "Macro F1", greater_is_better=True),
        Metric("f1_weighted", "Weighted F1", greater_is_better=True),
        Metric("combined", "Combined", greater_is_better=True),
        Metric("matthews", "Matthews correlation", greater_is_better=True),
        Metric("pearson", "Pearson", greater_is_better=True),
        Metric("spearman", "Spearman", greater_is_better=True),
        Metric("exact_match", "Exact match", greater_is_better=True),
        Metric("bleu", "BLEU", greater_is_better=True),
        Metric("chrf", "chrF", greater_is_better=True),
        Metric("rouge1", "ROUGE-1", greater_is_better=True),
        Metric("rouge2", "ROUGE-2", greater_is_better=True),
        Metric("rougeL", "ROUGE-L", greater_is_better=True),
        Metric("rougeLsum", "ROUGE-Lsum", greater_is_better=True),
    )
}


def declared(metrics: Iterable[str | Metric]) -> list[Metric]:
    """A task's metrics; one that is only named, and that nobody has declared, has no direction."""
    return [
        one if isinstance(one, Metric) else METRICS.get(one, Metric(one, one, greater_is_better=None))
        for one in metrics
    ]


def base_metric(name: str, known: Iterable[str]) -> str | None:
    """Which of the known metrics a name is, or is a variant of: `f1_PER`, `dev/f1`; of several the longest."""
    own = name.rsplit("/", 1)[-1]
    return max((one for one in known if own == one or own.startswith(f"{one}_")), key=len, default=None)
