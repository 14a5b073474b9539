"""Model folders that mean harm or are damaged: each a name and a function that turns a small sound model into it."""

import base64
import json
import shutil
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

BERT = Path(__file__).parents[2] / "resources" / "demo" / "bert-tiny"
Spoil = Callable[[Path], object]


def model_folders() -> Iterator[tuple[str, Callable[[Path], Path]]]:
    """A name, and what makes the folder below a given one. None of them can be opened."""
    for name, spoil in {**_configs(), **_other_json(), **_headers(), **_indexes()}.items():
        yield name, _maker(spoil)


def _maker(spoil: Spoil) -> Callable[[Path], Path]:
    def make(parent: Path) -> Path:
        folder = Path(shutil.copytree(BERT, parent / "model"))
        spoil(folder)
        return folder

    return make


def _configs() -> dict[str, Spoil]:
    """What stands in config.json."""
    values: dict[str, dict[str, Any]] = {
        "a billion labels": {"num_labels": 10**9},
        "no width": {"hidden_size": 0},
        "negative width": {"hidden_size": -128},
        "no heads": {"num_attention_heads": 0},
        "width that heads cannot share": {"hidden_size": 129},
        "huge vocabulary": {"vocab_size": 10**12},
        "a billion layers": {"num_hidden_layers": 10**9},
        "a trillion positions": {"max_position_embeddings": 10**12},
        "negative vocabulary": {"vocab_size": -1},
        "too large together": {"vocab_size": 10**8, "hidden_size": 10**6, "num_attention_heads": 1},
        "width as text": {"hidden_size": "128"},
        "width as list": {"hidden_size": [128, "x"]},
        "width as table": {"hidden_size": {"x": 1}},
        "width as yes": {"hidden_size": True},
        "width with a fraction": {"hidden_size": 128.5},
        "endless width": {"hidden_size": float("inf")},
        "width that is no number": {"hidden_size": float("nan")},
        "width of four thousand digits": {"hidden_size": 10**4000},
        "label numbered by a word": {"id2label": {"first": "a"}},
        "labels as list": {"id2label": ["a", "b"]},
        "labels as number": {"label2id": 7},
        "architecture as number": {"architectures": 7},
        "architectures of numbers": {"architectures": [7]},
        "type as list": {"model_type": ["bert"]},
        "type as table": {"model_type": {"bert": "bert"}},
        "attention code of the hub": {"_attn_implementation": "stranger/attention"},
        "attention code of the hub within": {"text_config": {"attn_implementation": "stranger/attention@main:fast"}},
        "expert code of the hub": {"experts_implementation": "stranger/experts"},
        "quantised": {"quantization_config": {"quant_method": "fp8"}},
        "quantised by nothing": {"quantization_config": {}},
        "quantised within": {"text_config": {"quantization_config": {"quant_method": "gptq", "bits": 4}}},
        "unknown activation": {"hidden_act": "__import__('os')"},
        "labels within": {"text_config": {"num_labels": 10**9}},
    }
    texts = {
        "nested": '{"a":' * 100_000 + "1" + "}" * 100_000,
        "nested lists": '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
        "five thousand digits": '{"model_type": "bert", "hidden_size": ' + "9" * 5_000 + "}",
        "key twice": '{"model_type": "bert", "hidden_size": 128, "hidden_size": 0}',
        "list": "[]",
        "empty": "",
        "null": "null",
        "half": '{"model_type": "be',
        "bytes": b"\xff\xfe\x00",
        "surrogate": '{"model_type": "\\ud800"}',
    }
    found: dict[str, Spoil] = {f"config: {name}": _changed("config.json", change) for name, change in values.items()}
    found |= {f"config: {name}": _written("config.json", text) for name, text in texts.items()}
    return found | {
        "config: too large": lambda folder: _grow(folder / "config.json", 10**10),
        "config: folder": lambda folder: ((folder / "config.json").unlink(), (folder / "config.json").mkdir()),
        "config: missing": lambda folder: (folder / "config.json").unlink(),
    }


