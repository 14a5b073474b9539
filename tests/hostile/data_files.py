"""Data, texts, templates and tokenizers in files that are none, are endless, or are not what they seem."""

import gzip
import io
import json
import os
import shutil
import socket
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.case import MODEL, Hostile, file, given

MB = 1 << 20


def pipe(folder: Path) -> Path:
    """A FIFO that nobody writes to."""
    os.mkfifo(folder / "rows.csv")
    return folder / "rows.csv"


def unix_socket(folder: Path) -> Path:
    """A socket's file."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(folder / "rows.csv"))  # a socket's path has at most 107 letters
    return folder / "rows.csv"


def packed(name: str, block: bytes, blocks: int) -> Callable[[Path], Path]:
    """A gzip file of many equal blocks."""

    def make(folder: Path) -> Path:
        with gzip.open(folder / name, "wb", 1) as target:
            for _ in range(blocks):
                target.write(block)
        return folder / name

    return make


def parquet(values: pa.Array) -> Callable[[Path], Path]:
    """A Parquet file of one column."""

    def make(folder: Path) -> Path:
        pq.write_table(pa.table({"text": values}), folder / "rows.parquet")
        return folder / "rows.parquet"

    return make


def archive(names: list[str]) -> bytes:
    """A tar archive with these members."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
    return content.getvalue()


