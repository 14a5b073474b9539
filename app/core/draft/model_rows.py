"""The rows of the model list: their groups, and the text of each cell."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.core import formatting
from app.core.heading import GroupHeading
from app.core.i18n import thin, tr
from backend.contract.rpc.models import GROUPS, ModelChoice

HEADINGS = {
    "demo": tr("Demo models · included with Burnish, no network needed"),
    "recent": tr("Recently used"),
    "run": tr("From your runs · continue training from one"),
    "cache": tr("On this computer · in the Hub cache"),
    "hub": tr("On the Hub"),
}
COLUMNS = {
    "model": tr("Model"),
    "family": tr("Family"),
    "parameters": tr("Parameters"),
    "size": tr("Size"),
    "licence": tr("License"),
    "used": tr("Used"),
    "suitability": tr("For this run"),
}
"""Name → title."""
ON_HUB = {**COLUMNS, "used": tr("Downloads")}
"""The same for models of the hub."""


Line = ModelChoice | GroupHeading


@dataclass(frozen=True)
class ModelFilter:
    """What the user wants to see; empty fields filter nothing."""

    words: str = ""
    groups: tuple[str, ...] = GROUPS
    task: str = ""
    fitting: bool = False


def lines(models: Iterable[ModelChoice], sought: ModelFilter) -> list[Line]:
    """The matching models, by group; a hub model that is already here is listed only once."""
    found = [one for one in models if is_sought(one, sought)]
    local_names = {one.name for one in found if one.group != "hub"}
    made: list[Line] = []
    for group in sought.groups:
        members = [one for one in found if one.group == group and not (group == "hub" and one.name in local_names)]
        if members:
            made += [GroupHeading(HEADINGS[group], len(members)), *members]
    return made


def is_sought(model: ModelChoice, sought: ModelFilter) -> bool:
    """Whether a model matches all words and the task, and has no problem if only fitting ones are wanted."""
    if model.group not in sought.groups or (sought.fitting and model.problem):
        return False
    if sought.task and sought.task not in model.tasks:
        return False
    if model.group == "hub":
        return True  # the hub has looked for the words itself
    text = " ".join((model.name, model.title, model.use, model.model_type, model.licence)).casefold()
    return all(word in text for word in sought.words.casefold().split())


def title(model: ModelChoice) -> str:
    """A model's title in the list."""
    return model.title or model.name


def under_title(model: ModelChoice) -> str:
    """The small second line: what it is for, or where it is."""
    if model.use:
        return model.use
    return formatting.short_path(model.name, 3) if model.title and model.title != model.name else ""


def cell(model: ModelChoice, column: str) -> str:
    """The text of one cell; `column` is one of COLUMNS."""
    return _CELLS[column](model)


def usage_words(model: ModelChoice) -> str:
    """The hub's download count, or when it was last used here."""
    if model.downloads is not None:
        return formatting.short_count(model.downloads)
    return formatting.moment(model.used) if model.used is not None else "–"


def suitability(model: ModelChoice) -> str:
    """Whether it fits the run, in two words."""
    if model.problem:
        return tr("Does not fit")
    if model.started_mb:
        return tr("Partly downloaded")
    if not model.is_here and not model.model_type:
        return tr("Not downloaded")
    return tr("Fits, see note") if model.notes else tr("Fits") if model.model_type else tr("Unknown")


def kind(model: ModelChoice) -> str:
    """The colour of the suitability, also shown by its words and icon: success, warning, neutral or danger."""
    if model.problem:
        return "danger"
    if model.notes or model.started_mb:
        return "warning"
    return "success" if model.model_type else "neutral"


def sentences(model: ModelChoice) -> list[str]:
    """Everything to say about a model before it is chosen; obstacles first."""
    sentences = [formatting.sentence(model.problem)] if model.problem else []
    if model.started_mb:
        sentences.append(
            tr(
                "{started_mb} already downloaded. The download resumes from there.",
                started_mb=formatting.megabytes(model.started_mb),
            )
        )
    return [f"{one}." if one[-1:] not in ".!?" else one for one in [*sentences, *map(thin, model.notes)]]


def spoken_line(model: ModelChoice) -> str:
    """A whole line for screen readers."""
    downloads = tr("{used} downloads", used=usage_words(model)) if model.downloads is not None else ""
    facts = [
        title(model),
        under_title(model),
        *(cell(model, one) for one in COLUMNS if one not in ("model", "used")),
        downloads,
    ]
    return ", ".join([one for one in facts if one and one != "–"] + sentences(model))


def counts(models: Sequence[ModelChoice]) -> dict[str, int]:
    """How many models each group has."""
    return {group: sum(one.group == group for one in models) for group in GROUPS}


_CELLS: dict[str, Callable[[ModelChoice], str]] = {
    "model": title,
    "family": lambda model: model.model_type or "–",
    "parameters": lambda model: formatting.short_count(model.parameters) if model.parameters else "–",
    "size": lambda model: formatting.megabytes(model.size_mb) if model.size_mb else "–",
    "licence": lambda model: model.licence or "–",
    "used": usage_words,
    "suitability": suitability,
}
