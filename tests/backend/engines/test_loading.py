"""How a model is put in place: new weights, labels, vocabulary, configuration, limits."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForQuestionAnswering, MambaConfig

from backend.contract.errors import InputError
from backend.contract.heads import Head, HeadFacts
from backend.contract.spec import TrainingSection
from backend.engines.initial_weights import draw
from backend.engines.jax.engine import JaxEngine
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import (
    BERT_TINY,
    LANGUAGE,
    VOCABULARY,
    classes,
    language_batch,
    loading,
    text_batch,
)
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.tiny_models import PADDING

TRAINING = TrainingSection(learning_rate=2e-5, seed=5)


def weights(engine, folder):
    engine.export(folder)
    return load_file(folder / "model.safetensors")


def test_a_missing_head_is_drawn_by_seed_and_name_whatever_torch_draws(bert, engine_for, tmp_path):
    torch.manual_seed(99)
    engine = TorchEngine()
    loaded = engine.load(loading(bert, classes("a", "b", "c"), TRAINING))
    assert loaded.new_weights == ["classifier.bias", "classifier.weight"]
    config = json.loads((bert / "config.json").read_text())
    found = weights(engine, tmp_path)["classifier.weight"]
    assert np.array_equal(found, draw("classifier.weight", (3, 16), config, 5))


@pytest.mark.parametrize("folder", ["bert", "gpt2", "llama"])
def test_from_scratch_every_weight_is_drawn(folder, request, tmp_path):
    path = request.getfixturevalue(folder)
    head = classes("a", "b") if folder == "bert" else LANGUAGE
    engine = TorchEngine()
    loaded = engine.load(loading(path, head, TRAINING, model={"initialise": "from_config"}))
    config = engine._model.config.to_dict()
    for name, parameter in engine._model.named_parameters():
        assert np.array_equal(parameter.detach(), draw(name, tuple(parameter.shape), config, 5)), name
    assert set(loaded.new_weights) == {name for name, _ in engine._model.named_parameters()}


def test_from_scratch_needs_no_weights_file(gpt2, tmp_path):
    shutil.copy(gpt2 / "config.json", tmp_path)
    engine = TorchEngine()
    engine.load(loading(tmp_path, LANGUAGE, TRAINING, vocabulary=70, model={"initialise": "from_config"}))
    assert engine._model.get_input_embeddings().weight.shape[0] == 70


def test_a_body_that_a_head_calls_otherwise_is_read_and_left_under_the_heads_name(llama, engine_for, tmp_path):
    engine_for(llama, facts(Head.QUESTION_ANSWERING), TRAINING).export(tmp_path)
    found, report = AutoModelForQuestionAnswering.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    body = AutoModelForCausalLM.from_pretrained(llama).model.state_dict()
    assert all(torch.equal(value, body[name]) for name, value in found.transformer.state_dict().items())


def test_labels_are_kept_in_the_exported_configuration(bert, engine_for, tmp_path):
    engine_for(bert, classes("bad", "good"), TRAINING).export(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["id2label"] == {"0": "bad", "1": "good"}
    assert config["label2id"] == {"bad": 0, "good": 1}
    assert config["dtype"] == "float32"


def test_a_stored_head_follows_its_labels_into_another_order(bert, engine_for, tmp_path):
    first = engine_for(bert, classes("bad", "good"), TRAINING)
    first.export(tmp_path)
    engine = TorchEngine()
    loaded = engine.load(loading(tmp_path, classes("Good", "Bad")))
    batch = text_batch(4)
    assert loaded.new_weights == []
    np.testing.assert_allclose(engine.evaluate(batch)["logits"][:, ::-1], first.evaluate(batch)["logits"], atol=1e-6)


@pytest.mark.parametrize("labels", [("cat", "dog"), ("bad", "good", "fair")])
def test_a_stored_head_with_other_labels_becomes_a_new_one(bert, engine_for, labels, tmp_path):
    engine_for(bert, classes("bad", "good"), TRAINING).export(tmp_path)
    loaded = TorchEngine().load(loading(tmp_path, classes(*labels), TRAINING))
    assert loaded.new_weights == ["classifier.bias", "classifier.weight"]


@pytest.mark.parametrize("engine", [TorchEngine, JaxEngine])
def test_weights_of_nothing_in_the_model_are_refused(engine, bert, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "model")
    save_file({"\x1b": torch.ones(1)}, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"no weights in .* belong to a bert model; download the model again"):
        engine().load(loading(folder, classes("a", "b"), vocabulary=VOCABULARY))


def test_float16_weights_become_float32(engine_for):
    engine = engine_for(BERT_TINY, classes("a", "b"), TRAINING, vocabulary=30522)
    assert {each.dtype for each in engine._model.parameters()} == {torch.float32}


@pytest.mark.parametrize("folder", ["bert", "gpt2", "llama"])
def test_a_larger_vocabulary_gets_drawn_rows_and_keeps_the_old_ones(folder, request, engine_for, tmp_path):
    path = request.getfixturevalue(folder)
    head = classes("a", "b") if folder == "bert" else LANGUAGE
    before = engine_for(path, head)._model.get_input_embeddings().weight
    engine = TorchEngine()
    loaded = engine.load(loading(path, head, TRAINING, vocabulary=VOCABULARY + 3))
    after = engine._model.get_input_embeddings().weight.detach()
    assert "3 rows added" in loaded.resized
    assert np.array_equal(after[:VOCABULARY], before)
    name = next(
        name for name, each in engine._model.named_parameters() if each is engine._model.get_input_embeddings().weight
    )
    assert np.array_equal(after[-3:], draw(name, tuple(after.shape), engine._model.config.to_dict(), 5)[-3:])


def test_a_smaller_vocabulary_never_shrinks_the_table(gpt2, engine_for):
    engine = engine_for(gpt2, LANGUAGE, TRAINING, vocabulary=VOCABULARY - 10)
    assert engine._model.get_input_embeddings().weight.shape[0] == VOCABULARY


def test_dropout_replaces_every_probability(engine_for):
    engine = engine_for(BERT_TINY, classes("a", "b"), TRAINING, vocabulary=30522, model={"dropout": 0.25})
    found = [module.p for module in engine._model.modules() if isinstance(module, torch.nn.Dropout)]
    assert found
    assert set(found) == {0.25}


def test_an_unknown_configuration_key_is_named(bert, engine_for):
    with pytest.raises(InputError, match=r"model\.config\.layers"):
        engine_for(bert, classes("a", "b"), model={"config": {"layers": 3}})


def test_a_configuration_change_that_does_not_fit_the_file_is_refused(bert, engine_for):
    with pytest.raises(InputError, match="from_config"):
        engine_for(bert, classes("a", "b"), model={"config": {"hidden_size": 32}})


def test_a_length_beyond_the_positions_is_refused_by_name(bert, engine_for):
    with pytest.raises(InputError, match=r"max_length.*41.*40 positions"):
        engine_for(bert, classes("a", "b"), max_length=41)


def test_a_length_beyond_the_positions_may_be_the_targets(tiny, engine_for):
    with pytest.raises(InputError, match=r"set task\.max_length and task\.max_target_length to"):
        engine_for(tiny("bart"), HeadFacts(Head.SEQ2SEQ_LM), max_length=4097)


def test_gradient_checkpointing_changes_no_number(llama, engine_for):
    plain = engine_for(llama, LANGUAGE, TrainingSection(learning_rate=1e-3))
    sparing = engine_for(llama, LANGUAGE, TrainingSection(learning_rate=1e-3, gradient_checkpointing=True))
    numbers = [engine.read([engine.train_step([language_batch(4)], 0, 1e-3)]) for engine in (plain, sparing)]
    assert sparing._model.is_activation_checkpointing
    assert numbers[0] == numbers[1]


def test_float16_on_a_processor_is_refused_with_the_way_out(bert, engine_for):
    with pytest.raises(InputError, match=r"hardware\.precision.*bfloat16"):
        engine_for(bert, classes("a", "b"), TRAINING, precision="float16")


def test_a_stored_head_of_tags_follows_its_labels_into_another_order(tiny, engine_for, tmp_path):
    first = engine_for(tiny("bert"), HeadFacts(Head.TOKEN_CLASSIFICATION, ("O", "B-PER", "I-PER")), TRAINING)
    first.export(tmp_path)
    engine = TorchEngine()
    loaded = engine.load(loading(tmp_path, HeadFacts(Head.TOKEN_CLASSIFICATION, ("I-PER", "O", "B-PER"))))
    batch = head_batch(Head.TOKEN_CLASSIFICATION, 3)
    assert loaded.new_weights == []
    np.testing.assert_allclose(
        engine.evaluate(batch)["logits"][..., [1, 2, 0]], first.evaluate(batch)["logits"], atol=1e-6
    )


def test_only_the_last_layer_of_a_head_follows_the_labels(tiny, engine_for, tmp_path):
    labels = tuple(f"topic {number:02}" for number in range(16))  # as many as the head's hidden layer is wide
    first = engine_for(tiny("roberta"), classes(*labels), TRAINING)
    first.export(tmp_path)
    again = engine_for(tmp_path, classes(*labels[::-1]))
    batch = text_batch(4)
    np.testing.assert_allclose(again.evaluate(batch)["logits"][:, ::-1], first.evaluate(batch)["logits"], atol=1e-6)


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (HeadFacts(Head.MULTIPLE_CHOICE), HeadFacts(Head.SEQUENCE_REGRESSION)),
        (HeadFacts(Head.SEQUENCE_REGRESSION), HeadFacts(Head.MULTIPLE_CHOICE)),
        (classes("bad", "good"), HeadFacts(Head.TOKEN_CLASSIFICATION, ("bad", "good"))),
        (classes("a", "b", "c"), HeadFacts(Head.SEQUENCE_REGRESSION)),
    ],
    ids=["choices to a number", "a number to choices", "classes to tags", "classes to a number"],
)
def test_a_head_made_for_another_kind_is_drawn_anew(stored, wanted, tiny, engine_for, tmp_path):
    engine_for(tiny("bert"), stored, TRAINING).export(tmp_path)
    loaded = TorchEngine().load(loading(tmp_path, wanted, TRAINING))
    assert loaded.new_weights == ["classifier.bias", "classifier.weight"]


def test_a_plain_answering_head_has_two_outputs_whatever_the_checkpoint_named(tiny, engine_for, tmp_path):
    engine_for(tiny("bert"), classes("a", "b", "c"), TRAINING).export(tmp_path)
    loaded = TorchEngine().load(loading(tmp_path, HeadFacts(Head.QUESTION_ANSWERING), TRAINING))
    assert loaded.new_weights == ["qa_outputs.bias", "qa_outputs.weight"]


def test_a_beam_head_on_an_architecture_without_one_is_refused(bert, engine_for):
    with pytest.raises(InputError, match="bert model has no beam-search head; choose XLNet"):
        engine_for(bert, HeadFacts(Head.QUESTION_ANSWERING_BEAM), TRAINING)


def test_a_plain_head_after_a_beam_head_is_new(tiny, engine_for, tmp_path):
    engine_for(tiny("xlnet"), HeadFacts(Head.QUESTION_ANSWERING_BEAM), TRAINING).export(tmp_path)
    loaded = TorchEngine().load(loading(tmp_path, HeadFacts(Head.QUESTION_ANSWERING), TRAINING))
    assert loaded.new_weights == ["qa_outputs.bias", "qa_outputs.weight"]


@pytest.mark.parametrize("name", ["t5", "mt5", "bart", "mbart", "marian", "pegasus", "xlnet", "xlm"])
def test_encoder_decoders_and_others_begin_from_scratch_as_drawn(name, tiny):
    head = Head.QUESTION_ANSWERING_BEAM if name.startswith("x") else Head.SEQ2SEQ_LM
    engine, padding = TorchEngine(), PADDING.get(name, 0)
    scratch = {"initialise": "from_config"}
    loaded = engine.load(loading(tiny(name), facts(head), TRAINING, pad_token_id=padding, model=scratch))
    config, drawn = engine._model.config.to_dict(), dict(engine._model.named_parameters())
    for key in loaded.new_weights:
        assert np.array_equal(drawn[key].detach(), draw(key, tuple(drawn[key].shape), config, 5)), key
    assert {key for key, each in drawn.items() if each.requires_grad} == set(loaded.new_weights)


def test_a_t5_whose_configuration_names_no_start_begins_with_padding(tiny, tmp_path):
    config = json.loads((tiny("t5") / "config.json").read_text())
    del config["decoder_start_token_id"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    engine = TorchEngine()
    scratch = {"initialise": "from_config"}
    engine.load(loading(tmp_path, facts(Head.SEQ2SEQ_LM), TRAINING, pad_token_id=3, model=scratch))
    assert engine.evaluate(head_batch(Head.SEQ2SEQ_LM, 2))
    engine.export(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "config.json").read_text())["decoder_start_token_id"] == 3


def test_what_has_no_rule_of_beginning_is_refused_by_name(tmp_path):
    config = MambaConfig(vocab_size=VOCABULARY, hidden_size=8, num_hidden_layers=1, state_size=4)
    config.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"model\.initialise: Burnish does not know how .*(A_log|D) of a mamba"):
        TorchEngine().load(loading(tmp_path, LANGUAGE, TRAINING, model={"initialise": "from_config"}))


def test_another_vocabulary_by_configuration_is_refused_for_a_language_model(llama, engine_for):
    with pytest.raises(InputError, match=r"model\.config.*different shape"):
        engine_for(llama, LANGUAGE, TRAINING, model={"config": {"vocab_size": VOCABULARY + 1}})


def test_a_language_model_from_scratch_ends_with_its_own_tokenizers_token(gpt2, engine_for):
    engine = engine_for(gpt2, LANGUAGE, model={"initialise": "from_config"}, bos_token_id=None, eos_token_id=3)
    assert (engine._model.config.bos_token_id, engine._model.config.eos_token_id) == (None, 3)
    assert engine._model.generation_config.eos_token_id == 3
