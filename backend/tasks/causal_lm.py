"""Causal language modeling: the next token of plain text, of examples, or of answers to prompts."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, ValidationInfo, field_validator

from backend.contract.catalog import Column
from backend.contract.errors import InputError
from backend.contract.heads import IGNORE, Head, HeadFacts
from backend.contract.messages import message
from backend.contract.metrics import Metric
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.spec import Section
from backend.contract.spec.training import ADVANCED
from backend.data.rows import Rows
from backend.metrics.generated_text import Kind, metrics_of_kinds, signatures
from backend.metrics.metric import Sums, measure, metrics_of
from backend.tasks._chat import (
    ChatTemplate,
    Message,
    chats,
    check_template,
    fit_to_length,
    instructions,
    is_answered,
    least_length,
    prompt_texts,
    question_ids,
    tokenize_conversations,
)
from backend.tasks._language_models import (
    WritingSettings,
    generation_settings,
    loss_sums,
    loss_table,
    texts,
    unigram_scores,
)
from backend.tasks._packing import (
    Tokens,
    cut_into_blocks,
    features_of_rows,
    flat_values,
    group_by_row,
    list_starts,
    pack,
    row_of_tokens,
    tokens_of,
)
from backend.tasks._texts import is_blank, list_reasons
from backend.tasks.task import Columns, Facts, Limit, Outputs, Predictions, SplitBy, Use, iterate_chunks

ANSWERS = ("instructions", "chat")
"""Kinds of rows that are prompts with answers."""
SCORES: tuple[Kind, ...] = ("exact_match", "bleu", "chrf", "rouge")
SIGNATURES = "signatures.json"


class Settings(WritingSettings):
    """The `task` section of causal language modelling."""

    type: Annotated[Literal["causal_lm"], Field(title="Task")] = "causal_lm"
    """Always `causal_lm`."""
    rows: Annotated[Literal["blocks", "examples", "instructions", "chat"], Field(title="Training example")] = "blocks"
    """`blocks` joins all rows into one text and splits it into blocks of equal length; `examples` keeps each row
    separate; `instructions` are prompts with responses; `chat` is a list of messages."""
    max_length: Annotated[
        int | None, Field(title="Block length", ge=2, le=1_000_000, json_schema_extra={"unit": "tokens"})
    ] = 256
    """Tokens per block, or the maximum tokens of an example. Empty uses the model's limit. A prompt that is too long
    is truncated at the start, a response at the end."""
    separator: Annotated[
        Literal["auto", "none", "newline", "end_of_text"], Field(title="Row separator", json_schema_extra=ADVANCED)
    ] = "auto"
    """What is inserted between two rows of a block: `auto` is a line break in running text, otherwise the end-of-text
    token."""
    append_end: Annotated[bool, Field(title="Append end-of-text token", json_schema_extra=ADVANCED)] = True
    """Append the end-of-text token to examples and responses, so that the model learns to stop."""
    loss_on: Annotated[Literal["answer", "all"], Field(title="Compute loss on", json_schema_extra=ADVANCED)] = "answer"
    """For instructions and chats: compute the loss on the answers only (in a chat, on every assistant message), or on
    prompts as well."""
    template: Annotated[str, Field(title="Chat template", min_length=1, json_schema_extra=ADVANCED)] = "auto"
    """How prompts and answers are combined into one text: `auto` uses the tokenizer's own template, or a simple one
    if it has none (`User: …`, `Assistant: …`); or a Jinja template over `messages`. The predictions' `source_text`
    shows the result."""
    generate: Annotated[bool, Field(title="Generate in evaluations")] = False
    """For instructions and chats: evaluations generate answers and compare them with the responses, which is
    slower."""
    packing: Annotated[bool, Field(title="Packing", json_schema_extra=ADVANCED)] = False
    """Train on several examples in one sequence, without attention between them: less padding, and fewer, fuller
    steps."""
    # Not of decoding alone: prompts leave as much room as an answer may take.
    max_new_tokens: Annotated[int, Field(title="Max new tokens", ge=1, le=100_000, json_schema_extra=ADVANCED)] = 64
    """Maximum number of tokens to generate. If answers are generated, prompts are truncated to leave room for
    them."""

    @field_validator("template")
    @classmethod
    def _is_a_template(cls, template: str) -> str:
        return template if template == "auto" else check_template(template)

    @field_validator("generate")
    @classmethod
    def _there_is_an_answer(cls, generate: bool, info: ValidationInfo) -> bool:
        if generate and info.data.get("rows") not in ANSWERS:
            raise ValueError(message("answers are generated for instructions and chats; set task.rows to one of them"))
        return generate

    @field_validator("packing")
    @classmethod
    def _is_not_packed(cls, packing: bool, info: ValidationInfo) -> bool:
        if packing and info.data.get("rows") == "blocks":
            raise ValueError(message("blocks are always full; leave it off, or set task.rows to examples"))
        return packing


class CausalLm:
    """Next-token prediction; see `backend.tasks.task.Task` for the protocol."""

    title: ClassVar[str] = "Causal language modeling"
    description: ClassVar[str] = (
        "Continues text or answers prompts. Trains on plain text, examples, instructions or chats."
    )
    head: Head = Head.CAUSAL_LM
    columns: ClassVar[tuple[Column, ...]] = (
        Column("text", "Text", "The text to train on.", holds="text", usual_names=["text", "content", "body", "story", "sentence", "document"], when={"rows": ["blocks", "examples"]}),
        Column("prompt", "Prompt", "What the model is asked.", holds="text", usual_names=["prompt", "instruction", "question", "query"], when={"rows": ["instructions"]}),
        Column("input", "Input", "What the prompt is about. Added below it.", holds="text", required=False, usual_names=["input", "context"], when={"rows": ["instructions"]}),
        Column("system", "System", "Instructions that come before the prompt.", holds="text", required=False, usual_names=["system", "system_prompt"], when={"rows": ["instructions"]}),
        Column("response", "Response", "The expected answer.", holds="text", needed_to_predict=False, usual_names=["response", "output", "completion", "answer", "chosen"], when={"rows": ["instructions"]}),
        Column("messages", "Messages", "A list of messages, each with role and content.", holds="messages", usual_names=["messages", "conversations", "conversation", "chat", "dialog"], when={"rows": ["chat"]}),
    )  # fmt: skip
    metrics: tuple[Metric, ...] = metrics_of("causal_lm")
    default_metric: ClassVar[str] = "perplexity"
    evaluates_by: Literal["outputs", "generate"] = "outputs"
    trains_apart: bool = False
    defaults: ClassVar[dict[str, Any]] = {"evaluation": {"best_metric": "loss"}}
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"text": "It is a truth universally acknowledged,", "prompt": "Name three rivers of Europe."},
        {"text": "She looked out of the window and", "prompt": "Explain in one sentence what a tokenizer does."},
    )
    trained_architecture: ClassVar[str] = ""
    # The most likely text repeats itself after a few words; these are the usual values for stories and answers.
    try_settings: ClassVar[dict[str, Any]] = {"sample": True, "temperature": 0.8, "top_p": 0.95}
    row_view: ClassVar[str] = "language_model"
    hub_filter: ClassVar[str] = "text-generation"
    Settings: ClassVar[type[Section]] = Settings

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.trains_apart = settings.packing
        loses = message("a part of the prompt or the answer") if settings.rows in ANSWERS else "text"
        beyond = "blocks" if settings.rows == "blocks" else "cut"
        self.limits = (Limit(beyond=beyond, loses=loses, fills=not settings.generate),)
        if settings.generate:
            self.evaluates_by = "generate"
        else:
            self.metrics = metrics_of_kinds(metrics_of("causal_lm"), ())

    @property
    def split_by(self) -> SplitBy:
        """Running text keeps its order: the validation fraction is its end."""
        return "contiguous" if self.settings.rows == "blocks" else "random"

    def label_column(self, columns: Columns) -> str | None:
        """There are no labels."""
        return None

    def unusable(self, rows: Rows, columns: Columns, use: Use) -> list[tuple[int, str]]:
        """Rows without text, except blank lines of running text; without a prompt, or a response if it is needed."""
        kind = self.settings.rows
        if kind == "blocks" and rows.continuous:
            return []
        if kind == "chat":
            return self._unusable_chats(rows, columns, use != "predicting")
        needed = ["text"] if kind != "instructions" else ["response", "prompt"] if use != "predicting" else ["prompt"]
        return list_reasons({f"no {role}": is_blank(rows.table[columns[role]]) for role in needed})

    def _unusable_chats(self, rows: Rows, columns: Columns, labelled: bool) -> list[tuple[int, str]]:
        found = []
        each = (one for chunk in iterate_chunks(len(rows)) for one in chats(rows, columns, chunk))
        for row, messages in enumerate(each):
            if isinstance(messages, str):
                found.append((row, messages))
            elif labelled and not any(one["role"] == "assistant" for one in messages):
                found.append((row, message("no assistant message")))
        return found

    def fit(self, rows: Rows, columns: Columns, model_labels: tuple[str, ...] = ()) -> Facts:
        """Learns nothing from the rows, but requires text. Raises InputError if there is none."""
        if "text" in columns and is_blank(rows.table[columns["text"]]).all():
            raise InputError(
                "data.columns.text: the column {columns} has no text; choose another column",
                "data.columns.text",
                columns=repr(columns["text"]),
            )
        return {}

    def facts_of_model(self, labels: tuple[str, ...]) -> Facts:
        """A language model needs no facts."""
        return {}

    def check(self, rows: Rows, columns: Columns, facts: Facts, split: str) -> None:
        """Nothing to check."""

    def head_facts(self, facts: Facts) -> HeadFacts:
        """A language model head."""
        return HeadFacts(self.head)

    def encode(self, rows: Rows, columns: Columns, tokenizer: Any, facts: Facts) -> Iterator[pa.RecordBatch]:
        """Blocks, or one feature per row, whose `prompt_length` is the part before the (last) answer."""
        length = facts["max_length"]
        if self.settings.rows in ANSWERS:
            return self._encode_answers(rows, columns, tokenizer, length)
        if self.settings.rows == "examples":
            return self._encode_examples(rows, columns, tokenizer, length)
        # A single token would have no target.
        found = cut_into_blocks(
            (self._tokens(rows, columns, tokenizer, chunk) for chunk in iterate_chunks(len(rows))), length, 2
        )
        return (batch.append_column("labels", batch["input_ids"]) for batch in found)

    def _encode_answers(self, rows: Rows, columns: Columns, tokenizer: Any, length: int) -> Iterator[pa.RecordBatch]:
        settings, template = self.settings, ChatTemplate(self.settings.template, tokenizer)
        room = settings.max_new_tokens if settings.generate else None
        for chunk in iterate_chunks(len(rows)):
            conversations = self._conversations(rows, columns, chunk)
            places = [rows.place(row) for row in chunk]
            found = [
                fit_to_length(
                    tokens, length, answered=is_answered(messages), room=room, on_all=settings.loss_on == "all"
                )
                for messages, tokens in zip(
                    conversations,
                    tokenize_conversations(conversations, places, template, tokenizer, append_end=settings.append_end),
                    strict=True,
                )
            ]
            lists = {"input_ids": [one.ids for one in found], "labels": [one.labels for one in found]}
            prompt_length = pa.array([one.prompt_length for one in found], pa.int32())
            yield features_of_rows(list(chunk), lists, prompt_length=prompt_length)

    def least_limits(self, features: pa.RecordBatch) -> np.ndarray:
        """(features,) the smallest `max_length` that truncates nothing, leaving room for generated answers."""
        lengths = pc.list_value_length(features["input_ids"]).to_numpy().astype(np.int64)
        if self.settings.rows not in ANSWERS or not self.settings.generate:
            return lengths
        return least_length(lengths, features["prompt_length"].to_numpy(), self.settings.max_new_tokens)

    def chat_template(self, tokenizer: Any) -> Any:
        """The template for prompts and answers, to be saved with the model; None if there are none."""
        return ChatTemplate(self.settings.template, tokenizer).source if self.settings.rows in ANSWERS else None

    def prompt_ids(self, cells: Mapping[str, Any], tokenizer: Any) -> list[int] | None:
        """The tokens that the model continues to answer a question; None if rows are texts, continued as they are."""
        kind, template = self.settings.rows, self.settings.template
        return question_ids(kind, cells, ChatTemplate(template, tokenizer), tokenizer) if kind in ANSWERS else None

    def to_predict(self, rows: Rows, columns: Columns) -> "CausalLm":
        """Answer prompts that all have no answer, whatever evaluations do."""
        if self.settings.rows not in ANSWERS or self.settings.generate:
            return self
        chunks = (self._conversations(rows, columns, chunk) for chunk in iterate_chunks(len(rows)))
        if any(is_answered(messages) for conversations in chunks for messages in conversations):
            return self
        return CausalLm(self.settings.model_copy(update={"generate": True}))

    def _conversations(self, rows: Rows, columns: Columns, chunk: range) -> list[list[Message]]:
        if self.settings.rows == "instructions":
            return instructions(rows, columns, chunk)
        return [[] if isinstance(one, str) else one for one in chats(rows, columns, chunk)]

    def _encode_examples(self, rows: Rows, columns: Columns, tokenizer: Any, length: int) -> Iterator[pa.RecordBatch]:
        end = [tokenizer.eos_token_id] if self.settings.append_end and tokenizer.eos_token_id is not None else []
        for chunk in iterate_chunks(len(rows)):
            encoded = tokenizer(texts(rows, columns["text"], chunk), return_attention_mask=False)["input_ids"]
            ids = [(one if one[-1:] == end else [*one, *end])[:length] for one in encoded]
            # A text of unknown signs has no token.
            kept = {row: one for row, one in zip(chunk, ids, strict=True) if one}
            lists = {"input_ids": list(kept.values()), "labels": list(kept.values())}
            yield features_of_rows(list(kept), lists)

    def _tokens(self, rows: Rows, columns: Columns, tokenizer: Any, chunk: range) -> Tokens:
        after, tail = self._separator(rows, tokenizer)
        found = [text + after for text in texts(rows, columns["text"], chunk)]
        encoded = tokenizer(found, add_special_tokens=False, return_attention_mask=False)["input_ids"]
        return tokens_of(chunk.start, [one + tail for one in encoded])

    def _separator(self, rows: Rows, tokenizer: Any) -> tuple[str, list[int]]:
        """Text added after every row before tokenising, and token ids added after it."""
        kind = self.settings.separator
        if kind == "auto":
            kind = "newline" if rows.continuous else "end_of_text"
        if kind == "newline":
            return "\n", []
        end = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
        return ("", [end]) if kind == "end_of_text" and end is not None else ("", [])

    def for_training(self, features: Iterator[pa.RecordBatch], facts: Facts) -> Iterator[pa.RecordBatch]:
        """Pack several examples into one feature."""
        return pack(features, facts["max_length"])

    def generation(self, tokenizer: Any) -> GenerationSettings:
        """The generation settings of the task."""
        return generation_settings(self.settings, tokenizer)

    def decode(
        self, outputs: Outputs, features: pa.Table, rows: Rows, columns: Columns, facts: Facts, tokenizer: Any
    ) -> Predictions:
        """Per row the mean loss of its targets; the generated text, else the most likely token at each target."""
        owner, labels = row_of_tokens(features), flat_values(features["labels"])
        is_target = labels != IGNORE
        is_target[list_starts(features["labels"])] = False  # nothing stands before a feature's first token
        owner, labels = owner[is_target], labels[is_target]
        token_loss = np.concatenate([*outputs["token_loss"], np.empty(0, np.float32)])[is_target].astype(np.float64)
        guess = np.concatenate([*outputs["token_prediction"], np.empty(0, np.int32)])[is_target]
        count = len(rows)
        loss, tokens = np.bincount(owner, token_loss, count), np.bincount(owner, minlength=count)
        correct = np.bincount(owner, guess == labels, count)
        writes = self.evaluates_by == "generate"
        ids = [part.tolist() for part in (outputs["generated"] if writes else group_by_row(guess, owner, count))]
        texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
        answers = self.settings.rows in ANSWERS
        table = {
            "prediction": pa.array([text.strip() for text in texts] if answers else texts, pa.string()),
            "actual": pa.array(self._actual_texts(rows, columns), pa.string()),
            **loss_table(loss, tokens),
        }
        if answers:
            table["source_text"] = pa.array(prompt_texts(features, tokenizer), pa.string())
        known = [text for text in table["actual"].to_pylist() if text is not None]
        documents = {SIGNATURES: signatures(known, SCORES)} if writes and known else {}
        return Predictions(pa.table(table), {"loss": (loss, tokens), "accuracy": (correct, tokens)}, documents)

    def _actual_texts(self, rows: Rows, columns: Columns) -> list[str | None]:
        every = range(len(rows))
        if self.settings.rows not in ANSWERS:
            return [*texts(rows, columns["text"])]
        return [one[-1]["content"] if is_answered(one) else None for one in self._conversations(rows, columns, every)]

    def sums_of(self, table: pa.Table, rows: Rows, columns: Columns) -> Sums:
        """See `RebuildsSums`."""
        return loss_sums(table)

    def learned_scores(self, train: pa.Table, held_out: pa.Table) -> dict[str, float]:
        """Those of guessing each token by how often it occurs, whatever stands before it."""
        return unigram_scores(train, held_out)

    def score(self, predictions: Predictions, facts: Facts) -> dict[str, float]:
        """Mean loss over all targets, its exponential, the share predicted correctly; scores of generated text."""
        kinds = SCORES if self.evaluates_by == "generate" else ()
        return measure(metrics_of_kinds(metrics_of("causal_lm"), kinds), predictions, facts, self.settings)


TASK = CausalLm
