"""Cuts predicted rows into slices, by length, label, column or similar texts, and finds those that a model answers worst."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from backend.contract.errors import InputError
from backend.contract.messages import message, plural
from backend.contract.metrics import Metric
from backend.contract.rpc.predictions import RowSlice, SliceReport
from backend.contract.run.folder import RunFolder
from backend.contract.run.group import RunGroup
from backend.inspect.run_comparison import SURE, PredictedRows, ReadTable, open_run
from backend.metrics.metric import Predictions, declared_metrics, known_rows, weighted_scores
from backend.statistics.resampling import WeightedScores
from backend.statistics.slices import FEWEST_ROWS, SliceScore, Tick, score_slices
from backend.tasks.task import sums_of, used_columns

MOST_VALUES = 20
"""Values of a column that are slices, the commonest first."""
PARTS = 4
"""Slices of a column of numbers, with about as many rows each."""
MOST_CLUSTERS, ROWS_OF_CLUSTER = 12, 60
MOST_FITTED = 20_000
"""Texts by which clusters are found; the others are put into them."""
_NAMED_BY, _WORDS, _AXES = 3, 20_000, 50
LENGTH, WORDS, LABEL, COLUMN, CLUSTER = "length", "words", "label", "column", "cluster"


@dataclass(frozen=True)
class Slice:
    """Some rows, and what they have in common."""

    by: str
    """`length` in characters, number of `words`, `label`, `column` or `cluster` of similar texts."""
    column: str
    rows: np.ndarray
    """Their numbers."""
    value: str | None = None
    """The label, the column's value or the cluster's most distinctive words; None if the cells are empty."""
    bounds: tuple[float, float] | None = None
    """The smallest and largest length or number, in place of a value."""


def open_rows(folder: RunFolder, split: str, read: ReadTable) -> PredictedRows:
    """The predictions of a run or group. Raises InputError if they or the note of the model are not there."""
    group = RunGroup(folder.path)
    if not group.exists():
        return open_run(folder, folder.name, read, split)
    model = next((run for run in group.made_runs() if (run.model / "config.json").is_file()), None)
    return open_run(folder, folder.name, read, split, model)


def cut(predicted: PredictedRows) -> list[Slice]:
    """Every slice of the rows with a known answer; the same each time, so that a slice is known by its place here."""
    table, inputs = predicted.table, predicted.inputs
    known = known_rows(_predictions(predicted))
    roles = used_columns(predicted.task)
    texts = [
        predicted.columns[role.name]
        for role in roles
        if role.holds in ("text", "words") and role.needed_to_predict and predicted.columns.get(role.name)
    ]
    texts = [name for name in dict.fromkeys(texts) if name in inputs.column_names]
    others = [name for name in inputs.column_names if name not in predicted.columns.values()]
    found = [one for name in texts for one in _by_length(inputs[name], name, known)]
    found += _by_values(table["actual"], LABEL, "actual", known)
    found += [one for name in others for one in _by_values(inputs[name], COLUMN, name, known)]
    return [*found, *_by_cluster([inputs[name] for name in texts], known)]


def report(
    predicted: PredictedRows, metric: str | None = None, slices: Sequence[Slice] | None = None, tick: Tick | None = None
) -> SliceReport:
    """The metric of every slice, the worst first. Raises InputError if there is none, or if it cannot be measured."""
    if "actual" not in predicted.table.column_names:
        raise InputError("these rows have no known answers, so no slice of them can be measured")
    found = cut(predicted) if slices is None else slices
    scoring = _Scoring(predicted)
    name, is_better = scoring.choose(metric)
    whole = scoring.whole(name)
    is_of_rows = scoring.is_of_rows(name)
    own = [
        (place, one) for place, one in enumerate(found) if one.by != LABEL or is_of_rows
    ]  # within one label F1 and correlations say something else
    scores = score_slices(
        lambda rows: scoring.family(name, rows),
        name,
        [np.searchsorted(scoring.known, one.rows) for _, one in own],
        len(scoring.known),
        scoring.groups,
        tick or (lambda done, total: None),
    )
    listed = [_describe(place, one, score, is_better) for (place, one), score in zip(own, scores, strict=True)]
    listed.sort(key=lambda one: (not one.is_worse, one.is_few, -_gap(one, is_better)))
    tested = sum(one.p is not None for one in listed)
    return SliceReport(
        metric=name,
        greater_is_better=is_better,
        value=whole,
        rows=len(scoring.known),
        slices=listed,
        tested=tested,
        few=sum(one.is_few for one in listed),
        metrics=scoring.names(),
        sentence=_say(listed, tested),
    )


def _describe(place: int, one: Slice, score: SliceScore, is_better: bool) -> RowSlice:
    worse = score.value is not None and score.others is not None and (score.value < score.others) == is_better
    return RowSlice(
        number=place,
        by=one.by,
        column=one.column,
        value=one.value,
        bounds=one.bounds,
        rows=len(one.rows),
        score=score.value,
        interval=score.interval,
        others=score.others,
        p=score.p,
        p_holm=score.p_holm,
        is_few=score.p is None,
        is_worse=worse and score.p_holm is not None and score.p_holm < SURE,
    )


def _gap(one: RowSlice, is_better: bool) -> float:
    """How much worse the slice is than the other rows."""
    if one.score is None or one.others is None:
        return -np.inf
    return (one.others - one.score) * (1 if is_better else -1)


def name_of(one: RowSlice | Slice) -> str:
    """What a slice is called on the command line: `text: 12 to 40 characters`."""
    if one.bounds is not None:
        low, high = (f"{end:.6g}" for end in one.bounds)
        value = low if low == high else f"{low} to {high}"
    else:
        value = "(empty)" if one.value is None else one.value
    title = {LABEL: "label", CLUSTER: "texts about"}.get(one.by, one.column)
    return f"{title}: {value}{ {LENGTH: ' characters', WORDS: ' words'}.get(one.by, '') }"


def _say(listed: Sequence[RowSlice], tested: int) -> str:
    """The result in words."""
    worse = sum(one.is_worse for one in listed)
    if not tested:
        return message("no slice has {fewest} rows, so none can be told from the others", fewest=FEWEST_ROWS)
    looked = plural(
        "{count} slice was compared with the other rows, with Holm's correction for that many",
        "{count} slices were each compared with the other rows, with Holm's correction for that many",
        tested,
    )
    if not worse:
        return message("{looked}: none is worse by more than chance", looked=looked)
    found = plural("{count} is worse", "{count} are worse", worse)
    return message("{looked}: {found} by more than chance", looked=looked, found=found)


# The metric


def _predictions(predicted: PredictedRows) -> Predictions:
    return Predictions(
        predicted.table, sums_of(predicted.task, predicted.table, predicted.rows, predicted.columns)
    )  # fmt: skip


class _Scoring:
    """The families of a task's metrics for the rows whose answers are known."""

    def __init__(self, predicted: PredictedRows) -> None:
        self._task, self._facts = predicted.task, predicted.facts
        whole = _predictions(predicted)
        self.known = known_rows(whole)
        if not len(self.known):
            raise InputError("these rows have no known answers, so no slice of them can be measured")
        self._predictions = whole.take(self.known)
        groups = predicted.groups
        self.groups = None if groups is None else np.unique(groups[self.known], return_inverse=True)[1]
        self._metrics: Sequence[Metric] = declared_metrics(self._task.metrics)
        everything = weighted_scores(self._metrics, self._predictions, self._facts, self._task.settings)
        once = np.ones((1, len(self.known)))
        self._values, self._family_of, self._shares = {}, {}, set()
        for family, made in everything.items():
            for name, (value,) in made.scores(once).items():
                self._values[name], self._family_of[name] = float(value), family
            self._shares |= {name for name, right in made.shares.items() if len(right) == len(self.known)}

    def names(self) -> list[str]:
        """The metrics that slices can be measured by."""
        return [name for name in self._values if self._direction(name) is not None]

    def choose(self, wanted: str | None) -> tuple[str, bool]:
        """A metric and whether greater is better. Raises InputError."""
        known = self.names()
        if not known:
            raise InputError("the predictions of this task have no metric that slices could be measured by")
        if wanted is not None and wanted not in known:
            raise InputError(
                "--metric: slices cannot be measured by {wanted}; choose one of {known}",
                "metric",
                wanted=repr(wanted),
                known=", ".join(known),
            )
        name = wanted or (self._task.default_metric if self._task.default_metric in known else known[0])
        return name, bool(self._direction(name))

    def _direction(self, name: str) -> bool | None:
        return next((one.greater_is_better for one in self._metrics if one.name == name), None)

    def _have_all_labels(self, rows: np.ndarray) -> bool:
        """True also of tasks that do not give each row one label."""
        actual = self._predictions.table["actual"]
        if pa.types.is_nested(actual.type):
            return True
        all_labels = set(actual.unique().to_pylist())
        is_of_labels = all_labels <= set(self._facts.get("labels", ()))
        return not is_of_labels or len(actual.take(pa.array(rows)).unique()) == len(all_labels)

    def whole(self, name: str) -> float:
        """The metric on all rows."""
        return self._values[name]

    def is_of_rows(self, name: str) -> bool:
        """Whether it is a mean over rows, which means the same for rows of one label."""
        return name in self._shares or name == "loss"

    def family(self, name: str, rows: np.ndarray) -> WeightedScores | None:
        """What is needed to draw the metric of some of the known rows again; None if it means something else for these.

        F1 and correlations of rows among which a label is missing are not comparable with those of rows that have it.
        """
        if not self.is_of_rows(name) and not self._have_all_labels(rows):
            return None
        own = self._family_of[name]
        metrics = [one for one in self._metrics if one.weighted_scores is own]
        return weighted_scores(metrics, self._predictions.take(rows), self._facts, self._task.settings).get(own)


