"""Trains on a GPU what Burnish trains with Trainer, TRL's SFT and a plain compiled loop, for `on_a_gpu.py`."""

import importlib
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from tests.benchmarks.planned_memory import LORA, Case

ON_GPU = torch.cuda.is_available()
DEVICE, HALF = ("cuda", torch.bfloat16) if ON_GPU else ("cpu", torch.float32)


def wait() -> None:
    """Until the GPU has computed everything."""
    if ON_GPU:
        torch.cuda.synchronize()


def _read_rows(case: Case, place: Path) -> list[dict[str, Any]]:
    from transformers import AutoTokenizer

    rows = [json.loads(line) for line in (place / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    tokenizer = AutoTokenizer.from_pretrained(place / "model")
    ids = tokenizer([row["text"] for row in rows], truncation=True, max_length=case.length)["input_ids"]
    labels = [{"labels": int(row["label"] == "b")} if "label" in row else {} for row in rows]
    return [{"input_ids": one, **label} for one, label in zip(ids, labels, strict=True)]


def _collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A batch; a mask that would mask nothing, which costs a decoder the fast attention, is left out."""
    texts = [torch.tensor(row["input_ids"]) for row in rows]
    ids = pad_sequence(texts, batch_first=True)
    mask = pad_sequence([torch.ones_like(text) for text in texts], batch_first=True)
    labels = torch.tensor([row["labels"] for row in rows]) if "labels" in rows[0] else ids.clone()
    return {"input_ids": ids, "labels": labels} | ({} if mask.all() else {"attention_mask": mask})


def _load_model(case: Case, place: Path) -> Any:
    import transformers

    transformers.utils.logging.set_verbosity_error()
    kind = "AutoModelForCausalLM" if case.task == "causal_lm" else "AutoModelForSequenceClassification"
    kind, options = getattr(transformers, kind), {"dtype": torch.float32, "device_map": {"": 0 if ON_GPU else "cpu"}}
    if "adapter" not in case.spec:
        return kind.from_pretrained(place / "model", **options).train()
    options["dtype"], nf4 = HALF, {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}  # fmt: skip
    options["quantization_config"] = transformers.BitsAndBytesConfig(**nf4, bnb_4bit_compute_dtype=HALF)
    peft = importlib.import_module("peft")
    lora = peft.LoraConfig(r=LORA["rank"], target_modules=LORA["targets"], task_type="CAUSAL_LM")
    return peft.get_peft_model(kind.from_pretrained(place / "model", **options).train(), lora)


class _Clock:
    """Rows per second of the last two thirds of the steps, of whose ends it is told."""

    def __init__(self, case: Case) -> None:
        self._case, self._first, self.rate, self._skipped = case, 0.0, 0.0, case.steps // 3

    def note(self, step: int) -> None:
        if step in (self._skipped, self._case.steps):
            wait()
            now, before, self._first = time.perf_counter(), self._first, time.perf_counter()
            self.rate = (step - self._skipped) * self._case.batch_size / (now - before)


def train_loop(case: Case, place: Path) -> float:
    """Rows per second of a loop as one writes it, with what makes PyTorch fast."""
    model, clock = _load_model(case, place), _Clock(case)
    for module in model.modules() if ON_GPU else ():
        if isinstance(module, torch.nn.ModuleList):  # the layers: one is compiled, and the others use the same program
            for layer in module:
                layer.compile(dynamic=True if case.shortest else None)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=True)
    batches = torch.utils.data.DataLoader(_read_rows(case, place), case.batch_size, collate_fn=_collate, pin_memory=ON_GPU)  # fmt: skip
    for step, batch in enumerate(batches, 1):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=ON_GPU):
            loss = model(**{name: each.to(DEVICE, non_blocking=True) for name, each in batch.items()}).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        clock.note(step)
    return clock.rate


def train_trainer(case: Case, place: Path, **options: Any) -> float:
    """Rows per second of Trainer with its defaults, or of TRL's with these options."""
    import transformers

    clock, rows = _Clock(case), _read_rows(case, place)
    note = lambda callback, given, state, *_, **__: clock.note(state.global_step)  # noqa: E731
    noting = type("Noting", (transformers.TrainerCallback,), {"on_step_end": note})()
    kind, settings, other = transformers.Trainer, transformers.TrainingArguments, {}
    if options:
        kind, settings = (getattr(importlib.import_module("trl"), name) for name in ("SFTTrainer", "SFTConfig"))
        rows = importlib.import_module("datasets").Dataset.from_list(rows)
        other = {"processing_class": transformers.AutoTokenizer.from_pretrained(place / "model")}
    arguments = settings(
        str(place / "rival"), per_device_train_batch_size=case.batch_size, max_steps=case.steps, bf16=ON_GPU, use_cpu=not ON_GPU,
        learning_rate=1e-4, save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True, remove_unused_columns=False,
        **options,
    )  # fmt: skip
    model = _load_model(case, place)
    kind(model, arguments, train_dataset=rows, data_collator=_collate, callbacks=[noting], **other).train()
    return clock.rate


def train_sft(case: Case, place: Path) -> float:
    """Rows per second of TRL's trainer of language models."""
    return train_trainer(case, place, max_length=case.length, gradient_checkpointing=False)
