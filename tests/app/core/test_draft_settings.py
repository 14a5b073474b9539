"""The list of all settings of a draft."""

import pytest

from app.core.draft.draft import Draft
from app.core.draft.draft_settings import change_words, changed, differences, found, settings_of, value_words
from backend import catalog as catalogue

DRAFT = {"task": {"type": "text_classification"}, "training": {"batch_size": 8, "weight_decay": 0.01}}


@pytest.fixture(scope="module")
def catalog():
    return catalogue.catalog()


def test_a_setting_is_found_by_its_title_its_key_and_its_help(catalog):
    settings = settings_of(catalog, Draft(DRAFT))
    assert "training.learning_rate" in found(settings, "LEARNING rate")
    assert found(settings, "training.batch_size") == ["training.batch_size"]
    assert "training.gradient_checkpointing" in found(settings, "less memory")
    assert found(settings, "  ") == found(settings, "cappuccino") == []


def test_settings_are_those_of_what_was_chosen(catalog):
    torch = settings_of(catalog, Draft(DRAFT))
    jax = settings_of(catalog, Draft({**DRAFT, "hardware": {"engine": "jax"}, "adapter": {"type": "lora"}}))
    assert "hardware.threads" in torch
    assert "adapter.rank" not in torch
    assert {"hardware.hosts", "adapter.rank"} <= jax.keys() - torch.keys()


def test_changed_is_what_differs_from_its_default(catalog):
    draft = Draft({**DRAFT, "data": {"train": "a.csv"}, "name": "x"})
    assert [(one.setting.key, one.words) for one in changed(settings_of(catalog, draft), draft)] == [
        ("training.batch_size", "Batch size: 32 → 8")
    ]


def test_two_drafts_differ_setting_by_setting(catalog):
    one = Draft(DRAFT)
    other = Draft({**DRAFT, "training": {"batch_size": 16}, "evaluation": {"best_metric": "accuracy"}})
    assert [one.words for one in differences(settings_of(catalog, one), one, other)] == [
        "Batch size: 8 → 16",
        "Best checkpoint by: not set → accuracy",
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not set"), (True, "on"), (2e-5, "2e-5"), (3.0, "3"), (["a", "b"], "a, b"), ({}, "not set"),
        ({"a": 1}, '{"a": 1}'), ("x" * 50, "x" * 39 + "…"), ("/long" * 20 + "/end.csv", "…" + ("/long" * 20 + "/end.csv")[-39:]),
    ],
)  # fmt: skip
def test_values_read_as_people_write_them(value: object, words: str):
    assert value_words(value) == words


def test_a_change_is_one_phrase():
    assert change_words("Learning rate", 2e-5, 3e-4) == "Learning rate: 2e-5 → 0.0003"
