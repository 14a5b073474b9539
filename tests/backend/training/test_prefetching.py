"""The next batch is made beside the step on an accelerator; what is trained, and how it ends, does not depend on that."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from backend.contract.run.events import StepFinished
from backend.engines.torch.engine import TorchEngine
from backend.engines.torch.inputs import tensor
from backend.preflight.session import FeatureSession
from backend.training import loop
from backend.training.background import Prefetcher
from backend.training.event_log import read_events
from tests.backend.training.test_evaluations import run_folder

SECONDS = 30
NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
TRAINING = {"max_steps": 6, "batch_size": 16, "checkpoint_every": "never"}


@pytest.mark.parametrize("is_ahead", [True, False])
def test_each_value_is_that_of_its_number(is_ahead: bool):
    prefetcher = Prefetcher(lambda number: number**2, 5, is_ahead=is_ahead)
    assert [prefetcher.take(number) for number in (1, 2, 4, 5)] == [1, 4, 16, 25]
    prefetcher.close()


def test_the_next_value_is_made_while_the_last_is_used():
    made = {number: threading.Event() for number in (1, 2, 3)}
    prefetcher = Prefetcher(lambda number: made[number].set(), 2, is_ahead=True)
    prefetcher.take(1)
    assert made[2].wait(SECONDS)
    prefetcher.take(2)
    prefetcher.close()
    assert not made[3].is_set(), "one too many"


def test_without_an_accelerator_no_thread_is_started():
    names: list[str] = []
    prefetcher = Prefetcher(lambda number: names.append(threading.current_thread().name), 2, is_ahead=False)
    prefetcher.take(1)
    assert names == [threading.current_thread().name]


def test_what_fails_meanwhile_is_raised_when_its_turn_comes():
    def make(number: int) -> int:
        if number == 2:
            raise ValueError("row 17 is broken")
        return number

    prefetcher = Prefetcher(make, 3, is_ahead=True)
    assert prefetcher.take(1) == 1
    with pytest.raises(ValueError, match="row 17 is broken"):
        prefetcher.take(2)
    prefetcher.close()


def test_whoever_stops_waits_for_one_batch_alone():
    going, goes_on = threading.Event(), threading.Event()

    def make(number: int) -> None:
        if number == 2:
            going.set()
            goes_on.wait(SECONDS)

    prefetcher = Prefetcher(make, 9, is_ahead=True)
    prefetcher.take(1)
    assert going.wait(SECONDS)
    closing = threading.Thread(target=prefetcher.close)
    closing.start()
    goes_on.set()
    closing.join(SECONDS)
    assert not any(thread.name.startswith("prefetching") for thread in threading.enumerate())


def train(folder: Path, device: str, monkeypatch: pytest.MonkeyPatch, *, is_ahead: bool) -> tuple[list[Any], set[str]]:
    """Losses as on an accelerator, and the threads that made the batches; made in turn they aren't pinned either."""
    threads: set[str] = set()
    make = FeatureSession.micro_batches

    def record(*given: Any) -> Any:
        threads.add(threading.current_thread().name.partition("_")[0])
        return make(*given)

    with monkeypatch.context() as patch:
        patch.setattr(TorchEngine, "device_memory_mb", lambda engine: 1.0)
        patch.setattr(FeatureSession, "micro_batches", record)
        if not is_ahead:
            patch.setattr(loop, "Prefetcher", lambda make, last, **_: Prefetcher(make, last, is_ahead=False))
            patch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
        folder.mkdir()
        run = run_folder(folder, training=TRAINING, hardware={"device": device, "precision": "float32"})
        assert loop.run(run) == 0
    return [event.loss for event in read_events(run.events) if isinstance(event, StepFinished)], threads


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)])
def test_a_run_trains_the_same_with_batches_made_beside_it(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    beside, threads = train(tmp_path / "beside", device, monkeypatch, is_ahead=True)
    in_turn, own = train(tmp_path / "in-turn", device, monkeypatch, is_ahead=False)
    assert beside == pytest.approx(in_turn, rel=1e-4 if device == "cuda" else 0, abs=0)
    assert (threads, own) == ({"prefetching"}, {threading.current_thread().name})


@NEEDS_CUDA
def test_a_batch_reaches_cuda_while_it_computes():
    device = torch.device("cuda")
    square = torch.randn(8192, 8192, device=device)
    for _ in range(20):
        square @ square
    computing = torch.cuda.Event()
    computing.record()
    found = tensor(np.arange(1_000_000), device)
    assert not computing.query(), "the copy has waited for what was computed"
    assert torch.equal(found.cpu(), torch.arange(1_000_000))
