"""Tests that the libraries of trackers take a run's curves, read back from what they wrote: a real MLflow server, W&B's files, Trackio's database.

They need `pip install 'burnish[trackers]'`, and the one of MLflow installs a server into an environment of its own.
"""

import json
import math
import os
import socket
import struct
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from backend.contract.run import events
from backend.contract.run.folder import RunFolder
from backend.mirrors import mirror

pytestmark = pytest.mark.slow

LOSSES = {1: 1.0, 2: 0.5, 3: 0.25}


def record(folder: RunFolder, *happened: events.AnyEvent) -> None:
    with folder.events.open("ab") as file:
        file.write(b"".join(map(events.encode, happened)))


def step(number: int) -> events.StepFinished:
    return events.StepFinished(
        time=1_700_000_000 + number, step=number, epoch=number / 2, loss=LOSSES[number], learning_rate=0.1,
        gradient_norm=None, rows=4, tokens=9, seconds=0.5,
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Two steps and an evaluation of a run; `finish` adds the rest."""
    folder = RunFolder(tmp_path / "runs" / "tiny")
    folder.path.mkdir(parents=True)
    folder.spec.write_text("version: 1\nname: tiny\ntraining: {seed: 3}\n")
    measured = events.EvaluationFinished(
        time=1_700_000_002, step=2, epoch=1, metrics={"f1": None, "accuracy": 0.75}, rows=4, seconds=0.1
    )
    started = events.RunStarted(time=1_700_000_000, name="tiny", task="text_classification", model="m")
    record(folder, started, step(1), step(2), measured)
    return folder


def send_in_two_calls(run: RunFolder, name: str, settings: dict) -> str:
    """Send what there is, then the rest, as after a restart; returns the tracker's id of the run."""
    mirror.write_trackers({name: mirror.check_settings(name, settings)})
    first = mirror.send(run, name)
    record(run, step(3), events.RunFinished(time=1_700_000_010, state="finished", step=3))
    assert mirror.send(run, name).run_id == first.run_id
    return first.run_id


def test_wandb_keeps_an_offline_run(run: RunFolder, tmp_path: Path) -> None:
    pytest.importorskip("wandb")

    run_id = send_in_two_calls(run, "wandb", {"mode": "offline", "folder": str(tmp_path)})

    points, configs = [], []
    for path in sorted((tmp_path / "wandb").glob(f"offline-run-*-{run_id}/*.wandb")):
        for each in wandb_records(path):
            kind = each.WhichOneof("record_type")
            if kind == "history":
                items = each.history.item
                points.append({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items})
            elif kind == "run":
                configs.append({item.key: item.value_json for item in each.run.config.update})
    assert {point["step"]: point["train/loss"] for point in points if "train/loss" in point} == LOSSES
    assert [point["validation/accuracy"] for point in points if "validation/accuracy" in point] == [0.75]
    assert next(point["_timestamp"] for point in points) == 1_700_000_001
    assert configs[0]["training.seed"] == "3"


def wandb_records(path: Path) -> Iterator:
    """The records of a `.wandb` file: LevelDB's log format behind a header of seven bytes."""
    messages = import_module("wandb.proto.wandb_internal_pb2")
    data, place, whole = path.read_bytes(), 7, b""
    while place + 7 <= len(data):
        if (left := 32_768 - place % 32_768) < 7:
            place += left
            continue
        _, size, kind = struct.unpack("<IHB", data[place : place + 7])
        whole += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last of several parts
            yield messages.Record.FromString(whole)
            whole = b""


def test_trackio_has_every_point_and_opens_no_port(run: RunFolder, tmp_path: Path) -> None:
    pytest.importorskip("trackio")
    program = (
        "import sys; from backend.contract.run.folder import RunFolder; from backend.mirrors import mirror\n"
        "import psutil\n"
        "mirror.send(RunFolder(sys.argv[1]), 'trackio')\n"
        "assert not [one for one in psutil.Process().net_connections() if one.status == 'LISTEN']\n"
        "from trackio.sqlite_storage import SQLiteStorage\n"
        "import json; print(json.dumps(SQLiteStorage.get_logs('burnish', 'tiny')))"
    )
    mirror.write_trackers({"trackio": mirror.check_settings("trackio", {})})
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio")}
    command = [sys.executable, "-c", program, str(run.path)]

    subprocess.run(command, env=environment, check=True, capture_output=True)
    record(run, step(3), events.RunFinished(time=1_700_000_010, state="finished", step=3))
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)

    [points] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[{")]
    assert {one["step"]: one["train/loss"] for one in points if "train/loss" in one} == LOSSES


@pytest.fixture(scope="module")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server; its libraries need other versions than ours, so it has its own environment."""
    pytest.importorskip("mlflow")
    folder = tmp_path_factory.mktemp("mlflow")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if subprocess.run(
        [python, "-m", "pip", "install", "-q", "mlflow>=3.5"], check=False, capture_output=True
    ).returncode:
        pytest.skip("the MLflow server cannot be installed here")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--backend-store-uri", f"sqlite:///{folder / 'runs.db'}", "--host", "127.0.0.1", "--port", str(port)]
    command = [python, "-m", "mlflow", "server", "--workers", "1", *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for_answer(f"{address}/health")
        yield address
    finally:
        os.killpg(server.pid, 9)
        server.wait()


def wait_for_answer(address: str) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            assert time.monotonic() < deadline
            time.sleep(0.5)


@pytest.mark.timeout(600)
def test_an_mlflow_server_has_metrics_parameters_and_state(run: RunFolder, mlflow_server: str) -> None:
    mlflow = import_module("mlflow")
    run_id = send_in_two_calls(run, "mlflow", {"address": mlflow_server, "experiment": "reviews"})

    client = mlflow.MlflowClient(mlflow_server)
    found = client.get_run(run_id)
    assert found.info.run_name == "tiny"
    assert found.info.status == "FINISHED"
    assert found.data.params["training.seed"] == "3"
    history = client.get_metric_history(run_id, "train/loss")
    assert {point.step: point.value for point in history} == LOSSES
    assert history[0].timestamp == 1_700_000_001_000
    assert math.isnan(client.get_metric_history(run_id, "validation/f1")[0].value)


def test_a_server_that_is_down_gets_everything_when_it_answers(run: RunFolder, mlflow_server: str) -> None:
    """The first address has no server; the person corrects it, and what was recorded meanwhile is sent."""
    mirror.write_trackers({"mlflow": mirror.check_settings("mlflow", {"address": "http://127.0.0.1:9"})})
    command = [sys.executable, "-m", "backend", "trackers", "send", str(run.path), "mlflow"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        assert "trying again" in waiting.stderr.readline()
        waiting.kill()

    mirror.write_trackers({"mlflow": mirror.check_settings("mlflow", {"address": mlflow_server})})
    record(run, step(3), events.RunFinished(time=1_700_000_010, state="finished", step=3))
    run_id = mirror.send(run, "mlflow").run_id

    mlflow = import_module("mlflow")
    assert {
        p.step: p.value for p in mlflow.MlflowClient(mlflow_server).get_metric_history(run_id, "train/loss")
    } == LOSSES
