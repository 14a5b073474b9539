"""Measures how true the planned memory of a run is: for runs of different shape, what was planned beside what it then took.

    python -m tests.benchmarks.planned_memory [CASE ...] [--held-back] [--engine jax] [--folder DIR] [--again]

Each case builds a model with random weights and a tokenizer of whole words, asks `burnish plan` for the memory, and
trains a few steps as `burnish train` does, each with an evaluation and a checkpoint. What counts is the most that the
engine process ever had resident (`VmHWM`, but without pages of the run's own files, which leave memory once they are
written), beside the sum of the plan's parts; of several processes, the one that has most. With `--folder`, what was measured is kept there,
and `--again` only plans anew. Linux only, where a process says what its peak was.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from backend.commands import new_run
from backend.contract import spec_file
from backend.contract.rpc.plan import RunPlan
from backend.contract.run.event_summary import landmarks
from backend.contract.run.events import StageStarted
from backend.hardware.devices import list_devices
from backend.preflight import checks, cost, resolve

MB = 1e6
LOWEST, HIGHEST = 0.95, 1.15
"""Planned ÷ real, within which a plan counts as true."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SMALL = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6, "num_attention_heads": 12}
BASE = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
LLAMA = {
    "hidden_size": 640, "intermediate_size": 1728, "num_hidden_layers": 8, "num_attention_heads": 10,
    "num_key_value_heads": 5,
}  # fmt: skip
WIDE_LLAMA = {
    "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 10, "num_attention_heads": 16,
    "num_key_value_heads": 8,
}  # fmt: skip
LORA = {"type": "lora", "rank": 16, "targets": "all-linear"}


@dataclass(frozen=True)
class Case:
    """A run: its task, the model's configuration, and what its spec changes."""

    task: str
    model_type: str
    config: dict[str, Any]
    vocabulary: int
    length: int
    """Tokens of each row, or of the longest ones."""
    batch_size: int
    spec: dict[str, Any] = field(default_factory=dict)
    steps: int = 2
    evaluated: int = 8
    """Rows of the evaluation."""
    held_back: bool = False
    """Whether the planner was corrected without looking at this case."""
    shortest: int = 0
    """Tokens of the shortest rows that are trained on, if not all have the same length."""


