"""Answers queries about a tokenizer's vocabulary (see `backend.contract.tokens.vocabulary`)."""

import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract.errors import InputError
from backend.contract.rpc.protocol import ExportedFile, Progress
from backend.contract.safe_files import user_path
from backend.contract.tokens.vocabulary import FoundRows, PieceCounts, PieceOrigin, Vocabulary
from backend.helper.queries.tokenizers import open_tokenizer
from backend.helper.query import Arguments, Query, ReportProgress, require

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from backend.tokenizers.vocabulary.tables import VocabularyTables

TABLES = ("pieces", "merges")
FREQUENCY = "frequency"
KEPT = 2
"""Vocabularies that stay open in a worker."""


def _vocabulary(arguments: Arguments, report: ReportProgress) -> Vocabulary:
    from backend.tokenizers.vocabulary.tables import read_vocabulary

    folder = Path(require(arguments, "folder"))
    report(Progress(text="Opening the tokenizer…"))
    tokenizer = open_tokenizer(arguments)
    report(Progress(text="Reading the vocabulary…"))
    return fill(folder, read_vocabulary(tokenizer))


def fill(folder: Path, read: "VocabularyTables") -> Vocabulary:
    """Write the files that the other queries and the window read."""
    from backend.tokenizers.vocabulary.scripts import count_scripts

    tables = {"pieces": read.pieces} | ({} if read.merges is None else {"merges": read.merges})
    for name, table in tables.items():
        _write_table(table, folder, name)
    return Vocabulary(
        kind=read.kind,
        size=read.size,
        types=read.types(),
        scripts=count_scripts(read.pieces["script"]),
        missing=read.missing,
        merges=0 if read.merges is None else read.merges.num_rows,
    )


def _find(arguments: Arguments, report: ReportProgress) -> FoundRows:
    from backend.tokenizers.vocabulary.search import Search, find

    folder, table = _table_of(arguments)
    search = Search(
        text=str(arguments.get("search") or ""),
        by=_one_of(arguments.get("by") or "text"),
        types=tuple(arguments.get("types") or ()),
        sort_by=str(arguments.get("sort_by") or ""),
        descending=bool(arguments.get("descending")),
    )
    rows = find(table, search)
    return FoundRows(_write_numbers(folder, rows.astype("int32")), len(rows))


def _origin(arguments: Arguments, report: ReportProgress) -> PieceOrigin:
    from backend.tokenizers.vocabulary import piece_origin

    return piece_origin.origin_of(open_tokenizer(arguments), int(require(arguments, "id", int)))


def _count(arguments: Arguments, report: ReportProgress) -> PieceCounts:
    from backend.helper.query import reporting
    from backend.inspect.column_texts import read_text_column
    from backend.tokenizers.token_counts import count_pieces, counts_of_ids

    folder = Path(require(arguments, "folder"))
    column = read_text_column(
        require(arguments, "data", (str, list, dict)), str(arguments.get("column") or ""), None, reporting(report)
    )
    tokenizer = open_tokenizer(arguments)
    total = len(column)
    by_id = count_pieces(tokenizer, column.texts(), lambda done: report(Progress(done, total, "rows")))
    counts = counts_of_ids(_open_table(str(folder), "pieces")["id"].to_numpy(), by_id)
    path = folder / f"{FREQUENCY}.npy"
    Path(_write_numbers(folder, counts)).replace(path)
    return PieceCounts(path=str(path), used=int((counts > 0).sum()))


def _export(arguments: Arguments, report: ReportProgress) -> ExportedFile:
    from backend.data.csv_file import write_csv

    _, table = _table_of(arguments)
    if rows := arguments.get("rows"):
        import numpy as np

        table = table.take(np.load(rows))
    output = user_path(require(arguments, "output")).absolute()
    defuse, bom = bool(arguments.get("defuse", False)), bool(arguments.get("bom", False))
    write_csv(table, output, defuse, bom, lambda done: report(Progress(done, table.num_rows, "rows")))
    return ExportedFile(path=str(output), rows=table.num_rows)


# The folder


def _table_of(arguments: Arguments) -> "tuple[Path, pa.Table]":
    """The requested table, with frequencies if they were counted."""
    import numpy as np
    import pyarrow as pa

    folder = Path(require(arguments, "folder"))
    name = str(arguments.get("table") or "pieces")
    table = _open_table(str(folder), name)
    counts = folder / f"{FREQUENCY}.npy"
    if name == "pieces" and counts.is_file():
        table = table.append_column(FREQUENCY, pa.array(np.load(counts)))
    return folder, table


@lru_cache(2 * KEPT)
def _open_table(folder: str, name: str) -> "pa.Table":
    import pyarrow as pa

    if name not in TABLES:
        raise InputError("table: there is no table {name}; choose pieces or merges", name=repr(name))
    try:
        with pa.memory_map(str(Path(folder, f"{name}.arrow"))) as source:
            return pa.ipc.open_file(source).read_all()
    except FileNotFoundError:
        raise InputError("this vocabulary is no longer open, or has no such table; open it again") from None


def _write_table(table: "pa.Table", folder: Path, name: str) -> None:
    """Write it for later queries and the window, which map it."""
    import pyarrow as pa

    with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _write_numbers(folder: Path, numbers: "np.ndarray") -> str:
    import numpy as np

    descriptor, path = tempfile.mkstemp(suffix=".npy", dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        np.save(file, numbers)
    return path


def _one_of(by: Any) -> Any:
    from backend.contract.tokens.vocabulary import SEARCH_BY

    if by not in SEARCH_BY:
        raise InputError(
            "by: {by} is not a search mode; choose one of {search_by}", by=repr(by), search_by=", ".join(SEARCH_BY)
        )
    return by


QUERIES = (
    Query("vocabulary", _vocabulary, warm_by="tokenizer"),
    Query("find_pieces", _find, warm_by="folder"),
    Query("piece_origin", _origin, warm_by="tokenizer"),
    Query("count_pieces", _count, warm_by="tokenizer"),
    Query("export_vocabulary", _export, warm_by="folder"),
)
