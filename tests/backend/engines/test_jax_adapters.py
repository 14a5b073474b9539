"""LoRA in the JAX engine: the torch engine's numbers, PEFT's files, and whatever it does not know refused by name."""

import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.numpy import load_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
)

from backend.adapters.lora import Lora, Settings
from backend.contract.errors import InputError, RunFailed
from backend.contract.heads import IGNORE, Head
from backend.contract.rpc.generation import GenerationSettings
from backend.contract.spec import Section, TrainingSection
from backend.engines.engine import Compiling, Engine, LoadedModel, compile_here
from backend.engines.jax import models
from backend.engines.jax.engine import JaxEngine
from backend.engines.jax.layers import DropoutKeys, Linear
from backend.engines.jax.lora import AdaptedLinear, dropping
from backend.engines.jax.model import find_family
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import VOCABULARY, loading
from tests.backend.engines.head_batches import facts, head_batch, part_of
from tests.backend.engines.tiny_models import PADDING

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # PEFT asks by the old name
RATE = 1e-2
TRAINING = TrainingSection(
    learning_rate=2e-5, weight_decay=0.1, max_gradient_norm=0.5, seed=7, adam_epsilon=1e-4, label_smoothing=0.1
)
CASES = {
    "bert": (Head.SEQUENCE_CLASSIFICATION, AutoModelForSequenceClassification),
    "gpt2": (Head.CAUSAL_LM, AutoModelForCausalLM),
    "llama": (Head.CAUSAL_LM, AutoModelForCausalLM),
    "t5": (Head.SEQ2SEQ_LM, AutoModelForSeq2SeqLM),
    "bart": (Head.SEQ2SEQ_LM, AutoModelForSeq2SeqLM),
}
FAMILIES = sorted(one.name.replace("_", "-") for one in pkgutil.iter_modules(models.__path__) if one.name != "family")
KINDS = {"jax": JaxEngine, "torch": TorchEngine}
EVERYTHING: dict[str, Any] = {"rslora": True, "targets": "all-linear", "bias": "all"}
SETTINGS = {"plain": {}, "everything": EVERYTHING, "dora": {"dora": True, "bias": "lora_only", "loraplus_ratio": 2}}
QUICK = {"bert-everything", "gpt2-dora", "t5-plain"}
"""An encoder, a decoder and an encoder-decoder, and every kind of settings; the slow tests compile all pairs."""
NAMESAKES = {"mistral", "qwen2", "mt5", "mbart"}
"""Families whose layers have the names of another one's."""
Tiny = Callable[[str], Path]
Programs = Callable[..., Compiling]


def pairs(*cases: str) -> list[Any]:
    """Cases with settings."""
    names = {f"{case}-{kind}": (case, settings) for case in cases for kind, settings in SETTINGS.items()}
    # With all of it trained, weights parted by 1e-7 give torch's own fourth gradient parted by 1e-3.
    names.pop("bart-everything", None)
    slow = {name: [] if name in QUICK else [pytest.mark.slow] for name in names}
    return [pytest.param(*pair, id=name, marks=slow[name]) for name, pair in names.items()]


def opened(kind: str, folder: Path, head: Head, training: TrainingSection | None = TRAINING, **changes: Any):
    """An engine and its account of loading."""
    engine: Engine = KINDS[kind]()
    return engine, engine.load(loading(folder, facts(head), training, **{"model": {"dropout": 0.0}, **changes}))


def adapted(
    kind: str,
    tiny: Tiny,
    case: str,
    training: TrainingSection = TRAINING,
    compiling: Compiling = compile_here,
    **settings: Any,
) -> tuple[Engine, LoadedModel]:
    return opened(kind, tiny(case), CASES[case][0], training, adapter=Settings(**settings), compiling=compiling)


def train(engine: Engine, case: str, steps: range = range(3)) -> list[tuple[float, float]]:
    batch = head_batch(CASES[case][0], 6, seed=1)  # one shape, for each is compiled
    results = [engine.train_step([batch], step, RATE) for step in steps]
    return [(each.loss, each.gradient_norm) for each in engine.read(results)]


def exported(engine: Engine, folder: Path) -> dict[str, np.ndarray]:
    folder.mkdir()
    engine.export(folder)
    return load_file(next(folder.glob("*.safetensors")))


@pytest.fixture(scope="session")
def stacked(tiny: Tiny, smallest: Tiny) -> Tiny:
    """The models of the cases: GPT-2 and Llama of two layers, which the adapters of the others go into alike."""
    return lambda case: tiny(case) if case in {"gpt2", "llama"} else smallest(case)


