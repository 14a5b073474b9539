"""Tests that `burnish export` writes curves as the last attempt has them, the model, and chosen predictions."""

import csv
import json
import math
import os
import struct
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
from example_runs import write_run
from safetensors.numpy import load_file, save_file
from tensorboardX.proto.event_pb2 import Event

from backend.commands import export
from backend.commands.export import COMMANDS
from backend.contract import spec_file
from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.run import events
from backend.contract.run.curves import Curves
from backend.mirrors import tensorboard


@pytest.fixture
def run(runs: Path) -> Path:
    """A run that was resumed from step 1 after it had reached step 3."""

    def step(number: int, loss: float) -> events.StepFinished:
        return events.StepFinished(
            time=1, step=number, epoch=number / 2, loss=loss, learning_rate=0.1, gradient_norm=None, rows=4, tokens=9,
            seconds=0.5,
        )  # fmt: skip

    def evaluation(number: int, accuracy: float) -> events.EvaluationFinished:
        return events.EvaluationFinished(
            time=1, step=number, epoch=number / 2, metrics={"accuracy": accuracy}, rows=4, seconds=0.1
        )

    folder = runs / "tiny"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text("version: 1\n")
    happened = [
        evaluation(0, 0.5),
        step(1, 1.0), step(2, 0.9), evaluation(2, 0.6), step(3, 0.8),
        events.RunResumed(time=2, attempt=2, from_step=1),
        step(2, 0.7), evaluation(2, 0.75),
    ]  # fmt: skip
    (folder / "events.jsonl").write_bytes(b"".join(map(events.encode, happened)) + b'{"event":"StepFin')
    return folder


def test_void_steps_are_left_out(burnish, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "curves.csv"

    assert burnish("export", "tiny", "--csv", file).returncode == 0

    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["step"], row["loss"], row["validation_accuracy"]) for row in rows] == [
        ("0", "", "0.5"),
        ("1", "1.0", ""),
        ("2", "0.7", "0.75"),
    ]


def test_curves_go_to_stdout_when_asked(burnish, run: Path) -> None:
    done = burnish("export", run, "--csv", "-")

    assert done.stdout.splitlines()[0].startswith("step,epoch,loss,learning_rate,gradient_norm")


def test_folder_that_is_not_there_is_named(burnish, run: Path, tmp_path: Path) -> None:
    done = burnish("export", "tiny", "--csv", tmp_path / "nowhere" / "curves.csv")

    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def event_file(folder: Path) -> list[Event]:
    """The records of the one event file there, each whole by its checksum (https://www.tensorflow.org/tutorials/load_data/tfrecord)."""
    [path] = folder.iterdir()
    assert "tfevents" in path.name
    data, found = path.read_bytes(), []
    while data:
        length, (checked,) = data[:8], struct.unpack("<I", data[8:12])
        size = int.from_bytes(length, "little")
        body, (body_checked,) = data[12 : 12 + size], struct.unpack("<I", data[12 + size : 16 + size])
        assert (checked, body_checked) == (masked(length), masked(body))
        found.append(Event.FromString(body))
        data = data[16 + size :]
    return found


