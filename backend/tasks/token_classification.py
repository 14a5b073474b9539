"""Token classification: a tag for every word of a sentence, and the entities that the tags form."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.heads import IGNORE, Head, HeadFacts
from backend.contract.messages import message
from backend.contract.metrics import Metric
from backend.contract.spec import Section
from backend.contract.spec.training import ADVANCED, DECODING
from backend.data.rows import Rows
from backend.metrics.metric import measure, metrics_of
from backend.tasks import _tagging
from backend.tasks._tagging import Scheme
from backend.tasks._token_classification_features import (
    NO_WORD,
    Tags,
    Tokens,
    describe_mismatch,
    read_tags,
    tags_of,
    tokens_of,
    windows,
    word_tokenizer,
    words_of,
)
from backend.tasks.task import (
    Columns,
    Facts,
    Limit,
    Outputs,
    Predictions,
    SplitBy,
    Use,
    iterate_chunks,
    split_key,
    vote,
)

_Written = Literal["same", "BIO", "IOB1", "IOBES", "BILOU"]


class Settings(Section):
    """The `task` section of token classification."""

    type: Annotated[Literal["token_classification"], Field(title="Task")] = "token_classification"
    """Always `token_classification`."""
    max_length: Annotated[
        int | None, Field(title="Max length", ge=4, le=1_000_000, json_schema_extra={"unit": "tokens"})
    ] = None
    """Longer sentences are split into windows of this many tokens. Empty uses the model's limit."""
    label_all_tokens: Annotated[bool, Field(title="Label all tokens", json_schema_extra=ADVANCED)] = False
    """Also train on the later tokens of a word, continuing B-PER as I-PER. Otherwise only the first token of each
    word is used."""
    window: Annotated[bool, Field(title="Sliding windows", json_schema_extra=ADVANCED)] = True
    """Predict each word from the window with the most context around it. Without windows, words beyond the limit are
    lost and counted."""
    stride: Annotated[
        int | None, Field(title="Window overlap", ge=0, json_schema_extra={**ADVANCED, "unit": "tokens"})
    ] = None
    """Maximum number of tokens by which two windows overlap. Empty uses a quarter of the window."""
    scheme: Annotated[Literal["auto", "BIO", "IOB1", "IOBES", "BILOU", "none"], Field(title="Tagging scheme")] = "auto"
    """How tags mark the start and end of entities. `none` treats every tag separately, as for parts of speech."""
    learned_scheme: Annotated[_Written, Field(title="Training scheme", json_schema_extra=ADVANCED)] = "same"
    """Tags are converted to this scheme for training, and predictions are converted back."""
    written_scheme: Annotated[_Written, Field(title="Output scheme", json_schema_extra=DECODING)] = "same"
    """The tagging scheme of predictions.conll."""
    faulty_tags: Annotated[Literal["repair", "refuse"], Field(title="Invalid tags")] = "repair"
    """`repair` reads the entities as conlleval does and corrects the tags; `refuse` reports the row and stops."""
    mismatched_rows: Annotated[
        Literal["refuse", "skip"], Field(title="Mismatched tags", json_schema_extra=ADVANCED)
    ] = "refuse"
    """What to do if a row has more or fewer tags than words: `refuse` reports the row and stops; `skip` skips such
    rows and lists them."""
    strict_entities: Annotated[bool, Field(title="Strict entities", json_schema_extra=DECODING)] = False
    """Only count an entity if its tags follow the scheme (seqeval's strict mode). Otherwise entities are counted as
    conlleval does."""

    @model_validator(mode="after")
    def _windows_move_on(self) -> "Settings":
        if self.max_length is not None and self.stride is not None and self.stride >= self.max_length:
            raise ValueError(
                message(
                    "windows of max_length {max_length} cannot share stride {stride} tokens; set a stride below "
                    "max_length",
                    max_length=self.max_length,
                    stride=self.stride,
                )
            )
        return self


