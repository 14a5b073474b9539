"""A preset over a draft, and what is left when it is taken off."""

from app.core.draft.draft import Draft
from app.core.draft.presets import PresetOverlay


def test_what_lay_there_before_comes_back():
    draft = Draft({"training": {"epochs": 3}})
    overlay = PresetOverlay(draft)
    overlay.lay({"training": {"epochs": 10, "warmup": 0.1}})
    overlay.take_off()
    assert draft.values()["training"] == {"epochs": 3}


def test_one_fragment_takes_the_place_of_another():
    draft = Draft({"training": {"epochs": 3}})
    overlay = PresetOverlay(draft)
    overlay.lay({"training": {"warmup": 0.1}})
    overlay.lay({"training": {"epochs": 5}})
    assert draft.values()["training"] == {"epochs": 5}


def test_what_a_person_changed_since_stays():
    draft = Draft({})
    overlay = PresetOverlay(draft)
    overlay.lay({"training": {"epochs": 10, "warmup": 0.1}})
    draft.set("training.epochs", 7)
    overlay.take_off()
    assert draft.values()["training"] == {"epochs": 7}


def of_another_task() -> tuple[Draft, PresetOverlay]:
    draft = Draft({
        "version": 1,
        "task": {"type": "text_classification", "max_length": 64},
        "data": {"train": "a.csv", "columns": {"text": "review", "label": "stars"}},
    })  # fmt: skip
    overlay = PresetOverlay(draft)
    overlay.lay({"task": {"type": "causal_lm", "max_length": 256}}, {"training": {"learning_rate": 5e-4}})
    return draft, overlay


def test_a_fragment_of_another_task_brings_that_tasks_defaults():
    draft, _ = of_another_task()
    assert draft.get("task") == {"type": "causal_lm", "max_length": 256}
    assert draft.get("training.learning_rate") == 5e-4


def test_the_task_with_its_settings_and_columns_comes_back():
    draft, overlay = of_another_task()
    draft.set("task.max_length", 300)
    draft.set("data.columns.text", "guessed")
    draft.set("training.epochs", 7)
    overlay.take_off()
    assert draft.values() == {
        "version": 1,
        "task": {"type": "text_classification", "max_length": 64},
        "data": {"train": "a.csv", "columns": {"text": "review", "label": "stars"}},
        "training": {"epochs": 7},
    }


def test_columns_of_other_data_do_not_come_back():
    draft, overlay = of_another_task()
    draft.set("data.train", "b.csv")
    draft.set("data.columns", {"text": "body"})
    overlay.take_off()
    assert draft.get("data") == {"train": "b.csv", "columns": {}}
