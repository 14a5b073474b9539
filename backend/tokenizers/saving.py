"""Writes a tokenizer that transformers can load: atomically, never over another one."""

import os
import shutil
from pathlib import Path

from backend.contract.errors import InputError
from backend.contract.output_file import check_output_folder, output_errors
from backend.models.saved_model import flush_to_disk
from backend.tokenizers import AnyTokenizer

_OF_A_TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
    "merges.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "chat_template.jinja",
)  # fmt: skip
_LAST = "tokenizer.json"
"""What makes a folder one with a tokenizer."""


def check_free(folder: Path, field: str) -> None:
    """Raises InputError if `folder` cannot take a new tokenizer; `field` is the option that named it."""
    if folder.exists() and not folder.is_dir():
        raise InputError("{field}: {folder} is a file; choose a new folder", field, field=field, folder=folder)
    if any((folder / name).exists() for name in _OF_A_TOKENIZER):
        raise InputError(
            "{field}: {folder} already contains a tokenizer; choose a new folder", field, field=field, folder=folder
        )
    check_output_folder(folder, field)
    above = next((path for path in (folder, *folder.absolute().parents) if path.exists()), None)
    if above is None or not above.is_dir() or not os.access(above, os.W_OK):
        raise InputError(
            "{field}: {above} is not writable; choose another folder", field, field=field, above=above or folder
        )


def save(tokenizer: AnyTokenizer, folder: Path, field: str) -> None:
    """Write to a new folder, or to one without a tokenizer. Raises InputError if it has one by now."""
    folder = folder.absolute()
    check_free(folder, field)
    made = folder.with_name(f".{folder.name}.{os.getpid()}")
    with output_errors(folder, field, folder.parent):
        made.mkdir(parents=True, exist_ok=True)
        try:
            tokenizer.save_pretrained(made)
            flush_to_disk(made)
            check_free(folder, field)
            _put_in_place(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _put_in_place(made: Path, folder: Path) -> None:
    if not folder.exists():
        made.rename(folder)
        return
    for path in sorted(made.iterdir(), key=lambda path: path.name == _LAST):
        path.rename(folder / path.name)
