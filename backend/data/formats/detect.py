"""Owns what format a file has: its first bytes where they are a signature, else its extension, else its content."""

from collections.abc import Callable
from pathlib import Path

from backend.contract.errors import InputError
from backend.data.formats import json_files
from backend.data.formats.columnar import arrow, parquet
from backend.data.formats.delimited import Delimited
from backend.data.formats.json_files import JsonLines, JsonList
from backend.data.formats.plain_text import PlainText
from backend.data.formats.reader import Options, Reader
from backend.data.formats.text_file import TextFile

_READERS: dict[str, Callable[[Path, Options], Reader]] = {
    "csv": lambda path, options: Delimited(path, options, ","),
    "tsv": lambda path, options: Delimited(path, options, "\t"),
    "jsonl": JsonLines,
    "json": JsonList,
    "parquet": parquet,
    "arrow": arrow,
    "text": PlainText,
}
_EXTENSIONS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
    ".txt": "text", ".text": "text",
}  # fmt: skip
_SIGNATURES = ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"\xff\xff\xff\xff", "arrow"))
_STRANGERS = (
    (b"PK\x03\x04", "is a zip archive (an Excel workbook is one too); save the table as CSV or unpack it"),
    (b"\x1f\x8b", "is compressed with gzip; unpack it first"),
    (b"\xfd7zXZ", "is compressed with xz; unpack it first"),
    (b"(\xb5/\xfd", "is compressed with zstd; unpack it first"),
    (b"BZh", "is compressed with bzip2; unpack it first"),
    (b"%PDF", "is a PDF; export its text first"),
    (b"version https://git-lfs", "is a Git LFS pointer and not the data; run git lfs pull in its folder"),
)


def is_data_file(path: Path) -> bool:
    """Whether the file's extension is one of a known format."""
    return path.suffix.lower() in _EXTENSIONS


def open_reader(path: Path, kind: str, options: Options) -> Reader:
    """The reader of a file of that format. Raises InputError."""
    try:
        return _READERS[kind](path, options)
    except OSError as error:
        raise InputError(_unreadable(path, error)) from None


def format_of(path: Path, asked: str = "auto", encoding: str = "auto") -> str:
    """The key of the file's format. Raises InputError for a file that is empty, unreadable or no table at all."""
    try:
        with path.open("rb") as file:
            start = file.read(64)
        _refuse_strangers(path, start)
        if asked != "auto":
            return asked
        _refuse_other_sources(path, encoding)
        return _found_format(path, start, encoding)
    except OSError as error:
        raise InputError(_unreadable(path, error)) from None


def _unreadable(path: Path, error: OSError) -> str:
    return f"{path} cannot be read: {error.strerror or error}; check its permissions"


def _refuse_strangers(path: Path, start: bytes) -> None:
    if not start:
        raise InputError(f"{path.name} is empty; give a file that holds rows")
    for signature, problem in _STRANGERS:
        if start.startswith(signature):
            raise InputError(f"{path.name} {problem}")


def _refuse_other_sources(path: Path, encoding: str) -> None:
    """Files that another source reads, and that would pass for a table here."""
    if path.suffix.lower() in {".conll", ".conllu", ".bio"}:
        raise InputError(
            f"{path.name} looks like CoNLL columns, which data.source: conll reads; set it, or data.format: tsv"
        )
    if path.suffix.lower() == ".json":
        head = TextFile(path, encoding).head()
        if '"paragraphs"' in head and '"qas"' in head:
            raise InputError(f"{path.name} looks like SQuAD's JSON, which data.source: squad reads; set it")


def _found_format(path: Path, start: bytes, encoding: str) -> str:
    signed = next((kind for signature, kind in _SIGNATURES if start.startswith(signature)), None)
    by_name = _EXTENSIONS.get(path.suffix.lower())
    if signed and by_name != "text":
        return signed
    return _by_content(path, encoding) if by_name is None or by_name == "json" else by_name


def _by_content(path: Path, encoding: str) -> str:
    head = TextFile(path, encoding).head().lstrip()
    if head.startswith("["):
        return "json"
    if head.startswith("{"):
        return "jsonl" if path.suffix.lower() != ".json" or json_files.is_json_lines(head) else "json"
    if path.suffix.lower() == ".json":
        return "json"
    lines = [line for line in head.split("\n")[:20] if line]
    for delimiter, kind in (("\t", "tsv"), (",", "csv")):
        if len(lines) > 1 and lines[0].count(delimiter) and len({line.count(delimiter) for line in lines}) == 1:
            return kind
    return "text"
