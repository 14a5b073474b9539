"""Question answering: finds the passage that answers a question, or that there is none (SQuAD v1 and v2)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.heads import Head, HeadFacts
from backend.contract.lengths import fitting_stride
from backend.contract.messages import message
from backend.contract.metrics import Metric
from backend.contract.spec import Section
from backend.contract.spec.training import ADVANCED, DECODING
from backend.data.rows import Rows
from backend.metrics.metric import Sums, measure, metrics_of
from backend.tasks._question_answering_decoding import (
    Candidate,
    NullScores,
    QuestionPrediction,
    SpanCandidates,
    answer_scores,
    answer_table,
    beam_spans,
    candidate,
    choose_beam,
    choose_plain,
    plain_spans,
    question_names,
    span_loss,
    squad_documents,
    text_scores,
)
from backend.tasks._question_answering_features import (
    UNKNOWN,
    Answers,
    Span,
    Unreadable,
    Window,
    answer_mask,
    check_offsets,
    find_misplaced,
    find_too_narrow,
    has_answers,
    locate,
    positions,
    read_answers,
    windows,
)
from backend.tasks._texts import is_blank, strings
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


class Settings(Section):
    """The `task` section of question answering."""

    type: Annotated[Literal["question_answering"], Field(title="Task")] = "question_answering"
    """Always `question_answering`."""
    head: Annotated[Literal["plain", "beam"], Field(title="Head")] = "plain"
    """`plain` scores every token as start and end; `beam` (XLNet, XLM, Flaubert) looks for the end of each likely
    start."""
    max_length: Annotated[
        int | None, Field(title="Max length", ge=8, le=1_000_000, json_schema_extra={"unit": "tokens"})
    ] = 384
    """Maximum tokens of question and context combined. A longer context is split into windows. Empty uses the model's
    limit."""
    doc_stride: Annotated[
        int, Field(title="Document stride", ge=0, le=100_000, json_schema_extra={"unit": "tokens", **ADVANCED})
    ] = 128
    """Number of context tokens that two consecutive windows share."""
    version_2_with_negative: Annotated[bool | None, Field(title="Unanswerable questions")] = None
    """Whether questions may have no answer, as in SQuAD v2. Empty detects it from the training data."""
    null_threshold: Annotated[float, Field(title="Null threshold", json_schema_extra=DECODING)] = 0.0
    """No answer is given if the null score is above this. `best_f1_threshold` reports the value that would have been
    best."""
    n_best: Annotated[int, Field(title="N-best size", ge=1, le=500, json_schema_extra=DECODING)] = 20
    """How many answers to keep for each question, and how many starts and ends of each window to try."""
    max_answer_length: Annotated[
        int, Field(title="Max answer length", ge=1, le=100_000, json_schema_extra={"unit": "tokens", **DECODING})
    ] = 30
    """Longer answers are never predicted. Training uses them as they are."""
    misplaced_answers: Annotated[
        Literal["nearest", "skip", "no_answer"], Field(title="Misplaced answers", json_schema_extra=ADVANCED)
    ] = "nearest"
    """What to do with an answer that is not at its offset: `nearest` uses its nearest occurrence and skips the row if
    there is none, `skip` always skips the row, `no_answer` trains it as unanswerable."""

    @model_validator(mode="after")
    def _windows_advance(self) -> "Settings":
        is_set = "doc_stride" in self.model_fields_set  # else it is fitted to the windows
        if is_set and self.max_length is not None and self.doc_stride >= self.max_length:
            raise ValueError(
                message(
                    "windows of max_length {max_length} cannot share doc_stride {doc_stride} tokens; set a "
                    "doc_stride below max_length, for example {max_length_2}",
                    max_length=self.max_length,
                    doc_stride=self.doc_stride,
                    max_length_2=max(self.max_length // 3, 0),
                )
            )
        return self


class QuestionAnswering:
    """The passage that answers a question; see `backend.tasks.task.Task` for the protocol.

    `exact_match` and `f1` are those of the official SQuAD script as fractions. If questions may have no answer,
    `_HasAns` and `_NoAns` cover each kind, and `best_f1` with `best_f1_threshold` shows what another `null_threshold`
    would give. A beam head returns its best spans and no logits of all tokens, so its evaluations have no `loss`.
    """

    title: ClassVar[str] = "Question answering"
    description: ClassVar[str] = "Finds the passage of a text that answers a question, or says that there is no answer."
    columns: ClassVar[tuple[Column, ...]] = (
        Column("question", "Question", "The question.", holds="text", usual_names=["question", "query"]),
        Column("context", "Context", "The text that contains the answer.", holds="text", usual_names=["context", "passage", "paragraph", "document", "text"]),
        Column(
            "answers", "Answers", "The correct answers: SQuAD's struct of texts and offsets (also as JSON text), or one "
            "text.",
            needed_to_predict=False, usual_names=["answers", "answer", "answer_text"],
        ),
        Column(
            "answer_start", "Answer offset", "Position of the answer's first character in the context, if the answers don't include "
            "it.",
            required=False, needed_to_predict=False, usual_names=["answer_start", "answer_offset", "start"],
        ),
        Column(
            "id", "Question ID", "The key of the answer in predictions.json. Defaults to the row number.",
            required=False, needed_to_predict=False, usual_names=["id", "qid", "question_id"],
        ),
    )  # fmt: skip
    metrics: ClassVar[tuple[Metric, ...]] = metrics_of("question_answering")
    default_metric: ClassVar[str] = "f1"
    evaluates_by: Literal["outputs", "generate"] = "outputs"
    defaults: ClassVar[dict[str, Any]] = {"evaluation": {"best_metric": "f1"}}
    head: Head = Head.QUESTION_ANSWERING
    limits: ClassVar[tuple[Limit, ...]] = (Limit(what=message("questions with their contexts"), beyond="windows"),)
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "question": "Where did Marie Curie study?",
            "context": "Marie Curie was born in Warsaw in 1867. At the age of 24 she followed her sister to Paris, where "
            "she studied at the Sorbonne and did most of her scientific work.",
        },
        {
            "question": "How high is the tower?",
            "context": "The tower was built in 1889 for the world's fair. It is 330 metres high, as tall as a building "
            "of 81 storeys.",
        },
    )
    trained_architecture: ClassVar[str] = "ForQuestionAnswering"
    row_view: ClassVar[str] = "span"
    hub_filter: ClassVar[str] = "fill-mask"
    Settings: ClassVar[type[Section]] = Settings

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.head = Head.QUESTION_ANSWERING if settings.head == "plain" else Head.QUESTION_ANSWERING_BEAM

    @property
    def split_by(self) -> SplitBy:
        """The end of the data, because questions about one context are adjacent."""
        return "contiguous"

    def label_column(self, columns: Columns) -> str | None:
        """None: answers are not labels."""
        return None

    def unusable(self, rows: Rows, columns: Columns, use: Use) -> list[tuple[int, str]]:
        """Rows without question or context or, if answers are needed and some are given, without a usable one.

        A misplaced answer only excludes a row from training: evaluation compares texts.
        """
        found = {}
        if use != "predicting" and has_answers(rows, columns):
            contexts = _iterate_texts(rows, columns["context"])
            for row, (answers, context) in enumerate(zip(read_answers(rows, columns), contexts, strict=True)):
                if reason := self._describe_fault(answers, context, use):
                    found[row] = reason
        for role in ("context", "question"):
            empty = np.flatnonzero(is_blank(rows.table[columns[role]]))
            found |= dict.fromkeys(empty.tolist(), f"no {role}")
        return sorted(found.items())

    def _describe_fault(self, answers: Answers | Unreadable | None, context: str, use: Use) -> str:
        if answers is None:
            return message("no answers")
        if isinstance(answers, Unreadable):
            return str(answers)
        if not answers.texts:
            refused = self.settings.version_2_with_negative is False
            return message("no answer, which task.version_2_with_negative: false does not allow") if refused else ""
        span, in_place = locate(context, answers.texts[0], answers.starts[0])
        if use != "training" or self.settings.misplaced_answers == "no_answer" or in_place:
            return ""
        if span is None:
            return message("an answer that does not occur in the context")
        return message("an answer that is not at its offset") if self.settings.misplaced_answers == "skip" else ""

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """Whether questions may have no answer. Raises InputError if no row is known to have one."""
        known = [one for one in read_answers(rows, columns) if isinstance(one, Answers)]
        if not any(one.texts for one in known):
            raise InputError(
                "data.columns.answers: the column {columns} has no answers; choose another column",
                "data.columns.answers",
                columns=repr(columns["answers"]),
            )
        given = self.settings.version_2_with_negative
        may_be_none = any(not one.texts for one in known) if given is None else given
        return {"version_2_with_negative": may_be_none, "notes": self._notes(rows, columns)}

    def _notes(self, rows: Rows, columns: Columns) -> list[str]:
        """What training corrects or ignores, in one sentence with the first locations."""
        odd = [rows.place(row) for row in find_misplaced(rows, columns, _iterate_texts(rows, columns["context"]))]
        if not odd:
            return []
        nearest = self.settings.misplaced_answers == "nearest"
        how = (
            message("the nearest occurrence is used for training")
            if nearest
            else message("they are trained as questions without an answer")
        )
        more = " …" if len(odd) > 5 else ""
        return [
            message(
                "In {odd} of {rows} training rows, the answer is not at its offset in the context; {how} "
                "({odd_2}{more}).",
                odd=len(odd),
                rows=len(rows),
                how=how,
                odd_2=", ".join(odd[:5]),
                more=more,
            )
        ]

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """For a model from elsewhere the settings must say whether it may give no answer."""
        return {"version_2_with_negative": bool(self.settings.version_2_with_negative)}

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Checks nothing; adds a note if some questions have no answer and the training rows had none of that kind."""
        none = sum(isinstance(one, Answers) and not one.texts for one in read_answers(rows, columns))
        if none and not self._may_be_none(facts):
            note = message(
                "{split}: every question in the training data has an answer, but here {none} of {rows} "
                "have none; they count as errors.",
                split=split_key(split),
                none=none,
                rows=len(rows),
            )
            facts["notes"] = [*facts.get("notes", []), note]

    def head_facts(self, facts: Facts) -> HeadFacts:
        """A span head."""
        return HeadFacts(self.head)

    def check_tokenizer(self, tokenizer: Any) -> None:
        """Raises InputError if the tokenizer gives no offsets."""
        check_offsets(tokenizer)

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """One feature per window. `offset_start`, `offset_end` are each token's character span.

        Raises InputError if the tokenizer gives no offsets or a question leaves the context no room.
        """
        self.check_tokenizer(tokenizer)
        answers = read_answers(rows, columns)
        stride = self.settings.doc_stride
        if "doc_stride" not in self.settings.model_fields_set:
            stride = fitting_stride(stride, facts["max_length"])
        room = facts["max_length"], stride
        for chunk in iterate_chunks(len(rows), 500):
            part = slice(chunk.start, chunk.stop)
            questions = [text.lstrip() for text in _texts(rows, columns["question"], part)]
            contexts = _texts(rows, columns["context"], part)
            if narrow := find_too_narrow(tokenizer, questions, contexts, *room):
                raise _no_room_error(rows.place(chunk.start + narrow[0]), narrow[1], *room)
            targets = [self._target(next(answers), context) for context in contexts]
            found = list(windows(tokenizer, questions, contexts, *room))
            yield self._features(found, chunk.start, targets, bool(self._may_be_none(facts)))

    def _target(self, answers: Answers | Unreadable | None, context: str) -> Span | None:
        """The first answer's span, the only one trained; None trains "no answer", as does a window without it."""
        if answers is None or isinstance(answers, Unreadable):
            return UNKNOWN
        if not answers.texts:
            return None
        span, in_place = locate(context, answers.texts[0], answers.starts[0])
        if in_place:
            return span
        return None if self.settings.misplaced_answers == "no_answer" else span or UNKNOWN

    def _features(
        self, found: list[Window], first_row: int, targets: list[Span | None], learns_none: bool
    ) -> pa.RecordBatch:
        lists, places = pa.list_(pa.int32()), [positions(window, targets[window.owner]) for window in found]
        arrays = {
            "row": pa.array([first_row + window.owner for window in found], pa.int32()),
            "part": pa.array([window.part for window in found], pa.int32()),
            "input_ids": pa.array([window.input_ids for window in found], lists),
            "offset_start": pa.array([window.offset_start for window in found], lists),
            "offset_end": pa.array([window.offset_end for window in found], lists),
            "null_index": pa.array([window.null_index for window in found], pa.int32()),
            "start_positions": pa.array([start for start, _ in places], pa.int64()),
            "end_positions": pa.array([end for _, end in places], pa.int64()),
        }
        if found and found[0].token_type_ids is not None:
            arrays["token_type_ids"] = pa.array([window.token_type_ids for window in found], pa.list_(pa.int8()))
        if self.head is Head.QUESTION_ANSWERING_BEAM:
            arrays["cls_index"] = arrays["null_index"].cast(pa.int64())
            arrays["p_mask"] = pa.array([answer_mask(window) for window in found], pa.list_(pa.int8()))
            if learns_none:
                impossible = [
                    float(start == window.null_index) for window, (start, _) in zip(found, places, strict=True)
                ]
                arrays["is_impossible"] = pa.array(impossible, pa.float32())
        return pa.RecordBatch.from_pydict(arrays)

    def _may_be_none(self, facts: Facts) -> bool:
        own = self.settings.version_2_with_negative
        return facts["version_2_with_negative"] if own is None else own

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """The best answer of every row, its character position, and the n-best lists in SQuAD's file format."""
        may_be_none, is_plain = self._may_be_none(facts), self.head is Head.QUESTION_ANSWERING
        find = plain_spans if is_plain else beam_spans
        spans, nulls = find(outputs, features, len(rows), self.settings.n_best, self.settings.max_answer_length)
        predictions = self._build_predictions(spans, nulls, _iterate_texts(rows, columns["context"]), may_be_none)
        answers = [one if isinstance(one, Answers) else None for one in read_answers(rows, columns)]
        sums = answer_scores(predictions, answers, may_be_none)
        if is_plain:
            sums["loss"] = span_loss(outputs, features, len(rows))
        return Predictions(
            answer_table(predictions, answers),
            sums,
            squad_documents(predictions, question_names(rows, columns), may_be_none),
        )

    def _build_predictions(
        self, spans: SpanCandidates, nulls: NullScores, contexts: Iterable[str], may_be_none: bool
    ) -> list[QuestionPrediction]:
        starts, ends = spans.start.tolist(), spans.end.tolist()
        scores = list(zip(spans.score.tolist(), spans.start_score.tolist(), spans.end_score.tolist(), strict=True))
        null_scores = list(zip(nulls.score.tolist(), nulls.start_score.tolist(), nulls.end_score.tolist(), strict=True))
        threshold, predictions = self.settings.null_threshold, []
        for row, (context, own) in enumerate(zip(contexts, spans.row_slices(len(null_scores)), strict=True)):
            entries = [candidate(context, starts[one], ends[one], scores[one]) for one in range(own.start, own.stop)]
            if self.head is Head.QUESTION_ANSWERING:
                null = Candidate("", None, None, *null_scores[row]) if may_be_none else None
                predictions.append(choose_plain(entries, null, self.settings.n_best, threshold))
            else:
                predictions.append(choose_beam(entries, null_scores[row][0] if may_be_none else None, threshold))
        return predictions

    def combine(self, each: Sequence[Predictions], rows: Rows, columns: Columns, facts: Facts) -> Predictions:
        """See `Combines`: the commonest answer, as the first model gives it that has it."""
        answers = [one.table["prediction"].to_pylist() for one in each]
        places = [
            next(number for number, own in enumerate(answers) if own[row] == chosen) * len(rows) + row
            for row, chosen in enumerate(vote(answers))
        ]
        table = pa.concat_tables([one.table for one in each]).take(pa.array(places, pa.int64()))
        return Predictions(table, self.sums_of(table, rows, columns))

    def sums_of(self, table: pa.Table, rows: Rows, columns: Columns) -> Sums:
        """See `RebuildsSums`."""
        answers = [one if isinstance(one, Answers) else None for one in read_answers(rows, columns)]
        return text_scores(table["prediction"].to_pylist(), answers)

    def trivial_scores(self, rows: Rows, columns: Columns, facts: Facts) -> dict[str, float]:
        """Those of no answer to every question, if some have none."""
        answers = [one for one in read_answers(rows, columns) if isinstance(one, Answers)]
        share = sum(not one.texts for one in answers) / len(answers) if answers else 0.0
        return {"exact_match": share, "f1": share} if share else {}

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Exact match and F1 and, if some questions have no answer, the measures for those."""
        return measure(metrics_of("question_answering"), predictions, facts, self.settings)


def _texts(rows: Rows, column: str, part: slice) -> list[str]:
    return strings(rows.table[column][part]).to_pylist()


def _iterate_texts(rows: Rows, column: str) -> Iterator[str]:
    """Yield the texts one by one: a column of contexts may not fit in memory."""
    for chunk in iterate_chunks(len(rows)):
        yield from _texts(rows, column, slice(chunk.start, chunk.stop))


def _no_room_error(place: str, room: int, max_length: int, doc_stride: int) -> InputError:
    return InputError(
        "task.doc_stride: {place} has a long question, which leaves {room} tokens for the "
        "context in a window of {max_length}, but consecutive windows should share {doc_stride} "
        "of them; set a smaller task.doc_stride, a larger task.max_length, or shorten the "
        "question",
        "task.doc_stride",
        place=place,
        room=max(room, 0),
        max_length=max_length,
        doc_stride=doc_stride,
    )


TASK = QuestionAnswering
