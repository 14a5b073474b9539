"""The values behind the Try box: queries to one or two models, their answers, and how two answers differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.core.formatting import megabytes, name_of_path, number
from app.core.i18n import figure, tr
from app.core.predictions.predicted_row import PredictedRow
from app.core.runs.run_spec import RunTask
from app.core.text.direction import runs_right_to_left
from backend.contract.rpc.interactive import Answer
from backend.contract.run.folder import RunFolder

LONGEST_LINE = 90
_STEP = "step-"


@dataclass(frozen=True)
class Question:
    """A query to one model."""

    target: str
    task: str
    row: Mapping[str, Any]
    settings: Mapping[str, Any]
    chosen: RunTask = field(default_factory=RunTask)
    """What the run says of its task, under whose columns a row is added to a file."""


@dataclass(frozen=True)
class AnsweredQuestion:
    """An answer with its query; `beside` is another model's answer to the same."""

    question: Question
    answer: Answer
    beside: "AnsweredQuestion | None" = None
    right: str = ""
    """What a person says is right."""
    added: str = ""
    """The file that the row was added to."""

    @property
    def row(self) -> dict[str, Any]:
        """The roles and columns of the answer."""
        return self.answer.rows[0]

    @property
    def name(self) -> str:
        """A short name for the model."""
        return name_of(self.question.target)

    def line(self, most: int = LONGEST_LINE) -> str:
        """The input and the answers, on one line."""
        parts = [_first(self.question.row), self.row.get("prediction") or NO_ANSWER]
        parts += [self.beside.row.get("prediction") or NO_ANSWER] if self.beside else []
        texts = [" ".join(str(part).split()) for part in parts]
        arrow = "←" if runs_right_to_left(texts[0][:most]) else "→"  # the line runs as its first text does
        return f"   {arrow}   ".join(text if len(text) <= most else f"{text[:most]}…" for text in texts)

    def facts(self) -> str:
        """Time, device and memory of the answer."""
        words = [took(self.answer.seconds), self.answer.device]
        words += [megabytes(self.answer.memory_mb)] if self.answer.memory_mb else []
        if self.answer.device_memory_mb:
            words.append(
                tr("{device_memory_mb} on the device", device_memory_mb=megabytes(self.answer.device_memory_mb))
            )
        return " · ".join(words)

    def holds(self, text: str) -> bool:
        """Whether the words occur anywhere in question or answers."""
        wanted = text.casefold()
        values = [*self.row.values(), *(self.beside.row.values() if self.beside else ()), self.name]
        return any(wanted in str(value).casefold() for value in values)

    def with_right(self, right: str) -> "AnsweredQuestion":
        """The same with the user's right answer."""
        return replace(self, right=right, added="" if right != self.right else self.added)


def took(seconds: float) -> str:
    """`12 ms`, `3.1 s`."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{figure(seconds, '.1f')} s"


def name_of(target: str) -> str:
    """A run's name, with the step of a checkpoint; for a folder or hub id its last part."""
    path = Path(target)
    step = step_of(target)
    return (
        tr("{name} · step {step:,}", name=path.parent.parent.name, step=step)
        if step is not None
        else name_of_path(target)
    )


def run_of(target: str) -> str:
    """The run of a checkpoint; anything else unchanged."""
    return str(Path(target).parent.parent) if step_of(target) is not None else target


def step_of(target: str) -> int | None:
    """The step, if the target is a checkpoint."""
    path = Path(target)
    digits = path.name.removeprefix(_STEP)
    is_one = path.name.startswith(_STEP) and digits.isdecimal() and path.parent.name == "checkpoints"
    return int(digits) if is_one else None


def checkpoints_of(run: Path | str) -> dict[int, str]:
    """Step → folder of a run's checkpoints, latest first."""
    folder = RunFolder(run)
    steps = {step_of(str(path)): str(path) for path in folder.checkpoints.glob(f"{_STEP}*")}
    return {step: path for step, path in sorted(steps.items(), key=lambda each: -(each[0] or 0)) if step is not None}


def is_run(target: str) -> bool:
    """Whether the target is a run folder, wherever it is."""
    return Path(target).is_absolute() and RunFolder(target).exists()


def has_model(run: Path | str) -> bool:
    """Whether a run has saved its final model; an ongoing run only has checkpoints."""
    return (RunFolder(run).model / "config.json").is_file()


def _first(row: Mapping[str, Any]) -> Any:
    return next(iter(row.values()), "")


# Two models' answers to the same

NO_ANSWER = tr("no answer")
LONGEST_QUOTE = 40
"""Letters of an answer that is quoted in the sentence."""


@dataclass(frozen=True)
class LabelPair:
    """A label's probability in both models; None if one does not have the label."""

    label: str
    first: float | None
    second: float | None

    @property
    def points(self) -> float | None:
        """How many percentage points more certain the second is."""
        return None if self.first is None or self.second is None else 100 * (self.second - self.first)

    @property
    def title(self) -> str:
        """The label with the difference."""
        if self.points is None:
            return tr("{label} · only one model has this label", label=self.label)
        return tr("{label} · {replace} points", label=self.label, replace=figure(self.points, "+.1f").replace("-", "−"))


def label_pairs(first: PredictedRow, second: PredictedRow) -> list[LabelPair]:
    """Every label of either model, sorted by the higher probability."""
    ones, others = first.probabilities(), second.probabilities()
    pairs = [LabelPair(label, ones.get(label), others.get(label)) for label in {**ones, **others}]
    return sorted(pairs, key=lambda pair: -max(pair.first or 0.0, pair.second or 0.0))


def agreement(first: PredictedRow, second: PredictedRow, names: tuple[str, str]) -> str:
    """One sentence on whether both agree."""
    ones, others = _number(first), _number(second)
    if ones is not None and others is not None and not first.probabilities():
        far = number(abs(others - ones))
        more, less = (
            tr("{names} predicts {far} more than {names_2}.", names=names[1], far=far, names_2=names[0]),
            tr("{names} predicts {far} less than {names_2}.", names=names[1], far=far, names_2=names[0]),
        )
        return more if others >= ones else less
    quoted = [_quote(row.prediction) for row in (first, second)]
    if first.prediction == second.prediction:
        surer = _surer(first.probabilities(), second.probabilities(), first.prediction, names)
        return tr("Both predict {said}{surer}.", said=quoted[0], surer=surer)
    return tr(
        "They differ: {names} predicts {said}, {names_2} predicts {said_2}.",
        names=names[0],
        said=quoted[0],
        names_2=names[1],
        said_2=quoted[1],
    )


def _surer(ones: Mapping[str, float], others: Mapping[str, float], label: str, names: tuple[str, str]) -> str:
    if label not in ones or label not in others:
        return ""
    points = 100 * (others[label] - ones[label])
    if abs(points) < 0.05:
        return tr(", with equal confidence")
    return tr(
        "; {names} is more confident by {abs:.1f} points", names=names[1] if points > 0 else names[0], abs=abs(points)
    )


def _number(row: PredictedRow) -> float | None:
    value = row.values.get("prediction")
    return float(value) if isinstance(value, int | float) else None


def _quote(text: str) -> str:
    if not text:
        return NO_ANSWER
    line = " ".join(text.split())
    return f"“{line}”" if len(line) <= LONGEST_QUOTE else f"“{line[:LONGEST_QUOTE].rstrip()}…”"