@pytest.fixture(scope="module")
def trained_adapter(
    stacked: Tiny, programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., tuple[Engine, Path]]:
    """An engine after three steps with an adapter that is saved alone, and the folder it wrote; made once, to be read."""
    made: dict[str, tuple[Engine, Path]] = {}

    def find(kind: str, case: str, settings: dict[str, Any]) -> tuple[Engine, Path]:
        key = f"{kind} {case} {settings}"
        if key not in made:
            compiling = programs("train", case, str(settings))
            engine, _ = adapted(kind, stacked, case, compiling=compiling, saved="adapter", rank=4, **settings)
            train(engine, case)
            folder = tmp_path_factory.mktemp("adapter") / "model"
            exported(engine, folder)
            made[key] = engine, folder
        return made[key]

    return find


def answers(engine: Engine, case: str) -> dict[str, np.ndarray]:
    found = engine.evaluate(head_batch(CASES[case][0], 5, seed=9))
    return {name: value for name, value in found.items() if value.dtype.kind == "f"}


def assert_equal(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(("case", "settings"), pairs(*CASES))
def test_five_steps_equal_those_of_torch(case, settings, stacked: Tiny, programs: Programs, tmp_path: Path):
    compiling = programs("train", case, str(settings))
    (ours, account), (theirs, expected) = (
        adapted(kind, stacked, case, compiling=compiling, rank=4, **settings) for kind in KINDS
    )
    assert (account.trainable, account.parameters) == (expected.trainable, expected.parameters)
    np.testing.assert_allclose(train(ours, case, range(5)), train(theirs, case, range(5)), rtol=1e-4)
    assert_equal(exported(ours, tmp_path / "ours"), exported(theirs, tmp_path / "theirs"), 2e-5)


@pytest.mark.parametrize("targets", ["auto", pytest.param("all-linear", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in NAMESAKES else []) for name in FAMILIES]
)
def test_an_adapter_that_learnt_nothing_is_the_one_torch_writes(name, targets, tiny: Tiny, tmp_path: Path):
    head = next(iter(find_family({"model_type": name}).heads))
    wanted = {"adapter": Settings(targets=targets, saved="adapter"), "pad_token_id": PADDING.get(name, 0)}
    (ours, account), (theirs, expected) = (opened(kind, tiny(name), head, **wanted) for kind in KINDS)
    assert account.trainable == expected.trainable
    assert_equal(exported(ours, tmp_path / "jax"), exported(theirs, tmp_path / "torch"), 0)
    files = [json.loads((tmp_path / kind / "adapter_config.json").read_text()) for kind in KINDS]
    for key, value in files[0].items():
        if key != "target_modules":  # PEFT abbreviates it
            assert value == files[1][key], key


@pytest.mark.parametrize("name", ["gpt2", "llama", "marian", "opt", "t5"])
def test_the_plan_counts_what_auto_trains(name: str, tiny: Tiny):
    head = next(head for head in (Head.CAUSAL_LM, Head.SEQ2SEQ_LM) if head in find_family({"model_type": name}).heads)
    _, loaded = opened("torch", tiny(name), head, adapter=Settings(), pad_token_id=PADDING.get(name, 0))
    shapes = {key: value.shape for key, value in load_file(tiny(name) / "model.safetensors").items()}
    assert loaded.trainable == Lora.count_trainable(Settings(), shapes, name)


@pytest.mark.parametrize(
    ("name", "head"),
    [pytest.param("llama", Head.QUESTION_ANSWERING, marks=pytest.mark.slow), ("t5", Head.TOKEN_CLASSIFICATION)],
)
def test_below_a_head_that_calls_the_body_otherwise_adapters_are_those_of_torch(
    name, head, smallest: Tiny, tmp_path: Path
):
    wanted = {"adapter": Settings(saved="adapter")}
    engines = [opened(kind, smallest(name), head, **wanted)[0] for kind in KINDS]
    batch = head_batch(head, 5, seed=2)
    for engine in engines:
        engine.train_step([batch], 0, RATE)
    ours, theirs = (exported(engine, tmp_path / kind) for engine, kind in zip(engines, KINDS, strict=True))
    assert_equal(ours, theirs, 2e-5)
    shown = batch["attention_mask"] == 1
    for kind in KINDS:
        other, account = opened(kind, tmp_path / "jax", head, None)
        assert account.new_weights == []
        for key, value in other.evaluate(batch).items():
            np.testing.assert_allclose(value[shown], engines[0].evaluate(batch)[key][shown], rtol=1e-4, atol=2e-4)


@pytest.mark.slow
def test_a_step_in_ragged_parts_equals_that_of_torch(tiny: Tiny, tmp_path: Path):
    engines = [adapted(kind, tiny, "bert", targets="all-linear")[0] for kind in KINDS]
    batch = head_batch(Head.SEQUENCE_CLASSIFICATION, 13)
    parts = [part_of(batch, slice(0, 8)), part_of(batch, slice(8, 13))]
    for engine in engines:
        for step in range(2):  # the second matrices begin with zeros, so the first learn from the second step on
            engine.train_step(parts, step, RATE)
    ours, theirs = (exported(engine, tmp_path / kind) for engine, kind in zip(engines, KINDS, strict=True))
    assert_equal(ours, theirs, 1e-5)


def test_what_is_not_adapted_stays_as_it_was(smallest: Tiny, programs: Programs, tmp_path: Path):
    engine, _ = adapted("jax", smallest, "bert", compiling=programs("dropout", 0.0))
    before = exported(engine, tmp_path / "before")
    train(engine, "bert")
    after = exported(engine, tmp_path / "after")
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    matrices = {f"bert.encoder.layer.0.attention.self.{one}.weight" for one in ("query", "value")}
    assert changed == {*matrices, "classifier.weight", "classifier.bias"}


@pytest.mark.parametrize(("case", "settings"), pairs("bert", "gpt2", "t5"))
def test_peft_itself_loads_the_saved_adapter(case, settings, stacked: Tiny, trained_adapter):
    engine, folder = trained_adapter("jax", case, settings)
    head, kind = CASES[case]
    base = kind.from_pretrained(stacked(case), **({"num_labels": 3} if case == "bert" else {}))
    model = PeftModel.from_pretrained(base, str(folder)).eval()
    batch = head_batch(head, 5, seed=9)
    with torch.no_grad():
        found = model(**{name: torch.from_numpy(array) for name, array in batch.items() if name != "row_valid"})
    if head is Head.SEQUENCE_CLASSIFICATION:
        np.testing.assert_allclose(answers(engine, case)["logits"], found.logits.numpy(), rtol=0, atol=1e-5)
    else:
        own = answers(engine, case)["token_loss"]
        count = (batch["labels"] != IGNORE)[:, 1 if head is Head.CAUSAL_LM else 0 :].sum()
        np.testing.assert_allclose(own.sum() / count, found.loss.item(), rtol=1e-5)


@pytest.mark.parametrize(("case", "settings"), pairs(*CASES))
@pytest.mark.parametrize("writer", KINDS)
def test_an_adapter_alone_is_opened_by_both_engines(writer, case, settings, trained_adapter, programs: Programs):
    engine, folder = trained_adapter(writer, case, settings)
    assert not (folder / "model.safetensors").exists()
    for reader in KINDS:
        other, account = opened(reader, folder, CASES[case][0], None, compiling=programs("read", case))
        assert account.new_weights == []
        assert_equal(answers(other, case), answers(engine, case), 5e-5)


def test_peft_loads_an_adapter_with_the_biases_of_a_tied_head(smallest: Tiny, tmp_path: Path):
    base = AutoModelForMaskedLM.from_pretrained(smallest("bert"))
    base.save_pretrained(tmp_path / "base")
    settings = Settings(bias="all", saved="adapter")
    engine, account = opened("jax", tmp_path / "base", Head.MASKED_LM, adapter=settings)
    assert account.new_weights == []
    batch = head_batch(Head.MASKED_LM, 6, seed=1)
    for step in range(2):
        engine.train_step([batch], step, RATE)
    exported(engine, tmp_path / "model")
    model = PeftModel.from_pretrained(base, str(tmp_path / "model")).eval()
    with torch.no_grad():
        found = model(**{name: torch.from_numpy(array) for name, array in batch.items() if name != "row_valid"})
    own = engine.evaluate(batch)["token_loss"].sum() / (batch["labels"] != IGNORE).sum()
    np.testing.assert_allclose(own, found.loss.item(), rtol=1e-5)


def test_an_adapter_with_ranks_of_its_own_is_scaled_by_them(tiny: Tiny, tmp_path: Path):
    base = AutoModelForCausalLM.from_pretrained(tiny("llama"))
    config = LoraConfig(
        r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False, rank_pattern={"0.self_attn.v_proj": 2},
        alpha_pattern={"layers.1.self_attn.q_proj": 3.0}, use_rslora=True,
    )  # fmt: skip
    made = get_peft_model(base, config)
    made.save_pretrained(str(tmp_path))
    _name_base(tmp_path, tiny("llama"))
    base.config.save_pretrained(tmp_path)
    ours, theirs = (opened(kind, tmp_path, Head.CAUSAL_LM, None)[0] for kind in KINDS)
    assert_equal(answers(ours, "llama"), answers(theirs, "llama"), 5e-5)


def test_an_adapted_embedding_is_merged(smallest: Tiny, tmp_path: Path):
    trained, _ = adapted("torch", smallest, "bert", saved="adapter", targets=["query", "word_embeddings"])
    train(trained, "bert")
    exported(trained, tmp_path / "model")
    engine, _ = opened("jax", tmp_path / "model", Head.SEQUENCE_CLASSIFICATION, None)
    assert_equal(answers(engine, "bert"), answers(trained, "bert"), 5e-5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"init_lora_weights": "pissa"}, "init_lora_weights: pissa"),
        ({"lora_bias": True}, "lora_bias"),
    ],
)
def test_an_adapter_beyond_lora_is_refused_by_name(change, said, smallest: Tiny, tmp_path: Path):
    engine, _ = adapted("jax", smallest, "bert", saved="adapter")
    exported(engine, tmp_path / "model")
    path = tmp_path / "model" / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=rf"^model\.name_or_path: .* does not support {said} of .*; choose PyTorch"):
        opened("jax", tmp_path / "model", Head.SEQUENCE_CLASSIFICATION, None)