# Slices


def _by_length(column: pa.ChunkedArray, name: str, known: np.ndarray) -> Iterator[Slice]:
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        by, lengths = WORDS, pc.call_function("list_value_length", [column])
    else:
        by, lengths = LENGTH, pc.call_function("utf8_length", [pc.cast(column, pa.string())])
    yield from _by_parts(pc.fill_null(lengths, 0).to_numpy()[known].astype(np.float64), by, name, known)


def _by_values(column: pa.ChunkedArray, by: str, name: str, known: np.ndarray) -> list[Slice]:
    """A slice for each common value, or for each part of a range of numbers; none for texts that hardly repeat."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        return []
    values = column.take(pa.array(known)).to_pylist()
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    counts = Counter(None if value != value else value for value in values)
    if is_number and len(counts) > MOST_VALUES // 2:
        numbers = np.array([np.nan if value is None else value for value in values], np.float64)
        return [] if _are_row_numbers(numbers) else list(_by_parts(numbers, by, name, known))
    common = [value for value, count in counts.most_common(MOST_VALUES) if count > 1]
    if len(counts) < 2 or not common or sum(counts[value] for value in common) < len(values) / 2:
        return []
    places: dict[Any, list[int]] = {value: [] for value in sorted(common, key=lambda one: (one is None, str(one)))}
    for place, value in enumerate(values):
        value = None if value != value else value
        if value in places:
            places[value].append(place)
    return [
        Slice(by, name, known[own], value=None if value is None else str(value)) for value, own in places.items()
    ]  # fmt: skip


def _are_row_numbers(numbers: np.ndarray) -> bool:
    """Whether they count the rows, which says nothing of them."""
    return bool(np.isfinite(numbers).all()) and len(numbers) > 2 and len(np.unique(np.diff(numbers))) == 1


def _by_parts(numbers: np.ndarray, by: str, name: str, known: np.ndarray) -> Iterator[Slice]:
    """Parts of a range of numbers with about as many rows each, and one of the rows without a number."""
    there = np.isfinite(numbers)
    edges = np.unique(np.quantile(numbers[there], np.arange(1, PARTS) / PARTS)) if there.any() else np.zeros(0)
    part = np.where(there, np.searchsorted(edges, numbers, side="left"), -1)
    found = [np.flatnonzero(part == place) for place in range(len(edges) + 1)]
    found = [own for own in found if len(own)]
    if len(found) < 2 and there.all():
        return
    for own in found:
        yield Slice(by, name, known[own], bounds=(float(numbers[own].min()), float(numbers[own].max())))
    if not there.all():
        yield Slice(by, name, known[~there])


# Similar texts


def _by_cluster(columns: Sequence[pa.ChunkedArray], known: np.ndarray) -> list[Slice]:
    if not columns:
        return []
    cells = zip(*(column.take(pa.array(known)).to_pylist() for column in columns), strict=True)
    texts = [" ".join(filter(None, map(_text_of, row))) for row in cells]
    labels, names = cluster_texts(texts)
    slices = [Slice(CLUSTER, "", known[labels == place], value=name) for place, name in enumerate(names)]
    return [one for one in slices if len(one.rows)]


def _text_of(cell: Any) -> str:
    return "" if cell is None else " ".join(map(str, cell)) if isinstance(cell, list) else str(cell)


def cluster_texts(texts: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """(texts,) the number of the cluster of each text, and each cluster's most distinctive words.

    Texts are near if they share rare words: k-means of normalised latent semantic axes of TF-IDF, as in scikit-learn's
    guide to clustering texts. No clusters if there are too few texts, or too few different ones.
    """
    import warnings

    from sklearn.cluster import KMeans  # loads slowly, as the others
    from sklearn.decomposition import TruncatedSVD
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.preprocessing import normalize

    count = min(MOST_CLUSTERS, min(len(texts), 4 * len(set(texts))) // ROWS_OF_CLUSTER)
    nothing = np.zeros(len(texts), np.int64), []
    if count < 2:
        return nothing
    fitted = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), MOST_FITTED)).astype(np.int64))
    vectorizer = _vectorizer(texts)
    try:
        weights = vectorizer.fit_transform([texts[place] for place in fitted])
    except ValueError:  # no word occurs twice
        return nothing
    if weights.shape[1] <= count:
        return nothing
    axes = TruncatedSVD(min(_AXES, weights.shape[1] - 1), random_state=0).fit(weights)
    means: Any = KMeans(count, n_init=4, random_state=0)  # pyright: ignore[reportArgumentType]  its annotation is too narrow
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different texts than clusters
        means.fit(normalize(axes.transform(weights)))
    labels = np.concatenate(
        [
            means.predict(normalize(axes.transform(vectorizer.transform(texts[start : start + MOST_FITTED]))))
            for start in range(0, len(texts), MOST_FITTED)
        ]
    )
    return labels, _name_clusters(weights, means.labels_, vectorizer.get_feature_names_out(), count)


def _vectorizer(texts: Sequence[str]) -> Any:
    """Words, or pairs of letters of a text that is written without spaces between words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    letters = Counter(_is_unspaced(letter) for text in texts[:1000] for letter in text if letter.isalpha())
    more = {"sublinear_tf": True, "min_df": 2, "max_df": 0.5, "max_features": _WORDS}
    if letters[True] > letters[False]:
        return TfidfVectorizer(analyzer="char", ngram_range=(2, 2), **more)
    return TfidfVectorizer(token_pattern=r"(?u)\b[^\W\d_](?:['’]?[^\W\d_])+\b", **more)


