"""Owns the `data` section: where rows come from and which columns carry what."""

from typing import Annotated

from pydantic import ConfigDict, Field

from backend.contract.spec.section import Section

Paths = str | list[str]


class DataSection(Section):
    """Which rows a run trains on. A source adds its own settings beside these."""

    model_config = ConfigDict(extra="allow")

    source: Annotated[str, Field(title="Source")] = "files"
    """How the data is stored, for example `files`, `hub` or `demo`."""
    train: Annotated[Paths | None, Field(title="Training data")] = None
    """A file, a list of files, a pattern or a folder; for a hub data set the name of a split. Of a pattern or folder whose
    files are named for several splits (train, dev, test …) each split takes its own."""
    validation: Annotated[Paths | float | None, Field(title="Validation data")] = None
    """The same, or a fraction of the training rows, for example 0.1."""
    test: Annotated[Paths | None, Field(title="Test data")] = None
    """Never seen in training; scored once at the end with the final weights."""
    columns: Annotated[dict[str, str | None], Field(title="Columns")] = {}
    """Which column of the data plays which part of the task, for example `{text: sentence, label: stars}`."""
    max_rows: Annotated[int | None, Field(title="Most rows", ge=1, json_schema_extra={"advanced": True})] = None
    """Use only this many rows of each split; empty uses all."""
