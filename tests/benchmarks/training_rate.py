"""Measures training rows per second against a plain `transformers.Trainer`: `python tests/benchmarks/training_rate.py`.

Five alternated pairs on the demo's model and data, each run in a process of its own, with the same batch size, dtype,
epochs, learning rate and threads. A rate is the rows between the first and the last step over their seconds:
loading, evaluation and checkpoints are in neither. The Trainer's rows are tokenised before it starts.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "resources" / "demo"
BATCH, LEARNING_RATE, WARMUP, SEED = 16, 3e-4, 0.06, 42


def main() -> None:
    """Run the pairs and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--trainer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.trainer:
        print(json.dumps(train_with_trainer(arguments.epochs, arguments.threads)))
        return
    pairs = []
    for number in range(arguments.pairs):
        order = (run_burnish, run_trainer) if number % 2 == 0 else (run_trainer, run_burnish)
        found = {run: run(arguments.epochs, arguments.threads) for run in order}
        pairs.append((found[run_burnish], found[run_trainer]))
        print(
            f"pair {number + 1}: Burnish {pairs[-1][0]['rate']:.0f}, Trainer {pairs[-1][1]['rate']:.0f} rows/s",
            flush=True,
        )
    report(pairs, arguments.threads)


def report(pairs: list[tuple[dict, dict]], threads: int) -> None:
    """Medians, ratio, accuracies and the optimizers' names."""
    for side, name in enumerate(("Burnish", "Trainer")):
        rate = statistics.median(pair[side]["rate"] for pair in pairs)
        accuracy = statistics.median(pair[side]["accuracy"] for pair in pairs)
        print(f"{name}: {rate:.0f} rows/s, accuracy {accuracy:.4f}, {pairs[0][side]['optimizer']}")
    ratios = [burnish["rate"] / trainer["rate"] for burnish, trainer in pairs]
    print(f"ratio {statistics.median(ratios):.2f} (median of {len(pairs)} pairs, {min(ratios):.2f} to {max(ratios):.2f}); "
          f"float32, batch {BATCH}, {threads} threads")  # fmt: skip


def run_burnish(epochs: int, threads: int) -> dict:
    """One run by the command line, read back from its events."""
    with tempfile.TemporaryDirectory() as runs:
        changes = (
            f"training.epochs={epochs}", "training.checkpoint_every=never", "evaluation.every=never",
            "evaluation.best_metric=null", "hardware.device=cpu", "hardware.precision=float32",
            f"hardware.threads={threads}", f"hardware.micro_batch_size={BATCH}",
        )  # fmt: skip
        command = [sys.executable, "-P", "-m", "backend", "train", str(DEMO / "sentiment.yaml")]
        for change in changes:
            command += ["--set", change]
        environment = {**os.environ, "BURNISH_RUNS": runs, "HF_HUB_OFFLINE": "1"}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        lines = next(Path(runs).glob("*/events.jsonl")).read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    steps = [event for event in events if event["event"] == "StepFinished"][1:]
    rate = sum(step["rows"] for step in steps) / sum(step["seconds"] for step in steps)
    accuracy = next(
        event["metrics"]["accuracy"] for event in reversed(events) if event["event"] == "PredictionsWritten"
    )
    return {"rate": rate, "accuracy": accuracy, "optimizer": "fused AdamW, word embedding by rows"}


def run_trainer(epochs: int, threads: int) -> dict:
    """One run of the plain script, in a process of its own."""
    command = [sys.executable, __file__, "--trainer", "--epochs", str(epochs), "--threads", str(threads)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    ended = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(ended.stdout.splitlines()[-1])


def train_with_trainer(epochs: int, threads: int) -> dict:
    """The Trainer with its defaults but for what both sides share."""
    import torch
    import transformers

    torch.set_num_threads(threads)
    transformers.utils.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO / "bert-tiny")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        DEMO / "bert-tiny", dtype=torch.float32, num_labels=2
    )
    ends: list[float] = []

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, *given: object, **named: object) -> None:
            ends.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        settings = transformers.TrainingArguments(
            folder, per_device_train_batch_size=BATCH, num_train_epochs=epochs, learning_rate=LEARNING_RATE,
            warmup_steps=WARMUP, seed=SEED, use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        trainer = transformers.Trainer(
            model,
            settings,
            train_dataset=tokenised("train.csv", tokenizer),
            data_collator=transformers.DataCollatorWithPadding(tokenizer),
            callbacks=[Clock()],
        )
        trainer.train()
        validation = tokenised("validation.csv", tokenizer)
        found = trainer.predict(validation)
    accuracy = float((found.predictions.argmax(1) == [row["labels"] for row in validation]).mean())
    rate = BATCH * (len(ends) - 1) / (ends[-1] - ends[0])
    return {"rate": rate, "accuracy": accuracy, "optimizer": str(settings.optim.value)}


def tokenised(name: str, tokenizer) -> list[dict]:
    """The rows of a demo file as the model takes them."""
    with (DEMO / "sentiment" / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    encoded = tokenizer([row["text"] for row in rows], truncation=True, max_length=128, padding=False)
    labels = [int(row["label"] == "positive") for row in rows]
    return [{**{key: encoded[key][index] for key in encoded}, "labels": label} for index, label in enumerate(labels)]


if __name__ == "__main__":
    main()
