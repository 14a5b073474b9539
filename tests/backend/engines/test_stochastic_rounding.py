"""Weights in bfloat16 learn from updates that rounding to the nearest number would lose."""

import pytest
import torch
from safetensors.torch import load_file

from backend.contract.spec import TrainingSection
from backend.engines.torch import stochastic_rounding
from backend.engines.torch.stochastic_rounding import RoundedWeights, round_stochastically, total_norm
from tests.backend.engines.example_batches import classes, text_batch

STEP = 2**-7
"""Between 1 and the next number of bfloat16."""


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_the_expectation_of_a_rounded_value_is_the_value(part: float, sign: int):
    count = 200_000
    found = round_stochastically(torch.full((count,), sign * (1 + part * STEP)), generator())
    assert set(found.float().abs().tolist()) == {1.0, 1 + STEP}
    deviation = (part * (1 - part) / count) ** 0.5
    assert (float(found.double().mean()) * sign - 1) / STEP == pytest.approx(part, abs=5 * deviation)


def test_numbers_of_bfloat16_stay():
    values = torch.tensor([0.0, -0.0, 1.0, -3.140625, 2.0**-130, float("inf"), float("-inf")])
    assert torch.equal(round_stochastically(values.clone(), generator()).float(), values)


@pytest.mark.parametrize("bits", [0x7FC00000, 0x7FFFFFFF], ids=["CPU", "CUDA"])
def test_a_weight_of_nan_stays_nan(bits: int):
    values = torch.tensor([bits], dtype=torch.int32).view(torch.float32)
    assert round_stochastically(values, generator()).isnan().all()


def test_a_seed_decides_how_values_are_rounded():
    values = torch.linspace(0, 1, 1000)
    first, again, other = (round_stochastically(values.clone(), generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_tiny_updates_add_up_where_rounding_to_the_nearest_loses_them():
    rate, steps = STEP / 50, 40
    assert torch.ones((), dtype=torch.bfloat16).sub_(rate) == 1, "too large to be lost"
    weight = torch.nn.Parameter(torch.ones(20_000, dtype=torch.bfloat16))
    rounded = RoundedWeights([weight], seed=7)
    optimizer = torch.optim.SGD(rounded.replace_in([{"params": [weight]}]), lr=rate)
    for step in range(steps):
        weight.grad = torch.ones_like(weight)
        rounded.step(optimizer, step)
    assert float(weight.detach().double().mean()) == pytest.approx(1 - steps * rate, abs=0.03 * steps * rate)


def test_the_norm_of_gradients_is_not_rounded():
    parts = [torch.rand(500, generator=generator()).bfloat16(), torch.rand(300, generator=generator())]
    expected = torch.cat([each.double() for each in parts]).norm()
    assert float(total_norm(parts)) == pytest.approx(float(expected), rel=1e-6)


@pytest.fixture(params=["adamw", "adamw_8bit", "adafactor", "adam", "lion", "sgd"])
def training(request) -> TrainingSection:
    return TrainingSection(optimizer=request.param, learning_rate=1e-3, seed=7, master_weights="bfloat16_stochastic")


def test_a_resumed_run_equals_an_undisturbed_one_to_the_bit(bert, engine_for, training, tmp_path):
    batches = [text_batch(8, seed=seed) for seed in range(4)]
    first, second = (engine_for(bert, classes("a", "b"), training, precision="bfloat16") for _ in range(2))
    for step, batch in enumerate(batches):
        if step == 2:
            first.save(tmp_path)()
        first.train_step([batch], step, 1e-3)
    second.restore(tmp_path)
    for step in (2, 3):
        second.train_step([batches[step]], step, 1e-3)
    ends = []
    for number, engine in enumerate((first, second)):
        (tmp_path / str(number)).mkdir()
        engine.save(tmp_path / str(number))()
        ends.append([load_file(path) for path in sorted((tmp_path / str(number)).iterdir())])
    assert {weight.dtype for weight in ends[0][0].values()} == {torch.bfloat16, torch.float32}
    for one, other in zip(*ends, strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_model_learns_from_small_updates_as_in_float32(bert, engine_for, monkeypatch):
    batch, rate, steps = text_batch(16), 2e-5, 30

    def learned(master_weights: str) -> float:
        """How much lower the loss is after some small steps."""
        training = TrainingSection(learning_rate=rate, seed=7, master_weights=master_weights)
        engine = engine_for(bert, classes("a", "b"), training, precision="bfloat16")
        found = engine.read([engine.train_step([batch], step, rate) for step in range(steps)])
        return found[0].loss - found[-1].loss

    exact = learned("float32")
    assert learned("bfloat16_stochastic") == pytest.approx(exact, rel=0.1)
    monkeypatch.setattr(stochastic_rounding, "round_stochastically", lambda values, generator: values.bfloat16())
    assert learned("bfloat16_stochastic") < 0.75 * exact, "rounding to the nearest number loses nothing here"


def test_a_trained_model_is_exported_in_float32(bert, engine_for, tmp_path):
    training = TrainingSection(learning_rate=1e-3, master_weights="bfloat16_stochastic")
    engine_for(bert, classes("a", "b"), training, precision="bfloat16").export(tmp_path)
    assert {weight.dtype for weight in load_file(tmp_path / "model.safetensors").values()} == {torch.float32}
