"""Features as files: padded arrays under the names that other programs use, and Parquet with lists."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from backend.contract.heads import Head
from backend.data.export import write_arrays, write_parquet
from backend.data.features import Features, load_into_memory

PAD, START = 7, 9


def quiet(done: int, total: int, unit: str) -> None:
    """Nobody listens."""


def features_of(**columns: list) -> Features:
    count = len(columns["input_ids"])
    kinds = {"input_ids": pa.list_(pa.int32()), "labels": pa.list_(pa.int32())}
    arrays = {name: pa.array(values, kinds.get(name)) for name, values in columns.items()}
    return load_into_memory(iter([pa.RecordBatch.from_pydict({"row": range(count), "part": [0] * count, **arrays})]))


def written(features: Features, folder: Path, head: Head, start: int | None = None) -> dict[str, list]:
    paths = write_arrays(features, folder, "train", head, PAD, start, quiet)
    return {path.stem.removeprefix("train_"): np.load(path).tolist() for path in paths}


def test_arrays_are_padded_to_the_longest_feature_of_the_split(tmp_path: Path):
    features = features_of(input_ids=[[1, 2, 3], [4]], labels=[[0, 1, 0], [1]])
    found = written(features, tmp_path, Head.TOKEN_CLASSIFICATION)
    assert found["input_ids"] == [[1, 2, 3], [4, PAD, PAD]]
    assert found["attention_mask"] == [[1, 1, 1], [1, 0, 0]]
    assert found["labels"] == [[0, 1, 0], [1, -100, -100]]
    assert (found["row"], found["part"]) == ([0, 1], [0, 0])


def test_all_parts_of_a_large_split_have_the_same_length(tmp_path: Path):
    features = features_of(input_ids=[[1]] * 1500 + [[1, 2]], labels=[[0]] * 1500 + [[0, 1]])
    found = written(features, tmp_path, Head.TOKEN_CLASSIFICATION)
    assert found["input_ids"][0] == [1, PAD]
    assert found["labels"][0] == [0, -100]
    assert found["input_ids"][1500] == [1, 2]


def test_progress_rises_to_one_total(tmp_path: Path):
    reported: list[tuple[int, int]] = []
    features = features_of(input_ids=[[1]] * 2100, labels=[[0]] * 2100)
    head = Head.TOKEN_CLASSIFICATION
    write_arrays(features, tmp_path, "train", head, PAD, None, lambda *report: reported.append(report[:2]))
    assert reported == sorted(reported)
    assert {total for _, total in reported} == {reported[-1][0]}


def test_labels_of_whole_texts_are_one_a_row(tmp_path: Path):
    features = features_of(input_ids=[[1], [2]])
    table = features.table.append_column("labels", pa.array([1, -100]))
    found = written(Features(table, features.lengths, "f"), tmp_path, Head.SEQUENCE_CLASSIFICATION)
    assert found["labels"] == [1, -100]


def test_decoder_inputs_are_the_labels_moved_right_by_one(tmp_path: Path):
    features = features_of(input_ids=[[1, 2], [3]], labels=[[4], [5, 6, 1]])
    found = written(features, tmp_path, Head.SEQ2SEQ_LM, START)
    assert found["source_ids"] == [[1, 2], [3, PAD]]
    assert found["source_mask"] == [[1, 1], [1, 0]]
    assert found["labels"] == [[4, -100, -100], [5, 6, 1]]
    assert found["target_ids"] == [[4, PAD, PAD], [5, 6, 1]]
    assert found["decoder_input_ids"] == [[START, 4, PAD], [START, 5, 6]]


def test_decoder_inputs_are_those_of_transformers(tmp_path: Path):
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    import torch
    from transformers import T5Config

    labels = [[4, 1], [5, 6, 1]]
    config = T5Config(vocab_size=16, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=1, decoder_start_token_id=0)
    features = features_of(input_ids=[[1, 2], [3]], labels=labels)
    paths = write_arrays(features, tmp_path, "train", Head.SEQ2SEQ_LM, 0, config.decoder_start_token_id, quiet)
    found = {path.stem: np.load(path) for path in paths}
    expected = t5.T5ForConditionalGeneration(config)._shift_right(torch.tensor(found["train_labels"]))
    assert found["train_decoder_input_ids"].tolist() == expected.tolist()


def test_parquet_keeps_a_list_for_each_feature(tmp_path: Path):
    features = features_of(input_ids=[[1, 2, 3], [4]], labels=[[0, 1, 0], [1]])
    [path] = write_parquet(features, tmp_path / "train.parquet", quiet)
    assert parquet.read_table(path)["input_ids"].to_pylist() == [[1, 2, 3], [4]]
