"""Owns the source `parallel`: pairs of text files whose lines belong together."""

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from backend.contract.errors import InputError
from backend.contract.spec import DataSection, Section
from backend.data.formats.detect import is_data_file
from backend.data.rows import Rows
from backend.data.sources._line_pairs import ADVANCED, Directions, Pair, read_pairs
from backend.data.sources.files import Files, naming
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import Reading

ENDINGS = (("source", "target"), ("src", "trg"), ("src", "tgt"))
_STEMS = {"train": ("train",), "validation": ("validation", "valid", "val", "dev", "eval"), "test": ("test",)}
"""What the files of a split are called in a folder."""


class Settings(Directions):
    """How the two files of a pair are found, and which way they are read."""

    source_ending: Annotated[str | None, Field(title="Ending of source files", json_schema_extra=ADVANCED)] = None
    """For Moses pairs such as `corpus.en` and `corpus.es`: `en`. Endings source, target, src, trg and tgt are known."""
    target_ending: Annotated[str | None, Field(title="Ending of target files", json_schema_extra=ADVANCED)] = None
    """For Moses pairs such as `corpus.en` and `corpus.es`: `es`."""


class Parallel:
    """Each split is a folder, the common beginning of a pair, one file of it, or a list of these; files may be gzipped."""

    title: ClassVar[str] = "Parallel text"
    description: ClassVar[str] = (
        "Two text files whose lines belong together: train.source and train.target, train.src and train.trg, "
        "or Moses pairs such as train.en and train.es"
    )
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ("train", "validation", "test")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings

    def read(self, split: str, data: DataSection, reading: Reading) -> Rows | None:
        """The rows of the split's pairs of files; None where `data` names none."""
        value = getattr(data, split)
        if value is None or isinstance(value, float | int):
            return None
        with naming(f"data.{split}"):
            names = value if isinstance(value, list) else [value]
            pairs = [self._pair(Path(name).expanduser(), split) for name in names]
            return read_pairs(pairs, self.settings, data.max_rows, reading)

    def read_file(self, path: Path, data: DataSection, reading: Reading) -> Rows:
        """A pair by its beginning or by one of its files; a file that has no partner holds sources; or a table."""
        if path.is_file() and is_data_file(path) and self._endings_of(path) is None and path.suffix != ".txt":
            return Files(FileSettings()).read_file(path, data, reading)
        alone = path.is_file() and (self._endings_of(path) is None or self._partner(path) is None)
        pair: Pair = (path, None) if alone else self._pair(path, None)
        return read_pairs([pair], self.settings, None, reading)

    def _pair(self, path: Path, split: str | None) -> Pair:
        """The two files. Raises InputError where one of them is missing, or neither is there."""
        if path.is_dir():
            stems = _STEMS.get(split or "", tuple(stem for some in _STEMS.values() for stem in some))
            found = [pair for stem in stems if (pair := self._pair_of(path / stem))]
            if not found:
                raise InputError(
                    f"{path} holds no pair of files such as {self._example(path / stems[0])}; {self._way_out}"
                )
            return found[0]
        if path.is_file() and (endings := self._endings_of(path)):
            partner = self._partner(path)
            if partner is None:
                raise InputError(f"{path} is there, but the file beside it that it belongs to is not; {self._way_out}")
            return (path, partner) if _plain(path).suffix[1:] == endings[0] else (partner, path)
        if pair := self._pair_of(path):
            return pair
        raise InputError(f"there is no pair of files such as {self._example(path)}; {self._way_out}")

    def _pair_of(self, beginning: Path) -> Pair | None:
        for first, second in self._endings:
            source, target = _existing(beginning, first), _existing(beginning, second)
            if source and target:
                return source, target
        return None

    def _partner(self, path: Path) -> Path | None:
        """The other file of the pair that this one belongs to."""
        plain = _plain(path)
        ending, beginning = plain.suffix[1:], plain.with_suffix("")
        others = [a if ending == b else b for a, b in self._endings if ending in (a, b)]
        return next((found for other in others if (found := _existing(beginning, other))), None)

    def _endings_of(self, path: Path) -> tuple[str, str] | None:
        return next((pair for pair in self._endings if _plain(path).suffix[1:] in pair), None)

    @property
    def _endings(self) -> tuple[tuple[str, str], ...]:
        own = self.settings.source_ending, self.settings.target_ending
        return ((own[0].lstrip("."), own[1].lstrip(".")),) if own[0] and own[1] else ENDINGS

    def _example(self, beginning: Path) -> str:
        first, second = self._endings[0]
        return f"{beginning}.{first} and {beginning.name}.{second}"

    @property
    def _way_out(self) -> str:
        return "name their folder or common beginning, and data.source_ending and data.target_ending for other endings"


SOURCE = Parallel


def _existing(beginning: Path, ending: str) -> Path | None:
    names = [f"{beginning.name}.{ending}{zipped}" for zipped in ("", ".gz")]
    return next((path for name in names if (path := beginning.with_name(name)).is_file()), None)


def _plain(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".gz" else path
