"""Question answering from the command line: training, measuring and predicting, with plain heads and with beams."""

import csv
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.contract.resources import resource
from tests import in_process
from tests.backend.tasks.questions import xlnet

SQUAD = Path(__file__).resolve().parents[2] / "data" / "squad"
Burnish = Callable[..., "subprocess.CompletedProcess[str]"]


def burnish(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return in_process.call(list(map(str, arguments)), Path.cwd(), os.environ)


def succeeded(*arguments: str | Path) -> str:
    done = burnish(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_spec(path: Path, **sections: Any) -> Path:
    path.write_text(json.dumps({"hardware": {"threads": 1}, **sections}), encoding="utf-8")  # JSON is a valid spec
    return path


# A plain head


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few steps on real questions, some of which have no answer."""
    folder = tmp_path_factory.mktemp("squad")
    validation = shutil.copy(SQUAD / "impossible.json", folder / "dev.json")  # two splits may not share a file
    spec = write_spec(
        folder / "spec.yaml",
        task={"type": "question_answering", "max_length": 128, "doc_stride": 32},
        model={"name_or_path": str(resource("demo", "bert-tiny"))},
        data={
            "source": "squad",
            "train": [str(SQUAD / "train.json"), str(SQUAD / "impossible.json")],
            "validation": str(validation),
        },
        training={"max_steps": 4, "batch_size": 8, "learning_rate": 3e-4},
    )
    succeeded("train", spec, "--run-folder", folder / "run")
    return folder / "run"


def test_run_ends_with_squads_files_beside_the_table(run: Path) -> None:
    with (run / "predictions.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = "id title context question answers is_impossible prediction actual score start end null_score n_best"
    assert list(rows[0]) == columns.split()
    answers = json.loads((run / "predictions.json").read_text(encoding="utf-8"))
    assert answers == {row["id"]: row["prediction"] for row in rows}
    assert json.loads((run / "nbest_predictions.json").read_text(encoding="utf-8"))["h3"] == json.loads(
        rows[2]["n_best"]
    )
    assert json.loads((run / "null_odds.json").read_text(encoding="utf-8"))["h2"] == pytest.approx(
        float(rows[1]["null_score"])
    )


def test_evaluation_tells_answerable_questions_apart(run: Path) -> None:
    found = json.loads(succeeded("evaluate", run, "--data", SQUAD / "impossible.json", "--json"))
    known = {
        "loss",
        "exact_match",
        "f1",
        "best_f1",
        "best_f1_threshold",
        "best_exact_match",
        "best_exact_match_threshold",
    }
    kinds = {f"{name}_{kind}" for name in ("exact_match", "f1") for kind in ("HasAns", "NoAns")}
    assert found["metrics"].keys() == known | kinds
    assert found["rows"] == 5


@pytest.mark.slow
def test_decoding_changes_without_training_again(run: Path) -> None:
    shared = ("evaluate", run, "--data", SQUAD / "impossible.json", "--json", "--set")
    never, always = (
        json.loads(succeeded(*shared, f"task.null_threshold={threshold}"))["metrics"] for threshold in (-1000, 1000)
    )
    assert (never["f1_NoAns"], never["f1_HasAns"]) == (1.0, 0.0)
    assert always["f1_NoAns"] == 0.0
    assert never["best_f1"] == always["best_f1"]


def test_questions_without_answers_are_predicted(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "new.json"
    paragraph = {"context": "Ada Thorne built it.", "qas": [{"id": "n1", "question": "Who built it?"}]}
    data.write_text(json.dumps({"data": [{"title": "New", "paragraphs": [paragraph]}]}), encoding="utf-8")
    succeeded("predict", run, "--data", data, "--output", tmp_path / "mine.csv", "--set", "task.null_threshold=1000")
    with (tmp_path / "mine.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert "actual" not in row
    assert row["prediction"]
    assert row["prediction"] == "Ada Thorne built it."[int(row["start"]) : int(row["end"])]
    assert json.loads((tmp_path / "predictions_mine.json").read_text(encoding="utf-8")) == {"n1": row["prediction"]}


def test_beam_head_on_a_checkpoint_without_one_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    spec = write_spec(
        tmp_path / "spec.yaml",
        task={"type": "question_answering", "head": "beam"},
        model={"name_or_path": str(resource("demo", "bert-tiny"))},
        data={"source": "squad", "train": str(SQUAD / "train.json")},
        evaluation={"every": "never"},
    )
    done = burnish("train", spec, "--run-folder", tmp_path / "run")
    assert done.returncode == 2
    assert "beam-search head" in done.stderr
    assert not (tmp_path / "run").exists()


def test_tokenizer_without_offsets_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    from transformers import BertConfig, ByT5Tokenizer

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    ByT5Tokenizer().save_pretrained(tmp_path / "bytes")
    BertConfig(vocab_size=400, **sizes).save_pretrained(tmp_path / "bytes")
    spec = write_spec(
        tmp_path / "spec.yaml",
        task={"type": "question_answering"},
        model={"name_or_path": str(tmp_path / "bytes"), "initialise": "from_config"},
        data={"source": "squad", "train": str(SQUAD / "train.json")},
        evaluation={"every": "never"},
    )
    done = burnish("train", spec, "--run-folder", tmp_path / "run")
    assert done.returncode == 2
    assert "ByT5Tokenizer cannot tell" in done.stderr
    assert not (tmp_path / "run").exists()


# Beams


def marked_questions(count: int, seed: int) -> list[dict[str, Any]]:
    """Contexts of invented words; the answer stands between two words that mark it."""
    words = [first + second for first in ("ka", "mi", "su", "ve", "po", "ra") for second in ("lo", "ti", "na", "re")]
    rng = random.Random(seed)
    questions = []
    for number in range(count):
        text = rng.choices(words, k=rng.randint(8, 16))
        size = rng.randint(1, 3)
        place = rng.randint(0, len(text) - size)
        answer, before = " ".join(text[place : place + size]), " ".join([*text[:place], "begin", ""])
        context = before + " ".join([answer, "end", *text[place + size :]])
        answers = {"text": [answer], "answer_start": [len(before)]}
        questions.append({"id": f"m{number}", "question": "what is marked ?", "context": context, "answers": answers})
    return questions


@pytest.fixture(scope="module")
def beams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A 2-layer XLNet from nothing, trained on 200 questions with a tokenizer of their words."""
    from transformers import XLNetConfig

    folder = tmp_path_factory.mktemp("beams")
    questions = {"train": marked_questions(200, 0), "validation": marked_questions(50, 1)}
    for split, rows in questions.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    tokenizer = xlnet([f"{row['context']} {row['question']}" for row in questions["train"]] * 3)
    tokenizer.save_pretrained(folder / "fresh")
    XLNetConfig(
        vocab_size=len(tokenizer), d_model=64, n_layer=2, n_head=4, d_inner=128, dropout=0.0, start_n_top=4, end_n_top=5,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    ).save_pretrained(folder / "fresh")  # fmt: skip
    spec = write_spec(
        folder / "spec.yaml",
        task={"type": "question_answering", "head": "beam", "max_length": 128, "doc_stride": 32},
        model={"name_or_path": str(folder / "fresh"), "initialise": "from_config"},
        data={"train": str(folder / "train.jsonl"), "validation": str(folder / "validation.jsonl")},
        training={"epochs": 25, "batch_size": 20, "learning_rate": 2e-3, "warmup": 0.1, "weight_decay": 0.0},
        evaluation={"every": 125, "best_metric": "f1"},
    )
    succeeded("train", spec, "--run-folder", folder / "run")
    return folder


@pytest.mark.slow
def test_xlnet_from_nothing_learns_marked_answers_through_its_beams(beams: Path) -> None:
    found = json.loads(succeeded("evaluate", beams / "run", "--data", beams / "train.jsonl", "--json"))
    assert found["rows"] == 200
    assert found["metrics"]["exact_match"] > 0.9
    with (beams / "run" / "predictions.csv").open(newline="", encoding="utf-8") as file:
        held_out = list(csv.DictReader(file))
    assert sum(row["prediction"] == row["actual"] for row in held_out) / len(held_out) > 0.8


@pytest.mark.slow
def test_beams_are_those_of_the_transformers_head_on_equal_weights(beams: Path) -> None:
    import torch
    from transformers import AutoTokenizer, XLNetForQuestionAnswering

    tokenizer: Any = AutoTokenizer.from_pretrained(beams / "run" / "model")
    model = XLNetForQuestionAnswering.from_pretrained(beams / "run" / "model").eval()
    ours = json.loads((beams / "run" / "nbest_predictions.json").read_text(encoding="utf-8"))
    for row in marked_questions(50, 1):
        encoded = tokenizer(row["context"], row["question"], return_offsets_mapping=True, return_tensors="pt")
        place = encoded["input_ids"][0].tolist().index(tokenizer.cls_token_id)
        outside = torch.tensor([[sequence != 0 for sequence in encoded.sequence_ids(0)]])
        outside[0, place] = False
        with torch.no_grad():
            head = model(
                input_ids=encoded["input_ids"],
                token_type_ids=encoded["token_type_ids"],
                cls_index=torch.tensor([place]),
                p_mask=outside.float(),
            )
        expected = best_pairs(head, encoded["offset_mapping"][0].tolist(), encoded.sequence_ids(0), row["context"])
        found = [(one["text"], one["start_log_prob"] + one["end_log_prob"]) for one in ours[row["id"]]]
        assert found[0][0] == expected[0][0]
        assert sorted(found) == [(text, pytest.approx(score, abs=1e-5)) for text, score in sorted(expected)]


def best_pairs(head: Any, offsets: list, sequences: list, context: str) -> list[tuple[str, float]]:
    """What the head's five arrays say, one pair of a start and its own end at a time."""
    starts, start_scores = head.start_top_index[0].tolist(), head.start_top_log_probs[0].tolist()
    ends, end_scores = (np.asarray(values[0]).reshape(5, 4) for values in (head.end_top_index, head.end_top_log_probs))
    found = []
    for number, (start, score) in enumerate(zip(starts, start_scores, strict=True)):
        for rank in range(5):
            end = int(ends[rank, number])
            if sequences[start] == 0 and sequences[end] == 0 and 0 <= end - start < 30:
                found.append((context[offsets[start][0] : offsets[end][1]], score + float(end_scores[rank, number])))
    return sorted(found, key=lambda one: one[1], reverse=True)[:20]