def test_an_adapter_without_its_tensors_is_refused(smallest: Tiny, tmp_path: Path):
    engine, _ = adapted("jax", smallest, "bert", saved="adapter")
    exported(engine, tmp_path / "model")
    (tmp_path / "model" / "adapter_model.safetensors").unlink()
    with pytest.raises(InputError, match=r"^model\.name_or_path: .* save it again as adapter_model\.safetensors$"):
        opened("jax", tmp_path / "model", Head.SEQUENCE_CLASSIFICATION, None)


def test_an_adapter_of_another_size_is_refused(tiny: Tiny, llama: Path, tmp_path: Path):
    engine, _ = adapted("jax", tiny, "llama", saved="adapter", targets=["k_proj"])
    exported(engine, tmp_path / "model")
    _name_base(tmp_path / "model", llama)  # whose heads share no keys
    (tmp_path / "model" / "config.json").write_bytes((llama / "config.json").read_bytes())
    with pytest.raises(
        RunFailed, match=r"does not match the model it is for \(.*k_proj: it changes a matrix of shape \(8, 16\)"
    ):
        opened("jax", tmp_path / "model", Head.CAUSAL_LM, None)


def test_resumed_steps_equal_uninterrupted_ones_to_the_bit(smallest: Tiny, programs: Programs, tmp_path: Path):
    whole, resumed = (
        adapted("jax", smallest, "bert", compiling=programs("resumed"), dropout=0.3, dora=True)[0] for _ in range(2)
    )
    batch = head_batch(Head.SEQUENCE_CLASSIFICATION, 6)

    def steps(engine: Engine, numbers: range) -> Any:
        return engine.read([engine.train_step([batch, batch], number, RATE) for number in numbers])

    steps(whole, range(3))
    whole.save(tmp_path)()
    resumed.restore(tmp_path)
    assert steps(resumed, range(3, 6)) == steps(whole, range(3, 6))


