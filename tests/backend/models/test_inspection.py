"""A model is described and judged from its files alone."""

import json
import os
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from backend.contract.errors import InputError
from backend.contract.heads import Head
from backend.models import inspection
from backend.models.architectures import explain_unsupported
from backend.models.config import longest_sequence
from tests.backend.models.conftest import BERT_TINY

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1234\n"


def change_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def test_a_folder_is_described(folder):
    found = inspection.describe(str(folder), task="text_classification")
    assert found.architecture == "BertForMaskedLM"
    assert (found.model_type, found.found, found.weights_format) == ("bert", "folder", "safetensors")
    assert (found.dtype, found.licence, found.max_length, found.vocabulary) == ("F32", "mit", 32, 30522)
    assert found.size_mb == pytest.approx((folder / "model.safetensors").stat().st_size / 1e6)
    assert found.safe
    assert found.tokenizer_fits
    assert "30,522" in found.tokenizer
    assert any("new, untrained classification head" in note for note in found.notes)
    assert found.problem == ""


def test_parameters_are_counted_as_the_model_has_them(folder):
    from transformers import BertForMaskedLM

    expected = sum(each.numel() for each in BertForMaskedLM.from_pretrained(folder).parameters())
    assert inspection.count_parameters(folder) == expected


def test_describing_and_judging_import_no_framework():
    code = (
        "import sys; from pathlib import Path; from backend.models import inspection; from backend.contract.heads import Head;"
        f"folder = Path({str(BERT_TINY)!r}); inspection.describe(str(folder)); inspection.check(folder, Head.SEQUENCE_CLASSIFICATION);"
        "print(sorted({'torch', 'transformers', 'jax'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert ended.stdout.strip() == "[]"


def test_a_tokenizer_with_more_tokens_than_rows_is_said(folder):
    change_config(folder, vocab_size=100)
    found = inspection.describe(str(folder))
    assert not found.tokenizer_fits
    assert any("30422 embedding rows will be added" in note for note in found.notes)


def test_labels_of_a_stored_head_are_shown(folder):
    change_config(folder, id2label={"0": "bad", "1": "good"}, architectures=["BertForSequenceClassification"])
    found = inspection.describe(str(folder), task="text_classification")
    assert found.labels == ["bad", "good"]
    assert any("for other labels a new, untrained head" in note for note in found.notes)


def without_weights(folder):
    (folder / "model.safetensors").unlink()


def pointer_for_weights(folder):
    (folder / "model.safetensors").write_text(POINTER)


def pointer_for_tokenizer(folder):
    (folder / "tokenizer.json").write_text(POINTER)


def broken_header(folder):
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 20) + b"{this is no json}   ")


def garbage(folder):
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)


