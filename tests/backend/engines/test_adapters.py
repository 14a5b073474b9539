"""LoRA through PEFT: a step is PEFT's own, merging changes no output, checkpoints are small, and both exports load."""

import numpy as np
import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.optimizers import create_loraplus_optimizer
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from backend.adapters.lora import Settings
from backend.contract.errors import InputError
from backend.contract.heads import Head, HeadFacts
from backend.contract.spec import TrainingSection
from backend.engines.torch.adapters import merged_weights
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

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # PEFT asks by the old name
TRAINING = TrainingSection(learning_rate=1e-2, weight_decay=0.1, max_gradient_norm=0.5, adam_epsilon=1e-4, seed=7)
HEAD = classes("a", "b", "c")
SEQ2SEQ = HeadFacts(Head.SEQ2SEQ_LM)


def seq2seq_batch(rows: int, seed: int = 0):
    target = language_batch(rows, seed + 50)["labels"]
    return {**{k: v for k, v in language_batch(rows, seed).items() if k != "labels"}, "labels": target}


CASES = {
    "bert": (HEAD, lambda rows, seed: text_batch(rows, seed, labels=3), AutoModelForSequenceClassification),
    "gpt2": (LANGUAGE, language_batch, AutoModelForCausalLM),
    "t5": (SEQ2SEQ, seq2seq_batch, AutoModelForSeq2SeqLM),
}


@pytest.fixture(scope="session")
def t5(tmp_path_factory: pytest.TempPathFactory):
    """A T5 of two small layers a side."""
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(4)
    config = T5Config(
        vocab_size=VOCABULARY, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, dropout_rate=0.0,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("t5")
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.fixture
def lora(request):
    """An engine with LoRA on the model of a case."""

    def make(case: str, training: TrainingSection | None = TRAINING, **settings) -> tuple[TorchEngine, object]:
        engine = TorchEngine()
        folder = request.getfixturevalue(case)
        loaded = engine.load(loading(folder, CASES[case][0], training, adapter=Settings(**settings)))
        return engine, loaded

    return make


def outputs(engine, case):
    return engine.evaluate(CASES[case][1](5, seed=9))


def train(engine, case, steps=range(3)):
    make = CASES[case][1]
    return engine.read([engine.train_step([make(6, seed=step)], step, 1e-2) for step in steps])


def plain_outputs(folder, case):
    """What an engine gives that knows of no adapter."""
    engine = TorchEngine()
    engine.load(loading(folder, CASES[case][0]))
    return outputs(engine, case)


def same(ours, theirs, tolerance=1e-5):
    return all(
        np.allclose(ours[name], theirs[name], rtol=0, atol=tolerance) for name in ours if ours[name].dtype.kind == "f"
    )


@pytest.mark.parametrize("case", CASES)
def test_before_training_the_model_answers_as_without_an_adapter(case, lora, request, tmp_path):
    engine, _ = lora(case)
    engine.export(tmp_path)
    if case != "bert":  # its head is new, and drawn from the seed
        assert same(outputs(engine, case), plain_outputs(request.getfixturevalue(case), case), 1e-6)
    assert same(outputs(engine, case), plain_outputs(tmp_path, case), 1e-6)


@pytest.mark.parametrize("case", CASES)
def test_a_step_equals_that_of_peft_alone(case, lora, tmp_path):
    engine, _ = lora(case, rank=4)
    engine.export(tmp_path)  # nothing is learnt yet, so this is the model with the drawn head
    batch = CASES[case][1](6, seed=0)
    model = _plain_lora(case, engine, tmp_path)
    decayed = [each for name, each in model.named_parameters() if each.requires_grad and not name.endswith("bias")]
    plain = [each for name, each in model.named_parameters() if each.requires_grad and name.endswith("bias")]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW([each for each in groups if each["params"]], lr=1e-2, eps=1e-4)
    arrays = {name: torch.from_numpy(array) for name, array in batch.items() if name != "row_valid"}
    loss = model(**arrays).loss
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_([*decayed, *plain], 0.5)
    optimizer.step()
    (numbers,) = engine.read([engine.train_step([batch], 0, 1e-2)])
    np.testing.assert_allclose([numbers.loss, numbers.gradient_norm], [loss.item(), norm.item()], atol=1e-5)
    merged = model.merge_and_unload().state_dict()
    with merged_weights(engine._model, tmp_path) as ours:
        for name, value in merged.items():
            np.testing.assert_allclose(ours[name], value, rtol=0, atol=1e-6, err_msg=name)


def test_a_step_with_loraplus_equals_that_of_peft_alone(lora, tmp_path):
    engine, _ = lora("bert", rank=4, loraplus_ratio=8, bias="all")
    engine.export(tmp_path)
    batch = text_batch(6, seed=0, labels=3)
    model = _plain_lora("bert", engine, tmp_path)
    for name, each in model.named_parameters():
        each.requires_grad_(each.requires_grad or name.endswith("bias"))
    optimizer = create_loraplus_optimizer(
        model, torch.optim.AdamW, lr=1e-2, loraplus_lr_ratio=8, loraplus_weight_decay=0.1, eps=1e-4
    )
    model(**{name: torch.from_numpy(array) for name, array in batch.items() if name != "row_valid"}).loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    engine.train_step([batch], 0, 1e-2)
    merged = model.merge_and_unload().state_dict()
    with merged_weights(engine._model, tmp_path) as ours:
        for name, value in merged.items():
            np.testing.assert_allclose(ours[name], value, rtol=0, atol=1e-6, err_msg=name)


def _plain_lora(case, engine, folder):
    """PEFT by itself, with the matrices that were drawn."""
    model = CASES[case][2].from_pretrained(folder).train()
    targets = {"bert": ["query", "value"], "gpt2": ["c_attn"], "t5": ["q", "v"]}[case]
    config = LoraConfig(r=4, lora_alpha=16, target_modules=targets, fan_in_fan_out=case == "gpt2")
    made = get_peft_model(model, config)
    drawn = {name: value for name, value in engine._model.state_dict().items() if ".lora_" in name}
    with torch.no_grad():
        for name, value in made.base_model.model.state_dict().items():
            if ".lora_" in name:
                value.copy_(drawn[name])
    for name, each in model.named_parameters():
        if name.startswith("classifier."):
            each.requires_grad_(True)
    return made


@pytest.mark.parametrize("settings", [{}, {"dora": True}, {"rslora": True, "targets": "all-linear", "bias": "all"}])
@pytest.mark.parametrize("case", CASES)
def test_the_merged_model_answers_as_the_one_that_trained(case, settings, lora, tmp_path):
    engine, _ = lora(case, **settings)
    train(engine, case)
    engine.export(tmp_path)
    assert same(outputs(engine, case), plain_outputs(tmp_path, case))


@pytest.mark.parametrize("case", CASES)
def test_exporting_leaves_no_trace_in_the_steps_that_follow(case, lora, tmp_path):
    (quiet, _), (asked, _) = lora(case, dora=True), lora(case, dora=True)
    train(quiet, case)
    train(asked, case)
    asked.export(tmp_path)
    assert train(quiet, case, range(3, 6)) == train(asked, case, range(3, 6))


@pytest.mark.parametrize("case", ["bert", "gpt2"])
def test_pissa_starts_as_that_of_peft(case, lora, request):
    engine, _ = lora(case, rank=4, initialization="pissa")
    model = CASES[case][2].from_pretrained(request.getfixturevalue(case))
    targets = {"bert": ["query", "value"], "gpt2": ["c_attn"]}[case]
    config = LoraConfig(
        r=4, lora_alpha=16, target_modules=targets, fan_in_fan_out=case == "gpt2", init_lora_weights="pissa"
    )
    theirs = get_peft_model(model, config).base_model.model.state_dict()
    ours = engine._model.state_dict()
    bases = [name for name in theirs if name.endswith(".base_layer.weight")]
    assert bases
    for name in bases:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=1e-6, err_msg=name)
        first, second = (name.replace("base_layer", f"lora_{side}.default") for side in "AB")
        np.testing.assert_allclose(ours[second] @ ours[first], theirs[second] @ theirs[first], rtol=0, atol=1e-6)


