"""A preset over a draft, and what is left when it is taken off."""

from app.core.draft import Draft
from app.core.overlay import Overlay


def test_what_lay_there_before_comes_back():
    draft = Draft({"training": {"epochs": 3}})
    overlay = Overlay(draft)
    overlay.lay({"training": {"epochs": 10, "warmup": 0.1}})
    overlay.take_off()
    assert draft.values()["training"] == {"epochs": 3}


def test_one_fragment_takes_the_place_of_another():
    draft = Draft({"training": {"epochs": 3}})
    overlay = Overlay(draft)
    overlay.lay({"training": {"warmup": 0.1}})
    overlay.lay({"training": {"epochs": 5}})
    assert draft.values()["training"] == {"epochs": 5}


def test_what_a_person_changed_since_stays():
    draft = Draft({})
    overlay = Overlay(draft)
    overlay.lay({"training": {"epochs": 10, "warmup": 0.1}})
    draft.set("training.epochs", 7)
    overlay.take_off()
    assert draft.values()["training"] == {"epochs": 7}
