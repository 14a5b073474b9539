"""Creates a tokenizer from a column of data: trains it, measures it beside another one, saves it."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from backend.contract.spec.tokenizer_training import TokenizerTraining
from backend.contract.tokens import options
from backend.contract.tokens.training import Compression, TrainedTokenizer
from backend.inspect.column_texts import ColumnTexts
from backend.tokenizers import saving
from backend.tokenizers.loading import open_named
from backend.tokenizers.token_counts import measure_compression
from backend.tokenizers.train import train
from backend.tokenizers.trainer_progress import Say

HELD_OUT = 0.05
"""Default fraction of held-out rows when there is another tokenizer to compare with."""
MEASURING = "Measuring"


@dataclass(frozen=True)
class LearnedTokenizer:
    """A trained tokenizer that is not saved yet."""

    tokenizer: Any
    texts: ColumnTexts
    compression: list[Compression]
    seconds: float

    def save(self, output: Path, field: str) -> TrainedTokenizer:
        """Save it. Raises InputError if it cannot be saved there."""
        saving.save(self.tokenizer, output, field)
        measured = [each if each.tokenizer else _named(each, str(output.absolute())) for each in self.compression]
        return TrainedTokenizer(
            path=str(output.absolute()),
            vocabulary=len(self.tokenizer),
            rows=len(self.texts),
            held_out=self.texts.every > 0,
            compression=measured,
            seconds=self.seconds,
        )


def learn(texts: ColumnTexts, settings: TokenizerTraining, compare_with: str | None, say: Say) -> LearnedTokenizer:
    """Train a tokenizer, measured on held-out rows beside another one if requested. Raises InputError."""
    started = time.monotonic()
    other = open_named(compare_with) if compare_with else None
    share = settings.held_out if settings.held_out is not None else HELD_OUT if other is not None else 0.0
    texts = texts.hold_out(share)
    made = train(texts, settings, say, len(texts))
    measured = []
    if other is not None or settings.held_out:
        say(MEASURING, 0, 0, "")
        measured = [measure_compression(made, "", texts.held_out_texts())]
    if other is not None:
        measured.append(
            measure_compression(other, options.parse_name(str(compare_with)).tokenizer, texts.held_out_texts())
        )
    return LearnedTokenizer(made, texts, measured, time.monotonic() - started)


def _named(measured: Compression, name: str) -> Compression:
    return msgspec.structs.replace(measured, tokenizer=name)