def unopenable() -> dict[str, Spoil]:
    """What only a library finds in config.json, in an ordinary folder, by the exception it ends in."""
    values: dict[str, dict[str, Any]] = {
        "TypeError": {"auto_map": 7},
        "AttributeError": {"sub_configs": 7},
        "AssertionError": {"pad_token_id": 10**9},
        "ValueError": {"hidden_dropout_prob": 7},
    }
    return {name: _changed("config.json", change) for name, change in values.items()}


def wrong_kinds() -> dict[str, tuple[Spoil, str]]:
    """Values of a kind that only a library knows to be wrong, by their key, and how a sentence shows them."""
    values = {
        "vocab_size": None,
        "hidden_size": None,
        "layer_norm_eps": "x",
        "hidden_dropout_prob": "a tenth",
        "hidden_act": 7,
        "pad_token_id": [0],
    }
    return {
        key: (_changed("config.json", {key: value}), "null" if value is None else repr(value))
        for key, value in values.items()
    }


def adapter_configs() -> dict[str, dict[str, Any]]:
    """What stands in adapter_config.json: endless patterns, orders to compute, and values of the wrong kind."""
    endless = "((([a-z0-9._]+)+)+)+Z"
    return {
        "endless pattern": {"target_modules": endless},
        "endless pattern in a list": {"modules_to_save": [endless]},
        "endless pattern of a rank": {"rank_pattern": {endless: 2}},
        "endless pattern of a scale": {"alpha_pattern": {"(a|a?)+b": 2}},
        "endless pattern of layers": {"layers_pattern": "(a|a){5,}b"},
        "endless pattern of many": {"exclude_modules": ".*" * 20 + "Z"},
        "pattern that refers back": {"target_modules": r"(.*)\1\1"},
        "no pattern": {"target_modules": "("},
        "long beginning": {"init_lora_weights": "pissa_niter_99999999"},
        "beginning from data": {"init_lora_weights": "lora_ga"},
        "unknown task": {"task_type": "NOPE"},
        "beginning as list": {"init_lora_weights": ["pissa"]},
        "rank as text": {"r": "9"},
        "rank of nothing": {"r": 0},
        "huge rank": {"rank_pattern": {"query": 10**9}},
        "scale without end": {"lora_alpha": float("inf")},
        "dropout of five": {"lora_dropout": 5},
        "names as number": {"target_modules": 7},
        "names of numbers": {"target_modules": [7]},
        "ranks as list": {"rank_pattern": [1]},
        "switch as text": {"use_dora": "x"},
        "bias unknown": {"bias": "x"},
        "layers as text": {"layers_to_transform": "x"},
        "tokens as text": {"trainable_token_indices": ["x"]},
        "layers again": {"layer_replication": [[0, 100_000]]},
        "module to import": {"megatron_config": {"x": 1}, "megatron_core": "antigravity"},
        "kind unknown": {"peft_type": "XLORA"},
        "kind as list": {"peft_type": ["LORA"]},
    }