def _is_unspaced(letter: str) -> bool:
    """Chinese, Japanese, Thai, Lao, Burmese and Khmer."""
    code = ord(letter)
    return 0x0E00 <= code < 0x1100 or 0x1780 <= code < 0x1800 or 0x3040 <= code < 0xA000 or 0x20000 <= code < 0x32000


def _name_clusters(weights: Any, labels: np.ndarray, words: np.ndarray, count: int) -> list[str]:
    """The words that are commoner in a cluster than in the average one, weighted by how rare they are elsewhere.

    Source: M. Grootendorst, BERTopic, 2022, equation 2 (class-based TF-IDF), with the texts that have a word in place of
    its occurrences, so that one long text names nothing.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    has = (weights > 0).astype(np.float64)
    texts = np.stack([np.asarray(has[labels == place].sum(axis=0)).ravel() for place in range(count)])
    size = np.maximum(1, np.bincount(labels, minlength=count))[:, None]
    rare = np.log1p(texts.sum() / count / np.maximum(1, texts.sum(axis=0)))
    weight = texts / size * rare
    weight[:, [word in ENGLISH_STOP_WORDS or "'" in word or "’" in word for word in words]] *= 0.01
    best = np.argsort(-weight, axis=1, kind="stable")[:, :_NAMED_BY]
    return [", ".join(str(words[place]) for place in own if texts[row, place]) for row, own in enumerate(best)]
