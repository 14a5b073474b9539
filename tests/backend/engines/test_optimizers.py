"""Every optimizer makes the steps of the plain one, decays and clips as AdamW does, and resumes to the bit."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.optimization import Adafactor

from backend import registry
from backend.contract.errors import InputError
from backend.contract.heads import Head, HeadFacts
from backend.contract.spec import TrainingSection
from backend.engines.torch import engine as torch_engine
from backend.engines.torch import precision
from tests.backend.engines.example_batches import (
    BERT_TINY,
    LANGUAGE,
    ROUNDING,
    VOCABULARY,
    classes,
    language_batch,
    text_batch,
)

RATES = [1e-2, 5e-3, 2e-2]
LIMIT = 0.05
HEAD = classes("a", "b", "c")


class PlainLion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al. 2023, one weight tensor after another."""

    def __init__(self, groups, **settings):
        super().__init__(groups, settings)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                momentum = self.state[weight].setdefault("m", torch.zeros_like(weight))
                direction = (0.9 * momentum + 0.1 * weight.grad).sign()
                weight -= group["lr"] * (direction + group["weight_decay"] * weight)
                momentum.copy_(0.99 * momentum + 0.01 * weight.grad)


PLAIN = {
    "adamw": ({}, lambda groups: torch.optim.AdamW(groups, lr=1.0)),
    "adam": ({}, lambda groups: torch.optim.Adam(groups, lr=1.0)),
    "sgd": ({}, lambda groups: torch.optim.SGD(groups, lr=1.0)),
    "sgd-momentum": (
        {"momentum": 0.9, "nesterov": True},
        lambda groups: torch.optim.SGD(groups, lr=1.0, momentum=0.9, nesterov=True),
    ),
    "lion": ({}, lambda groups: PlainLion(groups, lr=1.0)),
    "adafactor": (
        {},
        lambda groups: Adafactor(groups, lr=1.0, relative_step=False, scale_parameter=False),
    ),
    "adafactor-scaled": (
        {"scale_parameter": True, "beta1": 0.9, "clip_threshold": 0.5, "decay_rate": -0.6},
        lambda groups: Adafactor(
            groups, lr=1.0, relative_step=False, scale_parameter=True, beta1=0.9, clip_threshold=0.5, decay_rate=-0.6
        ),
    ),
    "adafactor-relative": (
        {"relative_step": True, "scale_parameter": True, "warmup_init": True},
        lambda groups: Adafactor(groups, lr=None, relative_step=True, scale_parameter=True, warmup_init=True),
    ),
}


def training(case: str, **changes) -> TrainingSection:
    values = {"weight_decay": 0.1, "max_gradient_norm": LIMIT, "seed": 7, **changes}
    return TrainingSection(
        optimizer=case.split("-")[0], optimizer_options=PLAIN[case][0], **{"learning_rate": 2e-5, **values}
    )


def plain_groups(model):
    """Biases and norms apart, found by name."""
    named = dict(model.named_parameters())
    plain = [name for name in named if name.endswith("bias") or "norm" in name.lower()]
    return [
        {"params": [each for name, each in named.items() if name not in plain], "weight_decay": 0.1},
        {"params": [named[name] for name in plain], "weight_decay": 0.0},
    ]


def reference_weights(folder, make, batches):
    """The same steps with nothing of ours."""
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(folder).train()
    optimizer = make(plain_groups(model))
    for rate, batch in zip(RATES, batches, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = rate
        model(**{name: torch.from_numpy(array) for name, array in batch.items() if name != "row_valid"}).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), LIMIT)
        optimizer.step()
        optimizer.zero_grad()
    return {name: value.detach().numpy() for name, value in model.named_parameters()}


