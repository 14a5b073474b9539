"""Measures the other side: a plain `transformers` script for each task, with Trainer and pipeline."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from task_data import BATCH, SEED, Material

BATCH_SIZES = (1, 8, 16, 32, 64, 128, 256)
Rows = list[dict[str, Any]]


def train(task: str, material: Material, threads: int, *, tuned: bool) -> float:
    """Rows per second between the Trainer's first and last step; `tuned` groups lengths and fuses the optimizer."""
    torch.set_num_threads(threads)
    transformers.utils.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(material.spec["model"]["name_or_path"])
    rows, model, collator = _READY[task.split("-")[0]](material, tokenizer)
    tuning = {"train_sampling_strategy": "group_by_length", "optim": "adamw_torch_fused"} if tuned else {}
    ends: list[float] = []

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, *given: object, **named: object) -> None:
            ends.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        settings = transformers.TrainingArguments(
            folder, per_device_train_batch_size=BATCH, num_train_epochs=1, seed=SEED, use_cpu=True, report_to=[],
            learning_rate=material.spec["training"]["learning_rate"], save_strategy="no", disable_tqdm=True,
            **tuning,
        )  # fmt: skip
        transformers.Trainer(model, settings, train_dataset=rows, data_collator=collator, callbacks=[Clock()]).train()
    return BATCH * (len(ends) - 1) / (ends[-1] - ends[0])


def predict(task: str, material: Material, folder: Path, threads: int) -> tuple[float, int]:
    """Rows per second of the model in `folder` over the test rows, texts in and answers out; the best batch size."""
    torch.set_num_threads(threads)
    transformers.utils.logging.set_verbosity_error()
    ask, rows = _ASKED[task](material, folder)
    ask(rows[:BATCH], BATCH)  # whatever is done once is done now
    rates = {}
    for size in BATCH_SIZES:
        started = time.perf_counter()
        ask(rows, size)
        rates[size] = len(rows) / (time.perf_counter() - started)
    best = max(rates, key=lambda size: rates[size])
    return rates[best], best


# Training


def _texts(path: Path) -> Rows:
    if path.suffix == ".csv":
        import csv

        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _sequence(material: Material, tokenizer: Any, score: bool) -> tuple[Rows, Any, Any]:
    rows = _texts(material.train)
    encoded = tokenizer([row["text"] for row in rows], truncation=True, max_length=128)
    labels = [float(row["score"]) if score else int(row["label"] == "positive") for row in rows]
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        material.spec["model"]["name_or_path"], dtype=torch.float32, num_labels=1 if score else 2
    )
    return _listed(encoded, labels), model, transformers.DataCollatorWithPadding(tokenizer)


def _listed(encoded: Any, labels: list[Any]) -> Rows:
    return [{**{key: encoded[key][row] for key in encoded}, "labels": label} for row, label in enumerate(labels)]


def _sentences(path: Path) -> list[list[list[str]]]:
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    return [[line.split("\t") for line in block.splitlines()] for block in blocks if block.strip()]


def _tokens(material: Material, tokenizer: Any) -> tuple[Rows, Any, Any]:
    sentences = _sentences(material.train)
    names = sorted({tag for sentence in sentences for _, tag in sentence})
    encoded = tokenizer(
        [[word for word, _ in one] for one in sentences], is_split_into_words=True, truncation=True, max_length=128
    )
    labels = []
    for number, sentence in enumerate(sentences):
        before, own = None, []
        for word in encoded.word_ids(number):
            own.append(-100 if word is None or word == before else names.index(sentence[word][1]))
            before = word
        labels.append(own)
    model = transformers.AutoModelForTokenClassification.from_pretrained(
        material.spec["model"]["name_or_path"], dtype=torch.float32, num_labels=len(names)
    )
    return _listed(encoded, labels), model, transformers.DataCollatorForTokenClassification(tokenizer)


def _paragraphs(path: Path) -> Rows:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    return [
        {"question": question["question"], "context": paragraph["context"], "answer": question["answers"][0]}
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]


def _windows(rows: Rows, tokenizer: Any) -> Any:
    return tokenizer(
        [row["question"] for row in rows], [row["context"] for row in rows], truncation="only_second", max_length=384,
        stride=128, return_overflowing_tokens=True, return_offsets_mapping=True,
    )  # fmt: skip


