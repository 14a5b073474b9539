"""Tests that a row goes to the end of a person's file in the file's own way, whole or not at all."""

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.run.lock import hold_lock
from backend.data.appended_row import NewRow, append_row

ROW = NewRow({"text": 'a "good"; film'}, ("prediction", "pos"), ("label", None))
RIGHT = NewRow({"text": "né, ja"}, ("prediction", "pos"), ("label", "neg"))


def zipped(content: bytes) -> bytes:
    with zipfile.ZipFile(file := io.BytesIO(), "w") as packed:
        packed.writestr("own.csv", content)
    return file.getvalue()


def test_new_file_gets_a_header_and_every_next_row_follows(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"

    first, second = append_row(path, ROW, bom=True), append_row(path, RIGHT)

    assert (first.created, second.created, second.rows) == (True, False, 2)
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    assert lines == ["text,prediction,label", '"a ""good""; film",pos,', '"né, ja",pos,neg']


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_file_keeps_its_encoding_delimiter_and_line_ends(tmp_path: Path, encoding: str, end: str) -> None:
    path = tmp_path / "own.csv"
    before = end.join(["label;text", "pos;so so", 'neg;"a;b"'])  # the last line has no end
    path.write_bytes(before.encode(encoding))

    assert append_row(path, RIGHT).rows == 3
    assert path.read_bytes().decode(encoding) == f"{before}{end}neg;né, ja{end}"


def test_big_endian_file_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes(b"\xfe\xff" + "text,label\n".encode("utf-16-be"))

    append_row(path, RIGHT)

    assert path.read_bytes().decode("utf-16") == 'text,label\n"né, ja",neg\n'


def test_formula_is_defused_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    append_row(path, NewRow({"text": "=1+1"}, ("prediction", -0.5)), defuse=True)

    assert path.read_text(encoding="utf-8").splitlines()[1] == "'=1+1,-0.5"


@pytest.mark.parametrize(
    ("content", "row", "sentence"),
    [
        ("id,label\n1,pos\n", RIGHT, "has no column 'text' (it has id, label); choose a file with the columns"),
        ("id,text,label\n1,x,pos\n", RIGHT, "also has the column 'id', for which this row has no value"),
        ("text,label\nx,pos\n", ROW, "has no column 'prediction' (it has text, label); enter the correct answer"),
        ("text,prediction\nx,pos\n", RIGHT, "has no column 'label'"),
        ("text,label,text\nx,pos,y\n", RIGHT, "has the same column twice"),
        ('text,label\n"x,pos\n', RIGHT, "the quotes are unbalanced"),
    ],
)
def test_row_that_does_not_go_with_the_file_is_refused(
    tmp_path: Path, content: str, row: NewRow, sentence: str
) -> None:
    path = tmp_path / "own.csv"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(InputError) as refused:
        append_row(path, row)

    assert sentence in str(refused.value)
    assert path.read_text(encoding="utf-8") == content


@pytest.mark.parametrize("packer", [gzip.compress, zipped])
def test_packed_file_is_left_as_it_is(tmp_path: Path, packer: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes(before := packer(b"text,label\nfine,pos\n"))

    with pytest.raises(InputError, match="is compressed or a workbook"):
        append_row(path, RIGHT)
    assert path.read_bytes() == before


def test_unknown_encoding_takes_what_any_encoding_writes_alike(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes("text,label\ncafé,pos\n".encode("cp1252"))

    with pytest.raises(InputError, match="is not UTF-8, and 'é' cannot be added"):
        append_row(path, RIGHT)
    append_row(path, NewRow({"text": "fine"}, ("prediction", "pos"), ("label", "pos")))

    assert path.read_bytes() == "text,label\ncafé,pos\nfine,pos\n".encode("cp1252")


def test_cell_that_a_file_without_quotes_cannot_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.tsv"
    path.write_text('text\tlabel\n5" disc\tpos\nx\tneg\n', encoding="utf-8")

    with pytest.raises(InputError, match="of this file are not quoted"):
        append_row(path, NewRow({"text": "two\nlines"}, ("prediction", "pos"), ("label", "pos")))


def test_file_that_another_program_holds_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("text,label\n", encoding="utf-8")

    with hold_lock(path), pytest.raises(InputError, match="is being written by another program"):
        append_row(path, RIGHT)


@pytest.mark.parametrize("name", [".", "nowhere/mine.csv"])
def test_place_that_cannot_be_written_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"is a folder|cannot be written"):
        append_row(tmp_path / name, ROW)


def test_refused_new_file_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        append_row(tmp_path / "nowhere" / "mine.csv", ROW)

    assert list(tmp_path.iterdir()) == []
