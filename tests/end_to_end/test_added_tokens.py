"""A run with added tokens leaves a model and a tokenizer that agree, and that transformers loads and uses."""

from pathlib import Path

import pytest
import torch
from end_to_end.burnish_process import Burnish, events_of
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from backend.contract.resources import resource
from backend.contract.run.events import Warned

OPTIONS = {"added_tokens": ["zyzzyva", "wonderful movie"], "added_special_tokens": ["<review>"]}


def with_engine(spec: Path, engine: str) -> Path:
    """The spec with another engine, which knows no threads."""
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text if engine == "torch" else text.replace("threads: 1", f"engine: {engine}"), encoding="utf-8")
    return spec


def saved(burnish: Burnish, kind):
    """Model and tokenizer of the run, as transformers opens them; their sizes agree."""
    folder = burnish.run_folder()
    model, tokenizer = kind.from_pretrained(folder.model), AutoTokenizer.from_pretrained(folder.model)
    rows = model.get_input_embeddings().weight.shape[0]
    assert rows == model.config.vocab_size == len(tokenizer)
    assert "<review>" in tokenizer.all_special_tokens
    assert tokenizer.tokenize("a wonderful movie")[-1] == "wonderful movie"
    return model.eval(), tokenizer


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch", "jax"])
def test_a_classifier_with_added_tokens_predicts_in_transformers_what_it_predicted(burnish: Burnish, engine: str):
    spec = with_engine(burnish.spec(model={"tokenizer_options": OPTIONS}), engine)
    done = burnish("train", str(spec))
    assert done.returncode == 0, done.stderr
    model, tokenizer = saved(burnish, AutoModelForSequenceClassification)
    words = [event.message for event in events_of(burnish.run_folder()) if isinstance(event, Warned)]
    assert any("3 rows added" in text and "3 rows initialized to the mean" in text for text in words)
    said = burnish("predict", str(burnish.run_folder().model), "--data", "validation.csv", "--output", "again.csv")
    assert said.returncode == 0, said.stderr
    ids = tokenizer(["a wonderful movie", "zyzzyva"], padding=True, return_tensors="pt")
    assert torch.isfinite(model(**ids).logits).all()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch", "jax"])
def test_a_language_model_with_an_extended_tokenizer_writes(burnish: Burnish, engine: str):
    gpt2 = str(resource("demo", "austen-gpt2"))
    tokens = ["--add", "wonderful movie", "zyzzyva", "--add-special", "<review>"]
    made = burnish("tokenizer", "extend", gpt2, *tokens, "--output", "own")
    assert made.returncode == 0, made.stderr
    spec = burnish.spec(
        task={"type": "causal_lm", "max_length": 32},
        model={"name_or_path": gpt2, "tokenizer": "own"},
        data={"columns": {"text": "text"}},
        adapter={"type": "lora"},
    )
    with_engine(spec, engine)
    done = burnish("train", str(spec))
    assert done.returncode == 0, done.stderr
    model, tokenizer = saved(burnish, AutoModelForCausalLM)
    ids = tokenizer("<review> a wonderful movie", return_tensors="pt")
    assert max(ids["input_ids"][0]) >= len(tokenizer) - 3
    written = model.generate(**ids, max_new_tokens=5, do_sample=False)
    assert written.shape[1] > ids["input_ids"].shape[1]
