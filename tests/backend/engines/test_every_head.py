"""For every head one optimizer step and the outputs are those of plain transformers, also in ragged micro-batches."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from backend.contract.heads import Head
from backend.contract.spec import TrainingSection
from tests.backend.engines.example_batches import BERT_TINY
from tests.backend.engines.head_batches import facts, head_batch, part_of
from tests.backend.engines.tiny_models import PADDING

LEARNING_RATE = 1e-2
EPSILON = 1e-4  # a small one blows rounding of gradients that are zero (biases before a softmax) up to whole steps
TRAINING = TrainingSection(
    batch_size=13, learning_rate=LEARNING_RATE, weight_decay=0.1, max_gradient_norm=0.5, seed=7, adam_epsilon=EPSILON
)
WHOLE, CUT = [slice(0, 13)], [slice(0, 8), slice(8, 13)]
CLASSES: dict[Head, Any] = {
    Head.CAUSAL_LM: hf.AutoModelForCausalLM,
    Head.MASKED_LM: hf.AutoModelForMaskedLM,
    Head.SEQ2SEQ_LM: hf.AutoModelForSeq2SeqLM,
    Head.SEQUENCE_CLASSIFICATION: hf.AutoModelForSequenceClassification,
    Head.MULTI_LABEL_CLASSIFICATION: hf.AutoModelForSequenceClassification,
    Head.SEQUENCE_REGRESSION: hf.AutoModelForSequenceClassification,
    Head.TOKEN_CLASSIFICATION: hf.AutoModelForTokenClassification,
    Head.QUESTION_ANSWERING: hf.AutoModelForQuestionAnswering,
    Head.MULTIPLE_CHOICE: hf.AutoModelForMultipleChoice,
}
BEAMS: dict[str, Any] = {
    "xlnet": hf.XLNetForQuestionAnswering,
    "xlm": hf.XLMForQuestionAnswering,
    "flaubert": hf.FlaubertForQuestionAnswering,
}
PAIRS = [
    *(
        (name, Head.SEQUENCE_CLASSIFICATION)
        for name in ("bert", "roberta", "distilbert", "xlnet", "gpt2", "deberta-v2")
    ),
    ("bert", Head.MULTI_LABEL_CLASSIFICATION),
    *((name, Head.SEQUENCE_REGRESSION) for name in ("bert", "roberta", "gpt2")),
    *((name, Head.TOKEN_CLASSIFICATION) for name in ("bert", "distilbert", "xlm")),
    *((name, Head.QUESTION_ANSWERING) for name in ("bert", "roberta", "xlnet", "xlm")),
    *((name, Head.QUESTION_ANSWERING_BEAM) for name in ("xlnet", "xlm", "flaubert")),
    *((name, Head.MULTIPLE_CHOICE) for name in ("bert", "roberta", "xlnet")),
    *((name, Head.MASKED_LM) for name in ("bert", "roberta", "distilbert", "xlm")),
    *((name, Head.CAUSAL_LM) for name in ("opt", "qwen2")),
    *((name, Head.SEQ2SEQ_LM) for name in ("t5", "mt5", "bart", "mbart", "marian", "pegasus", "m2m_100")),
]


OTHERS = {
    *((name, Head.SEQUENCE_CLASSIFICATION) for name in ("roberta", "distilbert")),
    ("roberta", Head.SEQUENCE_REGRESSION),
    ("distilbert", Head.TOKEN_CLASSIFICATION),
    *((name, Head.QUESTION_ANSWERING) for name in ("roberta", "xlm")),
    ("flaubert", Head.QUESTION_ANSWERING_BEAM),
    ("roberta", Head.MULTIPLE_CHOICE),
    *((name, Head.MASKED_LM) for name in ("roberta", "distilbert")),
    *((name, Head.SEQ2SEQ_LM) for name in ("mt5", "mbart", "pegasus")),
}
"""Pairs that take the same way through the engine as another one; they are slow tests."""

IN_ONE_PART = {Head.SEQUENCE_CLASSIFICATION, Head.QUESTION_ANSWERING, Head.SEQ2SEQ_LM, Head.MASKED_LM}
"""One label, two, one for each token of an answer, and for some of a text; in parts every head takes its step."""


def plain_class(name, head):
    return BEAMS[name] if head is Head.QUESTION_ANSWERING_BEAM else CLASSES[head]


def tensors(batch, *without):
    named = {"labels" if name == "has_label" else name: array for name, array in batch.items()}
    return {name: torch.from_numpy(array) for name, array in named.items() if name not in {"row_valid", *without}}


def left_padded(batch):
    """The same rows with their padding in front."""
    lengths = batch["attention_mask"].sum(axis=-1, keepdims=True)
    width = batch["attention_mask"].shape[-1]
    places = (np.arange(width) + lengths) % width
    moved = {name: np.take_along_axis(batch[name], places, axis=-1) for name in ("input_ids", "attention_mask")}
    return batch | moved


def as_plain(name, head, batch):
    """The batch as plain transformers needs it: XLNet's summary of a row is its last place, padding or not."""
    by_row = {Head.SEQUENCE_CLASSIFICATION, Head.SEQUENCE_REGRESSION, Head.MULTIPLE_CHOICE}
    return left_padded(batch) if name == "xlnet" and head in by_row else batch


