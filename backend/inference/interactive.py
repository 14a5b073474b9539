"""Predicts typed rows: loads a model once and queries it repeatedly, in memory only."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.messages import message
from backend.contract.rpc.generation import never
from backend.contract.rpc.interactive import AddedRow, Answer
from backend.contract.spec import validate
from backend.data.rows import Rows
from backend.data.sources.source import Report
from backend.inference import feedback_file, predict
from backend.inference.model import open_model
from backend.inference.spec import spec_of
from backend.inspect.row_lengths import UNLIMITED, remove_limits
from backend.preflight.datasets import ignore_progress
from backend.preflight.session import FeatureSession
from backend.tasks.task import Limit, encode_features, generation, limits, used_columns

BATCH_SIZE = 16
MAX_ROWS = 1000
"""Of one question; more rows are a file for `burnish predict`."""
QUOTED = 48
"""Characters that are quoted of what is read last."""
Say = Callable[[str], None]
"""Called with each piece of text as it is written."""
TypedRow = Mapping[str, Any]
"""Role, or the column that played it in training → what was typed."""


@dataclass(frozen=True)
class _Typed:
    """Rows as typed by the user, by role."""

    rows: Rows
    columns: dict[str, str]


class InteractivePredictor:
    """A loaded model of a run or folder. Raises InputError, RunFailed if it cannot be loaded.

    A model that was never trained for the task is accepted too: `note` says so.
    """

    def __init__(
        self, target: str, task: str | None = None, changes: Sequence[str] = (), report: Report = ignore_progress
    ) -> None:
        opened = open_model(spec_of(target, task, list(changes)), report, accepts_untrained=True)
        self._session, self.device = opened.session, opened.device
        self.note = _untrained_warning(len(opened.loaded.new_weights), opened.session.task.title)

    def answer(
        self,
        rows: Sequence[TypedRow],
        settings: Mapping[str, Any] | None = None,
        say: Say = lambda piece: None,
        stop_requested: Callable[[], bool] = never,
    ) -> Answer:
        """One answer per row; `settings` are the task's decoding settings.

        Raises InputError that names what is missing, and GenerationStopped between two tokens once `stop_requested`.
        """
        started = time.perf_counter()
        session = _with_decoding(self._session, settings or {})
        typed = _read_typed_rows(rows, used_columns(session.task), session.columns)
        session = replace(session, columns=typed.columns, stop_requested=stop_requested)
        _refuse_unusable(session, typed.rows)
        answers = (
            _continue_texts(session, typed.rows, settings or {}, say)
            if _continues(session)
            else _predict(session, typed.rows)
        )
        seconds = time.perf_counter() - started
        return Answer(
            task=session.spec.task["type"],
            model=session.spec.model.name_or_path,
            device=self.device,
            rows=answers,
            note=self.note,
            cuts=[] if _continues(session) else _truncation_warnings(session, typed.rows),
            seconds=seconds,
            memory_mb=psutil.Process().memory_info().rss / 1e6,
            device_memory_mb=session.engine.device_memory_mb(),
        )

    def collect(self, path: Path, row: TypedRow, right: str | None = None) -> AddedRow:
        """Append an answered row to the user's own file, under the training data's names. Raises InputError."""
        return feedback_file.add(path, used_columns(self._session.task), self._session.columns, row, right)


def _untrained_warning(new_weights: int, task: str) -> str:
    if not new_weights:
        return ""
    return message(
        "This model was not trained for this task ({task}): its new head is random, so the "
        "answer is not meaningful yet.",
        task=task.lower(),
    )


def _with_decoding(session: FeatureSession, settings: Mapping[str, Any]) -> FeatureSession:
    """The session with other decoding settings of its task."""
    own = {name: value for name, value in settings.items() if name != "seed"}
    if not own:
        return session
    kind, section = type(session.task), {**session.spec.task, **own}
    task = kind(validate(kind.Settings, section, "task"))
    return replace(session, task=task, spec=session.spec.model_copy(update={"task": task.settings.model_dump()}))


def _read_typed_rows(rows: Sequence[TypedRow], roles: Sequence[Column], columns: Mapping[str, str]) -> _Typed:
    if not 0 < len(rows) <= MAX_ROWS:
        raise InputError(
            "input: enter 1 to {max_rows} rows; for more, write them to a file and use burnish predict --data",
            max_rows=MAX_ROWS,
        )
    names = {**{name: role for role, name in columns.items()}, **{role.name: role.name for role in roles}}
    for row in rows:
        for key in row:
            if key not in names:
                known = ", ".join(role.name for role in roles)
                raise InputError(
                    "input: {key} is not a column of this task; its columns are {known}",
                    key,
                    key=repr(key),
                    known=known,
                )
    by_role = [{names[key]: _read_cell(names[key], value) for key, value in row.items()} for row in rows]
    given = [role for role in roles if any(row.get(role.name) not in (None, "", []) for row in by_role)]
    for role in roles:
        if role.required and role.needed_to_predict and role not in given:
            raise InputError("{title} is empty; fill it in first", role.name, title=role.title)
    table = pa.table({role.name: _column([row.get(role.name) for row in by_role]) for role in given})
    count = len(rows)
    return _Typed(
        Rows(table, ("input",), np.zeros(count, np.int32), np.arange(1, count + 1, dtype=np.int64), "typed"),
        {role.name: role.name for role in given},
    )


def _read_cell(role: str, value: Any) -> Any:
    """Plain text counts as the user's message if messages are needed; a whole chat can be given as JSON."""
    is_plain = role == "messages" and isinstance(value, str) and value.strip() and not value.lstrip().startswith("[")
    return json.dumps([{"role": "user", "content": value}]) if is_plain else value


