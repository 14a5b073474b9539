"""Text to text: translation, summarisation, and any other task that maps one text to another."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.heads import Head, HeadFacts
from backend.contract.metrics import Metric
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.spec import Section
from backend.contract.spec.training import ADVANCED, DECODING
from backend.data.rows import Rows
from backend.metrics.generated_text import BleuWords, Kind, check_words, metrics_of_kinds, signatures
from backend.metrics.metric import Sums, measure, metrics_of
from backend.tasks._language_models import WritingSettings, generation_settings
from backend.tasks._texts import is_blank, list_reasons, strings
from backend.tasks.task import Columns, Facts, Limit, Outputs, Predictions, SplitBy, Use, iterate_chunks

SIGNATURES = "signatures.json"
"""Written beside the predictions: how each score was computed."""

_Encoded = tuple[list[int], int]
"""Token ids, and how many were cut off."""
_Languages = tuple[str | None, str | None]
_TOKENS: dict[str, Any] = {"unit": "tokens"}
MOST_COPIED = 500
"""Rows of which the scores of a copy are computed."""
_SCORES: dict[str, tuple[Kind, ...]] = {
    "all": ("bleu", "chrf", "rouge", "exact_match"),
    "translation": ("bleu", "chrf", "exact_match"),
    "summarisation": ("rouge", "exact_match"),
}


class Settings(WritingSettings):
    """The `task` section of text to text."""

    type: Annotated[Literal["seq2seq_lm"], Field(title="Task")] = "seq2seq_lm"
    """Always `seq2seq_lm`."""
    max_length: Annotated[
        int | None, Field(title="Max source length", ge=2, le=1_000_000, json_schema_extra=_TOKENS)
    ] = 128
    """Longer sources, including the prefix, are truncated to this many tokens. Empty uses the model's limit."""
    max_target_length: Annotated[
        int | None, Field(title="Max target length", ge=2, le=1_000_000, json_schema_extra=_TOKENS)
    ] = 128
    """Longer targets are truncated to this many tokens in training. Empty uses the source limit."""
    prefix: Annotated[
        str, Field(title="Prefix", json_schema_extra={"examples": ["translate English to Spanish: "]})
    ] = ""
    """Text added before every source, as T5 expects. A column `prefix` sets it for each row. After a letter or digit,
    a colon and a space are added; after any other character, a space."""
    source_language: Annotated[str | None, Field(title="Source language", json_schema_extra=ADVANCED)] = None
    """The language token of the sources, for example `eng_Latn` for NLLB or `en_XX` for mBART. A column overrides
    it."""
    target_language: Annotated[str | None, Field(title="Target language", json_schema_extra=ADVANCED)] = None
    """The language token of the targets. Generated text starts with it if the architecture requires it."""
    scores: Annotated[
        Literal["all", "translation", "summarisation"], Field(title="Metrics", json_schema_extra=DECODING)
    ] = "all"
    """`translation` computes BLEU and chrF, `summarisation` ROUGE, `all` both, which takes about 2 seconds per 1,000
    rows."""
    bleu_words: Annotated[BleuWords, Field(title="BLEU tokenizer", json_schema_extra=DECODING)] = "auto"
    """sacreBLEU's tokenizer. `auto` is 13a, or zh or char if the references are written without spaces."""
    max_new_tokens: Annotated[int, Field(title="Max new tokens", ge=1, le=100_000, json_schema_extra=DECODING)] = 128
    """Maximum number of tokens to generate."""


