"""An ONNX file answers what its model answers, for every head and many architectures, whatever the number of rows and tokens."""

from pathlib import Path

import numpy as np
import pytest

from backend.contract.heads import Head
from backend.engines.torch.engine import TorchEngine
from tests.backend.engines.example_batches import loading
from tests.backend.engines.head_batches import facts, head_batch
from tests.backend.engines.tiny_models import PADDING

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

from backend.engines.torch.onnx_model import OUTPUTS, OnnxEngine, write  # needs both

PAIRS = [
    *((name, Head.SEQUENCE_CLASSIFICATION) for name in ("bert", "roberta", "distilbert", "deberta-v2", "gpt2")),
    ("bert", Head.MULTI_LABEL_CLASSIFICATION),
    ("roberta", Head.SEQUENCE_REGRESSION),
    *((name, Head.TOKEN_CLASSIFICATION) for name in ("bert", "distilbert")),
    *((name, Head.QUESTION_ANSWERING) for name in ("bert", "roberta")),
    ("bert", Head.MULTIPLE_CHOICE),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "head"), PAIRS)
def test_the_file_answers_as_the_model(name: str, head: Head, tiny, tmp_path: Path):
    engine, whole = TorchEngine(), tmp_path / "whole"
    padding = PADDING.get(name, 0)
    engine.load(loading(tiny(name), facts(head), pad_token_id=padding))
    whole.mkdir()
    engine.export(whole)
    is_pair = "token_type_ids" in head_batch(head, 2, padding=padding)
    write(whole, head, tmp_path / "model.onnx", token_types=is_pair)
    onnx = OnnxEngine(tmp_path / "model.onnx", facts(head), engine._model.config, 1)
    for rows in (1, 7):
        batch = head_batch(head, rows, seed=rows, padding=padding)
        expected, found = engine.evaluate(batch), onnx.evaluate(batch)
        seen = batch["attention_mask"] == 1
        assert found.keys() == expected.keys()
        for output, values in expected.items():
            by_token = values.shape[:2] == seen.shape and head is not Head.MULTIPLE_CHOICE
            ours, theirs = (each[seen] if by_token else each for each in (values, found[output]))
            np.testing.assert_allclose(theirs, ours, atol=2e-4 * max(1.0, float(np.abs(ours).max())))


def test_every_head_of_one_pass_is_written():
    passes = {head for head in Head if head.targets not in ("next_token", "sequence")}
    assert passes - OUTPUTS.keys() == {Head.QUESTION_ANSWERING_BEAM, Head.MASKED_LM}
