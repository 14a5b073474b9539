"""The interface of a data source: it reads the rows of the splits that the `data` section names."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from backend.contract.errors import InputError
from backend.contract.spec import DataSection, Section
from backend.data.rows import Rows

Report = Callable[[int, int, str], None]
"""Called with (done, total, unit) now and then; total 0 is unknown. It may raise to stop the work."""


@dataclass(frozen=True)
class ReadOptions:
    """How a source reads: its cache folder, the progress callback, and whether the network may be used."""

    cache: Path
    report: Report = lambda done, total, unit: None
    offline: bool = False


@dataclass(frozen=True)
class RecognisedSource:
    """What a source says about files that it recognises by content."""

    what: str
    """The kind of data in a few words that follow "this is", such as `the GLUE task MRPC`."""
    task: str = ""
    """The task that such data is made for."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The source's own keys of the `data` section, and those of its splits that follow from the files."""


class Source(Protocol):
    """One kind of data source; a module of `backend.data.sources` exports its class as `SOURCE`."""

    title: ClassVar[str]
    description: ClassVar[str]
    Settings: ClassVar[type[Section]]
    """The source's own keys of the `data` section."""
    path_fields: ClassVar[tuple[str, ...]]
    """Keys of the `data` section that hold paths, made absolute from the spec file's folder."""

    # A source whose splits are there without being named says so: own_splits: ClassVar[tuple[str, ...]]
    # A source that knows its files by their content has `recognise(paths: Sequence[Path]) -> RecognisedSource | None` as a static
    # method; it is asked about one folder, about the files of a folder or a drop together, and about each file alone.

    def __init__(self, settings: Section) -> None: ...

    def read(self, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
        """All rows of `train`, `validation` or `test` as `data` names them; None if it names none (or a fraction).

        Raises InputError in one sentence that says what to do, also if the split shares a file with an earlier one
        (`check_apart`).
        """
        ...

    def read_file(self, path: Path, data: DataSection, reading: ReadOptions) -> Rows:
        """The rows of another file in this source's format (`burnish predict --data FILE`)."""
        ...


def split_value(split: str, data: DataSection) -> str | list[str] | None:
    """What `data` names for a split; None if it names nothing, or a fraction of the training rows."""
    value = getattr(data, split)
    return None if isinstance(value, float | int) else value


def is_fraction(split: str, data: DataSection) -> bool:
    """Whether the split is a fraction of the training rows, which no source reads."""
    return isinstance(getattr(data, split), float | int)


_SPLITS = {"train": "training", "validation": "validation", "test": "test"}


def check_apart(split: str, parts_of: Callable[[str], Sequence[Path | str]]) -> None:
    """Raises InputError if a part of the split, a file or a name, also belongs to an earlier split.

    `parts_of` returns the parts of a split, nothing if none are named.
    """
    own: dict[object, Path | str] = {}
    for earlier in [*_SPLITS][: [*_SPLITS].index(split)]:
        own = own or {_identity(part): part for part in parts_of(split)}
        others: Sequence[Path | str] = ()
        with suppress(InputError):  # the earlier split's own reading says what is wrong with it
            others = parts_of(earlier)
        for part in others:
            if shared := own.get(_identity(part)):
                name, kind = shared.name if isinstance(shared, Path) else shared, _SPLITS[earlier]
                raise InputError(
                    "{name} is also used as {kind} data; choose other data for data.{key}, or list the files "
                    "of data.{earlier} one by one without it",
                    name=name,
                    kind=kind,
                    key=split,
                    earlier=earlier,
                )


def _identity(part: Path | str) -> object:
    """An identity that is the same for every path to a file."""
    if not isinstance(part, Path):
        return part
    try:
        status = part.stat()
    except OSError:
        return part.absolute()
    return status.st_dev, status.st_ino
