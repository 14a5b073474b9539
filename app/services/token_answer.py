"""Owns turning the answer of `tokenize` into tokens, also where it was so long that it came as an Arrow file.

Such a file has the fields of a token as columns; the rest of the answer is JSON in the metadata under `answer`.
"""

import json
from pathlib import Path

from app.services.backend_client import ArrowAnswer
from backend.contract.tokens import Token, Tokens


def tokens_of(answer: Tokens | ArrowAnswer) -> Tokens:
    """The tokens; an Arrow file is deleted after reading."""
    return _read(Path(answer.path)) if isinstance(answer, ArrowAnswer) else answer


def _read(path: Path) -> Tokens:
    import pyarrow as pa  # only a text of many thousand tokens needs it

    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
        columns = [table[name].to_pylist() for name in ("id", "piece", "text", "start", "end", "special")]
        rest = json.loads((table.schema.metadata or {}).get(b"answer", b"{}"))
    path.unlink(missing_ok=True)
    tokens = [Token(*row) for row in zip(*columns, strict=True)]
    return Tokens(
        tokens=tokens,
        characters=rest.get("characters", 0),
        words=rest.get("words", 0),
        unknown=rest.get("unknown", 0),
        truncated_at=rest.get("truncated_at"),
        stored_truncation=rest.get("stored_truncation", ""),
    )
