"""Data that is no regular file, or would fill memory or disk, is refused at once and in one sentence."""

import gzip
import io
import os
import re
import shutil
import tarfile
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from backend.contract import safe_files
from backend.contract.errors import InputError
from backend.contract.safe_files import LONGEST_LINE
from backend.data import archive
from backend.data.data_files import data_files
from backend.data.fingerprint import file_fingerprint
from backend.data.formats import columnar
from backend.data.formats.compression import limit_unpacked
from backend.data.formats.detect import format_of
from backend.data.formats.reader import Options
from backend.data.formats.text_file import TextFile
from backend.tokenizers.single_files import open_file
from backend.tokenizers.text import File
from tests.hostile.data_files import arrow_that_points_outside


@pytest.mark.parametrize("read", [format_of, file_fingerprint, lambda path: open_file(path, {}), lambda path: File(str(path))])  # fmt: skip
@pytest.mark.parametrize("name", ["/dev/zero", "/proc/self/environ", "pipe"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, name: str, read):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        read(tmp_path / name)


def test_pipe_in_a_folder_of_data_is_left_out(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "rows.csv").write_text("text\nwords\n")
    assert data_files(str(tmp_path), "train") == [tmp_path / "rows.csv"]
    assert data_files(str(tmp_path / "*.csv"), "train") == [tmp_path / "rows.csv"]


def test_endless_line_is_refused(tmp_path: Path):
    with gzip.open(tmp_path / "line.txt.gz", "wb", 1) as file:
        for _ in range(LONGEST_LINE // (1 << 20) + 1):
            file.write(b"x" * (1 << 20))
    with pytest.raises(InputError, match="line 1 has more than"):
        next(TextFile(tmp_path / "line.txt.gz").lines())


def test_packed_file_that_would_fill_the_disk_is_refused(tmp_path: Path):
    class Lines(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer) -> int:
            return len(buffer)

    (tmp_path / "bomb.gz").write_bytes(b"small")
    unpacked = limit_unpacked(Lines(), tmp_path / "bomb.gz")
    with Path(os.devnull).open("wb") as nowhere, pytest.raises(InputError, match="200 times its size"):
        shutil.copyfileobj(unpacked, nowhere)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_long_text_that_is_packed_once_does_not_fill_the_disk(desk, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(safe_files, "LARGEST_UNPACKED", 1_000_000)
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int8()), ["x" * 1000])
    if kind == "parquet":
        pq.write_table(pa.table({"text": texts}), desk.folder / "a.parquet")
    else:
        pyarrow.feather.write_feather(pa.table({"text": texts}), desk.folder / "a.arrow", compression="zstd")
    assert "200 times its size" in desk.refusal(desk.folder / f"a.{kind}")


def test_archive_of_huge_members_is_refused_before_they_are_unpacked(tmp_path: Path):
    path = tmp_path / "pair.tar.gz"
    member = tarfile.TarInfo("train.src")
    member.size = 10**12
    path.write_bytes(gzip.compress(member.tobuf()))
    with pytest.raises(InputError, match="200 times its size"):
        archive.unpack(path, tmp_path, re.compile(".*"), lambda *_: None)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_tar_header_of_many_megabytes_is_not_read(tmp_path: Path, kind: bytes):
    path = tmp_path / "pair.tar"
    member = tarfile.TarInfo("././@LongLink")
    member.type, member.size = kind, 50_000_000
    with path.open("wb") as file:
        file.write(member.tobuf())
        file.truncate(100_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="damaged") as caught:
            archive.unpack(path, tmp_path, re.compile(".*"), lambda *_: None)
        assert "\n" not in str(caught.value)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "values",
    [
        {"GNU.sparse.map": "a,b"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "zz"},
        {"mtime": "1e300"},
        {"mtime": "nan"},
    ],
)
def test_impossible_numbers_in_a_tar_are_refused_in_one_sentence(tmp_path: Path, values: dict[str, str]):
    path = tmp_path / "pair.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("train.src")
        member.size, member.pax_headers = 512, values
        tar.addfile(member, io.BytesIO(b"x" * 512))
    with pytest.raises(InputError, match="damaged"):
        archive.unpack(path, tmp_path, re.compile(".*"), lambda *_: None)


def test_saved_data_set_whose_list_is_nested_too_deep_is_refused(tmp_path: Path):
    (tmp_path / "dataset_dict.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="nested too deeply"):
        data_files(str(tmp_path), "train")


def test_places_that_an_arrow_file_does_not_have_are_never_looked_at(tmp_path: Path):
    opened = columnar.arrow(arrow_that_points_outside(tmp_path), Options())
    with pytest.raises(InputError, match="damaged"):
        next(opened.pieces(opened.schema()))
