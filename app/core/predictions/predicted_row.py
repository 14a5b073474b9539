"""One row of predictions, read by column role instead of by name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from backend.contract.safe_text import parse_json

PROBABILITY = "probability_"


def labels_in(text: str, labels: Collection[str]) -> set[str]:
    """The labels that a prediction consists of: one, or several with the same separator between them."""
    if text in labels or not text:
        return {text} - {""}
    first = max((label for label in labels if label and text.startswith(label)), key=len, default="")
    rest = text[len(first) :]
    for other in labels if first else ():
        if (at := rest.find(other)) > 0 and set(found := text.split(rest[:at])) <= set(labels):
            return set(found)
    return {text}


@dataclass(frozen=True)
class PredictedRow:
    """The values by column; `columns` maps role → column, as in a spec's `data.columns`."""

    values: Mapping[str, Any]
    columns: Mapping[str, str] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None
    """Least and greatest number of the whole file, where it predicts numbers."""

    def part(self, role: str) -> Any:
        """The value of a role's column; None if there is none."""
        return self.values.get(self.columns.get(role, role))

    def text(self, role: str) -> str:
        """The same as text."""
        value = self.part(role)
        return "" if value is None else str(value)

    @property
    def prediction(self) -> str:
        """What was predicted, as text."""
        value = self.values.get("prediction")
        return "" if value is None else str(value)

    @property
    def actual(self) -> str | None:
        """The right value; None if unknown."""
        value = self.values.get("actual")
        return None if value is None else str(value)

    def own(self, name: str) -> Any:
        """A task column, which is called `predicted_…` if the input has a column of that name."""
        return self.values.get(f"predicted_{name}", self.values.get(name))

    def number(self, name: str) -> float | None:
        """A task column as a number; None if it is not one."""
        try:
            return float(self.own(name))
        except (TypeError, ValueError):
            return None

    def probabilities(self) -> dict[str, float]:
        """Label → probability, in the file's order."""
        return {
            name.removeprefix(PROBABILITY): float(value)
            for name, value in self.values.items()
            if name.startswith(PROBABILITY) and isinstance(value, int | float)
        }

    def as_list(self, name: str) -> list[Any]:
        """A column of JSON text or lists as a list; empty if it is neither."""
        value = self.own(name)
        if isinstance(value, str):
            try:
                value = parse_json(value)
            except ValueError:
                return []
        return value if isinstance(value, list) else []

    def inputs(self, own: frozenset[str] = frozenset()) -> dict[str, Any]:
        """The columns that are neither prediction, actual value nor `own`."""
        return {
            name: value
            for name, value in self.values.items()
            if name not in own and name not in ("prediction", "actual") and not name.startswith(PROBABILITY)
        }
