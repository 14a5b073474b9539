"""What a run tells its engine of added tokens, and how rows of several files are measured."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from backend.contract.heads import Head
from backend.data.features import load_into_memory
from backend.data.rows import Rows
from backend.metrics.metric import Predictions
from backend.preflight.datasets import make_task
from backend.preflight.resolve import resolve
from backend.preflight.session import FeatureSession, _decides_features, new_tokens
from backend.tokenizers.loading import open_tokenizer

BERT_TINY = Path(__file__).parents[3] / "resources" / "demo" / "bert-tiny"
OPTIONS = {"added_tokens": ["zyzzyva"]}


def of_run(opened=None, /, **model):
    values = {"task": {"type": "text_classification"}, "data": {"train": "train.csv", "validation": 0.1}}
    spec = resolve({**values, "model": {"name_or_path": str(BERT_TINY), **model}}, Path("/"))
    return new_tokens(spec, opened or open_tokenizer(str(BERT_TINY), options=model.get("tokenizer_options")), BERT_TINY)


def zyzzyva():
    tokenizer = open_tokenizer(str(BERT_TINY))
    return tuple(tokenizer.convert_tokens_to_ids(tokenizer.tokenize("zyzzyva")))


def test_added_tokens_of_the_options_begin_as_their_pieces():
    found = of_run(tokenizer_options=OPTIONS)
    assert (found.pieces, found.known) == ({30522: zyzzyva()}, 30522)


def test_a_saved_extended_tokenizer_means_the_same(tmp_path):
    open_tokenizer(str(BERT_TINY), options=OPTIONS).save_pretrained(tmp_path)
    found = of_run(open_tokenizer(str(tmp_path)), tokenizer=str(tmp_path))
    assert (found.pieces, found.known) == ({30522: zyzzyva()}, 30522)


def test_usual_embeddings_take_no_mean():
    assert of_run(tokenizer_options=OPTIONS, new_embeddings="usual").pieces == {30522: ()}


@pytest.mark.parametrize("model", [{}, {"tokenizer_options": OPTIONS, "initialise": "from_config"}])
def test_without_added_tokens_or_weights_nothing_is_new(model):
    assert not of_run(**model).pieces


def test_another_vocabulary_says_nothing_of_the_models_rows():
    folder = str(BERT_TINY.parent / "austen-gpt2")
    found = of_run(open_tokenizer(folder, options=OPTIONS), tokenizer=folder)
    assert (dict(found.pieces), found.known) == ({}, None)


class Counting:
    """A task whose only metric is the number of rows."""

    head, evaluates_by = Head.SEQUENCE_CLASSIFICATION, "loss"

    def decode(self, outputs, table, rows, *_):
        """Nothing of what the engine says."""
        return Predictions(rows.table)

    def score(self, predictions, facts):
        """Of these predictions."""
        return {"rows": float(predictions.table.num_rows)}


@pytest.mark.parametrize(
    ("file_index", "metrics"),
    [([1, 1], {"rows": 2}), ([0, 1], {"rows": 2, "a.txt/rows": 1, "b.txt/rows": 1})],
    ids=["all held out from the last file", "of both files"],
)
def test_only_rows_of_several_files_are_also_measured_file_by_file(file_index: list[int], metrics: dict[str, float]):
    table = pa.table({"input_ids": [[1], [2]]})
    rows = Rows(table, ("a.txt", "b.txt"), np.array(file_index), np.arange(2), "")
    engine = SimpleNamespace(constant_rows=False, device_memory_mb=lambda: None, evaluate=lambda batch: {})
    spec = SimpleNamespace(evaluation=SimpleNamespace(metrics=(), batch_size=2))
    session = FeatureSession(spec, Counting(), {"max_length": 8}, {}, None, 0, engine)
    assert session.score(rows, load_into_memory(iter(table.to_batches())), 2).metrics == metrics


def test_a_setting_that_came_later_leaves_older_runs_the_order_of_their_rows():
    later = {"labels_per_row", "label_separator", "rows_without_labels"}

    def deciding(**settings: str) -> dict[str, object]:
        task = {"type": "text_classification", **settings}
        model = {"name_or_path": str(BERT_TINY)}
        return _decides_features(
            make_task(resolve({"task": task, "model": model, "data": {"train": "a.csv"}}, Path("/")))
        )

    assert deciding().keys() & later == set()
    assert "max_length" in deciding()
    assert deciding(labels_per_row="many", label_separator=";").items() >= {
        ("labels_per_row", "many"), ("label_separator", ";")
    }  # fmt: skip
