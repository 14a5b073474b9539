"""The `data` section: where rows come from, and which columns are used."""

from typing import Annotated

from pydantic import ConfigDict, Field

from backend.contract.spec.section import Section

Paths = str | list[str]


class DataSection(Section):
    """Which rows a run trains on. A source adds its own settings to these."""

    model_config = ConfigDict(extra="allow")

    source: Annotated[str, Field(title="Source")] = "files"
    """Where the data comes from, for example `files`, `hub` or `demo`."""
    train: Annotated[Paths | None, Field(title="Training data")] = None
    """A file, a list of files, a pattern or a folder; for a Hub dataset, the name of a split. If the files of a
    pattern or folder are named after splits (train, dev, test, …), each split uses its own."""
    validation: Annotated[Paths | float | None, Field(title="Validation data")] = None
    """Same as for training data, or a fraction of the training rows, for example 0.1."""
    test: Annotated[Paths | None, Field(title="Test data")] = None
    """Never used in training. Scored once at the end, with the final weights."""
    columns: Annotated[dict[str, str | list[str] | None], Field(title="Columns")] = {}
    """Maps the task's inputs to columns of your data, for example `{text: sentence, label: stars}`. If each of several
    labels has a column of its own, list them: `{labels: [politics, sport]}`."""
    max_rows: Annotated[int | None, Field(title="Max rows", ge=1, json_schema_extra={"advanced": True})] = None
    """Use at most this many rows of each split. Empty uses all."""
    split_seed: Annotated[
        int | None, Field(title="Split seed", ge=0, lt=2**32, json_schema_extra={"advanced": True})
    ] = None
    """Random seed for a validation fraction. Empty uses `training.seed`; the runs of a group share one, so that all are
    evaluated on the same rows."""
