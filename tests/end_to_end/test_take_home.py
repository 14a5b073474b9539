"""What people take home: predictions, evaluation, generated text, curves."""

import csv
import json
from pathlib import Path

import pytest
from end_to_end.burnish_process import Burnish, events_of, small_csv
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from backend.contract.run.events import DataLoaded, EvaluationFinished, ModelLoaded, RowsSkipped, StepFinished


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def train_to_use(burnish: Burnish) -> None:
    """A run that has learnt something: accuracy clearly above the trivial 0.5."""
    small_csv(burnish.home / "train.csv", "train", 560)
    small_csv(burnish.home / "validation.csv", "validation", 120)
    training = {"max_steps": None, "epochs": 2, "batch_size": 16, "learning_rate": 5e-4, "checkpoint_every": "epoch"}
    done = burnish(
        "train", str(burnish.spec(training=training, evaluation={"every": "epoch", "best_metric": "accuracy"}))
    )
    assert done.returncode == 0, done.stderr


def test_predictions_evaluation_a_second_prediction_and_curves_agree(burnish: Burnish):
    train_to_use(burnish)
    folder = burnish.run_folder()
    rows, inputs = table(folder.predictions()), table(burnish.home / "validation.csv")
    assert [row["text"] for row in rows] == [row["text"] for row in inputs]
    assert list(rows[0]) == [
        "text",
        "label",
        "source",
        "prediction",
        "actual",
        "probability_negative",
        "probability_positive",
    ]
    right = sum(row["prediction"] == row["label"] for row in rows) / len(rows)
    assert right > 0.7
    best = max(event.metrics["accuracy"] or 0 for event in events_of(folder) if isinstance(event, EvaluationFinished))
    assert right == pytest.approx(best)

    evaluated = burnish("evaluate", folder.name, "--data", "validation.csv", "--json")
    assert evaluated.returncode == 0, evaluated.stderr
    answer = json.loads(evaluated.stdout)
    assert answer["metrics"]["accuracy"] == pytest.approx(right)
    assert answer["rows"] == 120
    assert set(answer["timing"]) == {
        "seconds", "rows_per_second", "tokens_per_second", "startup_seconds", "compile_seconds",
    }  # fmt: skip

    unlabelled = burnish.home / "new.csv"
    with unlabelled.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([row["text"]] for row in inputs)])
    predicted = burnish("predict", str(folder.model), "--data", "new.csv", "--output", "out.csv")
    assert predicted.returncode == 0, predicted.stderr
    again = table(burnish.home / "out.csv")
    assert list(again[0]) == ["text", "prediction", "probability_negative", "probability_positive"]
    assert [row["prediction"] for row in again] == [row["prediction"] for row in rows]

    done = burnish("export", folder.name, "--csv", "curves.csv")
    assert done.returncode == 0, done.stderr
    losses = {event.step: event.loss for event in events_of(folder) if isinstance(event, StepFinished)}
    curves = {int(row["step"]): float(row["loss"]) for row in table(burnish.home / "curves.csv") if row["loss"]}
    assert curves == losses


@pytest.mark.slow
def test_files_in_utf_16_or_with_a_mark_are_read_and_none_is_text(burnish: Burnish):
    train, validation = burnish.home / "train.csv", burnish.home / "validation.csv"
    train.write_text(train.read_text(encoding="utf-8"), encoding="utf-16")
    text = validation.read_text(encoding="utf-8") + "None,positive,imdb\nNA,negative,imdb\nnull,positive,imdb\n"
    validation.write_text(text, encoding="utf-8-sig")
    assert burnish("train", str(burnish.spec())).returncode == 0
    rows = table(burnish.run_folder().predictions())
    assert next(iter(rows[0])) == "text"
    assert [row["text"] for row in rows][-3:] == ["None", "NA", "null"]


def test_rows_that_cannot_be_used_are_counted_and_listed_with_their_lines(burnish: Burnish):
    with (burnish.home / "train.csv").open("a", encoding="utf-8") as file:
        file.write(",positive,imdb\nno label,,imdb\n")
    assert burnish("train", str(burnish.spec())).returncode == 0
    events = events_of(burnish.run_folder())
    skipped = {event.reason: event.places for event in events if isinstance(event, RowsSkipped)}
    assert {reason: [place.rsplit("/", 1)[-1] for place in places] for reason, places in skipped.items()} == {
        "no text": ["train.csv:66"],
        "no label": ["train.csv:67"],
    }
    assert [event.skipped for event in events if isinstance(event, DataLoaded) and event.split == "train"] == [2]


@pytest.mark.slow
def test_a_head_that_the_checkpoint_lacks_is_drawn_and_said(burnish: Burnish):
    assert burnish("train", str(burnish.spec())).returncode == 0
    [loaded] = [event for event in events_of(burnish.run_folder()) if isinstance(event, ModelLoaded)]
    assert "classifier.weight" in loaded.new_weights
    config = json.loads((burnish.run_folder().model / "config.json").read_text())
    assert config["id2label"] == {"0": "negative", "1": "positive"}


def language_model(folder: Path, corpus: list[str]) -> None:
    """A configuration and a byte-level tokenizer trained on the spot; no weights."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"})
    )
    config = {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 400, "n_positions": 64, "n_embd": 32,
        "n_layer": 2, "n_head": 2, "eos_token_id": 0, "bos_token_id": 0,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.slow
def test_a_language_model_from_scratch_learns_predicts_and_continues(burnish: Burnish):
    lines = ["the cat sat on the mat", "the dog sat on the log"] * 200
    (burnish.home / "story.txt").write_text("\n".join(lines) + "\n")
    language_model(burnish.home / "lm", lines)
    spec = burnish.spec(
        task={"type": "causal_lm", "max_length": 32},
        model={"name_or_path": "lm", "initialise": "from_config"},
        data={"train": "story.txt", "validation": 0.1, "columns": {}},
        training={"max_steps": 80, "batch_size": 8, "learning_rate": 1e-2, "checkpoint_every": "never"},
        evaluation={"every": 40, "at_start": True},
    )
    done = burnish("train", str(spec))
    assert done.returncode == 0, done.stderr
    folder = burnish.run_folder()
    perplexity = [event.metrics["perplexity"] for event in events_of(folder) if isinstance(event, EvaluationFinished)]
    assert perplexity[0] > 300  # untrained: about as many as there are tokens
    assert perplexity[-1] < 2.5
    rows = table(folder.predictions())
    assert [row["text"] for row in rows] == lines[-40:]
    assert list(rows[0]) == ["text", "prediction", "actual", "loss", "tokens", "perplexity"]

    said = burnish("generate", folder.name, "--prompt", "the cat", "--max-new-tokens", "5")
    assert said.returncode == 0, said.stderr
    assert " sat on the" in said.stdout
    once, twice = (
        burnish("generate", folder.name, "--prompt", "the", "--sample", "--seed", "7", "--max-new-tokens", "8").stdout
        for _ in range(2)
    )
    assert once == twice
