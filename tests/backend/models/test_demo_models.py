"""The models that come with the program are small, and do what is said of them."""

import math

import pytest

from backend.contract.resources import DEMO_MODELS, DemoModel, demo_model
from backend.inference import interactive, predict


@pytest.mark.parametrize("model", DEMO_MODELS, ids=lambda model: model.name)
def test_a_model_is_one_safetensors_file_of_less_than_10_mb(model: DemoModel) -> None:
    (weights,) = model.folder.glob("*.safetensors")
    assert weights.stat().st_size < 10_000_000
    assert (model.folder / "README.md").is_file()


@pytest.mark.slow
def test_the_language_model_finds_an_unread_novel_likelier_than_n_grams_do() -> None:
    folder = demo_model("causal_lm").folder
    found = predict.evaluate(str(folder), folder.parent / "austen" / "persuasion.txt")
    assert found.metrics["perplexity"] < 85  # 4-grams have 96.8: docs/results.md
    assert math.isclose(found.metrics["perplexity"], math.exp(found.metrics["loss"]))


def test_the_translator_translates_an_unread_verse() -> None:
    translator = interactive.InteractivePredictor(str(demo_model("seq2seq_lm").folder))
    (answer,) = translator.answer([{"source": "And the LORD spake unto Moses, saying,"}]).rows
    assert "Jehová" in answer["prediction"]
