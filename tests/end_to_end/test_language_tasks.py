"""Instructions, hidden words and multiple choice from the command line: a world of four animals and their colours."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest
from end_to_end.burnish_process import Burnish
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

COLOURS = {"cat": "red", "dog": "blue", "fox": "green", "owl": "gold"}
CHANCE = 1 / len(COLOURS)


def animals(count: int, seed: int = 0) -> list[str]:
    return random.Random(seed).choices(list(COLOURS), k=count)


def write_csv(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def question(animal: str) -> str:
    return f"Which colour has the {animal}?"


def answer(animal: str) -> str:
    return f"The {animal} is {COLOURS[animal]}."


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    """A GPT-2 that has learnt nothing, with a tokenizer of these few sentences."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([f"User: {question(a)}\nAssistant: {answer(a)}\n" for a in COLOURS] * 3, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")
    folder = tmp_path / "writer"
    tokenizer.save_pretrained(folder)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_embd=64, n_layer=2, n_head=2, n_positions=96, bos_token_id=0, eos_token_id=0
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def trained(burnish: Burnish, **sections: Any) -> Path:
    """The folder of a run that has ended well."""
    data = {"train": "train.csv", "validation": 0.1, "columns": {}}
    evaluation = {"every": "never"} | sections.pop("evaluation", {})
    training = {"checkpoint_every": "never", "warmup": 0.1} | sections.pop("training")
    done = burnish(
        "train", str(burnish.spec(data=data, evaluation=evaluation, training=training, **sections))
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return burnish.run_folder().path


def measured(burnish: Burnish, run: Path, file: str) -> dict[str, float]:
    done = burnish("evaluate", str(run), "--data", file, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["metrics"]


@pytest.mark.slow
def test_packed_instructions_teach_to_answer(burnish: Burnish, writer: Path):
    rows = [[question(a), answer(a)] for a in animals(200)]
    write_csv(burnish.home / "train.csv", ["prompt", "response"], rows)
    run = trained(
        burnish,
        task={"type": "causal_lm", "rows": "instructions", "max_length": 64, "packing": True, "generate": True, "max_new_tokens": 16},
        model={"name_or_path": str(writer)},
        training={"max_steps": 150, "epochs": 100, "batch_size": 8, "learning_rate": 3e-3},
    )  # fmt: skip
    write_csv(burnish.home / "asked.csv", ["prompt"], [[question(a)] for a in COLOURS])
    write_csv(burnish.home / "held.csv", ["prompt", "response"], [[question(a), answer(a)] for a in COLOURS])

    predicted = burnish("predict", str(run), "--data", "asked.csv", "--output", "out.csv")
    assert predicted.returncode == 0, predicted.stderr
    found = read_csv(burnish.home / "out.csv")
    assert [row["prediction"] for row in found] == [answer(a) for a in COLOURS]
    assert list(found[0]) == ["prompt", "prediction", "loss", "tokens", "perplexity", "source_text"]
    assert found[0]["source_text"] == f"User: {question('cat')}\nAssistant:"
    assert measured(burnish, run, "held.csv")["exact_match"] == 1.0
    saved = json.loads((run / "model" / "tokenizer_config.json").read_text(encoding="utf-8"))
    template = saved.get("chat_template") or (run / "model" / "chat_template.jinja").read_text(encoding="utf-8")
    assert "Assistant:" in template


@pytest.mark.slow
def test_hidden_words_are_found_again_and_masks_filled(burnish: Burnish):
    write_csv(burnish.home / "train.csv", ["text"], [[f"the {a} is {COLOURS[a]}"] for a in animals(400)])
    run = trained(
        burnish,
        task={"type": "masked_lm", "rows": "examples", "max_length": 32, "mask_probability": 0.3},
        training={"max_steps": 400, "epochs": 100, "batch_size": 16, "learning_rate": 1e-3},
    )
    write_csv(burnish.home / "open.csv", ["text"], [[f"the {a} is [MASK]"] for a in COLOURS])

    predicted = burnish("predict", str(run), "--data", "open.csv", "--output", "out.csv")
    assert predicted.returncode == 0, predicted.stderr
    found = read_csv(burnish.home / "out.csv")
    likeliest = [json.loads(row["fills"])[0][0]["token"] for row in found]
    assert likeliest == list(COLOURS.values())
    assert [row["prediction"] for row in found] == [f"the {a} is {COLOURS[a]}" for a in COLOURS]
    # The same masks are drawn for the same data and seed, so that an evaluation can be repeated.
    assert measured(burnish, run, "train.csv") == measured(burnish, run, "train.csv")


@pytest.mark.slow
def test_the_right_choice_is_learnt(burnish: Burnish):
    colours = list(COLOURS.values())
    rows = [[f"there is the {a}", "it is", *colours, str(colours.index(COLOURS[a]) + 1)] for a in animals(300)]
    header = ["sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label"]
    write_csv(burnish.home / "train.csv", header, rows)
    run = trained(
        burnish,
        task={"type": "multiple_choice", "max_length": 32},
        training={"max_steps": 150, "epochs": 100, "batch_size": 16, "learning_rate": 5e-4},
    )
    found = read_csv(run / "predictions.csv")
    right = sum(row["prediction"] == row["actual"] for row in found) / len(found)
    assert right > 2 * CHANCE
    assert {row["actual"] for row in found} <= {"1", "2", "3", "4"}
    assert list(found[0])[-6:] == ["prediction", "actual", *(f"probability_{number}" for number in range(4))]


@pytest.mark.slow
def test_a_tokenizer_without_a_mask_is_refused_in_one_sentence(burnish: Burnish, writer: Path):
    write_csv(burnish.home / "train.csv", ["text"], [["the cat is red"]] * 20)
    data = {"train": "train.csv", "validation": None, "columns": {}}
    spec = burnish.spec(
        task={"type": "masked_lm", "max_length": 32},
        model={"tokenizer": str(writer)},
        data=data, evaluation={"every": "never"},
    )  # fmt: skip
    done = burnish("train", str(spec))
    assert done.returncode != 0
    assert "this tokenizer has no mask token" in done.stderr.strip().splitlines()[-1]