def test_what_it_writes_is_what_the_merged_model_writes(tiny: Tiny, programs: Programs, tmp_path: Path):
    engine, _ = adapted("jax", tiny, "gpt2", dropout=0.3)
    train(engine, "gpt2")
    exported(engine, tmp_path / "model")
    merged, _ = opened("jax", tmp_path / "model", Head.CAUSAL_LM, None, compiling=programs("written"))
    settings = GenerationSettings(max_new_tokens=8)
    ours, theirs = (list(each.continue_prompt([5, 6, 7], settings)) for each in (engine, merged))
    assert ours == theirs
    untouched, _ = opened("jax", tiny("gpt2"), Head.CAUSAL_LM, None, compiling=programs("written"))
    assert ours != list(untouched.continue_prompt([5, 6, 7], settings))


def test_a_checkpoint_holds_only_what_trains(tiny: Tiny, tmp_path: Path):
    engine, account = adapted("jax", tiny, "bert")
    assert isinstance(engine, JaxEngine)
    held = engine._to_saved_state().parameters  # which is what `save` writes
    assert sum(value.size for value in held.values()) == account.trainable
    assert {name for name in held if ".lora_" not in name} == {"classifier.weight", "classifier.bias"}


def test_recomputed_layers_drop_the_same_values(smallest: Tiny, programs: Programs):
    again = TRAINING.model_copy(update={"gradient_checkpointing": True})
    shared = programs("dropout", 0.5)
    found = [
        train(adapted("jax", smallest, "bert", training, compiling, dropout=0.5)[0], "bert")
        for training, compiling in ((TRAINING, shared), (again, compile_here))
    ]
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_dropout_is_seeded_by_the_step(smallest: Tiny, programs: Programs):
    def after(rate: float, begin: int) -> tuple[float, float]:
        engine, _ = adapted("jax", smallest, "bert", compiling=programs("dropout", rate), dropout=rate)
        return train(engine, "bert", range(begin, begin + 2))[1]

    first = after(0.5, 0)
    assert after(0.5, 0) == first
    assert len({first, after(0.5, 4), after(0.0, 0)}) == 3