CASES = {
    "22 M, classification": Case("text_classification", "bert", SMALL, 30_522, 128, 24, evaluated=64),
    "110 M, tokens": Case("token_classification", "bert", BASE, 30_522, 128, 6),
    "22 M, questions, 384 tokens": Case("question_answering", "bert", SMALL, 30_522, 384, 8),
    "33 M, regression of pairs": Case("text_regression", "bert", {**SMALL, "num_hidden_layers": 12}, 30_522, 64, 32, evaluated=64),
    "125 M, masked words": Case("masked_lm", "roberta", {**BASE, "num_hidden_layers": 6}, 50_265, 128, 8),
    "T5, 60 M": Case(
        "seq2seq_lm", "t5", {"d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "d_kv": 64}, 32_128, 64, 12
    ),
    "Marian, 78 M": Case(
        "seq2seq_lm", "marian",
        {"d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 8,
         "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}, 65_001, 48, 12,
    ),
    "GPT-2, 82 M": Case("causal_lm", "gpt2", {"n_embd": 768, "n_layer": 6, "n_head": 12}, 50_257, 256, 4),
    "Llama, 76 M, packed": Case("causal_lm", "llama", LLAMA, 32_000, 100, 3, {"task.packing": True, "task.rows": "examples", "task.max_length": 512}),
    "Llama, LoRA in bfloat16": Case(
        "causal_lm", "llama", LLAMA, 32_000, 256, 4,
        {"adapter": LORA, "model.weights": "bfloat16", "hardware.precision": "bfloat16"},
    ),
    "Llama, LoRA in float32": Case("causal_lm", "llama", LLAMA, 32_000, 256, 4, {"adapter": LORA}),
    "Llama, QLoRA": Case("causal_lm", "llama", LLAMA, 32_000, 256, 4, {"adapter": LORA, "model.weights": "nf4"}),
    "Llama, QLoRA, autocast": Case(
        "causal_lm", "llama", LLAMA, 32_000, 256, 4,
        {"adapter": LORA, "model.weights": "nf4", "hardware.precision": "bfloat16"},
    ),
    "Llama, LoRA on int8": Case("causal_lm", "llama", LLAMA, 32_000, 256, 4, {"adapter": LORA, "model.weights": "int8"}),
    "110 M, checkpointing, 512 tokens": Case(
        "text_classification", "bert", BASE, 30_522, 512, 3, {"training.gradient_checkpointing": True}
    ),
    "Llama, 2,048 tokens": Case("causal_lm", "llama", {**LLAMA, "num_hidden_layers": 4}, 32_000, 2048, 1),
    "Llama, QLoRA, checkpointing, 1,024 tokens": Case(
        "causal_lm", "llama", LLAMA, 32_000, 1024, 1,
        {"adapter": LORA, "model.weights": "nf4", "training.gradient_checkpointing": True},
    ),
    "Gemma 3, 256,000 words": Case(
        "causal_lm", "gemma3_text",
        {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6, "num_attention_heads": 4,
         "num_key_value_heads": 1, "head_dim": 96}, 256_000, 256, 2,
    ),
    "Gemma 3, QLoRA": Case(
        "causal_lm", "gemma3_text",
        {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6, "num_attention_heads": 4,
         "num_key_value_heads": 1, "head_dim": 96}, 256_000, 256, 2, {"adapter": LORA, "model.weights": "nf4"},
    ),
    "66 M, full, bfloat16": Case(
        "text_classification", "bert", {**BASE, "num_hidden_layers": 6}, 30_522, 256, 4, {"hardware.precision": "bfloat16"}
    ),
    **{
        f"Llama, 136 M, {count} processes, {strategy}": Case(
            "causal_lm", "llama", WIDE_LLAMA, 8_000, 128, 6,
            {"hardware.processes": count, "hardware.strategy": strategy, "hardware.threads": 1, "training.checkpoint_every": 2},
        )
        for count, strategy in ((2, "ddp"), (2, "fsdp"), (3, "fsdp"))
    },
    "66 M, full, weights in bfloat16": Case(
        "text_classification", "bert", {**BASE, "num_hidden_layers": 6}, 30_522, 256, 4,
        {"hardware.precision": "bfloat16", "training.master_weights": "bfloat16_stochastic"},
    ),
    "ModernBERT, 1,024 tokens": Case(
        "text_classification", "modernbert",
        {"hidden_size": 512, "intermediate_size": 768, "num_hidden_layers": 8, "num_attention_heads": 8}, 50_368, 1024, 2,
        held_back=True,
    ),
    "ELECTRA, choices": Case(
        "multiple_choice", "electra", {**SMALL, "embedding_size": 128}, 30_522, 96, 6, held_back=True
    ),
    "Qwen 2, QLoRA, autocast, 768 tokens": Case(
        "causal_lm", "qwen2", {**LLAMA, "num_hidden_layers": 8}, 64_000, 768, 2,
        {"adapter": LORA, "model.weights": "nf4", "hardware.precision": "bfloat16"}, held_back=True,
    ),
    "DistilBERT, Adafactor, frozen embeddings": Case(
        "token_classification", "distilbert", {"dim": 768, "hidden_dim": 3072, "n_layers": 6, "n_heads": 12}, 30_522, 200, 8,
        {"training.optimizer": "adafactor", "model.frozen": ["embeddings"]}, held_back=True,
    ),
}  # fmt: skip


def main() -> None:
    """Print a line for each case, and how many plans are true."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="a part of a case's name; all if there is none")
    parser.add_argument("--held-back", action="store_true", help="only the cases by which nothing was corrected")
    parser.add_argument("--engine", default="torch", choices=("torch", "jax"), help="the engine that trains")
    parser.add_argument("--folder", type=Path, help="where models, plans and what was measured are kept")
    parser.add_argument("--again", action="store_true", help="plan again, with what was measured in the folder before")
    arguments = parser.parse_args()
    wanted = {
        name: replace(case, spec={"hardware.engine": arguments.engine, **case.spec})
        for name, case in CASES.items()
        if case.held_back == arguments.held_back
        and (not arguments.cases or any(part in name for part in arguments.cases))
    }
    with tempfile.TemporaryDirectory(prefix="burnish-planned-memory-") as place:
        os.environ["BURNISH_CACHE"] = str(Path(place) / "cache")
        _compare(wanted, arguments.folder or Path(place), again=arguments.again)


def _compare(cases: dict[str, Case], folder: Path, *, again: bool) -> None:
    print("| run | planned | real | planned ÷ real | most in |")
    print("|---|---|---|---|---|")
    true = 0
    for name, case in cases.items():
        place = folder / "".join(letter if letter.isalnum() else "-" for letter in name)
        spec = build(case, place)
        plan = _plan(spec)
        kept = place / "measured.json"
        measured = json.loads(kept.read_text()) if again and kept.is_file() else _train(spec, place)
        kept.write_text(json.dumps(measured))
        planned = plan.memory_mb
        ratio = planned / measured["peak_mb"]
        true += LOWEST <= ratio <= HIGHEST
        print(
            f"| {name} | {planned:,.0f} MB | {measured['peak_mb']:,.0f} MB | {ratio:.2f} | {measured['stage']} |",
            flush=True,
        )
        parts = ", ".join(f"{part.name} {part.megabytes:,.0f}" for part in plan.memory)
        stages = ", ".join(f"{stage} {most:,.0f}" for stage, most in measured["stages"].items())
        print(
            f"    planned ({plan.longest} tokens, {plan.micro_batch_size} rows): {parts}\n    real: {stages}",
            file=sys.stderr,
            flush=True,
        )
    print(f"\n{true} of {len(cases)} plans are at most 5 % below and 15 % above the real peak.")


# What a run is made of


def build(case: Case, folder: Path) -> Path:
    """The model, the data and the spec of a case in this folder, unless they are there."""
    spec = folder / "spec.json"
    known = folder / "case.json"
    wanted = json.dumps(asdict(case))
    if spec.is_file() and known.is_file() and known.read_text() == wanted:
        return spec
    folder.mkdir(parents=True, exist_ok=True)
    data = {split: _rows(case, folder / f"{split}.jsonl", seed) for seed, split in enumerate(("train", "validation"))}
    values = {
        "task": {"type": case.task, "max_length": case.length},
        "model": {"name_or_path": str(_model(case, folder / "model"))},
        "data": data,
        "training": {
            "max_steps": case.steps, "batch_size": case.batch_size, "learning_rate": 1e-4,
            "checkpoint_every": 1,
        },
        "evaluation": {"every": 1},
        "hardware": {"device": "cpu"},
    }  # fmt: skip
    if case.model_type == "qwen2":  # transformers would read the words with a tokenizer of its own
        _tokenizer(case, folder / "words")
        values["model"]["tokenizer"] = str(folder / "words")
    if case.task == "seq2seq_lm":
        values["task"] |= {"max_target_length": case.length, "max_new_tokens": 4}
    spec.write_text(json.dumps(spec_file.set_values(values, case.spec)))
    known.write_text(wanted)
    return spec


def _model(case: Case, folder: Path) -> Path:
    """A model with random weights and a tokenizer that knows as many words as the model."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

    _tokenizer(case, folder)
    positions = {"gpt2": "n_positions", "t5": "n_positions"}.get(case.model_type, "max_position_embeddings")
    config = AutoConfig.for_model(
        case.model_type, vocab_size=case.vocabulary, pad_token_id=0, bos_token_id=2, eos_token_id=3,
        decoder_start_token_id=0, **{positions: 4096, **case.config},
    )  # fmt: skip
    auto = {"causal_lm": AutoModelForCausalLM, "seq2seq_lm": AutoModelForSeq2SeqLM}
    torch.manual_seed(1)
    model = auto.get(case.task, AutoModelForMaskedLM).from_config(config)
    if case.spec.get("hardware.precision") == "bfloat16" and case.spec.get("adapter"):
        model = model.bfloat16()
    model.save_pretrained(folder)
    return folder


def _tokenizer(case: Case, folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = [*SPECIAL, *(f"w{number}" for number in range(case.vocabulary - len(SPECIAL)))]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # type: ignore[assignment]
    if case.task == "seq2seq_lm":
        tokenizer.post_processor = processors.TemplateProcessing("$A [SEP]", "$A $B [SEP]", [("[SEP]", 3)])  # type: ignore[assignment]
    elif case.task != "causal_lm":
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))  # type: ignore[assignment]
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", bos_token="[CLS]", eos_token="[SEP]",
    ).save_pretrained(folder)  # fmt: skip


