"""Owns how long the parts of a run will take: tokenising, training, evaluations, predictions, from speeds reached here."""

from backend.contract.cost import TimePart
from backend.contract.spec import RunSpec

FORWARD = 1 / 3
"""A pass without gradients against one with them, which goes forward once and back at twice the cost."""


def time_parts(
    spec: RunSpec, rows: dict[str, int], tokens_per_row: float, epochs: float, total_steps: int,
    tokenising: float, tokens_per_second: float | None,
) -> list[TimePart]:  # fmt: skip
    """`rows` by split, `tokenising` seconds a row as just measured, `tokens_per_second` of training where it is known."""
    trained = rows["train"] * tokens_per_row * epochs
    evaluations = _evaluations(spec, epochs, total_steps) if "validation" in rows else 0
    of_each = min(rows.get("validation", 0), spec.evaluation.max_rows or rows.get("validation", 0))
    predicted = rows.get("validation", 0) + rows.get("test", 0)

    def seconds(tokens: float, cost: float = 1.0) -> float | None:
        return cost * tokens / tokens_per_second if tokens_per_second else None

    parts = [
        TimePart(
            "Tokenising", tokenising * sum(rows.values()), f"{sum(rows.values()):,} rows; nothing where done before"
        ),
        TimePart("Training", seconds(trained), f"{total_steps:,} steps"),
    ]
    if evaluations:
        tokens = evaluations * of_each * tokens_per_row
        parts.append(TimePart("Evaluations", seconds(tokens, FORWARD), f"{evaluations:,} × {of_each:,} rows"))
    if predicted:
        parts.append(TimePart("Predictions", seconds(predicted * tokens_per_row, FORWARD), f"{predicted:,} rows"))
    return parts


def whole(parts: list[TimePart]) -> float | None:
    """Seconds of all parts; None where training is not known."""
    known = [part.seconds for part in parts if part.seconds is not None]
    return sum(known) if len(known) == len(parts) else None


def _evaluations(spec: RunSpec, epochs: float, total_steps: int) -> int:
    every = spec.evaluation.every
    count = 0 if every == "never" else -(-epochs // 1) if every == "epoch" else total_steps // every
    return int(count) + spec.evaluation.at_start
