"""Tests that packed files are read as what is in them, and broken ones refused in one sentence."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

TABLE = b"text,label\na film,1\nanother,0\n"
PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("ending", PACKERS)
def test_a_packed_table_is_read_like_any_other(desk, ending: str):
    rows = desk.read(desk.write(f"a.csv.{ending}", PACKERS[ending](TABLE)))
    assert rows.table.to_pydict() == {"text": ["a film", "another"], "label": ["1", "0"]}
    assert rows.place(1) == f"a.csv.{ending}:3"


def test_packed_and_plain_files_of_a_folder_are_of_one_kind(desk):
    desk.write("many/a.csv.gz", gzip.compress(TABLE))
    desk.write("many/b.csv", TABLE)
    assert len(desk.read(desk.folder / "many")) == 4


def test_json_lines_may_be_packed(desk):
    assert desk.read(desk.write("a.jsonl.gz", gzip.compress(b'{"a": 1}\n{"a": 2}\n'))).table["a"].to_pylist() == [1, 2]


def test_a_cut_off_file_is_refused(desk):
    whole = gzip.compress(b"text,label\n" + b"some words,1\n" * 50_000)
    assert "a.csv.gz is compressed with gzip and is damaged" in desk.refusal(
        desk.write("a.csv.gz", whole[: len(whole) // 2])
    )


def test_an_archive_of_files_is_refused_by_name(desk):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.csv"))
    assert "is an archive of files (tar)" in desk.refusal(desk.write("a.tar.gz", content.getvalue()))


def test_parquet_within_gzip_is_refused(desk):
    assert "Parquet file compressed with gzip" in desk.refusal(desk.write("a.gz", gzip.compress(b"PAR1" + b"x" * 600)))


def zipped(*members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for number, member in enumerate(members):
            packed.writestr(f"{number}.csv.gz", member)
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "inner", "outer"),
    [
        ("a.csv.gz", gzip.compress(gzip.compress(TABLE)), "gzip", "gzip"),
        ("a.zip", zipped(gzip.compress(TABLE)), "gzip", "zip"),
        ("a.zip", zipped(zipped(TABLE)), "zip", "zip"),
        ("a.csv.xz", lzma.compress(bz2.compress(TABLE)), "bzip2", "xz"),
    ],
)
def test_a_file_that_is_packed_twice_is_refused(desk, name: str, content: bytes, inner: str, outer: str):
    assert f"{name} is compressed twice ({inner} within {outer}); unpack it once" in desk.refusal(
        desk.write(name, content)
    )


def test_a_zip_without_files_is_called_empty(desk):
    assert "a.zip is an empty zip archive; use a file that contains rows" in desk.refusal(desk.write("a.zip", zipped()))
