"""Owns how a tokenizer is made from a column of data: learnt, measured beside another one, written."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from backend.contract import tokenizer_name
from backend.contract.places import is_offline
from backend.contract.spec.tokenizer_training import TokenizerTraining
from backend.contract.tokenizer_making import Compression, MadeTokenizer
from backend.run.column_texts import ColumnTexts
from backend.tokenizers import saving
from backend.tokenizers.compression import compression
from backend.tokenizers.loading import open_named
from backend.tokenizers.train import train

HELD_OUT = 0.05
"""Share of the rows where another tokenizer is compared with and nobody asked for one."""
LEARNING, PIECES, MEASURING = "Reading the texts", "Learning the pieces", "Measuring"
Say = Callable[[str, int, int], None]
"""Is told the stage and how far it is; a total of 0 is not known."""


@dataclass(frozen=True)
class Learnt:
    """A tokenizer that is not written yet."""

    tokenizer: Any
    texts: ColumnTexts
    compression: list[Compression]
    seconds: float

    def written(self, output: Path, field: str) -> MadeTokenizer:
        """Write it. Raises InputError where it cannot be written there."""
        saving.save(self.tokenizer, output, field)
        measured = [each if each.tokenizer else _named(each, str(output.absolute())) for each in self.compression]
        return MadeTokenizer(
            path=str(output.absolute()),
            vocabulary=len(self.tokenizer),
            rows=len(self.texts),
            held_out=self.texts.every > 0,
            compression=measured,
            seconds=self.seconds,
        )


def learn(texts: ColumnTexts, settings: TokenizerTraining, compare_with: str | None, say: Say) -> Learnt:
    """A new tokenizer, measured on held-out rows beside another one where it is to be compared. Raises InputError."""
    started = time.monotonic()
    other = open_named(compare_with, offline=is_offline()) if compare_with else None
    share = settings.held_out if settings.held_out is not None else HELD_OUT if other is not None else 0.0
    texts = texts.without(share)
    made = train(_told(texts, say), settings, lambda done, total, unit: say(LEARNING, done, total), len(texts))
    measured = []
    if other is not None or settings.held_out:
        say(MEASURING, 0, 0)
        measured = [compression(made, "", texts.measured())]
    if other is not None:
        measured.append(compression(other, tokenizer_name.read(str(compare_with)).tokenizer, texts.measured()))
    return Learnt(made, texts, measured, time.monotonic() - started)


def _told(texts: ColumnTexts, say: Say) -> Iterator[str]:
    yield from texts
    say(PIECES, 0, 0)


def _named(measured: Compression, name: str) -> Compression:
    return msgspec.structs.replace(measured, tokenizer=name)
