"""The models that come with the program are small, and do what is said of them."""

import math
from pathlib import Path

import pytest

from backend import answering
from backend.contract.demo_models import DEMO_MODELS, DemoModel, demo_model


@pytest.mark.parametrize("model", DEMO_MODELS, ids=lambda model: model.name)
def test_a_model_is_one_safetensors_file_of_less_than_10_mb(model: DemoModel) -> None:
    (weights,) = model.folder.glob("*.safetensors")
    assert weights.stat().st_size < 10_000_000
    assert (model.folder / "README.md").is_file()


def test_the_language_model_finds_an_unread_novel_likelier_than_n_grams_do(tmp_path: Path) -> None:
    from backend import predict

    novel = (demo_model("causal_lm").folder.parent / "austen" / "persuasion.txt").read_text(encoding="utf-8")
    chapters = tmp_path / "chapters.txt"
    chapters.write_text("\n".join(novel.split("\n")[200:900]), encoding="utf-8")
    found = predict.evaluate(str(demo_model("causal_lm").folder), chapters)
    assert 60 < found.metrics["perplexity"] < 96.8
    assert math.isclose(found.metrics["perplexity"], math.exp(found.metrics["loss"]))
