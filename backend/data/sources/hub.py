"""The source `hub`: datasets from the Hugging Face Hub, from its cache, or from a folder with that layout.

If a data set needs a token, it is the hub library's own login or environment. Code that comes with a data set
is never run, and only formats that hold plain tables are read.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator

from backend.contract.errors import InputError
from backend.contract.messages import message
from backend.contract.safe_files import user_path
from backend.contract.spec import DataSection, Section
from backend.data.fingerprint import fingerprint
from backend.data.formats.class_labels import class_names
from backend.data.formats.columnar import plain_batch, plain_schema
from backend.data.formats.reader import PIECE_ROWS, check_width
from backend.data.row_cache import VERSION, load_cached_rows, open_writer
from backend.data.rows import Rows
from backend.data.sources.files import Files, prefix_errors
from backend.data.sources.files import Settings as FileSettings
from backend.data.sources.source import ReadOptions, check_apart, split_value

if TYPE_CHECKING:
    from datasets import DatasetBuilder

_TABLES = frozenset({"csv", "json", "parquet", "arrow", "text", "cache"})
"""Builders of `datasets` that read tables; others read images or audio, and one of them unpickles."""
_PLAIN_CSV: dict[str, Any] = {"keep_default_na": False, "na_values": [""]}
"""pandas would take "None", "NA" and "null" for missing."""
_PLAIN_SPLIT = re.compile(r"[\w.-]+")


class Settings(Section):
    """Which data set to use."""

    name: Annotated[str, Field(title="Dataset", min_length=1)]
    """Name on the Hub, for example `stanfordnlp/imdb`, or a folder with such a dataset."""
    configuration: Annotated[str | None, Field(title="Configuration")] = None
    """The configuration of a dataset that has several, for example `rte` of `nyu-mll/glue`."""
    revision: Annotated[str, Field(title="Revision", json_schema_extra={"advanced": True})] = "main"
    """Branch, tag or commit. A commit ensures that the data does not change."""

    @field_validator("name")
    @classmethod
    def _is_no_address(cls, name: str) -> str:
        if "://" in name:
            raise ValueError(message("enter the dataset's name, not a URL, for example stanfordnlp/imdb"))
        return name


class Hub:
    """`train`, `validation` and `test` name splits: `train`, `train[:10%]`, `train+test`."""

    title: ClassVar[str] = "Hugging Face Hub"
    description: ClassVar[str] = "A dataset from the Hub or its cache, by name, configuration and split"
    Settings: ClassVar[type[Section]] = Settings
    path_fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: Section) -> None:
        assert isinstance(settings, Settings)
        self.settings = settings

    def read(self, split: str, data: DataSection, reading: ReadOptions) -> Rows | None:
        """All rows of the split that `data` names."""
        value = split_value(split, data)
        if value is None:
            return None
        with prefix_errors(f"data.{split}"):
            check_apart(split, lambda one: _whole_or_slices(one, data))
        name = "+".join(value) if isinstance(value, list) else value
        with _explain_errors(self.settings.name, f"data.{split}"), _force_offline(reading.offline):
            builder = self._builder(reading)
        key = fingerprint(
            "hub", VERSION, self.settings.model_dump(), builder.hash, builder.config_id, name, data.max_rows
        )

        def write(folder: Path) -> None:
            with _explain_errors(self.settings.name, f"data.{split}"), _force_offline(reading.offline):
                stored, tables = self._tables(builder, name, data.max_rows)
                check_width(self.settings.name, stored)
                _copy(stored, tables, folder, data.max_rows, reading)

        title = f"{Path(self.settings.name).name if self._folder() else self.settings.name}[{name}]"
        return load_cached_rows(reading.cache, key, (title,), write, reading.report, continuous=False)

    def read_file(self, path: Path, data: DataSection, reading: ReadOptions) -> Rows:
        """The rows of a file in any known format."""
        return Files(FileSettings()).read_file(path, data, reading)

    def _folder(self) -> Path | None:
        path = user_path(self.settings.name)
        return path.absolute() if path.is_dir() else None

    def _builder(self, reading: ReadOptions) -> "DatasetBuilder":
        folder = self._folder()
        options: dict[str, Any] = {
            "path": str(folder or self.settings.name),
            "name": self.settings.configuration,
            "revision": None if folder else self.settings.revision,
            "cache_dir": str(reading.cache / "prepared") if folder else None,
        }
        builder = _load_builder(options)
        kind = _kind(builder)
        if kind not in _TABLES:
            raise InputError(
                "data.name: {name} contains {kind} data and no tables; choose another dataset",
                "data.name",
                name=self.settings.name,
                kind=kind,
            )
        if kind == "cache":
            self._check_revision(builder.hash)
        return builder

    def _check_revision(self, cached: str | None) -> None:
        # Without the hub `datasets` takes the newest copy in its cache, of whatever revision.
        if self.settings.revision not in {"main", cached}:
            raise InputError(
                "data.revision: the cache contains {name} at {cached}, and the Hub cannot be reached; go "
                "online once, or set data.revision to that revision",
                "data.revision",
                name=self.settings.name,
                cached=cached,
            )

    def _tables(
        self, builder: "DatasetBuilder", split: str, max_rows: int | None
    ) -> tuple[pa.Schema, Iterator[pa.Table]]:
        """The stored schema and the rows; if only a few rows of a large remote data set are needed, it streams them."""
        is_here = self._folder() or _kind(builder) == "cache" or Path(builder.cache_dir).is_dir()
        if max_rows is None or is_here or not _PLAIN_SPLIT.fullmatch(split):
            builder.download_and_prepare()
            dataset: Any = builder.as_dataset(split=split)  # one split gives one Dataset
            return dataset.features.arrow_schema, dataset.with_format("arrow").iter(batch_size=PIECE_ROWS)
        stream: Any = builder.as_streaming_dataset(split=split)
        tables = stream.with_format("arrow").take(max_rows).iter(batch_size=PIECE_ROWS)
        first = next(tables, None)
        if first is None:
            raise InputError("the split {split} has no rows; choose another split", split=repr(split))
        return stream.features.arrow_schema if stream.features else first.schema, chain([first], tables)


SOURCE = Hub


def _whole_or_slices(split: str, data: DataSection) -> list[str]:
    """The hub splits that make up a split; a slice counts as the whole if another split uses the whole."""
    named_splits = {one: split_value(one, data) for one in ("train", "validation", "test")}
    pieces = {
        one: [
            piece.strip() for name in (value if isinstance(value, list) else [value or ""]) for piece in name.split("+")
        ]
        for one, value in named_splits.items()
    }
    wholes = {piece for found in pieces.values() for piece in found if "[" not in piece}
    return [piece.partition("[")[0] if piece.partition("[")[0] in wholes else piece for piece in pieces[split] if piece]


def _load_builder(options: dict[str, Any]) -> "DatasetBuilder":
    """The builder that `datasets` finds; for CSV, one that does not treat "None", "NA" and "null" as missing values."""
    import datasets  # two seconds, which the catalog must not pay

    datasets.disable_progress_bars()
    try:
        builder = datasets.load_dataset_builder(**options)
    except ValueError as error:
        if "find cache" not in str(error):  # the cache is searched by the very options with which it was made
            raise
        return datasets.load_dataset_builder(**options, **_PLAIN_CSV)
    if _kind(builder) not in {"csv", "cache"}:
        return builder
    try:
        return datasets.load_dataset_builder(**options, **_PLAIN_CSV)
    except ValueError:
        return builder  # cached, and not from CSV


def _kind(builder: "DatasetBuilder") -> str:
    return type(builder).__module__.rsplit(".", 1)[-1]


def _copy(
    stored: pa.Schema, tables: Iterator[pa.Table], folder: Path, max_rows: int | None, reading: ReadOptions
) -> None:
    with open_writer(folder, plain_schema(stored), max_rows) as writer:
        for table in tables:
            for batch in table.combine_chunks().to_batches():
                lines = np.arange(writer.count + 1, writer.count + 1 + batch.num_rows)
                writer.append(plain_batch(batch, class_names(stored), writer.schema), lines, 0)
            reading.report(writer.count, max_rows or 0, "rows")
    if not writer.count:
        raise InputError("the split has no rows; choose another one")


@contextmanager
def _force_offline(wanted: bool) -> Iterator[None]:
    from datasets import config

    before = config.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = wanted or before
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE = before


@contextmanager
def _explain_errors(name: str, field: str) -> Iterator[None]:
    """Turn errors from `datasets` and the network into an InputError."""
    from datasets.exceptions import DatasetNotFoundError, DatasetsError
    from huggingface_hub.errors import HTTPError  # pyright: ignore[reportPrivateImportUsage]

    from backend.data.hub_answers import install_limits  # slow to import, as the library that it guards

    install_limits()
    try:
        yield
    except InputError as error:
        raise (error if error.field else InputError("{field}: {error}", field, field=field, error=error)) from None
    except DatasetNotFoundError:
        raise InputError(
            "data.name: {name} is not a Hub dataset that you have access to; check the name and "
            "data.revision, or sign in with: hf auth login",
            "data.name",
            name=repr(name),
        ) from None
    except (ConnectionError, HTTPError) as error:
        raise InputError(
            "data.name: {name} is not in the cache and the Hub cannot be reached ({class_name}); go "
            "online once, or specify the folder of a local copy",
            "data.name",
            name=repr(name),
            class_name=type(error).__name__,
        ) from None
    except (DatasetsError, OSError, ValueError, RuntimeError) as error:
        raise InputError(*_explain(name, field, " ".join(str(error).split()))) from None


def _explain(name: str, field: str, problem: str) -> tuple[str, str]:
    if found := re.search(
        r"(?:Unknown|Bad) split:? \W?(\w+)\W*(?:Should be one of|Available splits:) (\[.*?\])", problem
    ):
        return message(
            "{field}: {name} has no split {found}; choose one of {found_2}",
            field=field,
            name=name,
            found=repr(found[1]),
            found_2=found[2],
        ), field
    if "onfig name is missing" in problem or "BuilderConfig" in problem:
        return message(
            "data.configuration: {name} requires one of its configurations: {problem}", name=name, problem=problem
        ), "data.configuration"
    if "scripts are no longer supported" in problem:
        return (
            message(
                "data.name: {name} needs its own Python code, which Burnish never runs; try data.revision: "
                "refs/convert/parquet, or choose another dataset",
                name=name,
            ),
            "data.name",
        )
    return message(
        "data.name: {name} cannot be read ({problem}); check its name, configuration and files",
        name=name,
        problem=problem[:300],
    ), "data.name"
