"""Owns the shape of the models that can be chosen: those that are here, those of the hub, and how far a download is."""

import msgspec

GROUPS = ("demo", "recent", "run", "cache", "hub")
"""Where a model comes from, in the order in which groups are shown."""


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the chooser, judged for the run that is being set up."""

    name: str
    """What goes into `model.name_or_path`: a folder or a hub id."""
    group: str
    title: str = ""
    """What people call it; empty where `name` says it all."""
    use: str = ""
    """What it is for, in a few words."""
    model_type: str = ""
    parameters: int = 0
    """0 where nobody says."""
    size_mb: float = 0
    """Of its weights; 0 where nobody says."""
    licence: str = ""
    downloads: int | None = None
    """Of the last month, for models of the hub."""
    used: float | None = None
    """Seconds since 1970 of its last use here."""
    tasks: list[str] = []
    """Tasks for which its architecture has a head."""
    is_here: bool = True
    """Whether it needs no download."""
    started_mb: float = 0
    """What an unfinished download has brought already."""
    notes: list[str] = []
    """What to know before it is chosen, a sentence each."""
    problem: str = ""
    """Why it cannot be chosen for this run, with the way out; empty where it can."""


class ModelChoices(msgspec.Struct, frozen=True):
    """Answer of `model_choices {wish, recent}` and of `burnish models --json`: what is on this computer."""

    models: list[ModelChoice]


class HubSearch(msgspec.Struct, frozen=True):
    """Answer of `hub_search {words, wish}` and of `burnish hub search --json`: the most downloaded models first."""

    models: list[ModelChoice]
    is_cut: bool = False
    """Whether the hub has more of them."""


class HubModel(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `hub_model {name, revision, wish}`: what a download would bring."""

    choice: ModelChoice
    commit: str
    files: list[str]
    """What would be fetched; no second copy of the weights in another format."""
    total_mb: float
    left_mb: float
    """What is not here yet."""
    free_mb: float
    """Of the disk that the hub library's cache lies on."""
    page: str = ""
    """The address of its page."""


class DownloadedModel(msgspec.Struct, frozen=True):
    """Answer of `download_model {name, revision}` and of `burnish hub download --json`."""

    name: str
    commit: str
    folder: str
    fetched_mb: float
    """What came over the network this time."""
    seconds: float
