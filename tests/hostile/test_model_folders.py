"""Whoever opens a model folder that means harm is told so in one sentence, before anything is allocated."""

import base64
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.numpy import save_file

from backend.__main__ import main
from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.contract.spec import RunSpec
from backend.contract.tokens.options import TokenOptions
from backend.engines.jax.peft_files import StoredAdapter
from backend.engines.torch.adapters import take_stored
from backend.engines.torch.engine import TorchEngine
from backend.models import inspection, local_models
from backend.models.adapter_files import read_adapter_config, weights_folder
from backend.models.compatibility import RunNeeds
from backend.models.config import check_changed, problem_of
from backend.models.tokenizer_files import problem_of as problem_of_tokenizer
from backend.models.tokenizer_files import read_tokenizer
from backend.preflight.model_options import check_model_options, check_new_weights
from backend.tokenizers.encoding import raw
from backend.tokenizers.loading import open_tokenizer
from tests.backend.engines.example_batches import classes, loading
from tests.hostile.model_folders import (
    BERT,
    adapter_configs,
    model_folders,
    take_as_it_is,
    tokenizers,
    unopenable,
    wrong_kinds,
)

FOLDERS = dict(model_folders())
OF_A_TOKENIZER = ("tokenizer", "special_tokens", "config: a billion labels", "config: nested")


@pytest.mark.parametrize("name", FOLDERS)
def test_folder_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path)
    described = inspection.describe(str(folder), task="text_classification")
    row = local_models.of_folder(folder, RunNeeds(task="text_classification"), "recent", "model")
    with pytest.raises(InputError) as refused:
        inspection.check(folder, Head.SEQUENCE_CLASSIFICATION, max_length=128)
    sentence = str(refused.value)
    assert sentence.startswith("model.name_or_path: ")
    assert "\n" not in sentence
    assert len(sentence) < 700
    assert described.problem
    assert row.problem or name.startswith(("generation", "tokenizer", "special")), "the chooser looks at no tokenizer"


@pytest.mark.parametrize("name", [name for name in FOLDERS if name.startswith(OF_A_TOKENIZER)])
def test_tokenizer_of_such_a_folder_is_refused_too(name: str, tmp_path: Path) -> None:
    folder = FOLDERS[name](tmp_path)
    with pytest.raises(InputError) as refused:
        open_tokenizer(str(folder))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", unopenable())
def test_what_a_library_finds_in_a_configuration_is_one_sentence(kind: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(BERT, tmp_path / "model"))
    unopenable()[kind](folder)
    with pytest.raises(InputError, match=rf"^model\.name_or_path: .*{kind}.*; choose another model$"):
        TorchEngine().load(loading(folder, classes("a", "b"), vocabulary=30_522))


def test_plan_refuses_what_no_library_can_open(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(BERT, tmp_path / "model"))
    wrong_kinds()["layer_norm_eps"][0](folder)
    spec = RunSpec.model_validate(
        {"data": {"train": "x.csv"}, "task": {"type": "text_classification"}, "model": {"name_or_path": str(folder)}}
    )
    with pytest.raises(InputError, match=r"config\.json: layer_norm_eps is 'x', which this kind of model cannot have"):
        check_model_options(spec, folder)


@pytest.mark.parametrize("key", wrong_kinds())
def test_tokenizer_is_not_blamed_for_the_configuration_of_its_model(key: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(BERT, tmp_path / "model"))
    spoil, shown = wrong_kinds()[key]
    spoil(folder)
    with pytest.raises(InputError) as refused:
        open_tokenizer(str(folder))
    assert str(refused.value).startswith(f"model.name_or_path: {folder / 'config.json'}: {key} is {shown}, which")


@pytest.mark.parametrize("name", tokenizers())
def test_what_a_library_finds_in_a_tokenizer_is_one_sentence(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(BERT, tmp_path / "model"))
    tokenizers()[name](folder)
    with pytest.raises(InputError) as refused:
        open_tokenizer(str(folder))
    assert "\n" not in str(refused.value)


