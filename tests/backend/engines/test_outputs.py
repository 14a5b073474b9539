"""What `evaluate` returns for every head is what plain transformers computes from equal weights."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from backend.contract.heads import IGNORE, TOP_TOKENS, Head
from backend.contract.spec import TrainingSection
from tests.backend.engines.head_batches import facts, head_batch, part_of
from tests.backend.engines.test_every_head import BEAMS, CLASSES, as_plain, prepared, tensors

TARGETS = ("labels", "start_positions", "end_positions", "is_impossible")


def plain_outputs(engine, kind, batch, folder, *without):
    engine.export(folder)
    with torch.no_grad():
        return kind.from_pretrained(folder).eval()(**tensors(batch, *TARGETS, *without))


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("roberta", Head.SEQUENCE_CLASSIFICATION),
        ("gpt2", Head.SEQUENCE_CLASSIFICATION),
        ("xlnet", Head.SEQUENCE_CLASSIFICATION),
        ("distilbert", Head.TOKEN_CLASSIFICATION),
        ("bert", Head.MULTIPLE_CHOICE),
        ("xlnet", Head.MULTIPLE_CHOICE),
    ],
)
def test_logits_equal_those_of_transformers(name, head, engine_for, tiny, tmp_path):
    engine, batch = prepared(name, head, engine_for, tiny)
    expected = plain_outputs(engine, CLASSES[head], as_plain(name, head, batch), tmp_path).logits.numpy()
    found = engine.evaluate(batch)["logits"]
    if head is Head.TOKEN_CLASSIFICATION:  # those of padding are nobody's
        found, expected = (logits[batch["attention_mask"] == 1] for logits in (found, expected))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_numbers_of_a_regression_have_no_second_axis(engine_for, tiny, tmp_path):
    engine, batch = prepared("bert", Head.SEQUENCE_REGRESSION, engine_for, tiny)
    expected = plain_outputs(engine, CLASSES[Head.SEQUENCE_REGRESSION], batch, tmp_path).logits[:, 0]
    np.testing.assert_allclose(engine.evaluate(batch)["logits"], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "xlnet", "xlm", "flaubert"])
def test_starts_and_ends_equal_those_of_the_plain_head(name, engine_for, tiny, tmp_path):
    engine, batch = prepared(name, Head.QUESTION_ANSWERING, engine_for, tiny)
    expected = plain_outputs(engine, CLASSES[Head.QUESTION_ANSWERING], batch, tmp_path)
    for key, values in engine.evaluate(batch).items():
        np.testing.assert_allclose(values, expected[key], atol=1e-5)


@pytest.mark.parametrize("name", BEAMS)
def test_beams_equal_those_of_transformers_own_head(name, engine_for, tiny, tmp_path):
    engine, batch = prepared(name, Head.QUESTION_ANSWERING_BEAM, engine_for, tiny)
    expected = plain_outputs(engine, BEAMS[name], batch, tmp_path)
    found = engine.evaluate(batch)
    assert found["start_top_index"].shape == (13, 3)
    assert found["end_top_index"].shape == (13, 12)
    assert found["cls_logits"].shape == (13,)
    for key, values in found.items():
        np.testing.assert_allclose(values, expected[key], atol=1e-5, err_msg=key)


def test_entry_e_times_s_plus_s_of_the_beams_is_an_end_of_start_s(engine_for, tiny, tmp_path):
    engine, batch = prepared("xlnet", Head.QUESTION_ANSWERING_BEAM, engine_for, tiny)
    found = engine.evaluate(batch)
    engine.export(tmp_path)
    model = BEAMS["xlnet"].from_pretrained(tmp_path).eval()
    mask = torch.from_numpy(batch["p_mask"]).float()
    with torch.no_grad():
        hidden = model.transformer(**tensors(part_with(batch, "input_ids", "attention_mask")))[0]
        for beam in range(3):
            starts = torch.from_numpy(found["start_top_index"][:, beam])
            ends = model.end_logits(hidden, start_positions=starts, p_mask=mask).argmax(dim=1)
            assert np.array_equal(found["end_top_index"][:, beam], ends)


def part_with(batch, *names):
    return {name: batch[name] for name in names}


def test_there_may_be_fewer_tokens_than_beams(engine_for, tiny):
    engine, batch = prepared("xlnet", Head.QUESTION_ANSWERING_BEAM, engine_for, tiny)
    short = {name: array[:1, :3] if array.ndim == 2 else array[:1] for name, array in batch.items()}
    short |= {"cls_index": np.array([2]), "p_mask": np.array([[0, 0, 1]])}
    found = engine.evaluate(short)
    assert found["start_top_index"].shape == (1, 3)
    assert set(found["start_top_index"][0, :2]) == {0, 1}


@pytest.mark.parametrize("name", ["bert", "distilbert", "xlm", "deberta-v2"])
def test_the_five_likeliest_tokens_stand_behind_each_mask(name, engine_for, tiny, tmp_path):
    engine, batch = prepared(name, Head.MASKED_LM, engine_for, tiny)
    logits = plain_outputs(engine, CLASSES[Head.MASKED_LM], batch, tmp_path).logits
    best = logits.softmax(dim=-1).topk(TOP_TOKENS)
    found, masked = engine.evaluate(batch), batch["labels"] != IGNORE
    assert np.array_equal(found["top_tokens"][masked], best.indices[masked])
    np.testing.assert_allclose(found["top_probabilities"][masked], best.values[masked], atol=1e-5)
    loss = cross_entropy(logits[masked], torch.from_numpy(batch["labels"][masked]), reduction="none")
    np.testing.assert_allclose(found["token_loss"][masked], loss, atol=1e-5)
    assert not any(values[~masked].any() for values in found.values())


@pytest.mark.parametrize("name", ["t5", "bart", "marian", "mbart"])
def test_losses_and_predictions_of_an_answer_stand_at_its_tokens(name, engine_for, tiny, tmp_path):
    engine, batch = prepared(name, Head.SEQ2SEQ_LM, engine_for, tiny)
    engine.export(tmp_path)
    with torch.no_grad():
        logits = CLASSES[Head.SEQ2SEQ_LM].from_pretrained(tmp_path).eval()(**tensors(batch)).logits
    found, labels = engine.evaluate(batch), torch.from_numpy(batch["labels"])
    loss = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
    np.testing.assert_allclose(found["token_loss"], loss, atol=1e-4)
    there = batch["labels"] != IGNORE
    assert np.array_equal(found["token_prediction"][there], logits.argmax(-1)[there])
    assert not found["token_loss"][~there].any()


@pytest.mark.parametrize("head", list(Head))
def test_filler_rows_of_any_head_change_nothing(head, engine_for, tiny):
    name = {Head.CAUSAL_LM: "opt", Head.SEQ2SEQ_LM: "t5", Head.QUESTION_ANSWERING_BEAM: "xlnet"}.get(head, "bert")
    plain, filled = (prepared(name, head, engine_for, tiny)[0] for _ in range(2))
    batch = head_batch(head, 5)
    longer = {key: np.concatenate([array, np.zeros_like(array[:2])]) for key, array in batch.items()}
    for key, values in plain.evaluate(batch).items():
        found = filled.evaluate(longer)[key]
        assert np.array_equal(found[:5], values)
        assert not found[5:].any()
    steps = plain.train_step([batch], 0, 1e-3), filled.train_step([longer], 0, 1e-3)
    assert plain.read(steps[:1]) == filled.read(steps[1:])


UNKNOWN = {
    Head.SEQUENCE_CLASSIFICATION: {"labels": IGNORE},
    Head.MULTI_LABEL_CLASSIFICATION: {"has_label": np.nan},
    Head.SEQUENCE_REGRESSION: {"labels": np.nan},
    Head.TOKEN_CLASSIFICATION: {"labels": IGNORE},
    Head.MULTIPLE_CHOICE: {"labels": IGNORE},
    Head.QUESTION_ANSWERING: {"start_positions": IGNORE, "end_positions": IGNORE},
    Head.QUESTION_ANSWERING_BEAM: {"start_positions": IGNORE, "end_positions": IGNORE},
    Head.SEQ2SEQ_LM: {"labels": IGNORE},
    Head.MASKED_LM: {"labels": IGNORE},
}


@pytest.mark.parametrize("head", UNKNOWN)
def test_a_row_without_target_is_no_part_of_the_step(head, engine_for, tiny):
    name = {Head.SEQ2SEQ_LM: "t5", Head.QUESTION_ANSWERING_BEAM: "xlnet"}.get(head, "bert")
    without, with_it = (prepared(name, head, engine_for, tiny)[0] for _ in range(2))
    batch = head_batch(head, 6)
    for key, value in UNKNOWN[head].items():
        batch[key][5] = value
    steps = (
        without.train_step([part_of(batch, slice(0, 5))], 0, 1e-3),
        with_it.train_step([part_of(batch, slice(0, 3)), part_of(batch, slice(3, 6))], 0, 1e-3),
    )
    found = [engine.read([step])[0] for engine, step in zip((without, with_it), steps, strict=True)]
    assert found[0].loss == pytest.approx(found[1].loss, abs=1e-5)
    assert found[0].gradient_norm == pytest.approx(found[1].gradient_norm, abs=1e-5)


@pytest.mark.parametrize("head", [Head.MASKED_LM, Head.SEQ2SEQ_LM, Head.CAUSAL_LM])
def test_the_last_layer_sees_only_targets(head, engine_for, tiny):
    name = {Head.CAUSAL_LM: "llama", Head.SEQ2SEQ_LM: "bart"}.get(head, "bert")
    engine, batch = prepared(name, head, engine_for, tiny)
    seen = []
    last = engine._model.get_output_embeddings()
    last.register_forward_hook(lambda module, given, made: seen.append(made.shape[:-1].numel()))
    engine.evaluate(batch)
    counted = batch["labels"][:, 1:] if head is Head.CAUSAL_LM else batch["labels"]
    assert seen == [(counted != IGNORE).sum()]


def test_a_batch_without_any_target_costs_nothing_and_breaks_nothing(engine_for, tiny):
    engine, batch = prepared("bert", Head.MASKED_LM, engine_for, tiny)
    batch["labels"][:] = IGNORE
    assert engine.read([engine.train_step([batch], 0, 1e-3)])[0].loss == 0.0


@pytest.mark.parametrize("name", BEAMS)
def test_answerability_is_learnt_only_where_it_is_given(name, engine_for, tiny):
    training = TrainingSection(learning_rate=2e-5, seed=7, weight_decay=0)
    engine = engine_for(tiny(name), facts(Head.QUESTION_ANSWERING_BEAM), training, model={"dropout": 0.0})
    parts = [each for key, each in engine._model.named_parameters() if "answer_class" in key]
    before = [each.detach().clone() for each in parts]
    batch = head_batch(Head.QUESTION_ANSWERING_BEAM, 5)
    del batch["is_impossible"]
    engine.train_step([batch], 0, 1e-2)
    assert all(torch.equal(one, other) for one, other in zip(before, parts, strict=True))