@pytest.mark.parametrize("dora", [False, True])
def test_dropout_takes_nothing_away_on_average(dora: bool):
    rng = np.random.default_rng(3)
    layer = AdaptedLinear(Linear(6, 4), Settings(rank=2, alpha=4, dropout=0.4, dora=dora))
    shapes = nnx.to_flat_state(nnx.state(layer))
    values = [(path, nnx.Param(jnp.asarray(rng.normal(size=each.shape), jnp.float32))) for path, each in shapes]
    nnx.update(layer, nnx.from_flat_state(values))
    x = jnp.asarray(rng.normal(size=(3, 6)), jnp.float32)

    def dropped(key: jax.Array) -> jax.Array:
        with dropping(DropoutKeys(key)):
            return layer(x)

    found = jax.vmap(dropped)(jax.random.split(jax.random.key(0), 20_000))
    assert float(found.std(0).min()) > 0.1
    np.testing.assert_allclose(found.mean(0), layer(x), atol=0.15)


def test_bfloat16_learns_as_float32_does(smallest: Tiny):
    head = CASES["gpt2"][0]
    found = [
        train(opened("jax", smallest("gpt2"), head, adapter=Settings(dora=True), precision=precision)[0], "gpt2")
        for precision in ("float32", "bfloat16")
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=0.05)


def test_targets_that_do_not_exist_are_refused_by_name(tiny: Tiny):
    with pytest.raises(InputError, match=r"^adapter\.targets: .*'quary'.*include.*query"):
        adapted("jax", tiny, "bert", targets=["query", "quary"])


@pytest.mark.parametrize(
    ("case", "target", "reason"),
    [
        ("gpt2", "wte", "shares its weights with the model's output"),
        ("bart", "shared", "is shared by the encoder and the decoder"),
        ("bart", "decoder.embed_positions", "computes positions itself"),
    ],
)
def test_embeddings_that_peft_cannot_adapt_alone_are_refused_by_name(case, target, reason, tiny: Tiny):
    with pytest.raises(InputError, match=rf"^adapter\.targets: '{target}' {reason}.*; leave it out$"):
        adapted("jax", tiny, case, targets=["c_attn", target] if case == "gpt2" else [target])


def test_a_plan_counts_an_embedding_that_is_named():
    shapes = {"bert.embeddings.word_embeddings.weight": (60, 16), "bert.encoder.layer.0.query.weight": (16, 16)}
    named = Settings(targets=["word_embeddings"], rank=4, dora=True)
    Lora.check(named, shapes, "bert")
    assert Lora.count_trainable(named, shapes, "bert") == 4 * (60 + 16) + 16
    assert Lora.count_trainable(Settings(targets="all-linear", rank=4), shapes, "bert") == 4 * (16 + 16)


TABLES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert-words": ("bert", {"targets": ["query", "word_embeddings", "position_embeddings"], "rslora": True}),
    "llama-dora": ("llama", {"targets": ["q_proj", "embed_tokens"], "dora": True}),
    "gpt2-places": ("gpt2", {"targets": ["wpe"], "dropout": 0.5}),  # of which PEFT drops nothing in a table
    "t5-distances": ("t5", {"targets": ["relative_attention_bias", "q"]}),
}


