"""Text that was decoded with the wrong encoding is found, and text that only looks a little like it is not."""

import pyarrow as pa
import pytest

from backend.data.mojibake import find_garbled_word, find_mojibake

RIGHT = [
    "poesía", "Straße", "ça va", "façade à Noël", "Kärcher", "Łódź", "it’s", "“quoted”", "10 °C", "£5", "5 €", "привет", "γειά",
    "שלום", "مرحبا", "日本語", "한국어", "नमस्ते", "nice 😀",
]  # fmt: skip
PLAIN = [
    "MANHÃ", "« CAFÉ»", "SÃO PAULO", "Ângela", "Ål", "Ärger", "RÉSUMÉ…", "naïve", "Þórr", "ÀÉÎÕÜ", "20° ± 2", "“À”", "MÃE", "ЁЖ", "Ø 5",
    "CRÈME “BRÛLÉE”", "VOILÀ…", "Ã", "price: £3 – £5", "FRANÇA», disse", "Øre", "il a dit « À » — là", "Ñandú", "ÑUÑOA", "São",
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
@pytest.mark.parametrize("text", RIGHT)
def test_utf_8_that_was_read_as_something_else_is_found_and_turned_back(text: str, encoding: str):
    wrong = "".join(
        bytes([one]).decode(encoding)
        if encoding == "latin-1" or one not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
        else chr(one)
        for one in text.encode()
    )
    found = find_garbled_word(f"before {wrong} after")
    assert found is not None
    assert found[1] in text


@pytest.mark.parametrize("text", [*RIGHT, *PLAIN])
def test_text_that_is_right_is_left_in_peace(text: str):
    assert find_garbled_word(f"before {text} after") is None


def test_the_column_and_the_row_are_named():
    table = pa.table({"text": ["a", "b"], "tags": [["x"], ["y", "poesÃ\xada"]]})
    found = find_mojibake(table)
    assert found is not None
    assert (found.column, found.row, found.right) == ("tags", 1, "poesía")


def test_rows_as_long_as_books_are_searched_a_part_at_a_time():
    book, wrong = pa.array(["a" * (1 << 20)]), pa.array(["poesÃ\xada"])
    table = pa.table(
        {"text": pa.chunked_array([book, book, wrong, *[book] * 2100])}
    )  # more than one array of text can hold
    found = find_mojibake(table)
    assert found is not None
    assert found.row == 2
    assert find_mojibake(table.slice(3)) is None
