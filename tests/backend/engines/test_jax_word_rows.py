"""A table of tokens whose rows the JAX engine trains by themselves ends like one that is trained as a whole."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from backend.engines.jax import word_rows
from backend.engines.jax.engine import JaxEngine
from backend.engines.jax.packed_rows import pack_alike
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.test_jax_engine import assert_equal, opened, weights

RATE, STEPS = 1e-2, 20
TRAINING = TrainingSection(learning_rate=RATE, weight_decay=0.1, max_gradient_norm=0.5, seed=7, adam_epsilon=1e-4)
HEAD = facts(Head.SEQUENCE_CLASSIFICATION)
BATCHES = [head_batch(HEAD.head, 6, seed=seed % 3) for seed in range(STEPS)]
"""Of one shape; with new tokens in the first three steps."""


@pytest.fixture
def by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables count as large, and the smaller one must grow."""
    for name, value in {"LARGE": 0, "_SMALLEST": 8}.items():
        monkeypatch.setattr(word_rows, name, value)


def trained(engine: JaxEngine, first: int = 0, last: int = STEPS) -> JaxEngine:
    for step in range(first, last):
        engine.train_step([BATCHES[step]], step, RATE)
    return engine


def bert(folder: Path, training: TrainingSection = TRAINING, **changes: object) -> JaxEngine:
    return opened(JaxEngine, folder, HEAD, training, **changes)  # type: ignore[return-value]


@pytest.mark.parametrize("layer_decay", [None, 0.5], ids=["one rate", "a rate per layer"])
def test_steps_by_rows_equal_those_of_the_whole_table(layer_decay, smallest, request, tmp_path: Path):
    training = TRAINING.model_copy(update={"layer_decay": layer_decay})
    whole = weights(trained(bert(smallest("bert"), training)), tmp_path / "whole")
    request.getfixturevalue("by_rows")
    own = weights(trained(bert(smallest("bert"), training)), tmp_path / "own")
    assert_equal(own, whole, 2e-6)


@pytest.mark.usefixtures("by_rows")
def test_micro_batches_share_the_rows_of_a_step(smallest, tmp_path: Path):
    parts = [{name: array[half] for name, array in BATCHES[0].items()} for half in (slice(0, 3), slice(3, 6))]
    found = []
    for number, batches in enumerate((BATCHES[:1], parts)):
        engine = bert(smallest("bert"))
        engine.train_step(batches, 0, RATE)
        found.append(weights(engine, tmp_path / str(number)))
    assert_equal(found[0], found[1], 2e-6)


def test_choices_too_few_to_be_packed_find_their_words_too(smallest, request, tmp_path: Path):
    head = facts(Head.MULTIPLE_CHOICE)
    batches = [head_batch(head.head, 1, seed=seed) for seed in range(3)]
    assert pack_alike(batches[:1]) == batches[:1]
    found = []
    for name in ("whole", "own"):
        if name == "own":
            request.getfixturevalue("by_rows")
        engine = opened(JaxEngine, smallest("bert"), head, TRAINING)
        for step, batch in enumerate(batches):
            engine.train_step([batch], step, RATE)
        found.append(weights(engine, tmp_path / name))
    assert_equal(found[0], found[1], 2e-6)


@pytest.mark.usefixtures("by_rows")
@pytest.mark.parametrize("saved", [2, 18], ids=["decay waits", "decay was applied"])
def test_resumed_run_equals_an_undisturbed_one_to_the_bit(saved: int, smallest, tmp_path: Path):
    undisturbed = trained(bert(smallest("bert"), model={"dropout": 0.1}))
    first = trained(bert(smallest("bert"), model={"dropout": 0.1}), last=saved)
    (tmp_path / "checkpoint").mkdir()
    first.save(tmp_path / "checkpoint")()
    resumed = bert(smallest("bert"), model={"dropout": 0.1})
    resumed.restore(tmp_path / "checkpoint")
    expected = weights(undisturbed, tmp_path / "undisturbed")
    for number, engine in enumerate((first, resumed)):
        assert_equal(weights(trained(engine, first=saved), tmp_path / str(number)), expected, 0)


@pytest.mark.usefixtures("by_rows")
def test_evaluation_sees_what_was_trained_and_changes_nothing(smallest, tmp_path: Path):
    undisturbed, evaluated = bert(smallest("bert")), bert(smallest("bert"))
    trained(undisturbed)
    logits = []
    for step in range(STEPS):
        trained(evaluated, step, step + 1)
        logits.append(evaluated.evaluate(BATCHES[0])["logits"])
    assert_equal(weights(evaluated, tmp_path / "evaluated"), weights(undisturbed, tmp_path / "undisturbed"), 0)
    again = opened(JaxEngine, tmp_path / "evaluated", HEAD, None).evaluate(BATCHES[0])["logits"]
    np.testing.assert_allclose(logits[-1], again, atol=1e-6)
    assert not np.allclose(logits[0], logits[-1], atol=1e-3)


def test_number_of_programs_is_that_of_sizes(smallest, by_rows):
    found: list[None] = []

    def count(build: Callable[[], object]) -> object:
        found.append(None)
        return build()

    engine = bert(smallest("bert"), compiling=count)
    trained(engine, last=4)
    before = len(found)
    trained(engine, first=4, last=15)
    assert len(found) == before