SAVED = [
    *((case, {}) for case in CASES),
    ("bert", {"initialization": "pissa", "rslora": True, "targets": ["query", "dense", "word_embeddings"]}),
    ("gpt2", {"initialization": "pissa_niter_16", "dora": True}),
]


@pytest.mark.parametrize(("case", "settings"), SAVED)
def test_peft_itself_loads_the_saved_adapter(case, settings, lora, request, tmp_path):
    engine, _ = lora(case, saved="adapter", **settings)
    train(engine, case)
    engine.export(tmp_path)
    options = {"num_labels": 3} if case == "bert" else {}
    base = CASES[case][2].from_pretrained(request.getfixturevalue(case), **options)
    model = PeftModel.from_pretrained(base, str(tmp_path)).eval()
    arrays = {name: torch.from_numpy(array) for name, array in CASES[case][1](5, seed=9).items() if name != "row_valid"}
    with torch.no_grad():
        theirs, ours = model(**arrays).logits, engine._model(**arrays).logits
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_a_saved_adapter_alone_is_opened_with_its_model(case, lora, tmp_path):
    engine, _ = lora(case, saved="adapter", dora=True)
    train(engine, case)
    engine.export(tmp_path)
    assert not (tmp_path / "model.safetensors").exists()
    assert same(outputs(engine, case), plain_outputs(tmp_path, case))


@pytest.mark.parametrize("case", CASES)
def test_resumed_steps_equal_uninterrupted_ones_to_the_bit(case, lora, tmp_path):
    whole, _ = lora(case, dropout=0.1)
    train(whole, case)
    whole.save(tmp_path)()
    expected = train(whole, case, range(3, 6))
    resumed, _ = lora(case, dropout=0.1)
    resumed.restore(tmp_path)
    assert train(resumed, case, range(3, 6)) == expected