@pytest.mark.parametrize("case", PLAIN)
def test_steps_equal_those_of_the_plain_optimizer(case, bert, engine_for, tmp_path):
    engine = engine_for(bert, HEAD, training(case, adam_epsilon=1e-4))
    engine.export(tmp_path / "before")
    batches = [text_batch(8, seed=seed, labels=3) for seed in range(3)]
    make = PLAIN[case][1]
    if case in ("adamw", "adam"):  # a tiny epsilon blows rounding of tiny gradients up to whole steps
        plain = make
        make = lambda groups: _with_epsilon(plain(groups))  # noqa: E731
    expected = reference_weights(tmp_path / "before", make, batches)
    for step, (rate, batch) in enumerate(zip(RATES, batches, strict=True)):
        engine.train_step([batch], step, rate)
    engine.export(tmp_path / "after")
    ours = load_file(tmp_path / "after" / "model.safetensors")
    for name, value in expected.items():
        if case.startswith(("lion", "adafactor")) and name.endswith("key.bias"):
            continue  # its gradient is zero but for rounding, which their steps blow up
        np.testing.assert_allclose(ours[name], value, rtol=0, atol=1e-6, err_msg=name)


def _with_epsilon(optimizer):
    for group in optimizer.param_groups:
        group["eps"] = 1e-4
    return optimizer


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_one_kernel_updates_all_weights(optimizer, device):
    kind, weight = registry.find("optimizer", optimizer, "training.optimizer"), torch.zeros(2, device=device)
    made = kind.make([{"params": [weight]}], TrainingSection(optimizer=optimizer, learning_rate=0.1), kind.Settings())
    assert made.defaults["fused"]


def test_a_weight_may_get_its_first_gradient_when_others_have_momentum():
    kind, options = registry.find("optimizer", "sgd", "training.optimizer"), {"momentum": 0.5}
    weights = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    training = TrainingSection(optimizer="sgd", learning_rate=1.0)
    made = kind.make([{"params": weights, "weight_decay": 0.0}], training, kind.Settings(**options))
    for used in (weights[:1], weights):
        for weight in used:
            weight.grad = torch.ones(1)
        made.step()
        made.zero_grad()
    assert [each.item() for each in weights] == [-2.5, -1.0]


@pytest.mark.parametrize("case", PLAIN)
def test_resumed_steps_equal_uninterrupted_ones_to_the_bit(case, gpt2, engine_for, tmp_path):
    def steps(engine, numbers):
        results = [engine.train_step([language_batch(4, seed=step)], step, 1e-3) for step in numbers]
        return engine.read(results)

    whole = engine_for(gpt2, LANGUAGE, training(case))
    steps(whole, range(2))
    whole.save(tmp_path)()
    expected = steps(whole, range(2, 5))
    resumed = engine_for(gpt2, LANGUAGE, training(case))
    resumed.restore(tmp_path)
    assert steps(resumed, range(2, 5)) == expected


@pytest.mark.parametrize(
    ("case", "rate"),
    [("adamw", 1e-2), ("adam", 1e-2), ("sgd", 1.0), ("sgd-momentum", 0.3), ("lion", 1e-3), ("adafactor", 1e-2)],
)
def test_thirty_steps_lower_the_loss(case, rate, bert, engine_for):
    engine = engine_for(bert, HEAD, training(case, max_gradient_norm=None))
    numbers = engine.read([engine.train_step([text_batch(8, labels=3)], step, rate) for step in range(30)])
    assert numbers[-1].loss < 0.9 * numbers[0].loss


def test_every_optimizer_has_a_title_and_a_state_that_the_plan_can_count():
    for name, entry in registry.all_of("optimizer").items():
        assert entry.title, name
        assert entry.state_per_weight(entry.Settings()) in (0.0, 1.0, 2.0, 0.5 * (1 + 4 / 256)), name


def test_adafactor_with_its_own_rate_and_layer_decay_is_refused(bert, engine_for):
    with pytest.raises(InputError, match="relative_step"):
        engine_for(bert, HEAD, training("adafactor-relative", layer_decay=0.9))


def test_only_adamw_trains_a_large_embedding_by_rows(engine_for):
    engine = engine_for(BERT_TINY, HEAD, TrainingSection(learning_rate=2e-5, optimizer="adam"), vocabulary=30522)
    assert engine._words is None


# 8 bits. Only this model has matrices that are large enough for them; its word embedding is trained by rows.


