"""What is said about lengths, unknown tokens and padding follows from the arrays that the training gets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.contract.rpc.training_data import Loss
from backend.inspect.batch_preview import preview
from backend.inspect.length_report import training_lengths
from backend.inspect.messages import limit_sentence, percent, suggest_limit
from backend.preflight.datasets import ignore_progress
from backend.preflight.resolve import resolve
from backend.tasks.task import Limit
from tests.backend.inspect.looked_at import looked, spec, table


def losses(**shares: float) -> list[Loss]:
    return [Loss(int(limit[1:]), round(1000 * share), share) for limit, share in shares.items()]


def test_the_smallest_limit_that_cuts_hardly_any_row_is_suggested():
    found = losses(_64=0.5, _128=0.12, _256=0.004, _512=0.0)
    assert suggest_limit("cut", 128, found) == 256
    assert limit_sentence(Limit(), 128, found, 256, 500) == "12 % of the rows lose text at 128 tokens; 256 loses 0.4 %."


def test_where_hardly_any_is_cut_the_suggestion_cuts_none():
    assert suggest_limit("cut", 256, losses(_128=0.12, _256=0.004, _384=0.001, _512=0.0)) == 512


def test_nothing_is_suggested_where_nothing_is_lost_or_the_model_reads_no_more():
    assert suggest_limit("cut", 512, losses(_256=0.004, _512=0.0)) is None
    found = losses(_256=0.5, _512=0.3)
    assert suggest_limit("cut", 512, found) is None
    assert limit_sentence(Limit(), 512, found, None, 900).endswith("which is all that the model can read.")


@pytest.mark.parametrize(
    ("share", "words"), [(0.0, "0 %"), (0.0004, "< 0.1 %"), (0.004, "0.4 %"), (0.0996, "10 %"), (1, "100 %")]
)
def test_shares_read_as_people_write_them(share: float, words: str):
    assert percent(share) == words


@pytest.mark.parametrize("kind", ["classified", "choices", "translated", "examples", "tagged"])
@pytest.mark.parametrize("length_buckets", [True, False])
def test_padding_of_the_rule_that_is_set_is_that_of_the_batches(own_cache: Path, kind: str, length_buckets: bool):
    look = looked(own_cache, kind, {"length_buckets": length_buckets})
    assert look.order is not None
    used = computed = 0
    for step in range(1, look.order.steps_per_epoch + 1):
        [batch] = look.passes(step)
        used += int(batch["attention_mask"].sum())
        computed += batch["attention_mask"].size
        if kind == "translated":
            used += int((batch["labels"] != -100).sum())
            computed += batch["labels"].size
    [chosen] = [rule for rule in training_lengths(look, lambda name: ignore_progress).padding if rule.chosen]
    assert chosen.padding == pytest.approx(1 - used / computed)
    assert chosen.setting == {"training.length_buckets": length_buckets}


def test_rows_with_most_unknown_tokens_come_first(own_cache: Path):
    look = looked(own_cache, "classified")
    texts = ["the town 🦄 ᚠᚢᚦ", "🦄 ꙮ", *look.rows.table["text"].to_pylist()]
    table(own_cache, {"text": texts, "label": ["good", "bad"] * (len(texts) // 2)})
    found = training_lengths(looked(own_cache, "classified"), lambda name: ignore_progress).unknown
    tokenizer = look.session.tokenizer
    ids = [tokenizer(text)["input_ids"] for text in texts]
    assert found.unknown == sum(one.count(tokenizer.unk_token_id) for one in ids) > 0
    assert found.tokens == sum(map(len, ids))
    assert [row.row for row in found.worst] == [1, 0]
    assert found.worst[0].place == "train.csv:3"


def test_an_end_of_text_is_no_unknown_token(own_cache: Path):
    found = training_lengths(looked(own_cache, "examples"), lambda name: ignore_progress).unknown
    assert (found.token, found.unknown, found.worst) == ("", 0, [])


def test_answers_that_no_window_holds_are_counted(own_cache: Path):
    context = "the town lies north of the chapel where people walk slowly " * 3
    columns: dict[str, list[Any]] = {
        "question": ["where?"] * 2, "context": [context] * 2, "answers": [context[:90], "north"],
    }  # fmt: skip
    data = {"source": "files", "train": table(own_cache, columns)}
    values = {**spec(own_cache, "asked", max_length=20, doc_stride=4).model_dump(), "data": data}
    notes = training_lengths(
        preview(resolve(values, own_cache), lambda name: ignore_progress), lambda name: ignore_progress
    ).notes
    assert any(note.startswith("1 answer does not fit completely into any window") for note in notes)


def test_conversations_with_nothing_left_to_learn_are_told(own_cache: Path):
    look = looked(own_cache, "chats", max_length=12)
    labels = look.features.lists["labels"].take(np.arange(len(look.features)))
    empty = sum(not (one[1:] != -100).any() for one in labels)
    notes = training_lengths(look, lambda name: ignore_progress).notes
    assert notes == ([f"{empty} of 50 features have no tokens to learn from, so they do not count."] if empty else [])


def test_packing_says_how_full_its_features_are(own_cache: Path):
    look = looked(own_cache, "examples", packing=True, max_length=64)
    full = look.features.lengths.mean() / 64
    [note] = training_lengths(look, lambda name: ignore_progress).notes
    assert note == f"60 examples are packed into {len(look.features)} features, {percent(float(full))} full."
