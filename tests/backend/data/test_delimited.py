"""CSV and TSV: what is read, from which line, and what is refused in which words."""

import csv
from pathlib import Path

import pytest

from backend.contract.errors import Fix, InputError

DATA = Path(__file__).parents[2] / "data"


def cells(rows) -> dict[str, list]:
    return rows.table.to_pydict()


def test_csv_gives_text_in_every_column(desk):
    rows = desk.read(desk.write("a.csv", "text,stars\ngood,5\nbad,1\n"))
    assert cells(rows) == {"text": ["good", "bad"], "stars": ["5", "1"]}


def test_words_for_missing_stay_text_and_empty_cells_are_empty(desk):
    rows = desk.read(desk.write("a.csv", "text,label\nNone,NA\nnull,\n,nan\n"))
    assert cells(rows) == {"text": ["None", "null", ""], "label": ["NA", "", "nan"]}


def test_quotes_line_breaks_and_commas_inside_cells_survive(desk, tmp_path):
    written = [["text", "label"], ['say "hi", please', "a"], ["two\nlines\r\nthree", "b"], ["සිංහල 漢字 🎉", "c"]]
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(written)
    rows = desk.read(path)
    assert cells(rows) == {"text": [row[0] for row in written[1:]], "label": ["a", "b", "c"]}


