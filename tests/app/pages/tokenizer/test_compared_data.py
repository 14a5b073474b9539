"""What is shown of tokenizers that were compared on data."""

import msgspec

from app.pages.tokenizer.compare.compared_data import rate_rows, rates_by_language
from backend.contract.rpc.data import NumberSummary
from backend.contract.tokens.comparison import DataComparison, LanguageCounts

SPREAD = NumberSummary(count=3, mean=4, std=1, min=2, p50=3, p95=6, p99=6, p99_9=6, max=7)


FOUND = DataComparison(
    tokenizers=["/models/a", "/models/b"],
    column="text",
    language_column="lang",
    total=LanguageCounts(language="", rows=3, words=6, characters=30, bytes=30, tokens=[12, 15], unknown=[0, 1]),
    languages=[
        LanguageCounts(language="en", rows=2, words=5, characters=20, bytes=20, tokens=[10, 10], unknown=[0, 0]),
        LanguageCounts(language="", rows=1, words=0, characters=10, bytes=10, tokens=[2, 5], unknown=[0, 1]),
    ],
    spreads=[SPREAD, SPREAD],
    bins=[0, 5, 10],
    histograms=[[2, 1], [1, 2]],
)


def test_rows_are_tokenizers_in_all_languages_and_in_each():
    rows = rate_rows(FOUND, ["a", "b"])
    assert rows.row_count == 6
    column = rows.columns.index
    assert [rows.cell(row, column("language")) for row in (0, 2, 4)] == ["All", "en", "–"]
    assert rows.cell(1, column("per_word")) == "2.500"
    assert rows.cell(4, column("per_word")) is None
    assert [rows.cell(row, column("longest")) for row in (0, 2, 4)] == ["7", None, None]


def test_rows_without_a_value_are_sorted_to_the_end():
    rows = rate_rows(FOUND, ["a", "b"])
    assert rows.order("per_word", descending=True) == [1, 0, 2, 3, 4, 5]
    assert rows.order("", descending=False) == list(range(6))


def test_bars_stand_by_language_for_each_tokenizer():
    assert rates_by_language(FOUND, "rows") == [("All", [4.0, 5.0]), ("en", [5.0, 5.0]), ("–", [2.0, 5.0])]


def test_bars_of_languages_without_words_have_no_rate_and_equal_names_are_two():
    english = msgspec.structs.replace(FOUND.languages[0], language="All")
    found = msgspec.structs.replace(FOUND, languages=[english, *FOUND.languages[1:]])
    names, rates = zip(*rates_by_language(found, "words"), strict=True)
    assert names == ("All", "All", "–")
    assert rates[2] == [None, None]
