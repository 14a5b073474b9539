"""The source `tatoeba`: a language pair of the Tatoeba Challenge, from a folder, an archive or the network."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.spec import DataSection, Section
from backend.data import archive
from backend.data.cache import open_or_write
from backend.data.fingerprint import file_fingerprint, fingerprint
from backend.data.row_cache import read_facts
from backend.data.rows import Rows
from backend.data.sources._parallel_text import (
    ADVANCED,
    ENDINGS,
    Direction,
    challenge_pair,
    has_dev,
    read_one,
    read_pairs,
)
from backend.data.sources.files import prefix_errors
from backend.data.sources.source import ReadOptions, RecognisedSource, check_apart, is_fraction, split_value

ADDRESS = "https://object.pouta.csc.fi/Tatoeba-Challenge-v2023-09-26/{pair}.tar"
"""The release of 2023 (https://github.com/Helsinki-NLP/Tatoeba-Challenge/blob/master/data/README.md)."""
_FILES = re.compile(r"(train|dev|test)\.(src|trg|id)(\.gz)?")


class Settings(Direction):
    """Which language pair to use, and in which direction."""

    folder: Annotated[str | None, Field(title="Folder or archive", json_schema_extra={"path": True})] = None
    """The folder of a language pair with train.src, train.trg and so on (.gz is fine), or its .tar or .tar.gz
    archive."""
    pair: Annotated[str | None, Field(title="Language pair", json_schema_extra={"examples": ["eng-spa"]})] = None
    """Without a folder: the language pair to download once, such as `eng-spa`, as three-letter codes in alphabetical
    order. Archives of large languages are several GB."""
    address: Annotated[str, Field(title="Download URL", json_schema_extra=ADVANCED)] = ADDRESS
    """Where archives are downloaded from. `{pair}` is replaced by the language pair."""

    @field_validator("pair")
    @classmethod
    def _is_pair(cls, pair: str | None) -> str | None:
        if pair is not None and not re.fullmatch(r"\w+-\w+", pair):
            raise ValueError(message("a pair is two language codes with a hyphen, such as eng-spa"))
        return pair


class Tatoeba:
    """`train`, `validation` and `test` name the challenge's `train`, `dev` and `test`; `train` is predefined.

    By default `validation` is `dev`, or `test` if the pair has no `dev`.
    """

    title: ClassVar[str] = "Tatoeba Challenge"
    description: ClassVar[str] = (
        "Sentences and their translations: the folder or archive of a language pair, or downloaded by name"
    )
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ("folder",)
    own_splits: ClassVar[tuple[str, ...]] = ("train", "validation")

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings

    @staticmethod
    def recognise(paths: Sequence[Path]) -> RecognisedSource | None:
        """Recognises a folder with train.src, train.trg and the challenge's id file, or named for a language pair."""
        if len(paths) != 1 or not paths[0].is_dir():
            return None
        names = {path.name.removesuffix(".gz") for path in paths[0].iterdir()}
        is_pair = {"train.src", "train.trg"} <= names
        is_challenge = is_pair and ("train.id" in names or bool(re.fullmatch(r"[a-z]{3}-[a-z]{3}", paths[0].name)))
        settings = {"folder": str(paths[0])}
        return (
            RecognisedSource(message("a language pair of the Tatoeba Challenge"), "seq2seq_lm", settings)
            if is_challenge
            else None
        )

    def read(self, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
        """The rows of the split; None if `data` names none (or a fraction)."""
        value = split_value(split, data)
        if is_fraction(split, data) or (value is None and split not in self.own_splits):
            return None
        folder = pair_folder(self.settings, reading)
        with prefix_errors(f"data.{split}"):
            # A pair without `dev` is evaluated on `test` unless another split is named, so this is not an error.
            check_apart(
                split, lambda one: self._stems(folder, one, data) if one == "train" or split_value(one, data) else []
            )
            pairs = [challenge_pair(folder, stem) for stem in self._stems(folder, split, data)]
            return read_pairs(pairs, self.settings, data.max_rows, reading)

    def _stems(self, folder: Path, split: str, data: DataSection) -> list[str]:
        value = split_value(split, data)
        if is_fraction(split, data) or (value is None and split not in self.own_splits):
            return []
        return value if isinstance(value, list) else [value or _default_stem(folder, split)]

    def read_file(self, path: Path, data: DataSection, reading: ReadOptions) -> Rows:
        """A file of sources, with its targets if they are beside it, or a table."""
        return read_one(path, self.settings, ENDINGS, data, reading)


SOURCE = Tatoeba


def pair_folder(settings: Settings, reading: ReadOptions) -> Path:
    """The folder with the pair's files: as given, or unpacked into the cache. Raises InputError."""
    if settings.folder is None:
        if settings.pair is None:
            raise InputError(
                "data.pair: specify a language pair such as eng-spa, or set data.folder to its folder", "data.pair"
            )
        return _fetch_pair(settings.pair, settings.address.replace("{pair}", settings.pair), reading)
    path = Path(settings.folder)
    if path.is_dir():
        return path
    if not path.is_file():
        raise InputError(
            "data.folder: {path} is neither a folder nor an archive; check the path", "data.folder", path=path
        )
    with prefix_errors("data.folder"):
        return _unpack(lambda: path, fingerprint("tatoeba", file_fingerprint(path)), reading)


def _fetch_pair(pair: str, address: str, reading: ReadOptions) -> Path:
    downloads = reading.cache / "downloads"
    by_hand, fetched = downloads / f"{pair}.tar", downloads / f"{fingerprint(address)}.tar"
    name = fingerprint("tatoeba", address)

    def fetch_archive() -> Path:
        if by_hand.is_file() or fetched.is_file():
            return by_hand if by_hand.is_file() else fetched
        if reading.offline:
            raise archive.DownloadError(message("network access is not allowed"))
        archive.fetch(address, fetched, reading.report)
        return fetched

    try:
        with prefix_errors("data.pair"):
            folder = _unpack(fetch_archive, name, reading)
    except archive.DownloadError as problem:
        raise InputError(
            "data.pair: {address} cannot be downloaded ({problem}); check the pair and the network, "
            "or put the file in {downloads} as {name}, or set data.folder to it",
            "data.pair",
            address=address,
            problem=problem,
            downloads=downloads,
            name=by_hand.name,
        ) from None
    except InputError:
        fetched.unlink(missing_ok=True)  # it is unusable, so the next run downloads it again
        raise
    fetched.unlink(missing_ok=True)  # its files are in the cache now
    return folder


def _unpack(bring: Callable[[], Path], name: str, reading: ReadOptions) -> Path:
    """The cache folder of that name, filled if missing from the archive that `bring` returns."""

    def write(folder: Path) -> None:
        path = bring()
        found = archive.unpack(path, folder, _FILES, reading.report)
        if not found:
            raise InputError(
                "{name} has no train.src, dev.src or test.src, so it is not a language pair of the Tatoeba Challenge",
                name=path.name,
            )
        sizes = {one.name: one.stat().st_size for one in folder.iterdir()}
        (folder / "facts.json").write_text(json.dumps({"sizes": sizes}))

    def open_folder(folder: Path) -> Path:
        read_facts(folder)
        return folder

    return open_or_write(reading.cache / name, open_folder, write, reading.report)


def _default_stem(folder: Path, split: str) -> str:
    return "train" if split == "train" else "dev" if has_dev(folder) else "test"
