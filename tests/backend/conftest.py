"""The waiting for conditions, a small language model, and the conversion of weights in process, for every test of the backend."""

import importlib
import io
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from backend.contract.resources import resource

pa.scalar(0)  # pyarrow looks for pandas once; a command that leaves it out would do so for all later tests

Until = Callable[[Callable[[], object]], None]


@pytest.fixture
def until() -> Until:
    """Waits for a condition; fails after a minute, as machines may be busy."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "the condition was never met"
            time.sleep(0.01)

    return wait


@pytest.fixture(scope="session")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model with the demo's vocabulary that has learnt nothing."""
    import torch  # takes seconds; most tests of the backend do without
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("writer")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(resource("demo", "bert-tiny", "tokenizer.json")), eos_token="[SEP]", unk_token="[UNK]"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=64)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def converter_environments(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """Weights are converted within this process, since each new one would load torch or JAX again; the environments that they would have had."""
    environments: list[Mapping[str, str]] = []

    def run(command: list[str], *, env: Mapping[str, str], **_: object) -> "subprocess.CompletedProcess[str]":
        environments.append(env)
        module, source, target = command[-3:]
        with redirect_stderr(io.StringIO()) as said:
            code = importlib.import_module(module).main(Path(source), Path(target))
        return subprocess.CompletedProcess(command, code, "", said.getvalue())

    monkeypatch.setattr("backend.models.conversion.subprocess", SimpleNamespace(run=run))
    return environments
