"""Detects a file's format: by its first bytes if they are a signature, else its extension, else its content.

JSON is detected by content whatever the extension, and a compressed file by what it contains.
"""

import re
from collections.abc import Callable
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.data.formats import delimited, json_files
from backend.data.formats.columnar import arrow, parquet
from backend.data.formats.compression import first_bytes, packer_of, packer_of_signature, plain_suffix
from backend.data.formats.delimited import Delimited
from backend.data.formats.json_files import JsonLines, JsonList
from backend.data.formats.plain_text import PlainText
from backend.data.formats.reader import Options, Reader
from backend.data.formats.text_file import TextFile
from backend.data.formats.workbook import ENDINGS, Workbook, is_workbook

_READERS: dict[str, Callable[[Path, Options], Reader]] = {
    "csv": lambda path, options: Delimited(path, options, ","),
    "tsv": lambda path, options: Delimited(path, options, "\t"),
    "jsonl": JsonLines,
    "json": JsonList,
    "parquet": parquet,
    "arrow": arrow,
    "text": PlainText,
    "workbook": Workbook,
}
_EXTENSIONS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
    ".txt": "text", ".text": "text", **dict.fromkeys(ENDINGS, "workbook"),
}  # fmt: skip
_SIGNATURES = ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"\xff\xff\xff\xff", "arrow"))
_STRANGERS = (
    (b"PK\x05\x06", message("is an empty zip archive; use a file that contains rows")),
    (
        b"PK",
        message(
            "is a zip archive of several files, or a document that is not a workbook; unpack it, or save "
            "its table as CSV"
        ),
    ),
    (b"(\xb5/\xfd", message("is compressed with zstd; unpack it first")),
    (b"Rar!", message("is a RAR archive; unpack it first")),
    (b"7z\xbc\xaf", message("is a 7-Zip archive; unpack it first")),
    (b"%PDF", message("is a PDF; export its text first")),
    (b"\x89PNG", message("is an image; use a file that contains rows")),
    (b"\xff\xd8\xff", message("is an image; use a file that contains rows")),
    (b"\x7fELF", message("is a program; use a file that contains rows")),
    (b"SQLite format 3", message("is an SQLite database; save the table as CSV")),
    (
        b"\xd0\xcf\x11\xe0",
        message("is an old Office document, not an .xls workbook; save the table as CSV"),
    ),
    (b"version https://git-lfs", message("is a Git LFS pointer, not the data; run git lfs pull in its folder")),
)


def is_data_file(path: Path) -> bool:
    """Whether the file's extension is that of a known format."""
    return plain_suffix(path) in _EXTENSIONS


def open_reader(path: Path, kind: str, options: Options) -> Reader:
    """The reader for a file of that format. Raises InputError."""
    try:
        return _READERS[kind](path, options)
    except OSError as error:
        raise InputError(_unreadable(path, error)) from None


def format_of(path: Path, wanted: str = "auto", encoding: str = "auto") -> str:
    """The key of the file's format. Raises InputError for an empty or unreadable file, or one that is not a table."""
    try:
        if is_workbook(path) and wanted in ("auto", "text", "workbook"):
            return "workbook"
        start = first_bytes(path, 512)
        _refuse_strangers(path, start)
        if wanted == "workbook" or (wanted == "auto" and _EXTENSIONS.get(plain_suffix(path)) == "workbook"):
            raise InputError(
                "{name} is not a workbook, despite its name; set data.format to the actual format, or "
                "save the file again",
                name=path.name,
            )
        if wanted not in ("parquet", "arrow") and not _format_of_signature(start):
            TextFile(path, encoding).check_is_text()
        if wanted != "auto":
            return wanted
        _refuse_other_sources(path, encoding)
        return _find_format(path, start, encoding)
    except OSError as error:
        raise InputError(_unreadable(path, error)) from None


def _unreadable(path: Path, error: OSError) -> str:
    return message(
        "{path} cannot be read: {strerror}; check its permissions", path=path, strerror=error.strerror or error
    )


