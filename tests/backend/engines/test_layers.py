"""Which parameters freeze, and at which rate each layer learns."""

import numpy as np
import pytest
import torch

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from backend.engines.torch.engine import TorchEngine
from backend.engines.torch.optimizer import layer_depths
from tests.backend.engines.example_batches import LANGUAGE, classes, language_batch, loading, text_batch
from tests.backend.engines.head_batches import facts, head_batch

HEAD = classes("a", "b")
TRANSLATION = facts(Head.SEQ2SEQ_LM)
TRAINING = TrainingSection(learning_rate=2e-5, max_gradient_norm=None)


def test_each_layer_learns_at_the_rate_of_the_one_above_times_the_decay(bert, engine_for):
    found = layer_depths(engine_for(bert, HEAD)._model).rates(0.5)
    assert found["classifier.weight"] == 1.0
    assert found["bert.pooler.dense.weight"] == 1.0
    assert found["bert.encoder.layer.1.attention.self.query.weight"] == 0.5
    assert found["bert.encoder.layer.0.output.LayerNorm.bias"] == 0.25
    assert {value for name, value in found.items() if ".embeddings." in name} == {0.125}


def test_gpt2_has_its_embeddings_below_and_its_last_norm_above(gpt2, engine_for):
    found = layer_depths(engine_for(gpt2, LANGUAGE)._model).rates(0.5)
    assert (found["transformer.wte.weight"], found["transformer.h.0.ln_1.weight"]) == (0.125, 0.25)
    assert found["transformer.ln_f.weight"] == 1.0


def test_a_decoder_lies_above_its_encoder():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=16, num_layers=2, num_heads=2)
    found = layer_depths(T5ForConditionalGeneration(config)).rates(0.5)
    names = ["encoder.block.0", "encoder.block.1", "decoder.block.0", "decoder.block.1"]
    assert [found[f"{name}.layer.0.SelfAttention.q.weight"] for name in names] == [0.0625, 0.125, 0.25, 0.5]
    assert found["shared.weight"] == 0.03125