@pytest.mark.parametrize(("case", "settings"), TABLES.values(), ids=TABLES)
def test_five_steps_of_adapted_embeddings_equal_those_of_torch(
    case, settings, smallest: Tiny, programs: Programs, tmp_path: Path
):
    compiling = programs("tables", case, str(settings))
    (ours, account), (theirs, expected) = (
        adapted(kind, smallest, case, compiling=compiling, rank=4, **settings) for kind in KINDS
    )
    assert (account.trainable, account.parameters) == (expected.trainable, expected.parameters)
    np.testing.assert_allclose(train(ours, case, range(5)), train(theirs, case, range(5)), rtol=1e-4)
    assert_equal(exported(ours, tmp_path / "ours"), exported(theirs, tmp_path / "theirs"), 2e-5)


@pytest.mark.parametrize(
    ("case", "settings"),
    [
        pytest.param(*table, id=name, marks=[] if name in ("bert-words", "t5-distances") else [pytest.mark.slow])
        for name, table in TABLES.items()
    ],
)
def test_adapted_embeddings_alone_are_opened_by_both_engines(
    case, settings, smallest: Tiny, programs: Programs, tmp_path: Path
):
    files = []
    for writer in KINDS:
        compiling = programs("tables", case, str(settings))
        engine, _ = adapted(writer, smallest, case, compiling=compiling, saved="adapter", rank=4, **settings)
        train(engine, case)
        files.append(exported(engine, tmp_path / writer))
        for reader in KINDS:
            other, _ = opened(reader, tmp_path / writer, CASES[case][0], None, compiling=programs("read table", case))
            assert_equal(answers(other, case), answers(engine, case), 5e-5)
    assert_equal(*files, 2e-5)


def test_an_output_layer_of_its_own_is_adapted_where_it_is_named(smallest: Tiny, tmp_path: Path):
    ours, theirs = (adapted(kind, smallest, "llama", targets=["lm_head"])[0] for kind in KINDS)
    train(ours, "llama")
    train(theirs, "llama")
    assert_equal(exported(ours, tmp_path / "ours"), exported(theirs, tmp_path / "theirs"), 2e-5)


def test_another_adapter_is_refused_by_name(tiny: Tiny):
    with pytest.raises(InputError, match=r"^adapter\.type: the JAX engine supports only LoRA"):
        opened("jax", tiny("bert"), Head.SEQUENCE_CLASSIFICATION, adapter=Section())


def test_with_added_tokens_the_word_embedding_trains_as_in_torch(smallest: Tiny, tmp_path: Path):
    wanted = {"adapter": Settings(), "vocabulary": VOCABULARY + 2}
    (ours, account), (theirs, expected) = (opened(kind, smallest("gpt2"), Head.CAUSAL_LM, **wanted) for kind in KINDS)
    assert account.trainable == expected.trainable
    train(ours, "gpt2")
    train(theirs, "gpt2")
    assert_equal(exported(ours, tmp_path / "ours"), exported(theirs, tmp_path / "theirs"), 2e-5)


@pytest.mark.parametrize(
    ("case", "head", "changes"),
    [
        ("gpt2", Head.CAUSAL_LM, {"vocabulary": VOCABULARY + 2}),
        ("bert", Head.MASKED_LM, {}),
        ("gpt2", Head.CAUSAL_LM, {"model": {"initialise": "from_config"}}),
    ],
    ids=["added tokens", "new vocabulary head", "from scratch"],
)
def test_what_an_adapter_cannot_carry_is_refused(case, head, changes, tiny: Tiny):
    with pytest.raises(InputError, match=r"^adapter\.saved: .*; set adapter\.saved to merged$"):
        opened("jax", tiny(case), head, adapter=Settings(saved="adapter"), **changes)


def test_an_adapter_beside_an_adapter_is_refused(smallest: Tiny, tmp_path: Path):
    engine, _ = adapted("jax", smallest, "llama", saved="adapter")
    exported(engine, tmp_path / "model")
    opened("jax", tmp_path / "model", Head.CAUSAL_LM, adapter=Settings())
    with pytest.raises(InputError, match=r"^adapter\.saved: the model is itself an adapter of another model"):
        opened("jax", tmp_path / "model", Head.CAUSAL_LM, adapter=Settings(saved="adapter"))


def _name_base(folder: Path, base: Path) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model_name_or_path": str(base)}))