def _refuse_strangers(path: Path, start: bytes) -> None:
    if not start:
        raise InputError("{name} is empty; use a file that contains rows", name=path.name)
    packer = packer_of(path)
    if packer and (inner := packer_of_signature(start)):
        raise InputError(
            "{name} is compressed twice ({inner} within {packer}); unpack it once",
            name=path.name,
            inner=inner,
            packer=packer,
        )
    for signature, problem in _STRANGERS:
        if start.startswith(signature):
            raise InputError("{name} {problem}", name=path.name, problem=problem)
    if start[257:262] == b"ustar":
        raise InputError("{name} is an archive of files (tar); unpack it first", name=path.name)
    if packer and _format_of_signature(start):
        raise InputError(
            "{name} is a {start} file compressed with {packer}; unpack it first",
            name=path.name,
            start=_format_of_signature(start).capitalize(),
            packer=packer,
        )


def _format_of_signature(start: bytes) -> str:
    return next((kind for signature, kind in _SIGNATURES if start.startswith(signature)), "")


def _refuse_other_sources(path: Path, encoding: str) -> None:
    """Raises InputError for files of another source that could be mistaken for a table."""
    if plain_suffix(path) in {".conll", ".conllu", ".bio"}:
        raise InputError(
            "{name} looks like CoNLL columns; set data.source: conll to read them, or data.format: tsv",
            name=path.name,
        )
    if plain_suffix(path) == ".json":
        head = TextFile(path, encoding).head()
        if '"paragraphs"' in head and '"qas"' in head:
            raise InputError("{name} looks like SQuAD JSON; set data.source: squad to read it", name=path.name)


def _find_format(path: Path, start: bytes, encoding: str) -> str:
    by_name = _EXTENSIONS.get(plain_suffix(path))
    if by_name == "text":
        return by_name
    return (
        _format_of_signature(start)
        or _json_kind(path, encoding)
        or (by_name if by_name != "json" else None)
        or _format_by_content(path, encoding)
    )


def content_format(path: Path, encoding: str = "auto") -> str:
    """The format by content alone, also of a file with a plain-text extension; `text` if it is not a table."""
    if is_workbook(path):
        return "workbook"
    return (
        _format_of_signature(first_bytes(path, 16))
        or _json_kind(path, encoding)
        or _table_kind(path, encoding)
        or "text"
    )


def _json_kind(path: Path, encoding: str) -> str | None:
    """`json` or `jsonl` if the content is unambiguous."""
    head = TextFile(path, encoding).head().lstrip()
    if re.match(r"\[\s*\{\s*[\"}]", head):
        return "json"
    if not re.match(r"\{\s*[\"}]", head):
        return None
    if json_files.is_json_lines(head):
        return "jsonl"
    if json_files.begins_with_object(head):
        return "json" if plain_suffix(path) == ".json" else "jsonl"
    return "json" if re.match(r"\{\s*\n", head) else None


def _table_kind(path: Path, encoding: str) -> str | None:
    """`csv` or `tsv` if the first lines have the same number of cells and the first line looks like column names."""
    text = TextFile(path, encoding)
    delimiter = delimited.delimiter_of(text)
    header = delimited.first_cells(text, delimiter) if delimiter else []
    if delimiter is None or not delimited.reads_like_a_header(header):
        return None
    return "tsv" if delimiter == "\t" else "csv"


def _format_by_content(path: Path, encoding: str) -> str:
    head = TextFile(path, encoding).head().lstrip()
    if head.startswith("["):
        return "json"
    if plain_suffix(path) == ".json":
        return "json"
    lines = [line for line in head.split("\n")[:20] if line]
    for delimiter, kind in (("\t", "tsv"), (",", "csv")):
        if len(lines) > 1 and lines[0].count(delimiter) and len({line.count(delimiter) for line in lines}) == 1:
            return kind
    return _table_kind(path, encoding) or "text"