def zipped(name: str, size: int) -> Callable[[Path], Path]:
    """A zip archive whose one member unpacks to so many zeros."""

    def make(folder: Path) -> Path:
        with zipfile.ZipFile(folder / "rows.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as one:
            one.writestr(name, b"0" * size)
        return folder / "rows.zip"

    return make


def archive_of_nothing() -> bytes:
    """A zip archive without members."""
    content = io.BytesIO()
    zipfile.ZipFile(content, "w").close()
    return content.getvalue()


def spaces(folder: Path) -> Path:
    """An OpenDocument sheet whose one cell stands for two thousand million spaces."""
    office = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<office:document-content xmlns:office="{office}:office:1.0" xmlns:table="{office}:table:1.0" '
        f'xmlns:text="{office}:text:1.0"><office:body><office:spreadsheet><table:table table:name="S"><table:table-row>'
        '<table:table-cell office:value-type="string"><text:p>a<text:s text:c="2000000000"/></text:p></table:table-cell>'
        "</table:table-row></table:table></office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(folder / "rows.ods", "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("content.xml", content)
    return folder / "rows.ods"


def pipes_in_a_folder(folder: Path) -> Path:
    """A folder of pipes alone."""
    (folder / "data").mkdir()
    os.mkfifo(folder / "data" / "train.csv")
    return folder / "data"


def saved(content: str) -> Callable[[Path], Path]:
    """A folder that `datasets` seems to have saved."""

    def make(folder: Path) -> Path:
        (folder / "dataset_dict.json").write_text(content)
        return folder

    return make


def with_template(template: str) -> Callable[[Path], Path]:
    """A tokenizer's folder with this chat template."""

    def make(folder: Path) -> Path:
        shutil.copytree(MODEL, folder / "tokenizer")
        (folder / "tokenizer" / "chat_template.jinja").write_text(template)
        return folder / "tokenizer"

    return make


LOOP = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
STRING = "{{ 'x' * 10 ** 10 }}"
ENDLESS = {"/dev/zero": "regular file", "/proc/self/environ": "regular file", "/dev/stdin": "regular file"}


def arrow_that_points_outside(folder: Path) -> Path:
    """Texts whose beginnings and ends lie beyond the file."""
    path = folder / "rows.arrow"
    batch = pa.record_batch([["a" * 77, "b" * 101]], names=["text"])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content = path.read_bytes()
    assert content.count(struct.pack("<3i", 0, 77, 178)) == 1
    path.write_bytes(content.replace(struct.pack("<3i", 0, 77, 178), struct.pack("<3i", 0, 0x7FFFFFF0, 178)))
    return path


CASES = (
    *(Hostile(f"{kind}: {name}", kind, given(name), words) for kind in ("data", "text") for name, words in ENDLESS.items()),
    Hostile("a pipe", "data", pipe, "regular file"),
    Hostile("a pipe as a text", "text", pipe, "regular file"),
    Hostile("a pipe as a template", "template", pipe, "regular file"),
    Hostile("a socket", "data", unix_socket, "regular file"),
    Hostile("a folder of pipes", "data", pipes_in_a_folder, "no files"),
    Hostile("a name of 5,000 letters", "data", given("x" * 5000), "too long"),
    Hostile("a path of 5,000 folders", "data", given("x/" * 5000), "too long"),
    Hostile("nobody's home", "data", given("~nobody-of-that-name/rows.csv"), "no such file"),
    Hostile("an endless line, packed", "data", packed("rows.csv.gz", b"x" * MB, 70), "line 1 has more than"),
    Hostile("an endless line of text", "data", packed("rows.txt.gz", b"x" * MB, 70), "line 1 has more than"),
    Hostile("an endless line of JSON", "data", packed("rows.jsonl.gz", b'{"a":' + b"1" * MB, 70), "line 1 has more than"),
    Hostile("JSON nested 100,000 deep", "data", file("rows.json", "[" * 100_000), ""),
    Hostile("a JSON line nested 100,000 deep", "data", file("rows.jsonl", '{"a":' * 100_000), ""),
    Hostile("SQuAD nested 100,000 deep", "data", file("rows.json", '{"data":' + "[" * 100_000), "", command="squad"),
    Hostile("SQuAD with an answer far away", "data", file("rows.json", json.dumps({"data": [{"paragraphs": [{"context": "a", "qas": [{"id": "1", "question": "b", "answers": [{"text": "a", "answer_start": -(10**30)}]}]}]}]})), "answer_start", command="squad"),
    Hostile("JSON of 5,000 digits", "data", file("rows.json", '[{"text": ' + "9" * 5000 + "}]"), ""),
    Hostile("JSON Lines of 5,000 digits", "data", file("rows.jsonl", '{"text": ' + "9" * 5000 + "}\n" * 2), ""),
    Hostile("a saved data set nested too deep", "data", saved("[" * 100_000), 'too deeply'),
    Hostile("a saved data set that is a list", "data", saved("[]"), ""),
    Hostile("a saved data set that leads outside", "data", saved('{"splits": ["../../.."]}'), ""),
    Hostile("a binary column", "data", parquet(pa.array([b"\xff\xfe", b"\x00"])), "", code=0),
    Hostile("a binary column as text", "data", parquet(pa.array([b"\xff\xfe", b"\x00"])), "cannot be read as text", command="predict"),
    Hostile("a column of lists of lists", "data", parquet(pa.array([[[1]], [[2]]])), "", code=0),
    Hostile("a Parquet file that is truncated", "data", file("rows.parquet", b"PAR1" + b"\0" * 100), "damaged"),
    Hostile("an Arrow file that points outside", "data", arrow_that_points_outside, "damaged"),
    Hostile("an Arrow file of nonsense", "data", file("rows.arrow", b"ARROW1" + b"\xff" * 100), "damaged"),
    Hostile("a zip of zeros", "data", zipped("rows.csv", 25 * MB), code=0),
    Hostile("a word of 50 MB", "data", zipped("rows.csv", 50 * MB), "a word of more than", command="tokenizer train"),
    Hostile("an archive with absolute names", "data", file("rows.tar", archive(["/etc/passwd"])), ""),
    Hostile("half a character", "data", file("rows.jsonl", '{"text": "\\ud83d"}\n{"text": "b"}\n'), "line 1: 'text' contains half a character"),
    Hostile("half a character within a list", "data", file("rows.jsonl", '{"text": ["a"]}\n{"text": ["\\udfff"]}\n'), "line 2: 'text' contains half a character"),
    Hostile("half a character as a column", "data", file("rows.jsonl", '{"\\ud83d": 1}\n{"text": "b"}\n'), "half a character"),
    Hostile("gzip within gzip", "data", file("rows.csv.gz", gzip.compress(gzip.compress(b"text\na\n"))), "compressed twice"),
    Hostile("an empty zip", "data", file("rows.zip", archive_of_nothing()), "empty zip archive"),
    Hostile("a workbook of spaces", "data", spaces, "too large for a workbook"),
    Hostile("ten thousand columns twice", "data", file("rows.csv", ",".join(["a"] * 10_000) + "\n"), "two columns"),
    Hostile("NUL bytes", "data", file("rows.csv", b"text\na\0b\n"), "NUL"),
    Hostile('not UTF-8', "data", file("rows.csv", "text\ncafé\n".encode("latin-1")), "line 2"),
    Hostile("messages nested too deep", "text", file("chat.json", "[" * 100_000), "", command="tokenize --messages"),
    Hostile("a template that loops", "template", file("chat.jinja", LOOP), 'not finish within'),
    Hostile("a template that multiplies", "template", file("chat.jinja", STRING), "of memory"),
    Hostile("a template nested too deep", "template", file("chat.jinja", "{{" + "(" * 10_000), ""),
    Hostile("a tokenizer whose template multiplies", "tokenizer", with_template(STRING), "of memory", command="tokenize --messages"),
    Hostile("a tokenizer nested too deep", "tokenizer", file("tokenizer.json", "[" * 100_000), ""),
    Hostile("a tokenizer of nothing", "tokenizer", file("tokenizer.json", "{}"), ""),
    Hostile("a tokenizer with a vocabulary of words", "tokenizer", file("tokenizer.json", json.dumps({"model": {"type": "BPE", "vocab": {"a": "b"}, "merges": []}})), ""),
    Hostile("a vocabulary of zeros", "tokenizer", file("vocab.txt", b"\0" * MB), ""),
    Hostile("a SentencePiece model of nonsense", "tokenizer", file("x.model", b"\xff" * MB), ""),
    Hostile("a run of 5,000 letters", "argument", given("x" * 5000), ""),
    Hostile("a run with an undecodable name", "argument", given("x\udcff"), "UTF-8"),
)  # fmt: skip
