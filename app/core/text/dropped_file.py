"""Owns what a file or folder that is dropped on the Tokenizer page is taken for."""

from pathlib import Path

from app.core.i18n import tr

NAMES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt")
ENDINGS = (".model", ".spm", ".tiktoken")
PATTERNS = tr("Tokenizers (tokenizer.json *.json *.model *.spm vocab.txt *.tiktoken);;All files (*)")
"""What a dialog offers that looks for a tokenizer's file."""
_TEXTS = (".txt", ".csv", ".tsv", ".jsonl", ".md", ".log", ".html", ".xml", ".py", ".conll")


def is_tokenizer(path: Path) -> bool:
    """Whether it is a tokenizer rather than a text; of a file beside its tokenizer the folder is meant."""
    name = path.name.lower()
    if path.is_dir() or name in NAMES or name.endswith(ENDINGS):
        return True
    return name.endswith(".json") and "tokenizer" in name


def tokenizer_of(path: Path) -> Path:
    """What to open: the file itself, or the folder of files that mean nothing alone."""
    return path.parent if path.name.lower() in ("tokenizer_config.json", "merges.txt") else path
