"""Pieces are found by text, expression, id and script, and sorted by any column."""

import pyarrow as pa
import pytest

from backend.contract.errors import InputError
from backend.tokenizers.vocabulary.search import Search, find

TABLE = pa.table(
    {
        "id": pa.array([0, 1, 2, 7], pa.int32()),
        "piece": ["<s>", "Ġthe", "the", "東京"],
        "text": ["<s>", " the", "the", "東京"],
        "bytes": ["3C 73 3E", "20 74 68 65", "74 68 65", "E6 9D B1 E4 BA AC"],
        "type": ["special", "normal", "normal", "normal"],
        "script": ["Latin", "Latin", "Latin", "Han"],
        "rank": pa.array([None, 4, 9, None], pa.int32()),
    }
)


def ids(**wanted: object) -> list[int]:
    return TABLE["id"].take(pa.array(find(TABLE, Search(**wanted)))).to_pylist()


def test_a_text_is_found_whatever_its_case():
    assert ids(text="THE") == [1, 2]


def test_a_space_counts_in_a_text():
    assert ids(text=" the") == [1]


def test_an_expression_minds_case_and_place():
    assert ids(text="^the$", by="regex") == [2]
    assert ids(text="THE", by="regex") == []


def test_what_is_no_expression_is_told():
    with pytest.raises(InputError, match="'\\(' is not a valid regular expression"):
        ids(text="(", by="regex")


def test_ids_and_ranges_are_found():
    assert ids(text="7, 0-1", by="id") == [0, 1, 7]
    assert ids(text="99999999999", by="id") == []


def test_what_is_no_id_is_told():
    with pytest.raises(InputError, match="'seven' is not an ID"):
        ids(text="seven", by="id")


def test_a_script_is_found_by_its_name():
    assert ids(text="han", by="script") == [7]


def test_a_script_that_no_piece_has_is_told_with_those_there_are():
    with pytest.raises(InputError, match="available: Latin, Han"):
        ids(text="Klingon", by="script")


def test_only_wanted_types_are_found():
    assert ids(types=("normal",), text="t") == [1, 2]


def test_an_unknown_type_is_told():
    with pytest.raises(InputError, match="'magic' is not a piece type"):
        ids(types=("magic",))


def test_rows_without_a_value_come_last_in_both_directions():
    assert ids(sort_by="rank")[:2] == [1, 2]
    assert ids(sort_by="rank", descending=True)[:2] == [2, 1]


def test_bytes_are_sorted_by_how_many_there_are():
    assert ids(sort_by="bytes", descending=True) == [7, 1, 2, 0]


def test_found_rows_are_sorted():
    assert ids(text="the", sort_by="id", descending=True) == [2, 1]


def test_a_column_that_is_not_there_is_told():
    with pytest.raises(InputError, match="'frequency' is not a column"):
        ids(sort_by="frequency")