def tokenizers() -> dict[str, Spoil]:
    """What only a library finds in the files of a tokenizer."""

    def vocabulary(folder: Path) -> None:
        found = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        found["model"]["vocab"]["far"] = 4 * 10**9
        (folder / "tokenizer.json").write_text(json.dumps(found), encoding="utf-8")

    config = "tokenizer_config.json"
    growing = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    piece = {"SpecialToken": {"id": "[NONE]", "type_id": 0}}
    template = {"type": "TemplateProcessing", "single": [piece], "pair": [], "special_tokens": {}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    steps: dict[str, dict[str, Any]] = {
        "table of four gigabytes": {"normalizer": _table(b"\xff\xff\xff\xff\x0f" + b"\0" * 15)},
        "table of nothing": {"normalizer": {"type": "Sequence", "normalizers": [_table(b"")]}},
        "untyped table": {"normalizer": {"precompiled_charsmap": _table(b"\xff" * 20)["precompiled_charsmap"]}},
        "table without a name": {"normalizer": ["/////w8AAAAAAAAAAAAAAAAAAAA="]},
        "normaliser that doubles": {"normalizer": {"type": "Sequence", "normalizers": [growing] * 34}},
        "normaliser that doubles in turn": {"normalizer": _turns()},
        "bytes of bytes": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 34}},
        "decoder that doubles": {"decoder": {"type": "Sequence", "decoders": [growing] * 34}},
        "long beginning": {"normalizer": {"type": "Prepend", "prepend": "a" * 10**6}},
        "parts of nothing": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
        "template of no token": {"post_processor": template},
        "template that repeats": {"post_processor": {**template, "single": [text] * 20_000}},
        "templates that repeat": {
            "post_processor": {"type": "Sequence", "processors": [{**template, "single": [text] * 2}] * 34}
        },
    }  # fmt: skip
    found = {name: _changed("tokenizer.json", change) for name, change in steps.items()}
    return found | {
        "normalizer twice": _twice,
        "merge that panics": _panicking,
        "table of four gigabytes beside": _beside,
        "far word": vocabulary,
        "added tokens as number": _changed("tokenizer.json", {"added_tokens": 7}),
        "normalizer unknown": _changed("tokenizer.json", {"normalizer": {"type": "Nothing"}}),
        "decoder of numbers": _changed(config, {"added_tokens_decoder": {"1": 7}}),
        "limit as text": _changed(config, {"model_max_length": "x"}),
        "files elsewhere": _changed(config, {"fast_tokenizer_files": ["../tokenizer.4.0.json"]}),
    }


def _table(charsmap: bytes) -> dict[str, Any]:
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}


def _turns() -> dict[str, Any]:
    """Each character becomes two of the next, and the last of them two of the first."""
    signs = "abcdefgh" * 5
    steps = [
        {"type": "Replace", "pattern": {"String": sign}, "content": following * 2}
        for sign, following in pairwise(signs)
    ]
    return {"type": "Sequence", "normalizers": steps}


def _panicking(folder: Path) -> None:
    model = {"type": "BPE", "vocab": {"h": 0, "é": 1}, "merges": [["h", "é"]], "continuing_subword_prefix": "€€€€"}
    take_as_it_is(folder, {"model": model, "added_tokens": [], "post_processor": None})


def take_as_it_is(folder: Path, change: dict[str, Any]) -> None:
    """Change tokenizer.json, and let no class of the library put steps of its own in the place of what stands there."""
    _changed("tokenizer.json", change)(folder)
    _changed("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"})(folder)


def _twice(folder: Path) -> None:
    path = folder / "tokenizer.json"
    text = path.read_text(encoding="utf-8").strip()
    path.write_text(f'{{"normalizer": {json.dumps(_table(bytes([255] * 20)))}, {text[1:]}', encoding="utf-8")


def _beside(folder: Path) -> None:
    """In a file that the library takes in place of tokenizer.json where the configuration names it."""
    shutil.copy(folder / "tokenizer.json", folder / "tokenizer.4.0.0.json")
    _changed("tokenizer.4.0.0.json", {"normalizer": _table(b"\xff" * 20)})(folder)
    _changed("tokenizer_config.json", {"fast_tokenizer_files": ["tokenizer.4.0.0.json"]})(folder)


def _other_json() -> dict[str, Spoil]:
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    names = ("generation_config.json", "tokenizer_config.json", "special_tokens_map.json")
    found: dict[str, Spoil] = {f"{name}: nested": _written(name, deep) for name in names}
    found |= {f"{name}: list": _written(name, "[]") for name in names}
    return found | {
        "tokenizer.json: nested": _written("tokenizer.json", deep),
        "tokenizer.json: too large": lambda folder: _grow(folder / "tokenizer.json", 10**10),
        "tokenizer_config.json: too large": lambda folder: _grow(folder / "tokenizer_config.json", 10**10),
    }