def eight_bits(**changes) -> TrainingSection:
    return TrainingSection(
        learning_rate=2e-5, weight_decay=0.1, max_gradient_norm=LIMIT, adam_epsilon=1e-4, seed=7,
        **{"optimizer": "adamw_8bit", **changes},
    )  # fmt: skip


def without_dropout(**changes):
    return {"vocabulary": 30522, "model": {"config": dict.fromkeys(DROPOUT, 0.0)}, **changes}


DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob")


def plain_8bit(groups):
    """bitsandbytes alone, told in its own way to keep an embedding's moments in 32 bits."""
    from bitsandbytes.optim.adamw import AdamW8bit
    from bitsandbytes.optim.optimizer import GlobalOptimManager

    words_positions_types = groups[0]["params"][:3]
    GlobalOptimManager.get_instance().override_config(words_positions_types, "optim_bits", 32)
    return _with_epsilon(AdamW8bit(groups, lr=1.0))


def test_steps_in_8_bits_equal_those_of_bitsandbytes(engine_for, tmp_path):
    from bitsandbytes.optim.optimizer import GlobalOptimManager

    engine = engine_for(BERT_TINY, HEAD, eight_bits(), **without_dropout())
    engine.export(tmp_path / "before")
    batches = [text_batch(8, seed=seed, vocabulary=30522, labels=3) for seed in range(3)]
    try:
        expected = reference_weights(tmp_path / "before", plain_8bit, batches)
    finally:
        GlobalOptimManager.get_instance().initialize()
    for step, (rate, batch) in enumerate(zip(RATES, batches, strict=True)):
        engine.train_step([batch], step, rate)
    engine.export(tmp_path / "after")
    ours, before = (load_file(tmp_path / name / "model.safetensors") for name in ("after", "before"))
    for name, value in expected.items():
        if not name.endswith("key.bias"):  # whose gradient is zero
            # With moments in 32 bits it would be above 1e-3; not zero, as rounding moves few of them to the next value.
            assert np.abs(ours[name] - value).mean() < 5e-4 * np.abs(value - before[name]).mean(), name


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A GPT-2 with matrices of 102,400 weights: bitsandbytes pages no state of less than 100,000."""
    torch.manual_seed(2)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=160, n_layer=1, n_head=2, n_positions=40, bos_token_id=1, eos_token_id=1,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("wide")
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore:Paged optimizers are not supported on CPU:UserWarning")
@pytest.mark.parametrize("optimizer", ["adamw_8bit", "paged_adamw", "paged_adamw_8bit"])
def test_steps_with_bitsandbytes_resume_to_the_bit(optimizer, wide, device, engine_for, tmp_path):
    def steps(engine, numbers):
        found = [engine.train_step([language_batch(8, seed=step)], step, 1e-3) for step in numbers]
        return [(each.loss, each.gradient_norm) for each in engine.read(found)]

    whole = engine_for(wide, LANGUAGE, eight_bits(optimizer=optimizer), devices=(device,))
    steps(whole, range(2))
    whole.save(tmp_path)()
    expected = steps(whole, range(2, 5))
    resumed = engine_for(wide, LANGUAGE, eight_bits(optimizer=optimizer), devices=(device,))
    resumed.restore(tmp_path)
    np.testing.assert_allclose(steps(resumed, range(2, 5)), expected, rtol=ROUNDING[device])
    state = load_file(tmp_path / "optimizer.safetensors")
    moments = state["state1.transformer.h.0.mlp.c_fc.weight"]
    assert moments.dtype == (np.uint8 if optimizer.endswith("8bit") else np.float32)
    assert len(np.unique(moments)) > 10  # what was written is no page that nobody has filled
    assert state["state1.transformer.wpe.weight"].dtype == np.float32
    if optimizer.startswith("paged") and device != "cpu":
        held = whole._optimizer._inner.state.values()
        assert any(getattr(each, "is_paged", False) for values in held for each in values.values())


@pytest.mark.filterwarnings("ignore:Paged optimizers are not supported on CPU:UserWarning")
@pytest.mark.parametrize("optimizer", ["adamw_8bit", "paged_adamw"])
def test_a_loss_curve_of_bitsandbytes_follows_that_of_adamw(optimizer, wide, device, engine_for):
    if optimizer.startswith("paged") and device == "cpu":
        pytest.skip("a CPU pages nothing")
    curves = []
    for each in ("adamw", optimizer):
        training = eight_bits(optimizer=each)
        engine = engine_for(wide, LANGUAGE, training, devices=(device,))
        batches = [language_batch(8, seed=step % 4) for step in range(24)]
        numbers = engine.read([engine.train_step([batch], step, 2e-3) for step, batch in enumerate(batches)])
        curves.append(np.array([each.loss for each in numbers]))
    plain, ours = curves
    assert plain[-4:].mean() < 0.7 * plain[:4].mean()
    np.testing.assert_allclose(ours, plain, atol=0.03 * plain[0])


class ScaledPrecision(precision.Precision):
    """What float16 has on a GPU, for a CPU: the scale of losses, whose steps are skipped if gradients overflow."""

    def __init__(self, device, name):
        super().__init__(device, "float32")
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)


@pytest.fixture
def half(bert, device, engine_for, monkeypatch):
    """Makes an engine that trains in float16, on a CPU only with its scale."""
    if device == "cpu":
        monkeypatch.setattr(torch_engine, "Precision", ScaledPrecision)
    name = "float32" if device == "cpu" else "float16"
    return lambda head=HEAD: engine_for(bert, head, training("adamw"), devices=(device,), precision=name)


def half_steps(engine, numbers):
    found = [engine.train_step([text_batch(8, seed=step % 2, labels=3)], step, 1e-2) for step in numbers]
    return np.array([(each.loss, each.gradient_norm) for each in engine.read(found)])


def scale_of(folder):
    with safe_open(folder / "optimizer.safetensors", "np") as file:
        return json.loads(file.metadata()["scaler"])


def test_steps_in_float16_train_and_resume(half, device, tmp_path):
    whole = half()
    losses = half_steps(whole, range(20))[:, 0]
    assert losses[-2:].mean() < 0.9 * losses[:2].mean()
    whole.save(tmp_path)()
    assert scale_of(tmp_path)["scale"] >= 1.0
    resumed = half()
    resumed.restore(tmp_path)
    np.testing.assert_allclose(
        half_steps(resumed, range(20, 23)), half_steps(whole, range(20, 23)), rtol=100 * ROUNDING[device]
    )


def test_a_step_in_float16_whose_gradients_overflow_is_skipped(half, tmp_path):
    engine, far = half(HeadFacts(Head.SEQUENCE_REGRESSION)), {"labels": np.full(8, 1000, np.float32)}
    engine.train_step([text_batch(8) | far], 0, 1e-2)
    engine.save(tmp_path)()
    state, scaler = load_file(tmp_path / "optimizer.safetensors"), scale_of(tmp_path) | {"scale": 3e38}
    save_file(state, tmp_path / "optimizer.safetensors", {"words": "", "scaler": json.dumps(scaler)})
    engine.restore(tmp_path)
    [numbers] = engine.read([engine.train_step([text_batch(8) | far], 1, 1e-2)])
    assert np.isfinite(numbers.loss)
    assert not np.isfinite(numbers.gradient_norm)
    (tmp_path / "after").mkdir()
    engine.save(tmp_path / "after")()
    assert scale_of(tmp_path / "after")["scale"] == pytest.approx(1.5e38)
    before, after = (load_file(folder / "model.safetensors") for folder in (tmp_path, tmp_path / "after"))
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_process_without_rows_in_its_first_step_has_the_scale_of_float16(monkeypatch):
    scaler = torch.amp.GradScaler("cpu")
    monkeypatch.setattr(precision, "Accelerator", lambda **_: SimpleNamespace(autocast=nullcontext, scaler=scaler))
    precision.Precision(torch.device("meta"), "float16")
    scaler.unscale_(torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))]))  # without a scale it raises AssertionError