def masked(data: bytes) -> int:
    """CRC-32C (Castagnoli), bit by bit, rotated and shifted as the format asks."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_tensorboard_gets_each_step_once(burnish, run: Path, tmp_path: Path) -> None:
    done = burnish("export", "tiny", "--tensorboard", tmp_path / "board")

    assert done.returncode == 0, done.stderr
    first, *rest = event_file(tmp_path / "board")
    assert first.file_version == "brain.Event:2"
    read = [(event.step, value.tag, round(value.simple_value, 4)) for event in rest for value in event.summary.value]
    assert [one for one in read if one[1] in ("train/loss", "validation/accuracy")] == [
        (0, "validation/accuracy", 0.5),
        (1, "train/loss", 1.0),
        (2, "train/loss", 0.7),
        (2, "validation/accuracy", 0.75),
    ]
    assert (2, "speed/tokens_per_second", 18.0) in read
    assert {event.wall_time for event in rest} == {1.0}
    assert "tensorboard --logdir" in done.stdout


def test_a_loss_that_is_no_number_stays_one(tmp_path: Path) -> None:
    step = events.StepFinished(
        time=5, step=3, epoch=1, loss=None, learning_rate=0.1, gradient_norm=None, rows=4, tokens=9, seconds=0.5
    )
    tensorboard.write([step], tmp_path / "board")
    values = {value.tag: value.simple_value for value in event_file(tmp_path / "board")[1].summary.value}
    assert math.isnan(values["train/loss"])
    assert "train/gradient_norm" not in values


def test_event_files_of_two_runs_are_never_mixed(run: Path, tmp_path: Path) -> None:
    measured = Curves(run / "events.jsonl")
    tensorboard.write(measured, tmp_path)
    with pytest.raises(InputError, match="event files; choose an empty folder"):
        tensorboard.write(measured, tmp_path)
    assert len(list(tmp_path.glob("*tfevents*"))) == 1


@pytest.fixture
def trained(run: Path) -> Path:
    """The run with a model."""
    model = run / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "bert", "torch_dtype": "float32"}')
    save_file({"weight": np.array([0.5, 1 / 3], np.float32), "ids": np.array([7])}, model / "model.safetensors")
    return run


def test_the_model_is_copied_with_half_the_numbers(burnish, trained: Path, tmp_path: Path) -> None:
    done = burnish("export", "tiny", "--model", tmp_path / "small", "--dtype", "float16")
    assert done.returncode == 0, done.stderr
    weights = load_file(tmp_path / "small" / "model.safetensors")
    assert weights["weight"].tolist() == np.array([0.5, 1 / 3], np.float16).tolist()
    assert weights["ids"].tolist() == [7]
    assert json.loads((tmp_path / "small" / "config.json").read_text()) == {"model_type": "bert", "dtype": "float16"}


def test_onnx_needs_a_finished_run_and_a_new_folder(burnish, trained: Path, tmp_path: Path) -> None:
    unfinished = burnish("export", "tiny", "--onnx", tmp_path / "new")
    assert (unfinished.returncode, "let it finish first" in unfinished.stderr) == (2, True)
    assert not (tmp_path / "new").exists()
    existing = burnish("export", "tiny", "--onnx", tmp_path)
    assert (existing.returncode, "already exists; name a new folder" in existing.stderr) == (2, True)


@pytest.mark.slow
def test_onnx_is_proven_on_the_validation_rows_and_int8_kept_or_refused_by_them(burnish, tmp_path: Path) -> None:
    onnxruntime, transformers = pytest.importorskip("onnxruntime"), pytest.importorskip("transformers")
    demo = resource("demo", "sentiment")
    spec = {
        "task": {"type": "text_classification", "max_length": 32}, "model": {"name_or_path": str(resource("demo", "bert-tiny"))},
        "data": {"train": str(demo / "train.csv"), "validation": str(demo / "validation.csv")},
        "training": {"max_steps": 150, "learning_rate": 3e-4, "checkpoint_every": "never"}, "evaluation": {"every": "never"},
        "hardware": {"threads": 1},
    }  # fmt: skip
    (tmp_path / "spec.yaml").write_text(spec_file.dump(spec))
    run = tmp_path / "run"
    trained = burnish("train", tmp_path / "spec.yaml", "--run-folder", run)
    assert trained.returncode == 0, trained.stderr

    done = burnish("export", run, "--onnx", tmp_path / "kept", "--int8", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    own, onnx, rounded = found["models"]
    assert (own["file"], onnx["file"], rounded["file"]) == ("", "model.onnx", "model_int8.onnx")
    assert onnx["metrics"] == pytest.approx(own["metrics"], abs=1e-5)
    assert (onnx["changed"], onnx["largest_difference"] < 1e-4) == (0, True)
    assert rounded["metrics"]["accuracy"] == pytest.approx(own["metrics"]["accuracy"], abs=0.02)
    assert rounded["intervals"]["accuracy"][0] < rounded["metrics"]["accuracy"] < rounded["intervals"]["accuracy"][1]
    assert rounded["largest_difference"] > 0
    assert rounded["megabytes"] < onnx["megabytes"] / 3
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "kept")
    session = onnxruntime.InferenceSession(tmp_path / "kept" / "model_int8.onnx")
    [logits] = session.run(
        None, dict(tokenizer(["Wonderful!", "A waste of two hours."], padding=True, return_tensors="np"))
    )
    assert logits.argmax(axis=1).tolist() == [1, 0]

    refused = burnish("export", run, "--onnx", tmp_path / "refused", "--int8", "--max-loss", "-0.5")
    assert refused.returncode == 0, refused.stderr
    assert "not kept: accuracy goes from" in refused.stdout
    assert {path.name for path in (tmp_path / "refused").glob("*.onnx")} == {"model.onnx"}


def test_a_copy_clears_what_a_stopped_one_left_and_nothing_else(burnish, trained: Path, tmp_path: Path) -> None:
    for name in (".small.4711", ".small.backup", ".smaller.4711"):
        (tmp_path / name).mkdir()
    assert burnish("export", "tiny", "--model", tmp_path / "small").returncode == 0
    assert not (tmp_path / ".small.4711").exists()
    assert (tmp_path / ".small.backup").is_dir()
    assert (tmp_path / ".smaller.4711").is_dir()


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_whoever_may_read_other_files_may_read_the_weights(burnish, trained: Path, tmp_path: Path) -> None:
    burnish("export", "tiny", "--model", tmp_path / "out")
    modes = {path.stat().st_mode for path in (tmp_path / "out").iterdir()}
    assert modes == {(tmp_path / "out" / "config.json").stat().st_mode}


def test_weights_beyond_the_range_are_refused_and_nothing_is_left(burnish, trained: Path, tmp_path: Path) -> None:
    save_file({"weight": np.array([1e6], np.float32)}, trained / "model" / "model.safetensors")
    done = burnish("export", "tiny", "--model", tmp_path / "small", "--dtype", "float16")
    assert done.returncode == 2
    assert "weight contains values outside the range of float16" in done.stderr
    assert not list(tmp_path.glob("*small*"))


@pytest.mark.parametrize(("place", "merged"), [("file", False), ("file", True), ("file/below", False)])
def test_a_model_is_never_copied_onto_a_file(trained: Path, tmp_path: Path, place: str, merged: bool) -> None:
    (tmp_path / "file").write_text("mine")
    command = Namespace(run=str(trained), model=tmp_path / place, dtype="float32", merged=merged)
    with pytest.raises(InputError, match="--model") as refused:
        export.export_model(command)
    assert "\n" not in str(refused.value)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_model_is_never_copied_over_another(burnish, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "mine").touch()
    done = burnish("export", "tiny", "--model", tmp_path / "small")
    assert done.returncode == 2
    assert "is not empty" in done.stderr


def test_event_files_are_written_without_torch(tmp_path: Path) -> None:
    program = (
        "import sys; from backend.contract.run import events; from backend.mirrors import tensorboard\n"
        "step = events.StepFinished(time=5, step=3, epoch=1, loss=1e300, learning_rate=0.1, gradient_norm=None, rows=4, "
        "tokens=9, seconds=0.5)\n"
        f"tensorboard.write([step], __import__('pathlib').Path({str(tmp_path)!r}))\n"
        "assert not {'torch', 'tensorboardX'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert event_file(tmp_path)[1].summary.value[0].simple_value == math.inf


@pytest.fixture
def predicted_run(tmp_path: Path) -> Path:
    """A run with three classified rows, the first of them wrong."""
    return write_run(tmp_path / "runs", "text_classification")


def export_rows(run: Path, *words: str) -> int:
    """`burnish export RUN …` in this process."""
    parser, command = ArgumentParser(), COMMANDS[0]
    command.add_arguments(parser)
    return command.execute(parser.parse_args([str(run), *words]))


def test_wrong_rows_in_chosen_columns(predicted_run: Path, tmp_path: Path, capsys):
    output = tmp_path / "wrong.csv"
    assert (
        export_rows(predicted_run, "--predictions", str(output), "--wrong", "--columns", "source,confidence", "--bom")
        == 0
    )
    assert output.read_bytes() == b'\xef\xbb\xbf"source","confidence"\n"imdb",0.58\n'
    assert capsys.readouterr().out.strip() == f"1 row: {output}"


def test_sorted_rows_of_everything_as_parquet(predicted_run: Path, tmp_path: Path):
    output = tmp_path / "all.parquet"
    export_rows(predicted_run, "--predictions", str(output), "--sort", "confidence", "--descending")
    assert parquet.read_table(output)["prediction"].to_pylist() == ["positive", "neutral", "positive"]


def test_a_label_pair_and_a_text(predicted_run: Path, tmp_path: Path):
    output = tmp_path / "pair.csv"
    export_rows(predicted_run, "--predictions", str(output), "--pair", "neutral", "neutral", "--text", "PRICE")
    with output.open(encoding="utf-8", newline="") as file:
        assert [row["source"] for row in csv.DictReader(file)] == ["amazon"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--predictions", "out.txt"], r"ends in \.csv or \.parquet"),
        (["--predictions", "out.csv", "--split", "test"], "has no such predictions; there are validation"),
        (["--predictions", "out.csv", "--columns", "beauty"], "'beauty' is not a column of this file"),
    ],
)
def test_what_cannot_be_written_is_said_in_a_sentence(
    predicted_run: Path, monkeypatch, tmp_path: Path, words: list[str], said: str
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        export_rows(predicted_run, *words)
    assert not list(tmp_path.glob("out.*"))