def test_a_step_with_layer_decay_equals_one_group_for_each_rate(bert, engine_for, tmp_path):
    training = TrainingSection(
        learning_rate=2e-5, layer_decay=0.5, weight_decay=0.0, max_gradient_norm=None, adam_epsilon=1e-4
    )
    engine = engine_for(bert, HEAD, training)
    engine.export(tmp_path)
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(tmp_path).train()
    groups = [
        {"params": [each], "lr": 1e-2 * rate}
        for (_, each), rate in zip(model.named_parameters(), layer_depths(model).rates(0.5).values(), strict=True)
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.0, eps=1e-4)
    batch = text_batch(6)
    model(**{name: torch.from_numpy(array) for name, array in batch.items() if name != "row_valid"}).loss.backward()
    optimizer.step()
    engine.train_step([batch], 0, 1e-2)
    for (name, ours), theirs in zip(engine._model.named_parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(ours.detach(), theirs.detach(), atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("frozen", "still", "stays"),
    [
        (["embeddings"], "bert.encoder.layer.0.output.dense.weight", "bert.embeddings.LayerNorm.weight"),
        ([1], "bert.encoder.layer.1.output.dense.weight", "bert.encoder.layer.0.output.dense.weight"),
        (["encoder"], "classifier.weight", "bert.pooler.dense.weight"),
        (
            ["*.query.*"],
            "bert.encoder.layer.0.attention.self.key.weight",
            "bert.encoder.layer.0.attention.self.query.bias",
        ),
        (["encoder.layer.1"], "bert.encoder.layer.0.output.dense.bias", "bert.encoder.layer.1.output.dense.bias"),
    ],
)
def test_frozen_parts_stay_and_the_others_learn(frozen, still, stays, bert, engine_for):
    engine = engine_for(bert, HEAD, TrainingSection(learning_rate=2e-5), model={"frozen": frozen})
    before = {name: value.clone() for name, value in engine._model.state_dict().items()}
    engine.train_step([text_batch(6)], 0, 1e-2)
    after = engine._model.state_dict()
    assert torch.equal(before[stays], after[stays])
    assert not torch.equal(before[still], after[still])


def test_a_pattern_that_matches_nothing_is_refused_with_examples(bert, engine_for):
    with pytest.raises(InputError, match=r"'\*\.h\.0\.\*' does not match any parameter; the parameters include bert\."):
        engine_for(bert, HEAD, TrainingSection(learning_rate=2e-5), model={"frozen": ["*.h.0.*"]})


def test_more_layers_than_there_are_is_refused(gpt2, engine_for):
    with pytest.raises(InputError, match="3 lower layers are more than the 2"):
        engine_for(gpt2, LANGUAGE, TrainingSection(learning_rate=2e-5), model={"frozen": [3]})


def test_nothing_left_to_train_is_refused(bert, engine_for):
    with pytest.raises(InputError, match="nothing to train"):
        engine_for(bert, HEAD, TrainingSection(learning_rate=2e-5), model={"frozen": ["encoder", "classifier"]})


@pytest.mark.parametrize("initialise", ["pretrained", "from_config"])
def test_sinusoidal_positions_never_train(initialise, tiny, engine_for):
    engine = engine_for(tiny("marian"), TRANSLATION, TRAINING, pad_token_id=59, model={"initialise": initialise})
    before = {name: value.clone() for name, value in engine._model.named_parameters()}
    engine.train_step([head_batch(Head.SEQ2SEQ_LM, 4, padding=59)], 0, 1e-2)
    still = {name for name, value in engine._model.named_parameters() if torch.equal(value, before[name])}
    assert still == {f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")}


def test_weights_that_train_do_not_include_sinusoidal_positions(tiny):
    loaded = TorchEngine().load(loading(tiny("marian"), TRANSLATION, TRAINING, pad_token_id=59))
    assert loaded.parameters - loaded.trainable == 2 * 40 * 16


def test_sinusoidal_positions_alone_are_nothing_to_train(tiny, engine_for):
    with pytest.raises(InputError, match="nothing to train"):
        engine_for(tiny("marian"), TRANSLATION, TRAINING, model={"frozen": ["shared", "*.layers.*"]})


def test_a_checkpoint_leaves_out_what_is_frozen_and_resumes_to_the_bit(gpt2, engine_for, tmp_path):
    from safetensors.numpy import load_file

    def steps(engine, numbers):
        return engine.read([engine.train_step([language_batch(4, seed=step)], step, 1e-3) for step in numbers])

    whole = engine_for(gpt2, LANGUAGE, TrainingSection(learning_rate=2e-5), model={"frozen": [1]})
    steps(whole, range(2))
    whole.save(tmp_path)()
    assert not {name for name in load_file(tmp_path / "model.safetensors") if "wte" in name or ".h.0." in name}
    expected = steps(whole, range(2, 4))
    resumed = engine_for(gpt2, LANGUAGE, TrainingSection(learning_rate=2e-5), model={"frozen": [1]})
    resumed.restore(tmp_path)
    assert steps(resumed, range(2, 4)) == expected


DROPOUTS = [
    "bert",
    "distilbert",
    "albert",
    "gpt2",
    "opt",
    "gpt_neo",
    "t5",
    "bart",
    "xlnet",
    "xlm",
    "deberta-v2",
    "llama",
]


@pytest.mark.parametrize("family", DROPOUTS)
def test_the_dropout_override_reaches_every_family(family):
    from transformers import AutoConfig

    from backend.engines.configuration import set_dropout

    config = AutoConfig.for_model(family)
    set_dropout(config, 0.25)
    left = {
        name: value
        for name, value in config.to_dict().items()
        if "drop" in name and "layerdrop" not in name and isinstance(value, float) and value != 0.25
    }
    assert left == {}
