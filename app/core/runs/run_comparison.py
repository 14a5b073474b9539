"""What to draw for compared runs: the curves that any of them has, and names that tell the runs apart."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.core import formatting
from app.core.backend_words import capitalize, translate_word
from app.core.i18n import tr
from app.core.runs.run_library import RunSummary
from app.core.runs.run_state import RunState
from app.core.runs.series import Series
from app.core.setting_titles import title_of_key

_OF_STEPS = {
    "loss": tr("Training loss"),
    "learning_rate": tr("Learning rate"),
    "gradient_norm": tr("Gradient norm"),
    "rows_per_second": tr("Rows per second"),
    "tokens_per_second": tr("Tokens per second"),
    "memory_mb": tr("Memory (MB)"),
    "device_memory_mb": tr("GPU memory (MB)"),
}
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}-\d{4}-")


@dataclass(frozen=True)
class CurveKind:
    """One kind of curve; `measured` at evaluations, else at every step."""

    key: str
    measured: bool = False

    @property
    def title(self) -> str:
        """The display title."""
        if not self.measured:
            return _OF_STEPS[self.key]
        return tr("Evaluation loss") if self.key == "loss" else formatting.metric_title(self.key)

    def of(self, state: RunState) -> Series | None:
        """The run's points on this curve."""
        return (state.metric_series if self.measured else state.series).get(self.key)


def curves_of(states: Iterable[RunState]) -> list[CurveKind]:
    """Every curve of any run: the losses, the metrics, then those about the computation."""
    states = list(states)
    metrics = dict.fromkeys(name for state in states for name in state.metric_series)
    steps = [CurveKind(key) for key in _OF_STEPS if any(key in state.series for state in states)]
    losses = [CurveKind("loss", measured=True)] if "loss" in metrics else []
    measured = [CurveKind(name, measured=True) for name in metrics if name != "loss"]
    return [*steps[:1], *losses, *measured, *steps[1:]]


def names_of(runs: Sequence[RunSummary]) -> list[str]:
    """Each run's title, or its folder without the date if several share a title and that helps."""
    titles = [run.title for run in runs]
    short = [_DATE.sub("", run.name) for run in runs]
    folders = [name if short.count(name) == 1 else run.name for run, name in zip(runs, short, strict=True)]
    return [title if titles.count(title) == 1 else folder for title, folder in zip(titles, folders, strict=True)]


def setting_names(keys: Sequence[str]) -> list[str]:
    """Each setting's title, with its key if several of them share a title."""
    titles = [setting_title(key) for key in keys]
    return [title if titles.count(title) == 1 else f"{title} ({key})" for title, key in zip(titles, keys, strict=True)]


def setting_title(key: str) -> str:
    """A setting's title, which is made from its key before the catalog has come."""
    title, name = title_of_key(key), key.rpartition(".")[2]
    return translate_word(capitalize(name.replace("_", " "))) if title == name else title


def final_cells(run: RunSummary, name: str) -> list[tuple[str, str]]:
    """The cells before the metrics in the table of runs, the same as in `burnish runs --table`."""
    seconds = "–" if run.seconds is None else f"{run.seconds:.0f}"
    return [
        ("run", name),
        ("state", run.state),
        ("task", run.task or "–"),
        ("model", formatting.name_of_path(run.model) or "–"),
        ("data", run.data or "–"),
        ("steps", str(run.step)),
        ("seconds", seconds),
    ]
