"""Finding by a few letters."""

from app.core.fuzzy import match, rank

TITLES = ["Show Tokenizer", "Use the dark theme", "Search runs", "Show Runs", "Show Run"]


def found(query: str, titles: list[str] = TITLES) -> list[str]:
    return [title for title, _ in rank(query, titles, str, lambda title: "key press" * (title == "Show Run"), 10)]


def test_without_a_query_all_stay_in_their_order():
    assert found(" ") == TITLES


def test_the_beginning_of_a_word_comes_before_its_middle():
    assert found("run", ["Show the trunk", "Resume the run"]) == ["Resume the run", "Show the trunk"]


def test_the_shorter_of_two_that_fit_alike_is_meant():
    assert found("show run") == ["Show Run", "Show Runs"]


def test_letters_may_be_left_out_and_are_marked():
    assert found("drkthm") == ["Use the dark theme"]
    hit = match("drkthm", "Use the dark theme")
    assert hit is not None
    assert "".join("Use the dark theme"[place] for place in hit.places) == "drkthm"


def test_words_may_come_in_any_order_but_none_may_be_missing():
    assert found("theme use") == ["Use the dark theme"]
    assert found("theme bright") == []


def test_accents_and_capitals_do_not_matter_and_places_hold():
    hit = match("cafe", "Straße Café")
    assert hit is not None
    assert hit.places == (7, 8, 9, 10)


def test_what_only_its_other_words_find_comes_last():
    assert found("press") == ["Show Run"]
    assert found("key", ["Show Run", "Keys"]) == ["Keys", "Show Run"]
