"""The source `parallel`: pairs of text files with matching lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from backend.contract.messages import message
from backend.contract.safe_files import user_path
from backend.contract.spec import DataSection, Section
from backend.data.rows import Rows
from backend.data.sources._parallel_text import (
    ADVANCED,
    ENDINGS,
    STEMS,
    Direction,
    Endings,
    Pair,
    find_pair,
    pairs_among,
    read_one,
    read_pairs,
)
from backend.data.sources.files import prefix_errors
from backend.data.sources.source import ReadOptions, RecognisedSource, check_apart, split_value


class Settings(Direction):
    """How the two files of a pair are found, and in which direction they are read."""

    source_ending: Annotated[str | None, Field(title="Source file extension", json_schema_extra=ADVANCED)] = None
    """For Moses pairs such as `corpus.en` and `corpus.es`: `en`. The extensions source, target, src, trg and tgt are
    detected."""
    target_ending: Annotated[str | None, Field(title="Target file extension", json_schema_extra=ADVANCED)] = None
    """For Moses pairs such as `corpus.en` and `corpus.es`: `es`."""


class Parallel:
    """Each split is a folder, the prefix of a pair, one of its files, or a list of these; files may be gzipped."""

    title: ClassVar[str] = "Parallel text"
    description: ClassVar[str] = (
        "Two text files with matching lines: train.source and train.target, train.src and train.trg, "
        "or Moses pairs such as train.en and train.es"
    )
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings

    @staticmethod
    def recognise(paths: Sequence[Path]) -> RecognisedSource | None:
        """Recognises files that each have a partner beside them, by known extensions or two language codes."""
        found = pairs_among(paths)
        if found is None:
            return None
        endings, splits = found
        own = {} if endings in ENDINGS else {"source_ending": endings[0], "target_ending": endings[1]}
        what = message(
            "pairs of text files (.{endings} and .{endings_2}) with matching lines",
            endings=endings[0],
            endings_2=endings[1],
        )
        return RecognisedSource(what, "seq2seq_lm", {**splits, **own})

    def read(self, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
        """The rows of the split's pairs of files; None if `data` names none."""
        if split_value(split, data) is None:
            return None
        with prefix_errors(f"data.{split}"):
            check_apart(split, lambda one: [source for source, _ in self._pairs(one, data)])
            return read_pairs(self._pairs(split, data), self.settings, data.max_rows, reading)

    def _pairs(self, split: str, data: DataSection) -> list[Pair]:
        value = split_value(split, data)
        names = value if isinstance(value, list) else [value] if value is not None else []
        return [find_pair(user_path(name), STEMS[split], self._endings) for name in names]

    def read_file(self, path: Path, data: DataSection, reading: ReadOptions) -> Rows:
        """A pair given by its prefix or one of its files; a file without a partner holds sources; or a table."""
        return read_one(path, self.settings, self._endings, data, reading)

    @property
    def _endings(self) -> Endings:
        own = self.settings.source_ending, self.settings.target_ending
        return ((own[0].lstrip("."), own[1].lstrip(".")),) if own[0] and own[1] else ENDINGS


SOURCE = Parallel