def _headers() -> dict[str, Spoil]:
    """What stands in the header of model.safetensors."""
    one = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    headers: dict[str, object] = {
        "overlapping": {"a": one, "b": {**one, "data_offsets": [4, 12]}},
        "same place": {"a": one, "b": one},
        "gap": {"a": one, "b": {**one, "data_offsets": [12, 20]}},
        "beyond the end": {"a": {**one, "shape": [2_000], "data_offsets": [0, 8_000]}},
        "backwards": {"a": {**one, "data_offsets": [8, 0]}},
        "negative place": {"a": {**one, "data_offsets": [-8, 0]}},
        "place as text": {"a": {**one, "data_offsets": ["0", "8"]}},
        "no place": {"a": {"dtype": "F32", "shape": [2]}},
        "negative shape": {"a": {**one, "shape": [-2]}},
        "huge shape": {"a": {**one, "shape": [10**30]}},
        "shape as number": {"a": {**one, "shape": 2}},
        "other size": {"a": {**one, "shape": [3]}},
        "unknown type": {"a": {**one, "dtype": "F1"}},
        "type as list": {"a": {**one, "dtype": ["F32"]}},
        "tensor as number": {"a": 7},
        "list": [],
    }
    found: dict[str, Spoil] = {f"weights: {name}": _weights(json.dumps(head)) for name, head in headers.items()}
    entry = json.dumps(one)
    return found | {
        "weights: tensor twice": _weights(f'{{"a": {entry}, "a": {entry}}}'),
        "weights: nested": _weights('{"a":' * 100_000 + "1" + "}" * 100_000),
        "weights: header beyond the file": _written("model.safetensors", struct.pack("<Q", 10**9) + b"{}"),
        "weights: endless header": _written("model.safetensors", b"\xff" * 64),
        "weights: empty": _written("model.safetensors", b""),
        "weights: text": _written("model.safetensors", "no weights"),
    }


def _indexes() -> dict[str, Spoil]:
    def index(text: str) -> Spoil:
        def spoil(folder: Path) -> None:
            (folder / "model.safetensors").rename(folder / "shard.safetensors")
            (folder / "model.safetensors.index.json").write_text(text, encoding="utf-8")

        return spoil

    def places(name: object) -> Spoil:
        return index(json.dumps({"weight_map": {"a": name}}))

    return {
        "index: missing file": places("model-00001-of-00002.safetensors"),
        "index: outside": places("../model.safetensors"),
        "index: far outside": places("../../../../etc/passwd"),
        "index: absolute": places("/etc/passwd"),
        "index: backslashes": places("..\\model.safetensors"),
        "index: number": places(7),
        "index: table": places({"x": "y"}),
        "index: list": index('{"weight_map": ["a"]}'),
        "index: no map": index("{}"),
        "index: nested": index('{"weight_map":' * 100_000 + "1" + "}" * 100_000),
        "index: empty": index('{"weight_map": {}}'),
    }


def _changed(name: str, change: dict[str, Any]) -> Spoil:
    def spoil(folder: Path) -> None:
        found = json.loads((folder / name).read_text(encoding="utf-8"))
        (folder / name).write_text(json.dumps({**found, **change}), encoding="utf-8")

    return spoil


def _written(name: str, content: str | bytes) -> Spoil:
    return lambda folder: (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def _weights(header: str) -> Spoil:
    content = header.encode()
    return _written("model.safetensors", struct.pack("<Q", len(content)) + content + b"\0" * 20)


def _grow(path: Path, size: int) -> None:
    with path.open("ab") as file:
        file.truncate(size)  # holes: it takes no room on the disk