class TokenClassification:
    """A tag per word; see `backend.tasks.task.Task` for the protocol."""

    title: ClassVar[str] = "Token classification"
    description: ClassVar[str] = "Tags every word of a sentence: names of people and places, parts of speech, slots."
    head: Head = Head.TOKEN_CLASSIFICATION
    columns: ClassVar[tuple[Column, ...]] = (
        Column(
            "tokens", "Words", "The words of the sentence: a list, or text split at whitespace.",
            usual_names=["tokens", "words", "sentence", "text", "token", "word", "utterance", "query"], holds="words",
        ),
        Column(
            "tags", "Tags", "One tag per word: a list, or text separated by spaces.", needed_to_predict=False,
            usual_names=["tags", "ner_tags", "slot", "slots", "labels", "label", "ner", "entities", "tag", "pos_tags", "pos", "chunk_tags", "upos"], holds="tags",
        ),
    )  # fmt: skip
    metrics: ClassVar[tuple[Metric, ...]] = metrics_of("token_classification")
    default_metric: ClassVar[str] = "f1"
    evaluates_by: Literal["outputs", "generate"] = "outputs"
    defaults: ClassVar[dict[str, Any]] = {
        "training": {"weight_decay": 0.0},
        "evaluation": {"best_metric": "f1"},
    }
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"tokens": "Ada Lovelace met Charles Babbage in London in 1833 ."},
        {"tokens": "The European Commission sits in Brussels ."},
    )
    trained_architecture: ClassVar[str] = "ForTokenClassification"
    row_view: ClassVar[str] = "entities"
    hub_filter: ClassVar[str] = "fill-mask"
    Settings: ClassVar[type[Section]] = Settings

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        beyond = "windows" if settings.window else "cut"  # where it ends with a word
        self.limits = (Limit(what="sentences", beyond=beyond, loses="words", fills=settings.window),)

    @property
    def split_by(self) -> SplitBy:
        """At random: a sentence has many labels, so it cannot be stratified."""
        return "random"

    def label_column(self, columns: Columns) -> str | None:
        """None: there is no single label per row."""
        return None

    def unusable(self, rows: Rows, columns: Columns, use: Use) -> list[tuple[int, str]]:
        """Sentences without words or, if tags are needed, without tags.

        Raises InputError if the numbers of tags and words differ, unless such rows are to be skipped.
        """
        found: list[tuple[int, str]] = []
        tags = columns.get("tags")
        column = rows.table[tags] if tags in rows.table.column_names else None
        for chunk in iterate_chunks(len(rows)):
            words = words_of(rows.table[columns["tokens"]], chunk)
            tagged = tags_of(column, chunk) if column is not None else [None] * len(chunk)
            for row, one, its_tags in zip(chunk, words, tagged, strict=True):
                reason = self._describe_fault(rows, row, one, its_tags, use != "predicting")
                if reason:
                    found.append((row, reason))
        return found

    def _describe_fault(self, rows: Rows, row: int, words: list[str], tags: list[str] | None, labelled: bool) -> str:
        if not words:
            return message("no words")
        if tags is None:
            return ""
        unequal = describe_mismatch(words, tags)
        if unequal and self.settings.mismatched_rows == "refuse":
            raise InputError(
                "data.columns.tags: {rows} has {unequal}; correct the row, or skip such rows with "
                "task.mismatched_rows: skip",
                "data.columns.tags",
                rows=rows.place(row),
                unequal=unequal,
            )
        if unequal or not labelled:
            return unequal
        return message("no tags") if not tags else message("a word without a tag") if "" in tags else ""

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """The tags to learn, sorted, and their scheme. Raises InputError if they are inconsistent."""
        tags = read_tags(rows, columns["tokens"], columns["tags"])
        if not tags.names:
            raise InputError(
                "data.columns.tags: no row has tags in the column {columns}; choose another column",
                "data.columns.tags",
                columns=repr(columns["tags"]),
            )
        scheme = _tagging.scheme_of(self.settings.scheme, tags, rows)
        wanted = self.settings.learned_scheme
        learned = scheme if wanted == "same" or scheme == "none" else wanted
        spelled = _tagging.convert_scheme(tags, scheme, learned)
        labels = sorted(spelled.used_names())
        if len(labels) < 2:
            raise InputError(
                "data.columns.tags: every word has the tag {labels}; there is nothing to learn, so choose "
                "another column or more data",
                "data.columns.tags",
                labels=repr(labels[0]),
            )
        facts: Facts = {
            "labels": list(model_labels) if set(labels) <= set(model_labels) else labels,
            "scheme": scheme,
            "learned": learned,
            "outside": _tagging.outside_tag(spelled),
        }
        return facts | {"notes": self._notes(rows, tags, scheme, "train")}

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """The facts in a model's label names."""
        scheme = _tagging.scheme_of_labels(labels)
        outside = "O" if "O" in labels else labels[0] if labels else "O"
        return {"labels": list(labels), "scheme": scheme, "learned": scheme, "outside": outside}

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Raises InputError if no tag is known; tags unknown to training are allowed, but never predicted."""
        if columns.get("tags") not in rows.table.column_names:
            return
        tags = read_tags(rows, columns["tokens"], columns["tags"])
        scheme = _tagging.scheme_of(self.settings.scheme, tags, rows, facts["scheme"])
        spelled = _tagging.convert_scheme(tags, scheme, facts["learned"])
        found = spelled.used_names() - {facts["outside"]}
        unknown = sorted(found - set(facts["labels"]))
        if unknown and len(unknown) == len(found):
            raise InputError(
                "{split}: none of its tags ({unknown}) occur in the training data ({facts}); choose "
                "another file, or set task.scheme",
                split_key(split),
                split=split_key(split),
                unknown=_format_names(unknown),
                facts=_format_names(facts["labels"]),
            )
        notes = self._notes(rows, tags, scheme, split)
        if unknown:
            words = int(np.isin(spelled.ids, [spelled.names.index(one) for one in unknown]).sum())
            notes.append(
                message(
                    "{split}: {words} words have tags that do not occur in the training data ({unknown}); they "
                    "cannot be predicted and count as errors",
                    split=split_key(split),
                    words=words,
                    unknown=_format_names(unknown),
                )
            )
        if notes:
            facts["notes"] = [*facts.get("notes", []), *notes]

    def _notes(self, rows: Rows, tags: Tags, scheme: Scheme, split: str) -> list[str]:
        """How many tags were repaired. Raises InputError if repairs are not allowed."""
        offending = _tagging.find_invalid(tags, scheme)
        if not len(offending):
            return []
        first = message(
            "the first is {names} in {rows}",
            names=repr(tags.names[tags.ids[offending[0]]]),
            rows=rows.place(tags.row_of(offending[0])),
        )
        if self.settings.faulty_tags == "refuse":
            raise InputError(
                "{split}: {offending} tags do not follow {scheme}; {first}; correct them, or set "
                "task.faulty_tags: repair",
                split_key(split),
                split=split_key(split),
                offending=len(offending),
                scheme=scheme,
                first=first,
            )
        return [
            message(
                "{split}: {offending} tags did not follow {scheme} and were repaired; {first}",
                split=split_key(split),
                offending=len(offending),
                scheme=scheme,
                first=first,
            )
        ]

    def head_facts(self, facts: Facts) -> HeadFacts:
        """A head with these tags."""
        return HeadFacts(self.head, tuple(facts["labels"]))

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """One feature per sentence or window. `word` is the word that a token predicts, -1 for none."""
        tokenizer = word_tokenizer(tokenizer)
        tags = read_tags(rows, columns["tokens"], columns.get("tags"))
        labels, later = _tagging.label_ids(
            tags, _tagging.scheme_of(self.settings.scheme, tags, rows, facts["scheme"]), facts
        )
        starts = tags.starts
        for chunk in iterate_chunks(len(rows)):
            tokens = tokens_of(tokenizer, words_of(rows.table[columns["tokens"]], chunk))
            batch = self._features(tokens, labels, later, starts[chunk.start : chunk.stop], facts["max_length"])
            rows_of = pa.array(batch.pop("row") + chunk.start, pa.int32())
            yield pa.RecordBatch.from_pydict({"row": rows_of, **batch})

    def _features(
        self, tokens: Tokens, labels: np.ndarray, later: np.ndarray, starts: np.ndarray, longest: int
    ) -> dict[str, Any]:
        """Columns of the features; `labels` and `later` are (words,), for the first and the other tokens of a word."""
        rows, parts, positions, owned = self._split_windows(tokens, longest)
        lengths = np.fromiter(map(len, positions), np.int64, len(positions))
        taken, mine = np.concatenate(positions), np.concatenate(owned)
        words = tokens.words[taken]
        within = words + np.repeat(starts[rows], lengths)  # special tokens are masked below
        opens = mine & tokens.opens_word[taken]
        known = np.where(opens, labels[np.where(opens, within, 0)], IGNORE)
        if self.settings.label_all_tokens:
            goes_on = mine & (words != NO_WORD) & ~opens
            known = np.where(goes_on, later[np.where(goes_on, within, 0)], known)
        lists: dict[str, tuple[np.ndarray, type[np.generic]]] = {
            "input_ids": (tokens.ids[taken], np.int32),
            "labels": (known, np.int32),
            "word": (np.where(opens, words, NO_WORD), np.int32),
        }
        if tokens.types is not None:
            lists["token_type_ids"] = (tokens.types[taken], np.int8)
        ends = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
        columns = {
            name: pa.ListArray.from_arrays(ends, pa.array(values.astype(kind)))
            for name, (values, kind) in lists.items()
        }
        return {"row": rows, "part": pa.array(parts, pa.int32()), **columns}

    def _split_windows(
        self, tokens: Tokens, longest: int
    ) -> tuple[np.ndarray, list[int], list[np.ndarray], list[np.ndarray]]:
        """Row, part, token indices and owned tokens of every feature."""
        rows, parts, positions, owned = [], [], [], []
        opens, begin = tokens.opens_word, 0
        for row, length in enumerate(tokens.lengths.tolist()):
            own = slice(begin, begin + length)
            cut = windows(tokens.words[own], opens[own], longest, self.settings.stride, not self.settings.window)
            for part, window in enumerate(cut):
                rows.append(row)
                parts.append(part)
                positions.append(window.positions + begin)
                owned.append(window.owned)
            begin += length
        return np.array(rows, np.int64), parts, positions, owned

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """The most likely tag of every word, in the rows' scheme; words without a token are outside and counted."""
        tags = read_tags(rows, columns["tokens"], columns.get("tags"))
        scheme = _tagging.scheme_of(self.settings.scheme, tags, rows, facts["scheme"])
        guess, lost = _tagging.predict_tags(outputs["logits"], features, tags, facts)
        predicted = guess if scheme == facts["learned"] else _tagging.convert_scheme(guess, facts["learned"], scheme)
        actual = _tagging.convert_scheme(tags, scheme, scheme)
        table = {
            "prediction": pa.array(predicted.joined_tags(), pa.string()),
            "actual": pa.array(actual.joined_tags(), pa.string()),
            "lost_words": pa.array(lost),
        }
        wanted = self.settings.written_scheme
        if wanted != "same":
            predicted, actual = (_tagging.convert_scheme(one, scheme, wanted) for one in (predicted, actual))
        words = (one for chunk in iterate_chunks(len(rows)) for one in words_of(rows.table[columns["tokens"]], chunk))
        return Predictions(
            pa.table(table),
            {"loss": _tagging.losses(outputs["logits"], features, len(rows))},
            {"predictions.conll": _tagging.conll(words, predicted, actual)},
        )

    def combine(self, each: Sequence[Predictions], rows: Rows, columns: Columns, facts: Facts) -> Predictions:
        """See `Combines`: a vote on the tag of every word."""
        sentences = zip(*(one.table["prediction"].to_pylist() for one in each), strict=True)
        voted = [" ".join(vote([tags.split(" ") for tags in one])) for one in sentences]
        return Predictions(each[0].table.set_column(0, "prediction", pa.array(voted, pa.string())))

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Accuracy per word, and precision, recall and F1 of entities, overall and per type, as in seqeval.

        Without a scheme the three are computed per tag and averaged.
        """
        return measure(metrics_of("token_classification"), predictions, facts, self.settings)

    def trivial_scores(self, rows: Rows, columns: Columns, facts: Facts) -> dict[str, float]:
        """Those of a tagger that finds no entity; without a scheme, of one that gives every word the commonest tag."""
        if facts["scheme"] != "none":
            return {"f1": 0.0}
        tags = read_tags(rows, columns["tokens"], columns.get("tags"))
        counts = np.bincount(tags.ids[tags.ids >= 0])
        if not len(counts):
            return {}
        share = float(counts.max() / counts.sum())
        return {"accuracy": share, "f1": 2 * share / (1 + share) / len(counts)}  # every other tag has 0


def _format_names(names: list[str]) -> str:
    listed = ", ".join(names[:8])
    return message("{names} and {count} more", names=listed, count=len(names) - 8) if len(names) > 8 else listed


TASK = TokenClassification
