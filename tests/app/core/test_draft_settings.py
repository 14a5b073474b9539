"""The list of all settings of a draft."""

import pytest

from app.core import formatting, setting_titles
from app.core.draft import draft_settings
from app.core.draft.draft import Draft
from app.core.draft.draft_settings import (
    Setting,
    change_words,
    changed_settings,
    differences,
    find_settings,
    fit_to_model,
    settings_of,
    shorten_texts,
    value_words,
)
from backend import catalog as catalogue
from backend.contract.rpc.models import ModelDescription
from backend.contract.rpc.protocol import ErrorReply
from backend.contract.run.fixes import RunFix

DRAFT = {"task": {"type": "text_classification"}, "training": {"batch_size": 8, "weight_decay": 0.01}}


@pytest.fixture(scope="module")
def catalog():
    return catalogue.catalog()


def test_a_setting_is_found_by_its_title_its_key_and_its_help(catalog):
    settings = settings_of(catalog, Draft(DRAFT))
    assert "training.learning_rate" in find_settings(settings, "LEARNING rate")
    assert find_settings(settings, "training.batch_size") == ["training.batch_size"]
    assert "training.gradient_checkpointing" in find_settings(settings, "less memory")
    assert find_settings(settings, "  ") == find_settings(settings, "cappuccino") == []


def test_a_setting_is_found_by_its_choices_however_they_are_hyphenated(catalog):
    settings = settings_of(catalog, Draft({**DRAFT, "adapter": {"type": "lora"}}))
    for words in ("int8", "NF4", "4-bit", "4 bit", "quantize", "qlora"):
        assert "model.weights" in find_settings(settings, words), words
    assert find_settings(settings, "nf4")[0] == "model.weights"  # others only speak of it
    assert find_settings(settings, "layer wise") == find_settings(settings, "layer-wise") != []


def test_settings_are_those_of_what_was_chosen(catalog):
    torch = settings_of(catalog, Draft(DRAFT))
    jax = settings_of(catalog, Draft({**DRAFT, "hardware": {"engine": "jax"}, "adapter": {"type": "lora"}}))
    assert "hardware.threads" in torch
    assert "adapter.rank" not in torch
    assert {"hardware.hosts", "adapter.rank"} <= jax.keys() - torch.keys()


def test_changed_is_what_differs_from_its_default(catalog):
    draft = Draft({**DRAFT, "data": {"train": "a.csv"}, "name": "x"})
    assert [(one.setting.key, one.words) for one in changed_settings(settings_of(catalog, draft), draft)] == [
        ("training.batch_size", "Batch size: auto → 8")
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


@pytest.fixture(autouse=True)
def titles(monkeypatch):
    monkeypatch.setattr(setting_titles, "_titles", {})
    known = {"task.max_length": "Longest text", "training.learning_rate": "Learning rate", "data.train": "Train"}
    setting_titles.learn_titles(Setting(key, title, "") for key, title in known.items())


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "task.max_length: 4096 tokens are more than the 512 positions; set task.max_length to 512 or less",
            "4\u202f096 tokens are more than the 512 positions; set “Longest text” to 512 or less",
        ),
        ("Lower training.learning_rate, or training.warmup.", "Lower “Learning rate”, or training.warmup."),
        ("/runs/training.learning_rate.txt is no file", "/runs/training.learning_rate.txt is no file"),
        ("Use --set training.learning_rate=1", "Use --set training.learning_rate=1"),
        ("step 4096 of run 20260102", "Step 4096 of run 20260102"),
        ("1,204 rows lose their end", "1\u202f204 rows lose their end"),
        (
            "/runs/my run/spec.yaml: training.learning_rate (it was 3e-05) was changed since the run started; "
            "put back what was there, or start a new run: burnish train /runs/my run/spec.yaml",
            "/runs/my run/spec.yaml: “Learning rate” (it was 3e-05) was changed since the run started; "
            "put back what was there, or start a new run with “Duplicate”",
        ),
        ("the log has the details; burnish report /runs/a gives", "The log has the details; “Copy report” gives"),
    ],
)
def test_known_keys_are_called_by_their_titles_and_paths_stay(said: str, shown: str):
    assert formatting.sentence(said, "task.max_length") == shown


@pytest.mark.parametrize(
    ("fix", "words"),
    [
        (RunFix({"training.learning_rate": 5e-05}), "Restart with Learning rate 5e-5"),
        (RunFix({"task.max_length": 64, "training.bias": True}, resume=True), "Resume with Longest text 64, bias on"),
        (RunFix({"training.checkpoint_every": "never"}, resume=True), "Resume with no more checkpoints"),
        (RunFix({"training.max_steps": None}, is_retry=True), "Try again with no max_steps"),
        (RunFix(), "Retry"),
        (RunFix(convert_weights=True), "Convert the weights and restart"),
    ],
)
def test_the_button_that_fixes_names_fields(fix: RunFix, words: str):
    assert draft_settings.fix_words(fix) == words


def test_texts_longer_than_the_model_reads_are_set_to_its_limit_by_a_click():
    model = ModelDescription(name="m", found="folder", max_length=512)
    refused = ErrorReply("task.max_length: 600 tokens are more than 512", "task.max_length")
    draft = Draft({"task": {"max_length": 600, "max_target_length": 64}})
    assert [(way.title, way.changes) for way in shorten_texts(draft, model, refused)] == [
        ("At most 512 tokens", {"task.max_length": 512})
    ]
    assert shorten_texts(draft, model, ErrorReply("another", "training.epochs")) == []
    assert shorten_texts(draft, None, refused) == []


LENGTHS = {
    "task.max_length": Setting("task.max_length", "Max length", "", default=384),
    "task.doc_stride": Setting("task.doc_stride", "Document stride", "", default=128),
}


def fitted(draft: Draft, limit: int | None) -> dict[str, object]:
    model = ModelDescription(name="models/small", found="folder", max_length=limit)
    return {one.key: one.value for one in fit_to_model(draft, LENGTHS, model)}


def test_a_default_length_follows_the_model_and_one_that_was_set_does_not():
    draft = Draft({"task": {"type": "question_answering"}})
    assert fitted(draft, 512) == fitted(draft, None) == {}
    assert fitted(draft, 256) == {"task.max_length": 256}
    assert draft.get("task.max_length") == 256
    draft.set("task.max_length", 300)
    assert fitted(draft, 256) == {}


def test_a_default_stride_follows_windows_that_are_as_short():
    draft = Draft({"task": {"type": "question_answering"}})
    assert fitted(draft, 128) == {"task.max_length": 128, "task.doc_stride": 42}
