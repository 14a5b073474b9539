"""Packed rows give the JAX engine the loss and the gradients of the padded batch, in few shapes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from backend.contract.heads import IGNORE, Head
from backend.contract.spec import TrainingSection
from backend.engines.engine import Batch, StepNumbers
from backend.engines.jax import engine as jax_engine
from backend.engines.jax.engine import JaxEngine
from backend.engines.jax.model import find_family
from backend.engines.jax.packed_rows import SHORTEST, pack_alike
from tests.backend.engines.example_batches import loading
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.test_jax_engine import assert_equal, opened, weights
from tests.backend.engines.tiny_models import PADDING

GRADIENTS = TrainingSection(optimizer="sgd", weight_decay=0.0, max_gradient_norm=None, seed=7)
"""After a step at a rate of 1, weights have changed by their gradients."""
QUICK = [
    *[("bert", head) for head in (Head.TOKEN_CLASSIFICATION, Head.QUESTION_ANSWERING, Head.MULTIPLE_CHOICE)],
    ("roberta", Head.SEQUENCE_CLASSIFICATION),
    ("distilbert", Head.MASKED_LM),
]
KNOWN = [(name, head) for name in ("bert", "distilbert", "roberta") for head in find_family({"model_type": name}).heads]
ROWS = 24


@pytest.mark.parametrize(
    ("name", "head"),
    [pytest.param(*pair, id="-".join(pair), marks=[] if pair in QUICK else [pytest.mark.slow]) for pair in KNOWN],
)
def test_loss_and_gradients_are_those_of_the_padded_batch(name, head, smallest, monkeypatch, tmp_path: Path):
    padding = PADDING.get(name, 0)
    batches = [head_batch(head, ROWS, seed=seed, padding=padding) for seed in (0, 1)]
    batches[0]["input_ids"][0, ..., 2] = padding  # which is a token where the mask says so
    assert all("segment" in batch for batch in pack_alike(batches))

    def step(where: Path) -> tuple[StepNumbers, dict[str, np.ndarray]]:
        engine = opened(JaxEngine, smallest(name), facts(head), GRADIENTS, pad_token_id=padding)
        return engine.read([engine.train_step(batches, 0, 1.0)])[0], weights(engine, where)

    packed, own = step(tmp_path / "packed")
    monkeypatch.setattr(jax_engine, "pack_alike", lambda batches: batches)
    padded, theirs = step(tmp_path / "padded")
    np.testing.assert_allclose((packed.loss, packed.gradient_norm), (padded.loss, padded.gradient_norm), rtol=1e-6)
    assert_equal(own, theirs, 1e-6)


def test_every_token_is_there_once_and_knows_its_row():
    batch = head_batch(Head.TOKEN_CLASSIFICATION, ROWS)
    [packed] = pack_alike([batch])
    lengths = batch["attention_mask"].sum(axis=1)
    for row, (start, length) in enumerate(zip(packed["starts"], lengths, strict=True)):
        own = slice(start, start + length)
        for name in ("input_ids", "labels"):
            np.testing.assert_array_equal(packed[name].ravel()[own], batch[name][row, :length])
        np.testing.assert_array_equal(packed["position"].ravel()[own], np.arange(length))
        assert set(packed["segment"].ravel()[own]) == {row + 1}
    assert packed["attention_mask"].sum() == (packed["segment"] > 0).sum() == lengths.sum()
    assert (packed["labels"][packed["segment"] == 0] == IGNORE).all()


def test_steps_whose_shapes_are_equal_share_a_program(smallest):
    found: list[None] = []

    def count(build: Callable[[], object]) -> object:
        found.append(None)
        return build()

    head = Head.SEQUENCE_CLASSIFICATION
    engine = JaxEngine()
    engine.load(loading(smallest("bert"), facts(head), GRADIENTS, compiling=count))
    steps = [[head_batch(head, rows, seed=seed)] for rows, seed in ((ROWS, 0), (2, 0), (ROWS, 0))]
    for step, batches in enumerate(steps):
        engine.train_step(batches, step, 0.0)
    assert len(found) == len({engine.step_shapes(batches) for batches in steps}) < len(steps)


def test_random_batches_have_few_shapes_and_little_padding():
    rng = np.random.default_rng(0)
    batches = [padded(rng.lognormal(2.7, 0.6, ROWS).clip(3, 120).astype(int)) for _ in range(500)]
    packed = [pack_alike([batch])[0] for batch in batches]
    assert len({batch["input_ids"].shape for batch in packed}) <= 12
    tokens, before, after = (
        sum(int(batch["attention_mask"].sum()) for batch in batches),
        sum(batch["input_ids"].size for batch in batches),
        sum(batch["input_ids"].size for batch in packed),
    )
    assert before > 2 * tokens
    assert after < 1.3 * tokens


@pytest.mark.parametrize("lengths", [[SHORTEST] * ROWS, [8] * 7], ids=["full", "few"])
def test_what_would_become_no_smaller_stays_padded(lengths: list[int]):
    batch = padded(np.array(lengths))
    assert pack_alike([batch]) == [batch]


def test_padding_on_the_left_stays():
    batch = {name: array[:, ::-1] for name, array in padded(np.arange(3, 3 + ROWS)).items()}
    assert pack_alike([batch]) == [batch]


def padded(lengths: np.ndarray) -> Batch:
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    return {"input_ids": mask * 5, "attention_mask": mask}