def _questions(material: Material, tokenizer: Any) -> tuple[Rows, Any, Any]:
    rows = _paragraphs(material.train)
    encoded = _windows(rows, tokenizer)
    starts, ends = [], []
    for number, row in enumerate(encoded["overflow_to_sample_mapping"]):
        first = rows[row]["answer"]["answer_start"]
        last = first + len(rows[row]["answer"]["text"])
        context = [place for place, part in enumerate(encoded.sequence_ids(number)) if part == 1]
        offsets = encoded["offset_mapping"][number]
        inside = [place for place in context if offsets[place][0] < last and offsets[place][1] > first]
        whole = inside and offsets[context[0]][0] <= first and offsets[context[-1]][1] >= last
        starts.append(inside[0] if whole else 0)
        ends.append(inside[-1] if whole else 0)
    kept = {key: encoded[key] for key in ("input_ids", "token_type_ids", "attention_mask")}
    features = [
        {**{key: kept[key][row] for key in kept}, "start_positions": starts[row], "end_positions": ends[row]}
        for row in range(len(starts))
    ]
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(
        material.spec["model"]["name_or_path"], dtype=torch.float32
    )
    return features, model, transformers.DataCollatorWithPadding(tokenizer)


def _choices(material: Material, tokenizer: Any) -> tuple[Rows, Any, Any]:
    rows = _texts(material.train)
    features = [
        {
            **tokenizer([row["context"]] * 4, [row[f"ending{k}"] for k in range(4)], truncation=True, max_length=128),
            "labels": row["label"],
        }
        for row in rows
    ]
    model = transformers.AutoModelForMultipleChoice.from_pretrained(
        material.spec["model"]["name_or_path"], dtype=torch.float32
    )
    return features, model, transformers.DataCollatorForMultipleChoice(tokenizer)


def _blocks(path: Path, tokenizer: Any, length: int, special: bool) -> Rows:
    lines = [line + "\n" for line in path.read_text(encoding="utf-8").split("\n")]
    ids = [one for each in tokenizer(lines, add_special_tokens=special)["input_ids"] for one in each]
    return [{"input_ids": ids[start : start + length]} for start in range(0, len(ids) - length, length)]


def _masked(material: Material, tokenizer: Any) -> tuple[Rows, Any, Any]:
    model = transformers.AutoModelForMaskedLM.from_pretrained(material.spec["model"]["name_or_path"])
    return _blocks(material.train, tokenizer, 128, True), model, transformers.DataCollatorForLanguageModeling(tokenizer)


def _language(material: Material, tokenizer: Any) -> tuple[Rows, Any, Any]:
    model = transformers.AutoModelForCausalLM.from_pretrained(material.spec["model"]["name_or_path"])
    tokenizer.pad_token = tokenizer.eos_token
    collator = transformers.DataCollatorForLanguageModeling(tokenizer, mlm=False)
    return _blocks(material.train, tokenizer, 256, False), model, collator


def _pairs(material: Material, tokenizer: Any) -> tuple[Rows, Any, Any]:
    rows = _texts(material.train)
    encoded = tokenizer([row["source"] for row in rows], truncation=True, max_length=64)
    labels = tokenizer(text_target=[row["target"] for row in rows], truncation=True, max_length=64)["input_ids"]
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(material.spec["model"]["name_or_path"])
    return _listed(encoded, labels), model, transformers.DataCollatorForSeq2Seq(tokenizer, model)


_READY: dict[str, Callable[[Material, Any], tuple[Rows, Any, Any]]] = {
    "text_classification": lambda material, tokenizer: _sequence(material, tokenizer, False),
    "text_regression": lambda material, tokenizer: _sequence(material, tokenizer, True),
    "token_classification": _tokens,
    "question_answering": _questions,
    "multiple_choice": _choices,
    "masked_lm": _masked,
    "causal_lm": _language,
    "seq2seq_lm": _pairs,
}

# Prediction: the pipeline where transformers 5 still has one for the task, else the plain loop of its examples.

Ask = Callable[[list[Any], int], object]


def _classified(material: Material, folder: Path) -> tuple[Ask, list[Any]]:
    pipeline = transformers.pipeline("text-classification", str(folder), device=-1)
    return lambda rows, size: list(pipeline(rows, batch_size=size, truncation=True)), [
        row["text"] for row in _texts(material.test)
    ]


