"""The search of a draft: its values in words, what is suggested, and the spec that it becomes."""

from pathlib import Path
from typing import Any

import pytest

from app.core.draft.draft import Draft
from app.core.draft.draft_file import open_draft, save_draft
from app.core.draft.search_space import search_around, search_words, suggest, values_in_words
from backend.catalog import catalog
from backend.contract import spec_file

SEARCH: dict[str, Any] = {
    "space": {"training.learning_rate": {"log": [1e-5, 1e-3]}, "training.batch_size": [8, 16]}, "metric": "accuracy", "trials": 12,
    "sampler": "tpe", "halving": {"factor": 3}, "confirm": {"best": 2, "seeds": 3},
}  # fmt: skip
SPEC: dict[str, Any] = {
    "version": 1, "name": "reviews", "task": {"type": "text_classification"}, "model": {"name_or_path": "bert"},
    "data": {"source": "files", "train": "reviews.csv"}, "training": {"epochs": 3, "batch_size": 16, "learning_rate": 2e-5},
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"log": [1e-5, 1e-3]}, "1e-5 to 0.001, log scale"),
        ({"uniform": [0, 0.5]}, "0 to 0.5"),
        ([8, 16, 32], "8, 16, 32"),
        ([True, None], "on, not set"),
        ({"log": [1]}, '{"log": [1]}'),
        ("rubbish", "rubbish"),
    ],
    ids=str,
)
def test_values_are_said_in_words(values: Any, words: str):
    assert values_in_words(values) == words


@pytest.mark.parametrize(
    ("value", "suggested"),
    [(2e-5, {"log": [5e-6, 8e-5]}), (16, [8, 16, 32]), (3.0, [1, 3, 6]), (0.1, [0.05, 0.1, 0.2]), (1, [1, 2]), ("adamw", ["adamw"]), (None, [])],
    ids=str,
)  # fmt: skip
def test_values_around_the_present_one_are_suggested(value: Any, suggested: Any):
    assert suggest(value) == suggested


def test_draft_with_a_search_is_started_as_one():
    draft = Draft({**SPEC, "search": SEARCH})
    assert draft.command().endswith("burnish search reviews.yaml")
    assert search_words(draft).startswith("12 trials · ")
    draft.set("search", None)
    assert draft.values() == SPEC
    assert draft.command().endswith("burnish train reviews.yaml")


def test_spec_with_a_search_is_written_back_unchanged(tmp_path: Path):
    path = tmp_path / "search.yaml"
    values = {**SPEC, "data": {"source": "files", "train": str(tmp_path / "reviews.csv")}, "search": SEARCH}
    path.write_text(spec_file.dump(values), encoding="utf-8")
    opened = open_draft(path, catalog())
    assert opened.notes == ()
    save_draft(opened.draft, tmp_path / "again.yaml")
    assert spec_file.read(tmp_path / "again.yaml") == values
    assert opened.draft.command() == f"burnish search {tmp_path / 'again.yaml'}"


def test_change_of_a_search_is_a_change_of_its_file(tmp_path: Path):
    draft = Draft({**SPEC, "search": SEARCH}, file=tmp_path / "search.yaml")
    draft.set("search.trials", 24)
    assert draft.command() == f"burnish search {tmp_path / 'search.yaml'} --set search.trials=24"
    space = {"training.weight_decay": [0.0, 0.1]}
    draft.set("search.space", space)
    assert "--set 'search.space={\"training.weight_decay\": [0.0, 0.1]}'" in draft.command()


def test_models_beside_the_spec_are_found_from_anywhere(tmp_path: Path):
    (tmp_path / "small").mkdir()
    path = tmp_path / "search.yaml"
    search = {**SEARCH, "space": {"model.name_or_path": ["small", "bert-base-uncased"]}}
    path.write_text(spec_file.dump({**SPEC, "search": search}), encoding="utf-8")
    space = open_draft(path, catalog()).draft.get("search.space")
    assert space == {"model.name_or_path": [str(tmp_path / "small"), "bert-base-uncased"]}


def test_search_around_a_run_has_its_settings_in_the_middle():
    values = {**SPEC, "adapter": {"type": "lora", "rank": 8}, "evaluation": {"best_metric": "f1"}}
    search = search_around(values, None, "accuracy")["search"]
    assert search["space"] == {
        "training.learning_rate": {"log": [5e-6, 8e-5]}, "training.batch_size": [8, 16, 32], "adapter.rank": [4, 8, 16],
    }  # fmt: skip
    assert (search["metric"], search["trials"]) == ("f1", 12)
    assert search["confirm"] == {"best": 1, "seeds": 5, "baseline": True}


def test_rate_that_was_left_to_burnish_is_the_one_that_the_run_had():
    values = {**SPEC, "training": {"learning_rate": "auto", "seeds": 3}}
    found = search_around(values, 4e-4, None)
    assert found["search"]["space"] == {"training.learning_rate": {"log": [1e-4, 1.6e-3]}}
    assert "seeds" not in found["training"]
