"""Tag scores: of whole entities as seqeval counts them, or of single tags if they follow no scheme."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions

_STRICT = {"BIO": "IOB2", "IOB1": "IOB1", "IOBES": "IOBES", "BILOU": "BILOU"}
_AS_IOBES = str.maketrans({"L": "E", "U": "S"})


def _score(predictions: Predictions, facts: Any, settings: Any) -> dict[str, float]:
    found = scores(predictions.table, facts["scheme"], settings.strict_entities)
    total, count = predictions.total("loss")
    return {"loss": total / count, **found} if count and found else found


def scores(table: pa.Table, scheme: str, strict: bool) -> dict[str, float]:
    """Scores of the rows with a known `actual`, both columns being space-joined tags; empty if there are none."""
    known = table.filter(pc.is_valid(table["actual"]))
    if known.num_rows == 0:
        return {}
    actual = [tags.split(" ") for tags in known["actual"].to_pylist()]
    predicted = [tags.split(" ") for tags in known["prediction"].to_pylist()]
    right = sum(a == b for one, other in zip(actual, predicted, strict=True) for a, b in zip(one, other, strict=True))
    accuracy = {"accuracy": right / sum(map(len, actual))}
    if scheme == "none":
        return accuracy | _tag_scores(actual, predicted)
    return accuracy | _entity_scores(actual, predicted, scheme, strict)


def _entity_scores(actual: list[list[str]], predicted: list[list[str]], scheme: str, strict: bool) -> dict[str, float]:
    from seqeval.metrics.sequence_labeling import get_entities  # loads scikit-learn, which the catalog does without
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as lenient_scores
    from seqeval.metrics.v1 import precision_recall_fscore_support as strict_scores
    from seqeval.scheme import Entities

    own = _scheme_of([*actual, *predicted], scheme)
    options: dict[str, Any] = {"zero_division": 0}
    if strict:
        kind = _strict_scheme(own)
        options["scheme"] = kind
        types = sorted(Entities(actual, kind).unique_tags | Entities(predicted, kind).unique_tags)
        measure = strict_scores
    else:
        if own == "BILOU":  # which seqeval's default mode does not know
            actual, predicted = _as_iobes(actual), _as_iobes(predicted)
        types = sorted({kind for tags in (actual, predicted) for kind, _, _ in get_entities(tags)})
        measure = lenient_scores
    if not types:
        return dict.fromkeys(("precision", "recall", "f1"), 0.0)
    names = ("precision", "recall", "f1")
    total: Any = measure(actual, predicted, average="micro", **options)
    each: Any = measure(actual, predicted, average=None, **options)
    found = {name: float(value) for name, value in zip(names, total, strict=False)}
    for name, values in zip(names, each, strict=False):
        found |= {f"{name}_{kind}": float(value) for kind, value in zip(types, values, strict=True)}
    return found


def _scheme_of(sentences: list[list[str]], usual: str) -> str:
    letters = {tag[0] for tags in sentences for tag in tags}
    return "BILOU" if letters & set("LU") else "IOBES" if letters & set("ES") else usual


def _strict_scheme(scheme: str) -> Any:
    from seqeval import scheme as schemes

    return getattr(schemes, _STRICT[scheme])


def _as_iobes(sentences: list[list[str]]) -> list[list[str]]:
    return [[tag[:1].translate(_AS_IOBES) + tag[1:] for tag in tags] for tags in sentences]


def _tag_scores(actual: list[list[str]], predicted: list[list[str]]) -> dict[str, float]:
    """Precision, recall and F1 of single tags, averaged over all tags that occur, and F1 of each."""
    names, numbers = np.unique(
        np.array([tag for tags in (actual, predicted) for one in tags for tag in one], dtype=object),
        return_inverse=True,
    )
    truth, guess = np.split(numbers, 2)
    count = len(names)
    hits = np.bincount(truth[truth == guess], minlength=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.nan_to_num(hits / np.bincount(guess, minlength=count))
        recall = np.nan_to_num(hits / np.bincount(truth, minlength=count))
        f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
    means = {"precision": float(precision.mean()), "recall": float(recall.mean()), "f1": float(f1.mean())}
    return means | {f"f1_{name}": float(value) for name, value in zip(names, f1, strict=True)}


_TASKS = ("token_classification",)
METRICS = (
    Metric("loss", "Loss", greater_is_better=False, range=(0, None), tasks=_TASKS, score=_score),
    Metric("f1", "F1", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
    Metric("precision", "Precision", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
    Metric("recall", "Recall", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
    Metric("accuracy", "Accuracy", greater_is_better=True, range=(0, 1), tasks=_TASKS, score=_score),
)