def test_rows_stand_on_their_first_physical_line(desk):
    rows = desk.read(desk.write("a.csv", 'text,label\n"one\ntwo",a\n\nthree,b\n"four\nfive\nsix",c\nseven,d\n'))
    assert [rows.place(row) for row in range(4)] == ["a.csv:2", "a.csv:5", "a.csv:6", "a.csv:9"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_is_understood(desk, newline):
    rows = desk.read(desk.write("a.csv", newline.join(["text,label", "x,1", "y,2", ""])))
    assert cells(rows) == {"text": ["x", "y"], "label": ["1", "2"]}


def test_a_missing_last_newline_loses_nothing(desk):
    assert cells(desk.read(desk.write("a.csv", "text\nx\ny"))) == {"text": ["x", "y"]}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le-bom", "utf-32"])
def test_a_byte_order_mark_is_obeyed_and_not_read_as_text(desk, encoding):
    text = "text,label\nகரும்பு,é\n"
    content = b"\xff\xfe" + text.encode("utf-16-le") if encoding == "utf-16-le-bom" else text.encode(encoding)
    assert cells(desk.read(desk.write("a.csv", content))) == {"text": ["கரும்பு"], "label": ["é"]}


def test_latin_1_is_refused_with_byte_line_and_way_out(desk):
    path = desk.write("a.csv", b"text,label\nfine,1\n" + "caf\xe9,2\n".encode("latin-1"))
    sentence = desk.refusal(path)
    assert "a.csv line 3 is not UTF-8 (byte 0xE9" in sentence
    assert "as Windows-1252 it reads “café,2”: if that is right, use --set data.encoding=windows-1252" in sentence


def test_the_refusal_of_windows_text_shows_how_it_would_read_and_offers_it(desk):
    content = b"text,label\nfine,1\n" + "café,2\nthé,3\n".encode("cp1252")
    with pytest.raises(InputError) as caught:
        desk.read(desk.write("a.csv", content))
    assert caught.value.fix == Fix(
        "Read as Windows-1252",
        {"data.encoding": "windows-1252"},
        ("text,label", "café,2", "thé,3"),
        "a.csv is not UTF-8. Read as Windows-1252, its rows would be:",
    )
    assert cells(desk.read(desk.folder / "a.csv", encoding="windows-1252"))["text"] == ["fine", "café", "thé"]


def test_bytes_that_windows_does_not_know_are_not_offered(desk):
    with pytest.raises(InputError, match=r"set data\.encoding to its encoding") as caught:
        desk.read(desk.write("a.csv", b"text\n\x81\x8d\n"))
    assert caught.value.fix is None


def test_the_undecodable_line_is_right_far_into_a_file(desk):
    content = "text\n" + "grün und lang genug\n" * 30_000
    sentence = desk.refusal(desk.write("a.csv", content.encode() + b"\xff\xfe\n"))
    assert "line 30002 " in sentence


def test_quotes_of_windows_are_known_by_their_bytes(desk):
    assert "data.encoding=windows-1252" in desk.refusal(desk.write("a.csv", b"text\n\x93quoted\x94\n"))


def test_utf_16_by_name_needs_to_say_which(desk):
    assert "utf-16-le" in desk.refusal(desk.write("a.csv", "text\nx\n"), encoding="utf-16")


def test_latin_1_is_read_where_it_is_asked_for(desk):
    path = desk.write("a.csv", "text\ncafé\n".encode("latin-1"))
    assert cells(desk.read(path, encoding="latin-1")) == {"text": ["café"]}


def test_nul_bytes_are_refused_with_their_line(desk):
    sentence = desk.refusal(desk.write("a.csv", b"text,label\nx,1\ny\0,2\n"))
    assert "a.csv line 3 contains NUL bytes" in sentence
    assert "UTF-8" in sentence


def test_utf_16_without_a_mark_is_refused_with_the_way_out(desk):
    sentence = desk.refusal(desk.write("a.csv", "text,label\nx,1\n".encode("utf-16-le")))
    assert "utf-16-le" in sentence


def test_an_open_quote_is_refused_with_the_line_where_it_opens(desk):
    sentence = desk.refusal(desk.write("a.csv", 'text,label\nfine,1\n"never closed,2\nnext,3\n'))
    assert "a.csv line 3: the quotes are unbalanced" in sentence
    assert "data.quoting: none" in sentence


def test_text_after_a_closing_quote_is_refused(desk):
    assert "line 2: the quotes are unbalanced" in desk.refusal(desk.write("a.csv", 'text,label\n"a" b,1\n'))


def test_quotes_are_text_where_that_is_asked_for(desk):
    path = desk.write("a.csv", 'text,label\n"open,1\n')
    assert cells(desk.read(path, quoting="none")) == {"text": ['"open'], "label": ["1"]}


def test_rows_with_another_number_of_cells_are_skipped_counted_and_placed(desk):
    rows = desk.read(desk.write("a.csv", "text,label\nx,1\na,b,c\nalone\ny,2\n"))
    assert cells(rows)["text"] == ["x", "y"]
    assert [(one.place, one.reason) for one in rows.skipped] == [
        ("a.csv:3", "3 cells, but the header has 2"),
        ("a.csv:4", "1 cell, but the header has 2"),
    ]


def test_skipped_rows_are_still_told_when_the_cache_answers(desk):
    path = desk.write("a.csv", "text,label\nx,1\nalone\n")
    assert desk.read(path).skipped == desk.read(path).skipped != ()


def test_a_file_without_one_usable_row_is_refused(desk):
    assert "no usable rows; line 2" in desk.refusal(desk.write("a.csv", "text,label\na,b,c\n"))


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n\n"])
def test_an_empty_file_is_refused(desk, content):
    assert "a.csv is empty" in desk.refusal(desk.write("a.csv", content))


def test_a_header_alone_is_refused(desk):
    assert "column names but no rows" in desk.refusal(desk.write("a.csv", "text,label\n"))


def test_two_columns_of_one_name_are_refused(desk):
    assert "a.csv has two columns 'text'" in desk.refusal(desk.write("a.csv", "text,label,text\nx,1,y\n"))


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_another_delimiter_is_found(desk, delimiter):
    path = desk.write("a.csv", f"text{delimiter}label\none, two{delimiter}1\nthree{delimiter}2\n")
    assert cells(desk.read(path)) == {"text": ["one, two", "three"], "label": ["1", "2"]}


def test_semicolons_in_the_text_do_not_beat_the_comma(desk):
    path = desk.write("a.csv", "text,label\na; b,1\nc; d,2\n")
    assert cells(desk.read(path))["text"] == ["a; b", "c; d"]


def test_a_wrong_delimiter_is_refused_with_the_right_one(desk):
    path = desk.write("a.csv", "text;label\nx;1\n")
    sentence = desk.refusal(path, delimiter=",")
    assert "only one column, 'text;label'" in sentence
    assert "leave data.delimiter empty" in sentence


def test_one_column_is_a_table_too(desk):
    assert cells(desk.read(desk.write("a.csv", "text\nhello\nbye\n")))["text"] == ["hello", "bye"]


def test_documents_longer_than_the_usual_limit_are_read(desk):
    long = "word " * 100_000
    assert cells(desk.read(desk.write("a.csv", f'text,label\n"{long}",1\n')))["text"] == [long]


def test_lone_quotes_in_a_tsv_belong_to_the_text(desk):
    path = desk.write("a.tsv", 'text\tlabel\n"What? he said\t1\n5" nails\t2\n"fully"\t3\n')
    assert cells(desk.read(path))["text"] == ['"What? he said', '5" nails', '"fully"']


def test_a_tsv_whose_every_quote_encloses_is_unquoted(desk):
    path = desk.write("a.tsv", 'text\tlabel\n"say ""hi"" now"\t1\nplain\t2\n')
    assert cells(desk.read(path))["text"] == ['say "hi" now', "plain"]


def test_a_tsv_with_line_breaks_in_cells_is_unquoted(desk):
    path = desk.write("a.tsv", 'text\tlabel\n"two\nlines"\t1\nplain\t2\n')
    rows = desk.read(path)
    assert cells(rows)["text"] == ["two\nlines", "plain"]
    assert rows.place(1) == "a.tsv:4"


def test_real_pairs_with_tabs_are_read_whole(desk):
    rows = desk.read(DATA / "boolq" / "train.tsv")
    assert (len(rows), rows.table.column_names, rows.skipped) == (200, ["question", "passage", "label"], ())
    assert rows.place(199) == "train.tsv:201"


def test_max_rows_takes_the_first(desk):
    path = desk.write("a.csv", "text\n" + "".join(f"row {number}\n" for number in range(20_000)))
    rows = desk.read(path, max_rows=3)
    assert cells(rows)["text"] == ["row 0", "row 1", "row 2"]
    assert len(desk.read(path)) == 20_000


def test_many_pieces_keep_order_and_lines(desk):
    path = desk.write("a.csv", "text,n\n" + "".join(f'"line\n{number}",{number}\n' for number in range(20_000)))
    rows = desk.read(path)
    assert rows.table["n"].to_pylist() == [str(number) for number in range(20_000)]
    assert rows.lines.tolist() == list(range(2, 40_002, 2))
