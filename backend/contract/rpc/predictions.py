"""Answers about predictions: their pages, filtered rows, scores per label, and calibration."""

import msgspec

AT_THRESHOLD = "prediction_at_threshold"
"""The column of what a prediction becomes at a threshold."""
SEPARATOR = "label_separator"
"""In the metadata of predictions whose rows have several labels: what stands between them."""
RIGHT = "is_right"
"""The derived column of whether a prediction is the actual value."""
THRESHOLD_STEPS = 1000
"""Thresholds are counted at 0, 0.001, … 1."""


class PredictionPages(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `open_predictions {parquet}`: the same rows, uncompressed, for random access.

    The file also has the derived columns; it is in the cache and is recreated if missing.
    """

    arrow: str
    rows: int


class PredictionRows(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `filter_predictions {parquet, right, text, actual, prediction, slice, sort_by, descending}`: an Arrow file of row
    numbers. Besides the file's columns, rows can be sorted by `confidence`, `error` (for a number) and `wrong_tags`."""

    arrow: str
    count: int


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `confusion {parquet}`: how often each label was predicted as each other."""

    labels: list[str]
    """The labels that are actual or predicted, by name."""
    counts: list[list[int]]
    """`counts[actual][predicted]`, by the labels' places."""
    left_out: int = 0
    """Rows of labels beyond the first hundred."""


class LabelScore(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of one label or entity type."""

    label: str
    precision: float | None
    """Of those predicted so, the share that is; None where none is predicted."""
    recall: float | None
    """Of those that are so, the share predicted; None where none is."""
    f1: float | None
    actual: int
    predicted: int


class ReliabilityBin(msgspec.Struct, frozen=True, kw_only=True):
    """The rows whose confidence is above `low` and at most `high`."""

    low: float
    high: float
    count: int
    confidence: float | None
    """Mean confidence; None in an empty bin."""
    accuracy: float | None
    interval: tuple[float, float] | None = None
    """Wilson's 95 % interval of the accuracy, if it was asked for."""


class PredictionStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `prediction_statistics {parquet}`: predicted against actual labels, over rows with an actual one.

    Without actual labels it is over all rows with a prediction, and `labels` has how often each label is predicted.
    """

    rows: int
    right: int
    confusion: Confusion
    labels: list[LabelScore]
    macro_f1: float | None
    bins: list[ReliabilityBin] = []
    """Empty without probabilities."""
    calibration_error: float | None = None
    """Expected calibration error over these bins."""
    probabilities: list[str] = []
    """Labels whose probability is in the file."""
    separator: str = ""
    """What stands between the labels of a row, if rows have several. `labels` then counts each of them, `confusion` the rows
    that have one label and are predicted to have another, and the bins are of all pairs of a row and a label."""


class ThresholdCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `threshold_counts {parquet, label}`: what is predicted as `label` at each threshold.

    `true_positives[k]` and `false_positives[k]` count rows whose probability of the label is at least
    k / THRESHOLD_STEPS.
    """

    label: str
    true_positives: list[int]
    false_positives: list[int]
    positives: int
    negatives: int


class RowSlice(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that have something in common, and how well they are answered."""

    number: int
    """By which `filter_predictions {parquet, slice}` finds its rows."""
    by: str
    """`length` in characters, number of `words`, `label`, `column`, or `cluster` of similar texts."""
    column: str
    value: str | None = None
    """The label, the column's value or the cluster's most distinctive words; None if the cells are empty."""
    bounds: tuple[float, float] | None = None
    """The smallest and largest length or number, in place of a value."""
    rows: int
    score: float | None
    interval: tuple[float, float] | None
    """95 %."""
    others: float | None
    """The metric on the rows outside the slice."""
    p: float | None
    """How often so large a difference would occur by chance; None if there are too few rows to test it."""
    p_holm: float | None
    """`p`, corrected for the number of slices that were tested."""
    is_few: bool
    """Whether it has too few rows to be tested."""
    is_worse: bool
    """Whether it is answered worse than the other rows, by more than chance."""


class SliceReport(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `slices {parquet, metric}`: every slice of the rows with known answers, the worst first."""

    metric: str
    greater_is_better: bool
    value: float
    """On all rows."""
    rows: int
    slices: list[RowSlice]
    tested: int
    few: int
    metrics: list[str]
    """Those that could be asked for."""
    sentence: str
    """The result in words."""


class Reliability(msgspec.Struct, frozen=True, kw_only=True):
    """How well the probabilities of some rows are calibrated, each with its 95 % interval."""

    error: float
    """Expected calibration error."""
    error_interval: tuple[float, float] | None
    loss: float
    """Mean of -log of the probability of the right label."""
    loss_interval: tuple[float, float] | None
    bins: list[ReliabilityBin]


class CalibrationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `calibration {run, action}`: what a temperature, fitted on the validation rows, does to the probabilities.

    `action` is empty, `fit` or `remove`.
    """

    temperature: float
    """Fitted on all rows."""
    applied: float | None
    """The temperature that the run's model has; None if it has none."""
    before: Reliability
    after: Reliability
    """On rows on which the temperature was not fitted: each part of the rows with that of the others."""
    change: float
    """Of the expected calibration error, after less before."""
    change_interval: tuple[float, float] | None
    rows: int
    parts: int
    accuracy: float
    sentence: str
    """The result in words."""


class NumberPoint(msgspec.Struct, frozen=True):
    """One row of a scatter plot."""

    row: int
    actual: float
    predicted: float


class NumberStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `number_statistics {parquet}`: predicted against actual numbers."""

    rows: int
    pearson: float | None
    spearman: float | None
    mean_absolute_error: float
    root_mean_squared_error: float
    mean_error: float
    """Predicted less actual."""
    low: float
    high: float
    """Of predicted and actual numbers together."""
    points: list[NumberPoint]
    """All rows, or evenly chosen ones and those that are furthest off."""


class EntityScores(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `entity_scores {parquet}`: whole entities, counted as the CoNLL script does."""

    rows: int
    right: int
    """Rows whose tags are all right."""
    types: list[LabelScore]
    precision: float | None
    recall: float | None
    f1: float | None


class FilePart(msgspec.Struct, frozen=True, kw_only=True):
    """A task role and the file's column for it."""

    name: str
    title: str
    column: str = ""
    """The column that plays it; empty where none has been found."""
    needed: bool = True


class FileFit(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `file_parts {run, data}`: the columns of a file, and those that a run needs."""

    columns: list[str]
    rows: int
    parts: list[FilePart]
    first: dict[str, str] = {}
    """Column → its first value."""


class PredictedFile(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `predict_file {run, data, columns, settings}`: predictions for another file, in the run's folder."""

    name: str
    """As in `predictions_<name>.csv`."""
    csv: str
    parquet: str
    rows: int
    skipped: list[str]
    """The first hundred rows that could not be used, as `file:line: reason`."""
    skipped_count: int
    metrics: dict[str, float]
    seconds: float
    intervals: dict[str, tuple[float, float]] = {}
    """The 95 % confidence interval of each metric that has one."""
    notes: list[str] = []
    """What is odd about the file's text, a sentence each: it seems to be read with the wrong encoding."""


class CombinedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `combine_group {group}`: the group's predictions files that were written, none if they are up to date."""

    written: list[str]


class PairTest(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of two runs or groups on the same rows; `difference` and `interval` are of `b` less `a`."""

    metric: str
    test: str
    """`mcnemar_exact`, `paired_bootstrap` or, with a group, `bootstrap_seeds_rows`."""
    a: str
    b: str
    values: tuple[float, float]
    difference: float
    interval: tuple[float, float]
    """95 %."""
    p: float
    p_holm: float
    """`p`, corrected for the number of pairs."""
    rows: int
    detectable: float
    """The smallest difference that so many rows show in four of five cases."""
    rows_needed: int | None = None
    """About how many rows would show this difference; None if there is none, or if it takes more seeds."""
    seeds: tuple[int, int] = (1, 1)
    """How many runs of `a` and of `b` were compared; `values` are their means."""
    seeds_needed: int | None = None
    """About how many seeds of each would show this difference on the same rows; None if it takes more rows."""


class DifferingRows(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `differing_rows {runs, names}` for two runs or groups: the shared rows that they answer differently.

    First come those that one alone has right. A group answers by a vote, or the mean of numbers.
    """

    columns: list[str]
    """Columns of the data, and the actual answer if it is known."""
    rows: list[list[str]]
    """The cells of the first rows, as texts, in these columns; then both answers."""
    only_a: int
    """Rows that the first alone has right."""
    only_b: int
    count: int
    """All rows with different answers, of `of`."""
    of: int


class ComparedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `compare_runs {runs, names}`: every pair of runs, each metric; `sentences` say the result in words."""

    tests: list[PairTest] = []
    sentences: list[str] = []
    refusal: str = ""
    """Why nothing was tested."""
    losses: list[str] = []
    """Of each run after the first, where its losses part from those of the first."""
    facts: list[dict[str, str]] = []
    """What each run found: versions, device, rows and model, by a dotted key like that of a setting."""
