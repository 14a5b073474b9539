"""Every token says what it is to the training: read off labels, masks, segments and types."""

from pathlib import Path

import numpy as np

from backend.contract.rpc.training_data import TrainingFeature
from backend.inspect.feature_view import rows_in_order, rows_of_step, view_feature
from tests.backend.inspect.looked_at import looked, table


def kinds(feature: TrainingFeature, place: int = 0) -> dict[str, list[str]]:
    """Kind → texts of the tokens."""
    sequence = feature.sequences[place]
    found: dict[str, list[str]] = {}
    for text, kind in zip(sequence.texts, sequence.kinds, strict=True):
        found.setdefault(kind, []).append(text)
    return found


def test_texts_of_a_pair_are_told_apart(own_cache: Path):
    table(own_cache, {"text": ["the town"] * 8, "text_pair": ["people walk"] * 8, "label": ["good", "bad"] * 4})
    look = looked(own_cache, "pairs")
    feature = view_feature(look, 0)
    assert kinds(feature)["special"] == ["[CLS]", "[SEP]", "[SEP]"]
    assert feature.values[-1][1].endswith(")")


def test_labels_stand_on_the_first_token_of_their_word(own_cache: Path):
    look = looked(own_cache, "tagged")
    sequence = view_feature(look, 0).sequences[0]
    tags = look.rows.table["tags"][0].as_py() if "tags" in look.rows.table.column_names else []
    labelled = [label for label in sequence.labels if label]
    assert labelled == (tags.split() if isinstance(tags, str) else tags)
    assert all(
        kind == "ignored" for text, kind in zip(sequence.texts, sequence.kinds, strict=True) if text.startswith("##")
    )
    assert sequence.kinds[0] == sequence.kinds[-1] == "ignored"


def test_the_answer_is_marked_in_the_window_that_holds_it(own_cache: Path):
    look = looked(own_cache, "asked", max_length=384)
    for line in rows_in_order(look, 0, 10).lines:
        feature = view_feature(look, line.feature)
        answer = "".join(kinds(feature)["answer"]).replace("##", "").replace(" ", "")
        assert line.label == "no answer here" or answer == line.label.replace(" ", "")
        assert feature.parts == len(look.features_of(line.row))


def test_answers_of_a_conversation_alone_are_learnt_from(own_cache: Path):
    look = looked(own_cache, "chats", max_length=250)
    chat = look.rows.table["messages"][1].as_py()
    said = [one["content"] for one in chat if one["role"] == "assistant"]
    shown = kinds(view_feature(look, 1))
    assert "".join(shown["target"]).replace("<|endoftext|>", "").replace("\n", " ").split() == " ".join(said).split()
    assert any("User" in "".join(shown["ignored"]) for _ in chat)


def test_hidden_tokens_show_what_was_hidden_and_change_with_the_epoch(own_cache: Path):
    look = looked(own_cache, "masked", {"epochs": 3})
    assert look.order is not None
    first = rows_of_step(look, 1).lines[0].feature
    later = next(
        step for step in range(look.order.steps_per_epoch + 1, look.total_steps) if first in look.indices(step)
    )
    shown, again = (view_feature(look, first, step).sequences[0] for step in (1, later))
    [ids] = look.features.lists["input_ids"].take(np.array([first]))
    hidden = [place for place, kind in enumerate(shown.kinds) if kind == "hidden"]
    assert hidden
    assert [shown.labels[place] for place in hidden] == [
        look.session.tokenizer.convert_ids_to_tokens(int(ids[place])) for place in hidden
    ]
    assert shown.kinds != again.kinds or len(ids) < 12


def test_a_decoder_reads_its_labels_one_place_later(own_cache: Path):
    look = looked(own_cache, "translated")
    step = rows_of_step(look, 1)
    feature = view_feature(look, min(step.lines, key=lambda line: line.targets).feature, 1)
    decoder = feature.sequences[1]
    labels = feature.arrays["labels"]
    known = [label for label in labels if label != -100]
    assert decoder.ids[1 : len(known)] == known[:-1]
    assert decoder.ids[0] == look.session.tokenizer.pad_token_id
    assert [label for label, kind in zip(decoder.labels, decoder.kinds, strict=True) if kind == "padding"] == [
        "-100"
    ] * (len(labels) - len(known))


def test_borders_stand_where_packed_examples_begin(own_cache: Path):
    look = looked(own_cache, "examples", packing=True, max_length=64)
    [segment] = look.features.lists["segment"].take(np.array([0]))
    [position] = look.features.lists["position"].take(np.array([0]))
    borders = view_feature(look, 0).sequences[0].borders
    assert [border.place for border in borders] == np.flatnonzero(position == 0).tolist()
    assert [border.title for border in borders] == [f"example {number + 1}" for number in range(int(segment.max()))]


def test_borders_of_a_block_name_the_rows(own_cache: Path):
    look = looked(own_cache, "blocks")
    rows = look.features.table["spans_row"].to_pylist()
    block = max(range(len(rows)), key=lambda number: len(rows[number]))
    borders = view_feature(look, block).sequences[0].borders
    assert len(borders) > 1
    assert [border.title for border in borders] == [look.rows.place(row) for row in rows[block]]


def test_every_choice_is_a_sequence_and_the_right_one_is_named(own_cache: Path):
    feature = view_feature(looked(own_cache, "choices"), 1)
    assert [one.title for one in feature.sequences] == ["Choice 1", "Choice 2 · correct", "Choice 3"]


def test_rows_of_validation_data_have_no_steps(own_cache: Path):
    look = looked(own_cache, "classified")
    rows = rows_in_order(look, 50, 100)
    assert (rows.start, len(rows.lines), rows.rows, rows.step) == (50, 10, 60, None)