def prepared(name, head, engine_for, tiny, **changes):
    """The engine with that head, and a batch for it."""
    padding = PADDING.get(name, 0)
    changes = {"pad_token_id": padding, "model": {"dropout": 0.0}, **changes}
    return engine_for(tiny(name), facts(head), TRAINING, **changes), head_batch(head, 13, padding=padding)


def plain_loss(model, batch):
    """transformers' own; of a padded question answering batch that is wrong, for padding competes with the answers."""
    if "start_positions" not in batch or "p_mask" in batch:
        return model(**tensors(batch)).loss
    rows = [part_of(batch, slice(row, row + 1)) for row in range(len(batch["row_valid"]))]
    return torch.stack([model(**tensors(row)).loss for row in rows]).mean()


def plain_step(kind, folder, batch):
    """One step with nothing of ours: transformers' own loss, clip_grad_norm_, torch.optim.AdamW."""
    model = kind.from_pretrained(folder).train()
    for module in model.modules():
        if "Sinusoidal" in type(module).__name__:  # transformers 5.24 forgets on loading that it made them fixed
            module.requires_grad_(False)
    plain = {
        name
        for name, _ in model.named_parameters()
        if name.endswith("bias") or "norm" in name.lower() or ".ln_" in name
    }
    named = dict(model.named_parameters())
    groups = [
        {"params": [each for name, each in named.items() if name not in plain], "weight_decay": 0.1},
        {"params": [each for name, each in named.items() if name in plain], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, eps=EPSILON)
    loss = plain_loss(model, batch)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return (loss.item(), norm.item()), model.state_dict()


@pytest.mark.parametrize(
    ("name", "head"),
    [pytest.param(*pair, id="-".join(pair), marks=[pytest.mark.slow] if pair in OTHERS else []) for pair in PAIRS],
)
def test_a_step_in_ragged_parts_equals_a_plain_transformers_step(name, head, engine_for, tiny, tmp_path):
    engine, batch = prepared(name, head, engine_for, tiny)
    check_step(engine, plain_class(name, head), batch, as_plain(name, head, batch), CUT, tmp_path)


@pytest.mark.parametrize(
    "head", [pytest.param(head, marks=[] if head in IN_ONE_PART else [pytest.mark.slow]) for head in Head]
)
def test_a_step_of_one_part_equals_a_plain_transformers_step(head, engine_for, tiny, tmp_path):
    name = next(name for name, own in PAIRS if own is head)
    engine, batch = prepared(name, head, engine_for, tiny)
    check_step(engine, plain_class(name, head), batch, as_plain(name, head, batch), WHOLE, tmp_path)


@pytest.mark.parametrize(
    "head",
    [
        Head.TOKEN_CLASSIFICATION,
        pytest.param(Head.QUESTION_ANSWERING, marks=pytest.mark.slow),
        Head.MULTIPLE_CHOICE,
    ],
)
def test_a_word_embedding_trained_by_rows_is_right_for_other_heads(head, engine_for, tmp_path):
    engine = engine_for(BERT_TINY, facts(head), TRAINING, vocabulary=30522, model={"dropout": 0.0})
    assert engine._words is not None
    batch = head_batch(head, 13)
    check_step(engine, CLASSES[head], batch, batch, CUT, tmp_path)


def test_an_embedding_that_more_than_the_inputs_tokens_use_is_trained_whole(engine_for, tiny):
    masked = engine_for(BERT_TINY, facts(Head.MASKED_LM), TRAINING, vocabulary=30522)
    scratch = {"initialise": "from_config"}  # 70,000 rows of 16 are many enough to be worth it
    written = engine_for(tiny("t5"), facts(Head.SEQ2SEQ_LM), TRAINING, vocabulary=70_000, model=scratch)
    assert masked._words is None
    assert written._words is None


def check_step(engine, kind, batch, theirs, cuts, tmp_path):
    engine.export(tmp_path / "before")
    expected, weights = plain_step(kind, tmp_path / "before", theirs)
    result = engine.train_step([part_of(batch, rows) for rows in cuts], 0, LEARNING_RATE)
    found = engine.read([result])[0]
    np.testing.assert_allclose((found.loss, found.gradient_norm), expected, rtol=0, atol=1e-5)
    engine.export(tmp_path / "after")
    ours = kind.from_pretrained(tmp_path / "after").state_dict()
    assert ours.keys() == weights.keys()
    for key, value in weights.items():
        np.testing.assert_allclose(ours[key], value, rtol=0, atol=1e-5, err_msg=key)