def test_tokens_without_a_number_are_not_counted(tmp_path: Path) -> None:
    content = {"model": {"vocab": {"a": 0, "b": "x", "c": None}}, "added_tokens": [{"id": 3}, {"id": [9]}, {}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert read_tokenizer(tmp_path).tokens == 4


@pytest.mark.parametrize(
    "pattern", ["^(([a-z])+.)+[A-Z]([a-z])+$", "((h+)+)+b|(([a-z])+.)+[A-Z]([a-z])+$"], ids=["anchored", "anywhere"]
)
def test_pattern_that_the_library_gives_up_is_one_sentence(pattern: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(BERT, tmp_path / "model"))
    take_as_it_is(folder, {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}})  # fmt: skip
    tokenizer = open_tokenizer(str(folder))
    with pytest.raises(InputError, match="retry-limit"):
        raw(tokenizer, ["a" * 60 + "!"], None, TokenOptions())


@pytest.mark.parametrize("name", ["spiece.model", "spiece.spm"])
def test_table_of_a_sentencepiece_file_is_checked(name: str, tmp_path: Path) -> None:
    proto = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    model = proto.ModelProto()
    for piece, kind in (("<unk>", 2), ("a", 1)):
        model.pieces.add(piece=piece, type=kind)
    model.normalizer_spec.precompiled_charsmap = b"\xf0\xff\xff\x7f" + b"\xff" * 64
    folder = Path(shutil.copytree(BERT, tmp_path / "model"))
    (folder / name).write_bytes(model.SerializeToString())
    (tmp_path / name).write_bytes(model.SerializeToString())
    for path in (folder, tmp_path / name):
        with pytest.raises(InputError, match="precompiled_charsmap"):
            open_tokenizer(str(path))


def test_panic_that_nobody_expects_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(BERT, tmp_path / "model"))
    take_as_it_is(folder, {"decoder": {"type": "Strip", "content": "a", "start": 10**9, "stop": 10**9}})
    assert main(["tokenize", str(folder), "--text", "a", "--json"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("a library cannot handle a value in a file or setting")


def test_steps_of_real_tokenizers_pass() -> None:
    table = base64.b64encode((4).to_bytes(4, "little") + bytes(4) + "ﷺ\0a\0".encode() * 500).decode()
    steps = [
        {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
        {"type": "Replace", "pattern": {"String": "\n"}, "content": "<0x0A>"},
        *({"type": "Replace", "pattern": {"String": sign}, "content": f" {sign}/2 "} for sign in "½⅓¼"),
        {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
        {"type": "Precompiled", "precompiled_charsmap": table},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}, {"type": "Prepend", "prepend": "▁"},
    ]  # fmt: skip
    assert problem_of_tokenizer({"model": {}, "normalizer": {"type": "Sequence", "normalizers": steps}}) == ""


def test_files_that_a_tokenizer_names_elsewhere_are_not_read(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(BERT, tmp_path / "model"))
    secret = tmp_path / "secret.txt"
    secret.write_text("[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\nsecret\n")
    path = folder / "tokenizer_config.json"
    names = dict.fromkeys(
        ["vocab_file", "tokenizer_file", "gguf_file", "special_tokens_map_file", "x_file"], str(secret)
    )
    path.write_text(json.dumps({**json.loads(path.read_text()), **names}))
    tokenizer = open_tokenizer(str(folder))
    assert tokenizer.get_vocab() == open_tokenizer(str(BERT)).get_vocab()
    assert str(secret) not in repr(tokenizer.init_kwargs)


def test_adapter_beside_a_model_is_not_put_into_it_unasked(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(BERT, tmp_path / "model"))
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "stranger/model"}')
    with pytest.raises(InputError, match="an adapter for it"):
        inspection.check(folder, Head.SEQUENCE_CLASSIFICATION, max_length=128)


@pytest.mark.parametrize("kind", ["LORA", "XLORA"])
def test_model_below_an_adapter_brings_no_other_adapter(kind: str, tmp_path: Path) -> None:
    base, folder = Path(shutil.copytree(BERT, tmp_path / "base")), tmp_path / "adapter"
    folder.mkdir()
    shutil.copy(BERT / "config.json", folder)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": kind, "base_model_name_or_path": str(base)}))
    if kind == "LORA":
        shutil.copy(folder / "adapter_config.json", base)
    with pytest.raises(InputError, match="adapter"):
        weights_folder(folder)


@pytest.mark.parametrize("name", adapter_configs())
def test_adapter_that_peft_could_not_come_to_an_end_with_is_refused(name: str, tmp_path: Path) -> None:
    folder = _adapter(tmp_path, adapter_configs()[name])
    with pytest.raises(InputError) as refused:
        inspection.check(folder, Head.SEQUENCE_CLASSIFICATION, max_length=128)
    assert str(refused.value).startswith(f"model.name_or_path: {folder / 'adapter_config.json'}")
    assert "\n" not in str(refused.value)
    model: Any = torch.nn.Module()
    for read in (StoredAdapter, partial(take_stored, model)):
        with pytest.raises(InputError):
            read(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"target_modules": ["query", "encoder.layer.0.attention.self.value"]},
        {"target_modules": "all-linear", "modules_to_save": ["classifier"]},
        {"target_modules": r".*layers\.\d+\.(self_attn|mlp)\.(q|k|v)_proj$"},
        {"target_modules": r"(?:.*?(?:text).*?(?:attn|mlp).*?(?:q_proj).*?)|(?:\bmodel\.layers\.[\d]{1,}\.(?:mlp))"},
        {"rank_pattern": {"^model.layers.0.q_proj": 4}, "alpha_pattern": {"q_proj": 8.5}},
        {"eva_config": {"rho": 2.0}, "init_lora_weights": "eva", "megatron_core": "megatron.core", "loftq_config": {}},
    ],
)
def test_usual_adapter_is_not_refused(change: dict[str, object], tmp_path: Path) -> None:
    found = read_adapter_config(_adapter(tmp_path, change))
    assert found["init_lora_weights"] is False
    assert not {"eva_config", "megatron_core", "loftq_config"} & found.keys()