def _tagged(material: Material, folder: Path) -> tuple[Ask, list[Any]]:
    pipeline = transformers.pipeline("token-classification", str(folder), device=-1)
    texts = [" ".join(word for word, _ in sentence) for sentence in _sentences(material.test)]
    return lambda rows, size: list(pipeline(rows, batch_size=size)), texts


def _answered(material: Material, folder: Path) -> tuple[Ask, list[Any]]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(folder).eval()

    def ask(rows: list[Any], size: int) -> list[str]:
        encoded = _windows(rows, tokenizer)
        features = [
            {key: encoded[key][row] for key in ("input_ids", "token_type_ids", "attention_mask")}
            for row in range(len(encoded["input_ids"]))
        ]
        starts, ends = [], []
        for batch in _batches(features, size):
            found = _forward(model, tokenizer.pad(batch, return_tensors="pt"))
            starts.extend(found.start_logits.numpy())
            ends.extend(found.end_logits.numpy())
        return _best_answers(rows, encoded, starts, ends)

    return ask, _paragraphs(material.test)


def _best_answers(rows: list[Any], encoded: Any, starts: list[Any], ends: list[Any]) -> list[str]:
    """What the examples' script makes of the logits: the 20 best of 20 starts by 20 ends of each window, by softmax."""
    found: list[list[dict[str, Any]]] = [[] for _ in rows]
    for number, row in enumerate(encoded["overflow_to_sample_mapping"]):
        offsets, parts = encoded["offset_mapping"][number], encoded.sequence_ids(number)
        inside = [place if part == 1 else None for place, part in zip(offsets, parts, strict=True)]
        best_starts, best_ends = (np.argsort(each[number])[-1:-21:-1].tolist() for each in (starts, ends))
        for start in best_starts:
            for end in best_ends:
                if max(start, end) >= len(inside) or not inside[start] or not inside[end] or not 0 <= end - start < 30:
                    continue
                span, score = (inside[start][0], inside[end][1]), starts[number][start] + ends[number][end]
                found[row].append({"span": span, "score": score})
    texts = []
    for row, candidates in zip(rows, found, strict=True):
        best = sorted(candidates, key=lambda each: each["score"], reverse=True)[:20]
        exponents = np.exp(np.array([each["score"] for each in best]) - best[0]["score"])
        for each, chance in zip(best, exponents / exponents.sum(), strict=True):
            each |= {"text": row["context"][slice(*each["span"])], "probability": chance}
        texts.append(best[0]["text"])
    return texts


def _chosen(material: Material, folder: Path) -> tuple[Ask, list[Any]]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMultipleChoice.from_pretrained(folder).eval()

    def ask(rows: list[Any], size: int) -> None:
        for batch in _batches(rows, size):
            flat = tokenizer(
                [row["context"] for row in batch for _ in range(4)], [row[f"ending{k}"] for row in batch for k in range(4)],
                truncation=True, max_length=128, padding=True, return_tensors="pt",
            )  # fmt: skip
            _forward(model, {key: values.view(len(batch), 4, -1) for key, values in flat.items()})

    return ask, _texts(material.test)


def _translated(material: Material, folder: Path) -> tuple[Ask, list[Any]]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    def ask(rows: list[Any], size: int) -> None:
        for batch in _batches(rows, size):
            encoded = tokenizer(batch, truncation=True, max_length=64, padding=True, return_tensors="pt")
            with torch.inference_mode():
                ids = model.generate(**encoded, max_new_tokens=32, do_sample=False, num_beams=1)
            tokenizer.batch_decode(ids, skip_special_tokens=True)

    return ask, [row["source"] for row in _texts(material.test)]


def _forward(model: Any, batch: Any) -> Any:
    with torch.inference_mode():
        return model(**batch)


def _batches(rows: list[Any], size: int) -> Iterator[list[Any]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


_ASKED: dict[str, Callable[[Material, Path], tuple[Ask, list[Any]]]] = {
    "text_classification": _classified,
    "text_regression": _classified,
    "token_classification": _tagged,
    "question_answering": _answered,
    "multiple_choice": _chosen,
    "seq2seq_lm": _translated,
}


def is_asked(task: str) -> bool:
    """Whether there is something to compare prediction with: nobody ships a scorer of texts for language models."""
    return task in _ASKED
