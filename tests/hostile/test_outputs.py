"""Whatever a person names as an output, no command replaces a device, a FIFO, a link, a run's own file or its own input."""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from backend.__main__ import main
from backend.contract import spec_file
from backend.contract.processes import python_command
from backend.contract.resources import resource
from tests.hostile.case import MODEL, ROWS

TASK = ("--task", "text_classification")
FILES: dict[str, tuple[str, ...]] = {
    "export --csv": ("export", "RUN", "--csv"),
    "export --predictions": ("export", "RUN", "--predictions"),
    "predict --output": ("predict", MODEL, *TASK, "--data", ROWS, "--output"),
    "predict --glue": ("predict", MODEL, *TASK, "--data", ROWS, "--output", "out.csv", "--glue"),
    "tokenizer vocab": ("tokenizer", "vocab", MODEL, "--limit", "5", "--output"),
    "tokenize --lines": ("tokenize", MODEL, "--file", ROWS, "--lines", "--output"),
    "predict --append": ("predict", MODEL, *TASK, "--input", '{"text": "x"}', "--append"),
    "import --output": ("import", "--command", "run_glue.py --task_name sst2 --model_name_or_path x", "--output"),
}
"""Commands that write a file, which is named last."""
FOLDERS: dict[str, tuple[str, ...]] = {
    "export --tensorboard": ("export", "RUN", "--tensorboard"),
    "export --model": ("export", "RUN", "--model"),
    "tokenizer extend": ("tokenizer", "extend", MODEL, "--add", "qqq", "--output"),
    "tokenizer train": ("tokenizer", "train", "--data", ROWS, "--output"),
    "data prepare --export": ("data", "prepare", "spec.yaml", "--export"),
    "train --run-folder": ("train", "spec.yaml", "--run-folder"),
}
"""Commands that write a folder, which is named last."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run, beside a working folder in which a spec lies."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    (folder / "model").mkdir(parents=True)
    (folder / "spec.yaml").write_text("version: 1\n")
    (folder / "events.jsonl").write_text(
        '{"event":"StepFinished","time":1,"step":1,"epoch":1,"loss":1,"learning_rate":1,"gradient_norm":null,'
        '"rows":1,"tokens":1,"seconds":1}\n'
    )
    (folder / "model" / "config.json").write_text("{}")
    parquet.write_table(pa.table({"text": ["a"], "prediction": ["b"]}), folder / "predictions.parquet")
    values = spec_file.read(resource("demo", "sentiment.yaml"))
    values["model"]["name_or_path"] = MODEL
    values["data"]["train"] = values["data"]["validation"] = ROWS
    (tmp_path / "spec.yaml").write_text(spec_file.dump(values))
    return folder


def call(run: Path, command: tuple[str, ...], output: Path) -> int:
    return main([*(str(run) if word == "RUN" else word for word in command), str(output)])


def state(path: Path) -> tuple[int, int, bytes]:
    status = path.lstat()
    return status.st_ino, status.st_mode, path.read_bytes() if stat.S_ISREG(status.st_mode) else b""


def hostile_outputs(run: Path) -> list[Path]:
    folder = run.parent
    (folder / "file.csv").write_text("kept")
    (folder / "link.csv").symlink_to("file.csv")
    os.mkfifo(folder / "fifo.csv")
    found = [folder / "link.csv", folder / "fifo.csv", run / "spec.yaml", run / "events.jsonl"]
    found += [run / "model" / "config.json", run / "predictions.parquet"]
    try:
        os.mknod(folder / "null.csv", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError:
        return found  # only root may make a device
    return [*found, folder / "null.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only Unix has FIFOs and devices in folders")
@pytest.mark.parametrize("command", FILES.values(), ids=FILES)
def test_output_replaces_no_special_file_and_none_of_a_run(
    run: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = hostile_outputs(run)
    before, there = [state(one) for one in outputs], sorted(run.parent.rglob("*"))

    codes = [call(run, command, one) for one in outputs]

    said = [line for line in capsys.readouterr().err.splitlines() if any(str(one) in line or one.name in line for one in outputs)]  # fmt: skip
    assert codes == [2] * len(outputs)
    assert len(said) >= len(outputs)
    assert [state(one) for one in outputs] == before
    assert sorted(run.parent.rglob("*")) == there


@pytest.mark.parametrize("command", FOLDERS.values(), ids=FOLDERS)
def test_folder_of_a_run_takes_no_other_folder(
    run: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    there = sorted(run.rglob("*"))

    assert call(run, command, run / "model" / "sub") == 2

    assert "is inside the folder of the run run; choose a folder outside it" in capsys.readouterr().err
    assert sorted(run.rglob("*")) == there


def test_tokenize_leaves_its_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (texts := tmp_path / "texts.txt").write_text("a good film\n")

    assert main(["tokenize", MODEL, "--file", str(texts), "--lines", "--output", str(texts)]) == 2

    assert "is the input file" in capsys.readouterr().err
    assert texts.read_text() == "a good film\n"


def shell(line: str, tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    command = line.replace("burnish", shlex.join(python_command("backend")))
    environment = {**os.environ, "BURNISH_RUNS": str(tmp_path / "runs")}
    return subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.name == "nt", reason="needs a shell of Unix")
def test_closed_stdout_is_no_traceback(tmp_path: Path) -> None:
    done = shell("burnish runs >&-", tmp_path)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_full_disk_under_stdout_is_one_sentence(tmp_path: Path) -> None:
    done = shell("burnish describe --json --no-devices > /dev/full", tmp_path)

    assert done.returncode == 2
    assert done.stderr == "the disk is full; free up some space, or write to another disk\n"