def test_a_checkpoint_holds_only_what_trains(lora, tmp_path):
    engine, _ = lora("bert")
    engine.save(tmp_path)()
    names = set(load_file(tmp_path / "model.safetensors"))
    assert {"classifier.weight", "classifier.bias"} <= names
    assert all(".lora_" in name for name in names if not name.startswith("classifier."))


def test_trainable_parameters_are_counted(lora):
    _, loaded = lora("bert", rank=4)
    # Query and value of two layers, two matrices of 4 x 16 each; and a head of 3 x 16 weights and 3 biases.
    assert loaded.trainable == 2 * 2 * 2 * 4 * 16 + 3 * 16 + 3
    assert loaded.trainable < loaded.parameters


def test_small_matrices_do_not_depend_on_what_torch_draws(lora):
    torch.manual_seed(1)
    first, _ = lora("gpt2")
    torch.manual_seed(2)
    second, _ = lora("gpt2")
    weights = [engine._model.state_dict() for engine in (first, second)]
    name = "transformer.h.0.attn.c_attn.lora_A.default.weight"
    assert torch.equal(weights[0][name], weights[1][name])
    assert 0.2 < float(weights[0][name].abs().max()) <= 0.25  # ±1/√16
    assert not weights[0][name.replace("lora_A", "lora_B")].any()


def test_targets_that_do_not_exist_are_refused_by_name(lora):
    with pytest.raises(InputError, match=r"'quary'.*include.*query"):
        lora("bert", targets=["query", "quary"])


def test_added_tokens_cannot_leave_as_an_adapter_alone(gpt2):
    with pytest.raises(InputError, match="merged"):
        TorchEngine().load(
            loading(gpt2, LANGUAGE, TRAINING, vocabulary=VOCABULARY + 2, adapter=Settings(saved="adapter"))
        )


def test_an_adapter_beside_an_adapter_is_refused(lora, tmp_path):
    engine, _ = lora("bert", saved="adapter")
    engine.export(tmp_path)
    with pytest.raises(InputError, match=r"itself an adapter of another model; set adapter\.saved to merged"):
        TorchEngine().load(loading(tmp_path, HEAD, TRAINING, adapter=Settings(saved="adapter")))


def test_what_is_new_trains_in_full_and_is_not_adapted(bert_of_words, tmp_path):
    engine = TorchEngine()
    engine.load(loading(bert_of_words, HEAD, TRAINING, adapter=Settings(targets="all-linear", saved="adapter")))
    train(engine, "bert")
    engine.export(tmp_path)
    names = set(load_file(tmp_path / "adapter_model.safetensors"))
    assert "base_model.model.bert.pooler.dense.weight" in names
    assert not any("pooler" in name and ".lora_" in name for name in names)
    assert same(outputs(engine, "bert"), plain_outputs(tmp_path, "bert"))


def test_biases_that_are_tied_leave_with_the_adapter(bert_of_words, tmp_path):
    head = HeadFacts(Head.MASKED_LM)
    engine = TorchEngine()
    engine.load(loading(bert_of_words, head, TRAINING, adapter=Settings(bias="all", saved="adapter")))
    engine.export(tmp_path)
    assert "base_model.model.cls.predictions.bias" in load_file(tmp_path / "adapter_model.safetensors")


@pytest.fixture
def bert_of_words(tmp_path):
    """A BERT that was made for masked words: it has no pooler."""
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    BertForMaskedLM(config).save_pretrained(tmp_path / "words")
    return tmp_path / "words"


def test_with_added_tokens_the_word_embedding_trains(gpt2, tmp_path):
    engine = TorchEngine()
    engine.load(loading(gpt2, LANGUAGE, TRAINING, vocabulary=VOCABULARY + 2, adapter=Settings()))
    before = engine._model.get_input_embeddings().weight.detach().clone()
    train(engine, "gpt2")
    assert not torch.equal(before[:VOCABULARY], engine._model.get_input_embeddings().weight[:VOCABULARY])
    engine.export(tmp_path)
    assert AutoModelForCausalLM.from_pretrained(tmp_path).get_input_embeddings().weight.shape[0] == VOCABULARY + 2


def test_words_that_never_occurred_leave_with_their_weight_decay(tmp_path):
    engine = TorchEngine()
    engine.load(loading(BERT_TINY, HEAD, TRAINING, vocabulary=30524, adapter=Settings()))
    assert engine._words is not None
    train(engine, "bert")
    engine.export(tmp_path)
    exported = TorchEngine()
    exported.load(loading(tmp_path, HEAD, vocabulary=30524))
    unseen = text_batch(5, seed=9, vocabulary=30524)
    assert same(engine.evaluate(unseen), exported.evaluate(unseen))
