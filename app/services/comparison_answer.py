"""Owns turning the answer of `compare_text` into a comparison, also where it was so long that it came as an Arrow file."""

import json
from pathlib import Path

from app.services.backend_client import ArrowAnswer
from backend.contract.tokens.comparison import ComparedToken, TextComparison, TextCounts


def comparison_of(answer: TextComparison | ArrowAnswer) -> TextComparison:
    """The comparison; an Arrow file is deleted after reading."""
    return _read(Path(answer.path)) if isinstance(answer, ArrowAnswer) else answer


def _read(path: Path) -> TextComparison:
    import pyarrow as pa  # only a text of many thousand tokens needs it

    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
        columns = [table[name].to_pylist() for name in ComparedToken.__struct_fields__]
        rest = json.loads((table.schema.metadata or {})[b"answer"])
    path.unlink(missing_ok=True)
    tokens = [ComparedToken(*row) for row in zip(*columns, strict=True)]
    counts = [TextCounts(**each) for each in rest.pop("counts")]
    return TextComparison(tokens=tokens, counts=counts, **rest)
