"""How runs are found and ordered."""

import math

from backend.contract.run import search


def test_every_word_is_found_in_any_case_in_some_text_or_tag():
    texts, tags = ("Reviews 2026", "Text classification"), ("Keep",)
    assert search.matches("reviews CLASS", texts, tags)
    assert search.matches("keep", texts, tags)
    assert search.matches("  ", texts, tags)
    assert not search.matches("reviews tagging", texts, tags)


def test_a_hash_asks_for_the_beginning_of_a_tag_alone():
    assert search.matches("#ke", ("Reviews",), ("Keep",))
    assert not search.matches("#eep", ("Reviews",), ("Keep",))
    assert not search.matches("#reviews", ("Reviews",), ("Keep",))


def test_what_has_no_value_comes_last_in_both_directions_and_equals_stay_in_order():
    items = [("a", math.nan), ("b", 1.0), ("c", None), ("d", 2.0), ("e", 1.0)]
    rising = search.sort_items(items, lambda item: item[1], descending=False)
    falling = search.sort_items(items, lambda item: item[1], descending=True)
    assert "".join(name for name, _ in rising) == "bedac"
    assert "".join(name for name, _ in falling) == "dbeac"