def _column(values: list[Any]) -> pa.Array:
    """Text, or lists or numbers if the user gave them."""
    if any(isinstance(value, str) for value in values):
        return pa.array(["" if value is None else str(value) for value in values], pa.string())
    return pa.array(values)


def _refuse_unusable(session: FeatureSession, rows: Rows) -> None:
    unusable = session.task.unusable(rows, session.columns, "predicting")
    if unusable:
        row, reason = unusable[0]
        where = message("row {row}: ", row=row + 1) if len(rows) > 1 else ""
        raise InputError("input: {where}{reason}; enter something else", where=where, reason=reason)


def _predict(session: FeatureSession, rows: Rows) -> list[dict[str, Any]]:
    scored = session.score(rows, session.typed_features(rows), BATCH_SIZE)
    table = scored.predictions.table
    if table["actual"].null_count == table.num_rows:
        table = table.drop_columns(["actual"])
    return [{**row, **answer} for row, answer in zip(rows.table.to_pylist(), table.to_pylist(), strict=True)]


def _continues(session: FeatureSession) -> bool:
    """Whether the answer is a continuation of the text, although the task is evaluated differently."""
    return session.task.head is Head.CAUSAL_LM and session.task.evaluates_by == "outputs"


def _continue_texts(session: FeatureSession, rows: Rows, settings: Mapping[str, Any], say: Say) -> list[dict[str, Any]]:
    answers = []
    for row in rows.table.to_pylist():
        pieces = []
        for piece in _stream_pieces(session, row, settings):
            pieces.append(piece)
            say(piece)
        answers.append({**row, "prediction": "".join(pieces)})
    return answers


def _stream_pieces(session: FeatureSession, cells: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[str]:
    wanted = generation(session.task, session.tokenizer)
    chosen = replace(wanted, seed=int(settings.get("seed") or 0), stop_requested=session.stop_requested)
    ids = predict.ids_of_prompt(session.task, cells, session.tokenizer)
    if not ids:
        raise InputError("input: the text has no tokens; enter at least one word")
    return predict.as_text(session.engine.continue_prompt(ids, chosen), session.tokenizer, ids)


def _truncation_warnings(session: FeatureSession, rows: Rows) -> list[str]:
    """One sentence for each row and limit that loses text, in row order; writes nothing to disk."""
    free = remove_limits(session)
    batches = list(encode_features(free.task, rows, free.columns, free.tokenizer, free.facts, to_train=False))
    sentences: list[tuple[int, str]] = []
    for bound in limits(session.task):
        own = getattr(session.task.settings, bound.setting, None) or session.facts["max_length"]
        for batch in batches:
            for row, length in _lengths(batch, bound):
                if bound.beyond != "windows" and own < length < UNLIMITED:
                    sentences.append((row, _sentence(session, rows, row, own, length)))
    return [sentence for _, sentence in sorted(sentences, key=lambda each: each[0])]


def _lengths(batch: pa.RecordBatch, bound: Limit) -> list[tuple[int, int]]:
    """Row and number of tokens of each feature; the longest of its choices counts."""
    if bound.column not in batch.schema.names:
        return []
    owners = batch["row"].to_pylist()
    if "choice_lengths" in batch.schema.names:
        return list(zip(owners, map(max, batch["choice_lengths"].to_pylist()), strict=True))
    return list(zip(owners, map(len, batch[bound.column].to_pylist()), strict=True))


def _sentence(session: FeatureSession, rows: Rows, row: int, limit: int, length: int) -> str:
    where = message("Row {row}", row=row + 1) if len(rows) > 1 else message("The text")
    last = _last_words(session, rows, row, limit, length)
    read = message("it reads up to “{last}”", last=last) if last else message("the rest is truncated")
    return message(
        "{where} is {length:,} tokens long, but the model reads only {limit:,}: {read}.",
        where=where,
        length=length,
        limit=limit,
        read=read,
    )


def _last_words(session: FeatureSession, rows: Rows, row: int, limit: int, length: int) -> str:
    """The end of what is read of a single text; empty if unknown, as for pairs."""
    texts = [str(value) for name in rows.table.column_names if isinstance(value := rows.table[name][row].as_py(), str)]
    tokenizer: Any = session.tokenizer
    if len(texts) != 1 or not getattr(tokenizer, "is_fast", False) or tokenizer.truncation_side != "right":
        return ""
    offsets = tokenizer(texts[0], add_special_tokens=False, return_offsets_mapping=True, truncation=False)
    ends = [end for _, end in offsets["offset_mapping"]]
    kept = limit - (length - len(ends))  # the special tokens stay
    if not 0 < kept < len(ends):
        return ""
    read = texts[0][: ends[kept - 1]]
    return read if len(read) <= QUOTED else f"…{read[-QUOTED:].lstrip()}"
