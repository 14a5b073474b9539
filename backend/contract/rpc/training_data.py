"""Answers about data as seen in training: lengths and limits, unknown tokens, padding, features token by token."""

from typing import Any, Literal

import msgspec

Beyond = Literal["cut", "windows", "blocks"]
"""What happens to a row longer than the limit: it is truncated, split into windows, or continues in the next block."""
Kind = Literal[
    "token", "second", "special", "padding", "ignored", "target", "label", "hidden", "answer", "unknown"
]  # fmt: skip
"""What a token is to the training; `second` is the second text of a pair, `ignored` has the label -100."""


class Loss(msgspec.Struct, frozen=True, array_like=True):
    """How many rows exceed a limit."""

    limit: int
    rows: int
    share: float


class LengthMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """The token count of every row, with special tokens, before truncation. `setting` is the limit's spec key."""

    what: str
    """Whose lengths these are: `rows`, `sources`, `targets`, `questions with their contexts`."""
    setting: str
    limit: int
    limit_is_set: bool = True
    """Whether the settings say it; else it is the model's own."""
    beyond: Beyond = "cut"
    lengths: list[int]
    """Every different length, ascending."""
    counts: list[int]
    """Rows of each length."""
    mean: float
    quantiles: dict[str, int]
    """`50 %`, `90 %`, `95 %`, `99 %`, `100 %` → tokens."""
    losses: list[Loss]
    """At the usual limits, and at the one that is set."""
    sentence: str
    suggestion: int | None = None
    """A limit that serves the data better."""

    def rows_beyond(self, limit: int) -> int:
        """How many rows are longer than `limit` tokens."""
        return sum(count for length, count in zip(self.lengths, self.counts, strict=True) if length > limit)

    def share_beyond(self, limit: int) -> float:
        """The same as a share of all rows."""
        return self.rows_beyond(limit) / max(1, sum(self.counts))


class UnknownRow(msgspec.Struct, frozen=True, array_like=True):
    """A row with unknown tokens; `feature` is the first feature made from it, -1 if that is not known."""

    row: int
    feature: int
    place: str
    tokens: int
    unknown: int
    text: str


class UnknownTokens(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the data the tokenizer has no piece for; `token` is empty if it has no unknown token."""

    token: str
    tokens: int
    unknown: int
    rows: int
    worst: list[UnknownRow]
    """The rows with the largest share of unknown tokens, the worst first."""
    sentence: str


class PaddingRule(msgspec.Struct, frozen=True, kw_only=True):
    """The share of computed tokens that would be padding with this way of batching."""

    name: Literal["length_buckets", "random", "in_order", "fixed"]
    title: str
    padding: float
    tokens: int
    """Computed in an epoch, padding included."""
    chosen: bool = False
    setting: dict[str, Any] = {}
    """The spec's keys and values that choose it; empty for what is only compared with."""


class TrainingLengths(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `training_lengths {spec, folder | run, split, settings}`."""

    name: str
    task: str
    task_title: str
    tokenizer: str
    split: str
    splits: list[str]
    """Those that the data has."""
    rows: int
    features: int
    tokens: int
    """Of all features, padding apart."""
    batch_size: int
    steps_per_epoch: int
    measures: list[LengthMeasure]
    unknown: UnknownTokens
    padding: list[PaddingRule]
    notes: list[str]
    """What else a person should know, in sentences."""
    seconds: float
    cached: bool
    """Nothing was tokenised for this answer."""


class FeatureLine(msgspec.Struct, frozen=True, array_like=True):
    """One feature in a list; `targets` counts the tokens or rows with a loss, -1 if they are sampled each time."""

    feature: int
    row: int
    part: int
    place: str
    tokens: int
    targets: int
    label: str
    text: str


class TrainingStep(msgspec.Struct, frozen=True, kw_only=True):
    """The batch of an optimizer step, counted from 1."""

    step: int
    total_steps: int
    steps_per_epoch: int
    epoch: int
    """Counted from 1."""
    tokens: int
    padding: float
    """Share of the tokens that are computed."""
    shapes: list[tuple[int, ...]]
    """Of `input_ids` in each pass of the step."""
    loss: float | None = None
    """As the run has reported it."""
    differs: str = ""
    """Why these may differ from the rows of the run; empty if the token counts match, or there is no run."""


class TrainingRows(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `training_rows {… , start, count | step}`: consecutive features, or those of a step."""

    split: str
    splits: list[str]
    rows: int
    """Of the whole split."""
    features: int
    """Of the whole split, or of the step."""
    start: int
    lines: list[FeatureLine]
    step: TrainingStep | None = None
    steps: int = 0
    """How many the training has; 0 for splits that are not trained on."""


class ExampleStart(msgspec.Struct, frozen=True, array_like=True):
    """The token at which a row, or an example, starts."""

    place: int
    title: str


class TokenSequence(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as parallel lists of the same length."""

    title: str
    ids: list[int]
    texts: list[str]
    kinds: list[Kind]
    labels: list[str]
    """The text below each token: its label, what was masked, or what the decoder should produce; may be empty."""
    borders: list[ExampleStart] = []
    length: int = 0
    """Tokens in all; only the first are in the lists where there are very many."""


class TrainingFeature(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `training_feature {… , feature, step}`: one feature as the model receives it."""

    feature: int
    row: int
    part: int
    parts: int
    """Features that are made of the row."""
    place: str
    cells: list[tuple[str, str]]
    """The row's own columns that the task reads."""
    values: list[tuple[str, str]]
    """Everything except token lists, in words: the label, the answer's position, what was truncated."""
    sequences: list[TokenSequence]
    arrays: dict[str, list[int | float | None]]
    """The batch's arrays of this feature, padding included; those of choices one after another."""
    shapes: dict[str, list[int]]