def _rows(case: Case, path: Path, seed: int) -> str:
    """As many rows as all steps read, or for an evaluation a part of them; each as long as the limit allows."""
    rng = np.random.default_rng(seed)
    count = (
        case.batch_size * case.steps * (6 if case.spec.get("task.packing") else 1)
        if seed == 0
        else 80
        if case.length < 100 or case.config is SMALL
        else 16
    )

    def text(words: int) -> str:
        return " ".join(f"w{number}" for number in rng.integers(0, case.vocabulary - len(SPECIAL), words))

    lengths = rng.integers(case.shortest, case.length + 1, count) if case.shortest else [case.length] * count
    rows = [_ROW[case.task](text, int(length), number) for number, length in enumerate(lengths)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


_Text = Callable[[int], str]


def _tokens(text: _Text, length: int, number: int) -> dict[str, Any]:
    words = text(length - 2).split()
    return {"tokens": words, "tags": ["B-A" if place % 7 == number % 7 else "O" for place in range(len(words))]}


def _question(text: _Text, length: int, number: int) -> dict[str, Any]:
    context = text(length - 20).split()
    place = number % 30
    start = len(" ".join(context[:place])) + (place > 0)
    answers = {"text": [context[place]], "answer_start": [start]}
    return {"id": str(number), "question": text(10), "context": " ".join(context), "answers": answers}


_ROW: dict[str, Callable[[_Text, int, int], dict[str, Any]]] = {
    "text_classification": lambda text, length, number: {"text": text(length - 2), "label": "ab"[number % 2]},
    "text_regression": lambda text, length, number: {
        "sentence1": text(length // 2 - 2), "sentence2": text(length // 2 - 2), "label": number % 5 + 0.5,
    },
    "token_classification": _tokens,
    "question_answering": _question,
    "masked_lm": lambda text, length, number: {"text": text(length - 2)},
    "causal_lm": lambda text, length, number: {"text": text(length)},
    "seq2seq_lm": lambda text, length, number: {"source": text(length - 2), "target": text(length - 2)},
    "multiple_choice": lambda text, length, number: {
        "context": text(length // 2 - 2), **{f"ending{place}": text(length // 2 - 2) for place in range(4)}, "label": number % 4,
    },
}  # fmt: skip


# What it took


def _train(spec: Path, folder: Path) -> dict[str, Any]:
    """The peak of the engine process, in all and in each stage."""
    prepared = checks.check(resolve.read_spec(spec))
    run = new_run.write_run(prepared, folder / f"run-{time.time_ns()}")
    process = new_run.start(run, prepared.spec)
    seen: list[tuple[float, float]] = []
    peak, has_written = 0.0, False
    while process.poll() is None:
        time.sleep(0.02)
        record = run.process_record()
        for now in _memories(record.engine_pid, run.path) if record is not None else ():
            has_written = has_written or now.written > 0
            peak = max(peak, now.resident if has_written else now.peak)
            seen.append((time.time(), now.resident))
    told = landmarks(run.events)
    if getattr(told[-1], "state", "") != "finished":
        sys.exit(f"{run.path} did not finish: {told[-1]}")
    starts = [(one.time, one.stage) for one in told if isinstance(one, StageStarted)]
    stages: dict[str, float] = {}
    for moment, resident in seen:
        stage = next((name for start, name in reversed(starts) if start <= moment), "starting")
        stages[stage] = max(stages.get(stage, 0.0), resident)
    shutil.rmtree(run.path)
    return {"peak_mb": peak, "stages": stages, "stage": max(stages, key=lambda name: stages[name])}


def _memories(process: int, run: Path) -> Iterator["_Memory"]:
    """What the engine process has, or each of those that it has started to train together."""
    with suppress(psutil.NoSuchProcess):
        together = [one.pid for one in psutil.Process(process).children() if "--rank" in one.cmdline()]
        yield from filter(None, (_memory(one, run) for one in together or [process]))


class _Memory(NamedTuple):
    """What a process has resident in megabytes, the most that it ever had, and what it has of files that it writes."""

    resident: float
    """Without these files: their pages leave memory once they are on the disk."""
    peak: float
    written: float


def _memory(process: int, run: Path) -> _Memory | None:
    """None if the process is gone."""
    place = Path(f"/proc/{process}")
    try:
        if str(run) in (place / "maps").read_text():
            return _by_files((place / "smaps").read_text(), run)
        lines = (place / "status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = {name: line.split()[1] for line in lines if (name := line.partition(":")[0]) in ("VmHWM", "VmRSS")}
    resident, peak = (int(found.get(name, 0)) * 1024 / MB for name in ("VmRSS", "VmHWM"))
    return _Memory(resident, peak, written=0.0) if resident else None


def _by_files(maps: str, run: Path) -> _Memory:
    """What a process has resident, told apart by whether it is of the run's own files."""
    other, written, is_ours = 0, 0, False
    for line in maps.splitlines():
        if "-" in line.partition(" ")[0]:
            is_ours = str(run) in line
        elif line.startswith("Rss:"):
            pages = int(line.split()[1])
            other, written = other + (not is_ours) * pages, written + is_ours * pages
    return _Memory(other * 1024 / MB, other * 1024 / MB, written * 1024 / MB)


def _plan(spec: Path) -> RunPlan:
    settings = resolve.read_spec(spec)
    return cost.plan(settings, list_devices(settings.hardware.engine))


if __name__ == "__main__":
    main()
