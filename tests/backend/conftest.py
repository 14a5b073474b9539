"""Owns the waiting for conditions, and a small language model, for every test of the backend."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.contract.resources import resource

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