def _adapter(parent: Path, change: dict[str, object]) -> Path:
    """A folder with an adapter alone, for a sound model."""
    folder = Path(shutil.copytree(BERT, parent / "adapter"))
    (folder / "model.safetensors").unlink()
    values = {"peft_type": "LORA", "base_model_name_or_path": str(BERT), "r": 2, "init_lora_weights": True}
    (folder / "adapter_config.json").write_text(json.dumps(values | change))
    save_file({}, folder / "adapter_model.safetensors")
    return folder


def test_new_weights_that_no_memory_holds_are_refused_before_they_are_drawn(tmp_path: Path) -> None:
    config = {"num_hidden_layers": 900, "hidden_size": 100_000, "num_attention_heads": 1}
    model = {"name_or_path": str(BERT), "initialise": "from_config", "config": config}
    spec = RunSpec.model_validate({"data": {"train": "x.csv"}, "task": {"type": "text_classification"}, "model": model})
    with pytest.raises(InputError, match=r"^model\.initialise: .* billion parameters"):
        check_new_weights(spec, BERT)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files")
@pytest.mark.parametrize(
    "file", ["config.json", "tokenizer_config.json", "generation_config.json", "model.safetensors"]
)
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: Path(path).symlink_to("/dev/zero")], ids=["fifo", "endless"])
def test_file_without_end_is_not_waited_for(file: str, make: Callable, tmp_path: Path) -> None:
    folder = FOLDERS["config: no width"](tmp_path)
    (folder / file).unlink(missing_ok=True)
    make(folder / file)
    with pytest.raises(InputError):
        inspection.check(folder, Head.SEQUENCE_CLASSIFICATION, max_length=128)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_labels": 10**9},
        {"hidden_size": 0},
        {"num_hidden_layers": 10**9},
        {"hidden_size": 129},
        {"vocab_size": "x"},
    ],
)
def test_changes_of_a_spec_are_checked_alike(changes: dict) -> None:
    config = inspection.read_config(BERT)
    with pytest.raises(InputError, match=r"^model\.config\.") as refused:
        check_changed(config, changes)
    assert str(refused.value.field) == f"model.config.{next(iter(changes))}"


def test_changes_that_go_together_are_taken_together() -> None:
    check_changed(inspection.read_config(BERT), {"hidden_size": 130, "num_attention_heads": 10})


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "mamba2", "time_step_limit": [0.0, float("inf")], "hidden_size": 768, "num_heads": 24},
        {"model_type": "deberta-v2", "type_vocab_size": 0, "hidden_size": 768, "num_attention_heads": 12},
        {"model_type": "t5", "d_model": 512, "num_heads": 6, "d_kv": 64, "model_max_length": 10**30},
        {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_inner": None, "architectures": None},
        {
            "model_type": "gemma3n",
            "text_config": {"intermediate_size": [8192, 8192], "hidden_size": 2048, "head_dim": 256},
        },
        {
            "model_type": "qwen3",
            "hidden_size": 1024,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
        },
        {"model_type": "bert", "id2label": {"0": "no", "1": "yes"}, "attn_implementation": "sdpa"},
    ],
    ids=lambda config: config["model_type"],
)
def test_what_real_models_say_passes(config: dict) -> None:
    assert problem_of(config) == ""


def test_models_that_come_with_the_program_pass() -> None:
    for folder in BERT.parent.iterdir():
        if (folder / "config.json").is_file():
            assert inspection.config_problem(folder) == ""


NOTES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "list": lambda path: path.write_text("[1]"),
    "nothing": lambda path: path.write_text("{}"),
    "nested": lambda path: path.write_text("[" * 100_000),
    "task as number": lambda path: path.write_text('{"task": 5, "facts": {}, "columns": {}}'),
    "type as list": lambda path: path.write_text('{"task": {"type": [5]}, "facts": {}, "columns": {}}'),
    "no columns": lambda path: path.write_text('{"task": {"type": "text_classification"}, "facts": {}}'),
    "facts as number": lambda path: path.write_text('{"task": {"type": "x"}, "facts": 5, "columns": {}}'),
    "labels as number": lambda path: path.write_text('{"task": {"type": "x"}, "facts": {"labels": 5}, "columns": {}}'),
    "labels of numbers": lambda path: path.write_text(
        '{"task": {"type": "x"}, "facts": {"labels": [5]}, "columns": {}}'
    ),
    "no labels": lambda path: path.write_text(
        '{"task": {"type": "text_classification"}, "facts": {}, "columns": {"text": "text"}}'
    ),
}


@pytest.mark.parametrize("name", NOTES)
def test_note_that_is_damaged_is_one_sentence(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(BERT, tmp_path / "model"))
    NOTES[name](folder / "burnish.json")
    assert main(["evaluate", str(folder), "--data", str(BERT.parent / "sentiment" / "validation.csv")]) == 2
    assert str(folder / "burnish.json") in capsys.readouterr().err.splitlines()[-1]
