"""Tag scores: of whole entities as seqeval counts them, or of single tags if they follow no scheme."""

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.metrics import Metric
from backend.metrics.metric import Predictions
from backend.statistics.resampling import WeightedScores, divide, ratios

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


def _weighted_scores(predictions: Predictions, facts: Any, settings: Any) -> WeightedScores | None:
    known = predictions.table["actual"].is_valid().to_numpy()
    if not known.any():
        return None
    actual, predicted = (
        [tags.split(" ") if tags is not None else [] for tags in predictions.table[name].to_pylist()]
        for name in ("actual", "prediction")
    )
    predicted = [tags if one else [] for tags, one in zip(predicted, actual, strict=True)]
    hits = np.array(
        [sum(a == b for a, b in zip(*pair, strict=True)) for pair in zip(actual, predicted, strict=True)], float
    )
    sums = {"accuracy": (hits, np.array([float(len(tags)) for tags in actual]))}
    if "loss" in predictions.sums:
        sums["loss"] = predictions.sums["loss"]
    means = ratios(sums)
    scheme = facts["scheme"]
    found = (
        _tag_units(actual, predicted)
        if scheme == "none"
        else _entities(actual, predicted, scheme, settings.strict_entities)
    )
    names, right, is_actual, is_predicted = _count_units(*found)

    def scores(counts: np.ndarray) -> dict[str, np.ndarray]:
        sums = counts @ right, counts @ is_actual, counts @ is_predicted
        return means(counts) | _unit_scores(names, *sums, means_of_all=scheme == "none")

    return WeightedScores(scores)


Units = list[set[tuple[str, int, int]]]
"""Of each row its entities or tags: their kind and place."""


def _tag_units(actual: list[list[str]], predicted: list[list[str]]) -> tuple[Units, Units]:
    found = [[{(tag, place, place) for place, tag in enumerate(tags)} for tags in rows] for rows in (actual, predicted)]
    return found[0], found[1]


def _entities(actual: list[list[str]], predicted: list[list[str]], scheme: str, strict: bool) -> tuple[Units, Units]:
    from seqeval.metrics.sequence_labeling import get_entities  # loads scikit-learn, as above
    from seqeval.scheme import Entities

    own = _scheme_of([*actual, *predicted], scheme)
    if strict:
        kind = _strict_scheme(own)
        found = [
            [{(one.tag, one.start, one.end) for one in row} for row in Entities(rows, kind).entities]
            for rows in (actual, predicted)
        ]
    else:
        both = (_as_iobes(actual), _as_iobes(predicted)) if own == "BILOU" else (actual, predicted)
        found = [[set(get_entities(tags)) for tags in rows] for rows in both]
    return found[0], found[1]


def _count_units(actual: Units, predicted: Units) -> tuple[list[str], Any, Any, Any]:
    """The kinds, and how many of each a row has that are right, actual and predicted, each (rows, kinds)."""
    from scipy import sparse

    names = sorted({kind for units in (actual, predicted) for row in units for kind, _, _ in row})
    numbers = {name: number for number, name in enumerate(names)}

    def count(rows: Units) -> Any:
        places = [(row, numbers[kind]) for row, units in enumerate(rows) for kind, _, _ in units]
        row, kind = np.array(places, dtype=np.int64).reshape(-1, 2).T
        return sparse.csr_array((np.ones(len(row)), (row, kind)), (len(rows), len(names)))

    right = [one & other for one, other in zip(actual, predicted, strict=True)]
    return names, count(right), count(actual), count(predicted)


def _unit_scores(
    names: list[str], right: np.ndarray, actual: np.ndarray, predicted: np.ndarray, *, means_of_all: bool
) -> dict[str, np.ndarray]:
    """Precision, recall and F1 of each kind and of all, from how many of each are right, actual and predicted (draws, kinds).

    Of single tags their mean over the kinds that occur counts, of entities all together.
    """
    each = {
        "precision": divide(right, predicted),
        "recall": divide(right, actual),
        "f1": divide(2 * right, actual + predicted),
    }
    found = {f"{name}_{kind}": values[:, place] for name, values in each.items() for place, kind in enumerate(names)}
    if means_of_all:
        own = {name: values for name, values in found.items() if name.startswith("f1_")}
        occurring = np.count_nonzero(actual + predicted, axis=1)
        return own | {name: divide(values.sum(axis=1), occurring) for name, values in each.items()}
    right, actual, predicted = (one.sum(axis=1) for one in (right, actual, predicted))
    return found | {
        "precision": divide(right, predicted),
        "recall": divide(right, actual),
        "f1": divide(2 * right, actual + predicted),
    }


_metric = partial(
    Metric,
    greater_is_better=True,
    range=(0, 1),
    tasks=("token_classification",),
    score=_score,
    weighted_scores=_weighted_scores,
)
METRICS = (
    _metric("loss", "Loss", greater_is_better=False, range=(0, None)),
    _metric("f1", "F1"),
    _metric("precision", "Precision"),
    _metric("recall", "Recall"),
    _metric("accuracy", "Accuracy"),
)
