"""Answers about models: those available here and on the hub, what each contains, and who is logged in to the hub."""

import msgspec

GROUPS = ("demo", "recent", "run", "cache", "hub")
"""Where a model comes from, in the order in which groups are shown."""


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One model in the chooser, judged for the run being set up."""

    name: str
    """What goes into `model.name_or_path`: a folder or a hub id."""
    group: str
    title: str = ""
    """What people call it; empty where `name` says it all."""
    use: str = ""
    """What it is for, in a few words."""
    model_type: str = ""
    parameters: int = 0
    """0 if unknown."""
    size_mb: float = 0
    """Size of its weights; 0 if unknown."""
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
    """Answer of `model_choices {needs, recent}` and of `burnish models --json`: the models on this computer."""

    models: list[ModelChoice]


class CachedModel(msgspec.Struct, frozen=True):
    """A model in the hub library's cache."""

    name: str
    size_mb: float


class CachedModels(msgspec.Struct, frozen=True):
    """Answer of `cached_models {}`: models that need no download, most recently used first."""

    models: list[CachedModel]


class ModelDescription(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `describe_model {name_or_path, revision, task}`: what a model folder or hub id contains."""

    name: str
    folder: str = ""
    found: str = ""
    """`folder`, `cache`, `hub`, or `converted` for the copy of old weights in safetensors."""
    architecture: str = ""
    model_type: str = ""
    parameters: int = 0
    size_mb: float = 0
    weights_format: str = ""
    """`safetensors`, `bin` or `flax` (must be converted once), `none`, `lfs-pointer`, `broken`."""
    dtype: str = ""
    licence: str = ""
    commit: str = ""
    max_length: int | None = None
    vocabulary: int = 0
    labels: list[str] = []
    tokenizer: str = ""
    """One sentence: which tokenizer and whether it fits."""
    tokenizer_fits: bool = True
    safe: bool = True
    needs_remote_code: bool = False
    code: dict[str, str] = {}
    """Of a model that runs Python code of its own: whose code (hub id or folder) → which version."""
    code_agreed: bool = False
    """Whether the user has approved the current version of that code."""
    code_files: list[str] = []
    """The Python files that come with it."""
    needs_conversion: bool = False
    notes: list[str] = []
    """Sentences worth reading before starting, for example that a new head will be made."""
    problem: str = ""
    """Why the model cannot be used for the task, with the way out; empty where it can."""


class ModelCode(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `model_code {target, revision}`, and of `agree_to_code` with the `code` shown to the user."""

    code: dict[str, str] = {}
    """Whose code (hub id or folder) → which version; empty where nothing of its own runs."""
    files: list[str] = []
    folders: list[str] = []
    agreed: bool = False


class HubSearch(msgspec.Struct, frozen=True):
    """Answer of `hub_search {words, needs}` and of `burnish hub search --json`: most downloaded models first."""

    models: list[ModelChoice]
    is_cut: bool = False
    """Whether the hub has more of them."""


class HubModel(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `hub_model {name, revision, needs}`: what would be downloaded."""

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


class HubAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Who is logged in to the model hub. The token itself is never part of an answer."""

    name: str = ""
    """Empty if not signed in, or if it cannot be determined now."""
    full_name: str = ""
    organisations: list[str] = []
    has_token: bool = False
    from_environment: bool = False
    """The token comes from an environment variable, which takes precedence over the stored one."""
    note: str = ""
    """Why the name is not known although there is a token, as a sentence."""
    token_file: str = ""
    """Where the hub library keeps the token."""


class ScoredModel(msgspec.Struct, frozen=True, kw_only=True):
    """How one form of a model answers the validation rows of its run."""

    file: str
    """Its name in the folder; empty for the engine's own model."""
    megabytes: float
    rows_per_second: float
    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    changed: float
    """The share of rows whose answer is not the engine's."""
    largest_difference: float
    """Of any probability or number in the predictions."""
    refused: str = ""
    """Why it was not kept, as a sentence."""


class OnnxExport(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `export_onnx {run, folder, int8}`: what was written, and its proof; the first model is the engine's own."""

    folder: str
    rows: int
    metric: str
    """By which a model in 8 bits is kept or refused; empty if there is none."""
    models: list[ScoredModel]
