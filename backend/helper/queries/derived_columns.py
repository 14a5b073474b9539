"""The derived columns for sorting and filtering predictions, which no file has: confidence, correctness, error."""

from typing import TYPE_CHECKING, Any

from backend.contract.arrow_numbers import numbers
from backend.contract.rpc.predictions import AT_THRESHOLD, RIGHT, SEPARATOR

if TYPE_CHECKING:
    import pyarrow as pa

PROBABILITY = "probability_"


def add_all_columns(table: "pa.Table") -> "pa.Table":
    """The table with every derived column that can be computed and whose name is not taken."""
    for name in _DERIVED:
        if name != "wrong_tags" or not {"lost_words", "predicted_lost_words"}.isdisjoint(table.column_names):
            table = add_column(table, name)
    return table


def add_column(table: "pa.Table", name: str) -> "pa.Table":
    """The table with a derived column, if requested, its name is not taken, and it can be computed."""
    derive = _DERIVED.get(name)
    column = derive(table) if derive and name not in table.column_names else None
    return table if column is None else table.append_column(name, column)


def has_label(column: Any, label: str, separator: str) -> Any:
    """Whether each cell's labels include this one; none where the cell is empty."""
    import pyarrow as pa
    import pyarrow.compute as compute

    ends = pa.scalar(separator)
    marked = compute.binary_join_element_wise(ends, compute.cast(column, pa.string()), ends, "")
    return compute.call_function(
        "match_substring", [marked], compute.MatchSubstringOptions(f"{separator}{label}{separator}")
    )


def apply_threshold(table: "pa.Table", label: str, threshold: float) -> "pa.Table":
    """The table with the prediction that each row gets if `label` is predicted above a probability threshold.

    Below the threshold the most probable other label is predicted, or if rows have several labels, the others.
    """
    import numpy as np
    import pyarrow as pa

    names = [name for name in table.column_names if name.startswith(PROBABILITY)]
    if f"{PROBABILITY}{label}" not in names or len(names) < 2:
        return table
    if separator := (table.schema.metadata or {}).get(SEPARATOR.encode(), b"").decode():
        return _place_threshold(table, _with_or_without(table, label, threshold, separator))
    labels = np.array([name.removeprefix(PROBABILITY) for name in names], dtype=object)
    chances = np.stack([numbers(table[name]) for name in names], axis=1)  # (rows, labels)
    place = names.index(f"{PROBABILITY}{label}")
    known, chosen = ~np.isnan(chances).any(axis=1), chances[:, place] >= threshold
    chances[:, place] = -1
    others = np.where(np.isnan(chances), -1, chances).argmax(axis=1)
    return _place_threshold(table, pa.array(labels[np.where(chosen, place, others)], pa.string(), mask=~known))


def _with_or_without(table: "pa.Table", label: str, threshold: float, separator: str) -> Any:
    """The predicted labels of each row, this one among them if its probability reaches the threshold."""
    import pyarrow as pa

    order = [name.removeprefix(PROBABILITY) for name in table.column_names if name.startswith(PROBABILITY)]
    cells = zip(table["prediction"].to_pylist(), table[f"{PROBABILITY}{label}"].to_pylist(), strict=True)
    found = []
    for cell, chance in cells:
        labels = {*(cell or "").split(separator)} - {label} | ({label} if (chance or 0) >= threshold else set())
        found.append(separator.join(one for one in order if one in labels))
    return pa.array(found, pa.string())


def _place_threshold(table: "pa.Table", column: Any) -> "pa.Table":
    names = table.column_names
    return table.add_column(
        names.index("prediction") + 1 if "prediction" in names else len(names), AT_THRESHOLD, column
    )


def _confidence(table: "pa.Table") -> Any:
    """The largest probability of each row."""
    import pyarrow.compute as compute

    names = [name for name in table.column_names if name.startswith(PROBABILITY)]
    return compute.max_element_wise(*[table[name] for name in names]) if names else None


def _is_correct(table: "pa.Table") -> Any:
    """Whether the prediction equals the actual value, as text; None if nothing is known."""
    import pyarrow as pa
    import pyarrow.compute as compute

    if not {"prediction", "actual"} <= set(table.column_names):
        return None
    pair = [compute.cast(table[name], pa.string()) for name in ("prediction", "actual")]
    return compute.call_function("equal", pair)


def _error(table: "pa.Table") -> Any:
    """The absolute error of a predicted number; None if either column is not numeric."""
    import pyarrow as pa
    import pyarrow.compute as compute

    if not {"prediction", "actual"} <= set(table.column_names):
        return None
    if not all(_is_number(table[name].type) for name in ("prediction", "actual")):
        return None
    predicted, actual = (compute.cast(table[name], pa.float64()) for name in ("prediction", "actual"))
    return compute.call_function("abs", [compute.call_function("subtract", [predicted, actual])])


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def _wrong_tags(table: "pa.Table") -> Any:
    """How many of a row's space-joined tags differ from the actual ones; None if nothing is known."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as compute

    if not {"prediction", "actual"} <= set(table.column_names):
        return None
    lists = [compute.split_pattern(compute.cast(table[name], pa.string()), " ") for name in ("prediction", "actual")]
    lengths = [compute.fill_null(compute.list_value_length(one), 0).to_numpy() for one in lists]
    if not (lengths[0] == lengths[1]).all():
        return pa.array(
            [_differing(*pair) for pair in zip(*(one.to_pylist() for one in lists), strict=True)], pa.int64()
        )
    flat = [compute.list_flatten(one) for one in lists]
    differs = compute.fill_null(compute.call_function("not_equal", flat), True).to_numpy().astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(differs)])[np.concatenate([[0], np.cumsum(lengths[0])])]
    known = compute.call_function("is_valid", [table["actual"]]).to_numpy()
    return pa.array(np.diff(ends), pa.int64(), mask=~known)


def _differing(predicted: list[str] | None, actual: list[str] | None) -> int | None:
    if predicted is None or actual is None:
        return None
    same = sum(one == other for one, other in zip(predicted, actual, strict=False))
    return max(len(predicted), len(actual)) - same


_DERIVED = {"confidence": _confidence, RIGHT: _is_correct, "error": _error, "wrong_tags": _wrong_tags}