class Seq2SeqLm:
    """Maps one text to another; see `backend.tasks.task.Task` for the protocol."""

    title: ClassVar[str] = "Sequence to sequence"
    description: ClassVar[str] = "Generates one text from another: translation, summarization, rewriting."
    head: Head = Head.SEQ2SEQ_LM
    columns: ClassVar[tuple[Column, ...]] = (
        Column("source", "Source", "The text to translate, summarize or answer.", holds="text", usual_names=["source", "input_text", "src", "article", "document", "dialogue", "text", "input", "question"]),
        Column("target", "Target", "The expected text.", holds="text", needed_to_predict=False, usual_names=["target", "target_text", "trg", "tgt", "translation", "summary", "highlights", "output", "answer"]),
        Column("prefix", "Prefix", "Text added before the source of the row, such as the direction.", required=False, needed_to_predict=False, usual_names=["prefix"]),
        Column("source_language", "Source language", "The language token of the row's source.", required=False, needed_to_predict=False),
        Column("target_language", "Target language", "The language token of the row's target.", required=False, needed_to_predict=False),
    )  # fmt: skip
    metrics: tuple[Metric, ...] = metrics_of("seq2seq_lm")
    default_metric: ClassVar[str] = "bleu"
    evaluates_by: Literal["outputs", "generate"] = "generate"
    limits: ClassVar[tuple[Limit, ...]] = (Limit(what="sources"), Limit("max_target_length", "labels", "targets"))
    defaults: ClassVar[dict[str, Any]] = {"evaluation": {"best_metric": "loss"}}
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"source": "I have a small house near the river."},
        {"source": "The children are playing in the garden."},
    )
    trained_architecture: ClassVar[str] = ""
    row_view: ClassVar[str] = "text"
    hub_filter: ClassVar[str] = "text2text-generation"
    Settings: ClassVar[type[Section]] = Settings

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self._kinds = _SCORES[settings.scores]
        self.metrics = metrics_of_kinds(metrics_of("seq2seq_lm"), self._kinds)

    @property
    def split_by(self) -> SplitBy:
        """At random."""
        return "random"

    def label_column(self, columns: Columns) -> str | None:
        """None: targets are texts, not labels."""
        return None

    def unusable(self, rows: Rows, columns: Columns, use: Use) -> list[tuple[int, str]]:
        """Rows without a source or, if targets are needed and there are any, without a target."""
        needed = (
            ["target", "source"]
            if use != "predicting" and columns.get("target") in rows.table.column_names
            else ["source"]
        )
        return list_reasons({f"no {role}": is_blank(rows.table[columns[role]]) for role in needed})

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """Learns nothing from the rows. Raises InputError if the scores cannot be computed here."""
        check_words(self.settings.bleu_words)
        return {}

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """A text-generating model needs no facts."""
        return {}

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Raises InputError if the scores cannot be computed here."""
        check_words(self.settings.bleu_words)

    def head_facts(self, facts: Facts) -> HeadFacts:
        """A text-generating head."""
        return HeadFacts(self.head)

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """One feature per row; `labels` (not shifted, without padding) if any target is known.

        `cut_source` and `cut_target` count truncated tokens. `decoder_prompt` is the language token
        that an answer starts with, if the model has them.
        """
        limits = facts["max_length"], self.settings.max_target_length or facts["max_length"]
        labelled = any(any(_cells(rows, columns, "target", chunk)) for chunk in iterate_chunks(len(rows)))
        for chunk in iterate_chunks(len(rows)):
            sources, targets = self._sources(rows, columns, chunk), _cells(rows, columns, "target", chunk)
            encoded: dict[int, tuple[_Encoded, _Encoded, list[int]]] = {}
            for pair, places in self._group_by_languages(rows, columns, chunk).items():
                with set_languages(tokenizer, *pair) as prompt:
                    questions = _encode_texts(tokenizer, "text", [sources[place] for place in places], limits[0])
                    answers = _encode_texts(tokenizer, "text_target", [targets[place] for place in places], limits[1])
                encoded |= dict(zip(places, zip(questions, answers, repeat(prompt)), strict=True))
            yield _features(chunk, [encoded[place] for place in range(len(chunk))], labelled)

    def _sources(self, rows: Rows, columns: Columns, chunk: range) -> list[str]:
        """The source texts with their prefixes."""
        texts = _cells(rows, columns, "source", chunk)
        has_column = columns.get("prefix") in rows.table.column_names
        prefixes = _cells(rows, columns, "prefix", chunk) if has_column else repeat(self.settings.prefix)
        return [_add_prefix(prefix, text) for prefix, text in zip(prefixes, texts, strict=False)]

    def _group_by_languages(self, rows: Rows, columns: Columns, chunk: range) -> dict[_Languages, list[int]]:
        """Source and target language → indices in the chunk; a row's own languages override the settings."""
        own = zip(
            _cells(rows, columns, "source_language", chunk),
            _cells(rows, columns, "target_language", chunk),
            strict=True,
        )
        found: dict[_Languages, list[int]] = {}
        for place, (source, target) in enumerate(own):
            pair = source or self.settings.source_language, target or self.settings.target_language
            found.setdefault(pair, []).append(place)
        return found

    def generation(self, tokenizer: Any) -> GenerationSettings:
        """The generation settings of the task."""
        return generation_settings(self.settings, tokenizer)

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """The generated text of each row and, under teacher forcing, the loss and hits of its target tokens."""
        written = tokenizer.batch_decode([ids.tolist() for ids in outputs["generated"]], skip_special_tokens=True)
        every = range(len(rows))
        targets = [text if text.strip() else None for text in _cells(rows, columns, "target", every)]
        table = {
            "prediction": pa.array([text.strip() for text in written], pa.string()),
            "actual": pa.array(targets, pa.string()),
            "source_text": pa.array(self._as_read(rows, columns, features, tokenizer), pa.string()),
        }
        known = [text for text in targets if text is not None]
        how = signatures(known, self._kinds, self.settings.bleu_words) if known else {}
        return Predictions(pa.table(table), _sums(outputs, features), {SIGNATURES: how} if how else {})

    def _as_read(self, rows: Rows, columns: Columns, features: pa.Table, tokenizer: Any) -> list[str]:
        """The sources with their prefixes, truncated as the model reads them."""
        texts = self._sources(rows, columns, range(len(rows)))
        for row in np.flatnonzero(features["cut_source"].to_numpy()).tolist():
            texts[row] = tokenizer.decode(features["input_ids"][row].as_py(), skip_special_tokens=True)
        return texts

    def trivial_scores(self, rows: Rows, columns: Columns, facts: Facts) -> dict[str, float]:
        """Those of the source as it stands, in at most 500 rows; that it is no exact match says nothing."""
        chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_COPIED)).astype(np.int64))
        if self.evaluates_by != "generate" or not len(chosen):
            return {}
        some = rows.take(chosen, "copied")
        copied, targets = (_cells(some, columns, role, range(len(some))) for role in ("source", "target"))
        table = pa.table(
            {
                "prediction": copied,
                "actual": pa.array([text if text.strip() else None for text in targets], pa.string()),
            }
        )
        every = metrics_of("seq2seq_lm")
        kinds: list[Kind] = [kind for kind in self._kinds if kind != "exact_match"]
        forced = metrics_of_kinds(every, ())
        written = [one for one in metrics_of_kinds(every, kinds) if one not in forced]
        return measure(written, Predictions(table), facts, self.settings)

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Loss, its exponential and token accuracy under teacher forcing; BLEU and the like for generated text."""
        if predictions.labelled_rows().num_rows == 0:
            return {}
        return measure(self.metrics, predictions, facts, self.settings)


def _cells(rows: Rows, columns: Columns, role: str, chunk: range) -> list[str]:
    """The texts of a role; empty ones if it has no column."""
    name = columns.get(role)
    if name not in rows.table.column_names:
        return [""] * len(chunk)
    return strings(rows.table[name].slice(chunk.start, len(chunk))).to_pylist()


def _add_prefix(prefix: str, text: str) -> str:
    """`translate sinhala to english` becomes `translate sinhala to english: …`, `>>spa<<` becomes `>>spa<< …`."""
    if not prefix.strip() or prefix[-1].isspace():
        return prefix.lstrip() + text
    return f"{prefix}{':' if prefix[-1].isalnum() else ''} {text}"


def _encode_texts(tokenizer: Any, side: Literal["text", "text_target"], texts: list[str], limit: int) -> list[_Encoded]:
    """Token ids and how many were truncated; an empty text, which is unknown, has none."""
    plain = {"return_attention_mask": False, "verbose": False}  # longer than a model's limit is told by the counts
    found = [(ids if text else [], 0) for ids, text in zip(_ids(tokenizer, side, texts, plain), texts, strict=True)]
    long = [place for place, (ids, _) in enumerate(found) if len(ids) > limit]
    if long:  # only these are tokenised again, with the tokenizer's own truncation
        shorter = {**plain, "truncation": True, "max_length": limit}
        for place, ids in zip(long, _ids(tokenizer, side, [texts[place] for place in long], shorter), strict=True):
            found[place] = ids, len(found[place][0]) - len(ids)
    return found


def _ids(tokenizer: Any, side: str, texts: list[str], options: dict[str, Any]) -> list[list[int]]:
    return tokenizer(**{side: texts}, **options)["input_ids"]


def _features(chunk: range, encoded: list[tuple[_Encoded, _Encoded, list[int]]], labelled: bool) -> pa.RecordBatch:
    lists = pa.list_(pa.int32())
    sources, targets, prompts = zip(*encoded, strict=True)
    arrays = {
        "row": pa.array(np.arange(chunk.start, chunk.stop, dtype=np.int32)),
        "part": pa.array(np.zeros(len(chunk), dtype=np.int32)),
        "input_ids": pa.array([ids for ids, _ in sources], lists),
        "cut_source": pa.array([cut for _, cut in sources], pa.int32()),
        "cut_target": pa.array([cut for _, cut in targets], pa.int32()),
    }
    if labelled:
        arrays["labels"] = pa.array([ids for ids, _ in targets], lists)
    if any(prompts):
        arrays["decoder_prompt"] = pa.array(prompts, lists)
    return pa.RecordBatch.from_pydict(arrays)


def _sums(outputs: Outputs, features: pa.Table) -> Sums:
    """Summed loss and hits of each row over its target tokens; empty if no target is known."""
    if "token_loss" not in outputs:
        return {}
    labels = [np.asarray(ids.values) for ids in features["labels"]]
    tokens = np.array([len(ids) for ids in labels], dtype=np.float64)
    loss = np.array([one.sum(dtype=np.float64) for one in outputs["token_loss"]])
    guesses = zip(outputs["token_prediction"], labels, strict=True)
    hits = np.array([(guess == ids).sum() for guess, ids in guesses], dtype=np.float64)
    return {"loss": (loss, tokens), "accuracy": (hits, tokens)}


def has_language_tokens(tokenizer: Any) -> bool:
    """Whether the tokenizer marks source and target with a language, as those of mBART, NLLB and M2M100 do."""
    return hasattr(tokenizer, "set_tgt_lang_special_tokens")


@contextmanager
def set_languages(tokenizer: Any, source: str | None, target: str | None) -> Iterator[list[int]]:
    """Set these languages on the tokenizer inside the block; yields the tokens that an answer starts with.

    None leaves a tokenizer without language tokens unchanged. Raises InputError for a language that is unknown,
    missing, or not applicable.
    """
    if not has_language_tokens(tokenizer):
        _refuse_languages(source, target)
        yield []
        return
    _check_language(tokenizer, "source_language", source)
    _check_language(tokenizer, "target_language", target)
    before = tokenizer.src_lang, tokenizer.tgt_lang
    try:
        tokenizer.tgt_lang, tokenizer.src_lang = target, source  # the source's last: it sets the special tokens
        # The first mBART has the language at the labels' end, from where its shift takes it to the beginning.
        yield [token for token in tokenizer(text_target="")["input_ids"] if token != tokenizer.eos_token_id]
    finally:
        tokenizer.tgt_lang, tokenizer.src_lang = before[1], before[0]


def _refuse_languages(source: str | None, target: str | None) -> None:
    name = "source_language" if source else "target_language"
    if source or target:
        raise InputError(
            "task.{name}: this model's tokenizer has no language tokens; leave it empty, and set the "
            "direction as task.prefix if the model uses one",
            f"task.{name}",
            name=name,
        )


def _check_language(tokenizer: Any, name: str, language: str | None) -> None:
    known = _known_languages(tokenizer)
    if language in known:
        return
    field = f"task.{name}"
    listed = f"{', '.join(known[:8])}{' …' if len(known) > 8 else ''}"
    if not language:
        raise InputError(
            "{field}: this model marks every text with its language; choose one of {listed}",
            field,
            field=field,
            listed=listed,
        )
    raise InputError(
        "{field}: the model's tokenizer has no language {language}; its languages are {listed}",
        field,
        field=field,
        language=repr(language),
        listed=listed,
    )


def _known_languages(tokenizer: Any) -> list[str]:
    """The languages by the names used to set them."""
    for name in ("lang_code_to_token", "lang_code_to_id"):  # M2M100, mBART-50
        if codes := getattr(tokenizer, name, None):
            return sorted(codes)
    ordinary = {str(token) for token in tokenizer.special_tokens_map.values() if not isinstance(token, list)}
    return sorted(token for token in tokenizer.all_special_tokens if token not in ordinary)


TASK = Seq2SeqLm
