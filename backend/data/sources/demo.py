"""The source `demo`: data included with Burnish, so that a first run needs neither network nor files."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.spec import DataSection, Section
from backend.data.rows import Rows
from backend.data.sources._parallel_text import Direction, challenge_pair, read_pairs
from backend.data.sources.files import Files
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import ReadOptions, is_fraction


class Settings(Section):
    """Which embedded data set to use."""

    name: Annotated[str, Field(title="Data", json_schema_extra={"examples": ["sentiment", "austen", "eng-spa"]})] = (
        "sentiment"
    )
    """`sentiment`: 3,000 positive or negative sentences from reviews; `austen`: six novels, one of them for
    validation; `eng-spa`: 31,000 Bible verses in English and Spanish."""


class Demo:
    """Embedded data: `train` and `validation` are predefined; a fraction for `validation` is respected."""

    title: ClassVar[str] = "Demo"
    description: ClassVar[str] = "Small real datasets included with Burnish, to try everything right away"
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ()
    own_splits: ClassVar[tuple[str, ...]] = ("train", "validation")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings

    def read(self, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
        """The embedded rows of the split, whatever name `data` gives it; None if there are none."""
        if is_fraction(split, data):
            return None
        name = self.settings.name
        if name not in _DATA:
            raise InputError(
                "data.name: there is no demo dataset {name}; choose one of {data}",
                "data.name",
                name=repr(name),
                data=", ".join(_DATA),
            )
        return _DATA[name](resource("demo") / name, split, data, reading)

    def read_file(self, path: Path, data: DataSection, reading: ReadOptions) -> Rows:
        """The rows of a file in any known format."""
        return Files(FileSettings()).read_file(path, data, reading)


def _table(folder: Path, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
    return _of_files([folder / f"{split}.csv"] if split != "test" else [], split, data, reading)


def _novels(folder: Path, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
    measured = folder / "persuasion.txt"
    novels = {"train": sorted(set(folder.glob("*.txt")) - {measured}), "validation": [measured]}
    return _of_files(novels.get(split, []), split, data, reading)


def _verses(folder: Path, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
    if split == "test":
        return None
    pair = challenge_pair(folder, "train" if split == "train" else "test")
    return read_pairs([pair], Direction(), data.max_rows, reading)


def _of_files(paths: list[Path], split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
    names = [str(path) for path in paths]
    return Files(FileSettings()).read(split, data.model_copy(update={split: names or None}), reading)


_DATA: dict[str, Callable[[Path, str, DataSection, ReadOptions], Rows | None]] = {
    "sentiment": _table,
    "austen": _novels,
    "eng-spa": _verses,
}

SOURCE = Demo
