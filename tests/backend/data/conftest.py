"""Gives the tests of `backend.data` a folder to write files in, and reads them with the source `files`."""

from pathlib import Path

import pytest

from backend.contract.errors import InputError
from backend.contract.spec import DataSection
from backend.data.rows import Rows
from backend.data.sources.files import Files, Settings
from backend.data.sources.source import ReadOptions


class Desk:
    """Writes files and reads them as the split `train`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reading = ReadOptions(folder / "cache")

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(self, *paths: Path | str, max_rows: int | None = None, split: str = "train", **settings: object) -> Rows:
        names = [str(path) for path in paths]
        data = DataSection(**{split: names[0] if len(names) == 1 else names}, max_rows=max_rows)  # type: ignore[arg-type]
        rows = Files(Settings.model_validate(settings)).read(split, data, self.reading)
        assert rows is not None
        return rows

    def refusal(self, *paths: Path | str, **settings: object) -> str:
        """The sentence with which reading is refused; nothing is left in the cache."""
        with pytest.raises(InputError) as caught:
            self.read(*paths, **settings)  # type: ignore[arg-type]
        assert caught.value.field == f"data.{settings.get('split', 'train')}"
        left = [path for path in self.reading.cache.glob("*") if path.suffix != ".lock"]
        assert left == [], "a refused file must leave nothing in the cache"
        sentence = str(caught.value)
        assert "\n" not in sentence
        return sentence


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
