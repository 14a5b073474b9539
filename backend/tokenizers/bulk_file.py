"""Owns the tokenising of a file's lines into an Arrow file, in constant memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.contract.errors import InputError
from backend.contract.output_file import whole_file
from backend.contract.tokens.options import TokenOptions
from backend.data.sources.source import Report
from backend.tokenizers import bulk
from backend.tokenizers.text_reading import MARK

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def write(
    tokenizer: "PreTrainedTokenizerBase", source: Path, target: Path, options: TokenOptions, report: Report
) -> tuple[int, int]:
    """Rows and tokens written: `ids`, `attention_mask` and `offsets` (begin and end after each other) per line."""
    import pyarrow as pa

    numbers, marks = pa.list_(pa.int32()), pa.list_(pa.int8())
    schema = pa.schema({"ids": numbers, "attention_mask": marks, "offsets": numbers})
    rows = tokens = 0
    lines = _Lines(source)
    with (
        whole_file(target, "--output", source) as beside,
        pa.OSFile(str(beside), "wb") as file,
        pa.ipc.new_file(file, schema) as writer,
    ):
        for block in bulk.encoded(tokenizer, iter(lines), options):
            begins = pa.array(block.begins, pa.int32())
            columns: list[Any] = [
                pa.ListArray.from_arrays(begins, pa.array(block.ids)),
                pa.ListArray.from_arrays(begins, pa.array(block.mask)),
                pa.ListArray.from_arrays(pa.array(block.begins * 2, pa.int32()), pa.array(block.offsets.ravel())),
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            rows, tokens = rows + len(block), tokens + len(block.ids)
            report(lines.read_so_far, lines.size, "bytes")
    return rows, tokens


class _Lines:
    """The lines of a UTF-8 file without their ends."""

    def __init__(self, path: Path) -> None:
        self._path, self.read_so_far = path, 0
        try:
            self.size = path.stat().st_size
        except OSError as error:
            raise InputError(f"--file {path}: {error.strerror}; check the file") from None

    def __iter__(self) -> Iterator[str]:
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                self.read_so_far += len(line)
                try:
                    text = (line.removeprefix(MARK) if number == 1 else line).decode()
                except UnicodeDecodeError:
                    raise InputError(f"--file {self._path}:{number}: it is not UTF-8 text; convert it first") from None
                yield text.rstrip("\r\n")