def truncated(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def missing_shard(folder):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def without_config(folder):
    (folder / "config.json").unlink()


def unreadable_config(folder):
    (folder / "config.json").write_text("{")


def without_tokenizer(folder):
    for name in ("tokenizer.json", "vocab.txt"):
        (folder / name).unlink()


def of_another_framework(folder):
    (folder / "model.safetensors").rename(folder / "tf_model.h5")


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def empty_header(folder):
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")


def too_few_rows(folder):
    change_config(folder, vocab_size=3)


def unknown_activation(folder):
    change_config(folder, hidden_act="nothing")


def named_otherwise(folder):
    path = folder / "model.safetensors"
    save_file({f"stranger.{name}": values for name, values in load_file(path).items()}, path)


def weights_of_gpt2(folder):
    save_file({"transformer.wte.weight": np.zeros((8, 4), np.float32)}, folder / "model.safetensors")


SPOILT = {
    named_otherwise: "no weights in .* belong to a bert model; download the model again",
    weights_of_gpt2: "no weights in .* belong to a bert model; download the model again",
    empty_header: "contains no weights; download the model again",
    too_few_rows: "vocab_size is 3, but .*word_embeddings.weight has [0-9,]+ rows; correct it there",
    unknown_activation: "hidden_act is 'nothing', which is not an activation function that transformers supports",
    without_weights: "has no weights.*from_config",
    pointer_for_weights: "git lfs pull",
    pointer_for_tokenizer: r"tokenizer\.json.*git lfs pull",
    broken_header: "damaged.*download it again",
    garbage: "damaged.*header",
    truncated: "damaged.*should be",
    missing_shard: "lacks model-00001-of-00002.*again",
    without_config: "no config.json",
    unreadable_config: "not a readable JSON",
    without_tokenizer: "no tokenizer.*model.tokenizer",
    of_another_framework: "tf_model.h5.*safetensors",
    pickled: "--convert-weights",
}


@pytest.mark.parametrize(("spoil", "words"), SPOILT.items(), ids=[each.__name__ for each in SPOILT])
def test_a_folder_that_cannot_be_used_is_refused_with_the_way_out(spoil, words, folder):
    spoil(folder)
    with pytest.raises(InputError, match=words) as caught:
        inspection.check(folder, Head.SEQUENCE_CLASSIFICATION)
    assert caught.value.field == "model.name_or_path"
    if spoil is not pickled:
        assert inspection.describe(str(folder), task="text_classification").problem


def test_the_untouched_folder_passes(folder):
    inspection.check(folder, Head.SEQUENCE_CLASSIFICATION, max_length=32)


def test_training_from_scratch_needs_no_weights_and_another_tokenizer_none_here(folder):
    without_weights(folder)
    without_tokenizer(folder)
    inspection.check(folder, Head.SEQUENCE_CLASSIFICATION, from_config=True, needs_tokenizer=False)


def test_a_length_over_the_positions_is_refused(folder):
    with pytest.raises(InputError, match=r"33 tokens.*32 positions.*32 or less"):
        inspection.check(folder, Head.SEQUENCE_CLASSIFICATION, max_length=33)


@pytest.mark.parametrize(
    ("config", "head", "words"),
    [
        ({"model_type": "bert"}, Head.CAUSAL_LM, "encoder"),
        ({"model_type": "roberta"}, Head.CAUSAL_LM, "encoder"),
        ({"model_type": "t5", "is_encoder_decoder": True}, Head.CAUSAL_LM, "cannot continue"),
        ({"model_type": "bart", "is_encoder_decoder": True}, Head.CAUSAL_LM, "cannot continue"),
        ({"model_type": "vit"}, Head.SEQUENCE_CLASSIFICATION, "a vit model is made for images"),
        ({"model_type": "clip"}, Head.SEQUENCE_CLASSIFICATION, "a clip model is made for images"),
        ({"model_type": "wav2vec2"}, Head.SEQUENCE_CLASSIFICATION, "a wav2vec2 model is made for audio"),
        ({"model_type": "whisper"}, Head.CAUSAL_LM, "a whisper model is made for audio"),
        ({"model_type": "unheard-of"}, Head.CAUSAL_LM, "unheard-of model cannot"),
        ({"architectures": []}, Head.CAUSAL_LM, "model_type"),
    ],
)
def test_an_architecture_that_cannot_do_the_task_is_refused_by_name(config, head, words):
    assert words in explain_unsupported(config, head)


@pytest.mark.parametrize(
    ("config", "head"),
    [
        ({"model_type": "bert"}, Head.SEQUENCE_CLASSIFICATION),
        ({"model_type": "bert", "is_decoder": True}, Head.CAUSAL_LM),
        ({"model_type": "t5", "is_encoder_decoder": True}, Head.SEQUENCE_CLASSIFICATION),
        *(({"model_type": name}, Head.CAUSAL_LM) for name in ("gpt2", "llama", "opt", "qwen3", "gemma3", "mistral", "bloom")),
        *(({"model_type": name}, Head.SEQUENCE_CLASSIFICATION) for name in ("gpt2", "llama", "roberta", "distilbert", "deberta-v2", "electra", "modernbert")),
    ],
)  # fmt: skip
def test_an_architecture_that_can_do_the_task_passes(config, head):
    assert explain_unsupported(config, head) == ""


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512}, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514}, 512),
        ({"model_type": "gpt2", "n_positions": 1024}, 1024),
        ({"model_type": "t5", "n_positions": 512}, None),
    ],
)
def test_the_longest_sequence_follows_the_positions(config, longest):
    assert longest_sequence(config) == longest


def test_the_embedded_model_is_fit_for_its_demo():
    found = inspection.describe(str(BERT_TINY), task="text_classification")
    assert (found.problem, found.dtype) == ("", "F16")
    assert any("32-bit" in note for note in found.notes)
    assert inspection.describe(str(BERT_TINY), task="causal_lm").problem


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        inspection.describe(str(tmp_path / "nothing"))


def test_a_copy_without_git_lfs_content_is_described_as_such(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    pointer_for_weights(copy)
    assert inspection.describe(str(copy)).weights_format == "lfs-pointer"
