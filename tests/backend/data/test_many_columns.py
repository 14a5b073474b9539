"""Files of very many columns are refused in one sentence, whatever their format."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backend.contract.errors import InputError
from backend.data.formats import reader
from backend.data.formats.columnar import arrow, parquet
from backend.data.formats.delimited import Delimited
from backend.data.formats.json_files import JsonLines, JsonList
from backend.data.formats.reader import MAX_COLUMNS, Options, Reader, first_repeated
from backend.data.formats.workbook import Workbook
from backend.data.sources.conll import Conll
from tests.backend.data.test_workbook import ods

FEW = 20


def names(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


def delimited(path: Path, count: int) -> Reader:
    path.write_text(",".join(names(count)) + "\n" + ",".join("1" * count) + "\n")
    return Delimited(path, Options())


def json_lines(path: Path, count: int) -> Reader:
    path.write_text("".join(json.dumps({name: 1}) + "\n" for name in names(count)))
    return JsonLines(path, Options())


def json_list(path: Path, count: int) -> Reader:
    path.write_text(json.dumps([dict.fromkeys(names(count), 1)]))
    return JsonList(path, Options())


def nested_json(path: Path, count: int) -> Reader:
    path.write_text(json.dumps([{"a": [dict.fromkeys(names(count - 2), 1)]}]))
    return JsonList(path, Options())


def parquet_file(path: Path, count: int) -> Reader:
    pq.write_table(pa.table({name: ["a"] for name in names(count)}), path)
    return parquet(path, Options())


def arrow_file(path: Path, count: int) -> Reader:
    table = pa.table({name: ["a"] for name in names(count)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return arrow(path, Options())


def conll(path: Path, count: int) -> Reader:
    path.write_text(" ".join(names(count)) + "\n")
    return Conll(path, Options())


def workbook(path: Path, count: int) -> Reader:
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    row = f"<table:table-row>{''.join(map(cell.format, names(count)))}</table:table-row>"
    return Workbook(ods(path.with_suffix(".ods"), row), Options())


READERS = (delimited, json_lines, json_list, nested_json, parquet_file, arrow_file, conll, workbook)


@pytest.mark.parametrize("open_one", READERS, ids=lambda one: one.__name__)
def test_file_of_too_many_columns_is_refused(
    open_one: Callable[[Path, int], Reader], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_COLUMNS", FEW)
    open_one(tmp_path / "rows", FEW).schema()
    with pytest.raises(InputError, match="more than 20 columns; keep the ones"):
        open_one(tmp_path / "rows", FEW + 1).schema()


def test_header_of_200_000_columns_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"more than {MAX_COLUMNS:,} columns"):
        delimited(tmp_path / "rows.csv", 200_000)


def test_first_name_that_comes_twice_is_found() -> None:
    assert first_repeated(["a", "b", "c", "b", "a"]) == "b"
    assert first_repeated(["a", "b"]) is None
