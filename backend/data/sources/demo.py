"""Owns the source `demo`: the data that Burnish carries with it, so that a first run needs no network and no files."""

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from backend.contract.errors import InputError
from backend.contract.resources import resource
from backend.contract.spec import DataSection, Section
from backend.data.rows import Rows
from backend.data.sources.files import Files
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import Reading


class Settings(Section):
    """Which embedded data."""

    name: Annotated[str, Field(title="Data", json_schema_extra={"examples": ["sentiment"]})] = "sentiment"
    """`sentiment`: 3,000 sentences from reviews, praise or complaint."""


class Demo:
    """Embedded data: `train` and `validation` are known by themselves; a fraction for `validation` is obeyed."""

    title: ClassVar[str] = "Demo"
    description: ClassVar[str] = "Small real data that Burnish carries with it, to try everything at once"
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ()
    own_splits: ClassVar[tuple[str, ...]] = ("train", "validation")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings
        self._files = Files(FileSettings(format="csv"))

    def read(self, split: str, data: DataSection, reading: Reading) -> Rows | None:
        """The embedded rows of the split, whatever name `data` gives it; None where there are none."""
        if isinstance(getattr(data, split), float | int):
            return None
        path = self._folder() / f"{split}.csv"
        if not path.is_file():
            return None
        return self._files.read(split, data.model_copy(update={split: str(path)}), reading)

    def read_file(self, path: Path, data: DataSection, reading: Reading) -> Rows:
        """Rows in a file of any known format."""
        return Files(FileSettings()).read_file(path, data, reading)

    def _folder(self) -> Path:
        folder = resource("demo") / self.settings.name
        known = sorted(path.parent.name for path in resource("demo").glob("*/train.csv"))
        if self.settings.name not in known:
            raise InputError(
                f"data.name: there is no demo data {self.settings.name!r}; there is {', '.join(known)}", "data.name"
            )
        return folder


SOURCE = Demo
